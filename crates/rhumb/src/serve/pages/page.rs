//! One page of the graph: what is known of it, its neighbourhood, its links with their texts, its company.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};

use super::parts::{counted, figure, figures, host_of, in_query, outside, page_of, shown, walk};
use super::{Field, Here, Site, frame, picture, respond};
use crate::links::answer::{
    Anchor, CocitedAnswer, Direction, Link, LinksAnswer, NeighbourhoodAnswer, PageAnswer, RankOf,
};
use crate::serve::App;
use crate::serve::query::Trouble;

/// Links of one direction on one page.
const LINKS: usize = 50;
/// Pages of the picture.
const NODES: usize = 60;
/// Pages linked together with it.
const COCITED: usize = 20;
/// Texts of one link that are shown.
const TEXTS: usize = 3;
/// Texts of one link that are looked at: a page may hold a link many thousand times.
const TEXTS_COUNTED: usize = 100;

/// All that the page shows.
pub struct Gathered {
    page: PageAnswer,
    links_in: LinksAnswer,
    links_out: LinksAnswer,
    cocited: Option<CocitedAnswer>,
    neighbourhood: Option<NeighbourhoodAnswer>,
    /// Where the lists begin that do not begin at their start.
    cursors: [Option<String>; 2],
}

/// Asks for it.
pub fn gather(app: &App, text: &str, cursor_in: Option<&str>, cursor_out: Option<&str>) -> Result<Gathered, Trouble> {
    let page = app.ask(text, |url| app.asked.page(url))?;
    let links = |direction, cursor: Option<&str>| {
        let found = app.asked.links(&page.url, direction, true, LINKS, cursor)?;
        let nothing = || LinksAnswer { url: page.url.clone(), direction, total: 0, links: Vec::new(), next: None };
        Ok::<_, Trouble>(found.unwrap_or_else(nothing))
    };
    Ok(Gathered {
        links_in: links(Direction::To, cursor_in)?,
        links_out: links(Direction::From, cursor_out)?,
        cocited: app.asked.cocited(&page.url, COCITED)?,
        neighbourhood: app.asked.neighbourhood(&page.url, NODES)?,
        cursors: [cursor_in, cursor_out].map(|c| c.map(str::to_string)),
        page,
    })
}

/// The page for it.
pub fn render(site: Site, gathered: &Gathered) -> Response {
    let Gathered { page, links_in, links_out, cocited, neighbourhood, cursors } = gathered;
    let title = page.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let main = html! {
        p class="kind" {
            @if page.host.is_empty() { "Page without a host" }
            @else { "Page of " a href=(host_of(&page.host)) { bdi dir="ltr" { (page.host) } } }
         }
        @match title {
            Some(title) => h1 dir="auto" { (title) }
            None => h1 class="long" { (shown(&page.url)) }
        }
        p class="address" {
            @if title.is_some() { (shown(&page.url)) " " }
            (outside(&page.url))
        }
        p {
            @if page.fetched {
                span class="badge" { "Fetched" @if let Some(at) = &page.fetched_at { " " time datetime=(at) { (instant(at)) } } }
            } @else {
                span class="badge only" { "Linked to, not fetched" }
            }
            " " a href=(format!("/path?from={}", in_query(&page.url))) { "Ways from here" }
        }
        (figures(&[("Links in", page.links_in, ""), ("Links out", page.links_out, "")]))
        @if !page.ranks.is_empty() { (ranks(&page.ranks, "pages")) }
        @if let Some(around) = neighbourhood { (picture::render(around)) }
        div class="columns" {
            (links("Links to this page", "in", page, links_in, cursors))
            (links("Links from this page", "out", page, links_out, cursors))
        }
        @if let Some(company) = cocited { (together(company)) }
    };
    respond(StatusCode::OK, frame(site, title.unwrap_or(&page.url), Here::Elsewhere, Field::Url(&page.url), &main))
}

/// A moment without its fractions, as people write it.
pub(super) fn instant(at: &str) -> String {
    let whole = at.split(['.', 'Z']).next().unwrap_or(at);
    format!("{} UTC", whole.replace('T', " "))
}

/// Texts in the order of the page, each once, with how often it stands there.
fn counted_texts(anchors: &[Anchor]) -> Vec<(&Anchor, usize)> {
    let mut texts: Vec<(&Anchor, usize)> = Vec::new();
    for anchor in anchors.iter().take(TEXTS_COUNTED) {
        match texts.iter_mut().find(|(known, _)| *known == anchor) {
            Some((_, times)) => *times += 1,
            None => texts.push((anchor, 1)),
        }
    }
    // What has no text says little: it comes last.
    texts.sort_by_key(|(anchor, _)| anchor.text.trim().is_empty());
    texts
}

