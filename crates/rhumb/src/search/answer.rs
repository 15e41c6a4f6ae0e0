//! What can be asked of the text index, and the answers, the same for the command line, HTTP and the pages.

use serde::Serialize;
use utoipa::ToSchema;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAsk {
    /// The query, as typed.
    pub query: String,
    /// Results wanted.
    pub limit: usize,
    /// Results passed over first.
    pub offset: usize,
    /// Whether newer pages come sooner.
    pub fresh: bool,
    /// Whether a host may have more than two results.
    pub ungrouped: bool,
    /// Whether each result tells how its score came about.
    pub explain: bool,
}

impl SearchAsk {
    /// The first results of a query.
    pub fn new(query: &str, limit: usize) -> SearchAsk {
        SearchAsk { query: query.to_string(), limit, offset: 0, fresh: false, ungrouped: false, explain: false }
    }
}

/// The results of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct SearchAnswer {
    /// The query, as typed.
    pub query: String,
    /// How many pages match, those of hosts with many results included.
    pub total: u64,
    /// Whether they were counted; otherwise `total` is an estimate.
    pub total_exact: bool,
    /// Results passed over first.
    pub offset: usize,
    /// The results, best first.
    pub results: Vec<SearchResult>,
    /// Whether there are more behind them.
    pub more: bool,
    /// The query as it may have been meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// What of the query could not be used, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Pages that can be found.
    pub pages: u64,
    /// The last tier that had to be asked: 1 if the first had all the answers.
    pub tier: u8,
    /// Time from question to answer.
    pub took_us: u64,
}

/// One page among the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct SearchResult {
    /// Its address.
    pub url: String,
    /// Its host.
    pub host: String,
    /// Its title; its address if it has none.
    pub title: String,
    /// The part of its text that answers best.
    pub snippet: String,
    /// What of the snippet matches: beginnings and ends, in characters (Unicode scalar values).
    pub highlights: Vec<(usize, usize)>,
    /// What of the title matches, in the same way.
    pub title_highlights: Vec<(usize, usize)>,
    /// The score.
    pub score: f64,
    /// When it was changed, as far as is known, else when it was fetched: RFC 3339.
    pub date: String,
    /// When it was fetched, RFC 3339.
    pub fetched: String,
    /// ISO 639 code of its language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What it is: html, pdf, text, feed, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Pages that link to it.
    pub links_in: u64,
    /// Whether a copy can be shown.
    pub cached: bool,
    /// Whether its host has more results that were left out.
    pub more_from_host: bool,
    /// The page that says the same, if this one is a duplicate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_of: Option<String>,
    /// How the score came about, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Vec<ScorePart>>,
}

/// A part of a score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ScorePart {
    /// What it is for.
    pub what: String,
    /// What it adds.
    pub score: f64,
    /// How that was computed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub how: String,
}

/// The archived copy of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cached {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// When it was fetched, RFC 3339.
    pub fetched: String,
    /// Its media type.
    pub media_type: String,
    /// Its text as a reader sees it.
    pub text: String,
    /// Its markup, decoded, if it is HTML.
    pub html: Option<String>,
}
