//! What must hold for every archive: what is written is read back, and no bytes whatever upset the reader.

use std::io::Read;

use proptest::prelude::*;
use rhumb_store::Timestamp;
use rhumb_store::warc::http::HttpHead;
use rhumb_store::warc::{
    Capture, Digest, Metadata, Profile, RecordId, RecordIds, RecordWriter, Response, Revisit, WarcError, WarcReader,
    cdxj, check, ls, surt, whole_prefix,
};

/// An archive of these bodies, and where each record ends.
fn archive(pages: &[(String, Vec<u8>)]) -> (Vec<u8>, Vec<u64>) {
    let (mut out, mut ends) = (Vec::new(), Vec::new());
    let mut writer = RecordWriter::default();
    let mut ids = RecordIds::new(1, 0);
    for (path, body) in pages {
        let uri = format!("http://example.com/{path}");
        let capture = Capture { uri: &uri, date: Timestamp(1_000), ip: None, protocols: &[] };
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let response = Response { head, body, digest: None, truncated: None, identified_type: None };
        let (span, digest) = writer.response(&mut out, ids.take(), &capture, &response).expect("response");
        ends.push(span.end());
        let revisit = Revisit {
            head,
            profile: Profile::IdenticalPayload(digest),
            refers_to_uri: &uri,
            refers_to_date: capture.date,
            refers_to: None,
        };
        ends.push(writer.revisit(&mut out, ids.take(), &capture, &revisit).expect("revisit").end());
        let known = Metadata { via: Some(&uri), ..Metadata::default() };
        ends.push(writer.metadata(&mut out, ids.take(), &capture, None, &known).expect("metadata").end());
    }
    (out, ends)
}

fn pages() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    prop::collection::vec((".{0,40}", prop::collection::vec(any::<u8>(), 0..3_000)), 0..5)
}

