//! `rhumb explain`: the story of one URL, read from the log.

use std::path::Path;

use anyhow::Result;
use rhumb_core::frontier::{Hold, ends_hold};
use rhumb_core::outcome::Outcome;
use rhumb_core::page::{Directives, Obedience, Rel};
use rhumb_core::record::Record;
use rhumb_core::robots::{ROBOTS_BYTES_MAX, RobotsTxt, Rules, product_token};
use rhumb_core::sitemap::Hint;
use rhumb_core::traps::{Traps, TrapsConfig};
use rhumb_core::url::{Normalizer, Url};
use rhumb_core::visit::{Outlink, Purpose, VisitRecord};
use rhumb_store::codec::Malformed;
use rhumb_store::disk::{Disk, RealDisk};
use rhumb_store::log::{LogReader, Position, segment_name};
use rhumb_store::{StoreError, Timestamp};
use serde::Serialize;

use super::crawl_directory;
use crate::display::thousands;
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
    /// The host is left alone for now, and the URL with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
    /// What was learned of its site speaks against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Learned>,
    /// Its text is that of an older page, or nearly so.
    #[serde(skip_serializing_if = "Option::is_none")]
    near_duplicate_of: Option<NearDuplicate>,
    events: Vec<Event>,
}

#[derive(Serialize)]
struct NearDuplicate {
    of: String,
    /// Shared five-word phrases over all, as estimated.
    similarity: f64,
    /// Whether the words are the same.
    exact: bool,
}

#[derive(Serialize)]
struct Held {
    reason: &'static str,
    /// The last failure, if that is why.
    outcome: Option<&'static str>,
    since: String,
    /// Requests and look-ups without an answer since the last one that had one.
    attempts: u32,
    /// Nothing: when the finished crawl is started again.
    next_try: Option<String>,
}

#[derive(Serialize)]
struct Learned {
    number: u32,
    rule: String,
}

