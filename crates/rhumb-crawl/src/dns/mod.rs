//! Names to addresses: an asynchronous stub resolver of our own (SPEC C9).
//!
//! A crawler asks for more names, more of them dead, than any other program. Mercator spent 87 % of its threads' time
//! in the system's resolver until it had its own. This one keeps many questions in flight, remembers answers, denials
//! *and* failures, asks once for what many want to know, and can be told in advance which names will be needed.
//!
//! The life of a look-up: [`Resolver::lookup`] puts the name into its one form and answers at once what needs no server
//! (`system.rs`) or is remembered (`cache.rs`). Otherwise the name goes through a bounded channel to the driver
//! (`driver.rs`), a single task that owns every question under way, joins look-ups of one name, sends and receives
//! (`transport.rs`) messages (`wire.rs`), keeps the schedule of attempts, and puts the outcome into the cache.
//!
//! **Invariant**: each look-up ends, in an address or a named [`DnsError`], after a bounded number of datagrams and a
//! bounded time, whatever the servers say. Nothing is judged here about *where* an address leads: the fetcher does that
//! when it connects.
//!
//! **Against forgers**: an answer counts only from the server asked (the kernel drops others), to the port that asked (one
//! of eight of the system's random choice), with the random id (16 bits) and the very question that was sent, while that
//! is open. So each forged datagram has a chance of one in half a million, and a link farm on the forger's pages buys no
//! more: it makes us ask for many names, but an answer speaks for the name asked for and its aliases alone. What else a
//! message says (other owners, authority, additional records) is never believed, let alone remembered.
//!
//! Read next: `driver.rs`.

mod bench;
mod cache;
mod driver;
mod flight;
mod outcome;
mod system;
mod transport;
pub(crate) mod wire;

#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wire_tests;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

pub use bench::{BenchFigures, bench};
pub use cache::ENTRY_BYTES;
use cache::{Cache, Knowledge};
use driver::Driver;

/// How the resolver behaves. Every bound has a name and a default.
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// Recursive name servers in order of preference. An attempt that stays unanswered is followed by one elsewhere.
    pub servers: Vec<SocketAddr>,
    /// UDP sockets per server, each on a random port of the system's choice.
    pub sockets: usize,
    /// How long each attempt waits for an answer before the next; their number is the number of attempts. An answer to
    /// an earlier attempt is still welcome during a later one.
    pub schedule: Vec<Duration>,
    /// How long a question over TCP may take as a whole.
    pub tcp_wait: Duration,
    /// TCP connections open at once.
    pub tcp_max: usize,
    /// Names in their first attempt at once. The default lets a burst of answers, or of questions at the server, fit
    /// into a socket buffer of the usual 208 KiB; more would lose datagrams, and each loss costs a wait of a second.
    pub in_flight_max: usize,
    /// Names under way at once, those in later attempts and those waiting for their first included.
    pub names_max: usize,
    /// Names waiting to be prefetched; further ones are dropped.
    pub prefetch_max: usize,
    /// Addresses are believed at least so long: a prefetched name must last until its fetch.
    pub ttl_min: Duration,
    /// Addresses are believed at most so long.
    pub ttl_max: Duration,
    /// NXDOMAIN and "no address" are believed at least so long; also where no SOA record says how long.
    pub negative_ttl_min: Duration,
    /// NXDOMAIN and "no address" are believed at most so long.
    pub negative_ttl_max: Duration,
    /// A name whose servers fail is not asked for again so soon; the time doubles with each failure in a row.
    pub failure_ttl_min: Duration,
    /// The longest such pause.
    pub failure_ttl_max: Duration,
    /// Names remembered; one that takes more than [`ENTRY_BYTES`] counts for several.
    pub cache_entries_max: usize,
    /// Whether IPv6 addresses are asked for too, at the same time.
    pub ipv6: bool,
    /// File of names with fixed addresses; `None` for none.
    pub hosts_file: Option<PathBuf>,
}

impl DnsConfig {
    /// The defaults with the servers of the system's `resolv.conf`, or the loopback address where there are none.
    pub fn from_system() -> DnsConfig {
        DnsConfig::with_servers(system::system_servers())
    }

    /// The defaults with these servers.
    ///
    /// The schedule has the five attempts of Mercator, each wait 2.75 times the one before: 1 s at first, 89 s in all,
    /// because there are names that take tens of seconds to resolve.
    pub fn with_servers(servers: Vec<SocketAddr>) -> DnsConfig {
        DnsConfig {
            servers,
            sockets: 8,
            schedule: [1_000, 2_750, 7_500, 20_750, 57_000].map(Duration::from_millis).to_vec(),
            tcp_wait: Duration::from_secs(10),
            tcp_max: 64,
            in_flight_max: 192,
            names_max: 65_536,
            prefetch_max: 8_192,
            ttl_min: Duration::from_secs(60),
            ttl_max: Duration::from_secs(86_400),
            negative_ttl_min: Duration::from_secs(60),
            negative_ttl_max: Duration::from_secs(3_600),
            failure_ttl_min: Duration::from_secs(5),
            failure_ttl_max: Duration::from_secs(60),
            cache_entries_max: 262_144,
            ipv6: false,
            hosts_file: Some(PathBuf::from("/etc/hosts")),
        }
    }
}

/// Addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// At least one address and at most sixteen, IPv4 first, otherwise in the server's order.
    pub addresses: Arc<[IpAddr]>,
    /// Until when the resolver will go on saying so.
    pub expires: Instant,
}

/// Why a name has no address. That is the web being the web: a value to act upon, not a failure of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DnsError {
    /// The name does not exist.
    #[error("the name does not exist (NXDOMAIN)")]
    NxDomain,
    /// The name exists and has no address.
    #[error("the name has no address")]
    NoData,
    /// The name servers could not find out.
    #[error("the name server failed (SERVFAIL)")]
    ServFail,
    /// The name servers would not say.
    #[error("the name server refused to answer (REFUSED)")]
    Refused,
    /// No answer came to any attempt.
    #[error("no name server answered in time")]
    Timeout,
    /// The name is an alias in a circle, or of too many aliases.
    #[error("the name's aliases (CNAME) lead in a circle or too far")]
    CnameLoop,
    /// The name servers answered with something unreadable.
    #[error("the name server's answer could not be read")]
    Malformed,
    /// Not a name at all: an empty or overlong label, or characters that no name has.
    #[error("not a valid host name")]
    BadName,
    /// The resolver has been shut down.
    #[error("the resolver has been shut down")]
    Closed,
}

impl DnsError {
    /// Its name in logs, counts and JSON.
    pub fn name(self) -> &'static str {
        match self {
            DnsError::NxDomain => "nxdomain",
            DnsError::NoData => "no_data",
            DnsError::ServFail => "servfail",
            DnsError::Refused => "refused",
            DnsError::Timeout => "timeout",
            DnsError::CnameLoop => "cname_loop",
            DnsError::Malformed => "malformed",
            DnsError::BadName => "bad_name",
            DnsError::Closed => "closed",
        }
    }

    /// Whether asking again soon is pointless: the name itself is wrong. The others are worth a later attempt.
    pub fn is_permanent(self) -> bool {
        match self {
            DnsError::NxDomain | DnsError::NoData | DnsError::CnameLoop | DnsError::BadName => true,
            DnsError::ServFail | DnsError::Refused | DnsError::Timeout | DnsError::Malformed | DnsError::Closed => {
                false
            }
        }
    }
}

/// What the resolver has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Datagrams sent, repetitions included.
    pub queries: u64,
    /// Answers that matched a question.
    pub answers: u64,
    /// Datagrams that matched none: late, stray or forged.
    pub strays: u64,
    /// Attempts that nobody answered in time.
    pub timeouts: u64,
    /// Questions asked over TCP because the answer was truncated.
    pub tcp: u64,
    /// Look-ups answered without asking: from the cache, the hosts file or the name itself.
    pub cache_hits: u64,
    /// Look-ups that joined one already under way.
    pub coalesced: u64,
    /// Names taken up for prefetching.
    pub prefetched: u64,
    /// Names not prefetched because too many were waiting.
    pub prefetch_dropped: u64,
    /// Names in the cache now.
    pub cache_entries: u64,
}

