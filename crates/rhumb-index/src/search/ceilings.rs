//! The most that a term brings to any page of a part: what a tier has to offer, without searching it.
//!
//! It is found by going through the term's list once, and remembered. The bound that everybody knows, as if a page said nothing else, would do;
//! but a page in the second tier has few links, and what they can bring is far from it.

use std::collections::HashMap;
use std::sync::Mutex;

use tantivy::schema::IndexRecordOption;
use tantivy::{SegmentReader, Term};

use super::score::Norms;
use crate::Result;

/// Terms remembered.
const TERMS_MAX: usize = 100_000;

/// What is known of the terms of a segment.
#[derive(Default)]
pub struct Ceilings {
    known: Mutex<HashMap<Term, Known>>,
}

/// By what average of lengths, and the most of times / (times + saturation).
#[derive(Clone, Copy)]
struct Known {
    average: f64,
    most: f64,
}

impl Ceilings {
    /// The most that a term brings, from 0 if no page has it to 1.
    pub(super) fn of(&self, segment: &SegmentReader, term: &Term, average: f64) -> Result<f64> {
        let known = self.known.lock().expect("nobody panics with it in hand").get(term).copied();
        if let Some(known) = known.filter(|known| known.average == average) {
            return Ok(known.most);
        }
        let most = find(segment, term, average)?;
        let mut all = self.known.lock().expect("nobody panics with it in hand");
        if all.len() >= TERMS_MAX {
            all.clear();
        }
        all.insert(term.clone(), Known { average, most });
        Ok(most)
    }
}

fn find(segment: &SegmentReader, term: &Term, average: f64) -> Result<f64> {
    let index = segment.inverted_index(term.field())?;
    let Some(mut blocks) = index.read_block_postings(term, IndexRecordOption::WithFreqs)? else { return Ok(0.0) };
    let norms = Norms::new(segment.get_fieldnorms_reader(term.field())?, average);
    let mut most = 0.0;
    while !blocks.docs().is_empty() {
        for (doc, times) in blocks.docs().iter().zip(blocks.freqs()) {
            let times = f64::from(*times);
            most = f64::max(most, times / (times + norms.of(*doc)));
        }
        blocks.advance();
    }
    Ok(most)
}
