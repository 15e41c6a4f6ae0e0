//! What is exported, in which form, and of which pages.

use std::time::Duration;

use rhumb_core::page::coding::DecodeLimits;
use rhumb_core::page::{Formats, MediaKind, ParseOptions};
use rhumb_core::url::{NormalizeOptions, Url};
use rhumb_store::Timestamp;
use serde_json::json;

use crate::error::{ExportError, Result};

/// The forms an export can have. docs/formats/export.md describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON document a line, a page each.
    Jsonl,
    /// A directory of Markdown files, a page each.
    Markdown,
    /// One table with a row for each page.
    Parquet,
    /// WARC with the text of each page, as Common Crawl has it.
    Wet,
    /// The sorted index of the archive.
    Cdxj,
    /// Archive, index and list of pages in one file.
    Wacz,
}

/// All formats, as they are listed for people.
pub const FORMATS: [Format; 6] =
    [Format::Jsonl, Format::Markdown, Format::Parquet, Format::Wet, Format::Cdxj, Format::Wacz];

impl Format {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Markdown => "markdown",
            Format::Parquet => "parquet",
            Format::Wet => "wet",
            Format::Cdxj => "cdxj",
            Format::Wacz => "wacz",
        }
    }

    /// Whether pages are read, one after the other; the others deal with the archive as a whole.
    pub fn has_rows(self) -> bool {
        !matches!(self, Format::Cdxj | Format::Wacz)
    }

    /// Whether it can be written to a pipe.
    pub fn streams(self) -> bool {
        matches!(self, Format::Jsonl | Format::Wet | Format::Cdxj)
    }
}

/// Which pages are wanted; an empty list wants all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Host names, without port; subdomains count.
    pub hosts: Vec<String>,
    /// What URLs begin with.
    pub prefixes: Vec<String>,
    /// Expressions of which one must match the URL.
    pub matching: Vec<regex::Regex>,
    /// What bodies were found to be.
    pub kinds: Vec<MediaKind>,
    /// Fetched no earlier.
    pub since: Option<Timestamp>,
}

impl Filter {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.prefixes.is_empty()
            && self.matching.is_empty()
            && self.kinds.is_empty()
            && self.since.is_none()
    }

    /// Whether the URL is wanted.
    pub(crate) fn wants_url(&self, url: &Url) -> bool {
        let host = url.host_str();
        let within = |name: &String| host.strip_suffix(name.as_str()).is_some_and(|p| p.is_empty() || p.ends_with('.'));
        (self.hosts.is_empty() || self.hosts.iter().any(within))
            && (self.prefixes.is_empty() || self.prefixes.iter().any(|p| url.as_str().starts_with(p.as_str())))
            && (self.matching.is_empty() || self.matching.iter().any(|m| m.is_match(url.as_str())))
    }

    /// Whether a body of this kind is wanted.
    pub(crate) fn wants_kind(&self, kind: Option<MediaKind>) -> bool {
        self.kinds.is_empty() || kind.is_some_and(|k| self.kinds.contains(&k))
    }
}

/// Everything that is settled before an export begins.
#[derive(Clone, Debug)]
pub struct Options {
    /// The form.
    pub format: Format,
    /// Also what brought no page: failures, redirects, sitemaps.
    pub include_failed: bool,
    /// Whether rows tell the links of a page.
    pub links: bool,
    /// Whether rows tell the text of a page.
    pub text: bool,
    /// Which pages.
    pub filter: Filter,
    /// A row group of a table ends with the row in which it reaches this.
    pub row_group_bytes: usize,
    /// How often, at the most, what is written is made durable, to be gone on with.
    pub commit_every: Duration,
    /// Memory for sorting.
    pub memory_bytes: usize,
    /// Threads that read pages.
    pub threads: usize,
    /// How the crawl parses pages.
    pub parse: ParseOptions,
    /// The formats that the crawl reads.
    pub formats: Formats,
    /// How the crawl makes URLs canonical.
    pub normalize: NormalizeOptions,
    /// The crawl's caps of decoding.
    pub decode: DecodeLimits,
    /// Name and version of the program, for formats that tell.
    pub software: String,
}

impl Options {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        let name = self.format.name();
        let narrowed = !self.filter.is_empty() || self.include_failed || !self.links || !self.text;
        if !self.format.has_rows() && narrowed {
            let what = "holds the whole archive: pages cannot be chosen, and nothing of them be left out";
            return Err(ExportError::Refused(format!("{name} {what}")));
        }
        if matches!(self.format, Format::Markdown | Format::Wet) && !self.text {
            return Err(ExportError::Refused(format!("{name} is nothing but text: --no-text makes no sense")));
        }
        Ok(())
    }

    /// What must be the same for an export to be gone on with.
    pub(crate) fn identity(&self) -> String {
        let matching: Vec<&str> = self.filter.matching.iter().map(regex::Regex::as_str).collect();
        json!({
            "format": self.format.name(), "include_failed": self.include_failed, "links": self.links, "text": self.text,
            "hosts": self.filter.hosts, "prefixes": self.filter.prefixes, "matching": matching,
            "kinds": self.filter.kinds, "since": self.filter.since.map(|t| t.0), "row_group_bytes": self.row_group_bytes, "software": self.software,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_chosen() {
        let check = |filter: &Filter, url: &str, expected: bool| {
            assert_eq!(filter.wants_url(&Url::parse(url).expect("a URL")), expected, "{url}");
        };
        let all = Filter::default();
        check(&all, "http://a.test/", true);
        let host = Filter { hosts: vec!["a.test".into()], ..Filter::default() };
        check(&host, "http://a.test/x", true);
        check(&host, "https://www.a.test:8443/x", true);
        check(&host, "http://ba.test/", false);
        let prefix = Filter { prefixes: vec!["http://a.test/docs/".into()], ..Filter::default() };
        check(&prefix, "http://a.test/docs/1", true);
        check(&prefix, "http://a.test/doc", false);
        let expression = regex::Regex::new("[0-9]$").expect("an expression");
        let both = Filter { matching: vec![expression], ..host };
        check(&both, "http://a.test/1", true);
        check(&both, "http://a.test/x", false);
    }
}
