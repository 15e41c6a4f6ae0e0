//! From the visit log to the link graph: which records count, and which of their links.

use std::path::Path;
use std::sync::Arc;

use rhumb_core::outcome::Outcome;
use rhumb_core::record::Skimmed;
use rhumb_core::seen::PageRef;
use rhumb_core::url::Fingerprint;
use rhumb_core::visit::LinkKind;
use rhumb_graph::code::Effort;
use rhumb_graph::level::DIR;
use rhumb_graph::store::Graph;
use rhumb_store::codec::{Malformed, crc32};
use rhumb_store::disk::{DirLock, Disk};
use rhumb_store::log::{LogReader, Position, segment_name};
use rhumb_store::{Result, StoreError};

/// The kind of a visit's record.
const VISITED: u8 = 4;

/// How far following got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The end of the log.
    End,
    /// The bound of memory.
    Full,
}

/// The fingerprint by which the crawl tells URLs apart.
pub fn fingerprint(url: &str) -> u64 {
    Fingerprint::of(url).0
}

/// Opens the graph of a crawl directory.
pub fn open(disk: Arc<dyn Disk>) -> Result<Graph> {
    Graph::open(disk, fingerprint)
}

/// The same for whoever only writes it.
pub fn open_to_write(disk: Arc<dyn Disk>) -> Result<Graph> {
    Graph::open_to_write(disk, fingerprint)
}

/// Reads the log from where the graph has got to, until its end or until so much memory is in use.
pub fn follow(graph: &mut Graph, disk: &Arc<dyn Disk>, memory_max: usize) -> Result<Reached> {
    let mut reader = LogReader::open(disk.clone(), graph.position())?;
    let mut url = String::new();
    let mut last: Option<(Position, u32)> = None;
    let reached = loop {
        if graph.memory_bytes() >= memory_max || graph.is_full() {
            break Reached::Full;
        }
        let place = reader.position();
        let Some((kind, payload)) = reader.next()? else { break Reached::End };
        if kind != VISITED {
            continue;
        }
        last = Some((place, crc32(payload)));
        let damaged = |Malformed(what)| StoreError::corrupt(&segment_name(place.segment), place.offset, what);
        let visit = Skimmed::read(payload).map_err(damaged)?;
        if visit.is_final_page {
            take(graph, &visit, place, &mut url).map_err(damaged)?;
        }
    };
    if let Some(last) = last {
        graph.advance(reader.position(), last);
    }
    Ok(reached)
}

/// Takes a visit into the graph, if it says something about links.
fn take(graph: &mut Graph, visit: &Skimmed<'_>, place: Position, url: &mut String) -> Result<(), Malformed> {
    match visit.outcome {
        Outcome::Ok | Outcome::Redirect => {
            let is_known = graph.page(visit.url.as_str(), PageRef::at(place).0);
            visit.links(url, |link| {
                if is_known && is_link(link.kind) {
                    graph.link(link.url);
                }
            })?;
        }
        // It was a page once, and its links went with it.
        Outcome::NotFound if graph.find(visit.url.as_str()).is_some_and(|s| s.page.is_some()) => {
            graph.page(visit.url.as_str(), GONE);
        }
        // What did not change, and what did not answer this time, has the links it had.
        _ => {}
    }
    Ok(())
}

/// The place of a page that is not there any more.
pub const GONE: u64 = 0;

/// Whether something leads from page to page, for a reader: images, scripts, `link` elements and lists of a site's pages do not.
pub fn is_link(kind: LinkKind) -> bool {
    use LinkKind::{A, Area, Entry, Frame, Iframe, Redirect, Refresh};
    matches!(kind, A | Area | Frame | Iframe | Refresh | Redirect | Entry)
}

/// Brings the graph on disk up to the log, and makes one level of it if `settle` says with how much effort. The caller holds the lock of
/// the graph.
pub fn build(graph: &mut Graph, disk: &Arc<dyn Disk>, memory_max: usize, settle: Option<Effort>) -> Result<()> {
    while follow(graph, disk, memory_max)? == Reached::Full {
        flush(graph)?;
    }
    match settle {
        Some(effort) => graph.settle(effort),
        None => flush(graph),
    }
}

