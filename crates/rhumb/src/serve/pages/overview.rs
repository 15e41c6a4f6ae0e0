//! The graph as a whole: how large it is, and where to begin.

use axum::response::Response;
use http::StatusCode;
use maud::html;

use super::parts::{bar, figure, figures, outside, walk};
use super::{Field, Here, Site, frame, respond};
use crate::links::answer::Overview;

/// The page for these figures.
pub fn render(site: Site, overview: &Overview) -> Response {
    let by = match overview.top_by.as_str() {
        "links_in" => "links in",
        "pagerank" => "PageRank",
        other => other,
    };
    let most = overview.top.iter().map(|page| page.score).fold(0.0, f64::max);
    let main = html! {
        div class="head" {
            h1 { "The link graph" }
            @if overview.running { p class="badge live" data-live { "The crawl is running" } }
        }
        p class="lead" { "Which pages link to this one, and which does it link to? Look a URL up above, or begin with one of these." }
        (figures(&[
            ("Links", overview.links, "links"), ("URLs", overview.urls, "urls"),
            ("Pages fetched", overview.pages, "pages"), ("Hosts", overview.hosts, "hosts"),
        ]))
        section {
            h2 { "Pages at the top" small { "by " (by) } }
            @if overview.top.is_empty() {
                p class="empty" { "There are no links yet." @if overview.running { " They appear here while the crawl goes on." } }
            } @else {
                table class="ranked" {
                    thead { tr { th scope="col" { "Page" } th scope="col" class="number" { (by) } th class="bars" aria-hidden="true" {} } }
                    tbody {
                        @for page in &overview.top {
                            tr {
                                td { (walk(&page.url)) " " (outside(&page.url)) }
                                td class="number" { (figure(page.score)) }
                                td class="bars" { (bar(if most > 0.0 { page.score / most } else { 0.0 })) }
                            }
                        }
                    }
                }
            }
        }
    };
    respond(StatusCode::OK, frame(site, "The link graph", Here::Overview, Field::Url(""), &main))
}
