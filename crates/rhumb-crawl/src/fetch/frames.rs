//! What a server may spend on an HTTP/2 answer beside its content: a meter that walks over the frames as they pass.
//!
//! HTTP/2 has many frames that say nothing: pings, settings, resets, updates of windows, padding, empty data, interim
//! answers, kinds that nobody knows. Each costs us a read, a look and often a reply, and none of them brings the answer
//! nearer, so deadlines alone would let a server keep a thread busy for as long as they last. Each kind that became known
//! as a flood has a bound of its own in h2 (CONTINUATION, empty data, streams we must reset). Here is one for all of
//! them, known or not.
//!
//! **Invariant**: between two requests no more passes than the content of one body, one head, and as much again of
//! anything else as there was content, with [`OVERHEAD_BYTES_FREE`] to begin with. Read next: `http2.rs`.

use std::fmt;

use rhumb_core::outcome::Outcome;

/// Bytes of frames without content that every answer may have: some 3,800 pings.
pub(crate) const OVERHEAD_BYTES_FREE: u64 = 64 << 10;

const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 8;

/// A server sent more than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Frames without content.
    Overhead,
    /// Header blocks, those of interim answers included.
    Head,
    /// Data, also on streams that are none of ours.
    Content,
}

impl Excess {
    /// What that is called.
    pub fn outcome(self) -> Outcome {
        match self {
            Excess::Head => Outcome::HeadTooLarge,
            Excess::Overhead | Excess::Content => Outcome::BadHttp,
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Excess::Overhead => "the server floods the connection with HTTP/2 frames that carry nothing",
            Excess::Head => "the server's HTTP/2 header blocks are larger than a head may be",
            Excess::Content => "the server sends more HTTP/2 data than a body may have",
        })
    }
}

impl std::error::Error for Excess {}

/// Walks over the frames of one direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct FrameMeter {
    /// The header of the frame that is being read, as far as it is there.
    header: [u8; HEADER_BYTES],
    header_len: usize,
    payload_left: usize,
    /// Whether the next byte says how much padding the frame has.
    padded: bool,
    /// Bytes at the end of the payload that are no content.
    padding: usize,
    overhead_bytes: u64,
    head_bytes: u64,
    content_bytes: u64,
    head_bytes_max: u64,
    content_bytes_max: u64,
}

impl FrameMeter {
    /// A new request: its answer has a budget of its own. The place within the frames is kept.
    pub fn refill(&mut self, head_bytes_max: usize, content_bytes_max: usize) {
        (self.overhead_bytes, self.head_bytes, self.content_bytes) = (0, 0, 0);
        (self.head_bytes_max, self.content_bytes_max) = (head_bytes_max as u64, content_bytes_max as u64);
    }

    /// Takes note of bytes from the server.
    pub fn see(&mut self, mut bytes: &[u8]) -> Result<(), Excess> {
        while !bytes.is_empty() {
            let used = if self.payload_left > 0 { self.see_payload(bytes) } else { self.see_header(bytes) };
            bytes = &bytes[used..];
        }
        if self.overhead_bytes > OVERHEAD_BYTES_FREE + self.content_bytes {
            return Err(Excess::Overhead);
        }
        if self.head_bytes > self.head_bytes_max {
            return Err(Excess::Head);
        }
        if self.content_bytes > self.content_bytes_max { Err(Excess::Content) } else { Ok(()) }
    }

    fn see_header(&mut self, bytes: &[u8]) -> usize {
        let used = bytes.len().min(HEADER_BYTES - self.header_len);
        self.header[self.header_len..self.header_len + used].copy_from_slice(&bytes[..used]);
        self.header_len += used;
        self.overhead_bytes += used as u64;
        if self.header_len == HEADER_BYTES {
            let [high, middle, low, kind, flags, ..] = self.header;
            self.payload_left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            self.padded = kind == DATA && flags & PADDED != 0;
            self.padding = 0;
            self.header_len = 0;
        }
        used
    }

    fn see_payload(&mut self, bytes: &[u8]) -> usize {
        if std::mem::take(&mut self.padded) {
            self.padding = usize::from(bytes[0]);
            self.payload_left -= 1;
            self.overhead_bytes += 1;
            return 1;
        }
        let used = bytes.len().min(self.payload_left);
        let after = self.payload_left - used;
        let padding = self.padding.saturating_sub(after) - self.padding.saturating_sub(self.payload_left);
        self.payload_left = after;
        match self.header[3] {
            DATA => {
                self.overhead_bytes += padding as u64;
                self.content_bytes += (used - padding) as u64;
            }
            HEADERS | PUSH_PROMISE | CONTINUATION => self.head_bytes += used as u64,
            _ => self.overhead_bytes += used as u64,
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD_MAX: usize = 4_096;
    const CONTENT_MAX: usize = 1 << 20;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let [_, high, middle, low] = (payload as u32).to_be_bytes();
        let mut bytes = vec![high, middle, low, kind, flags, 0, 0, 0, 1];
        bytes.resize(HEADER_BYTES + payload, if flags & PADDED == 0 { 0 } else { 255 });
        bytes
    }

    /// How many such frames pass before the meter stops the server.
    fn passed(frames: &[Vec<u8>], piece: usize) -> Result<usize, (usize, Excess)> {
        let mut meter = FrameMeter::default();
        meter.refill(HEAD_MAX, CONTENT_MAX);
        for (n, frame) in frames.iter().enumerate() {
            for piece in frame.chunks(piece) {
                meter.see(piece).map_err(|excess| (n, excess))?;
            }
        }
        Ok(frames.len())
    }

    #[test]
    fn frames_without_content_are_stopped_however_they_are_cut() {
        let free = OVERHEAD_BYTES_FREE as usize;
        for piece in [1, 2, 7, 9, 10, 1_000, usize::MAX] {
            let check = |kind, flags, payload, count: usize, expected: Result<usize, (usize, Excess)>| {
                assert_eq!(passed(&vec![frame(kind, flags, payload); count], piece), expected, "kind {kind}, {piece}");
            };
            check(6, 0, 8, free / 17, Ok(free / 17));
            check(6, 0, 8, free, Err((free / 17, Excess::Overhead)));
            check(4, 0, 0, free, Err((free / 9, Excess::Overhead)));
            check(3, 0, 4, free, Err((free / 13, Excess::Overhead)));
            check(200, 0, 16_000, free, Err((4, Excess::Overhead)));
            check(DATA, 0, 0, free, Err((free / 9, Excess::Overhead)));
            check(HEADERS, 4, 100, 40, Ok(40));
            check(HEADERS, 4, 100, 41, Err((40, Excess::Head)));
            check(CONTINUATION, 0, 0, free, Err((free / 9, Excess::Overhead)));
            // Frames that carry more than their own header may go on to the end of the body.
            check(DATA, 0, 10, CONTENT_MAX / 10, Ok(CONTENT_MAX / 10));
            check(DATA, 0, 16_384, 65, Err((64, Excess::Content)));
            // A byte of content in 256 of padding.
            check(DATA, PADDED, 257, free, Err((free / 264, Excess::Overhead)));
        }
    }

    #[test]
    fn every_request_has_a_budget_of_its_own() {
        let mut meter = FrameMeter::default();
        let pings = frame(6, 0, 8).repeat(3_000);
        for _ in 0..20 {
            meter.refill(HEAD_MAX, CONTENT_MAX);
            assert_eq!(meter.see(&pings), Ok(()));
        }
        assert_eq!(meter.see(&pings), Err(Excess::Overhead));
    }
}
