//! DNS messages as bytes: one question out, one answer in.
//!
//! A stub resolver needs a sliver of RFC 1035: a question for A or AAAA with an EDNS0 record, and from the answer the
//! addresses at the end of the alias chain, the smallest TTL on the way, and the SOA of a denial. So it is read in
//! place, without building a message; `hickory-proto` reads the same bytes in the tests as an independent witness
//! (`wire_tests.rs`, with the costs of both).
//!
//! **Invariant**: every byte comes from an enemy. All reads are bounds-checked, compression pointers go strictly
//! backwards, the records looked at and the aliases followed are counted, so any packet ends in a value in time linear
//! in its length. Read next: `driver.rs`, which asks the questions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Aliases followed from a name, over all answers together.
pub(crate) const LINKS_MAX: u8 = 10;
/// Addresses kept of one answer; a host that lists hundreds gains nothing from more.
pub(crate) const ADDRESSES_MAX: usize = 16;
/// Datagram size offered by EDNS0: what crosses every network unfragmented (DNS flag day 2020).
const EDNS_BYTES: u16 = 1232;
/// Records of one answer that are looked at; the rest is ignored.
const RECORDS_MAX: usize = 1024;
const NAME_BYTES_MAX: usize = 255;
const HEADER_BYTES: usize = 12;
const TYPE_CNAME: u16 = 5;
const TYPE_SOA: u16 = 6;
const TYPE_OPT: u16 = 41;
const CLASS_IN: u16 = 1;

/// Which kind of address a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    fn record_type(self) -> u16 {
        match self {
            Family::V4 => 1,
            Family::V6 => 28,
        }
    }
}

/// A name in wire form (length-prefixed labels, root last), lower-cased, so that equality of bytes is equality of names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WireName(Box<[u8]>);

impl WireName {
    /// From dotted text that `system::canonical_name` has accepted.
    pub(crate) fn from_text(name: &str) -> Option<WireName> {
        let mut bytes = Vec::with_capacity(name.len() + 2);
        for label in name.split('.') {
            let len = u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len))?;
            bytes.push(len);
            bytes.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        bytes.push(0);
        (bytes.len() <= NAME_BYTES_MAX).then(|| WireName(bytes.into_boxed_slice()))
    }

    /// Bytes of the wire form.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What an answer to our question says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Addresses at the end of the alias chain, in the server's order, and how many seconds the whole chain is good for.
    Addresses { addresses: Vec<IpAddr>, ttl_s: u32 },
    /// The chain ends at a name that this answer says nothing about; `links` counts the aliases from the first name.
    Alias { target: WireName, links: u8, ttl_s: u32 },
    /// More aliases than [`LINKS_MAX`], or a circle of them.
    AliasLoop,
    /// The name does not exist; seconds from the SOA record, where there is one.
    NoName { ttl_s: Option<u32> },
    /// The name exists and has no address of this kind.
    NoData { ttl_s: Option<u32> },
    /// The answer did not fit: ask again over TCP.
    Truncated,
    /// The server does not understand the question (FORMERR, NOTIMP): perhaps EDNS0 is too new for it.
    NotUnderstood,
    /// SERVFAIL, or a response code without a meaning for us.
    ServerFailure,
    /// The server does not serve us.
    Refused,
    /// Rightly addressed, but not a DNS message beyond its question.
    Malformed,
}

/// Writes the query for `name` into `out`, which is emptied first.
pub(crate) fn encode_query(out: &mut Vec<u8>, id: u16, name: &WireName, family: Family, edns: bool) {
    out.clear();
    out.extend_from_slice(&id.to_be_bytes());
    // Flags: recursion desired. One question, no answer, no authority, perhaps one additional record.
    out.extend_from_slice(&[0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, u8::from(edns)]);
    out.extend_from_slice(&name.0);
    out.extend_from_slice(&family.record_type().to_be_bytes());
    out.extend_from_slice(&CLASS_IN.to_be_bytes());
    if edns {
        out.push(0);
        out.extend_from_slice(&TYPE_OPT.to_be_bytes());
        out.extend_from_slice(&EDNS_BYTES.to_be_bytes());
        out.extend_from_slice(&[0; 6]);
    }
}

