//! Pages for people: made on the server, whole without JavaScript, walked by links alone.
//!
//! Nothing of a page's text comes from anywhere but `maud`'s escaping, no element has a style or a script of its own (the
//! policy of [`super::guard`] forbids both), and a crawled URL becomes an address to open only if its scheme is http or https
//! ([`parts::is_web`]). The copy of a page is no exception: its markup is not part of any page, but of a frame ([`mod@cached`]). What
//! all pages have in common is here; each has a file of its own, the picture of a neighbourhood too.

mod cached;
mod crumbs;
mod front;
mod host;
mod overview;
mod page;
mod parts;
mod path;
mod picture;
mod search;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{StatusCode, Uri};
use maud::{DOCTYPE, Markup, html};

use super::query::{Query, Shared, Trouble};
use super::{App, api, assets, opensearch};
use parts::{in_query, listed};

/// What all pages must know of what is served.
#[derive(Clone, Copy)]
struct Site {
    /// Whether there is a text index.
    searched: bool,
}

impl App {
    fn site(&self) -> Site {
        Site { searched: self.search.is_some() }
    }
}

/// The field at the top of a page, and what stands in it.
#[derive(Clone, Copy)]
enum Field<'a> {
    /// The page has its own.
    None,
    /// A URL to look up in the graph.
    Url(&'a str),
    /// A query; whether newer pages come sooner.
    Query(&'a str, bool),
}

/// Which entry of the navigation a page belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    Search,
    Overview,
    Path,
    Elsewhere,
}

/// URLs offered where one was not found.
const SUGGESTED: usize = 20;

/// The frame of every page.
fn frame(site: Site, title: &str, here: Here, field: Field, main: &Markup) -> Markup {
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
                @if site.searched { link rel="search" type=(opensearch::KIND) href="/opensearch.xml" title="rhumb"; }
                script src=(assets::path("script.js")) defer {}
            }
            body {
                a class="skip" href="#main" { "To the content" }
                header class="top" {
                    a class="brand" href="/" { img src=(assets::path("icon.svg")) alt="" width="24" height="24"; "rhumb" }
                    nav aria-label="Main" {
                        @if site.searched {
                            (entry("Search", "/", Here::Search))
                            (entry("Graph", "/graph", Here::Overview))
                        } @else {
                            (entry("Overview", "/", Here::Overview))
                        }
                        (entry("Path", "/path", Here::Path))
                    }
                    @match field {
                        Field::None => {}
                        Field::Query(query, fresh) => (search::form("find", query, fresh))
                        Field::Url(url) => form class="find" action="/find" role="search" {
                            input type="search" name="q" value=(url) placeholder="A URL, or a part of one" aria-label="Find a page by its URL"
                                autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="4096" data-suggest="/api/suggest";
                            button { "Go" }
                        }
                    }
                }
                main id="main" { (main) }
                footer { @if site.searched { "Text and links of a crawl." } @else { "The link graph of a crawl." } " For programs: " a href="/api/openapi.json" { "the API" } "." }
            }
        }
    }
}

fn respond(status: StatusCode, page: Markup) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

/// Trouble, as a page; what the person was looking for may be among the suggestions.
fn trouble_page(site: Site, trouble: &Trouble, field: Field, suggested: &[String]) -> Response {
    let title = match trouble {
        Trouble::Wrong(_) => "That cannot be asked",
        Trouble::Unknown(_) => "Not in the graph",
        Trouble::NoIndex => "Nothing to search in",
        Trouble::NoCopy(_) => "No copy",
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
            p { "It may not have been met yet, or be written differently. " a href="/graph" { "The overview" } " has pages to begin with." }
        }
    };
    respond(trouble.status(), frame(site, title, Here::Elsewhere, field, &main))
}

/// Whatever is not a route.
pub async fn nothing_here(State(app): Shared, uri: Uri) -> Response {
    if uri.path().starts_with("/api/") {
        return api::error(StatusCode::NOT_FOUND, "there is no such question; /api/openapi.json lists them");
    }
    trouble_page(app.site(), &Trouble::Unknown("there is no such page here".to_string()), Field::Url(""), &[])
}

/// `/`: a field for a query, or the graph if there is nothing to search in.
pub async fn front(State(app): Shared, uri: Uri) -> Response {
    if app.search.is_none() {
        return overview(State(app), uri).await;
    }
    let site = app.site();
    let made = match Query::of(&uri, &[]) {
        Ok(_) => app.search(move |app, search| Ok(front::render(site, search.pages()?, &app.examples(search)?))).await,
        Err(trouble) => Err(trouble),
    };
    made.unwrap_or_else(|trouble| trouble_page(site, &trouble, Field::Query("", false), &[]))
}

/// `/search?q=`: the results of a query.
pub async fn search(State(app): Shared, uri: Uri) -> Response {
    let site = app.site();
    if !site.searched {
        return trouble_page(site, &Trouble::NoIndex, Field::Url(""), &[]);
    }
    let asked = Query::of(&uri, &["q", "page", "fresh", "more"]).and_then(|query| {
        let [fresh, ungrouped] = [query.flag("fresh")?, query.flag("more")?];
        let page = query.number("page", 1, search::PAGES_MAX)?;
        Ok(search::Asked { query: query.get("q").unwrap_or_default().to_string(), page, fresh, ungrouped })
    });
    let asked = match asked {
        Ok(asked) if asked.query.is_empty() => return to("/"),
        Ok(asked) => asked,
        Err(trouble) => return trouble_page(site, &trouble, Field::Query("", false), &[]),
    };
    let (query, fresh) = (asked.query.clone(), asked.fresh);
    let made = app.search(move |_, search| Ok(search::render(site, &asked, &search.search(&asked.ask())?))).await;
    made.unwrap_or_else(|trouble| trouble_page(site, &trouble, Field::Query(&query, fresh), &[]))
}

