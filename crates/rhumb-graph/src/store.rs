//! A graph that grows: levels on disk, and the newest links in memory.
//!
//! Pages come in the order of the log ([`Graph::page`], [`Graph::link`], [`Graph::advance`]). Whoever only asks keeps what the levels do not have
//! yet in memory; the one who writes (a crawl, or nobody) turns it into a level when it has grown large ([`Graph::flush`]) and merges levels
//! of like weight ([`Graph::merge`]), so that each link is written a few times at most and there are never many levels.
//! Levels never change, and the list of them is replaced as a whole: readers in other processes see the old graph or
//! the new one. The invariant: of each page exactly one visit counts, the newest, and its links count in both directions or
//! in none. [`crate::query`] asks.

use std::sync::Arc;

use rhumb_store::disk::Disk;
use rhumb_store::log::{self, Position};
use rhumb_store::{Result, StoreError};

use crate::GraphError;
use crate::algo::ranks::Ranks;
use crate::code::{Coded, Effort};
use crate::delta::Delta;
use crate::level::{DIR, Level, LevelWriter, file_name};
use crate::manifest::{self, Manifest};
use crate::merge::{Part, merge};
use crate::nodes::{Bits, Nodes};
use crate::rows::{Node, Rows};
use crate::urls::Urls;

/// Levels of like weight that are merged at a time. More would make queries dearer, fewer would write each link more often.
const FAN: usize = 4;
/// Of a level with a larger share of pages that were visited again, the rest is written anew.
const DEAD_SHARE_MAX: f64 = 0.3;

/// Tells URLs apart, as the whole crawl does.
pub type FingerprintOf = fn(&str) -> u64;

/// A graph that grows.
pub struct Graph {
    disk: Arc<dyn Disk>,
    /// The levels, the oldest first.
    pub(crate) parts: Vec<Part>,
    pub(crate) delta: Delta,
    pub(crate) fingerprint: FingerprintOf,
    named: bool,
    position: Position,
    last: Option<(Position, u32)>,
    next: u32,
    key: Vec<u8>,
}

impl Graph {
    /// The graph on this disk; an empty one if there is none yet, or none that fits the log.
    pub fn open(disk: Arc<dyn Disk>, fingerprint: FingerprintOf) -> Result<Graph> {
        let manifest = Manifest::load(&*disk)?.filter(|m| fits_log(&*disk, m));
        match manifest {
            Some(manifest) => Graph::of(disk, fingerprint, manifest, &[]),
            None => Graph::of(disk, fingerprint, Manifest::of_nothing(), &[]),
        }
    }

    /// An empty graph for whoever writes it anew, whatever is on this disk; that stays until something is written.
    pub fn anew(disk: Arc<dyn Disk>, fingerprint: FingerprintOf) -> Result<Graph> {
        let nothing = Graph::of(disk, fingerprint, Manifest::of_nothing(), &[])?;
        Ok(Graph { delta: Delta::only_written(), ..nothing })
    }

    /// The same for whoever only writes it, and asks nothing of what is in memory alone.
    pub fn open_to_write(disk: Arc<dyn Disk>, fingerprint: FingerprintOf) -> Result<Graph> {
        Ok(Graph { delta: Delta::only_written(), ..Graph::open(disk, fingerprint)? })
    }

    fn of(disk: Arc<dyn Disk>, fingerprint: FingerprintOf, manifest: Manifest, known: &[Part]) -> Result<Graph> {
        let mut parts = Vec::new();
        for (number, dead) in manifest.levels {
            let known = known.iter().find(|p| p.level.number == number);
            let level = match known {
                Some(part) => part.level.clone(),
                None => Arc::new(Level::open(&*disk, number, manifest.named)?),
            };
            parts.push(Part { dead: bits_of(&level, &dead)?, level });
        }
        Ok(Graph {
            disk,
            parts,
            delta: Delta::default(),
            fingerprint,
            named: manifest.named,
            position: manifest.position,
            last: manifest.last,
            next: manifest.next,
            key: Vec::new(),
        })
    }

