//! The description of the API (OpenAPI 3.1), made from the handlers and the types of the answers, whose comments it quotes.

use std::sync::LazyLock;

use axum::response::IntoResponse;
use http::header::CONTENT_TYPE;
use utoipa::OpenApi;

use super::api;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "rhumb: text and links of a crawl",
        description = "Which pages say this, which URLs link to this one, and which does it link to. Only GET; answers are JSON, errors {\"error\": \"…\"}."
    ),
    paths(
        api::search,
        api::complete,
        api::links,
        api::page,
        api::host,
        api::cocited,
        api::neighbourhood,
        api::path,
        api::overview,
        api::suggest,
        api::health
    )
)]
struct Description;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| Description::openapi().to_json().unwrap_or_default());

/// `/api/openapi.json`.
pub async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str())
}
