//! A stream that keeps a copy of the response head as it passes: hyper gives parsed headers, an archive wants
//! the bytes themselves. Of HTTP/2, which has no such head, it counts the frames instead (`frames.rs`).

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::below::Gauge;
use super::frames::{Excess, FrameMeter};

/// What has passed since the last request.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    head: Vec<u8>,
    whole: bool,
    any: bool,
    head_bytes_max: usize,
    /// Interim responses (100, 103) so far.
    interims: usize,
    frames: Option<FrameMeter>,
    excess: Option<Excess>,
    /// How the stream broke, if it did: hyper and h2 mix that with what they find wrong themselves.
    broken: Option<(io::ErrorKind, String)>,
    /// Whether HTTP/2 has read something that the visit has not looked at yet.
    full: bool,
}

/// Interim responses before the real one. A server needs one or two; one that sends them for ever would keep a reader busy until its
/// patience ends.
const INTERIMS_MAX: usize = 16;

impl Passed {
    /// For a connection that speaks HTTP/2.
    pub fn of_http2() -> Passed {
        Passed { frames: Some(FrameMeter::default()), ..Passed::default() }
    }

    /// Forgets the last response; the next bytes are a new one's.
    pub fn reset(&mut self, head_bytes_max: usize, content_bytes_max: usize) {
        let mut frames = self.frames.take();
        if let Some(meter) = &mut frames {
            meter.refill(head_bytes_max, content_bytes_max);
        }
        *self = Passed { head_bytes_max, frames, ..Passed::default() };
    }

    /// The visit has looked at what there was: more may be read.
    pub fn make_room(&mut self) {
        self.full = false;
    }

    /// Whether the server has sent anything since the request.
    pub fn any(&self) -> bool {
        self.any
    }

    /// What the server sent too much of, if that is why the connection ended.
    pub fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// How the stream itself broke, if it did.
    pub fn broken(&self) -> Option<&(io::ErrorKind, String)> {
        self.broken.as_ref()
    }

    /// The bytes of the response head, blank line included.
    pub fn take_head(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.head)
    }

    /// Whether there were more interim responses than anybody needs.
    fn goes_on_for_ever(&self) -> bool {
        self.interims > INTERIMS_MAX
    }

    fn see(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.any |= !bytes.is_empty();
        if let Some(meter) = &mut self.frames {
            self.full = !bytes.is_empty();
            self.excess = meter.see(bytes).err();
            return self.excess.map_or(Ok(()), |excess| Err(io::Error::new(io::ErrorKind::InvalidData, excess)));
        }
        self.copy_head(bytes);
        if self.goes_on_for_ever() {
            let why = format!("more than {INTERIMS_MAX} interim responses");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(())
    }

    pub fn copy_head(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.whole && !rest.is_empty() {
            if self.head.is_empty() {
                // Parsers pass over empty lines in front of a response; taken for its end they would be all that is kept.
                let blank = rest.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
                rest = &rest[blank..];
            }
            let before = self.head.len();
            let room = self.head_bytes_max.saturating_sub(before).min(rest.len());
            self.head.extend_from_slice(&rest[..room]);
            // The blank line may straddle two reads.
            let from = before.saturating_sub(3);
            match end_of_head(&self.head[from..]) {
                Some(at) => {
                    let end = from + at;
                    rest = &rest[end - before..];
                    self.head.truncate(end);
                    // An interim response (100, 103) is followed by the real one.
                    let interim = self.head.get(9) == Some(&b'1') && self.head.starts_with(b"HTTP/1.");
                    if interim && !self.head[9..].starts_with(b"101") {
                        self.head.clear();
                        self.interims += 1;
                    } else {
                        self.whole = true;
                    }
                }
                None => {
                    self.whole = self.head.len() >= self.head_bytes_max;
                    return;
                }
            }
        }
    }
}

/// Where the head ends: behind an empty line, whose line ends may lack their CR.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|&b| b == b'\n') {
        at += found + 1;
        match &bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// The stream itself: tokio's on one side, hyper's on the other.
pub(crate) struct Tee<S> {
    inner: S,
    passed: Arc<Mutex<Passed>>,
    gauge: Arc<Gauge>,
}

impl<S> Tee<S> {
    pub fn new(inner: S, passed: Arc<Mutex<Passed>>, gauge: Arc<Gauge>) -> Self {
        Tee { inner, passed, gauge }
    }
}

impl<S: AsyncRead + Unpin> hyper::rt::Read for Tee<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.passed.lock().expect("nobody panics while copying a head").full {
            // Would h2 read all there is before the visit sees any of it, small frames would pile up.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // A stack buffer costs one copy and saves an unsafe block; heads and pages are small.
        let mut chunk = [std::mem::MaybeUninit::uninit(); 16 << 10];
        let room = buf.remaining().min(chunk.len());
        let mut read = ReadBuf::uninit(&mut chunk[..room]);
        if let Err(e) = ready!(Pin::new(&mut this.inner).poll_read(cx, &mut read)) {
            let mut passed = this.passed.lock().expect("nobody panics while copying a head");
            passed.broken = Some((e.kind(), e.to_string()));
            return Poll::Ready(Err(e));
        }
        let bytes = read.filled();
        this.gauge.came_out(bytes.len());
        let mut passed = this.passed.lock().expect("nobody panics while copying a head");
        if !passed.whole || !passed.any {
            passed.see(bytes)?;
        }
        drop(passed);
        buf.put_slice(bytes);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for Tee<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interim_responses_are_not_waited_for_without_end() {
        let interim = "HTTP/1.1 103 H\r\n\r\n";
        let mut passed = Passed::default();
        passed.reset(1000, 1000);
        assert!(passed.see(interim.repeat(INTERIMS_MAX).as_bytes()).is_ok());
        assert!(passed.see(interim.as_bytes()).is_err());
    }

    #[test]
    fn the_head_is_copied_to_the_byte() {
        let check = |parts: &[&str], expected: &str| {
            let mut passed = Passed::default();
            passed.reset(1000, 1000);
            parts.iter().for_each(|p| passed.see(p.as_bytes()).expect("HTTP/1.1 has no budget here"));
            assert_eq!(String::from_utf8_lossy(&passed.take_head()), expected, "{parts:?}");
        };
        check(&["HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"], "HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
        check(&["HTTP/1.1 200 OK\r\nA: b\r\n\r", "\nbody", "more"], "HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
        check(&["HTTP/1.1 200 OK\nA: b\n", "\nbody"], "HTTP/1.1 200 OK\nA: b\n\n");
        check(&["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 ", "404 No\r\n\r\nx"], "HTTP/1.1 404 No\r\n\r\n");
        check(&["\r\n", "\nHTTP/1.1 200 OK\r\n\r\nbody"], "HTTP/1.1 200 OK\r\n\r\n");
        check(&["HTTP/1.1 100 C\r\n\r\n", "HTTP/1.1 103 H\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"], "HTTP/1.1 200 OK\r\n\r\n");
    }
}
