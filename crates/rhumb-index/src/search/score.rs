//! How well a page answers, exactly.
//!
//! | part | what it is |
//! | --- | --- |
//! | words | BM25 over the words of the page, weighted by where they stand (BM25F), for each word of the query |
//! | links | BM25 over what links to it say |
//! | rank | how good the page is by its links, whatever is asked |
//! | near | words of the query that stand next to each other on the page as they do in the query |
//! | all | the share of the query that the page has in its text, squared: who has everything comes first |
//! | fresh | newer pages, if that was asked |
//!
//! Everything but the words is measured in parts of what the query's words can bring together, so that weights mean the same for short and
//! long queries, in small and large collections.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, TERMINATED};

use super::Shelf;
use super::candidates::Which;
use super::plan::{B, Form, K1, Plan};
use crate::Result;

/// Words of a query that are further apart than this on a page are not near each other.
const NEAR_MAX: u32 = 8;
/// Queries of up to so many words are expected to be met in full.
const SHORT_WORDS: f64 = 3.0;
const DAY_MS: f64 = 86_400_000.0;

/// How much the parts of a score count.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ranking {
    /// What links say, against what the page says.
    pub anchor: f64,
    /// The page's rank.
    pub rank: f64,
    /// Words that are near each other.
    pub proximity: f64,
    /// Having all words.
    pub coverage: f64,
    /// Newer pages, if they are asked for.
    pub freshness: f64,
    /// After so many days a page is half as new.
    pub freshness_days: f64,
    /// Queries of more words describe what is looked for, and what the first results say is asked, too.
    pub verbose_words: usize,
    /// How much that counts; 0 leaves it.
    pub feedback: f64,
    /// Results that are looked at for it.
    pub feedback_pages: usize,
    /// Words taken from them.
    pub feedback_words: usize,
}

impl Default for Ranking {
    fn default() -> Ranking {
        Ranking {
            anchor: 0.5,
            rank: 0.3,
            proximity: 0.25,
            coverage: 0.1,
            freshness: 0.5,
            freshness_days: 30.0,
            verbose_words: 5,
            feedback: 0.2,
            feedback_pages: 10,
            feedback_words: 40,
        }
    }
}

/// The weights of a ranking, for one query.
#[derive(Clone, Debug)]
pub struct Bonus {
    pub(super) anchor: f64,
    rank: f64,
    /// For each word but the last: how much it brings to have the next one near.
    near: Vec<f64>,
    near_most: f64,
    all: f64,
    /// The most that a page gets for both if it lacks a word.
    partial_most: f64,
    fresh: f64,
    half_ms: f64,
}

impl Bonus {
    pub(super) fn of(plan: &Plan, fresh: bool, ranking: &Ranking) -> Bonus {
        // Where nothing but conditions is asked, rank and date order what fulfils them.
        let mass = if plan.words.is_empty() { 1.0 } else { plan.mass() };
        let near: Vec<f64> = plan
            .words
            .windows(2)
            .map(|pair| match pair[1].expanded {
                true => 0.0,
                false => ranking.proximity * (K1 + 1.0) * pair[0].mass().min(pair[1].mass()),
            })
            .collect();
        // Who describes what he looks for does not expect every word of it.
        let all = ranking.coverage * mass * (SHORT_WORDS / plan.words.len().max(1) as f64).min(1.0);
        let masses: Vec<f64> = plan.words.iter().filter(|word| !word.expanded).map(super::plan::Word::mass).collect();
        let whole: f64 = masses.iter().sum();
        let without = |i: usize| {
            let near_rest: f64 =
                near.iter().enumerate().filter(|(at, _)| *at != i && at + 1 != i).map(|(_, w)| w).sum();
            let share = if whole > 0.0 { 1.0 - masses[i] / whole } else { 1.0 };
            near_rest + all * share * share
        };
        let partial_most = (0..masses.len()).map(without).fold(0.0, f64::max) * (1.0 + 1e-9);
        Bonus {
            partial_most,
            anchor: ranking.anchor,
            rank: ranking.rank * mass,
            near_most: near.iter().sum(),
            near,
            all,
            fresh: if fresh { ranking.freshness * mass } else { 0.0 },
            half_ms: ranking.freshness_days.max(0.01) * DAY_MS,
        }
    }

