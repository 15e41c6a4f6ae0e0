//! A host: which hosts link to it, which it links to, and its most linked pages.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};

use super::parts::{bar, counted, figure, figures, host_name, host_of, outside, walk};
use super::{Field, Here, Site, frame, respond};
use crate::links::answer::{HostAnswer, HostLink};

/// Hosts and pages on one page.
pub const LISTED: usize = 50;

/// The page for this host.
pub fn render(site: Site, answer: &HostAnswer) -> Response {
    let HostAnswer { host, domain, .. } = answer;
    let most = answer.top_pages.iter().map(|page| page.score).fold(0.0, f64::max);
    let main = html! {
        p class="kind" { "Host" }
        h1 { bdi dir="ltr" class="url" { (host) } }
        @if !domain.is_empty() && domain != host {
            p { "Of the domain " bdi dir="ltr" { (domain) } "." }
        }
        @if answer.partial { p class="note" { "This host has very many links; the figures are of a part of them." } }
        (figures(&[
            ("URLs known", answer.urls, ""), ("Pages fetched", answer.fetched, ""), ("Links inside", answer.links_inside, ""),
        ]))
        @if !answer.ranks.is_empty() { (super::page::ranks(&answer.ranks, "hosts")) }
        div class="columns" {
            section {
                h2 { "Hosts that link here" }
                (hosts(&answer.hosts_in, "No other host links here."))
            }
            section {
                h2 { "Hosts linked from here" }
                (hosts(&answer.hosts_out, "It links to no other host."))
            }
        }
        section {
            h2 { "Its pages" small { "by links in" } }
            @if answer.top_pages.is_empty() { p class="empty" { "None is known." } }
            @else {
                table class="ranked" {
                    thead { tr { th scope="col" { "Page" } th scope="col" class="number" { "links in" } th class="bars" aria-hidden="true" {} } }
                    tbody {
                        @for page in &answer.top_pages {
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
    respond(StatusCode::OK, frame(site, host, Here::Elsewhere, Field::Url(host), &main))
}

fn hosts(all: &[HostLink], none: &str) -> Markup {
    let most = all.iter().map(|h| h.links).max().unwrap_or(1).max(1);
    html! {
        @if all.is_empty() { p class="empty" { (none) } }
        @else {
            table class="ranked" {
                thead { tr { th scope="col" { "Host" } th scope="col" class="number" { "links" } th class="bars" aria-hidden="true" {} } }
                tbody {
                    @for other in all {
                        tr {
                            td { a class="walk" href=(host_of(&other.host)) title=(other.host) { bdi class="url" dir="ltr" { (host_name(&other.host)) } } }
                            td class="number" { (figure(other.links as f64)) }
                            td class="bars" { (bar(other.links as f64 / most as f64)) }
                        }
                    }
                }
            }
            @if all.len() >= LISTED { p class="dim" { "The first " (counted(all.len() as u64, "host", "hosts")) "." } }
        }
    }
}