#[derive(Serialize)]
struct Referrer {
    url: String,
    text: String,
    wanted: bool,
    /// Why it was not followed: the channel that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

/// What a page or its server asked of robots.
#[derive(Serialize)]
struct Asked {
    directive: &'static str,
    channel: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// What a sitemap or feed said of the page.
#[derive(Serialize)]
struct Said {
    lastmod: Option<String>,
    changefreq: Option<&'static str>,
    priority: Option<f32>,
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
    robots: Vec<Asked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sitemap: Option<Said>,
}

/// Tells the story of `url` in the crawl of `dir`.
pub fn run(dir: &Path, url: &str, json: bool) -> Result<Exit> {
    let config = crawl_directory(dir)?;
    let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
    let normalizer = Normalizer::new(&settings.normalize);
    let url = normalizer.normalize(url, None).map_err(|e| usage(format!("{url:?}: {e}")))?;
    let story = read(dir, &url, product_token(&settings.agent), settings.obey)?;
    let known = story.state != "unknown";
    if json {
        out::json(&story)?;
    } else {
        tell(&story)?;
    }
    Ok(if known { Exit::Done } else { Exit::Look })
}

fn read(dir: &Path, url: &Url, agent: &str, obey: Obedience) -> Result<Story> {
    let disk = RealDisk::new(dir);
    let mut reader = LogReader::open(disk.clone(), Position::START)?;
    let mut story = Story { url: url.as_str().to_string(), state: "unknown", ..Story::default() };
    // Links are written as what differs from the link before, so a URL's end is what surely stands in the record.
    let tail = &url.as_str()[url.as_str().len().saturating_sub(1)..];
    let mut wanted = false;
    let host = url.host();
    let mut held: Option<(Timestamp, Hold)> = None;
    let mut rules: Option<Rules> = None;
    let mut traps = Traps::new(TrapsConfig { bytes_max: 0, ..TrapsConfig::default() });
    loop {
        let at = reader.position();
        let Some((kind, payload)) = reader.next()? else { break };
        let of_interest = match kind {
            4 | 8 | 9 | 10 => true,
            2 | 5 => contains(payload, tail.as_bytes()),
            _ => false,
        };
        if !of_interest {
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
                let rule = rules.as_ref().filter(|_| outcome == Outcome::RobotsDisallowed);
                let detail = rule.and_then(|rules| deciding_rule(rules, url)).unwrap_or_default();
                story.events.push(Event { detail, ..Event::bare(at, outcome.name()) });
            }
            Record::Held { host: whose, hold } if whose == host => {
                // Held anew after a probe, it is held since the first time.
                held = Some((held.map_or(hold.at, |(since, _)| since), hold));
            }
            Record::Rule(change, at) => traps.apply(&change, at),
            Record::Duplicate(duplicate, _) if duplicate.url == *url => {
                let of = duplicate.of.as_str().to_string();
                let similarity = f64::from(duplicate.similarity) / 10_000.0;
                story.near_duplicate_of = Some(NearDuplicate { of, similarity, exact: duplicate.exact });
            }
            Record::Visited(visit) => {
                held = held.filter(|(_, hold)| !ends_hold(&visit, &host, hold.reason));
                if matches!(&visit.purpose, Purpose::Robots { host: ruled, .. } if *ruled == host)
                    && let Some(body) = &visit.robots
                {
                    rules = Some(RobotsTxt::parse(body, ROBOTS_BYTES_MAX).for_agent(agent));
                }
                for link in visit.links.iter().filter(|l| l.url == *url) {
                    story.links_to_it += 1;
                    wanted |= link.wanted && visit.copy_of.is_none();
                    // A page that links many times, as navigation does, is named once, by its first link with a text.
                    let page = visit.entry.url.as_str();
                    let text = link.text.to_string();
                    if let Some(known) = story.found_on.iter_mut().find(|r| r.url == page) {
                        if known.text.is_empty() {
                            known.text = text;
                        }
                    } else if story.found_on.len() < REFERRERS_MAX {
                        let because = why_not_followed(&visit, link, obey, &*disk)?;
                        let wanted = because.is_none();
                        story.found_on.push(Referrer { url: page.to_string(), text, wanted, because });
                    }
                }
                if visit.entry.url == *url {
                    // A page that changed is compared anew.
                    if visit.entry.known.as_ref().map(|k| &k.content) != visit.content.as_ref() {
                        story.near_duplicate_of = None;
                    }
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
                        robots: asked(&visit.directives),
                        canonical: visit.canonical.as_ref().map(|url| url.as_str().to_string()),
                        language: Some(visit.language.to_string()).filter(|l| !l.is_empty()),
                        sitemap: said(visit.entry.hint),
                        ..Event::bare(visit.started, visit.outcome.name())
                    });
                }
            }
            _ => {}
        }
    }
    let waits = story.events.last().map_or(wanted, |event| event.will_retry);
    story.held = held.filter(|_| waits).map(|(since, hold)| Held {
        reason: hold.reason.name(),
        outcome: hold.trouble.map(Outcome::name),
        since: since.to_string(),
        attempts: hold.attempts,
        next_try: hold.until.map(|at| at.to_string()),
    });
    let rule = traps.speaks_of(url).filter(|_| wanted && !story.seed && story.events.is_empty());
    let rule = rule.and_then(|number| traps.rules().get(number as usize - 1));
    story.rule = rule.map(|rule| Learned { number: rule.number, rule: rule.pattern.sentence() });
    story.state = match story.events.last() {
        _ if story.rule.is_some() => "set aside",
        _ if story.held.is_some() => "held",
        Some(event) if event.will_retry => "waiting to be tried again",
        Some(_) => "done",
        None if wanted => "waiting",
        None if story.links_to_it > 0 => "not wanted",
        None => "unknown",
    };
    Ok(story)
}

/// The line of robots.txt that forbids `url`.
fn deciding_rule(rules: &Rules, url: &Url) -> Option<String> {
    let verdict = rules.verdict(url.path_and_query());
    Some(format!("robots.txt, line {}: {}", verdict.line?, verdict.rule?))
}

/// The channel that decided against a link, if one did. Whether it would have been in scope is not known then.
fn why_not_followed(visit: &VisitRecord, link: &Outlink, obey: Obedience, disk: &dyn Disk) -> Result<Option<String>> {
    if let Some(page) = visit.copy_of {
        let of = rhumb_crawl::duplicates::url_at(disk, page)?.map_or("another page".to_string(), |url| url.to_string());
        return Ok(Some(format!("a copy of {of}")));
    }
    let why = match visit.directives.nofollow {
        _ if link.wanted => return Ok(None),
        Some(channel) if obey.nofollow => format!("nofollow ({})", channel.name()),
        _ if obey.rel_nofollow && link.rel.intersects(Rel::NOFOLLOW) => "rel=nofollow".to_string(),
        _ => "outside the crawl's scope".to_string(),
    };
    Ok(Some(why))
}

