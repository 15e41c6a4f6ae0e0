//! The results of a query, a few at a time, and how to ask for others.

use std::collections::BTreeMap;

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};

use super::parts::{counted, in_query, is_web, page_of};
use super::{Field, Here, Site, crumbs, frame, respond};
use crate::display::thousands;
use crate::search::answer::{SearchAnswer, SearchAsk, SearchResult};

/// Results on one page.
pub const RESULTS: usize = 10;
/// Nobody looks further, and every page further costs more than the one before.
pub const PAGES_MAX: usize = 100;

/// What the address of a page of results asks for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub query: String,
    /// The first is 1.
    pub page: usize,
    pub fresh: bool,
    pub ungrouped: bool,
}

impl Asked {
    /// The same as a question to the index.
    pub fn ask(&self) -> SearchAsk {
        SearchAsk {
            offset: (self.page - 1) * RESULTS,
            fresh: self.fresh,
            ungrouped: self.ungrouped,
            ..SearchAsk::new(&self.query, RESULTS)
        }
    }

    /// The address of another page of the same results.
    fn at(&self, page: usize) -> String {
        place(&self.query, page, self.fresh, self.ungrouped)
    }
}

/// The address of a page of results.
pub fn place(query: &str, page: usize, fresh: bool, ungrouped: bool) -> String {
    let mut place = format!("/search?q={}", in_query(query));
    if page > 1 {
        place.push_str(&format!("&page={page}"));
    }
    if fresh {
        place.push_str("&fresh=1");
    }
    if ungrouped {
        place.push_str("&more=1");
    }
    place
}

/// A field for a query.
pub fn form(class: &str, query: &str, fresh: bool) -> Markup {
    html! {
        form class=(class) action="/search" role="search" {
            input type="search" name="q" value=(query) placeholder="Search these pages" aria-label="Search" dir="auto" required
                enterkeyhint="search" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="2048"
                autofocus[class == "ask"] data-query data-suggest="/api/complete";
            @if fresh { input type="hidden" name="fresh" value="1"; }
            button { "Search" }
        }
    }
}

/// The page of these results.
pub fn render(site: Site, asked: &Asked, answer: &SearchAnswer) -> Response {
    let usual = usual_language(&answer.results);
    let main = html! {
        h1 class="unseen" { "Results for " bdi { (asked.query) } }
        div class="found" {
            p { (how_many(asked, answer)) }
            nav class="order" aria-label="Order" {
                a href=(place(&asked.query, 1, false, asked.ungrouped)) aria-current=[(!asked.fresh).then_some("true")] { "Best first" }
                a href=(place(&asked.query, 1, true, asked.ungrouped)) aria-current=[asked.fresh.then_some("true")] { "Newer first" }
            }
        }
        @for note in &answer.notes { p class="note" role="status" dir="auto" { (note) } }
        @if let Some(meant) = &answer.suggestion {
            p class="meant" { "Did you mean " a href=(place(meant, 1, asked.fresh, asked.ungrouped)) { bdi { (meant) } } "?" }
        }
        @if answer.results.is_empty() {
            (nothing(asked))
        } @else {
            ol class="results" start=(answer.offset + 1) {
                @for result in &answer.results { (one(asked, result, usual)) }
            }
            (pager(asked, answer.more))
            @if !asked.ungrouped && answer.results.iter().any(|result| result.more_from_host) {
                p class="dim" {
                    "Of each host the two best pages are shown. "
                    a href=(place(&asked.query, 1, asked.fresh, true)) { "Show all of them" } "."
                }
            }
        }
        (help(answer.results.is_empty()))
    };
    let field = Field::Query(&asked.query, asked.fresh);
    respond(StatusCode::OK, frame(site, &asked.query, Here::Search, field, &main))
}

/// How many pages match, and how long that took.
fn how_many(asked: &Asked, answer: &SearchAnswer) -> String {
    let about = if answer.total_exact { "" } else { "About " };
    let took = match answer.took_us {
        us if us < 100_000 => format!("{:.1} ms", us as f64 / 1_000.0),
        us => format!("{:.2} s", us as f64 / 1_000_000.0),
    };
    let page = if asked.page > 1 { format!("Page {} · ", thousands(asked.page as u64)) } else { String::new() };
    format!("{page}{about}{} · {took}", counted(answer.total, "page", "pages"))
}

