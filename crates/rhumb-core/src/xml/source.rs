//! The text of a file, a piece at a time: gzip undone, encoding undone, counted.
//!
//! Invariant: two buffers of fixed size and the decoders' windows, whatever comes; every piece is valid UTF-8. The end of the input, a
//! bound that is met and a broken stream all look like the end; [`Source::trouble`] says which it was.

use std::io::{self, BufRead, BufReader, Read};

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8};
use flate2::bufread::GzDecoder;

use super::Place;
use crate::sitemap::{SitemapLimits, Trouble};

const WIRE_BYTES: usize = 16 << 10;
const TEXT_BYTES: usize = 64 << 10;
/// How far an XML declaration is looked for its encoding.
const DECLARATION_BYTES_MAX: usize = 256;
/// Outputs up to this size are no bombs, whatever their ratio.
const BOMB_BYTES_MIN: u64 = 1 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// See the module's header.
pub(crate) struct Source<R: Read> {
    input: Input<R>,
    limits: SitemapLimits,
    decoder: Option<Decoder>,
    wire: Vec<u8>,
    wire_at: usize,
    wire_end: usize,
    /// Bytes that came out of gzip, or in without it.
    plain_bytes: u64,
    text: Vec<u8>,
    at: usize,
    end: usize,
    place: Place,
    ended: bool,
    trouble: Option<Trouble>,
}

enum Input<R: Read> {
    Unknown(BufReader<Counted<R>>),
    Plain(BufReader<Counted<R>>),
    Gzip(Box<GzDecoder<BufReader<Counted<R>>>>),
    Ended,
}

struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        self.bytes += n as u64;
        Ok(n)
    }
}

impl<R: Read> Source<R> {
    pub(crate) fn new(inner: R, limits: &SitemapLimits) -> Source<R> {
        Source {
            input: Input::Unknown(BufReader::with_capacity(WIRE_BYTES, Counted { inner, bytes: 0 })),
            limits: *limits,
            decoder: None,
            wire: vec![0; WIRE_BYTES],
            wire_at: 0,
            wire_end: 0,
            plain_bytes: 0,
            text: vec![0; TEXT_BYTES],
            at: 0,
            end: 0,
            place: Place { line: 1, offset: 0 },
            ended: false,
            trouble: None,
        }
    }

    /// A source whose text is UTF-8 already, whatever it says of itself.
    pub(crate) fn utf8(inner: R, limits: &SitemapLimits) -> Source<R> {
        Source { decoder: Some(UTF_8.new_decoder_with_bom_removal()), ..Source::new(inner, limits) }
    }

    /// Some of the text, not yet used; empty at its end.
    pub(crate) fn fill(&mut self) -> &[u8] {
        while self.at == self.end && !self.ended {
            self.refill();
        }
        &self.text[self.at..self.end]
    }

    /// The next byte, if there is one.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.fill().first().copied()
    }

    /// Passes over `n` bytes that [`Source::fill`] showed.
    pub(crate) fn consume(&mut self, n: usize) {
        let used = &self.text[self.at..self.at + n];
        self.place.line += memchr::memchr_iter(b'\n', used).count() as u64;
        self.place.offset += n as u64;
        self.at += n;
    }

    /// Takes the next byte.
    pub(crate) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.consume(1);
        Some(byte)
    }

    /// Passes over white space.
    pub(crate) fn skip_space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.consume(1);
        }
    }

    /// Where the next byte is.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Why the text ended, if not because it was over.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    fn refill(&mut self) {
        if self.wire_at == self.wire_end && !matches!(self.input, Input::Ended) {
            self.wire_at = 0;
            self.wire_end = self.read_wire();
        }
        if self.decoder.is_none() {
            let beginning = &self.wire[..self.wire_end];
            self.decoder = Some(encoding_of(beginning).new_decoder_with_bom_removal());
        }
        let Some(decoder) = self.decoder.as_mut() else { return };
        let last = matches!(self.input, Input::Ended);
        let (result, read, written, _) =
            decoder.decode_to_utf8(&self.wire[self.wire_at..self.wire_end], &mut self.text, last);
        self.wire_at += read;
        let room = self.limits.decoded_bytes_max - self.place.offset;
        (self.at, self.end) = (0, written);
        if written as u64 > room {
            self.end = room as usize;
            self.stop(Trouble::TooLarge);
        } else if last && result == CoderResult::InputEmpty {
            self.ended = true;
        }
    }

    /// Fills the wire buffer, as far as one beginning: the first piece is long enough to find an encoding in, if there is as much.
    fn read_wire(&mut self) -> usize {
        let mut filled = 0;
        while filled < DECLARATION_BYTES_MAX {
            let got = match self.input.read(&mut self.wire[filled..]) {
                Ok(0) => {
                    self.input = Input::Ended;
                    break;
                }
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    let gzip = matches!(self.input, Input::Gzip(_));
                    // What came out before is kept: only the input is over.
                    self.trouble = Some(if gzip { Trouble::BrokenGzip } else { Trouble::Unreadable });
                    self.input = Input::Ended;
                    break;
                }
            };
            filled += got;
            self.plain_bytes += got as u64;
            let allowed = self.input.wire_bytes().saturating_mul(self.limits.ratio_max);
            if self.plain_bytes > BOMB_BYTES_MIN && self.plain_bytes > allowed {
                self.stop(Trouble::Bomb);
                break;
            }
        }
        filled
    }

    fn stop(&mut self, trouble: Trouble) {
        self.trouble = self.trouble.or(Some(trouble));
        self.input = Input::Ended;
        self.ended = true;
    }
}