    /// The graph as its list says it is now, if that is another one than this began with; levels that stayed are not read again.
    /// What was only in memory here is for the caller to read once more from the log.
    pub fn renewed(&self) -> Result<Option<Graph>> {
        let Some(manifest) = Manifest::load(&*self.disk)? else { return Ok(None) };
        if manifest.next == self.next || !fits_log(&*self.disk, &manifest) {
            return Ok(None);
        }
        Graph::of(self.disk.clone(), self.fingerprint, manifest, &self.parts).map(Some)
    }

    /// Whether its nodes have URLs.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// How far the log was read.
    pub fn position(&self) -> Position {
        self.position
    }

    /// A page was visited, at `place` of the log: its links follow, and replace those it had. False if its URL is none.
    pub fn page(&mut self, url: &str, place: u64) -> bool {
        let fingerprint = (self.fingerprint)(url);
        if !self.delta.page(fingerprint, url, place) {
            return false;
        }
        if !self.parts.is_empty() {
            self.key.clear();
            crate::key::put_key(url, &mut self.key);
            for part in &mut self.parts {
                if let Some(node) = part.level.find_page(&self.key) {
                    part.dead.insert(node);
                }
            }
        }
        true
    }

    /// A link of the page that came last.
    pub fn link(&mut self, url: &str) {
        self.delta.link((self.fingerprint)(url), url);
    }

    /// The log was read up to here; `last` is the record before, and a checksum of it.
    pub fn advance(&mut self, position: Position, last: (Position, u32)) {
        (self.position, self.last) = (position, Some(last));
    }

    /// Bytes of memory in use for the newest links.
    pub fn memory_bytes(&self) -> usize {
        self.delta.memory_bytes()
    }

    /// Whether nothing more fits into memory, whatever its bound.
    pub fn is_full(&self) -> bool {
        self.delta.is_full()
    }

    /// Links in memory alone.
    pub fn arcs_in_memory(&self) -> u64 {
        self.delta.arcs()
    }

    /// All links that count.
    pub fn arcs(&self) -> u64 {
        let dead = |p: &Part| p.dead.iter().map(|n| u64::from(p.level.out.degree(n))).sum::<u64>();
        self.parts.iter().map(|p| p.level.out.arcs().saturating_sub(dead(p))).sum::<u64>() + self.delta.arcs()
    }

    /// Pages whose links are known.
    pub fn pages(&self) -> u64 {
        self.parts.iter().map(|p| p.level.nodes.pages() - p.dead.len()).sum::<u64>() + self.delta.pages().count() as u64
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.parts.len()
    }

    /// The number under which a level lies on disk; `None` for what is in memory.
    pub fn level_number(&self, level: u32) -> Option<u32> {
        self.parts.get(level as usize).map(|p| p.level.number)
    }

    /// The level with the most in it.
    pub fn largest_level(&self) -> Option<&Arc<Level>> {
        self.parts.iter().map(|p| &p.level).max_by_key(|level| level.weight())
    }

    /// The one level that is the whole graph, if there is nothing else.
    pub fn whole(&self) -> Option<&Arc<Level>> {
        match self.parts.as_slice() {
            [part] if part.dead.is_empty() && self.delta.is_empty() => Some(&part.level),
            _ => None,
        }
    }

    /// Writes what is in memory as a level, and puts it in force.
    pub fn flush(&mut self, effort: Effort) -> Result<()> {
        if !self.delta.is_empty() {
            let written = write_delta(&self.disk, &self.delta, self.next, effort);
            let level = self.or_removed(written)?;
            self.next += 1;
            self.parts.push(Part { level: Arc::new(level), dead: Bits::default() });
            self.delta = self.delta.emptied();
        }
        self.save()
    }

    /// Merges levels if there are many of like weight; true if there may be more to do. Nothing may be in memory alone.
    pub fn merge(&mut self, effort: Effort) -> Result<bool> {
        let Some(from) = self.due() else { return Ok(false) };
        self.merge_from(from, effort)?;
        Ok(true)
    }

    /// Makes everything one level.
    pub fn settle(&mut self, effort: Effort) -> Result<()> {
        // With nothing on disk yet, what is in memory is the whole.
        self.flush(if self.parts.is_empty() { effort } else { Effort::Fast })?;
        if self.whole().is_none() && !self.parts.is_empty() {
            self.merge_from(0, effort)?;
        }
        Ok(())
    }

