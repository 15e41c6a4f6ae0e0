//! Content-Encoding undone, from the bytes on the wire, under bounds.
//!
//! Servers send gzip that is cut short, gzip with rubbish behind it, `deflate` without its zlib frame, and plain HTML
//! that is called gzip. Browsers show all of these, so we read all of these, and say what was wrong.
//!
//! Invariant: the output never exceeds [`DecodeLimits::decoded_bytes_max`], and neither does any step between; whatever
//! was decoded before trouble is kept.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use thiserror::Error;

use super::sniff::{MediaKind, sniff};
use super::text::cut;

/// How much decoding may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeLimits {
    /// Largest body, after decoding.
    pub decoded_bytes_max: usize,
    /// Most codings applied one after the other.
    pub codings_max: usize,
    /// Most bytes out for one byte in, once the output is beyond a megabyte. Markup reaches 20; a bomb 1,000 and more.
    pub ratio_max: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        DecodeLimits { decoded_bytes_max: 32 << 20, codings_max: 5, ratio_max: 250 }
    }
}

/// Outputs up to this size are no bombs, whatever their ratio.
const BOMB_BYTES_MIN: usize = 1 << 20;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A zstd frame may ask for this much window at most, 8 MiB, as RFC 9659 says for the web.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// A body and what was wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoded<'a> {
    /// The decoded bytes; borrowed when there was nothing to decode.
    pub body: Cow<'a, [u8]>,
    /// The first trouble met, if any. The body is then what could be had.
    pub problem: Option<CodingProblem>,
}

impl Decoded<'_> {
    /// Whether nothing of the body could be read: it is still coded, or there is nothing left of it. Plain text that is
    /// merely called something else can be read.
    pub fn is_unreadable(&self) -> bool {
        match self.problem {
            None | Some(CodingProblem::Cut { .. } | CodingProblem::Bomb { .. }) => false,
            Some(CodingProblem::Short { decoded_bytes, .. } | CodingProblem::Broken { decoded_bytes, .. }) => {
                decoded_bytes == 0
            }
            Some(CodingProblem::TooMany { .. }) => true,
            Some(CodingProblem::NotCoded { .. } | CodingProblem::Unknown { .. }) => {
                matches!(sniff(&self.body, None, false), MediaKind::Archive | MediaKind::Binary)
            }
        }
    }
}

impl CodingProblem {
    /// Whether a part of the body is missing.
    pub fn is_loss(&self) -> bool {
        !matches!(self, CodingProblem::NotCoded { .. } | CodingProblem::Unknown { .. })
    }
}

/// What can be wrong with a coded body.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CodingProblem {
    /// The body was longer than allowed and is cut.
    #[error("decoded body cut at {decoded_bytes_max} bytes")]
    Cut {
        /// The limit.
        decoded_bytes_max: usize,
    },
    /// The body grew so fast that it was given up.
    #[error("{coding} body expands more than {ratio_max} times")]
    Bomb {
        /// The coding that did it.
        coding: &'static str,
        /// The limit.
        ratio_max: usize,
    },
    /// The coded stream ended early.
    #[error("{coding} stream ends early, after {decoded_bytes} decoded bytes")]
    Short {
        /// The coding.
        coding: &'static str,
        /// How much came out of it.
        decoded_bytes: usize,
    },
    /// The coded stream is damaged.
    #[error("{coding} stream is broken after {decoded_bytes} decoded bytes")]
    Broken {
        /// The coding.
        coding: &'static str,
        /// How much came out of it.
        decoded_bytes: usize,
    },
    /// The body is not in the coding that the header names; it is left as it was.
    #[error("body is not {coding}, though the header says so")]
    NotCoded {
        /// The coding claimed.
        coding: &'static str,
    },
    /// More codings than allowed; the body is left as it was.
    #[error("{codings} content codings, more than {codings_max}")]
    TooMany {
        /// How many there were.
        codings: usize,
        /// The limit.
        codings_max: usize,
    },
    /// A coding that we do not know; the body is left coded in it.
    #[error("unknown content coding {name:?}")]
    Unknown {
        /// Its name, shortened if need be.
        name: String,
    },
}

#[derive(Clone, Copy)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }
}

