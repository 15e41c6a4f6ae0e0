//! What can be asked of the link graph, and the answers, the same for the command line, HTTP and the pages.

use serde::Serialize;
use utoipa::ToSchema;

/// Which links of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Links that lead to it.
    To,
    /// Links that lead from it.
    From,
}

/// A part of the links of a page, in the order of the graph: by host name read backwards, then by the rest.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct LinksAnswer {
    /// The page, as the graph knows it.
    pub url: String,
    /// Which links these are.
    pub direction: Direction,
    /// How many there are, all parts together.
    pub total: u64,
    /// This part.
    pub links: Vec<Link>,
    /// Asks for the next part; nothing if this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A link, seen from one of its ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Link {
    /// The page at its other end.
    pub url: String,
    /// Whether that page was fetched, rather than only linked to.
    pub fetched: bool,
    /// The link's texts on its page, if they were asked for: one for each time it stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchors: Option<Vec<Anchor>>,
}

/// A link as it stands on its page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Anchor {
    /// Its text.
    pub text: String,
    /// What kind of link it is: "a", "redirect", …
    pub kind: &'static str,
    /// "nofollow", "ugc", "sponsored".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rel: Vec<&'static str>,
}

/// What the graph knows of one page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct PageAnswer {
    /// The page.
    pub url: String,
    /// Its host.
    pub host: String,
    /// Whether it was fetched, rather than only linked to.
    pub fetched: bool,
    /// Its title when it was fetched last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it was fetched last, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<String>,
    /// Links that lead to it.
    pub links_in: u64,
    /// Links that lead from it.
    pub links_out: u64,
    /// Its ranks by measure ("pagerank", "harmonic"), if they were computed, with the share of pages that rank lower.
    pub ranks: Vec<RankOf>,
}

/// A rank of one page or host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct RankOf {
    /// The measure.
    pub measure: String,
    /// The value.
    pub value: f64,
    /// The share of nodes with a lower value, 0 to 1.
    pub percentile: f64,
}

/// The links of a host to and from other hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct HostAnswer {
    /// The host's name.
    pub host: String,
    /// Its registrable domain.
    pub domain: String,
    /// URLs of it that are known.
    pub urls: u64,
    /// Of these, pages that were fetched.
    pub fetched: u64,
    /// Links between its own pages.
    pub links_inside: u64,
    /// Hosts that link here, most links first.
    pub hosts_in: Vec<HostLink>,
    /// Hosts that it links to, most links first.
    pub hosts_out: Vec<HostLink>,
    /// Whether there was too much to count it all, and the figures are of a part.
    pub partial: bool,
    /// Its pages with the most links from anywhere.
    pub top_pages: Vec<Scored>,
    /// Its ranks among hosts, if they were computed.
    pub ranks: Vec<RankOf>,
}

/// Links between two hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct HostLink {
    /// The other host.
    pub host: String,
    /// Links between their pages.
    pub links: u64,
}

/// A page with a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Scored {
    /// The page.
    pub url: String,
    /// The figure: links in, shared pages, …
    pub score: f64,
}

/// Pages that are linked together with one, best first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct CocitedAnswer {
    /// The page.
    pub url: String,
    /// Pages that link to it and were looked at.
    pub pages_looked_at: u64,
    /// Those linked together with it.
    pub cocited: Vec<Cocited>,
}

/// A page that others link to together with the one asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Cocited {
    /// The page.
    pub url: String,
    /// Pages that link to both.
    pub together: u64,
    /// The same, where pages with many links count less.
    pub score: f64,
}

/// The pages around one, for a picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct NeighbourhoodAnswer {
    /// The page in the middle, the first of `nodes`.
    pub url: String,
    /// The pages.
    pub nodes: Vec<Neighbour>,
    /// Links between them, as places in `nodes`.
    pub arcs: Vec<(u32, u32)>,
    /// Whether there are more around it than these.
    pub partial: bool,
}

/// A page of a picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Neighbour {
    /// The page.
    pub url: String,
    /// Its host.
    pub host: String,
    /// Whether it was fetched.
    pub fetched: bool,
    /// Links that lead to it, from everywhere.
    pub links_in: u64,
    /// "centre", "in", "out" or "both": how it is linked with the one in the middle.
    pub side: &'static str,
}

/// The way from one page to another along links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct PathAnswer {
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Links to follow; nothing if there is no way, or none was found.
    pub hops: Option<u32>,
    /// The pages on the way, both ends included.
    pub path: Vec<String>,
    /// Whether the search was given up before everything was looked at.
    pub gave_up: bool,
}

/// The graph in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Overview {
    /// URLs known.
    pub urls: u64,
    /// Pages fetched, whose links are known.
    pub pages: u64,
    /// Links.
    pub links: u64,
    /// Hosts.
    pub hosts: u64,
    /// Pages with the highest rank, or, without ranks, with the most links to them.
    pub top: Vec<Scored>,
    /// What `top` goes by: "pagerank" or "links_in".
    pub top_by: String,
    /// Whether the crawl goes on.
    pub running: bool,
}