/// Reads everything in every way there is; the point is that it returns.
fn read_every_way(bytes: &[u8]) {
    let report = check(bytes);
    assert!(report.records <= bytes.len() as u64 * 1_100);
    let _ = ls(bytes, |_| {});
    let _ = cdxj::index(bytes, "x", |entry| assert!(entry.line().is_ascii() || !entry.key.is_ascii()));
    assert!(whole_prefix(bytes).expect("no I/O") <= bytes.len() as u64);
    let mut reader = WarcReader::new(bytes);
    loop {
        match reader.next_record() {
            Ok(None) => break,
            Ok(Some(mut record)) => {
                let mut some = [0; 7];
                let _ = record.read(&mut some);
            }
            Err(error) if error.is_passable() => {}
            Err(_) => assert!(matches!(reader.next_record(), Ok(None)), "a fatal error ends the file"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn warc_written_is_read_back(pages in pages()) {
        let (bytes, ends) = archive(&pages);
        let report = check(&bytes[..]);
        prop_assert_eq!(report.errors, []);
        prop_assert_eq!(report.records, ends.len() as u64);
        let mut reader = WarcReader::new(&bytes[..]);
        for (i, end) in ends.iter().enumerate() {
            let mut record = reader.next_record().expect("whole").expect("there");
            if i % 3 == 0 {
                let mut block = Vec::new();
                record.read_to_end(&mut block).expect("whole");
                let head = HttpHead::parse(&block);
                prop_assert_eq!(&block[head.payload_offset..], &pages[i / 3].1[..]);
                prop_assert_eq!(head.get("Transfer-Encoding"), None);
                let digest = Digest::of(&pages[i / 3].1).to_string();
                prop_assert_eq!(record.fields.get("WARC-Payload-Digest"), Some(digest.as_str()));
            }
            prop_assert_eq!(record.finish().expect("whole").end(), *end);
        }
        prop_assert!(reader.next_record().expect("whole").is_none());
    }

    #[test]
    fn warc_torn_tail_is_cut_to_whole_records(pages in pages(), cut in any::<prop::sample::Index>()) {
        let (bytes, ends) = archive(&pages);
        let cut = cut.index(bytes.len() + 1);
        let whole = ends.iter().copied().filter(|&end| end <= cut as u64).max().unwrap_or(0);
        prop_assert_eq!(whole_prefix(&bytes[..cut]).expect("no I/O"), whole);
        let report = check(&bytes[..cut]);
        let places: Vec<u64> = report.errors.iter().map(|problem| problem.offset).collect();
        prop_assert_eq!(places, if whole == cut as u64 { vec![] } else { vec![whole] });
    }

    #[test]
    fn warc_reader_bears_flipped_bits(pages in pages(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let (mut bytes, _) = archive(&pages);
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        read_every_way(&bytes);
    }

    #[test]
    fn warc_reader_bears_anything(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        read_every_way(&bytes);
    }

    #[test]
    fn warc_reader_bears_lines(
        lines in prop::collection::vec(
            prop_oneof![
                Just("WARC/1.0"), Just(""), Just("Content-Length: 5"), Just("Content-Length: 18446744073709551615"),
                Just("Content-Length: x"), Just("WARC-Type: response"), Just("WARC-Target-URI: http://a/"),
                Just("WARC-Date: 2020-01-01"), Just("HTTP/1.1 200 OK"), Just(" folded"), Just("\u{a0}"), Just(":"),
                Just("WARC-Payload-Digest: sha1:x"), Just("WARC-Block-Digest: 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
            ],
            0..40,
        ),
        feed in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        read_every_way(lines.join(feed).as_bytes());
    }

    #[test]
    fn warc_keys_of_anything(url in ".{0,60}", tail in "[a-z0-9%.:/?#&=@\\[\\]-]{0,60}") {
        surt(&url);
        surt(&tail);
        let key = surt(&format!("http://{tail}"));
        prop_assert!(!key.is_empty());
    }
}

#[test]
fn warc_header_without_end_is_refused_in_little_memory() {
    let endless = b"WARC/1.0\r\n".chain(std::io::repeat(b'a').take(64 << 20));
    let error = WarcReader::new(endless).next_record().err();
    assert!(matches!(error, Some(WarcError::BadHeader { offset: 0, .. })), "{error:?}");
}

#[test]
fn warc_fields_with_line_breaks_are_refused() {
    let mut writer = RecordWriter::default();
    let id = RecordId::from_bits(5);
    let mut out = Vec::new();
    for (name, value) in [("operator", "me\r\nWARC-Type: response"), ("a\nb", "x"), ("a:b", "x"), ("", "x")] {
        let result = writer.warcinfo(&mut out, id, Timestamp(0), "f", &[(name, value)]);
        assert!(matches!(result, Err(WarcError::BadField { .. })), "{name:?}");
    }
    let capture = Capture { uri: "http://a/", date: Timestamp(0), ip: None, protocols: &["h2\r\nX: y"] };
    assert!(matches!(writer.request(&mut out, id, &capture, None, b"GET /", b""), Err(WarcError::BadField { .. })));
    assert!(matches!(writer.request(&mut out, id, &capture, None, b"", b""), Err(WarcError::NoHead)));
    let elsewhere = Capture { uri: "ftp://a/", protocols: &[], ..capture };
    assert!(matches!(writer.request(&mut out, id, &elsewhere, None, b"GET /", b""), Err(WarcError::BadField { .. })));
    assert!(out.is_empty());
}

#[test]
fn warc_record_ids_are_uuids_and_differ() {
    assert_eq!(RecordId::from_bits(0).to_string(), "<urn:uuid:00000000-0000-4000-8000-000000000000>");
    assert_eq!(RecordId::from_bits(u128::MAX).to_string(), "<urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff>");
    let (mut first, mut second) = (RecordIds::new(1, 0), RecordIds::new(2, 0));
    let mut all: Vec<String> =
        (0..1_000).flat_map(|_| [first.take(), second.take()]).map(|id| id.to_string()).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2_000);
    assert_eq!(RecordIds::new(1, 1_000).take(), first.take());
}

/// One gzip member around several records: readable, told, not indexed.
#[test]
fn warc_shared_members_are_told() {
    let record = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <x:y>\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n\
                  Content-Length: 4\r\n\r\ntext\r\n\r\n";
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let text = record.repeat(3);
    let mut bytes = vec![0; compressor.gzip_compress_bound(text.len())];
    let length = compressor.gzip_compress(text.as_bytes(), &mut bytes).expect("bound is kept");
    bytes.truncate(length);
    let report = check(&bytes[..]);
    assert_eq!((report.records, report.errors.len()), (3, 1));
    assert!(matches!(cdxj::index(&bytes[..], "x", |_| {}), Err(WarcError::SharedMember { offset: 0 })));
    assert_eq!(whole_prefix(&bytes[..]).expect("no I/O"), length as u64);
}
