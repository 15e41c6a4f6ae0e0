//! WARC files of any origin: plain, and as one gzip member.
//!
//! Input: the file; if it is not gzip it is also tried compressed.

use rhumb_store::warc::{Row, cdxj, check, ls, surt, whole_prefix};

use crate::{Single, gzip};

/// Reading by single bytes gives what reading at once gives; records lie in the file one after the other; what is whole stays
/// whole when the rest is gone; a file is never longer in records than in bytes.
pub fn run(data: &[u8]) {
    read(data);
    if !data.starts_with(&[0x1f, 0x8b]) {
        read(&gzip(data));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let key = surt(text);
        assert!(key.len() <= 12 * text.len() + 64, "{key}");
    }
}

fn read(file: &[u8]) {
    let report = check(file);
    assert!(report.records <= file.len() as u64 * 1100, "a gzip byte holds so much at most");
    assert!(report.errors.iter().all(|e| e.offset <= file.len() as u64), "{report:?}");
    assert_eq!(check(Single(file)), report, "byte by byte");

    let mut rows: Vec<Row> = Vec::new();
    let listed = ls(file, |row| rows.push(row));
    let gzip = file.starts_with(&[0x1f, 0x8b]);
    for pair in rows.windows(2) {
        let end = pair[0].offset + pair[0].length;
        // Records that share a member share its place.
        assert!(end <= pair[1].offset || gzip && pair[0].offset == pair[1].offset, "{pair:?}");
    }
    assert!(rows.iter().all(|r| r.offset + r.length <= file.len() as u64), "{rows:?}");
    if report.passed() {
        assert!(listed.is_ok() && rows.len() as u64 == report.records, "a file without fault can be listed");
    }

    let whole = whole_prefix(file).expect("memory does not fail") as usize;
    assert!(whole <= file.len());
    assert_eq!(whole_prefix(&file[..whole]).expect("memory does not fail") as usize, whole, "what is whole stays so");

    let _ = cdxj::index(file, "f", |entry| {
        let line = entry.line();
        assert_eq!(line.trim_end_matches('\n').matches('\n').count(), 0, "an entry is a line: {line:?}");
    });
}
