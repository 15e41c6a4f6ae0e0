//! The archived copy of a page: its text to read, or its markup in a frame that can do nothing.
//!
//! The markup is a stranger's, and served from our own origin. Three things keep it still, each of which would do alone for most of
//! it: the frame is a sandbox without any permission, so is the document by its own policy, and the same policy lets it load
//! nothing. What no policy covers is taken out of the markup ([`disarmed`]): browsers connect to where a frame inside would lead, or
//! a link that is clicked, before they ask the policy; `link` may have them look up names; `meta` and `base` bend what follows.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use maud::html;

use super::page::instant;
use super::parts::{in_query, is_web, page_of, shown};
use super::{Field, Here, Site, frame, respond};
use crate::search::answer::Cached;
use crate::serve::guard::Policy;
use crate::serve::query::Trouble;

/// Of a longer text the beginning is shown.
const TEXT_CHARS_MAX: usize = 500_000;

/// The page about a copy.
pub fn render(site: Site, copy: &Cached, as_page: bool) -> Response {
    let as_page = as_page && copy.html.is_some();
    let title = if copy.title.trim().is_empty() { &copy.url } else { &copy.title };
    let cut = copy.text.char_indices().nth(TEXT_CHARS_MAX).map(|(at, _)| at);
    let text = &copy.text[..cut.unwrap_or(copy.text.len())];
    let here = |view: &str| format!("/cached?url={}{view}", in_query(&copy.url));
    let main = html! {
        aside class="copy" aria-label="About this copy" {
            p {
                "This is a copy of " (shown(&copy.url)) " as it was fetched on "
                time datetime=(copy.fetched) { (instant(&copy.fetched)) } ". The page may have changed since."
            }
            p class="about" {
                @if is_web(&copy.url) { a href=(copy.url) rel="noreferrer noopener nofollow" { "the page itself" } }
                a href=(page_of(&copy.url)) { "its links" }
                @if copy.html.is_some() {
                    a href=(here("")) aria-current=[(!as_page).then_some("true")] { "as text" }
                    a href=(here("&as=page")) aria-current=[as_page.then_some("true")] { "as it was laid out" }
                } @else if !copy.media_type.is_empty() {
                    span class="tag" { (copy.media_type) }
                }
            }
        }
        @if as_page {
            h1 class="unseen" dir="auto" { (title) }
            iframe class="inert" sandbox="" title="The copy, without scripts, pictures and anything else from elsewhere"
                src=(format!("/cached/inert?url={}", in_query(&copy.url))) {}
            p class="dim" { "Nothing in it runs, nothing is loaded from elsewhere, and its links lead nowhere." }
        } @else {
            article class="text" {
                h1 dir="auto" { (title) }
                @for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) { p dir="auto" { (line) } }
                @if text.trim().is_empty() { p class="empty" { "There is no text in it." } }
                @if cut.is_some() { p class="note" { "The text goes on; this is its beginning." } }
            }
        }
    };
    let mut response = respond(StatusCode::OK, frame(site, title, Here::Elsewhere, Field::Query("", false), &main));
    if as_page {
        response.extensions_mut().insert(Policy::Framing);
    }
    response
}

/// The document of the frame. It is the only answer that holds markup which is not ours.
pub fn inert(found: Result<Cached, Trouble>) -> Response {
    let markup = found.and_then(|copy| {
        let none = || Trouble::NoCopy("the copy of this page is no HTML".to_string());
        copy.html.as_deref().map(disarmed).ok_or_else(none)
    });
    let mut response = match markup {
        Ok(markup) => ([(CONTENT_TYPE, "text/html; charset=utf-8")], markup).into_response(),
        Err(trouble) => {
            let text = format!("{}\n", crate::out::escape(trouble.text()));
            (trouble.status(), [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
    };
    response.extensions_mut().insert(Policy::Inert);
    response
}

/// Elements that a browser may connect for, or be led elsewhere by.
const RENAMED: [&str; 9] = ["link", "meta", "base", "iframe", "frame", "object", "embed", "portal", "fencedframe"];

/// Markup in which these elements mean nothing, and links lead to where they stand. A tag begins with these very letters, in whatever
/// case, and of an attribute that is given twice the first counts: there is no other way to write either, so that looking for the
/// letters is enough, and needs no parser that agrees with the browser's.
fn disarmed(markup: &str) -> String {
    let mut out = String::with_capacity(markup.len() + markup.len() / 8);
    let mut pieces = markup.split('<');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.push('<');
        let begins = |name: &str| piece.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        let ends_at =
            |at: usize| matches!(piece.as_bytes().get(at), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'/' | b'>'));
        let link = ["a", "area"].into_iter().find(|name| begins(name) && ends_at(name.len()));
        match link {
            Some(name) => {
                out.push_str(&piece[..name.len()]);
                out.push_str(" href=\"#\" target=\"_self\"");
                out.push_str(&piece[name.len()..]);
            }
            None => {
                if RENAMED.iter().any(|name| begins(name)) {
                    out.push_str("x-");
                }
                out.push_str(piece);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_policies_do_not_cover_is_taken_out() {
        let check = |markup: &str, expected: &str| assert_eq!(disarmed(markup), expected);
        check("<link rel=preconnect href=//a>", "<x-link rel=preconnect href=//a>");
        check(
            "a<LiNk\n><Meta http-equiv=refresh><base/href=x>",
            "a<x-LiNk\n><x-Meta http-equiv=refresh><x-base/href=x>",
        );
        check("<<link>", "<<x-link>");
        check(
            "<IFRAME src=//a></iframe><frame/><object><embed>",
            "<x-IFRAME src=//a></iframe><x-frame/><x-object><x-embed>",
        );
        check(
            "<a href=//a>b</a><A\thref=//a>",
            "<a href=\"#\" target=\"_self\" href=//a>b</a><A href=\"#\" target=\"_self\"\thref=//a>",
        );
        check("<area/href=//a><a>", "<area href=\"#\" target=\"_self\"/href=//a><a href=\"#\" target=\"_self\">");
        check("<abbr><article><a", "<abbr><article><a");
        check("<p>link &lt;meta</p><b>", "<p>link &lt;meta</p><b>");
        check("", "");
        check("ü<ü", "ü<ü");
        check("<lin", "<lin");
    }
}