impl<R: Read> Input<R> {
    /// Bytes that came in; without bound where they are not multiplied.
    fn wire_bytes(&self) -> u64 {
        match self {
            Input::Gzip(decoder) => decoder.get_ref().get_ref().bytes,
            _ => u64::MAX,
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Input::Plain(reader) => return reader.read(into),
                Input::Gzip(decoder) => {
                    let n = decoder.read(into)?;
                    if n > 0 {
                        return Ok(n);
                    }
                }
                Input::Unknown(_) => {}
                Input::Ended => return Ok(0),
            }
            // At the beginning, or at the end of a gzip member, which another may follow; what else follows is left alone.
            let (mut reader, begins) = match std::mem::replace(self, Input::Ended) {
                Input::Unknown(reader) => (reader, true),
                Input::Gzip(decoder) => (decoder.into_inner(), false),
                Input::Plain(_) | Input::Ended => return Ok(0),
            };
            if starts_gzip(&mut reader)? {
                *self = Input::Gzip(Box::new(GzDecoder::new(reader)));
            } else if begins {
                *self = Input::Plain(reader);
            }
        }
    }
}

/// Whether gzip begins here. A buffer that happens to end after its first byte counts as well.
fn starts_gzip(reader: &mut impl BufRead) -> io::Result<bool> {
    let beginning = reader.fill_buf()?;
    Ok(!beginning.is_empty() && GZIP.starts_with(&beginning[..beginning.len().min(2)]))
}

/// The encoding of a text by its mark, by the zeros in it, or by what its XML declaration says of it.
fn encoding_of(beginning: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(beginning) {
        return encoding;
    }
    match beginning {
        [1..=255, 0, ..] => return encoding_rs::UTF_16LE,
        [0, 1..=255, ..] => return encoding_rs::UTF_16BE,
        _ => {}
    }
    let declaration = &beginning[..beginning.len().min(DECLARATION_BYTES_MAX)];
    if !declaration.starts_with(b"<?xml") {
        return UTF_8;
    }
    let declaration = &declaration[..memchr::memchr(b'>', declaration).unwrap_or(declaration.len())];
    let named = memchr::memmem::find(declaration, b"encoding").and_then(|at| {
        let rest = declaration[at + 8..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
        let (&quote, rest) = rest.split_first().filter(|(q, _)| matches!(q, b'"' | b'\''))?;
        Encoding::for_label(&rest[..memchr::memchr(quote, rest)?])
    });
    // A declaration that can be read as ASCII is not in UTF-16, whatever it says.
    named.filter(|e| e.is_ascii_compatible()).unwrap_or(UTF_8)
}

/// What is left of the text, for a reader of another syntax.
impl<R: Read> Read for Source<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let some = self.fill();
        let n = some.len().min(into.len());
        into[..n].copy_from_slice(&some[..n]);
        self.consume(n);
        Ok(n)
    }
}