/// Where a rank stands among all. Rounding would put the highest above itself.
fn above(share: f64, what: &str) -> String {
    if share >= 0.9995 {
        "among the highest of all".to_string()
    } else {
        format!("above {:.1} % of all {what}", share * 100.0)
    }
}

/// Ranks, each with where it stands among all of its kind.
pub(super) fn ranks(all: &[RankOf], what: &str) -> Markup {
    html! {
        ul class="ranks" {
            @for rank in all {
                @let name = match rank.measure.as_str() { "pagerank" => "PageRank", "harmonic" => "Harmonic centrality", other => other };
                li { b { (name) } " " (figure(rank.value)) span class="dim" { " – " (above(rank.percentile, what)) } }
            }
        }
    }
}

fn links(heading: &str, side: &str, page: &PageAnswer, answer: &LinksAnswer, cursors: &[Option<String>; 2]) -> Markup {
    // Going on in one list leaves the other where it is.
    let address = |cursor: Option<&str>| {
        let mut address = page_of(&page.url);
        for (name, kept) in ["in", "out"].into_iter().zip(cursors) {
            let value = if name == side { cursor } else { kept.as_deref() };
            if let Some(value) = value {
                address.push_str(&format!("&{name}={}", in_query(value)));
            }
        }
        format!("{address}#{side}")
    };
    let begun = cursors[usize::from(side == "out")].is_some();
    html! {
        section id=(side) {
            h2 { (heading) small { (counted(answer.total, "page", "pages")) } }
            @if answer.links.is_empty() {
                p class="empty" {
                    @match answer.direction {
                        Direction::To => { "No page that was fetched links here." }
                        Direction::From if page.fetched => { "It links to nothing." }
                        Direction::From => { "It was not fetched, so its links are not known." }
                    }
                }
            } @else {
                ul class="links" { @for link in &answer.links { (one(link)) } }
            }
            @if begun || answer.next.is_some() {
                p class="pager" {
                    @if begun { a href=(address(None)) { "To the first" } }
                    @if let Some(next) = &answer.next { a rel="next" href=(address(Some(next))) { "More" } }
                }
            }
        }
    }
}

fn one(link: &Link) -> Markup {
    let texts = counted_texts(link.anchors.as_deref().unwrap_or_default());
    html! {
        li {
            (walk(&link.url)) " " (outside(&link.url))
            @if !link.fetched { " " span class="tag" { "not fetched" } }
            @for (anchor, times) in texts.iter().take(TEXTS) {
                p class="anchor" {
                    @let text = anchor.text.trim();
                    @if text.is_empty() { span class="dim" { "no text" } } @else { bdi { "“" (text) "”" } }
                    @if *times > 1 { span class="dim" { " × " (times) } }
                    @if anchor.kind != "a" { " " span class="tag" { (anchor.kind) } }
                    @for rel in &anchor.rel { " " span class="tag" { (rel) } }
                }
            }
            @if texts.len() > TEXTS { p class="anchor dim" { "and " (texts.len() - TEXTS) " other texts" } }
        }
    }
}

fn together(company: &CocitedAnswer) -> Markup {
    html! {
        section {
            h2 { "Linked together with it" small { "in " (counted(company.pages_looked_at, "page that links", "pages that link")) " here" } }
            @if company.cocited.is_empty() {
                p class="empty" { "No page links both here and elsewhere." }
            } @else {
                table class="ranked" {
                    thead { tr { th scope="col" { "Page" } th scope="col" class="number" { "together" } } }
                    tbody {
                        @for page in &company.cocited {
                            tr { td { (walk(&page.url)) } td class="number" { (figure(page.together as f64)) } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short_and_true() {
        let anchor = |text: &str, kind| Anchor { text: text.to_string(), kind, rel: Vec::new() };
        let all = [anchor("", "link"), anchor("b", "a"), anchor("a", "a"), anchor("b", "a"), anchor("b", "area")];
        let texts: Vec<_> = counted_texts(&all).into_iter().map(|(a, n)| (a.text.as_str(), a.kind, n)).collect();
        assert_eq!(texts, [("b", "a", 2), ("a", "a", 1), ("b", "area", 1), ("", "link", 1)]);
        assert_eq!(instant("2026-11-16T22:11:40.343Z"), "2026-11-16 22:11:40 UTC");
        assert_eq!(
            (above(0.9994, "pages"), above(1.0, "pages")),
            ("above 99.9 % of all pages".into(), "among the highest of all".into())
        );
        assert_eq!(instant("2026-11-16T22:11:40Z"), "2026-11-16 22:11:40 UTC");
    }
}
