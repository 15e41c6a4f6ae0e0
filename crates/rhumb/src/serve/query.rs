//! How a question is read from the address of a request, and what can be wrong with it.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Result;
use http::{StatusCode, Uri};

use super::{App, Searched};
use crate::Usage;
use crate::links::answer::HostAnswer;
use crate::search::answer::Cached;

/// What to do where there is nothing to search in.
pub const NO_INDEX: &str =
    "there is no text index here: a crawl keeps one unless --no-index is given, and rhumb rebuild makes it anew";

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// The question makes no sense; 400.
    Wrong(String),
    /// The graph does not know that; 404.
    Unknown(String),
    /// There is no text index; 404.
    NoIndex,
    /// There is no copy of that page; 404.
    NoCopy(String),
    /// Too much is being asked already; 503.
    Busy,
    /// We failed; 500.
    Failed,
}

impl Trouble {
    /// The status that says so.
    pub fn status(&self) -> StatusCode {
        match self {
            Trouble::Wrong(_) => StatusCode::BAD_REQUEST,
            Trouble::Unknown(_) | Trouble::NoIndex | Trouble::NoCopy(_) => StatusCode::NOT_FOUND,
            Trouble::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Trouble::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The sentence that says so. What failed inside is for the log.
    pub fn text(&self) -> &str {
        match self {
            Trouble::Wrong(text) | Trouble::Unknown(text) | Trouble::NoCopy(text) => text,
            Trouble::NoIndex => NO_INDEX,
            Trouble::Busy => "too much is being asked at once; try again in a moment",
            Trouble::Failed => "what was crawled could not be read; the server's log says why",
        }
    }
}

impl From<anyhow::Error> for Trouble {
    fn from(e: anyhow::Error) -> Trouble {
        match e.downcast::<Usage>() {
            Ok(Usage(text)) => Trouble::Wrong(text),
            Err(e) => {
                tracing::error!(error = format!("{e:#}"), "a question could not be answered");
                Trouble::Failed
            }
        }
    }
}

/// The parameters of a request.
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads them; each may be given once and must be one of `known`.
    pub fn of(uri: &Uri, known: &[&str]) -> Result<Query, Trouble> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if !known.contains(&&*name) {
                let known = if known.is_empty() {
                    "there are none".to_string()
                } else {
                    format!("one of {}", known.join(", "))
                };
                return Err(Trouble::Wrong(format!("unknown parameter {name:?}: {known}")));
            }
            if pairs.iter().any(|(n, _)| *n == name) {
                return Err(Trouble::Wrong(format!("{name} is given twice")));
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        Ok(Query(pairs))
    }

    /// A parameter that is there and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.trim()).filter(|v| !v.is_empty())
    }

    /// A parameter as it was typed, spaces around it included.
    pub fn typed(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }

    /// A parameter that must be there.
    pub fn need(&self, name: &str) -> Result<&str, Trouble> {
        self.get(name).ok_or_else(|| Trouble::Wrong(format!("the parameter {name} is missing")))
    }

    /// A number from 1 to `max`.
    pub fn number(&self, name: &str, default: usize, max: usize) -> Result<usize, Trouble> {
        self.within(name, default, 1..=max)
    }

    /// A number of this range.
    pub fn within(&self, name: &str, default: usize, range: RangeInclusive<usize>) -> Result<usize, Trouble> {
        let Some(text) = self.get(name) else { return Ok(default) };
        match usize::from_str(text) {
            Ok(n) if range.contains(&n) => Ok(n),
            _ => Err(Trouble::Wrong(format!("{name} is a number from {} to {}", range.start(), range.end()))),
        }
    }

    /// Whether something is wanted.
    pub fn flag(&self, name: &str) -> Result<bool, Trouble> {
        match self.get(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(Trouble::Wrong(format!("{name} is true or false"))),
        }
    }
}

impl App {
    /// The URLs that someone may mean by `text`, likeliest first: as the crawler would have it, and as it was typed, for graphs
    /// that came from elsewhere.
    fn meant_by(&self, text: &str) -> Vec<String> {
        let mut meant = Vec::with_capacity(3);
        let mut add = |url: String| {
            if !meant.contains(&url) {
                meant.push(url);
            }
        };
        let canonical = |text: &str| self.normalizer.normalize(text, None).ok().map(|url| url.as_str().to_string());
        if text.contains("://") {
            canonical(text).into_iter().for_each(&mut add);
        } else if text.contains(['.', ':', '/']) || text == "localhost" {
            for scheme in ["https://", "http://"] {
                canonical(&format!("{scheme}{text}")).into_iter().for_each(&mut add);
            }
        }
        add(text.to_string());
        meant
    }

