//! Pages that may be good enough, named by tantivy, which can skip those that are not.
//!
//! tantivy's block-max WAND knows for each block of 128 pages the highest score that a term brings there — by the average length of a text in
//! that segment, while scores are computed with that of the whole index. The page that has the highest score may be another one then. If one
//! average is ρ times the other, no page of the block can have more than ρ times what the block is said to have (both the part of BM25's
//! denominator that depends on the average and the one that does not are off by ρ at most). So what tantivy adds up is taken ρ times: it is
//! never below the true score, and [`super::score`] has the last word.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{
    BitSetDocSet, Bm25StatisticsProvider, BooleanWeight, BoostWeight, ConstScoreQuery, ConstScorer, EmptyScorer,
    EnableScoring, Explanation, Occur, Query, Scorer as TantivyScorer, SumCombiner, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{BitSet, DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED, Term};

use super::best::Best;
use super::plan::{Duplicates, Form, Plan, Word};
use super::score::{Bonus, Scorer};
use super::{Hit, Shelf, Snapshot};
use crate::Result;

/// Single precision adds up with errors of this size.
const ROUNDING: f64 = 1e-4;

/// Which pages are looked for.
///
/// A page that has all words of a short query gets more than its words bring, for having them all and for having them side by side. One that
/// lacks a word does not; so those that have all of them are looked for first, and the others need much more from what they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that match.
    Any,
    /// Those that have every word in their text.
    Complete,
    /// The others.
    Partial,
}

/// Offers all pages of a shelf that may be good enough.
pub fn collect(plan: &Plan, index: &Snapshot, at: usize, bonus: &Bonus, now_ms: i64, best: &mut Best) -> Result<()> {
    if !plan.is_short() {
        return collect_these(Which::Any, plan, index, at, bonus, now_ms, best);
    }
    if plan.words.iter().all(|word| !word.text.is_empty()) {
        collect_these(Which::Complete, plan, index, at, bonus, now_ms, best)?;
    }
    collect_these(Which::Partial, plan, index, at, bonus, now_ms, best)
}

fn collect_these(
    which: Which,
    plan: &Plan,
    index: &Snapshot,
    at: usize,
    bonus: &Bonus,
    now_ms: i64,
    best: &mut Best,
) -> Result<()> {
    let shelf = &index.shelves[at];
    let weight = weight_of(which, plan, shelf, bonus)?;
    let mut scorer = Scorer::new(plan, shelf, bonus, now_ms)?;
    let unseen = match which {
        // What links say is not part of what tantivy adds up.
        Which::Complete => plan.anchor_ceiling(shelf, bonus)?,
        _ => 0.0,
    };
    let (rank_most, rest_most) = (bonus.of_rank(shelf.quality_max()), bonus.rest_most(which) + unseen);
    let part = &shelf.part;
    let below = |best: &Best| match best.threshold() {
        // What is not above this cannot be kept, whatever else it gets.
        Some(threshold) => {
            ((threshold - rank_most - rest_most) * (1.0 - ROUNDING.copysign(threshold)) - ROUNDING) as Score
        }
        None => Score::MIN,
    };
    weight.for_each_pruning(below(best), part.segment(), &mut |doc, score| {
        let ceiling = f64::from(score) * (1.0 + ROUNDING) + bonus.of_rank(part.quality(doc)) + rest_most;
        if best.is_beyond(ceiling) || is_hidden(plan, index, shelf, doc) {
            return below(best);
        }
        let Some(score) = scorer.score(doc, which, best.threshold()) else { return below(best) };
        let (id, host) = (part.columns.id.get_val(doc), part.columns.host.get_val(doc));
        best.offer(Hit { shelf: at, doc, id, host, score, more_from_host: false });
        below(best)
    })?;
    Ok(())
}

/// How many pages of a shelf match: counted up to `max`, then estimated.
pub fn count(plan: &Plan, index: &Snapshot, shelf: &Shelf, max: u64) -> Result<(f64, bool)> {
    let bonus = Bonus::of(plan, false, &super::Ranking::default());
    let weight = weight_of(Which::Any, plan, shelf, &bonus)?;
    let mut scorer = weight.scorer(shelf.part.segment(), 1.0)?;
    let (mut counted, mut doc) = (0, scorer.doc());
    while doc != TERMINATED {
        counted += u64::from(!is_hidden(plan, index, shelf, doc));
        if counted == max {
            let share = f64::from(doc + 1) / f64::from(shelf.part.documents());
            return Ok((counted as f64 / share, false));
        }
        doc = scorer.advance();
    }
    Ok((counted as f64, true))
}

/// Whether a page that matches is not shown: it is gone, or another stands for it.
fn is_hidden(plan: &Plan, index: &Snapshot, shelf: &Shelf, doc: DocId) -> bool {
    let is_duplicate = plan.duplicates == Duplicates::Hidden && index.is_stood_for(shelf, doc);
    shelf.dead.contains(&doc) || is_duplicate
}

