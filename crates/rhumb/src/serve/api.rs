//! `/api/…`: questions by URL, answers in JSON, as the types of [`crate::links::answer`] and
//! [`crate::search::answer`] have them.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{StatusCode, Uri};
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{Query, Shared, Trouble};
use super::searched::completed;
use crate::links::answer::{
    CocitedAnswer, Direction, HostAnswer, LinksAnswer, NeighbourhoodAnswer, Overview, PageAnswer, PathAnswer,
};
use crate::out;
use crate::search::answer::{SearchAnswer, SearchAsk};

/// Links in one answer.
const LINKS_MAX: usize = 1_000;
const LINKS: usize = 100;
/// Pages or hosts in a list.
const LISTED_MAX: usize = 1_000;
const LISTED: usize = 20;
/// Pages of a picture.
const NODES_MAX: usize = 500;
const NODES: usize = 60;
/// URLs suggested.
const SUGGESTED_MAX: usize = 50;
const SUGGESTED: usize = 10;
/// Results of a search in one answer, and how far behind the first they may begin.
const RESULTS_MAX: usize = 100;
const RESULTS: usize = 10;
pub const OFFSET_MAX: usize = 1_000;
/// Completions of a query.
const COMPLETED: usize = 8;

/// Why there is no answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorAnswer {
    /// One sentence.
    pub error: String,
}

/// URLs that a text may mean.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuggestAnswer {
    /// The URLs, likeliest first.
    pub urls: Vec<String>,
}

/// A query in the making, and queries that begin so, likeliest first: a list of two, as OpenSearch has suggestions.
type CompleteAnswer = (String, Vec<String>);

/// That the server runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct HealthAnswer {
    /// Always "ok".
    pub status: &'static str,
}

/// A refusal or failure, as JSON.
pub fn error(status: StatusCode, text: &str) -> Response {
    json(status, &ErrorAnswer { error: text.to_string() })
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        error(self.status(), self.text())
    }
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let Ok(text) = out::json_text(value) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

type Answer = Result<Response, Trouble>;

fn answer(value: &impl Serialize) -> Answer {
    Ok(json(StatusCode::OK, value))
}

/// Pages whose text answers a query.
#[utoipa::path(
    get, path = "/api/search",
    params(
        ("q" = String, Query, description = "The query: words, \"phrases\", `+must`, `-not`, `site:`, `intitle:`, `inurl:`, `lang:`, `type:`, `after:`, `before:`, `link:`, `prefix*`."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "So many results at most; 10 if it is not given."),
        ("offset" = Option<u32>, Query, minimum = 0, maximum = 1000, description = "So many results are passed over first; 0 if it is not given."),
        ("fresh" = Option<bool>, Query, description = "Newer pages come sooner; `false` if it is not given."),
        ("ungrouped" = Option<bool>, Query, description = "A host may have more than two results; `false` if it is not given."),
        ("explain" = Option<bool>, Query, description = "Each result tells how its score came about; `false` if it is not given."),
    ),
    responses(
        (status = 200, description = "The results, best first", body = SearchAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "There is no text index", body = ErrorAnswer),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn search(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["q", "limit", "offset", "fresh", "ungrouped", "explain"])?;
    let ask = SearchAsk {
        limit: query.number("limit", RESULTS, RESULTS_MAX)?,
        offset: query.within("offset", 0, 0..=OFFSET_MAX)?,
        fresh: query.flag("fresh")?,
        ungrouped: query.flag("ungrouped")?,
        explain: query.flag("explain")?,
        query: query.need("q")?.to_string(),
    };
    answer(&app.search(move |_, search| Ok(search.search(&ask)?)).await?)
}

/// Queries that begin so, for a search field: the last word is completed.
#[utoipa::path(
    get, path = "/api/complete",
    params(("q" = String, Query, description = "What was typed so far.")),
    responses(
        (status = 200, description = "What was typed, and its completions", body = (String, Vec<String>)),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "There is no text index", body = ErrorAnswer),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn complete(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["q"])?;
    // As it was typed: behind a space there is no word to complete, and browsers compare it with what they sent.
    let typed = query.typed("q").to_string();
    let found = app.search(move |_, search| {
        let queries = completed(search, &typed, COMPLETED)?;
        Ok::<CompleteAnswer, Trouble>((typed, queries))
    });
    answer(&found.await?)
}

/// Links that lead to a page or from it.
#[utoipa::path(
    get, path = "/api/links",
    params(
        ("to" = Option<String>, Query, description = "The page that the links lead to. Either this or `from`."),
        ("from" = Option<String>, Query, description = "The page that the links lead from. Either this or `to`."),
        ("anchors" = Option<bool>, Query, description = "With the texts of the links; `false` if it is not given."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "So many links at most; 100 if it is not given."),
        ("cursor" = Option<String>, Query, description = "The `next` of an earlier answer: its next part."),
    ),
    responses(
        (status = 200, description = "A part of the links, in the order of the graph", body = LinksAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "The graph does not know the page", body = ErrorAnswer),
    ),
)]
pub async fn links(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["to", "from", "anchors", "limit", "cursor"])?;
    let (url, direction) = match (query.get("to"), query.get("from")) {
        (Some(to), None) => (to, Direction::To),
        (None, Some(from)) => (from, Direction::From),
        _ => return Err(Trouble::Wrong("either to=URL or from=URL is needed".to_string())),
    };
    let (anchors, limit) = (query.flag("anchors")?, query.number("limit", LINKS, LINKS_MAX)?);
    let cursor = query.get("cursor");
    answer(&app.ask(url, |url| app.asked.links(url, direction, anchors, limit, cursor))?)
}

