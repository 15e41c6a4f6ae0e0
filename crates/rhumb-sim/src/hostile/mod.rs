//! The hostile web: one host for every mistake and every attack a crawler meets.
//!
//! A [`Kind`] is one way to misbehave: a name, one line about it, how its URLs must end by named outcome, and how many
//! requests a crawl may spend on it at the most. Its host is `<name>-hostile.example`, so that each kind is a registrable
//! domain of its own, as strangers on the web are; every kind has a loopback address of its own too, given by the DNS
//! server of [`crate::Server`] through [`HostileServer::names`], so that those that misbehave before there is a request
//! can be told apart.
//!
//! Invariant: the registry is the truth. Whatever a kind promises in `ends` is what the crawler is tested against, and
//! docs/hostile-web.md is checked against it.
//!
//! Read `server.rs` next (sockets), then the groups: `traps`, `redirects`, `bodies`, `documents` and `heads`, `rates`, `robots`, `tls`
//! (with `certs`), `http2` (with `frames`), `dns`.

mod bodies;
mod certs;
mod dns;
#[cfg(test)]
mod document;
mod documents;
mod frames;
mod heads;
mod http2;
mod names;
mod packed;
mod page;
mod rates;
mod redirects;
mod robots;
mod server;
mod tls;
mod traps;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use rhumb_core::frontier::Reason;
use rhumb_core::outcome::Outcome;
use serde::Serialize;
use tokio::net::TcpStream;

pub use dns::{INSIDE_V4, INSIDE_V6};
pub use names::{Question, Told};
pub use server::{Dial, HostileConfig, HostileServer, Leak};

use crate::web::respond::Reply;
use certs::Certificates;

/// What all host names of this web end with. Not `.test`, which counts as a name of one's own network: a crawler that is given
/// one as a seed may dial it wherever it leads, and these names must not have that leave.
pub const SUFFIX: &str = "-hostile.example";

/// A host on an address that nobody may dial: what the redirects "to this machine" lead to. The server counts who does.
pub const FORBIDDEN: Ipv4Addr = Ipv4Addr::new(127, 9, 9, 9);

/// What kinds have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// URLs without end.
    Traps,
    /// Redirects to nowhere, to everywhere and to where nobody may go.
    Redirects,
    /// Bodies that never end, lie or break.
    Bodies,
    /// Feeds and PDFs that hurt whoever reads them.
    Documents,
    /// Response heads that lie or break.
    Heads,
    /// Answers that ask for less.
    Rates,
    /// Strange robots.txt files, and sitemaps.
    Robots,
    /// TLS that does not come about.
    Tls,
    /// HTTP/2 out of order.
    Http2,
    /// Names that lead nowhere, or astray.
    Dns,
}

impl Group {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Group::Traps => "traps",
            Group::Redirects => "redirects",
            Group::Bodies => "bodies",
            Group::Documents => "documents",
            Group::Heads => "heads",
            Group::Rates => "rates",
            Group::Robots => "robots",
            Group::Tls => "TLS",
            Group::Http2 => "HTTP/2",
            Group::Dns => "DNS",
        }
    }
}

/// One way to misbehave.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The first part of its host's name.
    pub name: &'static str,
    /// Which chapter it belongs to.
    pub group: Group,
    /// What it does, in one line for people.
    pub about: &'static str,
    /// How its URLs must end.
    pub ends: &'static [End],
    /// Well-behaved pages beside the trouble, `/page/1` and so on: all of them must be fetched.
    pub honest: u32,
    /// Most requests that one crawl with the test's settings may make of it, robots.txt and retries included.
    pub requests_max: u64,
    /// Whether its URLs are https.
    pub https: bool,
    /// Whether it answers for robots.txt itself; otherwise there is none (404).
    pub own_robots: bool,
    /// How it answers.
    pub serve: Serve,
    /// How its name is answered for; `None`: with its own address.
    pub dns: Option<fn(&Question<'_>) -> Told>,
}

