//! The first page where there is a text index: a field, and little else.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::response::Response;
use http::StatusCode;
use maud::html;

use super::parts::counted;
use super::search::{self, place};
use super::{Field, Here, Site, assets, frame, respond};
use crate::search::answer::SearchAsk;
use crate::serve::{App, Searched};

/// How long examples are good for; what can be found changes while a crawl runs.
const EXAMPLES_KEPT: Duration = Duration::from_secs(300);

/// The page, of an index with so many pages.
pub fn render(site: Site, pages: u64, examples: &[String]) -> Response {
    let main = html! {
        div class="front" {
            h1 { img src=(assets::path("icon.svg")) alt="" width="56" height="56"; "rhumb" }
            (search::form("ask", "", false))
            p class="dim" { (counted(pages, "page", "pages")) " can be found." }
            @if !examples.is_empty() {
                ul class="examples" aria-label="Examples" {
                    @for query in examples { li { a href=(place(query, 1, false, false)) { bdi { (query) } } } }
                }
            }
        }
    };
    respond(StatusCode::OK, frame(site, "Search", Here::Search, Field::None, &main))
}

impl App {
    /// Queries to begin with.
    pub(super) fn examples(&self, search: &dyn Searched) -> Result<Vec<String>> {
        let mut known = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((at, examples)) if at.elapsed() < EXAMPLES_KEPT && !examples.is_empty() => Ok(examples.clone()),
            _ => {
                let examples = examples(search)?;
                *known = Some((Instant::now(), examples.clone()));
                Ok(examples)
            }
        }
    }
}

/// Makes up queries that have results: a word, words in a row as a title has them, a word on one host.
fn examples(search: &dyn Searched) -> Result<Vec<String>> {
    let mut words = Vec::new();
    for letter in ["s", "c", "m", "r", "a", "p", "t", "b"] {
        let usable = |word: &String| (5..=14).contains(&word.chars().count()) && word.chars().all(char::is_alphabetic);
        words.extend(search.complete(letter, 20)?.into_iter().find(usable));
        if words.len() == 3 {
            break;
        }
    }
    let mut examples = Vec::new();
    for (n, word) in words.into_iter().enumerate() {
        let found = search.search(&SearchAsk::new(&word, 3))?;
        let query = match (n, found.results.first()) {
            (_, None) => continue,
            (0, _) => Some(word),
            (1, _) => found.results.iter().find_map(|result| phrase(&result.title)).or(Some(word)),
            (_, Some(first)) => Some(format!("{word} site:{}", first.host)),
        };
        let finds = |query: &String| search.search(&SearchAsk::new(query, 1)).is_ok_and(|found| found.total > 0);
        examples.extend(query.filter(finds));
    }
    Ok(examples)
}

/// Two words in a row of a title, as a phrase.
fn phrase(title: &str) -> Option<String> {
    let words: Vec<&str> = title.split(' ').collect();
    let plain = |word: &str| (4..=14).contains(&word.chars().count()) && word.chars().all(char::is_alphabetic);
    let two = words.windows(2).find(|two| two.iter().all(|word| plain(word)))?;
    Some(format!("\"{} {}\"", two[0].to_lowercase(), two[1].to_lowercase()))
}
