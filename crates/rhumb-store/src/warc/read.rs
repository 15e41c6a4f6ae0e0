//! Reads records back: ours, and those of wget, Heritrix, warcio and others, gzip or plain.
//!
//! `next_record` lends one record at a time; its block is streamed, and what is left of it is passed over when the next
//! record is asked for. After a passable error (`WarcError::is_passable`) reading may go on: the reader has then moved to
//! the next place where a record can begin. After any other it is at its end.
//!
//! Tolerated: WARC 0.17 to 1.1, names in any case, lines ending in LF alone, folded fields, missing blank lines after a
//! record, several records in one gzip member (marked, for they have no offset of their own).

use std::io::{self, BufRead, Read};

use super::fields::Fields;
use super::source::{Next, Source};
use super::{Span, WarcError, is_blank};

/// The longest record header accepted, in bytes.
pub const HEADER_BYTES_MAX: usize = 256 << 10;
/// What a record begins with.
const VERSION_START: &[u8] = b"WARC/";
/// How much of something unexpected an error shows.
const SHOWN_BYTES: usize = 40;

/// Reads the records of one archive file in order.
pub struct WarcReader<R> {
    source: Source<R>,
    state: State,
    /// Where the current record begins, and how many records its gzip member has held so far.
    offset: u64,
    in_member: u32,
    /// Block bytes of the current record not yet read.
    left: u64,
    /// Blank lines seen after the latest record.
    blank_lines: u32,
    /// A lent block that met trouble leaves it here; `io::Error` alone would lose its kind.
    trouble: Option<WarcError>,
    header: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a record.
    Between,
    /// In a record's block.
    Block,
    /// Nothing more can be read.
    Ended,
}

impl<R: Read> WarcReader<R> {
    /// Reads from the beginning of a file.
    pub fn new(inner: R) -> Self {
        WarcReader::at(inner, 0)
    }

    /// Reads from a reader that stands at `offset` of its file; offsets told are the file's.
    pub fn at(inner: R, offset: u64) -> Self {
        WarcReader {
            source: Source::new(inner, offset),
            state: State::Between,
            offset,
            in_member: 0,
            left: 0,
            blank_lines: 0,
            trouble: None,
            header: Vec::new(),
        }
    }

