//! From the clauses of a query to what is looked up: words with their forms in every language of the index, and conditions.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{BooleanQuery, PhraseQuery, Query as Condition, RangeQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Term};

use super::candidates::DocsQuery;
use super::score::{Bonus, Ranking};
use super::{Outside, Request, Shelf, Snapshot};
use crate::Result;
use crate::analysis::language::Lang;
use crate::analysis::split::split;
use crate::analysis::{self, Analyzer};
use crate::query::{Occur, What};

/// Words that one prefix stands for.
const PREFIX_WORDS_MAX: usize = 64;
/// Queries of up to so many words are asked for pages with all of them first.
const SHORT_WORDS_MAX: usize = 5;
/// How much a word counts that is there twice: as in BM25, with k3.
const K3: f64 = 8.0;
/// BM25's k1, which tantivy has fixed, and what it multiplies with for it.
pub(super) const K1: f64 = 1.2;
pub(super) const B: f64 = 0.75;

/// A form of a word in the index.
#[derive(Clone, Debug)]
pub struct Form {
    /// As a term.
    pub term: Term,
    /// How rare it is: ln(1 + (N − n + 0.5) / (n + 0.5)).
    pub idf: f64,
    /// How many pages have it.
    pub pages: u64,
}

/// A word that is looked for.
#[derive(Clone, Debug)]
pub struct Word {
    /// As typed.
    pub typed: String,
    /// Its terms, one for each way that a language of the index has it.
    pub terms: Vec<String>,
    /// How often it counts.
    pub weight: f64,
    /// Whether pages must have it.
    pub required: bool,
    /// Whether it was not typed, but is said by pages that answer.
    pub expanded: bool,
    /// In texts.
    pub text: Vec<Form>,
    /// In what links say.
    pub anchor: Vec<Form>,
}

impl Word {
    /// How much it counts among the words of the query.
    pub(super) fn mass(&self) -> f64 {
        let idf = self.text.iter().chain(&self.anchor).map(|form| form.idf).fold(0.0, f64::max);
        self.weight * idf
    }
}

/// Which duplicates are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// None.
    Hidden,
    /// All.
    Shown,
}

/// What is looked up.
pub struct Plan {
    /// The words, in the order of the query.
    pub words: Vec<Word>,
    /// What pages must fulfil, or must not.
    pub(super) conditions: Vec<(tantivy::query::Occur, Box<dyn Condition>)>,
    /// Whether nothing can match.
    pub is_nothing: bool,
    /// Whether one site was asked for, so that its pages are not grouped.
    pub is_of_one_site: bool,
    /// Which duplicates are shown.
    pub duplicates: Duplicates,
    /// Words of all texts divided by pages, and the same for links.
    pub(super) text_average: f64,
    pub(super) anchor_average: f64,
}

impl Plan {
    pub(super) fn make(index: &Snapshot, request: &Request<'_>, outside: &dyn Outside) -> Result<Plan> {
        let documents = index.documents.max(1) as f64;
        let mut plan = Plan {
            words: Vec::new(),
            conditions: Vec::new(),
            is_nothing: index.shelves.is_empty() || request.query.clauses.is_empty(),
            is_of_one_site: false,
            duplicates: Duplicates::Hidden,
            text_average: (index.text_tokens as f64 / documents).max(1e-3),
            anchor_average: (index.anchor_tokens as f64 / documents).max(1e-3),
        };
        if plan.is_nothing {
            return Ok(plan);
        }
        let mut languages = index.languages.clone();
        for clause in &request.query.clauses {
            if let (What::Lang(code), true) = (&clause.what, clause.occur != Occur::Excluded) {
                languages = vec![Lang::of(code)];
            }
        }
        if languages.is_empty() {
            languages.push(Lang::default());
        }
        let mut builder = Builder { index, languages, plan: &mut plan, outside };
        for clause in &request.query.clauses {
            builder.clause(clause.occur, &clause.what)?;
        }
        let languages = std::mem::take(&mut builder.languages);
        plan.drop_common_words(&languages);
        plan.unite_words();
        for word in &mut plan.words {
            index.look_up(word)?;
        }
        let is_known = |word: &Word| !word.text.is_empty() || !word.anchor.is_empty();
        // A page has to have one of the words, and those that are required.
        plan.is_nothing |= !plan.words.is_empty() && !plan.words.iter().any(is_known);
        plan.is_nothing |= plan.words.iter().any(|word| word.required && !is_known(word));
        if plan.words.is_empty() && !plan.conditions.iter().any(|(occur, _)| *occur == tantivy::query::Occur::Must) {
            // Nothing was asked for, or only what pages must not be.
            let only_excluded = !plan.conditions.is_empty() || plan.duplicates == Duplicates::Shown;
            if only_excluded {
                plan.conditions.push((tantivy::query::Occur::Must, Box::new(tantivy::query::AllQuery)));
            } else {
                plan.is_nothing = true;
            }
        }
        Ok(plan)
    }

