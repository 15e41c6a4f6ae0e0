//! The way from one page to another: a form, and the steps.

use maud::{Markup, html};

use super::parts::{counted, outside, walk};
use super::{Field, Here, Site, frame};
use crate::links::answer::PathAnswer;
use crate::serve::query::Trouble;

/// The page, with what was found if something was asked.
pub fn render(site: Site, from: &str, to: &str, found: Option<&Result<PathAnswer, Trouble>>) -> Markup {
    let field = |name: &str, label: &str, value: &str| {
        html! {
            label { span { (label) }
                input type="text" inputmode="url" name=(name) value=(value) required maxlength="4096" placeholder="https://example.org/"
                    autocomplete="off" autocapitalize="none" spellcheck="false" dir="ltr" data-suggest="/api/suggest";
            }
        }
    };
    let main = html! {
        h1 { "From page to page" }
        p class="lead" { "The fewest links to follow from one page to another." }
        form class="ends" action="/path" {
            (field("from", "From", from))
            (field("to", "To", to))
            button { "Find the way" }
        }
        @match found {
            None => {}
            Some(Err(trouble)) => p class="note" role="status" { bdi { (trouble.text()) } }
            Some(Ok(answer)) => (way(answer))
        }
    };
    frame(site, "From page to page", Here::Path, Field::Url(""), &main)
}

fn way(answer: &PathAnswer) -> Markup {
    let back = format!("/path?from={}&to={}", super::in_query(&answer.to), super::in_query(&answer.from));
    html! {
        section {
            @match answer.hops {
                Some(0) => h2 { "Both are the same page" }
                Some(hops) => h2 { (counted(hops.into(), "link", "links")) }
                None if answer.gave_up => {
                    h2 { "No way found" }
                    p class="empty" { "The search was given up before everything was looked at: the pages are far apart, if there is a way at all." }
                }
                None => {
                    h2 { "There is no way" }
                    p class="empty" { "No chain of links that are known leads from the one to the other." }
                }
            }
            @if !answer.path.is_empty() {
                ol class="steps" { @for url in &answer.path { li { (walk(url)) " " (outside(url)) } } }
            }
            p { a href=(back) { "The other way round" } }
        }
    }
}
