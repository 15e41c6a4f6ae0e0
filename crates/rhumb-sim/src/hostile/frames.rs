//! HTTP/2 by hand, as far as a server needs it that means to break its rules: frames out, requests in.
//!
//! No library would write these frames. Of a request only one thing is understood, whether it asks for `/`: that path
//! has an entry of its own in HPACK's static table, and no other path has.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
/// A kind that nobody has defined.
pub(super) const NOBODYS: u8 = 0xbb;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;

/// `:status: 200`, `:status: 404` as HPACK writes them: entries of the static table.
pub(super) const OK: &[u8] = &[0x88];
const NOT_FOUND: &[u8] = &[0x8d];

const PREFACE_BYTES: usize = 24;
const FRAME_BYTES_MAX: usize = 1 << 20;

/// One frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header field whose name is not in any table and which enters none.
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    put_string(&mut bytes, name);
    put_string(&mut bytes, value);
    bytes
}

/// The same, but it enters the dynamic table, where its index is 62.
pub(super) fn remembered(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = field(name, value);
    bytes[0] = 0x40;
    bytes
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    // HPACK's integers (RFC 7541, section 5.1) with a prefix of seven bits.
    match text.len() {
        short @ 0..127 => out.push(short as u8),
        long => {
            out.push(127);
            let mut rest = long - 127;
            while rest >= 128 {
                out.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(text.as_bytes());
}

/// The server's side of a connection.
pub(super) struct Server {
    pub stream: TlsStream<TcpStream>,
    input: Vec<u8>,
}

impl Server {
    /// Reads the client's preface and greets it with these settings.
    pub async fn greet(mut stream: TlsStream<TcpStream>, settings: &[u8]) -> io::Result<Server> {
        let mut preface = [0; PREFACE_BYTES];
        stream.read_exact(&mut preface).await?;
        stream.write_all(&frame(SETTINGS, 0, 0, settings)).await?;
        stream.flush().await?;
        Ok(Server { stream, input: Vec::new() })
    }

    /// The stream of the next request for `/`; every other request is answered with 404.
    pub async fn request(&mut self) -> io::Result<u32> {
        loop {
            let (kind, flags, stream, payload) = self.next_frame().await?;
            match kind {
                SETTINGS if flags & 1 == 0 => self.stream.write_all(&frame(SETTINGS, 1, 0, b"")).await?,
                HEADERS if asks_for_root(&payload) => return Ok(stream),
                HEADERS => {
                    let answer = frame(HEADERS, END_HEADERS | END_STREAM, stream, NOT_FOUND);
                    self.stream.write_all(&answer).await?;
                }
                _ => {}
            }
            self.stream.flush().await?;
        }
    }

    async fn next_frame(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        loop {
            if let [high, middle, low, kind, flags, a, b, c, d, rest @ ..] = &self.input[..] {
                let len = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
                if let Some(payload) = rest.get(..len) {
                    let found = (*kind, *flags, u32::from_be_bytes([*a, *b, *c, *d]), payload.to_vec());
                    self.input.drain(..9 + len);
                    return Ok(found);
                }
            }
            if self.input.len() > FRAME_BYTES_MAX || self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Whether a header block holds entry 4 of the static table, `:path: /`. Blocks with flags of their own (padding,
/// priority) are not what the client under test sends.
fn asks_for_root(block: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&first) = block.get(at) {
        at += 1;
        if first == 0x84 {
            return true;
        }
        // An entry of a table, or a change of the table's size: one byte as far as it matters here.
        if first & 0x80 != 0 || first & 0xe0 == 0x20 {
            continue;
        }
        let index = if first & 0x40 != 0 { first & 0x3f } else { first & 0x0f };
        for _ in 0..if index == 0 { 2 } else { 1 } {
            at += 1 + block.get(at).map_or(0, |len| usize::from(len & 0x7f));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_paths() {
        assert_eq!(frame(PING, 1, 3, b"ab"), b"\0\0\x02\x06\x01\0\0\0\x03ab");
        assert_eq!(field("a", "bc"), b"\0\x01a\x02bc");
        assert_eq!(field("a", &"x".repeat(300))[3..6], [127, 0xad, 0x01]);
        let check = |block: &[u8], expected| assert_eq!(asks_for_root(block), expected, "{block:?}");
        check(b"\x82\x87\x41\x03a.b\x84", true);
        check(b"\x82\x87\x41\x03\x84\x84\x84\x44\x02/r", false);
        check(b"\x82\x87\xbe\x84", true);
        check(b"", false);
    }
}
