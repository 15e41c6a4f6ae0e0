//! The wire against an independent witness, against noise, and its cost.
//!
//! `hickory-proto` builds the messages that `wire.rs` reads and reads those that it builds.

use std::net::IpAddr;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, SOA, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use proptest::prelude::*;

use super::wire::{ADDRESSES_MAX, Family, Reply, WireName, encode_query, message_id, parse_reply};

fn wire(text: &str) -> WireName {
    WireName::from_text(text).expect("a name")
}

fn name(text: &str) -> Name {
    Name::from_ascii(format!("{text}.")).expect("a name")
}

fn answer(asked: &str, records: &[(&str, u32, RData)]) -> Message {
    let mut message = Message::new(7, MessageType::Response, OpCode::Query);
    message.add_query(Query::query(name(asked), RecordType::A));
    for (owner, ttl_s, data) in records {
        message.add_answer(Record::from_rdata(name(owner), *ttl_s, data.clone()));
    }
    message
}

fn a(ip: [u8; 4]) -> RData {
    RData::A(A(ip.into()))
}

fn alias(target: &str) -> RData {
    RData::CNAME(CNAME(name(target)))
}

fn read(message: &Message, asked: &str) -> Option<Reply> {
    parse_reply(&message.to_vec().expect("a message"), &wire(asked), Family::V4, 0)
}

fn addresses(list: &[[u8; 4]], ttl_s: u32) -> Option<Reply> {
    Some(Reply::Addresses { addresses: list.iter().map(|ip| IpAddr::from(*ip)).collect(), ttl_s })
}

#[test]
fn hickory_reads_our_questions() {
    let mut out = Vec::new();
    for (family, kind) in [(Family::V4, RecordType::A), (Family::V6, RecordType::AAAA)] {
        for edns in [true, false] {
            encode_query(&mut out, 0xbeef, &wire("WWW.Example.com"), family, edns);
            let message = Message::from_vec(&out).expect("readable");
            assert_eq!(message_id(&out), Some(0xbeef));
            assert_eq!(message.metadata.id, 0xbeef);
            assert!(message.metadata.recursion_desired);
            assert_eq!(message.queries, [Query::query(name("www.example.com"), kind)]);
            assert_eq!(message.edns.map(|edns| edns.max_payload()), edns.then_some(1232));
        }
    }
}

#[test]
fn chains_are_followed_in_any_order() {
    let (x, y) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let plain = answer("a.example", &[("a.example", 300, a(x)), ("a.example", 200, a(y)), ("a.example", 200, a(x))]);
    assert_eq!(read(&plain, "a.example"), addresses(&[x, y], 200));
    let chain = [("a.example", 50, alias("b.example")), ("b.example", 40, alias("C.example")), ("c.example", 60, a(x))];
    assert_eq!(read(&answer("A.EXAMPLE", &chain), "a.example"), addresses(&[x], 40));
    let shuffled: Vec<_> = chain.iter().rev().cloned().collect();
    assert_eq!(read(&answer("a.example", &shuffled), "a.example"), addresses(&[x], 40));
    // Records that belong to neither the name nor its aliases are nobody's business.
    let strangers = [("a.example", 50, RData::TXT(TXT::new(vec!["x".into()]))), ("evil.example", 60, a(y))];
    assert_eq!(read(&answer("a.example", &strangers), "a.example"), Some(Reply::NoData { ttl_s: None }));
    let v6 = [("a.example", 50, RData::AAAA(AAAA("2001:db8::1".parse().expect("address"))))];
    assert_eq!(read(&answer("a.example", &v6), "a.example"), Some(Reply::NoData { ttl_s: None }));
}

