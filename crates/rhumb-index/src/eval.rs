//! How good the ranking is: a judged collection is indexed and asked as a crawl would be, and what comes back is measured as trec_eval does.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use rhumb_store::disk::{Disk, Overlay, RealDisk};

use crate::Result;
use crate::arrange::Arrangement;
use crate::late::{Link, LinkSource};
use crate::page::{Page, Weights};
use crate::query::{Clause, Occur, Query, What};
use crate::search::{Nothing, RESULTS_MAX, Ranking, Request, Snapshot};
use crate::store::Writer;

/// Memory for documents that are not indexed yet.
const MEMORY_BYTES: usize = 64 << 20;

/// A document of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its name.
    pub id: String,
    /// What it says.
    pub text: String,
    /// Its title, if it has one.
    pub title: String,
    /// Its address, if it has one.
    pub url: String,
}

/// A collection that can be searched.
pub struct Collection {
    names: Vec<String>,
    index: Snapshot,
}

/// Nobody links to anybody.
struct NoLinks;

impl LinkSource for NoLinks {
    fn each_link(&mut self, _: &mut dyn FnMut(&Link<'_>)) -> Result<()> {
        Ok(())
    }

    fn quality(&mut self, _: &str) -> Option<f32> {
        None
    }

    fn has_ranks(&self) -> bool {
        false
    }
}

/// For each query the documents that were found, best first, with their scores.
pub type Results = Vec<(String, Vec<(String, f64)>)>;

impl Collection {
    /// Indexes documents, in memory.
    pub fn index(documents: &[Document], weights: Weights) -> Result<Collection> {
        // Nothing is there, and nothing is written there: all changes stay in memory.
        let disk: Arc<dyn Disk> = Overlay::new(RealDisk::new(Path::new("/nonexistent")));
        let mut writer = Writer::open(disk.clone(), weights, MEMORY_BYTES)?;
        for (id, document) in documents.iter().enumerate() {
            writer.add(&Page {
                id: id as u64,
                url: &document.url,
                title: &document.title,
                text: &document.text,
                kind: "text",
                ..Page::default()
            })?;
            if writer.is_full() {
                writer.flush()?;
            }
        }
        writer.settle(&mut NoLinks, &Arrangement { shares: Vec::new(), ..Arrangement::default() }, 0)?;
        let index = Snapshot::open(disk)?.expect("just written");
        Ok(Collection { names: documents.iter().map(|document| document.id.clone()).collect(), index })
    }

    /// Asks all queries.
    pub fn run(&self, queries: &[(String, String)], ranking: &Ranking) -> Result<Results> {
        let mut results = Vec::new();
        for (name, text) in queries {
            let query = plain(text);
            let request = Request { grouped: false, counted: false, ..Request::new(&query, RESULTS_MAX) };
            let (found, _) = self.index.search(&request, ranking, &Nothing)?;
            let named = found.hits.iter().map(|hit| (self.names[hit.id as usize].clone(), hit.score));
            results.push((name.clone(), named.collect()));
        }
        Ok(results)
    }
}

/// A query in which nothing is an operator: judged ones are sentences.
fn plain(text: &str) -> Query {
    let words =
        text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}').filter(|word| !word.is_empty());
    let clause = |word: &str| Clause { occur: Occur::Wanted, what: What::Word(word.to_string()), span: 0..0 };
    Query { text: text.to_string(), clauses: words.map(clause).collect(), notes: Vec::new() }
}

/// Which documents are relevant for which query, and how much.
#[derive(Clone, Debug, Default)]
pub struct Judged(BTreeMap<String, HashMap<String, f64>>);

/// Figures of a ranking, the mean over all queries that have a relevant document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Mean average precision.
    pub map: f64,
    /// Normalised discounted cumulative gain of the first ten.
    pub ndcg10: f64,
    /// The share of the relevant documents among the first hundred.
    pub recall100: f64,
    /// Queries that counted.
    pub queries: usize,
}

impl Judged {
    /// Notes a judgment; above zero is relevant.
    pub fn add(&mut self, query: &str, document: &str, relevance: f64) {
        self.0.entry(query.to_string()).or_default().insert(document.to_string(), relevance);
    }

