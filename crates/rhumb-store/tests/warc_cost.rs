//! What a page costs to archive. Run by hand, on an idle machine:
//! `cargo test --release -p rhumb-store --test warc_cost -- --ignored --nocapture`.

use rhumb_store::Timestamp;
use rhumb_store::warc::{Capture, Digest, Metadata, RecordIds, RecordWriter, Response, check};

/// About `bytes` of markup with the repetition of a real page: a template, words by Zipf's law, links.
fn page(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let mut text = String::from("<!DOCTYPE html><html><head><title>A page</title></head><body><nav class=\"top\"><ul>");
    while text.len() < bytes {
        text.push_str("<p class=\"body\">");
        for _ in 0..60 {
            let rank = (4_000.0_f64.powf((next() % 10_000) as f64 / 10_000.0)) as u64;
            text.push_str(&format!("w{:x} ", rank.wrapping_mul(2_654_435_761) % 0xf_ffff));
        }
        text.push_str(&format!("<a href=\"/section/{}/page-{}.html\">more</a></p>\n", next() % 40, next() % 5_000));
    }
    text.truncate(bytes);
    text.into_bytes()
}

/// CPU nanoseconds of this thread.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

fn timed<T>(what: &str, rounds: usize, mut each: impl FnMut(usize) -> T) {
    let mut best = u64::MAX;
    for _ in 0..5 {
        let before = cpu_ns();
        for i in 0..rounds {
            std::hint::black_box(each(i));
        }
        best = best.min((cpu_ns() - before) / rounds as u64);
    }
    println!("{what:<34} {:>8.4} CPU-ms", best as f64 / 1e6);
}

#[test]
#[ignore = "a measurement"]
fn warc_cost_of_a_page() {
    let pages: Vec<Vec<u8>> = (0..200).map(|seed| page(seed, 10_240)).collect();
    let rounds = 4_000;
    let of = |i: usize| &pages[i % pages.len()][..];
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(1).expect("a level"));
    let mut out = vec![0; compressor.gzip_compress_bound(12_000)];
    timed("libdeflate 1 of the body alone", rounds, |i| compressor.gzip_compress(of(i), &mut out));
    timed("SHA-1 of the body alone", rounds, |i| Digest::of(of(i)));

    let head = b"HTTP/1.1 200 OK\r\nDate: Sat, 31 Jan 2026 23:59:59 GMT\r\nServer: nginx\r\nContent-Type: text/html; charset=utf-8\r\n\
        Content-Length: 10240\r\nConnection: keep-alive\r\nETag: \"5f3e-1a2b3c4d5e6f7\"\r\nCache-Control: max-age=600\r\n\r\n";
    let asked = b"GET /section/12/page-3456.html HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: rhumb/0.1 (+https://example.com/bot)\r\n\
        Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n";
    let uri = "http://www.example.com/section/12/page-3456.html";
    let capture = Capture { uri, date: Timestamp(1_769_903_999_123), ip: "192.0.2.7".parse().ok(), protocols: &[] };
    for (what, block_digests) in [("request+response+metadata", false), ("… with block digests", true)] {
        let mut writer = RecordWriter::default().block_digests(block_digests);
        let mut ids = RecordIds::new(1, 0);
        let mut out = Vec::new();
        timed(what, rounds, |i| {
            out.clear();
            let (a, b, c) = (ids.take(), ids.take(), ids.take());
            let response = Response { head, body: of(i), digest: None, truncated: None, identified_type: None };
            writer.request(&mut out, a, &capture, Some(b), asked, b"").expect("request");
            writer.response(&mut out, b, &capture, &response).expect("response");
            let known = Metadata { via: Some(uri), depth: Some(3), fetch_ms: Some(17), ..Metadata::default() };
            writer.metadata(&mut out, c, &capture, Some(b), &known).expect("metadata");
            out.len()
        });
        println!("  bytes stored {}", out.len());
        timed("  of which the response", rounds, |i| {
            out.clear();
            let response = Response { head, body: of(i), digest: None, truncated: None, identified_type: None };
            writer.response(&mut out, ids.take(), &capture, &response).expect("response")
        });
    }
    let mut writer = RecordWriter::default();
    let mut file = Vec::new();
    for page in &pages {
        let id = RecordIds::new(2, file.len() as u64).take();
        let response = Response { head, body: page, digest: None, truncated: None, identified_type: None };
        writer.response(&mut file, id, &capture, &response).expect("response");
    }
    timed("check, per record", 1, |_| assert!(check(&file[..]).passed()));
    println!("(divide the last by {})", pages.len());
}