/// The language that most of the results are in.
fn usual_language(results: &[SearchResult]) -> Option<&str> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for language in results.iter().filter_map(|result| result.language.as_deref()) {
        *times.entry(language).or_default() += 1;
    }
    times.into_iter().max_by_key(|(_, n)| *n).map(|(language, _)| language)
}

fn one(asked: &Asked, result: &SearchResult, usual: Option<&str>) -> Markup {
    let title = if result.title.trim().is_empty() { &result.url } else { &result.title };
    let title = marked(title, if title == &result.title { &result.title_highlights } else { &[] });
    let language = result.language.as_deref().filter(|code| is_code(code));
    let more = format!("{} site:{}", asked.query, result.host);
    html! {
        li {
            p class="place" { (crumbs::render(&result.url)) }
            h2 dir="auto" lang=[language] {
                @if is_web(&result.url) { a href=(result.url) rel="noreferrer noopener nofollow" { (title) } }
                @else { a href=(page_of(&result.url)) { (title) } }
            }
            @if !result.snippet.trim().is_empty() {
                p class="snippet" dir="auto" lang=[language] { (marked(&result.snippet, &result.highlights)) }
            }
            p class="about" {
                @if result.kind != "html" && !result.kind.is_empty() { span class="tag kind-of" { (result.kind) } }
                @if let Some(code) = language.filter(|code| Some(*code) != usual) { span class="tag" { (language_name(code)) } }
                @if let Some(day) = day(&result.date) { time datetime=(result.date) { (day) } }
                @if result.cached { a href=(format!("/cached?url={}", in_query(&result.url))) { "cached" } }
                a href=(page_of(&result.url)) { @if result.links_in == 0 { "links" } @else { (counted(result.links_in, "link here", "links here")) } }
                @if result.more_from_host {
                    a href=(place(&more, 1, asked.fresh, asked.ungrouped)) { "more from " bdi dir="ltr" { (result.host) } }
                }
                @if let Some(other) = &result.duplicate_of {
                    span { "says the same as " a href=(page_of(other)) { (crumbs::render(other)) } }
                }
            }
        }
    }
}

/// A text with parts of it marked. The parts may be wrong in every way; the text is shown once, in order.
fn marked(text: &str, parts: &[(usize, usize)]) -> Markup {
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    let (mut chars, mut at) = (text.chars(), 0);
    let mut pieces: Vec<(String, bool)> = Vec::new();
    for (begin, end) in parts {
        let begin = begin.max(at);
        if end <= begin {
            continue;
        }
        pieces.push((chars.by_ref().take(begin - at).collect(), false));
        pieces.push((chars.by_ref().take(end - begin).collect(), true));
        at = end;
    }
    pieces.push((chars.collect(), false));
    html! {
        @for (piece, is_match) in pieces.iter().filter(|(piece, _)| !piece.is_empty()) {
            @if *is_match { mark { (piece) } } @else { (piece) }
        }
    }
}

/// Ways to the pages before and behind.
fn pager(asked: &Asked, more: bool) -> Markup {
    let (before, behind) = (asked.page > 1, more && asked.page < PAGES_MAX);
    html! {
        @if before || behind {
            nav class="pager" aria-label="Pages of results" {
                @if before { a rel="prev" href=(asked.at(asked.page - 1)) { "← Previous" } }
                span class="dim" { "Page " (asked.page) }
                @if behind { a rel="next" href=(asked.at(asked.page + 1)) { "Next →" } }
            }
            @if more && !behind { p class="dim" { "Further results are not shown; a longer query finds what they would have." } }
        }
    }
}

fn nothing(asked: &Asked) -> Markup {
    html! {
        section class="nothing" {
            @if asked.page > 1 {
                h2 { "There are no results this far" }
                p { a href=(asked.at(1)) { "To the first results" } }
            } @else {
                h2 { "Nothing found for " bdi { "“" (asked.query) "”" } }
                ul {
                    li { "Fewer or more common words find more." }
                    li { "Is everything spelled as the pages would have it?" }
                    li { "Quotation marks, + and words like site: leave pages out; without them there may be some." }
                }
            }
        }
    }
}

