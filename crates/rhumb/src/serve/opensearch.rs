//! `/opensearch.xml`: how a browser may ask us from its address bar (OpenSearch 1.1).

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HOST};
use maud::{PreEscaped, html};

use super::query::{Shared, Trouble};

/// The type of such a document.
pub const KIND: &str = "application/opensearchdescription+xml";

/// Its addresses are absolute, as the format wants it, and lead to the name that we were asked by, which the guard let pass.
pub async fn document(State(app): Shared, headers: HeaderMap) -> Response {
    if app.search.is_none() {
        return Trouble::NoIndex.into_response();
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let url = |target: &str| format!("http://{host}{target}={{searchTerms}}");
    let text = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/" {
            ShortName { "rhumb" }
            Description { "The pages of a crawl" }
            InputEncoding { "UTF-8" }
            OutputEncoding { "UTF-8" }
            Url type="text/html" method="get" template=(url("/search?q")) {}
            Url type="application/x-suggestions+json" method="get" template=(url("/api/complete?q")) {}
            Url type=(KIND) rel="self" template=(format!("http://{host}/opensearch.xml")) {}
        }
    };
    ([(CONTENT_TYPE, KIND)], text.into_string()).into_response()
}