/// How a kind answers.
#[derive(Clone, Copy, Debug)]
pub enum Serve {
    /// A pure function from request to reply. Honest pages are served in front of it.
    Reply(fn(&Asked<'_>) -> Reply),
    /// Writes what it likes, when it likes, once the request has been read. The connection ends when it is done.
    Wire(fn(Wire) -> Task),
    /// Gets the connection as it is accepted, over HTTP or HTTPS alike; it is told apart by its address.
    Raw(fn(Wire) -> Task),
    /// Has no server, only a name.
    Nothing,
}

/// Something that happens on a connection.
pub type Task = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// A request, as far as kinds look at it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The host asked for, without port.
    pub host: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The `Cookie` header.
    pub cookie: Option<&'a str>,
    /// What is known of the whole server.
    pub place: &'a Place,
}

impl Asked<'_> {
    /// A URL on another kind's host.
    pub fn url(&self, kind: &str, path: &str) -> String {
        format!("http://{kind}{SUFFIX}:{}{path}", self.place.port)
    }

    /// What stands behind the question mark.
    pub fn query(&self) -> &str {
        self.path.split_once('?').map_or("", |(_, query)| query)
    }
}

/// Where the server is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The port of HTTP.
    pub port: u16,
    /// The port of HTTPS.
    pub tls_port: u16,
    /// What HTTPS shows, if it is served.
    pub(crate) certificates: Option<Arc<Certificates>>,
    /// What floods have sent.
    pub(crate) taken: Arc<Taken>,
}

/// How many bytes clients took from each kind that floods them before they had enough.
#[derive(Debug, Default)]
pub(crate) struct Taken(Mutex<BTreeMap<&'static str, u64>>);

impl Taken {
    pub(crate) fn add(&self, kind: &Kind, bytes: usize) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind.name).or_default() += bytes as u64;
    }
}

/// A connection that a kind may do with as it likes.
pub struct Wire {
    /// The stream.
    pub stream: TcpStream,
    /// The kind that was dialled.
    pub kind: &'static Kind,
    /// Path and query that were asked for; empty for [`Serve::Raw`].
    pub path: String,
    /// Whether it came in at the port for HTTPS.
    pub tls: bool,
    /// Where the server is.
    pub place: Arc<Place>,
}

/// How one URL must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// A path on the kind's host, or a whole URL in which `{port}` stands for the server's port.
    pub url: &'static str,
    /// The outcome, after all retries; of a host that is held, the last failure.
    pub outcome: Outcome,
    /// Why the host is held, if the URL does not end but waits with it.
    pub held: Option<Reason>,
    /// Whether what was kept is cut short.
    pub cut: bool,
    /// What the detail must say, if it must say something.
    pub detail: &'static str,
}

impl End {
    /// This URL ends so.
    pub const fn of(url: &'static str, outcome: Outcome) -> End {
        End { url, outcome, held: None, cut: false, detail: "" }
    }

    /// The URL waits with its host, which is held for this reason.
    #[must_use]
    pub const fn held(mut self, reason: Reason) -> End {
        self.held = Some(reason);
        self
    }

    /// What was kept is cut short.
    #[must_use]
    pub const fn cut(mut self) -> End {
        self.cut = true;
        self
    }

    /// The detail says this.
    #[must_use]
    pub const fn detail(mut self, detail: &'static str) -> End {
        self.detail = detail;
        self
    }
}

impl Kind {
    /// What kinds are made from: a host without pages.
    pub const BARE: Kind = Kind {
        name: "",
        group: Group::Traps,
        about: "",
        ends: &[],
        honest: 0,
        requests_max: 0,
        https: false,
        own_robots: false,
        serve: Serve::Nothing,
        dns: None,
    };