/// The language of queries, and the keys.
fn help(open: bool) -> Markup {
    let rows = [
        ("sea charts", "pages with these words, best those with all of them"),
        ("\"sea charts\"", "the words in a row"),
        ("+sea -war", "this word must be there, that one must not"),
        ("site:example.org", "only this host and those below it"),
        ("intitle:chart  inurl:guide", "a word of the title, a part of the address"),
        ("lang:de  type:pdf", "only this language, only documents of this kind"),
        ("after:2023-05  before:2024", "changed or fetched within these dates"),
        ("link:example.org/a", "pages that link to this one"),
        ("navig*", "words that begin so"),
    ];
    let keys = [
        ("/", "to the field"),
        ("j k", "from result to result"),
        ("Enter", "opens"),
        ("n p", "next, previous page"),
        ("Esc", "leaves the field"),
    ];
    html! {
        details class="help" open[open] {
            summary { "How to ask" }
            dl { @for (query, what) in rows { div { dt { code { (query) } } dd { (what) } } } }
            p class="keys" { "Keys: " @for (key, what) in keys { span { kbd { (key) } " " (what) } " " } }
        }
    }
}

/// Whether a text is a code of ISO 639.
fn is_code(text: &str) -> bool {
    (2..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase())
}

/// A language in English; its code, if it is not among these.
fn language_name(code: &str) -> &str {
    const NAMES: [(&str, &str); 26] = [
        ("ar", "Arabic"),
        ("cs", "Czech"),
        ("da", "Danish"),
        ("de", "German"),
        ("el", "Greek"),
        ("en", "English"),
        ("es", "Spanish"),
        ("fi", "Finnish"),
        ("fr", "French"),
        ("he", "Hebrew"),
        ("hi", "Hindi"),
        ("hu", "Hungarian"),
        ("it", "Italian"),
        ("ja", "Japanese"),
        ("ko", "Korean"),
        ("nb", "Norwegian"),
        ("nl", "Dutch"),
        ("pl", "Polish"),
        ("pt", "Portuguese"),
        ("ro", "Romanian"),
        ("ru", "Russian"),
        ("sv", "Swedish"),
        ("th", "Thai"),
        ("tr", "Turkish"),
        ("uk", "Ukrainian"),
        ("zh", "Chinese"),
    ];
    NAMES.iter().find(|(known, _)| *known == code).map_or(code, |(_, name)| name)
}

/// The day of a moment in RFC 3339, as people write it.
fn day(at: &str) -> Option<String> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = at.get(..10)?.split('-');
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
    let (year, month, day) = (number()?, number()?, number()?);
    Some(format!("{day} {} {year}", MONTHS.get((month as usize).checked_sub(1)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matches_is_marked_whatever_is_said_of_it() {
        let check = |text: &str, parts: &[(usize, usize)], expected: &str| {
            assert_eq!(marked(text, parts).into_string(), expected, "{parts:?}");
        };
        check("a sea chart", &[(2, 5)], "a <mark>sea</mark> chart");
        check("über 漢字", &[(0, 4), (5, 7)], "<mark>über</mark> <mark>漢字</mark>");
        check("<b>&", &[(0, 1), (1, 4)], "<mark>&lt;</mark><mark>b&gt;&amp;</mark>");
        check("abc", &[], "abc");
        check("abc", &[(2, 1), (7, 9), (1, 1)], "abc");
        check("abc", &[(1, 99), (0, 2)], "<mark>ab</mark><mark>c</mark>");
        check("", &[(0, 5)], "");
    }

    #[test]
    fn pages_are_counted_from_one() {
        let at = |page| Asked { query: "a b".to_string(), page, fresh: true, ungrouped: false };
        assert_eq!((at(1).ask().offset, at(100).ask().offset), (0, 990));
        assert_eq!(at(1).at(2), "/search?q=a+b&page=2&fresh=1");
        let check = |page, more, before: bool, behind: bool| {
            let made = pager(&at(page), more).into_string();
            assert_eq!((made.contains("rel=\"prev\""), made.contains("rel=\"next\"")), (before, behind), "{page}");
        };
        check(1, false, false, false);
        check(1, true, false, true);
        check(2, false, true, false);
        check(99, true, true, true);
        check(PAGES_MAX, true, true, false);
    }

    #[test]
    fn days_are_readable() {
        let check = |at: &str, expected: Option<&str>| assert_eq!(day(at).as_deref(), expected, "{at}");
        check("2024-03-09T12:00:00Z", Some("9 Mar 2024"));
        check("2024-12-31", Some("31 Dec 2024"));
        for other in ["", "yesterday", "2024-13-01", "2024-00-01", "äöüäöüäö"] {
            check(other, None);
        }
    }
}
