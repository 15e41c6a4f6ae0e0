//! The standards, through the command line, as suites written by others meet it.
//!
//! - `robots`: RFC 9309, section by section, and what Google's parser does where the RFC leaves room.
//! - `urls`: WHATWG URL parsing (judged by the standard's reference implementation) and the documented normalisation.
//! - `pages`: links, text, titles, bases, character encodings; markup made to hurt.
//! - `sitemaps`: the protocol of sitemaps.org, other kinds, files made to hurt.
//! - `net`: which addresses may be dialled, however they are spelt.

mod net;
mod pages;
mod robots;
mod sitemaps;
mod urls;

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{json, rhumb};

/// A run of the program with `input` on stdin.
pub fn piped(args: &[&str], input: &[u8]) -> Value {
    piped_to(args, input, 0)
}

/// The same, ending with this exit code.
pub fn piped_to(args: &[&str], input: &[u8], code: i32) -> Value {
    let mut child = rhumb().args(args).arg("--json").stdin(Stdio::piped()).spawn().expect("start");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("wait");
    // A reader that has seen enough may leave before all is written.
    let _ = writer.join().expect("writer");
    json(&output, code)
}
