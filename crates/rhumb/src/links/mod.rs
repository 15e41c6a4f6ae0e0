//! The link graph of a crawl directory: opening it, keeping up with the log, asking it.
//!
//! The graph is a fold over the visit log ([`follow`]). A crawl keeps it on disk while it runs ([`keeper`]); whoever asks opens what is on
//! disk and reads the rest of the log into memory, so that an answer is as new as the log, whoever wrote it. [`answer`] says what can be
//! asked; [`around`] has the questions that look further than one page.

pub mod answer;
mod around;
pub mod follow;
pub mod keeper;
pub mod whole;

use std::path::Path;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use anyhow::{Result, bail};
use rhumb_core::record::Skimmed;
use rhumb_core::seen::PageRef;
use rhumb_core::url::Normalizer;
use rhumb_graph::GraphError;
use rhumb_graph::algo::ranks::{self, MEASURES, Ranks};
use rhumb_graph::key::key_of;
use rhumb_graph::query::{Place, Standing, Way};
use rhumb_graph::store::Graph;
use rhumb_store::disk::{DirLock, Disk, RealDisk};
use rhumb_store::log::{self, Position};
use rhumb_store::{StoreError, Timestamp};

use crate::commands::with_advice;
use crate::{config, usage};
use answer::{Anchor, Direction, Link, LinksAnswer, PageAnswer, RankOf};
use follow::Reached;

/// Links that are only in memory take so much of it at most in a process that only asks.
const MEMORY_MAX: usize = 512 << 20;
/// A log that has so much more than the graph is worth writing it down.
const WORTH_WRITING_BYTES: u64 = 16 << 20;

/// The link graph of a directory, as new as its log.
pub struct Links {
    disk: Arc<dyn Disk>,
    graph: RwLock<Graph>,
    /// Whether it is a crawl's, and grows with its log.
    has_log: bool,
    dir: std::path::PathBuf,
    normalizer: Normalizer,
}

impl Links {
    /// Opens the graph in `dir`, a crawl directory or what `rhumb graph build` made.
    pub fn open(dir: &Path) -> Result<Links> {
        if !dir.is_dir() {
            return Err(usage(format!("there is no directory {}", dir.display())));
        }
        let (has_log, normalizer) = match config::Config::of_directory(dir)? {
            Some(config) => {
                config.use_key();
                let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
                (true, Normalizer::new(&settings.normalize))
            }
            None if dir.join(rhumb_graph::manifest::NAME).is_file() => (false, Normalizer::default()),
            None => {
                let what = "is neither a crawl directory nor one that `rhumb graph build` made";
                return Err(usage(format!("{} {what}", dir.display())));
            }
        };
        let disk = RealDisk::new(dir);
        let graph = opened(dir, &disk)?;
        let links = Links { disk, graph: RwLock::new(graph), has_log, dir: dir.to_path_buf(), normalizer };
        links.catch_up()?;
        Ok(links)
    }

    /// Takes in all of the log, which may be much, and writes it down if it is.
    fn catch_up(&self) -> Result<()> {
        if !self.has_log {
            return Ok(());
        }
        let mut graph = self.graph.write().expect("nobody panics with the graph in hand");
        let behind = bytes_behind(&*self.disk, graph.position())?;
        if behind > WORTH_WRITING_BYTES
            && !DirLock::is_held(&self.dir)
            && let Ok(_lock) = follow::lock(&self.dir)
        {
            follow::build(&mut graph, &self.disk, MEMORY_MAX / 4, None).map_err(|e| with_advice(e, &self.dir))?;
        }
        let reached = follow::follow(&mut graph, &self.disk, MEMORY_MAX).map_err(|e| with_advice(e, &self.dir))?;
        if reached == Reached::Full {
            let dir = crate::out::shell(&self.dir);
            bail!("the graph is too far behind the log to be asked now; make it with: rhumb graph build {dir}");
        }
        Ok(())
    }

