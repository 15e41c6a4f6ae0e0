//! What the first results say, asked too: a query of many words describes something, and the pages that fit it best have the words that
//! it lacks. This is a relevance model (Lavrenko and Croft, 2001) mixed with the query, as in RM3.

use std::collections::HashMap;

use super::plan::{Plan, Word};
use super::score::Ranking;
use super::{Request, Snapshot};
use crate::Result;
use crate::analysis::Analyzer;
use crate::analysis::language::Lang;

/// Of a long page, so much is read.
const BYTES_MAX: usize = 16 << 10;
/// Words of fewer pages than this are misspellings and names.
const PAGES_MIN: u64 = 2;

/// Adds to the plan what the pages that answer it best say.
pub fn expand(index: &Snapshot, plan: &mut Plan, request: &Request<'_>, ranking: &Ranking) -> Result<()> {
    let first =
        Request { limit: ranking.feedback_pages, offset: 0, grouped: false, counted: false, fresh: false, ..*request };
    let found = index.carry_out(plan, &first, ranking)?;
    let best = found.hits.first().map_or(0.0, |hit| hit.score);
    let mut said = HashMap::<String, f64>::new();
    let mut analyzer = Analyzer::default();
    for hit in &found.hits {
        let shown = index.show_text(hit)?;
        let lang = Lang::of(&shown.1);
        let mut times = HashMap::<String, u32>::new();
        let mut length = 0u32;
        let text = crate::cut(&shown.0, BYTES_MAX);
        analyzer.terms(lang, text, |term, piece| {
            length += 1;
            let word = &text[piece.start..piece.end];
            if word.len() > 2
                && !lang.is_common(&crate::analysis::plain(word))
                && !word.bytes().all(|b| b.is_ascii_digit())
            {
                *times.entry(term.to_string()).or_default() += 1;
            }
        });
        for (term, n) in times {
            *said.entry(term).or_default() += hit.score / best * f64::from(n) / f64::from(length.max(1));
        }
    }
    let mut words: Vec<(f64, Word)> = Vec::new();
    for (term, share) in said {
        let (text, anchor) = (Vec::new(), Vec::new());
        let mut word =
            Word { typed: term.clone(), terms: vec![term], weight: 1.0, required: false, expanded: true, text, anchor };
        index.look_up(&mut word)?;
        word.anchor.clear();
        if word.text.iter().any(|form| form.pages >= PAGES_MIN) {
            words.push((share * word.mass(), word));
        }
    }
    words.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.typed.cmp(&b.1.typed)));
    words.truncate(ranking.feedback_words);
    let most = words.first().map_or(0.0, |(share, _)| *share);
    for (share, mut word) in words {
        let weight = ranking.feedback * share / most;
        // A word that was typed counts more; one that was not is added.
        match plan.words.iter_mut().find(|known| known.terms.contains(&word.terms[0])) {
            Some(known) => known.weight += weight,
            None => {
                word.weight = weight;
                plan.words.push(word);
            }
        }
    }
    Ok(())
}

impl Snapshot {
    /// Text and language of a page.
    fn show_text(&self, hit: &super::Hit) -> Result<(String, String)> {
        let part = &self.shelves[hit.shelf].part;
        let address = tantivy::DocAddress { segment_ord: 0, doc_id: hit.doc };
        let document: tantivy::TantivyDocument = part.searcher().doc(address)?;
        let text = crate::shown(&document, part.fields.shown_text).to_string();
        let mut code = String::new();
        if let Some(column) = part.segment().fast_fields().str("lang")?
            && let Some(ordinal) = column.term_ords(hit.doc).next()
        {
            column.ord_to_str(ordinal, &mut code)?;
        }
        Ok((text, code))
    }
}