/// Undoes the codings that a Content-Encoding header lists (several headers joined by commas), the last one first.
pub fn decode<'a>(codings: &str, wire: &'a [u8], limits: &DecodeLimits) -> Decoded<'a> {
    let mut body = Cow::Borrowed(wire);
    let mut problem = None;
    let names = || codings.split(',').map(str::trim).filter(|n| !n.is_empty() && !n.eq_ignore_ascii_case("identity"));
    let count = names().count();
    if count > limits.codings_max {
        problem = Some(CodingProblem::TooMany { codings: count, codings_max: limits.codings_max });
    } else {
        for name in names().rev() {
            let step = match known(name) {
                Some(coding) => undo(coding, &body, limits),
                None => Err(CodingProblem::Unknown { name: cut(name, 32).to_owned() }),
            };
            match step {
                Ok((decoded, trouble)) => {
                    body = Cow::Owned(decoded);
                    problem = problem.or(trouble);
                }
                Err(trouble) => {
                    problem = problem.or(Some(trouble));
                    break;
                }
            }
        }
    }
    if body.len() > limits.decoded_bytes_max {
        match &mut body {
            Cow::Borrowed(bytes) => *bytes = &bytes[..limits.decoded_bytes_max],
            Cow::Owned(bytes) => bytes.truncate(limits.decoded_bytes_max),
        }
        problem = problem.or(Some(CodingProblem::Cut { decoded_bytes_max: limits.decoded_bytes_max }));
    }
    Decoded { body, problem }
}

fn known(name: &str) -> Option<Coding> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if is("gzip") || is("x-gzip") {
        Some(Coding::Gzip)
    } else if is("deflate") {
        Some(Coding::Deflate)
    } else if is("br") {
        Some(Coding::Brotli)
    } else if is("zstd") {
        Some(Coding::Zstd)
    } else {
        None
    }
}

/// Only gzip says at its start what it is.
fn is_gzip(coding: &str, wire: &[u8]) -> bool {
    coding == "gzip" && wire.starts_with(&GZIP_MAGIC)
}

/// Undoes one coding. An error means that the bytes are not in that coding at all.
fn undo(coding: Coding, wire: &[u8], limits: &DecodeLimits) -> Result<(Vec<u8>, Option<CodingProblem>), CodingProblem> {
    let mut sink = Sink { out: Vec::new(), wire_bytes: wire.len(), limits };
    if wire.is_empty() {
        return Ok((sink.out, None));
    }
    sink.out.reserve((wire.len().saturating_mul(4)).min(limits.decoded_bytes_max));
    let end = match coding {
        Coding::Gzip => gunzip(wire, &mut sink),
        Coding::Deflate => inflate(wire, &mut sink),
        Coding::Brotli => sink.fill(brotli_decompressor::Decompressor::new(wire, 4096)),
        Coding::Zstd => unzstd(wire, &mut sink),
    };
    let (coding, decoded_bytes) = (coding.name(), sink.out.len());
    let problem = match end {
        End::Whole => None,
        End::Full => Some(CodingProblem::Cut { decoded_bytes_max: limits.decoded_bytes_max }),
        End::Bomb => Some(CodingProblem::Bomb { coding, ratio_max: limits.ratio_max }),
        End::Short => Some(CodingProblem::Short { coding, decoded_bytes }),
        End::Broken if decoded_bytes == 0 && !is_gzip(coding, wire) => return Err(CodingProblem::NotCoded { coding }),
        End::Broken if decoded_bytes == 0 => return Err(CodingProblem::Broken { coding, decoded_bytes }),
        End::Broken => Some(CodingProblem::Broken { coding, decoded_bytes }),
    };
    Ok((sink.out, problem))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Full,
    Bomb,
    Short,
    Broken,
}

struct Sink<'l> {
    out: Vec<u8>,
    wire_bytes: usize,
    limits: &'l DecodeLimits,
}

impl Sink<'_> {
    fn fill(&mut self, mut from: impl Read) -> End {
        let mut chunk = [0; 8 << 10];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return End::Whole,
                Ok(n) => {
                    let room = self.limits.decoded_bytes_max - self.out.len();
                    self.out.extend_from_slice(&chunk[..n.min(room)]);
                    if n > room {
                        return End::Full;
                    }
                    if self.out.len() > BOMB_BYTES_MIN && self.out.len() / self.limits.ratio_max > self.wire_bytes {
                        return End::Bomb;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return End::Short,
                Err(_) => return End::Broken,
            }
        }
    }
}