    /// Whether nothing was judged.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Measures results. A query without results counts as one with nothing relevant.
    pub fn measure(&self, results: &Results) -> Figures {
        let found: HashMap<&str, &Vec<(String, f64)>> = results.iter().map(|(q, found)| (q.as_str(), found)).collect();
        let mut sum = Figures::default();
        for (query, judged) in &self.0 {
            let relevant = judged.values().filter(|r| **r > 0.0).count();
            // Queries that were not asked at all are not of this run.
            let Some(found) = found.get(query.as_str()).filter(|_| relevant > 0) else { continue };
            let gains: Vec<f64> = found.iter().map(|(d, _)| judged.get(d).copied().unwrap_or(0.0).max(0.0)).collect();
            sum.map += average_precision(&gains, relevant);
            sum.ndcg10 += ndcg(&gains, judged.values().copied(), 10);
            sum.recall100 += gains.iter().take(100).filter(|g| **g > 0.0).count() as f64 / relevant as f64;
            sum.queries += 1;
        }
        let n = sum.queries.max(1) as f64;
        Figures { map: sum.map / n, ndcg10: sum.ndcg10 / n, recall100: sum.recall100 / n, queries: sum.queries }
    }
}

fn average_precision(gains: &[f64], relevant: usize) -> f64 {
    let (mut met, mut sum) = (0.0, 0.0);
    for (at, gain) in gains.iter().enumerate() {
        if *gain > 0.0 {
            met += 1.0;
            sum += met / (at + 1) as f64;
        }
    }
    sum / relevant as f64
}

fn ndcg(gains: &[f64], judged: impl Iterator<Item = f64>, depth: usize) -> f64 {
    let discounted = |gains: &mut dyn Iterator<Item = f64>| -> f64 {
        gains.take(depth).enumerate().map(|(at, gain)| gain / ((at + 2) as f64).log2()).sum()
    };
    let mut ideal: Vec<f64> = judged.filter(|r| *r > 0.0).collect();
    ideal.sort_unstable_by(|a, b| b.total_cmp(a));
    discounted(&mut gains.iter().copied()) / discounted(&mut ideal.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures computed by hand.
    #[test]
    fn results_are_measured_as_trec_eval_does() {
        let mut judged = Judged::default();
        for (query, document, relevance) in
            [("1", "a", 1.0), ("1", "b", 2.0), ("1", "c", 0.0), ("2", "a", 1.0), ("3", "x", -1.0), ("4", "a", 1.0)]
        {
            judged.add(query, document, relevance);
        }
        let found = |names: &[&str]| names.iter().map(|n| (n.to_string(), 1.0)).collect::<Vec<_>>();
        let results = vec![("1".to_string(), found(&["c", "a", "b"])), ("2".to_string(), found(&[]))];
        let figures = judged.measure(&results);
        let log = |n: f64| n.log2();
        let ndcg = (1.0 / log(3.0) + 2.0 / log(4.0)) / (2.0 + 1.0 / log(3.0));
        let expected =
            Figures { map: (1.0 / 2.0 + 2.0 / 3.0) / 2.0 / 2.0, ndcg10: ndcg / 2.0, recall100: 0.5, queries: 2 };
        assert!((figures.map - expected.map).abs() < 1e-12 && (figures.ndcg10 - expected.ndcg10).abs() < 1e-12);
        assert_eq!((figures.recall100, figures.queries), (expected.recall100, expected.queries));
    }

    #[test]
    fn a_collection_is_searched() {
        let document = |id: &str, text: &str| Document { id: id.into(), text: text.into(), ..Document::default() };
        let documents = [
            document("d1", "boundary layers in supersonic flow"),
            document("d2", "the history of tea"),
            document("d3", "flow of rivers"),
        ];
        let collection = Collection::index(&documents, Weights::default()).expect("indexed");
        let queries =
            [("q".to_string(), "What is known of supersonic \"flows\" -- and AND of boundary-layers?".to_string())];
        let results = collection.run(&queries, &Ranking::default()).expect("asked");
        let names: Vec<&str> = results[0].1.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["d1", "d3"]);
    }
}