    /// The next record, or `None` at the end of the file.
    pub fn next_record(&mut self) -> Result<Option<Record<'_, R>>, WarcError> {
        let found = self.advance();
        match found {
            Ok(Some(fields)) => {
                let shared = self.source.is_gzip() && self.in_member > 1;
                Ok(Some(Record { fields, offset: self.offset, shares_member: shared, reader: self }))
            }
            Ok(None) => {
                self.state = State::Ended;
                Ok(None)
            }
            Err(error) => Err(self.remember(error)),
        }
    }

    /// Blank lines that followed the latest record finished; a whole record has two.
    pub(crate) fn blank_lines(&self) -> u32 {
        self.blank_lines
    }

    /// After a record has been finished: `Some(true)` at the end of its gzip member, `None` inside one, `Some(false)` in a
    /// plain file.
    pub(crate) fn after_record(&mut self) -> Option<bool> {
        if !self.source.is_gzip() {
            return Some(false);
        }
        self.source.fill().is_ok_and(<[u8]>::is_empty).then_some(true)
    }

    /// File offset after everything read so far.
    pub(crate) fn position(&self) -> u64 {
        self.source.position()
    }

    fn remember(&mut self, error: WarcError) -> WarcError {
        if !error.is_passable() {
            self.state = State::Ended;
        }
        error
    }

    fn advance(&mut self) -> Result<Option<Fields>, WarcError> {
        if self.state == State::Block {
            self.pass_block()?;
        }
        if self.state == State::Ended || !self.find_record()? {
            return Ok(None);
        }
        self.blank_lines = 0;
        self.read_header()?;
        let fields = Fields::parse(&self.header);
        self.in_member += 1;
        let Some(length) = fields.content_length() else {
            // Without a length the record's end is unknown: look for the next one.
            return Err(self.skip_to_record("no usable Content-Length".to_owned()));
        };
        self.left = length;
        self.state = State::Block;
        Ok(Some(fields))
    }

    /// Reads what is left of the block and the blank lines after it, up to the member's end where there is one.
    fn pass_block(&mut self) -> Result<Span, WarcError> {
        if let Some(trouble) = self.trouble.take() {
            self.state = State::Between;
            return Err(trouble);
        }
        while self.left > 0 {
            let n = self.fill_block()?.len();
            self.consume_block(n);
        }
        let mut end = self.source.position();
        self.state = State::Between;
        self.pass_blank_lines()?;
        if self.source.is_gzip() {
            end = self.source.position();
        }
        Ok(Span { offset: self.offset, length: end - self.offset })
    }

    /// Some of the block, at least a byte while any is left.
    fn fill_block(&mut self) -> Result<&[u8], WarcError> {
        let (offset, left) = (self.offset, self.left);
        let gzip = self.source.is_gzip();
        let some = self.source.fill().inspect_err(|_| self.state = State::Ended)?;
        if some.is_empty() && left > 0 {
            // A member that ends early leaves its neighbours readable; a plain file that does is torn.
            (self.state, self.left) = (State::Between, 0);
            let (short, torn) = (WarcError::ShortBlock { offset, missing: left }, WarcError::Truncated { offset });
            return Err(if gzip { short } else { torn });
        }
        let n = some.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(&some[..n])
    }

    fn consume_block(&mut self, n: usize) {
        let n = n.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.source.consume(n);
        self.left -= n as u64;
    }

    /// Moves to where the next record begins: past blank lines and ends of members. False at the end of the file.
    fn find_record(&mut self) -> Result<bool, WarcError> {
        loop {
            self.pass_blank_lines()?;
            let gzip = self.source.is_gzip();
            let position = self.source.position();
            let at = if gzip { self.source.member_start() } else { position };
            let some = self.source.fill()?;
            if some.is_empty() {
                if !gzip {
                    return Ok(false);
                }
                match self.source.next_member()? {
                    Next::Member => self.in_member = 0,
                    Next::End => return Ok(false),
                    Next::Garbage => {
                        self.state = State::Ended;
                        let found = shown(self.source.peek_raw(SHOWN_BYTES));
                        return Err(WarcError::Garbage { offset: self.source.position(), found });
                    }
                }
                continue;
            }
            self.offset = at;
            return Ok(true);
        }
    }

    /// Passes over line ends, at most as many as there are.
    fn pass_blank_lines(&mut self) -> Result<(), WarcError> {
        loop {
            let some = self.source.fill()?;
            let n = some.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let lines = some[..n].iter().filter(|&&b| b == b'\n').count();
            let all = n == some.len();
            self.blank_lines = self.blank_lines.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
            self.source.consume(n);
            if n == 0 || !all {
                return Ok(());
            }
        }
    }

    /// Reads a record's header into `self.header`, its closing empty line included.
    fn read_header(&mut self) -> Result<(), WarcError> {
        self.header.clear();
        loop {
            let start = self.header.len();
            let ended = self.read_line()?;
            let line = &self.header[start..];
            if start == 0 && !line.starts_with(VERSION_START) {
                let found = shown(line);
                let torn = ended && self.source_is_torn(&found);
                let offset = self.offset;
                self.skip_lines()?;
                return Err(if torn { WarcError::Truncated { offset } } else { WarcError::Garbage { offset, found } });
            }
            if ended {
                return Err(if self.source.is_gzip() {
                    WarcError::BadHeader {
                        offset: self.offset,
                        what: "the gzip member ends inside the header".to_owned(),
                    }
                } else {
                    WarcError::Truncated { offset: self.offset }
                });
            }
            if is_blank(line) {
                return Ok(());
            }
            if self.header.len() > HEADER_BYTES_MAX {
                let what = format!("header longer than {HEADER_BYTES_MAX} bytes");
                return Err(self.skip_to_record(what));
            }
        }
    }

    /// A plain file that ends in the first letters of a record is torn there, rather than full of rubbish.
    fn source_is_torn(&self, found: &str) -> bool {
        !self.source.is_gzip() && "WARC/".starts_with(found)
    }

    /// Appends a line to `self.header`, never much more than the bound. True where input ended before the line did.
    fn read_line(&mut self) -> Result<bool, WarcError> {
        while self.header.len() <= HEADER_BYTES_MAX {
            let some = self.source.fill()?;
            if some.is_empty() {
                return Ok(true);
            }
            let (n, done) = match some.iter().position(|&b| b == b'\n') {
                Some(at) => (at + 1, true),
                None => (some.len(), false),
            };
            self.header.extend_from_slice(&some[..n]);
            self.source.consume(n);
            if done {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Passes over a record that cannot be used, and says why.
    fn skip_to_record(&mut self, what: String) -> WarcError {
        let offset = self.offset;
        match self.skip_lines() {
            Ok(()) => WarcError::BadHeader { offset, what },
            Err(error) => error,
        }
    }

    /// Passes over lines until one begins with `WARC/`, or the member or file ends.
    fn skip_lines(&mut self) -> Result<(), WarcError> {
        self.state = State::Between;
        let mut at_line_start = self.header.ends_with(b"\n");
        loop {
            let some = self.source.fill_at_least(VERSION_START.len())?;
            if some.is_empty() {
                return Ok(());
            }
            if at_line_start && some.starts_with(VERSION_START) {
                return Ok(());
            }
            let (n, done) = match some.iter().position(|&b| b == b'\n') {
                Some(at) => (at + 1, true),
                None => (some.len(), false),
            };
            self.source.consume(n);
            at_line_start = done;
        }
    }
}

/// A record lent by `WarcReader::next_record`. Reads its block as `Read` or `BufRead`.
pub struct Record<'r, R> {
    /// The record's named fields.
    pub fields: Fields,
    /// Where it begins in the file; for gzip, where its member does.
    pub offset: u64,
    /// An earlier record lies in the same gzip member, so that `offset` does not lead here.
    pub shares_member: bool,
    reader: &'r mut WarcReader<R>,
}

impl<R: Read> Record<'_, R> {
    /// Bytes of the block not yet read.
    pub fn left(&self) -> u64 {
        self.reader.left
    }

    /// Reads to the record's end and tells its span: of the whole gzip member, or of header and block in a plain file.
    pub fn finish(self) -> Result<Span, WarcError> {
        let span = self.reader.pass_block();
        span.map_err(|error| self.reader.remember(error))
    }

    /// Reads the HTTP head the block begins with, its closing empty line included, if it is no longer than `bytes_max`.
    pub fn read_http_head(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, WarcError> {
        let mut head = Vec::new();
        let mut line_start = 0;
        while self.reader.left > 0 {
            let some = match self.reader.fill_block() {
                Ok(some) => some,
                Err(error) => return Err(self.reader.remember(error)),
            };
            let (n, done) = match some.iter().position(|&b| b == b'\n') {
                Some(at) => (at + 1, true),
                None => (some.len(), false),
            };
            if head.len() + n > bytes_max {
                return Ok(None);
            }
            head.extend_from_slice(&some[..n]);
            self.reader.consume_block(n);
            if done {
                if is_blank(&head[line_start..]) {
                    break;
                }
                line_start = head.len();
            }
        }
        Ok(Some(head))
    }
}

impl<R: Read> BufRead for Record<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.reader.left == 0 {
            return Ok(&[]);
        }
        // Filled twice because the first borrow cannot be both returned and given up; the second finds the buffer full.
        if let Err(error) = self.reader.fill_block() {
            let told = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
            self.reader.state = State::Block;
            self.reader.left = 0;
            self.reader.trouble = Some(error);
            return Err(told);
        }
        self.reader.fill_block().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    fn consume(&mut self, n: usize) {
        self.reader.consume_block(n);
    }
}

impl<R: Read> Read for Record<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let some = self.fill_buf()?;
        let n = some.len().min(buf.len());
        buf[..n].copy_from_slice(&some[..n]);
        self.consume(n);
        Ok(n)
    }
}

/// The beginning of something unexpected, fit to be printed.
fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_BYTES)];
    String::from_utf8_lossy(cut).trim_end().to_owned()
}
