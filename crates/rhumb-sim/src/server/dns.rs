//! DNS for the names of the web: a small authoritative server over UDP and TCP (RFC 1035, RFC 7766).
//!
//! It answers A for known hosts, "no data" for other types of a known host and NXDOMAIN for the rest, the latter two
//! with a SOA record that says how long to remember it (RFC 2308). It can be told to be slow, to lose queries, to fail
//! and to truncate; which queries fare ill follows from the seed, the name and how often it has been asked for.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Shared, accept};
use crate::hash::{Dice, Purpose, mix_bytes};
use crate::hostile::{Question, Told};
use crate::web::Web;

/// How the DNS server behaves.
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// How long answers may be kept.
    pub ttl_s: u32,
    /// How long it may be kept that there is no answer.
    pub negative_ttl_s: u32,
    /// Wait before every answer.
    pub delay_ms: u64,
    /// The first so many UDP queries for every name are not answered.
    pub lose_first: u64,
    /// Share of UDP queries that are not answered.
    pub loss_share: f64,
    /// Share of queries answered with SERVFAIL.
    pub servfail_share: f64,
    /// Share of UDP queries answered with nothing but the truncation bit.
    pub truncate_share: f64,
    /// Count queries per name (memory grows with the names asked for).
    pub count: bool,
    /// Who speaks for names that are not of the web.
    pub others: Option<Others>,
}

/// Speaks for names that are not of the web; asked first.
#[derive(Clone)]
pub struct Others(Arc<Speaker>);

type Speaker = dyn Fn(&Question<'_>) -> Option<Told> + Send + Sync;

impl Others {
    /// Names are answered for by this function; `None` means that the name is the web's.
    pub fn new(answer: impl Fn(&Question<'_>) -> Option<Told> + Send + Sync + 'static) -> Others {
        Others(Arc::new(answer))
    }
}

impl std::fmt::Debug for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Others")
    }
}

impl Default for DnsConfig {
    fn default() -> Self {
        DnsConfig {
            ttl_s: 300,
            negative_ttl_s: 60,
            delay_ms: 0,
            lose_first: 0,
            loss_share: 0.0,
            servfail_share: 0.0,
            truncate_share: 0.0,
            count: true,
            others: None,
        }
    }
}

/// The answering part, without sockets.
pub(crate) struct Dns {
    web: Web,
    config: DnsConfig,
    counts: Mutex<BTreeMap<String, u64>>,
    total: AtomicU64,
}

const TYPE_A: u16 = 1;
const TYPE_SOA: u16 = 6;
const TYPE_AAAA: u16 = 28;
const TYPE_OPT: u16 = 41;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;
const FORMERR: u8 = 1;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
const NOTIMP: u8 = 4;
const REFUSED: u8 = 5;

/// A query that was understood.
struct Query {
    name: String,
    kind: u16,
    class: u16,
    /// Where the question ends in the message.
    end: usize,
    edns: bool,
}

impl Dns {
    pub(crate) fn new(web: Web, config: DnsConfig) -> Self {
        Dns { web, config, counts: Mutex::default(), total: AtomicU64::new(0) }
    }