    /// Words that every text has say nothing, as long as there are others.
    fn drop_common_words(&mut self, languages: &[Lang]) {
        let is_common = |word: &Word| {
            let lower = analysis::plain(&word.typed);
            !word.required && languages.iter().take(2).any(|lang| lang.is_common(&lower))
        };
        if self.words.iter().any(|word| !is_common(word)) {
            self.words.retain(|word| !is_common(word));
        }
    }

    /// A word that is there several times counts more.
    fn unite_words(&mut self) {
        let mut united: Vec<(Word, u32)> = Vec::new();
        for word in std::mem::take(&mut self.words) {
            match united.iter_mut().find(|(known, _)| known.terms == word.terms) {
                Some((known, times)) => {
                    *times += 1;
                    known.required |= word.required;
                }
                None => united.push((word, 1)),
            }
        }
        self.words.extend(united.into_iter().map(|(mut word, times)| {
            word.weight *= (K3 + 1.0) * f64::from(times) / (K3 + f64::from(times));
            word
        }));
    }

    /// Whether the query describes something, rather than naming it.
    pub(super) fn is_verbose(&self, ranking: &Ranking) -> bool {
        self.words.len() > ranking.verbose_words && ranking.feedback > 0.0
    }

    /// The most that the words that were typed can bring.
    pub(super) fn mass(&self) -> f64 {
        self.words.iter().filter(|word| !word.expanded).map(Word::mass).sum::<f64>() * (K1 + 1.0)
    }

    pub(super) fn bonus(&self, request: &Request<'_>, ranking: &Ranking) -> Bonus {
        Bonus::of(self, request.fresh, ranking)
    }

    /// The most that a page of this shelf can score; nothing if none can match.
    pub(super) fn ceiling(&self, shelf: &Shelf, bonus: &Bonus) -> Result<Option<f64>> {
        let mut ceiling = 0.0;
        let mut any = self.words.is_empty();
        let part = &shelf.part;
        for word in &self.words {
            let mut has = false;
            for form in &word.text {
                let most = part.ceilings.of(part.segment(), &form.term, self.text_average)?;
                ceiling += word.weight * form.idf * (K1 + 1.0) * most;
                has |= most > 0.0;
            }
            if let Some(late) = &part.late {
                for form in &word.anchor {
                    let most = late.ceilings.of(late.segment(), &form.term, self.anchor_average)?;
                    ceiling += bonus.anchor * word.weight * form.idf * (K1 + 1.0) * most;
                    has |= most > 0.0;
                }
            }
            if word.required && !has {
                return Ok(None);
            }
            any |= has;
        }
        Ok(any.then(|| (ceiling + bonus.most(shelf)) * (1.0 + 1e-9)))
    }

    /// Whether pages with all words are looked for first: it takes two words at least, and few enough to be expected together.
    pub(super) fn is_short(&self) -> bool {
        (2..=SHORT_WORDS_MAX).contains(&self.words.len())
            && self.conditions.is_empty()
            && self.words.iter().all(|word| !word.required && !word.expanded)
    }

    /// The most that links can bring to a page of this shelf.
    pub(super) fn anchor_ceiling(&self, shelf: &Shelf, bonus: &Bonus) -> Result<f64> {
        let mut ceiling = 0.0;
        if let Some(late) = &shelf.part.late {
            for word in &self.words {
                for form in &word.anchor {
                    let most = late.ceilings.of(late.segment(), &form.term, self.anchor_average)?;
                    ceiling += bonus.anchor * word.weight * form.idf * (K1 + 1.0) * most;
                }
            }
        }
        Ok(ceiling * (1.0 + 1e-9))
    }

    /// The terms that are highlighted, each with the number of its word.
    pub(super) fn shown_terms(&self) -> impl Iterator<Item = (&str, u32)> {
        let typed = self.words.iter().filter(|word| !word.expanded);
        typed.zip(0..).flat_map(|(word, i)| word.terms.iter().map(move |term| (term.as_str(), i)))
    }

    /// How much each of these words counts.
    pub(super) fn shown_weights(&self) -> Vec<f32> {
        self.words.iter().filter(|word| !word.expanded).map(|word| word.mass() as f32).collect()
    }
}