/// Member after member; what follows the last and is no member is left alone, as every browser does.
fn gunzip(mut wire: &[u8], sink: &mut Sink) -> End {
    if !GZIP_MAGIC.starts_with(&wire[..wire.len().min(2)]) && !wire.starts_with(&GZIP_MAGIC) {
        return End::Broken;
    }
    loop {
        let mut member = GzDecoder::new(wire);
        match sink.fill(&mut member) {
            End::Whole => wire = member.into_inner(),
            trouble => return trouble,
        }
        if !wire.starts_with(&GZIP_MAGIC) {
            return End::Whole;
        }
    }
}

/// The header says "deflate" and means zlib; some servers take it by its word and send the bare stream.
fn inflate(wire: &[u8], sink: &mut Sink) -> End {
    let is_zlib = matches!(wire, [a, b, ..] if a & 0x0f == 8 && u16::from_be_bytes([*a, *b]) % 31 == 0);
    if is_zlib {
        let end = sink.fill(ZlibDecoder::new(wire));
        if end != End::Broken || !sink.out.is_empty() {
            return end;
        }
    }
    sink.fill(DeflateDecoder::new(wire))
}

fn unzstd(wire: &[u8], sink: &mut Sink) -> End {
    fn open<R: BufRead>(wire: R) -> io::Result<zstd::stream::read::Decoder<'static, R>> {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(wire)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Ok(decoder)
    }
    open(wire).map_or(End::Broken, |decoder| sink.fill(decoder))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut w = GzEncoder::new(Vec::new(), Compression::default());
        w.write_all(data).expect("write to memory");
        w.finish().expect("write to memory")
    }

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut w = ZlibEncoder::new(Vec::new(), Compression::default());
        w.write_all(data).expect("write to memory");
        w.finish().expect("write to memory")
    }

    fn raw(data: &[u8]) -> Vec<u8> {
        let mut w = DeflateEncoder::new(Vec::new(), Compression::default());
        w.write_all(data).expect("write to memory");
        w.finish().expect("write to memory")
    }

    fn zst(data: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(data, 3).expect("write to memory")
    }

    const TEXT: &[u8] = b"a page, a page, a page, a page";
    const BROTLI_HELLO: &[u8] = b"\x0b\x02\x80hello\x03";

    fn check(codings: &str, wire: &[u8], expected: &[u8], problem: Option<&str>) {
        let decoded = decode(codings, wire, &DecodeLimits::default());
        assert_eq!(decoded.body, expected, "{codings}");
        assert_eq!(decoded.problem.map(|p| p.to_string()).as_deref(), problem, "{codings}");
    }

    #[test]
    fn codings_are_undone() {
        check("", TEXT, TEXT, None);
        check("identity", TEXT, TEXT, None);
        check("gzip", &gzip(TEXT), TEXT, None);
        check("X-GZip", &gzip(TEXT), TEXT, None);
        check("gzip", &[gzip(b"a"), gzip(b"b")].concat(), b"ab", None);
        check("gzip", &[gzip(b"a"), b"\0\0rubbish".to_vec()].concat(), b"a", None);
        check("deflate", &zlib(TEXT), TEXT, None);
        check("deflate", &raw(TEXT), TEXT, None);
        check("zstd", &zst(TEXT), TEXT, None);
        check("br", BROTLI_HELLO, b"hello", None);
        check("deflate, identity , gzip", &gzip(&zlib(TEXT)), TEXT, None);
        check("gzip", b"", b"", None);
    }

    #[test]
    fn trouble_is_named_and_keeps_what_was_decoded() {
        check("gzip", b"<html>", b"<html>", Some("body is not gzip, though the header says so"));
        check("br", b"<html>", b"<html>", Some("body is not br, though the header says so"));
        check("zstd", b"<html>", b"<html>", Some("body is not zstd, though the header says so"));
        check("lzw", b"x", b"x", Some("unknown content coding \"lzw\""));
        check("lzw, gzip", &gzip(b"x"), b"x", Some("unknown content coding \"lzw\""));
        check("gzip,gzip,gzip,gzip,gzip,gzip", b"x", b"x", Some("6 content codings, more than 5"));
        let mut cut = gzip(TEXT);
        cut.truncate(cut.len() - 8);
        check("gzip", &cut, TEXT, Some("gzip stream ends early, after 30 decoded bytes"));
        let mut bad = gzip(TEXT);
        let crc = bad.len() - 8;
        bad[crc] ^= 1;
        check("gzip", &bad, TEXT, Some("gzip stream is broken after 30 decoded bytes"));
    }

    #[test]
    fn what_cannot_be_read_is_told_from_what_is_merely_called_wrong() {
        let check = |codings: &str, wire: &[u8], unreadable: bool, loss: bool| {
            let decoded = decode(codings, wire, &DecodeLimits::default());
            assert_eq!(decoded.is_unreadable(), unreadable, "{codings} {:?}", decoded.problem);
            assert_eq!(decoded.problem.is_some_and(|p| p.is_loss()), loss, "{codings}");
        };
        let whole = gzip(&[TEXT; 100].concat());
        let mut broken = whole.clone();
        broken[10..].fill(0xff);
        check("gzip", &whole, false, false);
        check("gzip", &broken, true, true);
        check("gzip", &whole[..whole.len() - 4], false, true);
        check("gzip", &whole[..9], true, true);
        check("gzip", b"<p>plain</p>", false, false);
        check("utf-8", b"<p>plain</p>", false, false);
        check("lzw", b"\x00\x01\x02\xff\xfe", true, false);
        check("br", b"\x00\x01\x02\xff\xfe", true, false);
        check("gzip,gzip,gzip,gzip,gzip,gzip", &whole, true, true);
    }

    #[test]
    fn output_is_bounded() {
        let limits = DecodeLimits { decoded_bytes_max: 1000, ..DecodeLimits::default() };
        let page: Vec<u8> = (0..20_000u32).map(|i| ((i * i) >> 7) as u8).collect();
        for (coding, wire) in
            [("gzip", gzip(&page)), ("deflate", zlib(&page)), ("zstd", zst(&page)), ("", page.clone())]
        {
            let decoded = decode(coding, &wire, &limits);
            assert_eq!(&*decoded.body, &page[..1000], "{coding}");
            assert_eq!(decoded.problem, Some(CodingProblem::Cut { decoded_bytes_max: 1000 }), "{coding}");
        }
        let whole = DecodeLimits { decoded_bytes_max: 20_000, ..limits };
        assert_eq!(decode("gzip", &gzip(&page), &whole).problem, None, "exactly the limit is not too much");
    }

    #[test]
    fn bombs_are_given_up() {
        let limits = DecodeLimits::default();
        for (coding, wire) in [("gzip", gzip(&vec![0; 8 << 20])), ("zstd", zst(&vec![0; 8 << 20]))] {
            let decoded = decode(coding, &wire, &limits);
            assert!(matches!(decoded.problem, Some(CodingProblem::Bomb { .. })), "{coding}: {:?}", decoded.problem);
            assert!(decoded.body.len() <= 3 << 20, "{coding}");
        }
        let wire = gzip(&gzip(&vec![0; 8 << 20]));
        let twice = decode("gzip, gzip", &wire, &limits);
        assert!(twice.problem.is_some() && twice.body.len() <= 3 << 20);
    }

    proptest! {
        #[test]
        fn anything_decodes_within_bounds(
            codings in prop::collection::vec(prop::sample::select(vec!["gzip", "deflate", "br", "zstd", "x", ""]), 0..4),
            body in prop::collection::vec(any::<u8>(), 0..200),
            flip in any::<prop::sample::Index>(),
        ) {
            let limits = DecodeLimits { decoded_bytes_max: 100, ..DecodeLimits::default() };
            prop_assert!(decode(&codings.join(","), &body, &limits).body.len() <= 100);
            for (coding, mut wire) in [("gzip", gzip(&body)), ("deflate", zlib(&body)), ("zstd", zst(&body))] {
                let whole = decode(coding, &wire, &DecodeLimits::default());
                prop_assert_eq!(&*whole.body, &body[..]);
                prop_assert_eq!(&whole.problem, &None);
                let at = flip.index(wire.len());
                wire[at] ^= 0x55;
                decode(coding, &wire, &limits);
                decode(coding, &wire[..at], &limits);
            }
        }
    }
}