    /// The most that a page of this shelf can get beside what its words bring.
    pub(super) fn most(&self, shelf: &Shelf) -> f64 {
        self.rank * f64::from(shelf.quality_max()) + self.rest_most(Which::Any)
    }

    /// The same without its rank, for pages of this sort.
    pub(super) fn rest_most(&self, which: Which) -> f64 {
        self.fresh
            + match which {
                Which::Any | Which::Complete => self.near_most + self.all,
                Which::Partial => self.partial_most,
            }
    }

    /// What a page gets for its rank.
    pub(super) fn of_rank(&self, quality: f32) -> f64 {
        self.rank * f64::from(quality)
    }

    fn of_date(&self, date_ms: i64, now_ms: i64) -> f64 {
        if self.fresh == 0.0 {
            return 0.0;
        }
        let age = (now_ms.saturating_sub(date_ms)).max(0) as f64;
        self.fresh * (-age / self.half_ms).exp2()
    }
}

/// A part of a score, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    /// What it is for.
    pub what: String,
    /// What it adds.
    pub score: f64,
    /// How that was computed.
    pub how: String,
}

/// Scores pages of one shelf, in ascending order.
pub struct Scorer<'a> {
    plan: &'a Plan,
    shelf: &'a Shelf,
    bonus: &'a Bonus,
    now_ms: i64,
    words: Vec<WordCursors>,
    text_norms: Norms,
    anchor_norms: Option<Norms>,
    /// Where the words of the page in hand stand.
    positions: Vec<Vec<u32>>,
    spare: Vec<u32>,
}

struct WordCursors {
    text: Vec<Cursor>,
    anchor: Vec<Cursor>,
    /// How much the word counts.
    mass: f64,
    /// Whether the page in hand has it in its text.
    is_in_text: bool,
}

/// A list of pages that have a term.
struct Cursor {
    postings: Option<SegmentPostings>,
    idf: f64,
    /// How often the page in hand has it.
    times: u32,
}

impl Cursor {
    fn open(segment: &tantivy::SegmentReader, form: &Form, option: IndexRecordOption) -> Result<Cursor> {
        let postings = segment.inverted_index(form.term.field())?.read_postings(&form.term, option)?;
        Ok(Cursor { postings, idf: form.idf, times: 0 })
    }

    /// How often the page has it.
    fn at(&mut self, doc: DocId) -> u32 {
        let Some(postings) = &mut self.postings else { return 0 };
        if postings.doc() < doc {
            postings.seek(doc);
        }
        self.times = if postings.doc() == doc && doc != TERMINATED { postings.term_freq() } else { 0 };
        self.times
    }
}

/// How long texts are, as BM25 takes it.
pub(super) struct Norms {
    reader: FieldNormReader,
    /// k1 · (1 − b + b · length / average), by the code of the length.
    saturation: Vec<f64>,
}

impl Norms {
    pub(super) fn new(reader: FieldNormReader, average: f64) -> Norms {
        let of = |id: u8| K1 * (1.0 - B + B * f64::from(FieldNormReader::id_to_fieldnorm(id)) / average);
        Norms { reader, saturation: (0..=255).map(of).collect() }
    }

    pub(super) fn of(&self, doc: DocId) -> f64 {
        self.saturation[usize::from(self.reader.fieldnorm_id(doc))]
    }
}