#[test]
fn open_chains_and_circles_are_told_apart() {
    let open = [("a.example", 50, alias("b.example")), ("b.example", 40, alias("c.example"))];
    let expected = Reply::Alias { target: wire("c.example"), links: 2, ttl_s: 40 };
    assert_eq!(read(&answer("a.example", &open), "a.example"), Some(expected));
    let circle = [("a.example", 50, alias("b.example")), ("b.example", 40, alias("a.example"))];
    assert_eq!(read(&answer("a.example", &circle), "a.example"), Some(Reply::AliasLoop));
    let own_tail = [("a.example", 50, alias("a.example"))];
    assert_eq!(read(&answer("a.example", &own_tail), "a.example"), Some(Reply::AliasLoop));
    let names: Vec<String> = (0..=11).map(|i| format!("n{i}.example")).collect();
    let long = |links: usize| {
        let mut records: Vec<_> = (0..links).map(|i| (&*names[i], 9, alias(&names[i + 1]))).collect();
        records.push((&*names[links], 9, a([192, 0, 2, 1])));
        read(&answer("n0.example", &records), "n0.example")
    };
    assert_eq!(long(10), addresses(&[[192, 0, 2, 1]], 9));
    assert_eq!(long(11), Some(Reply::AliasLoop));
}

#[test]
fn denials_carry_the_smaller_time_of_their_soa() {
    let soa = |minimum_s| RData::SOA(SOA::new(name("ns.example"), name("root.example"), 1, 2, 3, 4, minimum_s));
    let mut message = answer("a.example", &[]);
    message.add_authority(Record::from_rdata(name("example"), 900, soa(120)));
    assert_eq!(read(&message, "a.example"), Some(Reply::NoData { ttl_s: Some(120) }));
    message.metadata.response_code = ResponseCode::NXDomain;
    assert_eq!(read(&message, "a.example"), Some(Reply::NoName { ttl_s: Some(120) }));
    let mut message = answer("a.example", &[("a.example", 50, alias("b.example"))]);
    message.add_authority(Record::from_rdata(name("example"), 60, soa(120)));
    assert_eq!(read(&message, "a.example"), Some(Reply::NoData { ttl_s: Some(60) }), "the alias leads to nothing");
}