    /// The whole graph as one level on another disk, which this one leaves alone.
    pub fn copy_whole(&self, scratch: &Arc<dyn Disk>) -> Result<Level> {
        let mut parts = self.parts.clone();
        if !self.delta.is_empty() {
            let level = write_delta(scratch, &self.delta, 1, Effort::Fast)?;
            parts.push(Part { level: Arc::new(level), dead: Bits::default() });
        }
        merge(scratch, &parts, 2, Effort::Fast)
    }

    /// The first level of those to be merged.
    fn due(&self) -> Option<usize> {
        let dead = |p: &Part| p.dead.len() as f64 > DEAD_SHARE_MAX * p.level.nodes.pages() as f64;
        if let Some(at) = self.parts.iter().position(dead) {
            return Some(at);
        }
        // From the newest: as many as are of the class of the heaviest among them.
        let class = |p: &Part| p.level.weight().max(1).ilog(FAN as u64);
        let mut of_class = 0;
        let mut heaviest = 0;
        for (at, part) in self.parts.iter().enumerate().rev() {
            let own = class(part);
            if own > heaviest {
                (heaviest, of_class) = (own, 0);
            }
            of_class += 1;
            if of_class >= FAN {
                return Some(at);
            }
        }
        None
    }

    fn merge_from(&mut self, from: usize, effort: Effort) -> Result<()> {
        assert!(self.delta.is_empty(), "pages in memory may make more of a level void");
        let merged = merge(&self.disk, &self.parts[from..], self.next, effort);
        let merged = self.or_removed(merged)?;
        self.next += 1;
        self.parts.truncate(from);
        self.parts.push(Part { level: Arc::new(merged), dead: Bits::default() });
        self.save()
    }

    /// The next level; if it could not be written, what there is of it does not take up space that may be what is missing.
    fn or_removed(&self, written: Result<Level>) -> Result<Level> {
        if written.is_err() {
            let begun = format!("{:06}", self.next);
            for name in self.disk.list(DIR).unwrap_or_default().iter().filter(|name| name.starts_with(&begun)) {
                let _ = self.disk.remove(&format!("{DIR}/{name}"));
            }
        }
        written
    }

    fn save(&self) -> Result<()> {
        let levels = self.parts.iter().map(|p| (p.level.number, p.dead.iter().collect())).collect();
        let (named, position, last, next) = (self.named, self.position, self.last, self.next);
        Manifest { named, position, last, next, levels }.save(&*self.disk)
    }
}

/// Whether the log still says what the graph was made from. After a power loss it may not.
fn fits_log(disk: &dyn Disk, manifest: &Manifest) -> bool {
    let Some((place, checksum)) = manifest.last else { return true };
    matches!(log::record_at(disk, place), Ok(Some((_, payload))) if rhumb_store::codec::crc32(&payload) == checksum)
}

/// Writes the newest links as a level.
fn write_delta(disk: &Arc<dyn Disk>, delta: &Delta, number: u32, effort: Effort) -> Result<Level> {
    let sorted = delta.sorted();
    let mut writer = LevelWriter::create(disk.clone(), number, true, delta.pages().count() as u64, effort)?;
    for &node in &sorted.order {
        writer.node(delta.key(node), delta.place(node))?;
    }
    let mut written: Result<()> = writer.begin_rows();
    let mut push = |row: &[u32]| {
        if written.is_ok() {
            written = writer.row(row);
        }
    };
    sorted.rows.scan_all(&mut |_, row| push(row));
    written?;
    writer.begin_transposed()?;
    let mut written: Result<()> = Ok(());
    sorted.rows.transposed().scan_all(&mut |_, row| {
        if written.is_ok() {
            written = writer.row(row);
        }
    });
    written?;
    writer.finish()
}

/// Pages of a level as a set; they must be there.
fn bits_of(level: &Level, pages: &[Node]) -> Result<Bits> {
    let mut bits = Bits::default();
    for &page in pages {
        if !level.nodes.is_page(page) {
            return Err(StoreError::corrupt(manifest::NAME, 16, "it speaks of pages that a level does not have"));
        }
        bits.insert(page);
    }
    Ok(bits)
}

