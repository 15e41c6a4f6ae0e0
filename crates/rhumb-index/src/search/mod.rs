//! Searching: from a query to the pages that answer it best.
//!
//! The way of a query: `plan.rs` makes of its clauses what is looked up; `candidates.rs` lets tantivy name pages of a part that may be good
//! enough, by bounds that it can skip with; `score.rs` says exactly how good each of them is; `best.rs` keeps the best. Parts are asked in the
//! order of how good their pages can be, and those whose best could not be good enough are not asked at all: that is what tiers are
//! for (SPEC I4).
//!
//! Invariant: the result is that of scoring every page. A bound is never below what it bounds, scores are computed in one order and in
//! double precision wherever a page lies, and equal ones are ordered by the page's fingerprint; so it does not matter how pages are spread
//! over parts.

mod best;
mod candidates;
pub(crate) mod ceilings;
mod feedback;
mod plan;
mod score;
mod snapshot;

use std::collections::HashMap;

use tantivy::DocId;

use crate::Result;
use crate::page::{CACHED, NO_SNIPPET};
use crate::query::Query;
use crate::snippet::{Snippet, SnippetOptions, highlight};
use best::Best;
pub use plan::Plan;
pub use score::{Ranking, ScorePart};
pub use snapshot::{Shelf, Snapshot};

/// Results that can be asked for, those that are passed over included.
pub const RESULTS_MAX: usize = 1_000;
/// Results of one host, unless there is no other.
const OF_HOST_MAX: usize = 2;
/// Pages that are counted; beyond that the number is estimated.
const COUNTED_MAX: u64 = 10_000;

/// What is asked.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What was typed.
    pub query: &'a Query,
    /// Results wanted.
    pub limit: usize,
    /// Results passed over first.
    pub offset: usize,
    /// Whether a host has two results at most.
    pub grouped: bool,
    /// Whether newer pages come sooner.
    pub fresh: bool,
    /// Whether all matching pages are counted, or estimated.
    pub counted: bool,
    /// Whether tiers are looked at one after the other; otherwise all of them, always.
    pub tiered: bool,
    /// What time it is, in milliseconds.
    pub now_ms: i64,
}

impl<'a> Request<'a> {
    /// The first results of a query.
    pub fn new(query: &'a Query, limit: usize) -> Request<'a> {
        Request { query, limit, offset: 0, grouped: true, fresh: false, counted: true, tiered: true, now_ms: 0 }
    }
}

/// What the index does not know by itself.
pub trait Outside {
    /// Fingerprints of the pages that link to an address, as typed.
    fn linking(&self, url: &str) -> Vec<u64>;
    /// The fingerprint of an address, as typed.
    fn id(&self, url: &str) -> Option<u64>;
    /// The text of a page, by where its visit lies in the log.
    fn text(&self, visit: u64) -> Option<String>;
    /// A host as addresses have it.
    fn site(&self, host: &str) -> String {
        host.to_string()
    }
}

/// Nothing is known but the index.
pub struct Nothing;

impl Outside for Nothing {
    fn linking(&self, _: &str) -> Vec<u64> {
        Vec::new()
    }

    fn id(&self, _: &str) -> Option<u64> {
        None
    }

    fn text(&self, _: u64) -> Option<String> {
        None
    }
}

/// The pages found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The results, best first.
    pub hits: Vec<Hit>,
    /// Whether there are more.
    pub more: bool,
    /// How many pages match.
    pub total: u64,
    /// Whether they were counted.
    pub total_exact: bool,
    /// The last tier that was asked: 1 if the first had all the answers.
    pub tier: u8,
    /// Parts that were asked.
    pub parts_asked: usize,
}

/// A page that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Which of the snapshot's shelves it is on.
    pub shelf: usize,
    /// Where on it.
    pub doc: DocId,
    /// Its fingerprint.
    pub id: u64,
    /// That of its host.
    pub host: u64,
    /// How well it answers.
    pub score: f64,
    /// Whether its host has more that was left out.
    pub more_from_host: bool,
}

/// A result as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// What of the title matches, in characters.
    pub title_highlights: Vec<(usize, usize)>,
    /// The part of its text that answers.
    pub snippet: Snippet,
    /// Language code.
    pub language: String,
    /// What it is.
    pub kind: String,
    /// When it was changed.
    pub date_ms: i64,
    /// When it was fetched.
    pub fetched_ms: i64,
    /// Pages that link to it.
    pub links_in: u32,
    /// Whether a copy can be shown.
    pub cached: bool,
    /// Where its visit lies in the log.
    pub visit: u64,
    /// The fingerprint of the page that it is a duplicate of.
    pub duplicate_of: Option<u64>,
}