/// The identifier of a message, by which its query is looked up before anything else is believed.
pub(crate) fn message_id(packet: &[u8]) -> Option<u16> {
    read_u16(packet, 0)
}

/// Reads an answer. `None` when it does not answer this question: not a response, another name, another type. Such a
/// packet is a forgery or a stray, and the right answer is still awaited.
pub(crate) fn parse_reply(packet: &[u8], asked: &WireName, family: Family, links_before: u8) -> Option<Reply> {
    let header = packet.get(..HEADER_BYTES)?;
    let (is_response, opcode, truncated) = (header[2] & 0x80 != 0, header[2] >> 3 & 0x0f, header[2] & 0x02 != 0);
    if !is_response || opcode != 0 {
        return None;
    }
    let response_code = header[3] & 0x0f;
    let questions = u16::from_be_bytes([header[4], header[5]]);
    if questions == 0 && matches!(response_code, 1 | 4) {
        // A server that could not read the question cannot repeat it.
        return Some(Reply::NotUnderstood);
    }
    if questions != 1 {
        return None;
    }
    let mut name = NameBuffer::default();
    let question_end = name.read(packet, HEADER_BYTES)?;
    let matches_question = name.bytes() == &*asked.0
        && read_u16(packet, question_end)? == family.record_type()
        && read_u16(packet, question_end + 2)? == CLASS_IN;
    if !matches_question {
        return None;
    }
    let reply = match response_code {
        _ if truncated => Reply::Truncated,
        0 | 3 => {
            let counts = (u16::from_be_bytes([header[6], header[7]]), u16::from_be_bytes([header[8], header[9]]));
            let records = Records { packet, start: question_end + 4, answers: counts.0, authorities: counts.1 };
            records.read(asked, family, links_before, response_code == 3).unwrap_or(Reply::Malformed)
        }
        1 | 4 => Reply::NotUnderstood,
        5 => Reply::Refused,
        _ => Reply::ServerFailure,
    };
    Some(reply)
}

/// The sections of a message after its question.
struct Records<'a> {
    packet: &'a [u8],
    start: usize,
    answers: u16,
    authorities: u16,
}

/// One resource record: who it speaks of is in the name buffer of the reader.
struct Record {
    kind: u16,
    class: u16,
    ttl_s: u32,
    data_start: usize,
    data_end: usize,
}

