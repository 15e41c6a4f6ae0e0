//! The index as it was at one moment, for whoever asks. Parts never change, so a newer snapshot shares those that are still there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rhumb_store::StoreError;
use rhumb_store::disk::Disk;
use tantivy::DocId;

use crate::analysis::language::Lang;
use crate::manifest::{Listed, Manifest};
use crate::part::{Part, count};
use crate::schema::Fields;
use crate::words::{self, Words};
use crate::{IndexError, Result};

/// Languages of fewer pages than one in so many are not looked up in.
const RARE_LANGUAGE: u32 = 100;
/// Languages looked up in, at most.
const LANGUAGES_MAX: usize = 6;

/// A part, and what the list says of it.
pub struct Shelf {
    /// The part.
    pub part: Arc<Part>,
    /// What the list says.
    pub listed: Listed,
    /// Pages that are gone.
    pub dead: HashSet<DocId>,
    /// Duplicates, with the page that stands for each.
    pub duplicates: HashMap<DocId, u64>,
}

impl Shelf {
    fn new(part: Arc<Part>, listed: Listed) -> Shelf {
        let dead = listed.dead.iter().copied().collect();
        let duplicates = listed.duplicates.iter().copied().collect();
        Shelf { part, listed, dead, duplicates }
    }

    /// The highest quality of its pages.
    pub fn quality_max(&self) -> f32 {
        self.part.late.as_ref().map_or(0.0, |late| late.quality_max)
    }
}

/// The index at one moment.
pub struct Snapshot {
    disk: Arc<dyn Disk>,
    list: Manifest,
    pub(crate) shelves: Vec<Shelf>,
    /// All pages, and the words of all their texts and of all links to them.
    pub(crate) documents: u64,
    pub(crate) text_tokens: u64,
    pub(crate) anchor_tokens: u64,
    pub(crate) languages: Vec<Lang>,
}

