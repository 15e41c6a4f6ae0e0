//! Pages for people: made on the server, whole without JavaScript, walked by links alone.
//!
//! Nothing of a page's text comes from anywhere but `maud`'s escaping, no element has a style or a script of its own (the
//! policy of [`super::guard`] forbids both), and a crawled URL becomes an address to open only if its scheme is http or https
//! ([`parts::outside`]). What all pages have in common is here; each has a file of its own, the picture of a neighbourhood too.

mod host;
mod overview;
mod page;
mod parts;
mod path;
mod picture;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{StatusCode, Uri};
use maud::{DOCTYPE, Markup, html};

use super::query::{Query, Shared, Trouble};
use super::{api, assets};
use parts::{in_query, listed};

/// Which entry of the navigation a page belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    Overview,
    Path,
    Elsewhere,
}

/// URLs offered where one was not found.
const SUGGESTED: usize = 20;

/// The frame of every page. `asked` is what stands in the search field.
fn frame(title: &str, here: Here, asked: &str, main: &Markup) -> Markup {
    let entry = |name: &str, href: &str, at: Here| {
        html! { a href=(href) aria-current=[(here == at).then_some("page")] { (name) } }
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex, nofollow";
                meta name="color-scheme" content="light dark";
                title { (title) " · rhumb" }
                link rel="icon" type="image/svg+xml" href=(assets::path("icon.svg"));
                link rel="stylesheet" href=(assets::path("style.css"));
                script src=(assets::path("script.js")) defer {}
            }
            body {
                a class="skip" href="#main" { "To the content" }
                header class="top" {
                    a class="brand" href="/" { img src=(assets::path("icon.svg")) alt="" width="24" height="24"; "rhumb" }
                    nav aria-label="Main" {
                        (entry("Overview", "/", Here::Overview))
                        (entry("Path", "/path", Here::Path))
                    }
                    form class="find" action="/find" role="search" {
                        input type="search" name="q" value=(asked) placeholder="A URL, or a part of one" aria-label="Find a page by its URL"
                            autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="4096" data-suggest;
                        button { "Go" }
                    }
                }
                main id="main" { (main) }
                footer { "The link graph of a crawl. For programs: " a href="/api/openapi.json" { "the API" } "." }
            }
        }
    }
}

fn respond(status: StatusCode, page: Markup) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

/// Trouble, as a page; what the person was looking for may be among the suggestions.
fn trouble_page(trouble: &Trouble, asked: &str, suggested: &[String]) -> Response {
    let title = match trouble {
        Trouble::Wrong(_) => "That cannot be asked",
        Trouble::Unknown(_) => "Not in the graph",
        Trouble::Busy => "Busy",
        Trouble::Failed => "Something went wrong",
    };
    let mut sentence = trouble.text().to_string();
    if let Some(first) = sentence.get(..1).map(str::to_ascii_uppercase) {
        sentence.replace_range(..1, &first);
    }
    let main = html! {
        h1 { (title) }
        p class="lead" { bdi { (sentence) } "." }
        @if !suggested.is_empty() {
            h2 { "Did you mean" }
            (listed(suggested.iter().map(String::as_str)))
        } @else if matches!(trouble, Trouble::Unknown(_)) {
            p { "It may not have been met yet, or be written differently. " a href="/" { "The overview" } " has pages to begin with." }
        }
    };
    respond(trouble.status(), frame(title, Here::Elsewhere, asked, &main))
}

/// Whatever is not a route.
pub async fn nothing_here(uri: Uri) -> Response {
    if uri.path().starts_with("/api/") {
        return api::error(StatusCode::NOT_FOUND, "there is no such question; /api/openapi.json lists them");
    }
    trouble_page(&Trouble::Unknown("there is no such page here".to_string()), "", &[])
}

/// `/`: figures, and pages to begin with.
pub async fn overview(State(app): Shared, uri: Uri) -> Response {
    let made = match Query::of(&uri, &[]) {
        Ok(_) => app.slowly(|app| Ok(overview::render(&*app.overview()?))).await,
        Err(trouble) => Err(trouble),
    };
    made.unwrap_or_else(|trouble| trouble_page(&trouble, "", &[]))
}

