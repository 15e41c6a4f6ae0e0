//! What lies below TLS: the socket, and a gauge that compares what TLS takes in with what it gives out.
//!
//! TLS has messages of its own (session tickets, changes of keys) and padding of up to 16 KiB around a single byte. A
//! server may send them for as long as it likes, and nothing of it is seen above. rustls bounds what became known as a
//! flood; here is a bound for everything.
//!
//! **Invariant**: of a connection no more is read than [`FREE_BYTES`] and [`FACTOR`] times what came out of it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// For handshakes: four flights of the largest message that rustls takes would be a quarter of it.
const FREE_BYTES: u64 = 1 << 20;
/// A record costs 22 bytes, so this lets a server send single bytes.
const FACTOR: u64 = 32;

/// What is known on both sides of TLS.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    out_bytes: AtomicU64,
}

impl Gauge {
    /// So many bytes came out above.
    pub fn came_out(&self, bytes: usize) {
        self.out_bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// The socket as TLS sees it.
pub(crate) struct Below {
    inner: TcpStream,
    in_bytes: u64,
    gauge: Arc<Gauge>,
}

impl Below {
    pub fn new(inner: TcpStream, gauge: Arc<Gauge>) -> Below {
        Below { inner, in_bytes: 0, gauge }
    }
}

impl AsyncRead for Below {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.in_bytes += (buf.filled().len() - before) as u64;
        if self.in_bytes > FREE_BYTES + FACTOR * self.gauge.out_bytes.load(Relaxed) {
            let flood = "the server floods TLS with records that carry nothing";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, flood)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Below {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// How much of four MiB is read if a part of it comes out above.
    async fn read(out_share: f64) -> u64 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connect");
        let (mut server, _) = listener.accept().await.expect("accept");
        tokio::spawn(async move {
            let _ = server.write_all(&vec![0; 4 << 20]).await;
        });
        let gauge = Arc::new(Gauge::default());
        let mut below = Below::new(stream, gauge.clone());
        let (mut all, mut piece) = (0, vec![0; 16 << 10]);
        loop {
            match below.read(&mut piece).await {
                Ok(0) => return all,
                Ok(n) => {
                    all += n as u64;
                    gauge.came_out((n as f64 * out_share) as usize);
                }
                Err(e) => {
                    assert_eq!(e.kind(), io::ErrorKind::InvalidData);
                    return all;
                }
            }
        }
    }

    #[tokio::test]
    async fn what_carries_nothing_is_cut_off() {
        assert_eq!(read(1.0).await, 4 << 20);
        assert_eq!(read(1.0 / 23.0).await, 4 << 20, "records of single bytes");
        let bound = FREE_BYTES - (16 << 10)..=FREE_BYTES;
        assert!(bound.contains(&read(0.0).await));
        assert!(read(1.0 / 1_000.0).await < FREE_BYTES * 5 / 4, "padding");
    }
}
