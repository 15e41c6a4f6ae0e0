//! tantivy as its documentation shows it, to measure ourselves against: the same fields, stemmed by its own tokenizer, one thread; and
//! its own search over the pages of a part.

use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer};
use tantivy::{Index, IndexWriter, TantivyDocument};

use crate::Result;
use crate::page::Page;
use crate::search::{Plan, Snapshot};

/// An index that tantivy writes by itself.
pub struct Bare {
    writer: IndexWriter,
    title: Field,
    headings: Field,
    emphasis: Field,
    body: Field,
    address: Field,
    anchor: Field,
    site: Field,
    lang: Field,
    kind: Field,
    url: Field,
    numbers: [Field; 3],
}

impl Bare {
    /// Begins an index in memory, with so much of it for pages that are not indexed yet.
    pub fn new(memory_bytes: usize) -> Result<Bare> {
        let mut schema = Schema::builder();
        let indexing = |option| TextFieldIndexing::default().set_tokenizer("stemmed").set_index_option(option);
        let words = TextOptions::default().set_indexing_options(indexing(IndexRecordOption::WithFreqsAndPositions));
        let title = schema.add_text_field("title", words.clone() | STORED);
        let headings = schema.add_text_field("headings", words.clone());
        let emphasis = schema.add_text_field("emphasis", words.clone());
        let body = schema.add_text_field("body", words.clone() | STORED);
        let address = schema.add_text_field("address", words.clone());
        let anchor = schema.add_text_field("anchor", words);
        let site = schema.add_text_field("site", STRING | FAST);
        let lang = schema.add_text_field("lang", STRING | FAST);
        let kind = schema.add_text_field("kind", STRING | FAST);
        let url = schema.add_text_field("url", STORED);
        let numbers = ["id", "date", "fetched"].map(|name| schema.add_u64_field(name, FAST));
        let index = Index::create_in_ram(schema.build());
        let stemmed = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(RemoveLongFilter::limit(40))
            .filter(LowerCaser)
            .filter(Stemmer::new(Language::English))
            .build();
        index.tokenizers().register("stemmed", stemmed);
        let writer = index.writer_with_num_threads(1, memory_bytes.max(15 << 20))?;
        Ok(Bare { writer, title, headings, emphasis, body, address, anchor, site, lang, kind, url, numbers })
    }

    /// Adds a page and what links say of it.
    pub fn add(&mut self, page: &Page<'_>, anchors: &str) -> Result<()> {
        let mut document = TantivyDocument::default();
        document.add_text(self.title, page.title);
        for span in page.headings {
            document.add_text(self.headings, &page.text[span.clone()]);
        }
        for span in page.emphasis {
            document.add_text(self.emphasis, &page.text[span.clone()]);
        }
        document.add_text(self.body, page.text);
        document.add_text(self.address, page.url);
        document.add_text(self.anchor, anchors);
        document.add_text(self.site, crate::page::parts(page.url).0);
        document.add_text(self.lang, page.declared);
        document.add_text(self.kind, page.kind);
        document.add_text(self.url, page.url);
        for (field, value) in self.numbers.iter().zip([page.id, page.date_ms as u64, page.fetched_ms as u64]) {
            document.add_u64(*field, value);
        }
        self.writer.add_document(document)?;
        Ok(())
    }

    /// Makes it searchable, and waits for its merges.
    pub fn finish(mut self) -> Result<()> {
        self.writer.commit()?;
        self.writer.wait_merging_threads()?;
        Ok(())
    }
}

/// tantivy's own search for the words of a plan, over an index of one part: the same terms, the same weights. How many it found.
pub fn search(index: &Snapshot, plan: &Plan, limit: usize) -> Result<usize> {
    let part = &index.shelves[0].part;
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for word in &plan.words {
        for form in &word.text {
            let term = TermQuery::new(form.term.clone(), IndexRecordOption::WithFreqs);
            clauses.push((Occur::Should, Box::new(BoostQuery::new(Box::new(term), word.weight as f32))));
        }
    }
    let query = BooleanQuery::new(clauses);
    Ok(part.searcher().search(&query, &TopDocs::with_limit(limit).order_by_score())?.len())
}

/// The same over the texts and over what links say, each on its own: what it costs to ask both.
pub fn search_with_links(index: &Snapshot, plan: &Plan, limit: usize) -> Result<usize> {
    let mut found = search(index, plan, limit)?;
    if let Some(late) = &index.shelves[0].part.late {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for form in plan.words.iter().flat_map(|word| &word.anchor) {
            clauses.push((Occur::Should, Box::new(TermQuery::new(form.term.clone(), IndexRecordOption::WithFreqs))));
        }
        let top = TopDocs::with_limit(limit).order_by_score();
        found += late.searcher().search(&BooleanQuery::new(clauses), &top)?.len();
    }
    Ok(found)
}