/// `/cached?url=`: the archived copy of a page, its text or a frame with its markup.
pub async fn cached(State(app): Shared, uri: Uri) -> Response {
    let site = app.site();
    let asked = Query::of(&uri, &["url", "as"]).and_then(|query| {
        let as_page = match query.get("as") {
            None | Some("text") => false,
            Some("page") => true,
            Some(_) => return Err(Trouble::Wrong("as is text or page".to_string())),
        };
        Ok((query.need("url")?.to_string(), as_page))
    });
    let made = match asked {
        Ok((url, as_page)) => {
            app.search(move |app, search| Ok(cached::render(site, &app.copy(search, &url)?, as_page))).await
        }
        Err(trouble) => Err(trouble),
    };
    let field = if site.searched { Field::Query("", false) } else { Field::Url("") };
    made.unwrap_or_else(|trouble| trouble_page(site, &trouble, field, &[]))
}

/// `/cached/inert?url=`: that markup, for the frame.
pub async fn inert(State(app): Shared, uri: Uri) -> Response {
    let asked = Query::of(&uri, &["url"]).and_then(|query| Ok(query.need("url")?.to_string()));
    let found = match asked {
        Ok(url) => app.search(move |app, search| app.copy(search, &url)).await,
        Err(trouble) => Err(trouble),
    };
    cached::inert(found)
}

/// `/graph`: figures, and pages to begin with.
pub async fn overview(State(app): Shared, uri: Uri) -> Response {
    let site = app.site();
    let made = match Query::of(&uri, &[]) {
        Ok(_) => app.slowly(move |app| Ok(overview::render(site, &*app.overview()?))).await,
        Err(trouble) => Err(trouble),
    };
    made.unwrap_or_else(|trouble| trouble_page(site, &trouble, Field::Url(""), &[]))
}

/// `/find?q=`: to the page or host that was typed, or a list of what it may mean.
pub async fn find(State(app): Shared, uri: Uri) -> Response {
    let query = match Query::of(&uri, &["q"]) {
        Ok(query) => query,
        Err(trouble) => return trouble_page(app.site(), &trouble, Field::Url(""), &[]),
    };
    let Some(text) = query.get("q").map(str::to_string) else { return to("/graph") };
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
            let trouble = Trouble::Unknown(format!("nothing in the graph looks like {shown:?}"));
            trouble_page(app.site(), &trouble, Field::Url(&text), &[])
        }
        Ok(Err(suggested)) => {
            let main = html! {
                h1 { "Pages like " bdi { "“" (text) "”" } }
                (listed(suggested.iter().map(String::as_str)))
            };
            respond(StatusCode::OK, frame(app.site(), &text, Here::Elsewhere, Field::Url(&text), &main))
        }
        Err(trouble) => trouble_page(app.site(), &trouble, Field::Url(&text), &[]),
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
        Err(trouble) => return trouble_page(app.site(), &trouble, Field::Url(""), &[]),
    };
    let text = url.clone();
    let made = app.slowly(move |app| match page::gather(app, &url, cursor_in.as_deref(), cursor_out.as_deref()) {
        Ok(gathered) => Ok(Ok(page::render(app.site(), &gathered))),
        Err(trouble @ (Trouble::Unknown(_) | Trouble::Wrong(_))) => {
            Ok(Err((trouble, app.asked.suggest(&url, SUGGESTED).unwrap_or_default())))
        }
        Err(trouble) => Err(trouble),
    });
    match made.await {
        Ok(Ok(response)) => response,
        Ok(Err((trouble, suggested))) => trouble_page(app.site(), &trouble, Field::Url(&text), &suggested),
        Err(trouble) => trouble_page(app.site(), &trouble, Field::Url(&text), &[]),
    }
}

/// `/host?host=`: a host and its links to others.
pub async fn host(State(app): Shared, uri: Uri) -> Response {
    let asked = Query::of(&uri, &["host"]).and_then(|query| Ok(query.need("host")?.to_string()));
    let site = app.site();
    let made = match asked {
        Ok(name) => app.slowly(move |app| Ok(host::render(site, &app.host(&name, host::LISTED)?))).await,
        Err(trouble) => Err(trouble),
    };
    made.unwrap_or_else(|trouble| trouble_page(site, &trouble, Field::Url(""), &[]))
}

/// `/path?from=&to=`: a form, and the way if both are given.
pub async fn path(State(app): Shared, uri: Uri) -> Response {
    let query = match Query::of(&uri, &["from", "to"]) {
        Ok(query) => query,
        Err(trouble) => return trouble_page(app.site(), &trouble, Field::Url(""), &[]),
    };
    let given = |name| query.get(name).unwrap_or_default().to_string();
    let (from, to) = (given("from"), given("to"));
    if from.is_empty() || to.is_empty() {
        return respond(StatusCode::OK, path::render(app.site(), &from, &to, None));
    }
    let (a, b) = (from.clone(), to.clone());
    let found = app.slowly(move |app| Ok(app.asked.path(&app.known(&a)?, &app.known(&b)?)?)).await;
    let status = found.as_ref().map_or_else(Trouble::status, |_| StatusCode::OK);
    respond(status, path::render(app.site(), &from, &to, Some(&found)))
}
