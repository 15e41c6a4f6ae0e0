//! A name server on loopback that does what a test's script says, over UDP and TCP, and notes every question.
//!
//! Messages are read and built with `hickory-proto`, so that our own reading is never tested against itself.
//! Read next: `tests.rs`.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, SOA};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

/// One question as it came in.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) kind: RecordType,
    pub(super) tcp: bool,
    pub(super) edns: bool,
    pub(super) from_port: u16,
    pub(super) at: Instant,
    /// How many questions for the same name and type came before.
    pub(super) nth: usize,
    request: Arc<Message>,
}

/// Messages to send back, each after a delay.
pub(super) type Script = Vec<(Duration, Vec<u8>)>;

pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Vec<Asked>>>,
}

/// A UDP and a TCP socket on one port that both have free.
async fn same_port() -> (Arc<UdpSocket>, TcpListener) {
    for _ in 0..100 {
        let udp = UdpSocket::bind("127.0.0.1:0").await.expect("bind udp");
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().expect("address")).await {
            return (Arc::new(udp), tcp);
        }
    }
    panic!("no port is free for both UDP and TCP");
}

impl TestServer {
    pub(super) async fn start(script: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> TestServer {
        let (udp, tcp) = same_port().await;
        let address = udp.local_addr().expect("address");
        let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let script = Arc::new(script);
        let note = {
            let log = Arc::clone(&log);
            move |bytes: &[u8], from: SocketAddr, tcp: bool| {
                let request = Arc::new(Message::from_vec(bytes).expect("a question that hickory can read"));
                let query = request.queries.first().expect("one question").clone();
                let name = query.name.to_ascii().trim_end_matches('.').to_owned();
                let mut log = log.lock().expect("log");
                let nth = log.iter().filter(|seen| seen.name == name && seen.kind == query.query_type).count();
                let (kind, edns, at) = (query.query_type, request.edns.is_some(), Instant::now());
                let asked = Asked { name, kind, tcp, edns, from_port: from.port(), at, nth, request };
                log.push(asked.clone());
                asked
            }
        };
        tokio::spawn({
            let (script, note) = (Arc::clone(&script), note.clone());
            async move {
                let mut buffer = [0; 2048];
                while let Ok((len, from)) = udp.recv_from(&mut buffer).await {
                    for (delay, message) in script(&note(&buffer[..len], from, false)) {
                        let udp = Arc::clone(&udp);
                        tokio::spawn(async move {
                            tokio::time::sleep(delay).await;
                            let _ = udp.send_to(&message, from).await;
                        });
                    }
                }
            }
        });
        tokio::spawn(async move {
            while let Ok((mut stream, from)) = tcp.accept().await {
                let (script, note) = (Arc::clone(&script), note.clone());
                tokio::spawn(async move {
                    let mut request = vec![0; usize::from(stream.read_u16().await.expect("length"))];
                    stream.read_exact(&mut request).await.expect("question");
                    let answers = script(&note(&request, from, true));
                    if answers.is_empty() {
                        // Silence, not a closed door.
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                    for (delay, message) in answers {
                        tokio::time::sleep(delay).await;
                        let _ = stream.write_all(&(message.len() as u16).to_be_bytes()).await;
                        let _ = stream.write_all(&message).await;
                    }
                });
            }
        });
        TestServer { address, log }
    }

    /// All questions so far.
    pub(super) fn log(&self) -> Vec<Asked> {
        self.log.lock().expect("log").clone()
    }

    /// How many questions for a name came, of any type and way.
    pub(super) fn count(&self, name: &str) -> usize {
        self.log().iter().filter(|asked| asked.name == name).count()
    }
}

impl Asked {
    pub(super) fn reply(&self) -> Answering {
        let mut message = Message::new(self.request.metadata.id, MessageType::Response, OpCode::Query);
        message.metadata.recursion_available = true;
        message.queries = self.request.queries.clone();
        Answering { message, owner: self.name.clone() }
    }

    pub(super) fn id(&self) -> u16 {
        self.request.metadata.id
    }

    pub(super) fn is_v6(&self) -> bool {
        self.kind == RecordType::AAAA
    }
}

/// An answer in the making.
pub(super) struct Answering {
    message: Message,
    owner: String,
}

impl Answering {
    pub(super) fn code(mut self, code: ResponseCode) -> Answering {
        self.message.metadata.response_code = code;
        self
    }

    pub(super) fn address(self, ip: &str, ttl_s: u32) -> Answering {
        let owner = self.owner.clone();
        self.address_of(&owner, ip, ttl_s)
    }

    pub(super) fn address_of(mut self, owner: &str, ip: &str, ttl_s: u32) -> Answering {
        let data = match ip.parse().expect("an address") {
            IpAddr::V4(ip) => RData::A(A(ip)),
            IpAddr::V6(ip) => RData::AAAA(AAAA(ip)),
        };
        self.message.add_answer(Record::from_rdata(name(owner), ttl_s, data));
        self
    }

    pub(super) fn alias(mut self, owner: &str, target: &str, ttl_s: u32) -> Answering {
        self.message.add_answer(Record::from_rdata(name(owner), ttl_s, RData::CNAME(CNAME(name(target)))));
        self
    }

    pub(super) fn soa(mut self, ttl_s: u32, minimum_s: u32) -> Answering {
        let data = SOA::new(name("ns.example"), name("root.example"), 1, 2, 3, 4, minimum_s);
        self.message.add_authority(Record::from_rdata(name("example"), ttl_s, RData::SOA(data)));
        self
    }

    pub(super) fn truncated(mut self) -> Answering {
        self.message.metadata.truncation = true;
        self
    }

    pub(super) fn wrong_id(mut self) -> Answering {
        self.message.metadata.id = self.message.metadata.id.wrapping_add(1);
        self
    }

    pub(super) fn wrong_name(mut self) -> Answering {
        self.message.queries[0].name = name("other.example");
        self
    }

    pub(super) fn wrong_type(mut self) -> Answering {
        self.message.queries[0].query_type = RecordType::TXT;
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.message.to_vec().expect("a message")
    }

    pub(super) fn now(&self) -> Script {
        self.after(0)
    }

    pub(super) fn after(&self, ms: u64) -> Script {
        vec![(Duration::from_millis(ms), self.bytes())]
    }
}

fn name(text: &str) -> Name {
    Name::from_ascii(format!("{text}.")).expect("a name")
}