impl Snapshot {
    /// Opens the index on this disk; nothing if there is none.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Option<Snapshot>> {
        // A part may be merged away between the list and its files: then the list is another.
        let mut tried = 0;
        loop {
            let Some(list) = Manifest::load(&*disk)? else { return Ok(None) };
            match Snapshot::of(disk.clone(), list, &[]) {
                Err(error) if is_gone(&error) && tried < 5 => tried += 1,
                opened => return opened.map(Some),
            }
        }
    }

    /// An index in which nothing is yet.
    pub fn empty(disk: Arc<dyn Disk>) -> Result<Snapshot> {
        Snapshot::of(disk, Manifest::default(), &[])
    }

    /// A newer snapshot, if the list is another by now.
    pub fn renewed(&self) -> Result<Option<Snapshot>> {
        let Some(list) = Manifest::load(&*self.disk)? else { return Ok(None) };
        if list == self.list {
            return Ok(None);
        }
        match Snapshot::of(self.disk.clone(), list, &self.shelves) {
            Err(error) if is_gone(&error) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn of(disk: Arc<dyn Disk>, list: Manifest, known: &[Shelf]) -> Result<Snapshot> {
        let fields = known.first().map_or_else(|| Arc::new(Fields::default()), |shelf| shelf.part.fields.clone());
        let mut shelves = Vec::new();
        for listed in &list.parts {
            let known = known
                .iter()
                .find(|shelf| shelf.listed.number == listed.number && shelf.listed.has_late == listed.has_late);
            let part = match known {
                Some(shelf) => shelf.part.clone(),
                None => Arc::new(Part::open(disk.clone(), fields.clone(), listed)?),
            };
            shelves.push(Shelf::new(part, listed.clone()));
        }
        let (mut documents, mut text_tokens, mut anchor_tokens) = (0, 0, 0);
        let mut languages = Vec::new();
        for shelf in &shelves {
            let segment = shelf.part.segment();
            documents += u64::from(segment.max_doc());
            text_tokens += shelf.part.tokens;
            anchor_tokens += shelf.part.late.as_ref().map_or(0, |late| late.tokens);
            for (code, n) in &shelf.listed.languages {
                count(&mut languages, Lang::of(code).code(), *n);
            }
        }
        languages.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let all: u32 = languages.iter().map(|(_, n)| n).sum();
        let often = languages.iter().filter(|(_, n)| n.saturating_mul(RARE_LANGUAGE) >= all).take(LANGUAGES_MAX);
        let languages = often.map(|(code, _)| Lang::of(code)).collect();
        Ok(Snapshot { disk, list, shelves, documents, text_tokens, anchor_tokens, languages })
    }

    /// What the list says.
    pub fn list(&self) -> &Manifest {
        &self.list
    }

    /// Pages that can be found.
    pub fn pages(&self) -> u64 {
        self.list.parts.iter().map(|part| u64::from(part.alive())).sum()
    }

    /// The shelves in the order in which they are asked: those with the best pages first.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.shelves.len()).collect();
        let quality = |i: &usize| self.shelves[*i].quality_max();
        order.sort_by(|a, b| quality(b).total_cmp(&quality(a)).then(a.cmp(b)));
        order
    }

    /// The page with this fingerprint: its shelf and its place there.
    pub fn find(&self, id: u64) -> Option<(usize, DocId)> {
        self.shelves
            .iter()
            .enumerate()
            .find_map(|(at, shelf)| shelf.part.find(id).find(|doc| !shelf.dead.contains(doc)).map(|doc| (at, doc)))
    }

    /// Whether a page is a duplicate of one that can still be found. Of two that were found to be duplicates of each other, one after the
    /// other, one stands for both.
    pub(crate) fn is_stood_for(&self, shelf: &Shelf, doc: DocId) -> bool {
        let Some(of) = shelf.duplicates.get(&doc) else { return false };
        let own = shelf.part.columns.id.get_val(doc);
        let is_of_this = |at: usize, other: DocId| self.shelves[at].duplicates.get(&other) == Some(&own);
        *of != own && self.find(*of).is_some_and(|(at, other)| own > *of || !is_of_this(at, other))
    }

    /// Where the visit of the page with this fingerprint lies in the log.
    pub fn visit_of(&self, id: u64) -> Option<u64> {
        self.find(id).map(|(at, doc)| self.shelves[at].part.columns.visit.get_val(doc))
    }

    /// The address of the page with this fingerprint.
    pub fn url_of(&self, id: u64) -> Option<String> {
        let (at, doc_id) = self.find(id)?;
        let part = &self.shelves[at].part;
        let document: tantivy::TantivyDocument =
            part.searcher().doc(tantivy::DocAddress { segment_ord: 0, doc_id }).ok()?;
        Some(crate::shown(&document, part.fields.shown_url).to_string())
    }

    /// The words of all parts.
    pub(crate) fn vocabularies(&self) -> Result<Vec<&Words>> {
        self.shelves.iter().map(|shelf| shelf.part.words()).collect()
    }

    /// Words that begin so, the most frequent first.
    pub fn starting_with(&self, prefix: &str, max: usize) -> Result<Vec<(String, u64)>> {
        let prefix = crate::analysis::plain(prefix);
        Ok(words::starting_with(&self.vocabularies()?, &prefix, max))
    }

    /// A word that may have been meant instead.
    pub fn meant(&self, word: &str) -> Result<Option<String>> {
        let word = crate::analysis::plain(word);
        Ok(words::suggest(&self.vocabularies()?, &word, &words::SuggestOptions::default()).map(|s| s.word))
    }
}

fn is_gone(error: &IndexError) -> bool {
    match error {
        IndexError::Store(StoreError::Io { source, .. }) => source.kind() == std::io::ErrorKind::NotFound,
        IndexError::Tantivy(tantivy::TantivyError::OpenReadError(e)) => {
            matches!(e, tantivy::directory::error::OpenReadError::FileDoesNotExist(_))
        }
        _ => false,
    }
}