impl Snapshot {
    /// Finds out how rare the forms of a word are.
    pub(super) fn look_up(&self, word: &mut Word) -> Result<()> {
        let documents = self.documents as f64;
        let idf = |pages: u64| (1.0 + (documents - pages as f64 + 0.5) / (pages as f64 + 0.5)).ln();
        for term in &word.terms {
            let Some(shelf) = self.shelves.first() else { return Ok(()) };
            let in_text = Term::from_field_text(shelf.part.fields.text, term);
            let (mut texts, mut anchors, mut in_anchor) = (0, 0, None);
            for shelf in &self.shelves {
                texts += u64::from(shelf.part.segment().inverted_index(shelf.part.fields.text)?.doc_freq(&in_text)?);
                if let Some(late) = &shelf.part.late {
                    let term = Term::from_field_text(late.fields.anchor, term);
                    anchors += u64::from(late.segment().inverted_index(late.fields.anchor)?.doc_freq(&term)?);
                    in_anchor = Some(term);
                }
            }
            // A word is as rare as it is, wherever it stands: few pages have links, which makes every word rare among those.
            let idf = idf(texts.max(anchors));
            word.text.push(Form { term: in_text, idf, pages: texts });
            if let Some(term) = in_anchor.filter(|_| anchors > 0) {
                word.anchor.push(Form { term, idf, pages: anchors });
            }
        }
        // A form that nobody has would only make the word look rare.
        word.text.retain(|form| form.pages > 0);
        Ok(())
    }
}

struct Builder<'a> {
    index: &'a Snapshot,
    languages: Vec<Lang>,
    plan: &'a mut Plan,
    outside: &'a dyn Outside,
}

