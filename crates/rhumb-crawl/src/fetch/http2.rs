//! HTTP/2 on an open stream, within the bounds that a hostile server needs.
//!
//! hyper moves the bytes of an HTTP/2 connection in tasks that it spawns, and these go on when nobody waits for them any
//! more: one that a server floods, or never reads from, would outlive its visit for as long as the server likes. So the tasks
//! are kept here and polled by the visit, like those of HTTP/1.1: what is abandoned is gone, with its socket, and what is
//! idle reads nothing.
//!
//! What bounds a server's answer: the deadlines of the fetch; `frames.rs` for all that passes; h2 for what it would have
//! to remember (CONTINUATION frames, size of the decoded header list, empty and small data frames that were not read yet,
//! streams reset in error); the windows for data that was not read yet.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper::rt::Executor;

use super::FetchLimits;
use super::connect::Moving;
use super::tee::Tee;

/// Data of one answer that may wait to be read.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// The same for the connection. h2 lets half of this go into the overhead of small frames that were not read yet, which
/// must be enough for the smallest frames that fit into one read of [`Tee`].
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Streams that we had to reset, because of what the server sent on them, before the connection is given up.
const ERROR_RESETS_MAX: usize = 8;

/// Begins to speak HTTP/2. Nothing is awaited but the sending of our own preface.
pub(crate) async fn shake<S>(
    limits: &FetchLimits,
    stream: Tee<S>,
) -> hyper::Result<(http2::SendRequest<Empty<Bytes>>, Moving)>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let tasks = Tasks::default();
    let (sender, connection) = http2::Builder::new(tasks.clone())
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_reset_streams(ERROR_RESETS_MAX)
        .max_local_error_reset_streams(ERROR_RESETS_MAX)
        .initial_max_send_streams(1)
        .handshake(stream)
        .await?;
    Ok((sender, Box::pin(Driver { requests: Ok(Box::pin(connection)), tasks, running: Vec::new() })))
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tasks that hyper wants to be run, until the driver takes them.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<Task>>>);

impl Tasks {
    fn take(&self) -> Vec<Task> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics while handing a task over"))
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.lock().expect("nobody panics while handing a task over").push(Box::pin(task));
    }
}

/// Everything that one connection has to run, as one future.
struct Driver {
    /// Hands requests over. It ends when the server has said goodbye; the answer to the last request may still be coming.
    requests: Result<Moving, hyper::Result<()>>,
    tasks: Tasks,
    running: Vec<Task>,
}

impl Future for Driver {
    type Output = hyper::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let this = &mut *self;
        loop {
            if let Ok(requests) = &mut this.requests
                && let Poll::Ready(ended) = requests.as_mut().poll(cx)
            {
                this.requests = Err(ended);
            }
            let new = this.tasks.take();
            let none_new = new.is_empty();
            this.running.extend(new);
            this.running.retain_mut(|task| task.as_mut().poll(cx).is_pending());
            // What the tasks did may have made new ones; those that wait have told our waker what for.
            if none_new {
                break;
            }
        }
        match &mut this.requests {
            Err(ended) if this.running.is_empty() => Poll::Ready(std::mem::replace(ended, Ok(()))),
            _ => Poll::Pending,
        }
    }
}