/// What is known of a page.
#[utoipa::path(
    get, path = "/api/page",
    params(("url" = String, Query, description = "The page. A scheme may be missing: https, then http is tried.")),
    responses(
        (status = 200, description = "What is known of it", body = PageAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "The graph does not know the page", body = ErrorAnswer),
    ),
)]
pub async fn page(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["url"])?;
    answer(&app.ask(query.need("url")?, |url| app.asked.page(url))?)
}

/// The links of a host to and from other hosts.
#[utoipa::path(
    get, path = "/api/host",
    params(
        ("host" = String, Query, description = "The host's name."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "So many hosts and pages each; 20 if it is not given."),
    ),
    responses(
        (status = 200, description = "What is known of it", body = HostAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "The graph does not know the host", body = ErrorAnswer),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn host(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["host", "limit"])?;
    let limit = query.number("limit", LISTED, LISTED_MAX)?;
    let host = query.need("host")?.to_string();
    answer(&app.slowly(move |app| app.host(&host, limit)).await?)
}

/// Pages that others link to together with one.
#[utoipa::path(
    get, path = "/api/cocited",
    params(
        ("url" = String, Query, description = "The page."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "So many pages at most; 20 if it is not given."),
    ),
    responses(
        (status = 200, description = "The pages, best first", body = CocitedAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "The graph does not know the page", body = ErrorAnswer),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn cocited(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["url", "limit"])?;
    let limit = query.number("limit", LISTED, LISTED_MAX)?;
    let url = query.need("url")?.to_string();
    answer(&app.slowly(move |app| app.ask(&url, |url| app.asked.cocited(url, limit))).await?)
}

/// The pages around one, for a picture.
#[utoipa::path(
    get, path = "/api/neighbourhood",
    params(
        ("url" = String, Query, description = "The page in the middle."),
        ("nodes" = Option<u32>, Query, minimum = 1, maximum = 500, description = "So many pages at most; 60 if it is not given."),
    ),
    responses(
        (status = 200, description = "The pages and the links between them", body = NeighbourhoodAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "The graph does not know the page", body = ErrorAnswer),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn neighbourhood(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["url", "nodes"])?;
    let nodes = query.number("nodes", NODES, NODES_MAX)?;
    let url = query.need("url")?.to_string();
    answer(&app.slowly(move |app| app.ask(&url, |url| app.asked.neighbourhood(url, nodes))).await?)
}

/// The shortest way from one page to another along links.
#[utoipa::path(
    get, path = "/api/path",
    params(
        ("from" = String, Query, description = "Where it begins."),
        ("to" = String, Query, description = "Where it ends."),
    ),
    responses(
        (status = 200, description = "The way, or that there is none", body = PathAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 404, description = "The graph does not know one of the pages", body = ErrorAnswer),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn path(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["from", "to"])?;
    let (from, to) = (query.need("from")?.to_string(), query.need("to")?.to_string());
    answer(&app.slowly(move |app| Ok(app.asked.path(&app.known(&from)?, &app.known(&to)?)?)).await?)
}

/// The graph in figures.
#[utoipa::path(
    get, path = "/api/overview",
    responses(
        (status = 200, description = "The figures, and the pages at the top", body = Overview),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn overview(State(app): Shared, uri: Uri) -> Answer {
    Query::of(&uri, &[])?;
    answer(&*app.slowly(|app| app.overview()).await?)
}

/// URLs that a text may mean, for a search field.
#[utoipa::path(
    get, path = "/api/suggest",
    params(
        ("q" = String, Query, description = "The beginning of a URL, or a part of its host or path."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 50, description = "So many URLs at most; 10 if it is not given."),
    ),
    responses(
        (status = 200, description = "The URLs", body = SuggestAnswer),
        (status = 400, description = "A parameter is missing or wrong", body = ErrorAnswer),
        (status = 503, description = "Too much is being asked at once", body = ErrorAnswer),
    ),
)]
pub async fn suggest(State(app): Shared, uri: Uri) -> Answer {
    let query = Query::of(&uri, &["q", "limit"])?;
    let limit = query.number("limit", SUGGESTED, SUGGESTED_MAX)?;
    let text = query.need("q")?.to_string();
    answer(&SuggestAnswer { urls: app.slowly(move |app| Ok(app.asked.suggest(&text, limit)?)).await? })
}

/// Whether the server runs.
#[utoipa::path(
    get, path = "/healthz",
    responses((status = 200, description = "It does", body = HealthAnswer)),
)]
pub async fn health() -> Response {
    json(StatusCode::OK, &HealthAnswer { status: "ok" })
}