/// Opens every file that belongs to the graph on this disk: what is wrong with each that is damaged. Nothing if there is no graph.
pub fn verify(disk: &dyn Disk) -> Result<Vec<StoreError>> {
    let manifest = match Manifest::load(disk) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Ok(Vec::new()),
        Err(e) => return Ok(vec![e]),
    };
    let mut damage = Vec::new();
    for (number, dead) in &manifest.levels {
        let sound = damage.len();
        let file = |ending: &str| file_name(*number, ending);
        if manifest.named {
            damage.extend(Urls::open(disk, &file("urls")).err());
        }
        damage.extend(Nodes::open(disk, &file("nodes")).err());
        damage.extend(Coded::open(disk, &file("out")).err());
        damage.extend(Coded::open(disk, &file("in")).err());
        if damage.len() == sound {
            // Each is whole; whether they belong together is another question.
            let level = Level::open(disk, *number, manifest.named);
            damage.extend(level.and_then(|level| bits_of(&level, dead)).err());
        }
    }
    for name in disk.list(DIR)?.into_iter().filter(|name| name.ends_with(".rank")) {
        if let Err(GraphError::Store(e)) = Ranks::open(disk, &format!("{DIR}/{name}")) {
            damage.push(e);
        }
    }
    Ok(damage)
}

/// Bytes of all files of the graph on this disk, if there is one: what [`verify`] reads.
pub fn bytes(disk: &dyn Disk) -> Result<u64> {
    if !disk.exists(manifest::NAME) {
        return Ok(0);
    }
    disk.list(DIR)?.iter().map(|name| disk.open(&format!("{DIR}/{name}"))?.len()).sum()
}