#[test]
fn codes_and_odd_values_have_their_meaning() {
    let with_code = |code| {
        let mut message = answer("a.example", &[]);
        message.metadata.response_code = code;
        read(&message, "a.example")
    };
    assert_eq!(with_code(ResponseCode::ServFail), Some(Reply::ServerFailure));
    assert_eq!(with_code(ResponseCode::Refused), Some(Reply::Refused));
    assert_eq!(with_code(ResponseCode::FormErr), Some(Reply::NotUnderstood));
    assert_eq!(with_code(ResponseCode::NotAuth), Some(Reply::ServerFailure));
    let x = [192, 0, 2, 1];
    assert_eq!(read(&answer("a.example", &[("a.example", u32::MAX, a(x))]), "a.example"), addresses(&[x], 0));
    let many: Vec<_> = (0..300_u16).map(|i| ("a.example", 5, a([192, 0, (i >> 8) as u8, i as u8]))).collect();
    match read(&answer("a.example", &many), "a.example") {
        Some(Reply::Addresses { addresses, ttl_s: 5 }) => assert_eq!(addresses.len(), ADDRESSES_MAX),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_our_answer_is_no_answer() {
    let good = answer("a.example", &[("a.example", 5, a([192, 0, 2, 1]))]);
    assert_eq!(read(&good, "b.example"), None);
    assert_eq!(parse_reply(&good.to_vec().expect("bytes"), &wire("a.example"), Family::V6, 0), None);
    let mut question = good.clone();
    question.metadata.message_type = MessageType::Query;
    assert_eq!(read(&question, "a.example"), None);
    let mut none = good.clone();
    none.queries.clear();
    assert_eq!(read(&none, "a.example"), None);
    let bytes = good.to_vec().expect("bytes");
    for len in 0..bytes.len() {
        let reply = parse_reply(&bytes[..len], &wire("a.example"), Family::V4, 0);
        assert!(matches!(reply, None | Some(Reply::Malformed)), "{len} bytes: {reply:?}");
    }
}

#[test]
fn hostile_packets_end_in_a_value() {
    let header = |answers: u16| {
        let mut packet = vec![0, 7, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        packet[6..8].copy_from_slice(&answers.to_be_bytes());
        packet.extend_from_slice(b"\x01a\x07example\x00\x00\x01\x00\x01");
        packet
    };
    let read = |packet: &[u8]| parse_reply(packet, &wire("a.example"), Family::V4, 0);
    // Pointers to themselves, to each other, forwards, past the end, and a reserved label type.
    for tail in [&b"\xc0\x1b"[..], b"\xc0\x1d\xc0\x1b", b"\xc0\xff", b"\xff\xff", b"\x80\x00", b"\x40", b"\xc0", b""] {
        let mut packet = header(1);
        packet.extend_from_slice(tail);
        packet.extend_from_slice(&[0; 12]);
        assert!(matches!(read(&packet), Some(Reply::Malformed | Reply::NoData { .. })), "{tail:?}");
    }
    // 65,535 records promised, none there; then as many root records as fit, with an alias chain among them.
    assert_eq!(read(&header(u16::MAX)), Some(Reply::Malformed));
    let mut packet = header(u16::MAX);
    while packet.len() < 65_000 {
        packet.extend_from_slice(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x00\x00\x02\xc0\x0e");
    }
    assert_eq!(read(&packet), Some(Reply::Alias { target: wire("example"), links: 1, ttl_s: 0 }));
    // The question itself compressed onto itself.
    assert_eq!(read(b"\0\x07\x80\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\x01\0\x01"), None);
}

proptest! {
    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..600), links in 0_u8..=10) {
        for family in [Family::V4, Family::V6] {
            let _ = parse_reply(&noise, &wire("a.example"), family, links);
            // The same noise behind a header and question that match, so that the records are reached.
            let mut packet = vec![0, 7, 0x80, 0, 0, 1, 0, 200, 0, 200, 0, 0];
            packet.extend_from_slice(b"\x01a\x07example\x00\x00");
            packet.push(if family == Family::V4 { 1 } else { 28 });
            packet.extend_from_slice(b"\x00\x01");
            packet.extend_from_slice(&noise);
            prop_assert!(parse_reply(&packet, &wire("a.example"), family, links).is_some());
        }
    }

    #[test]
    fn mutated_answers_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let chain = [("a.example", 50, alias("b.example")), ("b.example", 40, alias("c.example")),
            ("c.example", 60, a([192, 0, 2, 1])), ("c.example", 60, a([192, 0, 2, 2]))];
        let mut bytes = answer("a.example", &chain).to_vec().expect("bytes");
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = parse_reply(&bytes, &wire("a.example"), Family::V4, 0);
        let _ = parse_reply(&bytes[..cut.index(bytes.len())], &wire("a.example"), Family::V4, 0);
    }

    #[test]
    fn we_and_hickory_read_the_same(ips in prop::collection::vec(any::<[u8; 4]>(), 1..16), ttl_s in 0..1_u32 << 31) {
        let records: Vec<_> = ips.iter().map(|ip| ("a.example", ttl_s, a(*ip))).collect();
        let mut distinct = Vec::new();
        for ip in ips {
            if !distinct.contains(&ip) {
                distinct.push(ip);
            }
        }
        prop_assert_eq!(read(&answer("a.example", &records), "a.example"), addresses(&distinct, ttl_s));
    }
}

/// The reason for a reading of our own: run with `--release -- --ignored --nocapture codec_cost`.
#[test]
#[ignore = "a measurement"]
fn codec_cost() {
    let message = answer(
        "www.example.com",
        &[
            ("www.example.com", 50, alias("cdn.example.net")),
            ("cdn.example.net", 60, a([192, 0, 2, 1])),
            ("cdn.example.net", 60, a([192, 0, 2, 2])),
        ],
    );
    let (bytes, asked) = (message.to_vec().expect("bytes"), wire("www.example.com"));
    let rounds = 200_000;
    let time = |what: &str, work: &mut dyn FnMut()| {
        let began = std::time::Instant::now();
        (0..rounds).for_each(|_| work());
        println!("{what}: {:.0} ns", began.elapsed().as_nanos() as f64 / f64::from(rounds));
    };
    let mut out = Vec::new();
    for _ in 0..3 {
        time("own, read", &mut || drop(std::hint::black_box(parse_reply(&bytes, &asked, Family::V4, 0))));
        time("hickory, read", &mut || drop(std::hint::black_box(Message::from_vec(&bytes))));
        time("own, write", &mut || encode_query(&mut out, 7, &wire("www.example.com"), Family::V4, true));
        time("hickory, write", &mut || {
            let mut message = Message::query();
            message.add_query(Query::query(name("www.example.com"), RecordType::A));
            drop(std::hint::black_box(message.to_vec()));
        });
    }
}