impl Snapshot {
    /// Finds the pages that answer best.
    pub fn search(&self, request: &Request<'_>, ranking: &Ranking, outside: &dyn Outside) -> Result<(Found, Plan)> {
        let mut plan = Plan::make(self, request, outside)?;
        if plan.is_verbose(ranking) {
            feedback::expand(self, &mut plan, request, ranking, outside)?;
        }
        let found = self.carry_out(&plan, request, ranking)?;
        Ok((found, plan))
    }

    /// What would be looked up.
    pub fn plan(&self, request: &Request<'_>, outside: &dyn Outside) -> Result<Plan> {
        Plan::make(self, request, outside)
    }

    /// Finds the pages that answer a plan best.
    pub(crate) fn carry_out(&self, plan: &Plan, request: &Request<'_>, ranking: &Ranking) -> Result<Found> {
        let wanted = request.offset.saturating_add(request.limit).min(RESULTS_MAX);
        let of_host_max = if request.grouped && !plan.is_of_one_site { OF_HOST_MAX } else { usize::MAX };
        let mut found = Found { tier: 1, total_exact: true, ..Found::default() };
        if plan.is_nothing || wanted == 0 {
            return Ok(found);
        }
        // One more, to know whether there is more.
        let mut best = Best::new(wanted + 1, of_host_max);
        let bonus = plan.bonus(request, ranking);
        let last_band = self.shelves.iter().map(|shelf| shelf.listed.band).max().unwrap_or(0);
        for at in self.order() {
            let shelf = &self.shelves[at];
            // As long as there is room, everything is worth a look.
            if request.tiered && best.threshold().is_some() {
                let ceiling = plan.ceiling(shelf, &bonus)?;
                if ceiling.is_none_or(|ceiling| best.is_beyond(ceiling)) {
                    continue;
                }
            }
            found.parts_asked += 1;
            if shelf.listed.band > 1 && shelf.listed.band == last_band {
                found.tier = 2;
            }
            candidates::collect(plan, self, at, &bonus, request.now_ms, &mut best)?;
        }
        let mut hits = best.into_sorted();
        found.more = hits.len() > wanted;
        hits.truncate(wanted);
        found.hits = hits.split_off(request.offset.min(hits.len()));
        (found.total, found.total_exact) = match request.counted {
            true => self.count(plan)?,
            false => (0, false),
        };
        Ok(found)
    }

    /// How many pages match, and whether they were counted.
    fn count(&self, plan: &Plan) -> Result<(u64, bool)> {
        let (mut total, mut exact) = (0.0, true);
        for shelf in &self.shelves {
            let (n, is_exact) = candidates::count(plan, self, shelf, COUNTED_MAX)?;
            total += n;
            exact &= is_exact;
        }
        Ok((total as u64, exact))
    }

    /// How the score of a hit came about.
    pub fn explain(&self, hit: &Hit, plan: &Plan, request: &Request<'_>, ranking: &Ranking) -> Result<Vec<ScorePart>> {
        let bonus = plan.bonus(request, ranking);
        let shelf = &self.shelves[hit.shelf];
        let mut scorer = score::Scorer::new(plan, shelf, &bonus, request.now_ms)?;
        Ok(scorer.explain(hit.doc))
    }

    /// A hit as it is shown; with a part of its text, of so many characters at most.
    pub fn show(&self, hit: &Hit, plan: &Plan, chars_max: usize, outside: &dyn Outside) -> Result<Shown> {
        let shelf = &self.shelves[hit.shelf];
        let part = &shelf.part;
        let address = tantivy::DocAddress { segment_ord: 0, doc_id: hit.doc };
        let document: tantivy::TantivyDocument = part.searcher().doc(address)?;
        let text_of = |field| crate::shown(&document, field).to_string();
        let (url, title) = (text_of(part.fields.shown_url), text_of(part.fields.shown_title));
        let (language, kind) = (part.name_of("lang", hit.doc)?, part.name_of("kind", hit.doc)?);
        let (visit, flags) = (part.columns.visit.get_val(hit.doc), part.columns.flags.get_val(hit.doc));
        let text = if flags & NO_SNIPPET == 0 { outside.text(visit).unwrap_or_default() } else { String::new() };
        let lang = crate::analysis::language::Lang::of(&language);
        let known: HashMap<&str, u32> = plan.shown_terms().collect();
        let term_of = |word: &str| crate::analysis::term(lang, word).and_then(|term| known.get(term.as_str()).copied());
        let weights = plan.shown_weights();
        let options = SnippetOptions { chars_max, weights: &weights, ..SnippetOptions::default() };
        Ok(Shown {
            title_highlights: highlight(&title, &term_of),
            snippet: crate::snippet::make(&text, &term_of, &options),
            url,
            title,
            language,
            kind,
            date_ms: part.columns.date.get_val(hit.doc),
            fetched_ms: part.columns.fetched.get_val(hit.doc),
            links_in: part.late.as_ref().map_or(0, |late| late.links(hit.doc)),
            cached: flags & CACHED != 0,
            visit,
            duplicate_of: shelf.duplicates.get(&hit.doc).copied(),
        })
    }
}