/// Forgets the graph on this disk. The caller holds its lock, which stays.
pub fn discard(disk: &dyn Disk) -> Result<(), StoreError> {
    disk.remove(manifest::NAME)?;
    for name in disk.list(DIR)?.into_iter().filter(|name| name != "lock") {
        disk.remove(&format!("{DIR}/{name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use rhumb_store::disk::{Overlay, RealDisk};
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::key::key_of;
    use crate::query::Way;

    fn hash(url: &str) -> u64 {
        xxh3_64(url.as_bytes())
    }

    fn url(n: u8) -> String {
        format!("https://h{}.example/{}", n % 5, n)
    }

    /// Every page's links and every URL's pages, as anybody would keep them.
    type Model = BTreeMap<u8, BTreeSet<u8>>;

    fn visit(graph: &mut Graph, model: &mut Model, page: u8, links: &[u8], place: u64) {
        assert!(graph.page(&url(page), place));
        links.iter().for_each(|&to| graph.link(&url(to)));
        model.insert(page, links.iter().copied().collect());
    }

    fn listed(graph: &Graph, of: u8, way: Way, step: usize) -> Vec<String> {
        let Some(standing) = graph.find(&url(of)) else { return Vec::new() };
        let neighbours = graph.neighbours(&standing, way);
        assert_eq!(graph.degree(&standing, way), neighbours.len() as u64);
        let mut all = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let (found, more) = neighbours.after(after.as_deref(), step);
            all.extend(found.iter().map(|(place, _)| graph.url(*place)));
            after = found.last().map(|(_, key)| key.clone());
            if !more {
                assert_eq!(all.len(), neighbours.len());
                return all;
            }
        }
    }

    fn sorted(urls: impl Iterator<Item = u8>) -> Vec<String> {
        let mut urls: Vec<String> = urls.map(url).collect();
        urls.sort_by_key(|u| key_of(u));
        urls
    }

    fn check(graph: &Graph, model: &Model) {
        for n in 0..=255 {
            let empty = BTreeSet::new();
            let out = model.get(&n).unwrap_or(&empty);
            assert_eq!(listed(graph, n, Way::Out, 3), sorted(out.iter().copied()), "from {n}");
            let into = model.iter().filter(|(_, links)| links.contains(&n)).map(|(page, _)| *page);
            assert_eq!(listed(graph, n, Way::In, 2), sorted(into), "to {n}");
        }
        assert_eq!(graph.arcs(), model.values().map(|links| links.len() as u64).sum::<u64>());
        assert_eq!(graph.pages(), model.len() as u64);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Visit(u8, Vec<u8>),
        Flush,
        Merge,
        Settle,
        Reopen,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (any::<u8>(), prop::collection::vec(any::<u8>(), 0..12)).prop_map(|(p, l)| Step::Visit(p, l)),
            3 => Just(Step::Flush),
            1 => Just(Step::Merge),
            1 => Just(Step::Settle),
            1 => Just(Step::Reopen),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn whatever_was_flushed_and_merged_the_newest_visits_count(steps in prop::collection::vec(step(), 1..60)) {
            let dir = tempfile::tempdir().expect("a directory");
            // In memory: what is tested is not whether it reaches the disk.
            let disk = Overlay::new(RealDisk::new(dir.path()));
            let mut graph = Graph::open(disk.clone(), hash).expect("opened");
            let mut model = Model::new();
            for (i, step) in steps.iter().enumerate() {
                match step {
                    Step::Visit(page, links) => visit(&mut graph, &mut model, *page, links, i as u64 + 1),
                    Step::Flush => graph.flush(Effort::Fast).expect("flushed"),
                    Step::Merge => {
                        graph.flush(Effort::Fast).expect("flushed");
                        while graph.merge(Effort::Fast).expect("merged") {}
                    }
                    Step::Settle => graph.settle(Effort::Best).expect("settled"),
                    Step::Reopen => {
                        graph.flush(Effort::Fast).expect("flushed");
                        graph = Graph::open(disk.clone(), hash).expect("opened");
                    }
                }
            }
            check(&graph, &model);
            let scratch = tempfile::tempdir().expect("a directory");
            if !model.is_empty() {
                let whole = graph.copy_whole(&Overlay::new(RealDisk::new(scratch.path()))).expect("copied");
                prop_assert_eq!(whole.out.arcs(), graph.arcs());
            }
            graph.settle(Effort::Best).expect("settled");
            check(&graph, &model);

            // Whoever only writes comes to the same.
            let disk = Overlay::new(RealDisk::new(scratch.path()));
            discard(&*disk).expect("discarded");
            let mut graph = Graph::open_to_write(disk.clone(), hash).expect("opened");
            let mut model = Model::new();
            for (i, step) in steps.iter().enumerate() {
                match step {
                    Step::Visit(page, links) => visit(&mut graph, &mut model, *page, links, i as u64 + 1),
                    Step::Flush | Step::Reopen => graph.flush(Effort::Fast).expect("flushed"),
                    Step::Merge | Step::Settle => graph.settle(Effort::Fast).expect("settled"),
                }
            }
            prop_assert_eq!(graph.arcs(), model.values().map(|links| links.len() as u64).sum::<u64>());
            graph.flush(Effort::Fast).expect("flushed");
            check(&Graph::open(disk, hash).expect("opened"), &model);
        }
    }

    #[test]
    fn many_flushes_leave_few_levels_and_no_rubbish() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = Overlay::new(RealDisk::new(dir.path()));
        let mut graph = Graph::open(disk.clone(), hash).expect("opened");
        let mut model = Model::new();
        for n in 0..=255u8 {
            visit(&mut graph, &mut model, n, &[n.wrapping_mul(7), n.wrapping_add(1)], u64::from(n) + 1);
            graph.flush(Effort::Fast).expect("flushed");
            while graph.merge(Effort::Fast).expect("merged") {}
            assert!(graph.levels() <= 16, "{} levels", graph.levels());
        }
        check(&graph, &model);
        let files = disk.list(DIR).expect("listed");
        assert_eq!(files.len(), graph.levels() * 4 + 1, "{files:?}");
    }

    #[test]
    fn ranks_go_with_their_pages_when_levels_are_merged() {
        use crate::algo::ranks::{self, Ranks};
        let dir = tempfile::tempdir().expect("a directory");
        let disk = Overlay::new(RealDisk::new(dir.path()));
        let mut graph = Graph::open(disk.clone(), hash).expect("opened");
        let mut model = Model::new();
        visit(&mut graph, &mut model, 10, &[20, 30], 1);
        graph.settle(Effort::Best).expect("settled");
        let level = graph.whole().expect("one level").clone();
        let node = |level: &Level, n: u8| level.find(&key_of(&url(n)).expect("a key")).expect("known");
        let mut values = vec![0.1; 3];
        values[node(&level, 20) as usize] = 0.7;
        ranks::write(&*disk, &ranks::file_name(level.number, "pagerank"), "pagerank", "p", &values).expect("written");
        visit(&mut graph, &mut model, 5, &[20, 15], 2);
        graph.settle(Effort::Best).expect("settled");
        let level = graph.whole().expect("one level").clone();
        let ranks = Ranks::open(&*disk, &ranks::file_name(level.number, "pagerank")).expect("carried");
        assert_eq!((ranks.get(node(&level, 20)), ranks.get(node(&level, 5))), (Some(0.7), Some(0.1)));
        assert_eq!((ranks.nodes(), ranks.parameters()), (5, "p"));
    }

    /// After a power loss the log may end earlier, or go on otherwise: then the graph begins anew.
    #[test]
    fn a_graph_of_another_log_is_not_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        let mut log = log::Log::open(disk.clone(), Position::default(), 1 << 20).expect("a log");
        let place = log.position();
        log.append(4, |into| into.extend_from_slice(b"a visit"));
        log.commit().expect("written");
        let mut graph = Graph::open(disk.clone(), hash).expect("opened");
        graph.page(&url(1), 1);
        graph.advance(log.position(), (place, rhumb_store::codec::crc32(b"a visit")));
        graph.flush(Effort::Fast).expect("flushed");
        assert_eq!(Graph::open(disk.clone(), hash).expect("opened").pages(), 1);
        drop(log);
        log::cut(&*disk, place).expect("cut");
        let again = Graph::open(disk.clone(), hash).expect("opened");
        assert_eq!((again.pages(), again.position()), (0, Position::START));
    }

    #[test]
    fn every_damaged_file_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        assert!(verify(&*disk).expect("no graph").is_empty());
        let mut graph = Graph::open(disk.clone(), hash).expect("opened");
        let mut model = Model::new();
        (0..60).for_each(|n| visit(&mut graph, &mut model, n, &[n / 2, n + 1], 1));
        graph.flush(Effort::Fast).expect("flushed");
        visit(&mut graph, &mut model, 3, &[9], 2);
        graph.flush(Effort::Fast).expect("flushed");
        let ranks = file_name(0, "pagerank.rank");
        crate::algo::ranks::write(&*disk, &ranks, "pagerank", "", &[1.0; 70]).expect("written");
        assert!(verify(&*disk).expect("listed").is_empty());

        let files = disk.list(DIR).expect("listed");
        assert_eq!(files.len(), 10, "{files:?}");
        for name in files.iter().map(|name| format!("{DIR}/{name}")) {
            let whole = disk.read(&name).expect("read");
            let mut flipped = whole.clone();
            flipped[whole.len() / 2] ^= 4;
            disk.replace(&name, &flipped).expect("written");
            let damage = verify(&*disk).expect("listed");
            assert!(damage.len() == 1 && damage[0].to_string().contains(&name), "{name}: {damage:?}");
            disk.remove(&name).expect("removed");
            let missing = verify(&*disk).expect("listed");
            // Without the list there is no graph, and ranks that nobody computed are not missed.
            let missed = name != manifest::NAME && name != ranks;
            assert_eq!(missing.len(), usize::from(missed), "{name}: {missing:?}");
            disk.replace(&name, &whole).expect("written");
        }

        // Of another graph: whole, but not of this one.
        let list = Manifest::load(&*disk).expect("read").expect("a list");
        let dead = vec![(0, vec![3, 5000]), list.levels[1].clone()];
        Manifest { levels: dead, ..list }.save(&*disk).expect("saved");
        assert!(verify(&*disk).expect("listed")[0].to_string().contains(manifest::NAME));
        assert!(Graph::open(disk.clone(), hash).is_err());

        disk.replace("graph/lock", b"1").expect("written");
        discard(&*disk).expect("discarded");
        assert_eq!(disk.list(DIR).expect("listed"), ["lock"], "whoever discards holds the lock");
    }
}
