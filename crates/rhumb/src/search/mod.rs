//! The text index of a crawl directory: keeping it, asking it.
//!
//! The index is a fold over the visit log ([`fold`]). A crawl keeps it while it runs ([`keeper`]); whoever searches opens what is on disk.
//! Where nobody writes and something is left to do, after a crash or an interrupted crawl, that is done first: so what rests answers as
//! if it had been made anew from the log. [`answer`] says what can be asked.

pub mod answer;
mod copies;
pub mod fold;
pub mod keeper;
mod ranks;

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Instant;

use anyhow::Result;
use rhumb_core::url::{Fingerprint, Normalizer};
use rhumb_index::IndexError;
use rhumb_index::query::{Occur, Query, What};
use rhumb_index::search::{Outside, Ranking, Request, Snapshot};
use rhumb_store::Timestamp;
use rhumb_store::disk::{DirLock, Disk, RealDisk};

use crate::commands::with_advice;
use crate::config::Config;
use crate::links::Links;
use crate::links::answer::Direction;
use crate::serve::Searched;
use crate::{out, usage};
use answer::{Cached, ScorePart, SearchAnswer, SearchAsk, SearchResult};
use copies::Copies;
use keeper::Making;

/// Characters of a snippet.
const SNIPPET_CHARS: usize = 240;
/// Pages that link to one, for `link:`.
const LINKING_MAX: usize = 100_000;

/// The index of a directory, for whoever asks.
pub struct Search {
    dir: PathBuf,
    snapshot: RwLock<Arc<Snapshot>>,
    ranking: Ranking,
    normalizer: Normalizer,
    copies: Copies,
}

impl Search {
    /// Opens the index in `dir`; nothing if the crawl keeps none.
    pub fn open(dir: &Path) -> Result<Option<Search>> {
        let config = crate::commands::crawl_directory(dir)?;
        let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
        let disk = RealDisk::new(dir);
        if config.storage.index && !DirLock::is_held(dir) {
            catch_up(dir, &disk, &config)?;
        }
        let opened = Snapshot::open(disk.clone()).map_err(|e| advised(e, dir))?;
        let snapshot = match opened {
            Some(snapshot) => snapshot,
            // A crawl that was told to keep none never has one, and one that has just begun has none yet.
            None if !config.storage.index => return Ok(None),
            None => Snapshot::empty(disk.clone()).map_err(|e| advised(e, dir))?,
        };
        let copies = Copies::new(dir, disk, &settings);
        Ok(Some(Search {
            dir: dir.to_path_buf(),
            snapshot: RwLock::new(Arc::new(snapshot)),
            ranking: config.ranking.clone(),
            normalizer: Normalizer::new(&settings.normalize),
            copies,
        }))
    }

    /// The index as it is now.
    fn now(&self) -> Arc<Snapshot> {
        self.snapshot.read().expect("nobody panics with the index in hand").clone()
    }

    /// Answers a query.
    pub fn search(&self, ask: &SearchAsk) -> Result<SearchAnswer> {
        let began = Instant::now();
        let index = self.now();
        let now_ms = Timestamp::now().0 as i64;
        let query = Query::parse_at(&ask.query, now_ms);
        let request = Request {
            limit: ask.limit,
            offset: ask.offset,
            grouped: !ask.ungrouped,
            fresh: ask.fresh,
            now_ms,
            ..Request::new(&query, ask.limit)
        };
        let failed = |e| advised(e, &self.dir);
        let (found, plan) = index.search(&request, &self.ranking, self).map_err(failed)?;
        let mut results = Vec::with_capacity(found.hits.len());
        for hit in &found.hits {
            let shown = index.show(hit, &plan, SNIPPET_CHARS).map_err(failed)?;
            let explanation = match ask.explain {
                false => None,
                true => Some(index.explain(hit, &plan, &request, &self.ranking).map_err(failed)?),
            };
            let explanation = explanation.map(|parts| {
                parts.into_iter().map(|p| ScorePart { what: p.what, score: p.score, how: p.how }).collect()
            });
            let (host, _) = rhumb_index::page::parts(&shown.url);
            results.push(SearchResult {
                host: host.to_string(),
                title: if shown.title.is_empty() { shown.url.clone() } else { shown.title },
                title_highlights: shown.title_highlights,
                snippet: shown.snippet.text,
                highlights: shown.snippet.highlights,
                score: hit.score,
                date: Timestamp(shown.date_ms.max(0) as u64).to_string(),
                fetched: Timestamp(shown.fetched_ms.max(0) as u64).to_string(),
                language: Some(shown.language).filter(|code| !code.is_empty()),
                kind: shown.kind,
                links_in: u64::from(shown.links_in),
                cached: shown.cached,
                more_from_host: hit.more_from_host,
                duplicate_of: shown.duplicate_of.and_then(|id| index.url_of(id)),
                explanation,
                url: shown.url,
            });
        }
        Ok(SearchAnswer {
            query: ask.query.clone(),
            total: found.total,
            total_exact: found.total_exact,
            offset: ask.offset,
            results,
            more: found.more,
            suggestion: suggestion(&index, &query).map_err(failed)?,
            notes: query.notes.clone(),
            pages: index.pages(),
            tier: found.tier,
            took_us: began.elapsed().as_micros() as u64,
        })
    }