    /// The first copy of a page meant by `text`.
    pub fn copy(&self, search: &dyn Searched, text: &str) -> Result<Cached, Trouble> {
        for url in self.meant_by(text) {
            if let Some(copy) = search.cached(&url)? {
                return Ok(copy);
            }
        }
        let why = "it was not archived, or its site asks that no copy be shown";
        Err(Trouble::NoCopy(format!("there is no copy of {}: {why}", shown(text))))
    }

    /// Asks about the first URL meant by `text` that the graph knows.
    pub fn ask<T>(&self, text: &str, ask: impl Fn(&str) -> Result<Option<T>>) -> Result<T, Trouble> {
        let meant = self.meant_by(text);
        for url in &meant {
            if let Some(answer) = ask(url)? {
                return Ok(answer);
            }
        }
        Err(match meant.len() {
            1 if meant[0] == text && !text.contains("://") => Trouble::Wrong(format!("{} is not a URL", shown(text))),
            1 if self.normalizer.normalize(text, None).is_err() => {
                Trouble::Wrong(format!("{} is not a URL", shown(text)))
            }
            _ => Trouble::Unknown(format!("the graph does not know {}", shown(text))),
        })
    }

    /// What is known of a host; its name may be written as in a URL, and with its port.
    pub fn host(&self, text: &str, limit: usize) -> Result<HostAnswer, Trouble> {
        let name =
            self.normalizer.normalize(&format!("http://{text}/"), None).ok().map(|url| url.host_str().to_string());
        for host in name.iter().map(String::as_str).chain([text]) {
            if let Some(answer) = self.asked.host(host, limit)? {
                return Ok(answer);
            }
        }
        Err(Trouble::Unknown(format!("the graph does not know the host {}", shown(text))))
    }

    /// The URL that `text` stands for, if the graph knows it.
    pub fn known(&self, text: &str) -> Result<String, Trouble> {
        self.ask(text, |url| Ok(self.asked.page(url)?.map(|page| page.url)))
    }
}

/// What was asked for, for a message: quoted, and no longer than people read.
pub fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(200).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// What a handler works with.
pub type Shared = axum::extract::State<Arc<App>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fake;

    #[test]
    fn parameters_are_read_or_named() {
        let check = |query: &str, expected: Result<(Option<&str>, usize, bool), &str>| {
            let uri: Uri = format!("/?{query}").parse().expect("a URI");
            let read = Query::of(&uri, &["url", "limit", "anchors"]).and_then(|q| {
                Ok((q.get("url").map(str::to_string), q.number("limit", 100, 1_000)?, q.flag("anchors")?))
            });
            match (read, expected) {
                (Ok(read), Ok(expected)) => assert_eq!((read.0.as_deref(), read.1, read.2), expected, "{query}"),
                (Err(e), Err(expected)) => assert_eq!(e.text(), expected, "{query}"),
                (read, _) => panic!("{query}: {read:?}"),
            }
        };
        check("", Ok((None, 100, false)));
        check("url=", Ok((None, 100, false)));
        check("url=http%3A%2F%2Fa%2F%3Fx%3D1%26y&limit=7&anchors=true", Ok((Some("http://a/?x=1&y"), 7, true)));
        check("url=+a+b+&anchors=0", Ok((Some("a b"), 100, false)));
        check("limit=0", Err("limit is a number from 1 to 1000"));
        check("limit=1001", Err("limit is a number from 1 to 1000"));
        check("limit=-1", Err("limit is a number from 1 to 1000"));
        check("limit=99999999999999999999", Err("limit is a number from 1 to 1000"));
        check("anchors=yes", Err("anchors is true or false"));
        check("url=a&url=b", Err("url is given twice"));
        check("ulr=a", Err("unknown parameter \"ulr\": one of url, limit, anchors"));
    }

    #[test]
    fn what_people_type_is_understood() {
        let app = fake::app();
        let check = |text: &str, expected: &[&str]| assert_eq!(app.meant_by(text), expected, "{text}");
        check("https://Example.com:443/a#b", &["https://example.com/a", "https://Example.com:443/a#b"]);
        check("example.com/a", &["https://example.com/a", "http://example.com/a", "example.com/a"]);
        check("localhost:8080", &["https://localhost:8080/", "http://localhost:8080/", "localhost:8080"]);
        check("javascript:alert(1)", &["javascript:alert(1)"]);
        check("word", &["word"]);
    }
}