impl Builder<'_> {
    fn clause(&mut self, occur: Occur, what: &What) -> Result<()> {
        let fields = self.index.shelves[0].part.fields.clone();
        match what {
            What::Word(word) => self.word(occur, word),
            What::Prefix(prefix) => self.prefix(occur, prefix)?,
            What::Phrase(words) => self.phrase(occur, words, fields.text),
            What::InTitle(words) => {
                self.phrase_condition(occur, words, fields.title, true);
                if occur != Occur::Excluded {
                    words.iter().for_each(|word| self.word(Occur::Wanted, word));
                }
            }
            What::InUrl(words) => self.phrase_condition(occur, words, fields.address, false),
            What::Site(host) => self.site(occur, host),
            What::SitePath { host, path } => {
                // Both at once: who leaves out a part of a site does not leave out all of it.
                let host = self.outside.site(host);
                let mut both = vec![term_condition(fields.site, &host)];
                let address = format!("{host} {}", crate::page::decoded(path));
                both.extend(self.phrase_query(&[address], fields.address, false));
                self.plan.is_of_one_site |= occur != Occur::Excluded;
                self.condition(occur, Box::new(BooleanQuery::intersection(both)));
            }
            What::Lang(code) => {
                let known = Lang::of(code).code();
                self.condition(occur, term_condition(fields.lang, if known.is_empty() { code } else { known }));
            }
            What::Type(kind) => self.condition(occur, term_condition(fields.kind, kind)),
            What::After(at) => {
                let bound = Bound::Included(Term::from_field_i64(fields.date, *at));
                self.condition(occur, Box::new(RangeQuery::new(bound, Bound::Unbounded)));
            }
            What::Before(at) => {
                let bound = Bound::Excluded(Term::from_field_i64(fields.date, *at));
                self.condition(occur, Box::new(RangeQuery::new(Bound::Unbounded, bound)));
            }
            What::Link(url) => {
                let ids = self.outside.linking(url);
                let docs = self.docs(|shelf| ids.iter().flat_map(|id| shelf.part.find(*id)).collect());
                self.condition(occur, Box::new(docs));
            }
            What::Duplicate(url) => {
                self.plan.duplicates = Duplicates::Shown;
                if let Some(url) = url {
                    let of = self.outside.id(url);
                    let docs = self.docs(|shelf| {
                        shelf.duplicates.iter().filter(|(_, id)| Some(**id) == of).map(|(doc, _)| *doc).collect()
                    });
                    self.condition(occur, Box::new(docs));
                } else if occur == Occur::Required {
                    let docs = self.docs(|shelf| shelf.duplicates.keys().copied().collect());
                    self.condition(occur, Box::new(docs));
                }
            }
        }
        Ok(())
    }

    fn docs(&self, find: impl Fn(&Shelf) -> Vec<DocId>) -> DocsQuery {
        let of = |shelf: &Shelf| (shelf.part.segment().segment_id(), find(shelf));
        DocsQuery(Arc::new(self.index.shelves.iter().map(of).collect::<HashMap<SegmentId, Vec<DocId>>>()))
    }

    fn condition(&mut self, occur: Occur, condition: Box<dyn Condition>) {
        let occur = match occur {
            Occur::Excluded => tantivy::query::Occur::MustNot,
            _ => tantivy::query::Occur::Must,
        };
        self.plan.conditions.push((occur, condition));
    }

    fn site(&mut self, occur: Occur, host: &str) {
        let site = self.index.shelves[0].part.fields.site;
        self.plan.is_of_one_site |= occur != Occur::Excluded;
        self.condition(occur, term_condition(site, &self.outside.site(host)));
    }

    /// The terms of what was typed, in each language: as many pieces in each.
    fn pieces(&self, typed: &str) -> Vec<(String, Vec<String>)> {
        let mut pieces = Vec::new();
        split(typed, |piece| pieces.push((typed[piece.start..piece.end].to_string(), Vec::<String>::new())));
        for lang in &self.languages {
            let mut at = 0;
            Analyzer::default().terms(*lang, typed, |term, _| {
                if !pieces[at].1.iter().any(|known| known == term) {
                    pieces[at].1.push(term.to_string());
                }
                at += 1;
            });
        }
        pieces
    }

    fn word(&mut self, occur: Occur, typed: &str) {
        let pieces = self.pieces(typed);
        if occur == Occur::Excluded {
            let field = self.index.shelves[0].part.fields.text;
            return self.phrase_condition(occur, &[typed.to_string()], field, true);
        }
        for (typed, terms) in pieces {
            self.push(typed, terms, occur == Occur::Required);
        }
    }

    fn push(&mut self, typed: String, terms: Vec<String>, required: bool) {
        if !terms.is_empty() {
            let (text, anchor) = (Vec::new(), Vec::new());
            self.plan.words.push(Word { typed, terms, weight: 1.0, required, expanded: false, text, anchor });
        }
    }

    fn prefix(&mut self, occur: Occur, prefix: &str) -> Result<()> {
        let field = self.index.shelves[0].part.fields.text;
        let mut terms = Vec::new();
        for (word, _) in self.index.starting_with(prefix, PREFIX_WORDS_MAX)? {
            for lang in &self.languages {
                terms.extend(analysis::term(*lang, &word).filter(|term| !terms.contains(term)));
            }
        }
        if terms.is_empty() {
            // Nobody has such a word: as a word of its own it is not found either.
            terms.extend(analysis::term(Lang::default(), prefix));
        }
        if occur == Occur::Excluded {
            let any = terms.iter().map(|term| term_condition(field, term)).collect();
            self.condition(occur, Box::new(BooleanQuery::union(any)));
        } else {
            self.push(format!("{prefix}*"), terms, occur == Occur::Required);
        }
        Ok(())
    }

    fn phrase(&mut self, occur: Occur, words: &[String], field: Field) {
        self.phrase_condition(occur, words, field, true);
        if occur != Occur::Excluded {
            for (typed, terms) in words.iter().flat_map(|word| self.pieces(word)).collect::<Vec<_>>() {
                self.push(typed, terms, false);
            }
        }
    }

    /// Pages must have these words one after the other.
    fn phrase_condition(&mut self, occur: Occur, words: &[String], field: Field, stemmed: bool) {
        if let Some(phrase) = self.phrase_query(words, field, stemmed) {
            self.condition(occur, phrase);
        }
    }

    /// These words one after the other, in any of the languages; nothing if there are none.
    fn phrase_query(&self, words: &[String], field: Field, stemmed: bool) -> Option<Box<dyn Condition>> {
        let none = [Lang::default()];
        let languages = if stemmed { &self.languages[..] } else { &none };
        let mut ways: Vec<Vec<Term>> = Vec::new();
        for lang in languages {
            let mut terms = Vec::new();
            let mut analyzer = Analyzer::default();
            for word in words {
                analyzer.terms(*lang, word, |term, _| terms.push(Term::from_field_text(field, term)));
            }
            if !ways.contains(&terms) {
                ways.push(terms);
            }
        }
        let conditions: Vec<Box<dyn Condition>> = ways
            .into_iter()
            .filter_map(|mut terms| match terms.len() {
                0 => None,
                1 => Some(Box::new(TermQuery::new(terms.remove(0), IndexRecordOption::Basic)) as Box<dyn Condition>),
                _ => Some(Box::new(PhraseQuery::new(terms)) as Box<dyn Condition>),
            })
            .collect();
        (!conditions.is_empty()).then(|| Box::new(BooleanQuery::union(conditions)) as Box<dyn Condition>)
    }
}

fn term_condition(field: Field, text: &str) -> Box<dyn Condition> {
    Box::new(TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::Basic))
}