    /// Its host.
    pub fn host(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// The URL of a path on its host, or of a whole URL with a placeholder for the port.
    pub fn url(&self, path: &str, place: &Place) -> String {
        if !path.starts_with('/') {
            return path.replace("{port}", &place.port.to_string());
        }
        let (scheme, port) = if self.https { ("https", place.tls_port) } else { ("http", place.port) };
        format!("{scheme}://{}:{port}{path}", self.host())
    }

    /// Where a crawl of it begins: at the trouble, and at the first honest page, because there may be no way from one to
    /// the other.
    pub fn seeds(&self, place: &Place) -> Vec<String> {
        let paths = if self.honest > 0 { &["/", "/page/1"][..] } else { &["/"] };
        paths.iter().map(|path| self.url(path, place)).collect()
    }

    /// All URLs whose end is known, with that end.
    pub fn expected(&self, place: &Place) -> Vec<(String, End)> {
        let honest = (1..=self.honest).map(|n| (self.url(&page::path(n), place), End::of("", Outcome::Ok)));
        self.ends.iter().map(|end| (self.url(end.url, place), *end)).chain(honest).collect()
    }
}

/// The kinds, group by group.
static GROUPS: [&[Kind]; 10] = [
    traps::KINDS,
    redirects::KINDS,
    bodies::KINDS,
    documents::KINDS,
    heads::KINDS,
    rates::KINDS,
    robots::KINDS,
    tls::KINDS,
    http2::KINDS,
    dns::KINDS,
];

/// All kinds.
pub fn kinds() -> impl Iterator<Item = &'static Kind> {
    GROUPS.iter().flat_map(|group| group.iter())
}

/// The kind that a host name belongs to, sub-domains and a port allowed.
pub fn kind_of(host: &str) -> Option<&'static Kind> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix(SUFFIX)?;
    let name = name.rsplit_once('.').map_or(name, |(_, last)| last);
    kinds().find(|kind| kind.name.eq_ignore_ascii_case(name))
}

/// Where all kinds live. Nothing else of the synthetic web does.
pub const NETWORK: &str = "127.1.0.0/16";

/// How many kinds share the third byte of an address.
const PER_NET: usize = 250;

/// The loopback address of a kind.
pub fn address_of(kind: &Kind) -> Ipv4Addr {
    let n = kinds().position(|k| k.name == kind.name).unwrap_or(0);
    Ipv4Addr::new(127, 1, (n / PER_NET) as u8, 1 + (n % PER_NET) as u8)
}

/// The kind at a loopback address.
pub fn kind_at(address: Ipv4Addr) -> Option<&'static Kind> {
    let [127, 1, net, host @ 1..=255] = address.octets() else { return None };
    let n = usize::from(net) * PER_NET + usize::from(host - 1);
    if usize::from(host) > PER_NET { None } else { kinds().nth(n) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_and_can_stand_in_a_url() {
        let names: BTreeSet<&str> = kinds().map(|k| k.name).collect();
        assert_eq!(names.len(), kinds().count());
        for kind in kinds() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!kind.name.is_empty() && kind.name.chars().all(plain), "{}", kind.name);
            assert!(!kind.about.is_empty() && !kind.about.contains(['\n', '|']), "{}", kind.name);
            assert!(kind.requests_max > 0 || matches!(kind.serve, Serve::Nothing), "{}", kind.name);
        }
    }

    #[test]
    fn kinds_are_found_by_name_and_by_address() {
        for kind in kinds() {
            assert_eq!(kind_of(&kind.host()).map(|k| k.name), Some(kind.name));
            assert_eq!(kind_of(&format!("a.b.{}:80", kind.host())).map(|k| k.name), Some(kind.name));
            assert_eq!(kind_at(address_of(kind)).map(|k| k.name), Some(kind.name));
        }
        for stranger in ["", "example.org", "nobody-hostile.example", "hostile.example"] {
            assert!(kind_of(stranger).is_none(), "{stranger}");
        }
        for stranger in [FORBIDDEN, Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 1, 200, 1), Ipv4Addr::new(127, 1, 0, 255)] {
            assert!(kind_at(stranger).is_none(), "{stranger}");
        }
    }
}
