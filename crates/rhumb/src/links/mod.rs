//! The link graph of a crawl directory: opening it, keeping up with the log, asking it.

pub mod answer;

use std::path::Path;

use anyhow::Result;

use answer::{
    CocitedAnswer, Direction, HostAnswer, LinksAnswer, NeighbourhoodAnswer, Overview, PageAnswer, PathAnswer,
};

/// The link graph of a directory, as new as its log.
pub struct Links {}

impl Links {
    /// Opens the graph in `dir`.
    pub fn open(_dir: &Path) -> Result<Links> {
        Ok(Links {})
    }

    /// Takes in what the log has got since. Cheap if that is little.
    pub fn keep_up(&self) -> Result<()> {
        Ok(())
    }

    /// Some links of a page; `None` if the graph does not know it. `cursor` is the `next` of an earlier answer.
    pub fn links(
        &self,
        _url: &str,
        _direction: Direction,
        _anchors: bool,
        _limit: usize,
        _cursor: Option<&str>,
    ) -> Result<Option<LinksAnswer>> {
        Ok(None)
    }

    /// What is known of a page.
    pub fn page(&self, _url: &str) -> Result<Option<PageAnswer>> {
        Ok(None)
    }

    /// What is known of a host, with so many hosts and pages each.
    pub fn host(&self, _host: &str, _limit: usize) -> Result<Option<HostAnswer>> {
        Ok(None)
    }

    /// Pages that are linked together with one.
    pub fn cocited(&self, _url: &str, _limit: usize) -> Result<Option<CocitedAnswer>> {
        Ok(None)
    }

    /// The pages around one.
    pub fn neighbourhood(&self, _url: &str, _nodes_max: usize) -> Result<Option<NeighbourhoodAnswer>> {
        Ok(None)
    }

    /// A shortest way along links; `Err` if one of the pages is not known.
    pub fn path(&self, _from: &str, _to: &str) -> Result<PathAnswer> {
        Ok(PathAnswer::default())
    }

    /// The graph in figures.
    pub fn overview(&self) -> Result<Overview> {
        Ok(Overview::default())
    }

    /// URLs that begin with this text, or whose host or path holds it, for a search field.
    pub fn suggest(&self, _text: &str, _limit: usize) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
