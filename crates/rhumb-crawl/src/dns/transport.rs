//! The sockets: datagrams to and from the servers, TCP where a datagram is too small, and the dice.
//!
//! Every socket is connected to one server, so that the kernel drops datagrams from anywhere else before they cost us
//! anything. A forger must guess the port (one of several, of the system's random choice) and the id (16 random bits)
//! and repeat the question. Read next: `wire.rs`, what is in the datagrams.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;

/// Larger than the EDNS0 size we offer; a server that sends more has its answer cut, and so found malformed.
const DATAGRAM_BYTES_MAX: usize = 4096;
/// Errors taken from one socket before the others have their turn.
const ERRORS_MAX: usize = 16;

/// All UDP sockets, those of one server next to each other.
pub(super) struct Transport {
    servers: Vec<SocketAddr>,
    sockets: Vec<UdpSocket>,
    per_server: usize,
    buffer: Box<[u8; DATAGRAM_BYTES_MAX]>,
}

impl Transport {
    /// Binds `per_server` sockets for each server and connects them. Must be called within a tokio runtime.
    pub(super) fn bind(servers: &[SocketAddr], per_server: usize) -> io::Result<Transport> {
        let mut sockets = Vec::with_capacity(servers.len() * per_server);
        for server in servers {
            for _ in 0..per_server {
                let any: SocketAddr = match server {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let socket = std::net::UdpSocket::bind(any)?;
                socket.set_nonblocking(true)?;
                socket.connect(server)?;
                sockets.push(UdpSocket::from_std(socket)?);
            }
        }
        Ok(Transport { servers: servers.to_vec(), sockets, per_server, buffer: Box::new([0; DATAGRAM_BYTES_MAX]) })
    }

    pub(super) fn server_count(&self) -> usize {
        self.servers.len()
    }

    pub(super) fn socket_count(&self) -> usize {
        self.sockets.len()
    }

    pub(super) fn server_address(&self, server: usize) -> SocketAddr {
        self.servers[server]
    }

    /// The server that a socket is connected to.
    pub(super) fn server_of(&self, socket: u16) -> usize {
        usize::from(socket) / self.per_server
    }

    /// One of the server's sockets by a throw of the dice.
    pub(super) fn any_socket_of(&self, server: usize, dice: u64) -> u16 {
        (server * self.per_server + dice as usize % self.per_server) as u16
    }

    /// Sends one datagram. `Pending` when the socket's buffer is full; the task is then woken when it is not. An error
    /// is as good as a datagram lost on the way: the schedule takes care of both.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>, socket: u16, packet: &[u8]) -> Poll<()> {
        let socket = &self.sockets[usize::from(socket)];
        if ready!(socket.poll_send(cx, packet)).is_err() {
            // A connected socket reports here that an *earlier* datagram found no listener; this one has not left yet.
            if let Err(error) = ready!(socket.poll_send(cx, packet)) {
                tracing::debug!(%error, "dns datagram not sent");
            }
        }
        Poll::Ready(())
    }

    /// The next datagram that a socket has received.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>, socket: usize) -> Poll<&[u8]> {
        for _ in 0..ERRORS_MAX {
            let mut buffer = ReadBuf::new(&mut self.buffer[..]);
            if ready!(self.sockets[socket].poll_recv(cx, &mut buffer)).is_ok() {
                let len = buffer.filled().len();
                return Poll::Ready(&self.buffer[..len]);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Asks one question over TCP, in `wait` at most, the time at the gate included. The answer's length is two bytes, so
/// 64 KiB bound it.
pub(super) async fn ask_over_tcp(
    gate: &Semaphore,
    server: SocketAddr,
    query: &[u8],
    wait: Duration,
) -> io::Result<Vec<u8>> {
    let exchange = async {
        let _permit = gate.acquire().await.map_err(io::Error::other)?;
        let mut stream = TcpStream::connect(server).await?;
        let len = u16::try_from(query.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut message = len.to_be_bytes().to_vec();
        message.extend_from_slice(query);
        stream.write_all(&message).await?;
        let mut answer = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    };
    tokio::time::timeout(wait, exchange).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Unpredictable numbers from the standard library alone: SipHash under a random key, of a counter.
pub(super) struct Dice {
    key: RandomState,
    throws: u64,
}

impl Dice {
    pub(super) fn new() -> Dice {
        Dice { key: RandomState::new(), throws: 0 }
    }

    pub(super) fn throw(&mut self) -> u64 {
        self.throws += 1;
        self.key.hash_one(self.throws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn dice_do_not_repeat_themselves() {
        let (mut one, mut other) = (Dice::new(), Dice::new());
        let throws: HashSet<u64> = (0..1_000).flat_map(|_| [one.throw(), other.throw()]).collect();
        assert_eq!(throws.len(), 2_000);
    }
}
