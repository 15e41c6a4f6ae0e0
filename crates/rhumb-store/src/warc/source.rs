//! Bytes of an archive file, inflated where need be, with their place in the file.
//!
//! A source never runs from one gzip member into the next by itself: the end of a member looks like the end of input
//! until `next_member` is called. So a record with a wrong length cannot swallow its neighbours. Memory: two buffers and
//! zlib's window, whatever the file holds.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};

use super::WarcError;

const BUFFER_BYTES: usize = 64 << 10;

/// What follows the member that has been read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another gzip member.
    Member,
    /// The end of the file.
    End,
    /// Something else.
    Garbage,
}

/// See the module's words. A plain file is one member without end mark.
pub(crate) struct Source<R> {
    inner: R,
    /// Bytes as stored, from `raw_at` to `raw_end` not yet used.
    raw: Vec<u8>,
    raw_at: usize,
    raw_end: usize,
    /// File offset of `raw[raw_at]`.
    position: u64,
    inflate: Option<Decompress>,
    /// Inflated bytes, from `text_at` to `text_end` not yet used. Unused for plain files.
    text: Vec<u8>,
    text_at: usize,
    text_end: usize,
    member_start: u64,
    member_done: bool,
    started: bool,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(inner: R, position: u64) -> Self {
        Source {
            inner,
            raw: vec![0; BUFFER_BYTES],
            raw_at: 0,
            raw_end: 0,
            position,
            inflate: None,
            text: Vec::new(),
            text_at: 0,
            text_end: 0,
            member_start: position,
            member_done: false,
            started: false,
        }
    }

    /// Whether the file is gzip; known after the first `fill`.
    pub(crate) fn is_gzip(&self) -> bool {
        self.inflate.is_some()
    }

    /// Where the current gzip member begins.
    pub(crate) fn member_start(&self) -> u64 {
        self.member_start
    }

    /// File offset of the next byte: of the plain bytes, or of the stored ones not yet inflated.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Bytes not yet used, at least one unless the member (or plain file) is at its end.
    pub(crate) fn fill(&mut self) -> Result<&[u8], WarcError> {
        if !self.started {
            self.started = true;
            self.member_start = self.position;
            if self.want_raw(2)? && self.raw[self.raw_at..].starts_with(&[0x1f, 0x8b]) {
                self.inflate = Some(Decompress::new_gzip(15));
                self.text = vec![0; BUFFER_BYTES];
            }
        }
        if self.inflate.is_none() {
            self.want_raw(1)?;
            return Ok(&self.raw[self.raw_at..self.raw_end]);
        }
        while self.text_at == self.text_end && !self.member_done {
            self.inflate_some()?;
        }
        Ok(&self.text[self.text_at..self.text_end])
    }

    /// The same, with at least `n` bytes (a few) unless the member or file ends before: for looking ahead.
    pub(crate) fn fill_at_least(&mut self, n: usize) -> Result<&[u8], WarcError> {
        self.fill()?;
        if self.inflate.is_none() {
            self.want_raw(n)?;
            return Ok(&self.raw[self.raw_at..self.raw_end]);
        }
        while self.text_end - self.text_at < n && !self.member_done {
            self.inflate_some()?;
        }
        Ok(&self.text[self.text_at..self.text_end])
    }

    /// Marks `n` of the bytes `fill` gave as used.
    pub(crate) fn consume(&mut self, n: usize) {
        if self.inflate.is_some() {
            self.text_at = (self.text_at + n).min(self.text_end);
        } else {
            let n = n.min(self.raw_end - self.raw_at);
            self.raw_at += n;
            self.position += n as u64;
        }
    }

    /// Moves on from a gzip member that has been read to its end.
    pub(crate) fn next_member(&mut self) -> Result<Next, WarcError> {
        self.member_start = self.position;
        if !self.want_raw(1)? {
            return Ok(Next::End);
        }
        let magic: &[u8] = if self.want_raw(2)? { &[0x1f, 0x8b] } else { &[0x1f] };
        if !self.raw[self.raw_at..self.raw_end].starts_with(magic) {
            return Ok(Next::Garbage);
        }
        self.inflate = Some(Decompress::new_gzip(15));
        (self.text_at, self.text_end, self.member_done) = (0, 0, false);
        Ok(Next::Member)
    }