    /// Takes in what the log has got since. Cheap if that is little.
    pub fn keep_up(&self) -> Result<()> {
        if !self.has_log {
            return Ok(());
        }
        let renewed = self.read().renewed();
        match renewed {
            Ok(Some(mut newer)) => {
                follow::follow(&mut newer, &self.disk, MEMORY_MAX)?;
                *self.graph.write().expect("nobody panics with the graph in hand") = newer;
            }
            // A level was merged away between the list and the file: next time the list is another.
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e.into()),
            Ok(None) => {}
        }
        if bytes_behind(&*self.disk, self.read().position())? > 0 {
            let mut graph = self.graph.write().expect("nobody panics with the graph in hand");
            follow::follow(&mut graph, &self.disk, MEMORY_MAX)?;
        }
        Ok(())
    }

    /// The graph itself.
    pub fn read(&self) -> RwLockReadGuard<'_, Graph> {
        self.graph.read().expect("nobody panics with the graph in hand")
    }

    /// The URL that was typed, as the graph has it; what has no scheme is tried with both.
    pub fn canonical(&self, typed: &str) -> Result<String> {
        if !self.read().is_named() {
            let number: rhumb_graph::Node = typed
                .trim()
                .parse()
                .map_err(|_| usage(format!("{typed:?} is not the number of a node, and this graph has no URLs")))?;
            return Ok(number.to_string());
        }
        let read = |text: &str| self.normalizer.normalize(text, None);
        if typed.contains("://") || typed.starts_with("file:") {
            let url = read(typed).map_err(|e| usage(format!("{typed:?} is not a URL: {e}")))?;
            return Ok(url.as_str().to_string());
        }
        let tries = ["https://", "http://"].map(|scheme| read(&format!("{scheme}{typed}")));
        let known = tries.iter().flatten().find(|url| self.read().find(url.as_str()).is_some());
        let url = known.or(tries.iter().flatten().next()).ok_or_else(|| usage(format!("{typed:?} is not a URL")))?;
        Ok(url.as_str().to_string())
    }

    /// The directory's files.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Some links of a page; `None` if the graph does not know it. `cursor` is the `next` of an earlier answer.
    pub fn links(
        &self,
        url: &str,
        direction: Direction,
        anchors: bool,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<LinksAnswer>> {
        let graph = self.read();
        let after = match cursor {
            None => None,
            Some(cursor) => Some(graph.key_of(cursor).ok_or_else(|| usage(format!("{cursor:?} is not a cursor")))?),
        };
        let Some(standing) = graph.find(url) else { return Ok(None) };
        let way = if direction == Direction::To { Way::In } else { Way::Out };
        let neighbours = graph.neighbours(&standing, way);
        let (found, more) = neighbours.after(after.as_deref(), limit);
        let mut links: Vec<Link> = Vec::with_capacity(found.len());
        for (place, key) in &found {
            let url = graph.url_of(key);
            let fetched = match way {
                Way::In => true,
                Way::Out => self.is_fetched(&graph, *place),
            };
            links.push(Link { url, fetched, anchors: None });
        }
        if anchors && way == Way::In {
            for (link, (place, _)) in links.iter_mut().zip(&found) {
                link.anchors = Some(self.anchors(graph.visit(*place), |to| to == url));
            }
        } else if anchors {
            let mut texts = std::collections::HashMap::<String, Vec<Anchor>>::new();
            if let Some(visit) = standing.page.and_then(|p| graph.visit(p)) {
                self.each_link(visit, |to, anchor| texts.entry(to.to_string()).or_default().push(anchor));
            }
            for link in &mut links {
                link.anchors = Some(texts.remove(&link.url).unwrap_or_default());
            }
        }
        let next = if more { links.last().map(|l| l.url.clone()) } else { None };
        Ok(Some(LinksAnswer { url: url.to_string(), direction, total: neighbours.len() as u64, links, next }))
    }

    fn is_fetched(&self, graph: &Graph, place: Place) -> bool {
        graph
            .standing_of(place)
            .page
            .and_then(|p| graph.visit(p))
            .is_some_and(|visit| visit != follow::GONE || !self.has_log)
    }

    /// What is known of a page.
    pub fn page(&self, url: &str) -> Result<Option<PageAnswer>> {
        let graph = self.read();
        let Some(standing) = graph.find(url) else { return Ok(None) };
        let visit = standing.page.and_then(|p| graph.visit(p));
        let (mut title, mut fetched_at) = (None, None);
        if let Some((_, payload)) = visit.and_then(|v| self.record(v))
            && let Ok(visit) = Skimmed::read(&payload)
        {
            title = Some(visit.title.to_string()).filter(|t| !t.is_empty());
            fetched_at = Some(Timestamp::to_string(&visit.ended));
        }
        Ok(Some(PageAnswer {
            url: url.to_string(),
            host: rhumb_graph::key::host_name(rhumb_graph::key::host_part(&key_of(url).unwrap_or_default()))
                .unwrap_or_default(),
            fetched: visit.is_some_and(|v| v != follow::GONE || !self.has_log),
            title,
            fetched_at,
            links_in: graph.degree(&standing, Way::In),
            links_out: graph.degree(&standing, Way::Out),
            ranks: self.ranks(&graph, &standing)?,
        }))
    }

    fn ranks(&self, graph: &Graph, standing: &Standing) -> Result<Vec<RankOf>> {
        let mut ranks = Vec::new();
        for place in &standing.places {
            for measure in MEASURES {
                let Some(rank) = self.rank_file(graph, place.level, measure)? else { continue };
                let Some((value, percentile)) = rank.get(place.node).zip(rank.percentile(place.node)) else { continue };
                ranks.push(RankOf { measure: measure.to_string(), value: f64::from(value), percentile });
            }
        }
        Ok(ranks)
    }

    /// The ranks of a level by a measure, if they were computed.
    fn rank_file(&self, graph: &Graph, level: u32, measure: &str) -> Result<Option<Ranks>> {
        let Some(number) = graph.level_number(level) else { return Ok(None) };
        let name = ranks::file_name(number, measure);
        if !self.disk.exists(&name) {
            return Ok(None);
        }
        Ranks::open(&*self.disk, &name).map(Some).map_err(|e| match e {
            GraphError::Store(e) => with_advice(e, &self.dir),
            other => other.into(),
        })
    }

    /// The texts of the links of a visit that lead to where `wanted` says.
    fn anchors(&self, visit: Option<u64>, wanted: impl Fn(&str) -> bool) -> Vec<Anchor> {
        let mut anchors = Vec::new();
        if let Some(visit) = visit {
            self.each_link(visit, |to, anchor| {
                if wanted(to) {
                    anchors.push(anchor);
                }
            });
        }
        anchors
    }

    /// All links of a visit, with their texts. A log that was cut since has none.
    fn each_link(&self, visit: u64, mut each: impl FnMut(&str, Anchor)) {
        let Some((_, payload)) = self.record(visit) else { return };
        let Ok(skimmed) = Skimmed::read(&payload) else { return };
        let _ = skimmed.links(&mut String::new(), |link| {
            if follow::is_link(link.kind) {
                each(
                    link.url,
                    Anchor { text: link.text.to_string(), kind: link.kind.name(), rel: link.rel.unvouched_names() },
                );
            }
        });
    }

    fn record(&self, visit: u64) -> Option<(u8, Vec<u8>)> {
        if visit == follow::GONE {
            return None;
        }
        log::record_at(&*self.disk, PageRef(visit).position()).ok().flatten()
    }
}

/// Opens the graph on disk; a second time if a level was merged away in between.
fn opened(dir: &Path, disk: &Arc<dyn Disk>) -> Result<Graph> {
    let mut opened = follow::open(disk.clone());
    for _ in 0..5 {
        match &opened {
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                opened = follow::open(disk.clone());
            }
            _ => break,
        }
    }
    opened.map_err(|e| with_advice(e, dir))
}

/// Bytes of the log behind a position.
pub fn bytes_behind(disk: &dyn Disk, position: Position) -> rhumb_store::Result<u64> {
    let mut bytes = 0;
    for segment in log::segments(disk)?.into_iter().filter(|s| *s >= position.segment) {
        let len = disk.open(&log::segment_name(segment))?.len()?;
        bytes += if segment == position.segment { len.saturating_sub(position.offset) } else { len };
    }
    Ok(bytes)
}
