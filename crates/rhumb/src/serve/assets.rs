//! Style, script and icon: files in the program itself, named with a digest so that browsers may keep them.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
    digest: u64,
}

const fn asset(name: &'static str, kind: &'static str, text: &'static str) -> Asset {
    // FNV-1a: another text has another address.
    let (bytes, mut digest, mut at) = (text.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        digest = (digest ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    Asset { name, kind, text, digest }
}

static ASSETS: [Asset; 3] = [
    asset("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    asset("script.js", "text/javascript; charset=utf-8", include_str!("assets/script.js")),
    asset("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// The address of a file.
pub fn path(name: &str) -> String {
    let digest = ASSETS.iter().find(|asset| asset.name == name).map_or(0, |asset| asset.digest);
    format!("/assets/{name}?{digest:016x}")
}

/// `/assets/{name}`.
pub async fn serve(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => ([(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, "max-age=86400")], asset.text).into_response(),
        None => (StatusCode::NOT_FOUND, [(CONTENT_TYPE, "text/plain")], "there is no such file\n").into_response(),
    }
}