fn asked(directives: &Directives) -> Vec<Asked> {
    let after = directives.unavailable_after.map(|(at, _)| at.iso_seconds());
    let of = |directive| after.clone().filter(|_| directive == "unavailable_after");
    directives.iter().map(|(d, channel)| Asked { directive: d, channel: channel.name(), after: of(d) }).collect()
}

fn said(hint: Hint) -> Option<Said> {
    let lastmod = hint.lastmod().map(|at| at.iso_seconds());
    let said = Said { lastmod, changefreq: hint.changefreq(), priority: hint.priority() };
    (hint != Hint::default()).then_some(said)
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
            robots: Vec::new(),
            canonical: None,
            language: None,
            sitemap: None,
        }
    }
}

fn tell_held(held: &Held) -> Result<()> {
    let why = match held.reason {
        "no_answer" => "the host did not answer",
        "dns_failed" => "the name of the host could not be resolved",
        "robots_unreachable" => "the robots.txt of the host could not be had",
        _ => "the host, or its domain, is over budget: too little of it was new",
    };
    let outcome = held.outcome.map_or(String::new(), |o| format!(" ({o})"));
    out::line(&format!("  because    {why}{outcome}"))?;
    let attempts =
        if held.attempts > 0 { format!(", {} attempts", thousands(held.attempts.into())) } else { String::new() };
    out::line(&format!("  since      {}{attempts}", held.since))?;
    let next = held.next_try.as_deref().unwrap_or("when the crawl is started again");
    out::line(&format!("  next try   {next}"))
}

fn tell(story: &Story) -> Result<()> {
    out::line(&story.url)?;
    let seed = if story.seed { ", a seed" } else { "" };
    out::line(&format!("  state      {}{seed}", story.state))?;
    if let Some(held) = &story.held {
        tell_held(held)?;
    }
    if let Some(Learned { number, rule }) = &story.rule {
        out::line(&format!("  because    rule {number}: {rule}"))?;
        out::line(&format!("             (`rhumb traps DIR` shows why, `--undo {number}` fetches it after all)"))?;
    }
    if story.links_to_it > 0 {
        let times = if story.links_to_it == 1 { "time" } else { "times" };
        out::line(&format!("  linked     {} {times}, first from", thousands(story.links_to_it)))?;
    }
    for r in &story.found_on {
        let because = r.because.as_ref().map_or(String::new(), |why| format!("  (not followed: {why})"));
        out::line(&format!("    {}  {:?}{because}", r.url, r.text))?;
    }
    for e in &story.events {
        let status = if e.status == 0 { String::new() } else { format!(" {}", e.status) };
        let again = if e.will_retry { ", to be tried again" } else { "" };
        out::line(&format!("  {}  {}{status}{again}", e.at, e.outcome))?;
        let row = |label: &str, text: &str| match text {
            "" => Ok(()),
            text => out::line(&format!("    {label:<9}  {text}")),
        };
        row("because", &e.detail)?;
        if e.status != 0 {
            row("body", &format!("{} bytes in {} ms", thousands(e.bytes), e.milliseconds))?;
        }
        row("title", &e.title)?;
        if e.links > 0 {
            row("links", &thousands(e.links as u64))?;
        }
        for Asked { directive, channel, after } in &e.robots {
            let after = after.as_ref().map_or(String::new(), |at| format!(" {at}"));
            row("robots", &format!("{directive}{after}, by {channel}"))?;
        }
        row("canonical", e.canonical.as_deref().unwrap_or_default())?;
        row("language", e.language.as_deref().unwrap_or_default())?;
        if let Some(Said { lastmod, changefreq, priority }) = &e.sitemap {
            let parts = [
                lastmod.as_ref().map(|at| format!("changed {at}")),
                changefreq.map(|f| format!("changes {f}")),
                priority.map(|p| format!("priority {p}")),
            ];
            row("sitemap", &parts.into_iter().flatten().collect::<Vec<_>>().join(", "))?;
        }
        row("archived", e.archived_at.as_deref().unwrap_or_default())?;
        row("same as", e.duplicate_of.as_deref().unwrap_or_default())?;
    }
    if let Some(NearDuplicate { of, similarity, exact }) = &story.near_duplicate_of {
        let how = if *exact { "the same words".to_string() } else { format!("similarity {similarity:.2}") };
        out::line(&format!("  duplicate of {of} ({how})"))?;
    }
    if story.state == "unknown" {
        out::line("  No page that was visited links to it, and it is not a seed.")?;
    }
    Ok(())
}