    /// Takes in parts that were written since.
    pub fn keep_up(&self) -> Result<()> {
        let newer = self.now().renewed().map_err(|e| advised(e, &self.dir))?;
        if let Some(newer) = newer {
            *self.snapshot.write().expect("nobody panics with the index in hand") = Arc::new(newer);
        }
        Ok(())
    }
}

impl Outside for Search {
    fn linking(&self, url: &str) -> Vec<u64> {
        let ask = || -> Result<Vec<u64>> {
            let links = Links::open(&self.dir)?;
            let url = links.canonical(url)?;
            let found = links.links(&url, Direction::To, false, LINKING_MAX, None)?;
            Ok(found.map_or(Vec::new(), |found| found.links.iter().map(|l| Fingerprint::of(&l.url).0).collect()))
        };
        // Who asks for links of what is no page, or of a crawl without a graph, finds none.
        ask().unwrap_or_default()
    }

    fn id(&self, url: &str) -> Option<u64> {
        let index = self.now();
        let tries = match url.contains("://") {
            true => vec![url.to_string()],
            false => vec![format!("https://{url}"), format!("http://{url}")],
        };
        let ids = tries.iter().filter_map(|url| self.normalizer.normalize(url, None).ok());
        let ids: Vec<u64> = ids.map(|url| Fingerprint::of(url.as_str()).0).collect();
        ids.iter().copied().find(|id| index.find(*id).is_some()).or(ids.first().copied())
    }

    fn site(&self, host: &str) -> String {
        let url = self.normalizer.normalize(&format!("http://{host}/"), None).ok();
        url.map_or(host.to_string(), |url| rhumb_index::page::parts(url.as_str()).0.to_string())
    }
}

impl Searched for Search {
    fn search(&self, ask: &SearchAsk) -> Result<SearchAnswer> {
        Search::search(self, ask)
    }

    fn cached(&self, url: &str) -> Result<Option<Cached>> {
        let Some(id) = self.id(url) else { return Ok(None) };
        self.copies.of(&self.now(), id)
    }

    fn complete(&self, prefix: &str, limit: usize) -> Result<Vec<String>> {
        let words = self.now().starting_with(prefix, limit).map_err(|e| advised(e, &self.dir))?;
        Ok(words.into_iter().map(|(word, _)| word).collect())
    }

    fn keep_up(&self) -> Result<()> {
        Search::keep_up(self)
    }

    fn pages(&self) -> Result<u64> {
        Ok(self.now().pages())
    }
}

/// The query as it may have been meant: with words that the index has in the place of those it does not.
fn suggestion(index: &Snapshot, query: &Query) -> rhumb_index::Result<Option<String>> {
    for clause in query.clauses.iter().filter(|clause| clause.occur != Occur::Excluded) {
        if let What::Word(word) = &clause.what
            && let Some(meant) = index.meant(word)?
        {
            return Ok(Some(query.with_replaced(clause.span.clone(), &meant)));
        }
    }
    Ok(None)
}

/// What an index of this crawl is made with.
pub fn making(config: &Config) -> Making {
    let share = crate::memory::Shares::of(config.crawl.memory).index;
    let mut arrangement = config.index.arrangement();
    arrangement.memory_bytes = share.max(8 << 20);
    Making {
        weights: config.index.weights,
        arrangement,
        memory_bytes: (share / 2).max(4 << 20),
        has_graph: config.storage.graph,
    }
}

/// Does what is left to do for an index that nobody writes. Where it cannot be written, it is asked as it is.
fn catch_up(dir: &Path, disk: &Arc<dyn Disk>, config: &Config) -> Result<()> {
    let making = making(config);
    if fold::is_settled(&**disk, making.weights)? {
        return Ok(());
    }
    let Ok(_lock) = fold::lock(dir) else { return Ok(()) };
    // Somebody may have done it meanwhile.
    if fold::is_settled(&**disk, making.weights)? {
        return Ok(());
    }
    settle(dir, disk, &making)?;
    Ok(())
}

/// Brings an index up to its log; one that turns out to be damaged is made anew. The caller holds the lock of the index.
pub fn settle(dir: &Path, disk: &Arc<dyn Disk>, making: &Making) -> Result<u64> {
    match keeper::settle(dir, disk, making) {
        Err(e) if e.downcast_ref::<IndexError>().is_some_and(IndexError::is_damage) && !is_of_log(&e) => {
            out::note(&format!("rhumb: {e}; the text index is made anew from the log"));
            rhumb_index::store::discard(&**disk)?;
            keeper::settle(dir, disk, making)
        }
        settled => settled,
    }
    .map_err(|e| match e.downcast::<IndexError>() {
        Ok(e) => advised(e, dir),
        Err(e) => e,
    })
}

/// Whether it is the log that is damaged, from which nothing can be made anew.
fn is_of_log(e: &anyhow::Error) -> bool {
    matches!(e.downcast_ref::<IndexError>(),
        Some(IndexError::Store(rhumb_store::StoreError::Corrupt { file, .. })) if file.starts_with("log/"))
}

fn advised(e: IndexError, dir: &Path) -> anyhow::Error {
    match e {
        IndexError::Store(e) => with_advice(e, dir),
        other => other.into(),
    }
}