impl Records<'_> {
    /// Follows the alias chain. Servers list it in order, so one pass is the rule; a shuffled answer costs a further
    /// pass per alias, of which there are at most [`LINKS_MAX`].
    fn read(&self, asked: &WireName, family: Family, links_before: u8, no_name: bool) -> Option<Reply> {
        let mut current = NameBuffer::default();
        current.copy_from(&asked.0);
        let mut owner = NameBuffer::default();
        let mut links = links_before;
        let mut ttl_s = u32::MAX;
        let mut addresses = Vec::new();
        let mut answers_end;
        let mut answers_walked;
        loop {
            let links_at_start = links;
            let mut at = self.start;
            answers_walked = 0;
            for _ in 0..usize::from(self.answers).min(RECORDS_MAX) {
                let record = self.record(at, &mut owner)?;
                at = record.data_end;
                answers_walked += 1;
                if record.class != CLASS_IN || owner.bytes() != current.bytes() {
                    continue;
                }
                if record.kind == TYPE_CNAME {
                    links += 1;
                    if links > LINKS_MAX {
                        return Some(Reply::AliasLoop);
                    }
                    ttl_s = ttl_s.min(record.ttl_s);
                    current.read(self.packet, record.data_start)?;
                } else if record.kind == family.record_type() {
                    let address = self.address(&record, family)?;
                    ttl_s = ttl_s.min(record.ttl_s);
                    if addresses.len() < ADDRESSES_MAX && !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
            }
            answers_end = at;
            if !addresses.is_empty() {
                return Some(Reply::Addresses { addresses, ttl_s });
            }
            if links == links_at_start {
                break;
            }
        }
        // The authority section is where it should be only if the answers were walked to their end.
        let whole = answers_walked == usize::from(self.answers);
        let denial_ttl_s = if whole { self.denial_ttl_s(answers_end, &mut owner)? } else { None };
        Some(match denial_ttl_s {
            ttl_s if no_name => Reply::NoName { ttl_s },
            None if links > links_before => Reply::Alias { target: WireName(current.bytes().into()), links, ttl_s },
            ttl_s => Reply::NoData { ttl_s },
        })
    }

    /// How long a denial may be believed (RFC 2308): the smaller of the SOA record's TTL and its MINIMUM field.
    fn denial_ttl_s(&self, answers_end: usize, owner: &mut NameBuffer) -> Option<Option<u32>> {
        let mut at = answers_end;
        for _ in 0..usize::from(self.authorities).min(RECORDS_MAX) {
            let record = self.record(at, owner)?;
            at = record.data_end;
            if record.kind == TYPE_SOA && record.class == CLASS_IN {
                let minimum_at = record.data_end.checked_sub(4).filter(|at| *at >= record.data_start)?;
                return Some(Some(record.ttl_s.min(sane_ttl(read_u32(self.packet, minimum_at)?))));
            }
        }
        Some(None)
    }

    fn record(&self, at: usize, owner: &mut NameBuffer) -> Option<Record> {
        let fixed = owner.read(self.packet, at)?;
        let data_start = fixed + 10;
        let data_end = data_start + usize::from(read_u16(self.packet, fixed + 8)?);
        (data_end <= self.packet.len()).then_some(())?;
        Some(Record {
            kind: read_u16(self.packet, fixed)?,
            class: read_u16(self.packet, fixed + 2)?,
            ttl_s: sane_ttl(read_u32(self.packet, fixed + 4)?),
            data_start,
            data_end,
        })
    }

    fn address(&self, record: &Record, family: Family) -> Option<IpAddr> {
        let data = self.packet.get(record.data_start..record.data_end)?;
        match family {
            Family::V4 => <[u8; 4]>::try_from(data).ok().map(|octets| IpAddr::V4(Ipv4Addr::from(octets))),
            Family::V6 => <[u8; 16]>::try_from(data).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets))),
        }
    }
}

/// A TTL with the highest bit set is to be read as zero (RFC 2181, section 8).
fn sane_ttl(ttl_s: u32) -> u32 {
    if ttl_s > i32::MAX as u32 { 0 } else { ttl_s }
}

/// A decompressed, lower-cased name on the stack.
struct NameBuffer {
    len: usize,
    bytes: [u8; NAME_BYTES_MAX],
}

impl Default for NameBuffer {
    fn default() -> Self {
        NameBuffer { len: 0, bytes: [0; NAME_BYTES_MAX] }
    }
}

impl NameBuffer {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn copy_from(&mut self, name: &[u8]) {
        self.len = name.len().min(NAME_BYTES_MAX);
        self.bytes[..self.len].copy_from_slice(&name[..self.len]);
    }

    /// Reads the name at `start` and returns where the bytes after it begin. A pointer must lead to before the place
    /// where the present run of labels began, so no name is read twice and circles are impossible.
    fn read(&mut self, packet: &[u8], start: usize) -> Option<usize> {
        self.len = 0;
        let (mut at, mut run_start, mut after) = (start, start, None);
        loop {
            let head = *packet.get(at)?;
            match head & 0xc0 {
                0x00 => {
                    let end = at + 1 + usize::from(head);
                    let label = packet.get(at..end)?;
                    let room = self.bytes.get_mut(self.len..self.len + label.len())?;
                    room.copy_from_slice(label);
                    // Length bytes are below 64, and so no letters: lowering the whole run leaves them alone.
                    room.make_ascii_lowercase();
                    self.len += label.len();
                    at = end;
                    if head == 0 {
                        return Some(after.unwrap_or(at));
                    }
                }
                0xc0 => {
                    let target = usize::from(read_u16(packet, at)? & 0x3fff);
                    after = after.or(Some(at + 2));
                    // There are no names in the header, and its identifier is not to be read as one.
                    if target >= run_start || target < HEADER_BYTES {
                        return None;
                    }
                    (at, run_start) = (target, target);
                }
                _ => return None,
            }
        }
    }
}

fn read_u16(packet: &[u8], at: usize) -> Option<u16> {
    packet.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn read_u32(packet: &[u8], at: usize) -> Option<u32> {
    packet.get(at..at + 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
