//! What the server asks of a graph: the questions of [`Links`], as a trait, so that tests can ask a graph they know by heart.

use anyhow::Result;

use crate::links::Links;
use crate::links::answer::{
    CocitedAnswer, Direction, HostAnswer, LinksAnswer, NeighbourhoodAnswer, Overview, PageAnswer, PathAnswer,
};

/// A graph that can be asked. An error that is a [`crate::Usage`] is the asker's fault, such as a cursor of another list.
pub trait Asked: Send + Sync + 'static {
    /// Takes in what is new.
    fn keep_up(&self) -> Result<()>;
    /// Some links of a page; `None` if the page is not known.
    fn links(
        &self,
        url: &str,
        direction: Direction,
        anchors: bool,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<LinksAnswer>>;
    /// What is known of a page.
    fn page(&self, url: &str) -> Result<Option<PageAnswer>>;
    /// What is known of a host.
    fn host(&self, host: &str, limit: usize) -> Result<Option<HostAnswer>>;
    /// Pages linked together with one.
    fn cocited(&self, url: &str, limit: usize) -> Result<Option<CocitedAnswer>>;
    /// The pages around one.
    fn neighbourhood(&self, url: &str, nodes_max: usize) -> Result<Option<NeighbourhoodAnswer>>;
    /// A shortest way along links, between pages that are known.
    fn path(&self, from: &str, to: &str) -> Result<PathAnswer>;
    /// The graph in figures.
    fn overview(&self) -> Result<Overview>;
    /// URLs that a text may mean.
    fn suggest(&self, text: &str, limit: usize) -> Result<Vec<String>>;
}

impl Asked for Links {
    fn keep_up(&self) -> Result<()> {
        Links::keep_up(self)
    }

    fn links(
        &self,
        url: &str,
        direction: Direction,
        anchors: bool,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<LinksAnswer>> {
        Links::links(self, url, direction, anchors, limit, cursor)
    }

    fn page(&self, url: &str) -> Result<Option<PageAnswer>> {
        Links::page(self, url)
    }

    fn host(&self, host: &str, limit: usize) -> Result<Option<HostAnswer>> {
        Links::host(self, host, limit)
    }

    fn cocited(&self, url: &str, limit: usize) -> Result<Option<CocitedAnswer>> {
        Links::cocited(self, url, limit)
    }

    fn neighbourhood(&self, url: &str, nodes_max: usize) -> Result<Option<NeighbourhoodAnswer>> {
        Links::neighbourhood(self, url, nodes_max)
    }

    fn path(&self, from: &str, to: &str) -> Result<PathAnswer> {
        Links::path(self, from, to)
    }

    fn overview(&self) -> Result<Overview> {
        Links::overview(self)
    }

    fn suggest(&self, text: &str, limit: usize) -> Result<Vec<String>> {
        Links::suggest(self, text, limit)
    }
}