/// The running numbers behind [`Stats`].
#[derive(Default)]
struct Counters {
    queries: AtomicU64,
    answers: AtomicU64,
    strays: AtomicU64,
    timeouts: AtomicU64,
    tcp: AtomicU64,
    cache_hits: AtomicU64,
    coalesced: AtomicU64,
    prefetched: AtomicU64,
    prefetch_dropped: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// What look-ups and the driver share.
struct Shared {
    config: DnsConfig,
    hosts: system::Hosts,
    cache: Cache,
    counters: Counters,
    began: Instant,
}

impl Shared {
    fn now_ms(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

/// What is known of a name, and until when in the resolver's milliseconds.
type Known = (Knowledge, u64);

/// How far a name gets without a server.
enum Knowing {
    Known(Known),
    Unknown(Arc<str>),
}

/// A look-up on its way to the driver.
struct Ask {
    name: Arc<str>,
    reply: oneshot::Sender<Known>,
}

/// The resolver. Look-ups may be awaited on any thread and any runtime.
pub struct Resolver {
    shared: Arc<Shared>,
    asks: mpsc::Sender<Ask>,
    prefetches: mpsc::Sender<Arc<str>>,
}

impl Resolver {
    /// Binds the sockets and starts the driver on the current tokio runtime. The driver ends when the resolver is
    /// dropped; when its runtime ends first, look-ups end in [`DnsError::Closed`].
    pub fn new(config: DnsConfig) -> io::Result<Arc<Resolver>> {
        if config.servers.is_empty() || config.schedule.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a resolver needs a server and a schedule"));
        }
        let hosts = match &config.hosts_file {
            Some(path) => system::read_hosts(path, config.ipv6),
            None => system::Hosts::new(),
        };
        let (asks, asked) = mpsc::channel(config.in_flight_max.max(1));
        let (prefetches, to_prefetch) = mpsc::channel(config.prefetch_max.max(1));
        let cache = Cache::new(config.cache_entries_max);
        let shared = Arc::new(Shared { config, hosts, cache, counters: Counters::default(), began: Instant::now() });
        let driver = Driver::new(Arc::clone(&shared), asked, to_prefetch)?;
        tokio::spawn(driver.run());
        Ok(Arc::new(Resolver { shared, asks, prefetches }))
    }

    /// The addresses of a name, from memory or from the servers.
    pub async fn lookup(&self, name: &str) -> Result<Answer, DnsError> {
        let name = match self.know(name) {
            Knowing::Known(known) => return self.answer(known),
            Knowing::Unknown(name) => name,
        };
        let (reply, answer) = oneshot::channel();
        self.asks.send(Ask { name, reply }).await.map_err(|_| DnsError::Closed)?;
        self.answer(answer.await.map_err(|_| DnsError::Closed)?)
    }

    /// What a look-up would say now without asking anybody.
    pub fn lookup_cached(&self, name: &str) -> Option<Result<Answer, DnsError>> {
        match self.know(name) {
            Knowing::Known(known) => Some(self.answer(known)),
            Knowing::Unknown(_) => None,
        }
    }

    /// Has a name looked up that will be needed soon, unless it is known or too many are waiting. Never waits; says
    /// whether the name is known or will be.
    pub fn prefetch(&self, name: &str) -> bool {
        let Knowing::Unknown(name) = self.know(name) else { return true };
        let accepted = self.prefetches.try_send(name).is_ok();
        if !accepted {
            count(&self.shared.counters.prefetch_dropped);
        }
        accepted
    }

    /// What has been done so far.
    pub fn stats(&self) -> Stats {
        let counters = &self.shared.counters;
        Stats {
            queries: counters.queries.load(Relaxed),
            answers: counters.answers.load(Relaxed),
            strays: counters.strays.load(Relaxed),
            timeouts: counters.timeouts.load(Relaxed),
            tcp: counters.tcp.load(Relaxed),
            cache_hits: counters.cache_hits.load(Relaxed),
            coalesced: counters.coalesced.load(Relaxed),
            prefetched: counters.prefetched.load(Relaxed),
            prefetch_dropped: counters.prefetch_dropped.load(Relaxed),
            cache_entries: self.shared.cache.len() as u64,
        }
    }

    /// Answers what needs no server, or puts the name into its one form.
    fn know(&self, name: &str) -> Knowing {
        let shared = &self.shared;
        let now_ms = shared.now_ms();
        let fixed = |knowledge| Some((knowledge, u64::MAX));
        if let Some(ip) = system::literal(name) {
            return Knowing::Known((Ok(Arc::new([ip])), u64::MAX));
        }
        let canonical = match system::canonical_name(name) {
            Ok(canonical) => canonical,
            Err(error) => return Knowing::Known((Err(error), u64::MAX)),
        };
        let name = canonical.as_str();
        let known = match shared.hosts.get(name) {
            Some(list) => fixed(Ok(Arc::clone(list))),
            None => match system::reserved(name, shared.config.ipv6) {
                Some(knowledge) => fixed(knowledge),
                None => shared.cache.get(name, now_ms),
            },
        };
        match known {
            Some(known) => {
                count(&shared.counters.cache_hits);
                Knowing::Known(known)
            }
            None => Knowing::Unknown(name.into()),
        }
    }

    fn answer(&self, (knowledge, expires_ms): Known) -> Result<Answer, DnsError> {
        let addresses = knowledge?;
        // What never expires is good for as long as anything may be.
        let lasts = (expires_ms != u64::MAX).then(|| self.shared.began.checked_add(Duration::from_millis(expires_ms)));
        let expires = lasts.flatten().unwrap_or_else(|| Instant::now() + self.shared.config.ttl_max.min(FOREVER));
        Ok(Answer { addresses, expires })
    }
}

/// Longer than any crawl waits, and short enough to be added to a time.
const FOREVER: Duration = Duration::from_secs(366 * 86_400);

/// A duration in the resolver's unit.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
