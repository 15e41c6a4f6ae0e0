//! HTTP heads: copied as they pass, archived, read back; HTTP/2 frames, counted as they pass; and `Retry-After`.
//!
//! Input: a byte that says where the stream is cut into pieces, then what a server sends.

use rhumb_core::Timestamp;
use rhumb_crawl::fuzzing::{frames_of, head_of, retry_after_ms};
use rhumb_store::warc::http::{HttpHead, head_length, synth_head};
use rhumb_store::warc::{Capture, RecordIds, RecordWriter, Response, Truncated, WarcReader, check};

use crate::byte;

const HEAD_BYTES_MAX: usize = 4 << 10;

/// How a stream is cut does not change the head that is kept; the head that hyper's parser sees is the one that is kept; what is
/// archived with it reads back, the body to the byte.
pub fn run(data: &[u8]) {
    let (cut, stream) = byte(data);
    let head = head_of([stream], HEAD_BYTES_MAX);
    assert!(head.len() <= HEAD_BYTES_MAX);
    let step = usize::from(cut) % 17 + 1;
    assert_eq!(head_of(stream.chunks(step), HEAD_BYTES_MAX), head, "in pieces of {step}");
    if !stream.is_empty() {
        assert_eq!(frames_of(stream.chunks(step), 64), frames_of([stream], 64), "frames in pieces of {step}");
    }
    as_the_parser_sees_it(stream, &head);

    let parsed = HttpHead::parse(stream);
    assert!(parsed.payload_offset == head_length(stream) && parsed.payload_offset <= stream.len());
    assert!(parsed.status().is_none_or(|s| s <= 999));
    let made = synth_head(parsed.status().unwrap_or(200), parsed.headers.iter().map(|(n, v)| (&**n, v.as_bytes())));
    assert_eq!(head_length(&made), made.len(), "a made head has one empty line, at its end: {made:?}");

    archived(&head, &stream[stream.len().min(head.len())..]);

    if let Ok(value) = std::str::from_utf8(stream) {
        let now = Timestamp(1_800_000_000_000);
        let waits = retry_after_ms(value, now);
        if value.bytes().all(|b| b.is_ascii_digit())
            && let Ok(seconds) = value.parse::<u32>()
        {
            assert_eq!(waits, Some(u64::from(seconds) * 1000));
        }
    }
}

/// The parser under hyper is the judge of where a response head ends.
fn as_the_parser_sees_it(stream: &[u8], head: &[u8]) {
    let mut rest = stream;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let Ok(httparse::Status::Complete(end)) = response.parse(rest) else { return };
        if end > HEAD_BYTES_MAX {
            return;
        }
        match response.code {
            Some(100 | 102..=199) => rest = &rest[end..],
            _ => {
                let blank = rest.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
                return assert_eq!(head, &rest[blank..end], "the head that was kept and the one that was understood");
            }
        }
    }
}

fn archived(head: &[u8], body: &[u8]) {
    let mut file = Vec::new();
    let mut writer = RecordWriter::new(1);
    let capture = Capture { uri: "http://a.example/", date: Timestamp(0), ip: None, protocols: &[] };
    let response = Response { head, body, digest: None, truncated: Some(Truncated::Disconnect), identified_type: None };
    let id = RecordIds::new(1, 0).take();
    if writer.response(&mut file, id, &capture, &response).is_err() {
        return;
    }
    let report = check(&file[..]);
    assert!(report.passed() && report.records == 1, "{report:?}");
    let mut reader = WarcReader::new(&file[..]);
    let mut record = reader.next_record().expect("it is whole").expect("there is one");
    let kept = record.read_http_head(1 << 20).expect("readable").expect("not too long");
    let mut back = Vec::new();
    std::io::Read::read_to_end(&mut record, &mut back).expect("readable");
    assert_eq!(back, body, "behind the head {:?}", String::from_utf8_lossy(&kept));
}
