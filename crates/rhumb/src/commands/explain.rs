//! `rhumb explain`: the story of one URL, read from the log.

use std::path::Path;

use anyhow::Result;
use rhumb_core::record::Record;
use rhumb_core::url::{Normalizer, Url};
use rhumb_store::codec::Malformed;
use rhumb_store::disk::RealDisk;
use rhumb_store::log::{LogReader, Position, segment_name};
use rhumb_store::{StoreError, Timestamp};
use serde::Serialize;

use super::crawl_directory;
use crate::{Exit, out, usage};

/// Pages that link to it which are named.
const REFERRERS_MAX: usize = 10;

#[derive(Default, Serialize)]
struct Story {
    url: String,
    state: &'static str,
    seed: bool,
    found_on: Vec<Referrer>,
    links_to_it: u64,
    events: Vec<Event>,
}

#[derive(Serialize)]
struct Referrer {
    url: String,
    text: String,
    wanted: bool,
}

#[derive(Serialize)]
struct Event {
    at: String,
    outcome: &'static str,
    status: u16,
    detail: String,
    milliseconds: u64,
    bytes: u64,
    will_retry: bool,
    archived_at: Option<String>,
    duplicate_of: Option<String>,
    title: String,
    links: usize,
}

/// Tells the story of `url` in the crawl of `dir`.
pub fn run(dir: &Path, url: &str, json: bool) -> Result<Exit> {
    let config = crawl_directory(dir)?;
    let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
    let normalizer = Normalizer::new(&settings.normalize);
    let url = normalizer.normalize(url, None).map_err(|e| usage(format!("{url:?}: {e}")))?;
    let story = read(dir, &url)?;
    let known = story.state != "unknown";
    if json {
        out::json(&story)?;
    } else {
        tell(&story)?;
    }
    Ok(if known { Exit::Done } else { Exit::Look })
}

fn read(dir: &Path, url: &Url) -> Result<Story> {
    let disk = RealDisk::new(dir);
    let mut reader = LogReader::open(disk, Position::START)?;
    let mut story = Story { url: url.as_str().to_string(), state: "unknown", ..Story::default() };
    // Links are written as what differs from the link before, so a URL's end is what surely stands in the record.
    let tail = &url.as_str()[url.as_str().len().saturating_sub(1)..];
    let mut wanted = false;
    loop {
        let at = reader.position();
        let Some((kind, payload)) = reader.next()? else { break };
        if !matches!(kind, 2 | 4 | 5)
            || !payload.ends_with(tail.as_bytes()) && kind != 4 && !contains(payload, tail.as_bytes())
        {
            continue;
        }
        let record = Record::take(kind, payload);
        let record =
            record.map_err(|Malformed(what)| StoreError::corrupt(&segment_name(at.segment), at.offset, what))?;
        match record {
            Record::Seed(entry, _) if entry.url == *url => {
                story.seed = true;
                wanted = true;
            }
            Record::Dropped { entry, outcome, at } if entry.url == *url => {
                story.events.push(Event::bare(at, outcome.name()));
            }
            Record::Visited(visit) => {
                for link in visit.links.iter().filter(|l| l.url == *url) {
                    story.links_to_it += 1;
                    wanted |= link.wanted;
                    if story.found_on.len() < REFERRERS_MAX {
                        let text = link.text.to_string();
                        story.found_on.push(Referrer {
                            url: visit.entry.url.as_str().to_string(),
                            text,
                            wanted: link.wanted,
                        });
                    }
                }
                if visit.entry.url == *url {
                    story.events.push(Event {
                        status: visit.status,
                        detail: visit.detail.to_string(),
                        milliseconds: visit.duration_ms(),
                        bytes: visit.wire_bytes,
                        will_retry: visit.retry,
                        archived_at: visit.archived.map(|a| format!("file {}, byte {}", a.file, a.offset)),
                        duplicate_of: visit.duplicate_of.as_deref().map(String::from),
                        title: visit.title.to_string(),
                        links: visit.links.len(),
                        ..Event::bare(visit.started, visit.outcome.name())
                    });
                }
            }
            _ => {}
        }
    }
    story.state = match story.events.last() {
        Some(event) if event.will_retry => "waiting to be tried again",
        Some(_) => "done",
        None if wanted => "waiting",
        None if story.links_to_it > 0 => "not wanted",
        None => "unknown",
    };
    Ok(story)
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len().max(1)).any(|w| w == needle)
}

impl Event {
    fn bare(at: Timestamp, outcome: &'static str) -> Event {
        Event {
            at: at.to_string(),
            outcome,
            status: 0,
            detail: String::new(),
            milliseconds: 0,
            bytes: 0,
            will_retry: false,
            archived_at: None,
            duplicate_of: None,
            title: String::new(),
            links: 0,
        }
    }
}

fn tell(story: &Story) -> Result<()> {
    out::line(&story.url)?;
    out::line(&format!("  state        {}", story.state))?;
    if story.seed {
        out::line("  a seed")?;
    }
    if story.links_to_it > 0 {
        out::line(&format!("  linked       {} times, first from:", story.links_to_it))?;
    }
    for r in &story.found_on {
        let outside = if r.wanted { "" } else { "  (outside the crawl's scope)" };
        out::line(&format!("    {}  {:?}{outside}", r.url, r.text))?;
    }
    for e in &story.events {
        let status = if e.status == 0 { String::new() } else { format!(" {}", e.status) };
        out::line(&format!(
            "  {}  {}{status}  {} bytes in {} ms  {}",
            e.at, e.outcome, e.bytes, e.milliseconds, e.detail
        ))?;
        if !e.title.is_empty() {
            out::line(&format!("    title      {}", e.title))?;
        }
        if let Some(place) = &e.archived_at {
            out::line(&format!("    archived   {place}"))?;
        }
        if let Some(first) = &e.duplicate_of {
            out::line(&format!("    same body  as {first}"))?;
        }
    }
    Ok(())
}