impl<'a> Scorer<'a> {
    pub(super) fn new(plan: &'a Plan, shelf: &'a Shelf, bonus: &'a Bonus, now_ms: i64) -> Result<Scorer<'a>> {
        let segment = shelf.part.segment();
        let is_near_asked = bonus.near_most > 0.0;
        let option = match is_near_asked {
            true => IndexRecordOption::WithFreqsAndPositions,
            false => IndexRecordOption::WithFreqs,
        };
        let mut words = Vec::with_capacity(plan.words.len());
        for word in &plan.words {
            let option = if word.expanded { IndexRecordOption::WithFreqs } else { option };
            let text = word.text.iter().map(|form| Cursor::open(segment, form, option)).collect::<Result<_>>()?;
            let anchor = match &shelf.part.late {
                None => Vec::new(),
                Some(late) => {
                    let open = |form| Cursor::open(late.segment(), form, IndexRecordOption::WithFreqs);
                    word.anchor.iter().map(open).collect::<Result<_>>()?
                }
            };
            words.push(WordCursors { text, anchor, mass: word.mass(), is_in_text: false });
        }
        let text_norms = Norms::new(segment.get_fieldnorms_reader(shelf.part.fields.text)?, plan.text_average);
        let anchor_norms = match &shelf.part.late {
            None => None,
            Some(late) => {
                let reader = late.segment().get_fieldnorms_reader(late.fields.anchor)?;
                Some(Norms::new(reader, plan.anchor_average))
            }
        };
        let positions = vec![Vec::new(); plan.words.len()];
        Ok(Scorer { plan, shelf, bonus, now_ms, words, text_norms, anchor_norms, positions, spare: Vec::new() })
    }

    /// The score of a page, or nothing if it is below `threshold` or not of the sort that is looked for. Pages come in ascending order.
    pub(super) fn score(&mut self, doc: DocId, which: Which, threshold: Option<f64>) -> Option<f64> {
        self.add_up(doc, which, threshold, |_, _, _| {})
    }

    /// The same, part by part, of a page that was not passed yet.
    pub(super) fn explain(&mut self, doc: DocId) -> Vec<ScorePart> {
        let mut parts = Vec::new();
        self.add_up(doc, Which::Any, None, |what, score, how| {
            if score != 0.0 {
                parts.push(ScorePart { what: what.to_string(), score, how: how() });
            }
        });
        parts
    }

    /// Adds up all parts, always in the same order, and tells them. Where words stand is looked up last, and only if it can matter.
    fn add_up(
        &mut self,
        doc: DocId,
        which: Which,
        threshold: Option<f64>,
        mut tell: impl FnMut(&dyn std::fmt::Display, f64, &dyn Fn() -> String),
    ) -> Option<f64> {
        let Scorer { plan, shelf, bonus, now_ms, words, text_norms, anchor_norms, .. } = self;
        let saturation = text_norms.of(doc);
        let anchor_saturation = anchor_norms.as_ref().map_or(1.0, |norms| norms.of(doc));
        let (mut total, mut had, mut all) = (0.0, 0.0, 0.0);
        for (cursors, word) in words.iter_mut().zip(&plan.words) {
            cursors.is_in_text = false;
            for cursor in &mut cursors.text {
                let times = f64::from(cursor.at(doc));
                if times > 0.0 {
                    cursors.is_in_text = true;
                    let score = word.weight * cursor.idf * (K1 + 1.0) * times / (times + saturation);
                    total += score;
                    let idf = cursor.idf;
                    tell(&format_args!("word {}", word.typed), score, &|| {
                        format!(
                            "{:.2} × idf {idf:.3} × {:.1} × {times} / ({times} + {saturation:.2})",
                            word.weight,
                            K1 + 1.0
                        )
                    });
                }
            }
            for cursor in &mut cursors.anchor {
                let times = f64::from(cursor.at(doc));
                if times > 0.0 {
                    let score =
                        bonus.anchor * word.weight * cursor.idf * (K1 + 1.0) * times / (times + anchor_saturation);
                    total += score;
                    let idf = cursor.idf;
                    tell(&format_args!("links {}", word.typed), score, &|| {
                        format!(
                            "{:.2} × {:.2} × idf {idf:.3} × {:.1} × {times} / ({times} + {anchor_saturation:.2})",
                            bonus.anchor,
                            word.weight,
                            K1 + 1.0
                        )
                    });
                }
            }
            if !word.expanded {
                all += cursors.mass;
                had += if cursors.is_in_text { cursors.mass } else { 0.0 };
            }
        }
        // Those that have all words had their turn.
        if which == Which::Partial && words.iter().all(|word| word.is_in_text) {
            return None;
        }
        let quality = shelf.part.quality(doc);
        let rank = bonus.of_rank(quality);
        total += rank;
        tell(&"rank", rank, &|| format!("{:.3} × quality {quality:.3}", bonus.rank));
        if bonus.all > 0.0 && all > 0.0 {
            let share = had / all;
            let score = bonus.all * share * share;
            total += score;
            tell(&"all", score, &|| format!("{:.3} × {share:.3}²", bonus.all));
        }
        if bonus.fresh > 0.0 {
            let fresh = bonus.of_date(shelf.part.columns.date.get_val(doc), *now_ms);
            total += fresh;
            tell(&"fresh", fresh, &|| format!("of at most {:.3}", bonus.fresh));
        }
        let pairs = || words.windows(2).zip(&bonus.near).filter(|(pair, _)| pair.iter().all(|word| word.is_in_text));
        let near_most: f64 = pairs().map(|(_, weight)| weight).sum();
        if threshold.is_some_and(|threshold| (total + near_most) * (1.0 + 1e-9) < threshold) {
            return None;
        }
        if near_most > 0.0 {
            let near = self.near();
            total += near;
            tell(&"near", near, &|| format!("of at most {:.3}", self.bonus.near_most));
        }
        Some(total)
    }

    /// What a page gets for words that stand next to each other; the cursors are on it.
    fn near(&mut self) -> f64 {
        let Scorer { bonus, words, positions, spare, .. } = self;
        for (i, word) in words.iter_mut().enumerate() {
            positions[i].clear();
            let is_wanted = |at: usize| bonus.near.get(at).is_some_and(|weight| *weight > 0.0);
            if !word.is_in_text || !(is_wanted(i) || i > 0 && is_wanted(i - 1)) {
                continue;
            }
            let several = word.text.len() > 1;
            for cursor in word.text.iter_mut().filter(|cursor| cursor.times > 0) {
                if let Some(postings) = &mut cursor.postings {
                    postings.positions(spare);
                    positions[i].extend_from_slice(spare);
                }
            }
            if several {
                positions[i].sort_unstable();
            }
        }
        bonus.near.iter().enumerate().map(|(i, weight)| weight * nearness(&positions[i], &positions[i + 1])).sum()
    }
}

/// From 1 if the second word stands right behind the first somewhere, to 0 if it is nowhere near.
fn nearness(first: &[u32], second: &[u32]) -> f64 {
    let mut nearest = u32::MAX;
    let mut at = 0;
    for &position in first {
        while at < second.len() && second[at] < position {
            at += 1;
        }
        // The next one behind, and the last one before; the same place is the same word.
        if let Some(&behind) = second[at..].iter().find(|p| **p > position) {
            nearest = nearest.min(behind - position);
        }
        if let Some(&before) = at.checked_sub(1).and_then(|i| second.get(i)) {
            nearest = nearest.min(position - before + 1);
        }
        if nearest <= 1 {
            break;
        }
    }
    if nearest <= NEAR_MAX { 1.0 / f64::from(nearest) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_order_are_nearest() {
        let check = |first: &[u32], second: &[u32], expected: f64| {
            assert_eq!(nearness(first, second), expected, "{first:?} {second:?}");
        };
        check(&[3], &[4], 1.0);
        check(&[3], &[2], 0.5);
        check(&[3], &[5], 0.5);
        check(&[1, 50], &[30, 54], 0.25);
        check(&[1], &[40], 0.0);
        check(&[1], &[], 0.0);
        check(&[], &[1], 0.0);
        // A title counts its words several times.
        check(&[0, 0, 0], &[1, 1, 1], 1.0);
        check(&[5, 5], &[5, 5, 6], 1.0);
    }
}
