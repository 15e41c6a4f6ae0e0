//! `rhumb serve`: what was crawled over HTTP, its text and its links, for programs (`/api/…`, JSON) and for people (pages).
//!
//! The pages show text that strangers wrote, and any page of a browser can send requests to loopback. Hence the invariant: a
//! request passes [`guard`] before anything else sees it, and an answer leaves with the headers of [`guard`], whoever made
//! it; text gets into HTML through `maud`, which escapes it, and nowhere else. The one exception is the archived copy of a page,
//! which is the stranger's own markup: it stands in a frame that may do nothing, under a policy of its own ([`pages`]).
//!
//! A second one bounds the work: what takes long runs on other threads, a few at a time ([`App::slowly`]); heads, waits and
//! connections have limits ([`listen`]).
//!
//! Read [`asked`] and [`searched`] first (what is asked), then [`query`] (how a question is read from a URL), [`api`] and [`pages`] (the
//! answers), [`openapi`] and [`opensearch`] (their description).

mod api;
mod asked;
mod assets;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod fake_index;
mod guard;
mod listen;
mod openapi;
mod opensearch;
mod pages;
mod query;
mod searched;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use rhumb_core::url::Normalizer;
use tokio::sync::Semaphore;

use crate::links::answer::Overview;
pub use asked::Asked;
pub use guard::Hosts;
pub use listen::{Handle, start};
pub use searched::Searched;

use query::Trouble;

/// Questions that may take long, under way at once.
const SLOW_MAX: usize = 2;
/// Searches under way at once: they do not wait for the others.
const SEARCHES_MAX: usize = 4;
/// How long one of either waits for its turn, and how long for its end.
const SLOW_WAIT: Duration = Duration::from_secs(10);
/// Figures of the whole graph are kept for so many times as long as they took, but not longer than this.
const KEPT_TIMES: u32 = 20;
const KEPT_MAX: Duration = Duration::from_secs(60);

/// What all requests share.
pub struct App {
    asked: Arc<dyn Asked>,
    /// Graphs of others come without text, and a crawl may go without an index.
    search: Option<Arc<dyn Searched>>,
    normalizer: Normalizer,
    hosts: Hosts,
    slow: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    /// The figures asked for last: when, how long that took, what they were.
    figures: Mutex<Option<(Instant, Duration, Arc<Overview>)>>,
    /// Queries to begin with, and when they were made up.
    examples: Mutex<Option<(Instant, Vec<String>)>>,
}

impl App {
    /// Answers from `asked` to requests for `hosts`. URLs are brought into the form of `normalizer`.
    pub fn new(asked: Arc<dyn Asked>, normalizer: Normalizer, hosts: Hosts) -> App {
        App {
            asked,
            search: None,
            normalizer,
            hosts,
            slow: Arc::new(Semaphore::new(SLOW_MAX)),
            searches: Arc::new(Semaphore::new(SEARCHES_MAX)),
            figures: Mutex::new(None),
            examples: Mutex::new(None),
        }
    }

    /// The same with a text index, if there is one.
    pub fn searching(self, search: Option<Arc<dyn Searched>>) -> App {
        App { search, ..self }
    }

    /// The graph in figures. All of it is looked at for them, so that pages which ask again and again get what there is.
    fn overview(&self) -> Result<Arc<Overview>, Trouble> {
        // Whoever comes meanwhile waits here and gets the same.
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, took, known)) = &*figures
            && at.elapsed() < (*took * KEPT_TIMES).min(KEPT_MAX)
        {
            return Ok(known.clone());
        }
        let began = Instant::now();
        let overview = Arc::new(self.asked.overview()?);
        *figures = Some((Instant::now(), began.elapsed(), overview.clone()));
        Ok(overview)
    }

    /// Asks what may take long, on a thread of its own.
    async fn slowly<T: Send + 'static>(
        self: &Arc<App>,
        ask: impl FnOnce(&App) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        self.in_turn(self.slow.clone(), ask).await
    }

    /// Asks the text index, on a thread of its own.
    async fn search<T: Send + 'static>(
        self: &Arc<App>,
        ask: impl FnOnce(&App, &dyn Searched) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let Some(search) = self.search.clone() else { return Err(Trouble::NoIndex) };
        self.in_turn(self.searches.clone(), move |app| ask(app, &*search)).await
    }

    async fn in_turn<T: Send + 'static>(
        self: &Arc<App>,
        turns: Arc<Semaphore>,
        ask: impl FnOnce(&App) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let turn = tokio::time::timeout(SLOW_WAIT, turns.acquire_owned()).await;
        let Ok(Ok(turn)) = turn else { return Err(Trouble::Busy) };
        let app = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let answer = ask(&app);
            drop(turn);
            answer
        });
        match tokio::time::timeout(SLOW_WAIT, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(e)) => Err(anyhow::anyhow!("a question was not answered: {e}").into()),
            Err(_) => Err(Trouble::Busy),
        }
    }
}

/// Every route there is.
fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(pages::front))
        .route("/search", get(pages::search))
        .route("/cached", get(pages::cached))
        .route("/cached/inert", get(pages::inert))
        .route("/graph", get(pages::overview))
        .route("/find", get(pages::find))
        .route("/page", get(pages::page))
        .route("/host", get(pages::host))
        .route("/path", get(pages::path))
        .route("/assets/{name}", get(assets::serve))
        .route("/opensearch.xml", get(opensearch::document))
        .route("/api/search", get(api::search))
        .route("/api/complete", get(api::complete))
        .route("/api/links", get(api::links))
        .route("/api/page", get(api::page))
        .route("/api/host", get(api::host))
        .route("/api/cocited", get(api::cocited))
        .route("/api/neighbourhood", get(api::neighbourhood))
        .route("/api/path", get(api::path))
        .route("/api/overview", get(api::overview))
        .route("/api/suggest", get(api::suggest))
        .route("/api/openapi.json", get(openapi::document))
        .route("/healthz", get(api::health))
        .fallback(pages::nothing_here)
        .with_state(app)
}
