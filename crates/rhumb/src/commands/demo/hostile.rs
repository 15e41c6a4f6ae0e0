//! What the hostile hosts of the demonstration tried, and how each ended: read from the log, counted at their server.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use rhumb_core::frontier::Reason;
use rhumb_core::outcome::Outcome;
use rhumb_core::record::Record;
use rhumb_core::traps::RuleChange;
use rhumb_sim::HostileServer;
use rhumb_sim::hostile::{self, Kind, Place};
use rhumb_store::codec::Malformed;
use rhumb_store::disk::RealDisk;
use rhumb_store::log::{LogReader, Position};
use serde::Serialize;

/// The kinds that are shown: some of each group, those that tell the most.
const SHOWN: [&str; 26] = [
    "calendar",
    "session-query",
    "soft-404",
    "doubling",
    "redirect-loop",
    "redirect-scheme",
    "redirect-private",
    "redirect-cookie",
    "body-endless",
    "body-drip",
    "gzip-bomb",
    "gzip-twenty",
    "nested",
    "length-twice",
    "chunk-size-bad",
    "never-answers",
    "head-drip",
    "head-giant",
    "continue-forever",
    "retry-zero",
    "retry-years",
    "robots-500",
    "robots-50mb",
    "tls-expired",
    "tls-stalled",
    "dns-silence",
];

/// How much of a detail is shown.
const DETAIL_CHARS: usize = 48;

/// The kinds of the demonstration.
pub fn kinds() -> Vec<&'static Kind> {
    SHOWN.iter().filter_map(|name| hostile::kinds().find(|kind| kind.name == *name)).collect()
}

/// One line of the table.
#[derive(Serialize)]
pub struct Row {
    name: &'static str,
    about: &'static str,
    requests: u64,
    end: String,
}

/// What the log tells of the hostile hosts.
#[derive(Default)]
struct Ends {
    urls: BTreeMap<String, (Outcome, String)>,
    holds: BTreeMap<String, Reason>,
    rules: Vec<(String, String)>,
}

/// The table, from the log in `dir` and the server's own counts.
pub fn rows(dir: &Path, server: &HostileServer) -> Result<Vec<Row>> {
    let ends = read(dir).context("read the log")?;
    let requests = server.requests();
    let row = |kind: &'static Kind| Row {
        name: kind.name,
        about: kind.about,
        requests: requests.get(kind.name).copied().unwrap_or(0),
        end: ends.of(kind, server.place()),
    };
    Ok(kinds().into_iter().map(row).collect())
}

/// The table for people.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::from("What the hostile hosts tried, and how each ended:\n");
    for Row { name, about, requests, end } in rows {
        out.push_str(&format!("  {name:<17} {about}\n  {:<17} {requests:>3} requests: {end}\n", ""));
    }
    out.truncate(out.trim_end().len());
    out
}

fn read(dir: &Path) -> Result<Ends> {
    let mut reader = LogReader::open(RealDisk::new(dir), Position::START)?;
    let mut ends = Ends::default();
    while let Some((kind, payload)) = reader.next()? {
        let record = Record::take(kind, payload).map_err(|Malformed(what)| anyhow::anyhow!("{what}"))?;
        match record {
            Record::Visited(v) if v.purpose.is_page() && !v.retry => {
                ends.urls.insert(v.entry.url.to_string(), (v.outcome, v.detail.to_string()));
            }
            Record::Dropped { entry, outcome, .. } => {
                ends.urls.insert(entry.url.to_string(), (outcome, String::new()));
            }
            Record::Held { host, hold } => {
                ends.holds.insert(host.to_string(), hold.reason);
            }
            Record::Rule(RuleChange::Learned(pattern, _), _) => {
                ends.rules.push((pattern.site.to_string(), pattern.sentence()));
            }
            _ => {}
        }
    }
    Ok(ends)
}

impl Ends {
    /// How a kind ended: by what was learned of it, by the first of its URLs that ended in trouble, or plainly.
    fn of(&self, kind: &Kind, place: &Place) -> String {
        let home = kind.url("/", place);
        let origin = home.trim_end_matches('/');
        if let Some((site, rule)) = self.rules.iter().find(|(site, _)| site == origin) {
            return format!("learned {}", rule.trim_start_matches(site.as_str()).trim_start_matches(": "));
        }
        if let Some(reason) = self.holds.get(origin) {
            return format!("held: {}", reason.name());
        }
        let expected = kind.expected(place).into_iter().map(|(url, _)| url);
        let ended: Vec<_> = expected.filter_map(|url| self.urls.get(&url)).collect();
        let telling = |(outcome, detail): &&&(Outcome, String)| outcome.is_trouble() || !detail.is_empty();
        match ended.iter().find(telling).or(ended.first()) {
            None => "waits for its turn".to_string(),
            Some((outcome, detail)) if detail.is_empty() => outcome.name().to_string(),
            Some((outcome, detail)) => {
                let shown: String = detail.chars().take(DETAIL_CHARS).collect();
                let dots = if shown.len() < detail.len() { "…" } else { "" };
                format!("{} ({shown}{dots})", outcome.name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_shown_exists() {
        assert_eq!(kinds().len(), SHOWN.len());
    }
}