    pub(crate) fn queries(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer to a message, or none if the message is no query or its loss is being played.
    fn answer(&self, message: &[u8], udp: bool) -> Option<Vec<u8>> {
        if message.len() < 12 || message[2] & 0x80 != 0 {
            return None;
        }
        if message[2] & 0x78 != 0 {
            return Some(bare(message, NOTIMP));
        }
        let Some(query) = parse(message) else { return Some(bare(message, FORMERR)) };
        let earlier = self.note(&query.name);
        if let Some(Others(speak)) = &self.config.others {
            let Query { name, kind, end, .. } = &query;
            let question = Question { name, kind: *kind, earlier, udp, message, end: *end };
            if let Some(told) = speak(&question) {
                return self.tell(message, &query, told);
            }
        }
        let seed = self.web.config().seed;
        let mut dice = Dice::new(mix_bytes(seed ^ earlier, Purpose::Dns, query.name.as_bytes()));
        if udp && (earlier < self.config.lose_first || dice.chance(self.config.loss_share)) {
            return None;
        }
        if dice.chance(self.config.servfail_share) {
            return Some(reply(message, &query, SERVFAIL, false, Records::None));
        }
        if udp && dice.chance(self.config.truncate_share) {
            return Some(reply(message, &query, 0, true, Records::None));
        }
        if query.class != CLASS_IN {
            return Some(reply(message, &query, REFUSED, false, Records::None));
        }
        let soa = Records::Soa(self.config.negative_ttl_s);
        Some(match self.web.host_index(&query.name) {
            Some(host) if matches!(query.kind, TYPE_A | TYPE_ANY) => {
                let addresses = [self.web.address(host).into()];
                reply(message, &query, 0, false, Records::Addresses(&addresses, self.config.ttl_s))
            }
            Some(_) => reply(message, &query, 0, false, soa),
            None => reply(message, &query, NXDOMAIN, false, soa),
        })
    }

    /// What others say of a name, as a message.
    fn tell(&self, message: &[u8], query: &Query, told: Told) -> Option<Vec<u8>> {
        let soa = Records::Soa(self.config.negative_ttl_s);
        match told {
            Told::Silence => None,
            Told::Message(bytes) => Some(bytes),
            Told::Code(NXDOMAIN) => Some(reply(message, query, NXDOMAIN, false, soa)),
            Told::Code(code) => Some(reply(message, query, code, false, Records::None)),
            Told::Addresses { mut addresses, ttl_s } => {
                addresses.retain(|a| query.kind == TYPE_ANY || query.kind == type_of(a));
                let records = if addresses.is_empty() { soa } else { Records::Addresses(&addresses, ttl_s) };
                Some(reply(message, query, 0, false, records))
            }
        }
    }

    /// Counts a query and says how many there were before (of this name, if names are counted).
    fn note(&self, name: &str) -> u64 {
        let total = self.total.fetch_add(1, Ordering::Relaxed);
        if !self.config.count {
            return total;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}

/// Binds UDP and TCP to the same port.
pub(crate) fn bind(addr: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let context = |e: io::Error| io::Error::new(e.kind(), format!("listen for DNS on {addr}: {e}"));
    let mut attempts = 0;
    loop {
        let udp = UdpSocket::bind(addr).map_err(context)?;
        match TcpListener::bind(udp.local_addr()?) {
            Ok(tcp) => {
                udp.set_nonblocking(true)?;
                tcp.set_nonblocking(true)?;
                return Ok((udp, tcp));
            }
            // A free UDP port need not be free for TCP; with port 0 there are others to try.
            Err(_) if addr.port() == 0 && attempts < 20 => attempts += 1,
            Err(e) => return Err(context(e)),
        }
    }
}

/// Serves both sockets for ever.
pub(crate) async fn listen(udp: UdpSocket, tcp: TcpListener, shared: Arc<Shared>) {
    let (Ok(udp), Ok(tcp)) = (tokio::net::UdpSocket::from_std(udp), tokio::net::TcpListener::from_std(tcp)) else {
        return;
    };
    let udp = Arc::new(udp);
    let datagrams = async {
        let mut message = [0; 4096];
        loop {
            let Ok((length, peer)) = udp.recv_from(&mut message).await else { continue };
            let Some(answer) = shared.dns.answer(&message[..length], true) else { continue };
            if shared.dns.config.delay_ms == 0 {
                let _ = udp.send_to(&answer, peer).await;
                continue;
            }
            let (udp, delay) = (udp.clone(), Duration::from_millis(shared.dns.config.delay_ms));
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let _ = udp.send_to(&answer, peer).await;
            });
        }
    };
    let streams = async {
        loop {
            let (stream, _) = accept(&tcp).await;
            let shared = shared.clone();
            tokio::spawn(async move {
                let _ = converse(stream, &shared.dns).await;
            });
        }
    };
    tokio::join!(datagrams, streams);
}

async fn converse(mut stream: TcpStream, dns: &Dns) -> io::Result<()> {
    loop {
        let mut message = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut message).await?;
        let Some(answer) = dns.answer(&message, false) else {
            // Silence, not a closed door.
            while stream.read(&mut message).await? > 0 {}
            return Ok(());
        };
        if answer.is_empty() {
            return Ok(());
        }
        if dns.config.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(dns.config.delay_ms)).await;
        }
        let mut framed = (answer.len() as u16).to_be_bytes().to_vec();
        framed.extend_from_slice(&answer);
        stream.write_all(&framed).await?;
    }
}