/// Writes what is in memory, and merges what there is too much of.
pub fn flush(graph: &mut Graph) -> Result<()> {
    graph.flush(Effort::Fast)?;
    while graph.merge(Effort::Fast)? {}
    Ok(())
}

/// The lock of whoever writes the graph of a directory.
pub fn lock(dir: &Path) -> Result<DirLock> {
    let graph = dir.join(DIR);
    std::fs::create_dir_all(&graph).map_err(|e| StoreError::io("make directory", DIR, e))?;
    DirLock::take(&graph)
}

#[cfg(test)]
mod tests {
    use rhumb_core::record::Record;
    use rhumb_core::url::Url;
    use rhumb_core::visit::{Entry, Outlink, Purpose, VisitRecord};
    use rhumb_graph::query::Way;
    use rhumb_store::Timestamp;
    use rhumb_store::disk::{Overlay, RealDisk};
    use rhumb_store::log::Log;

    use super::*;

    fn visited(log: &mut Log, page: &str, outcome: Outcome, links: &[(&str, LinkKind)]) {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let (start, end) = (Timestamp(1), Timestamp(2));
        let mut visit = VisitRecord::bare(Entry::new(url(page), 0), Purpose::Page, start, end, outcome);
        visit.links = links.iter().map(|(to, kind)| Outlink::bare(url(to), *kind, true)).collect();
        let record = Record::Visited(Box::new(visit));
        log.append(record.kind(), |into| record.put(into));
        log.commit().expect("written");
    }

    /// Which links count, and which visits; with everything in memory, and with every visit a level of its own.
    #[test]
    fn the_newest_word_of_a_page_counts() {
        for memory_max in [usize::MAX, 1] {
            let dir = tempfile::tempdir().expect("a directory");
            let disk: Arc<dyn Disk> = Overlay::new(RealDisk::new(dir.path()));
            let mut log = Log::open(disk.clone(), Position::default(), 1 << 20).expect("a log");
            let (a, b, c) = ("http://a.example/", "http://b.example/", "http://c.example/");
            let mut graph = open(disk.clone()).expect("opened");
            let expect = |graph: &mut Graph, into_b: &[&str], out_of_a: &[&str]| {
                build(graph, &disk, memory_max, None).expect("built");
                let list = |url: &str, way: Way| -> Vec<String> {
                    let Some(standing) = graph.find(url) else { return Vec::new() };
                    let (found, _) = graph.neighbours(&standing, way).after(None, 10);
                    found.into_iter().map(|(place, _)| graph.url(place)).collect()
                };
                assert_eq!((list(b, Way::In), list(a, Way::Out)), (strings(into_b), strings(out_of_a)));
            };
            visited(&mut log, a, Outcome::Ok, &[(b, LinkKind::A), (b, LinkKind::Area), (c, LinkKind::Image)]);
            visited(&mut log, c, Outcome::Redirect, &[(b, LinkKind::Redirect)]);
            expect(&mut graph, &[a, c], &[b]);
            visited(&mut log, a, Outcome::NotModified, &[]);
            visited(&mut log, c, Outcome::ServerError, &[]);
            expect(&mut graph, &[a, c], &[b]);
            visited(&mut log, a, Outcome::Ok, &[(c, LinkKind::A), (a, LinkKind::A)]);
            expect(&mut graph, &[c], &[a, c]);
            visited(&mut log, c, Outcome::NotFound, &[]);
            visited(&mut log, "http://never.example/", Outcome::NotFound, &[]);
            expect(&mut graph, &[], &[a, c]);
            assert!(graph.find("http://never.example/").is_none());
            graph.settle(Effort::Fast).expect("settled");
            expect(&mut graph, &[], &[a, c]);
        }
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|t| t.to_string()).collect()
    }
}