/// `/find?q=`: to the page or host that was typed, or a list of what it may mean.
pub async fn find(State(app): Shared, uri: Uri) -> Response {
    let query = match Query::of(&uri, &["q"]) {
        Ok(query) => query,
        Err(trouble) => return trouble_page(&trouble, "", &[]),
    };
    let Some(text) = query.get("q").map(str::to_string) else { return to("/") };
    let asked = text.clone();
    let found = app.slowly(move |app| {
        match app.known(&asked) {
            Ok(url) => return Ok(Ok(format!("/page?url={}", in_query(&url)))),
            Err(Trouble::Wrong(_) | Trouble::Unknown(_)) => {}
            Err(trouble) => return Err(trouble),
        }
        if !asked.contains('/')
            && let Ok(host) = app.host(&asked, 1)
        {
            return Ok(Ok(format!("/host?host={}", in_query(&host.host))));
        }
        Ok(Err(app.asked.suggest(&asked, SUGGESTED)?))
    });
    match found.await {
        Ok(Ok(place)) => to(&place),
        Ok(Err(suggested)) if suggested.is_empty() => {
            let shown: String = text.chars().take(200).collect();
            trouble_page(&Trouble::Unknown(format!("nothing in the graph looks like {shown:?}")), &text, &[])
        }
        Ok(Err(suggested)) => {
            let main = html! {
                h1 { "Pages like " bdi { "“" (text) "”" } }
                (listed(suggested.iter().map(String::as_str)))
            };
            respond(StatusCode::OK, frame(&text, Here::Elsewhere, &text, &main))
        }
        Err(trouble) => trouble_page(&trouble, &text, &[]),
    }
}

fn to(place: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

/// `/page?url=`: a page and its links.
pub async fn page(State(app): Shared, uri: Uri) -> Response {
    let asked = Query::of(&uri, &["url", "in", "out"]).and_then(|query| {
        let cursor = |name| query.get(name).map(str::to_string);
        Ok((query.need("url")?.to_string(), cursor("in"), cursor("out")))
    });
    let (url, cursor_in, cursor_out) = match asked {
        Ok(asked) => asked,
        Err(trouble) => return trouble_page(&trouble, "", &[]),
    };
    let text = url.clone();
    let made = app.slowly(move |app| match page::gather(app, &url, cursor_in.as_deref(), cursor_out.as_deref()) {
        Ok(gathered) => Ok(Ok(page::render(&gathered))),
        Err(trouble @ (Trouble::Unknown(_) | Trouble::Wrong(_))) => {
            Ok(Err((trouble, app.asked.suggest(&url, SUGGESTED).unwrap_or_default())))
        }
        Err(trouble) => Err(trouble),
    });
    match made.await {
        Ok(Ok(response)) => response,
        Ok(Err((trouble, suggested))) => trouble_page(&trouble, &text, &suggested),
        Err(trouble) => trouble_page(&trouble, &text, &[]),
    }
}

/// `/host?host=`: a host and its links to others.
pub async fn host(State(app): Shared, uri: Uri) -> Response {
    let asked = Query::of(&uri, &["host"]).and_then(|query| Ok(query.need("host")?.to_string()));
    let made = match asked {
        Ok(name) => app.slowly(move |app| Ok(host::render(&app.host(&name, host::LISTED)?))).await,
        Err(trouble) => Err(trouble),
    };
    made.unwrap_or_else(|trouble| trouble_page(&trouble, "", &[]))
}

/// `/path?from=&to=`: a form, and the way if both are given.
pub async fn path(State(app): Shared, uri: Uri) -> Response {
    let query = match Query::of(&uri, &["from", "to"]) {
        Ok(query) => query,
        Err(trouble) => return trouble_page(&trouble, "", &[]),
    };
    let given = |name| query.get(name).unwrap_or_default().to_string();
    let (from, to) = (given("from"), given("to"));
    if from.is_empty() || to.is_empty() {
        return respond(StatusCode::OK, path::render(&from, &to, None));
    }
    let (a, b) = (from.clone(), to.clone());
    let found = app.slowly(move |app| Ok(app.asked.path(&app.known(&a)?, &app.known(&b)?)?)).await;
    let status = found.as_ref().map_or_else(Trouble::status, |_| StatusCode::OK);
    respond(status, path::render(&from, &to, Some(&found)))
}