/// What tantivy is asked for on a shelf.
fn weight_of(which: Which, plan: &Plan, shelf: &Shelf, bonus: &Bonus) -> Result<BooleanWeight<SumCombiner>> {
    let part = &shelf.part;
    let segment = part.segment();
    let tokens = segment.inverted_index(part.fields.text)?.total_num_tokens();
    let text = Source {
        searcher: part.searcher(),
        average: plan.text_average,
        boost: widening(tokens, segment.max_doc(), plan.text_average),
        beside: None,
    };
    let anchor = match &part.late {
        None => None,
        Some(late) => {
            let tokens = late.segment().inverted_index(late.fields.anchor)?.total_num_tokens();
            Some(Source {
                searcher: late.searcher(),
                average: plan.anchor_average,
                boost: bonus.anchor * widening(tokens, segment.max_doc(), plan.anchor_average),
                beside: Some(late.segment()),
            })
        }
    };
    let mut clauses: Vec<(Occur, Box<dyn Weight>)> = Vec::new();
    for word in &plan.words {
        let mut forms = Vec::new();
        for form in &word.text {
            forms.push((Occur::Should, text.weight(word, form)?));
        }
        if which == Which::Complete {
            // One form is a list that tantivy can skip in; several are not.
            match forms.len() {
                1 => clauses.extend(forms.pop().map(|(_, form)| (Occur::Must, form))),
                _ => clauses.push((Occur::Must, Box::new(union(forms)))),
            }
            continue;
        }
        if let Some(anchor) = &anchor {
            for form in &word.anchor {
                forms.push((Occur::Should, anchor.weight(word, form)?));
            }
        }
        if word.required {
            clauses.push((Occur::Must, Box::new(union(forms))));
        } else {
            clauses.extend(forms);
        }
    }
    for (occur, condition) in &plan.conditions {
        let scoring = EnableScoring::disabled_from_searcher(part.searcher());
        let weight = ConstScoreQuery::new(condition.box_clone(), 0.0).weight(scoring)?;
        clauses.push((*occur, if *occur == Occur::MustNot { Box::new(Excluded(weight)) } else { weight }));
    }
    let is_conditional = clauses.iter().any(|(occur, _)| *occur == Occur::Must);
    let wanted = clauses.iter().any(|(occur, _)| *occur == Occur::Should);
    // A page that fulfils the conditions still has to have one of the words, unless some are required anyway.
    let required = plan.words.iter().any(|word| word.required);
    let least = usize::from(is_conditional && wanted && !required);
    Ok(BooleanWeight::with_minimum_number_should_match(clauses, least, true, Box::new(SumCombiner::default)))
}

fn union(forms: Vec<(Occur, Box<dyn Weight>)>) -> BooleanWeight<SumCombiner> {
    BooleanWeight::with_minimum_number_should_match(forms, 0, true, Box::new(SumCombiner::default))
}

/// ρ: how far the average of a segment is from that of the whole index.
fn widening(tokens: u64, documents: u32, average: f64) -> f64 {
    let own = tokens as f64 / f64::from(documents.max(1));
    if own <= 0.0 { 1.0 } else { (own / average).max(average / own) }
}

/// Where terms are looked up.
struct Source<'a> {
    searcher: &'a Searcher,
    average: f64,
    boost: f64,
    /// The segment, if it is not the part's own.
    beside: Option<&'a SegmentReader>,
}

impl Source<'_> {
    fn weight(&self, word: &Word, form: &Form) -> Result<Box<dyn Weight>> {
        let statistics = Statistics { form, average: self.average };
        let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, self.searcher);
        let weight = TermQuery::new(form.term.clone(), IndexRecordOption::WithFreqs).weight(scoring)?;
        let weight = BoostWeight::new(weight, (self.boost * word.weight) as Score);
        Ok(match self.beside {
            None => Box::new(weight),
            Some(segment) => Box::new(Beside { weight: Box::new(weight), segment: segment.clone() }),
        })
    }
}

/// The figures of the whole index, for one term.
struct Statistics<'a> {
    form: &'a Form,
    average: f64,
}

/// tantivy wants to know numbers of pages and words; what it makes of them is how rare the term is, and the average length. They are
/// given so that this is what comes out.
const PAGES: u64 = 1 << 40;

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok((self.average * PAGES as f64) as u64)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(PAGES)
    }

    fn doc_freq(&self, _: &Term) -> tantivy::Result<u64> {
        // The n for which ln(1 + (N − n + 0.5) / (n + 0.5)) is the idf, rounded so that it is no less.
        let n = (PAGES as f64 + 1.0) / self.form.idf.exp() - 0.5;
        Ok((n.floor().max(0.0) as u64).min(PAGES))
    }
}

/// Looks a term up in the segment beside a part, whose pages are the same.
struct Beside {
    weight: Box<dyn Weight>,
    segment: SegmentReader,
}

impl Weight for Beside {
    fn scorer(&self, _: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn TantivyScorer>> {
        self.weight.scorer(&self.segment, boost)
    }

    fn explain(&self, _: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.weight.explain(&self.segment, doc)
    }
}

/// A condition that pages must not fulfil. tantivy asks it about pages that come before the first one that does, and phrases do not
/// expect that.
struct Excluded(Box<dyn Weight>);

impl Weight for Excluded {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn TantivyScorer>> {
        Ok(Box::new(Forward(self.0.scorer(reader, boost)?)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, doc)
    }
}

/// Pages that are never looked for behind where one has got to.
struct Forward(Box<dyn TantivyScorer>);

impl DocSet for Forward {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target <= self.0.doc() { self.0.doc() } else { self.0.seek(target) }
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }

    fn cost(&self) -> u64 {
        self.0.cost()
    }
}

impl TantivyScorer for Forward {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}

/// Pages that were found by other means.
#[derive(Clone, Debug)]
pub struct DocsQuery(pub Arc<HashMap<SegmentId, Vec<DocId>>>);

impl Query for DocsQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for DocsQuery {
    fn scorer(&self, reader: &SegmentReader, _: Score) -> tantivy::Result<Box<dyn TantivyScorer>> {
        let Some(docs) = self.0.get(&reader.segment_id()).filter(|docs| !docs.is_empty()) else {
            return Ok(Box::new(EmptyScorer));
        };
        let mut set = BitSet::with_max_value(reader.max_doc());
        for doc in docs.iter().filter(|doc| **doc < reader.max_doc()) {
            set.insert(*doc);
        }
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(set), 0.0)))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Ok(Explanation::new("is on the list", 0.0))
    }
}