    /// The first stored bytes not used, to be shown: `n` (a few) if there are as many, however they come in.
    pub(crate) fn peek_raw(&mut self, n: usize) -> &[u8] {
        // An error of the reader is met again by whoever reads on.
        let _ = self.want_raw(n);
        &self.raw[self.raw_at..self.raw_end]
    }

    fn inflate_some(&mut self) -> Result<(), WarcError> {
        let more = self.want_raw(1)?;
        let offset = self.member_start;
        let Some(inflate) = self.inflate.as_mut() else { return Ok(()) };
        self.text.copy_within(self.text_at..self.text_end, 0);
        (self.text_at, self.text_end) = (0, self.text_end - self.text_at);
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let room = &mut self.text[self.text_end..];
        let result = inflate.decompress(&self.raw[self.raw_at..self.raw_end], room, FlushDecompress::None);
        let used = (inflate.total_in() - before_in) as usize;
        let made = (inflate.total_out() - before_out) as usize;
        self.raw_at += used;
        self.position += used as u64;
        self.text_end += made;
        match result {
            Ok(Status::StreamEnd) => self.member_done = true,
            Ok(_) if used + made > 0 => {}
            // What came out before the damage is whole; the damage is met again by the next call.
            Err(_) if made > 0 => {}
            // No progress: for want of input if there is none, else for want of sense in it.
            Ok(_) if !more => return Err(WarcError::Truncated { offset }),
            Ok(_) | Err(_) => return Err(WarcError::Corrupt { offset }),
        }
        Ok(())
    }

    /// Brings at least `n` (a few) stored bytes into the buffer; false where the file has not so many left.
    fn want_raw(&mut self, n: usize) -> Result<bool, WarcError> {
        while self.raw_end - self.raw_at < n {
            self.raw.copy_within(self.raw_at..self.raw_end, 0);
            (self.raw_at, self.raw_end) = (0, self.raw_end - self.raw_at);
            match self.inner.read(&mut self.raw[self.raw_end..]) {
                Ok(0) => return Ok(false),
                Ok(got) => self.raw_end += got.min(BUFFER_BYTES - self.raw_end),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(WarcError::Io { offset: self.position, source }),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
        let mut out = vec![0; compressor.gzip_compress_bound(text.len())];
        let length = compressor.gzip_compress(text, &mut out).expect("bound is kept");
        out.truncate(length);
        out
    }

    /// Reads to the end of the member.
    fn drain(source: &mut Source<impl Read>) -> Result<Vec<u8>, WarcError> {
        let mut all = Vec::new();
        loop {
            let some = source.fill()?;
            if some.is_empty() {
                return Ok(all);
            }
            all.extend_from_slice(some);
            let n = some.len();
            source.consume(n);
        }
    }

    #[test]
    fn members_one_by_one() {
        let (first, second) = (gzip(&vec![b'a'; 200_000]), gzip(b"second"));
        let file = [&first[..], &second, b"tail"].concat();
        let mut source = Source::new(&file[..], 100);
        assert_eq!(drain(&mut source).expect("whole").len(), 200_000);
        assert_eq!(source.position(), 100 + first.len() as u64);
        assert_eq!(source.next_member().expect("read"), Next::Member);
        assert_eq!(drain(&mut source).expect("whole"), b"second");
        assert_eq!(source.next_member().expect("read"), Next::Garbage);
        assert_eq!(source.peek_raw(4), b"tail");
    }

    #[test]
    fn torn_and_damaged_members() {
        let whole = gzip(b"some text that is long enough to be worth compressing, compressing, compressing");
        for cut in 2..whole.len() {
            let torn = drain(&mut Source::new(&whole[..cut], 0));
            assert!(matches!(torn, Err(WarcError::Truncated { offset: 0 })), "cut at {cut}");
        }
        let mut damaged = whole.clone();
        let last = damaged.len() - 6;
        damaged[last] ^= 1;
        assert!(matches!(drain(&mut Source::new(&damaged[..], 0)), Err(WarcError::Corrupt { offset: 0 })));
    }
}