/// Reads the header and the one question; compressed names do not occur in questions and are refused.
fn parse(message: &[u8]) -> Option<Query> {
    let word = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    if word(4)? != 1 {
        return None;
    }
    let mut name = String::new();
    let mut at = 12;
    loop {
        let length = usize::from(*message.get(at)?);
        if length == 0 {
            break;
        }
        if length > 63 || name.len() > 255 {
            return None;
        }
        let label = message.get(at + 1..at + 1 + length)?;
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().map(|&b| char::from(b).to_ascii_lowercase()));
        at += 1 + length;
    }
    let end = at + 5;
    let query = Query { name, kind: word(at + 1)?, class: word(at + 3)?, end, edns: false };
    let edns = word(10)? > 0 && message.get(end) == Some(&0) && word(end + 1) == Some(TYPE_OPT);
    Some(Query { edns, ..query })
}

/// What an answer holds beside the question.
enum Records<'a> {
    None,
    Addresses(&'a [IpAddr], u32),
    Soa(u32),
}

fn type_of(address: &IpAddr) -> u16 {
    if address.is_ipv4() { TYPE_A } else { TYPE_AAAA }
}

fn reply(message: &[u8], query: &Query, code: u8, truncated: bool, records: Records<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(query.end + 64);
    out.extend_from_slice(&message[..query.end]);
    // Response, authoritative; the recursion-desired bit is echoed. Not offering recursion is honest, and stubs differ
    // in whether they mind, so the bit is set as any resolver would.
    out[2] = 0x84 | (message[2] & 0x01) | if truncated { 0x02 } else { 0 };
    out[3] = 0x80 | code;
    let (mut answers, mut authorities) = (0, 0);
    // Names in records point at the question's name.
    let mut record = |kind: u16, ttl: u32, data: &[u8]| {
        out.extend_from_slice(&[0xC0, 12]);
        for field in [kind, CLASS_IN] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(&ttl.to_be_bytes());
        out.extend_from_slice(&(data.len() as u16).to_be_bytes());
        out.extend_from_slice(data);
    };
    match records {
        Records::None => {}
        Records::Addresses(addresses, ttl) => {
            for address in addresses {
                match address {
                    IpAddr::V4(v4) => record(TYPE_A, ttl, &v4.octets()),
                    IpAddr::V6(v6) => record(TYPE_AAAA, ttl, &v6.octets()),
                }
            }
            answers = addresses.len() as u16;
        }
        Records::Soa(ttl) => {
            // Primary and mailbox are the root; serial, refresh, retry, expire, minimum follow.
            let mut data = vec![0, 0];
            for field in [1u32, 3_600, 600, 86_400, ttl] {
                data.extend_from_slice(&field.to_be_bytes());
            }
            record(TYPE_SOA, ttl, &data);
            authorities = 1;
        }
    }
    if query.edns {
        out.extend_from_slice(&[0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    }
    for (at, count) in [(4, 1), (6, answers), (8, authorities), (10, u16::from(query.edns))] {
        out[at..at + 2].copy_from_slice(&u16::to_be_bytes(count));
    }
    out
}

/// An error without question, for what cannot be read.
fn bare(message: &[u8], code: u8) -> Vec<u8> {
    let mut out = vec![0; 12];
    out[..2].copy_from_slice(&message[..2]);
    out[2] = 0x80 | (message[2] & 0x79);
    out[3] = code;
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Server, ServerConfig, WebConfig};
    use hickory_proto::op::{Message, MessageType, OpCode, Query as Question, ResponseCode};
    use hickory_proto::rr::{Name, RData, RecordType};
    use std::io::{Read, Write};

    fn server(dns_config: DnsConfig) -> Server {
        let dns = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let web = Web::new(WebConfig::plain(100, 5)).unwrap();
        Server::start(web, ServerConfig { dns, dns_config, ..ServerConfig::default() }).unwrap()
    }

    fn question(name: &str, kind: RecordType) -> Vec<u8> {
        let mut message = Message::new(77, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Question::query(Name::from_ascii(name).unwrap(), kind));
        message.to_vec().unwrap()
    }

    fn ask(server: &Server, message: &[u8]) -> Option<Message> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket.send_to(message, server.dns_addr().unwrap()).unwrap();
        let mut answer = [0; 1024];
        let length = socket.recv(&mut answer).ok()?;
        Some(Message::from_vec(&answer[..length]).unwrap())
    }

    #[test]
    fn known_unknown_and_other_types() {
        let server = server(DnsConfig { ttl_s: 42, negative_ttl_s: 7, ..DnsConfig::default() });
        let answer = ask(&server, &question("H17.sim.TEST.", RecordType::A)).unwrap();
        assert_eq!((answer.metadata.id, answer.metadata.response_code), (77, ResponseCode::NoError));
        assert_eq!(answer.answers[0].ttl, 42);
        assert_eq!(answer.answers[0].data, RData::A(std::net::Ipv4Addr::LOCALHOST.into()));
        let nothing = ask(&server, &question("h17.sim.test.", RecordType::AAAA)).unwrap();
        assert_eq!(nothing.metadata.response_code, ResponseCode::NoError);
        assert!(nothing.answers.is_empty());
        let RData::SOA(soa) = &nothing.authorities[0].data else { panic!("{nothing:?}") };
        assert_eq!(soa.minimum, 7);
        let unknown = ask(&server, &question("h100.sim.test.", RecordType::A)).unwrap();
        assert_eq!(unknown.metadata.response_code, ResponseCode::NXDomain);
        assert_eq!(server.dns_queries()["h17.sim.test"], 2);
    }

    #[test]
    fn losses_end_and_truncation_leads_to_tcp() {
        let server = server(DnsConfig { lose_first: 2, truncate_share: 1.0, ..DnsConfig::default() });
        let message = question("h3.sim.test.", RecordType::A);
        assert!(ask(&server, &message).is_none());
        assert!(ask(&server, &message).is_none());
        let short = ask(&server, &message).unwrap();
        assert!(short.metadata.truncation && short.answers.is_empty());
        let mut stream = std::net::TcpStream::connect(server.dns_addr().unwrap()).unwrap();
        stream.write_all(&(message.len() as u16).to_be_bytes()).unwrap();
        stream.write_all(&message).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer).unwrap();
        let answer = Message::from_vec(&answer).unwrap();
        assert!(!answer.metadata.truncation);
        assert_eq!(answer.answers.len(), 1);
    }

    #[test]
    fn nonsense_is_survived() {
        let server = server(DnsConfig { servfail_share: 1.0, delay_ms: 20, ..DnsConfig::default() });
        for nonsense in [&b""[..], b"x", &[0; 12], &[0xFF; 40]] {
            ask(&server, nonsense);
        }
        let before = std::time::Instant::now();
        let answer = ask(&server, &question("h3.sim.test.", RecordType::A)).unwrap();
        assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
        assert!(before.elapsed() >= Duration::from_millis(20));
    }
}
