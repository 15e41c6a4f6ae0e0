//! Sockets: connections are accepted, bounded in number, size and time, and let finish when the server stops.
//!
//! One thread serves all of them. What is asked takes tens of microseconds, less than handing it over would; what takes longer
//! leaves this thread in [`App::slowly`]. A second thread takes in what the crawl adds to the log.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};

use super::{App, api, guard, router};

/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 256;
/// A longer request head is refused with 431.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long a request's head may take, and how long a connection may be idle.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// How long a connection may last; a reader that takes nothing is held no longer.
const CONNECTION_WAIT: Duration = Duration::from_secs(600);
/// How long answers may take that are under way when the server stops.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// How often the log is looked at.
const KEEP_UP_EVERY: Duration = Duration::from_millis(300);

/// A server that runs. It stops when this is dropped or told to.
pub struct Handle {
    /// Where it listens.
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    /// Dropping it ends the thread that keeps up.
    keeping_up: Option<mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Handle {
    /// Lets what is under way finish, and ends.
    pub fn stop(&mut self) {
        let _ = self.stop.send(true);
        self.keeping_up = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }

    /// Asks it to end, from another thread.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let stop = self.stop.clone();
        move || {
            let _ = stop.send(true);
        }
    }

    /// Waits until it was told to end.
    pub fn wait(mut self) {
        // The first of them is the one that serves.
        if !self.threads.is_empty() {
            let _ = self.threads.remove(0).join();
        }
        self.stop();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Listens and serves, on a thread named "serve".
pub fn start(app: App, listener: TcpListener) -> Result<Handle> {
    let address = listener.local_addr().context("listen")?;
    listener.set_nonblocking(true).context("listen")?;
    let app = Arc::new(app);
    let (stop, stopped) = watch::channel(false);
    let (keeping_up, ended) = mpsc::channel::<()>();
    let (asked, search) = (app.asked.clone(), app.search.clone());
    let keep_up = move || {
        let mut said = String::new();
        while ended.recv_timeout(KEEP_UP_EVERY) == Err(RecvTimeoutError::Timeout) {
            // Answers stay as they are; the same trouble is told once, not three times a second.
            let kept_up = asked.keep_up().and_then(|()| search.as_ref().map_or(Ok(()), |search| search.keep_up()));
            if let Err(e) = kept_up {
                let text = format!("{e:#}");
                if text != said {
                    tracing::warn!(error = text, "the log could not be followed");
                    said = text;
                }
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(super::SLOW_MAX + super::SEARCHES_MAX)
        .build()
        .context("start the runtime")?;
    let serve = move || {
        runtime.block_on(accept(app, listener, stopped));
        // A question that takes long does not hold up the end.
        runtime.shutdown_background();
    };
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name(name.to_string()).spawn(work).context("start a thread")
    };
    let threads = vec![spawn("serve", Box::new(serve))?, spawn("keep-up", Box::new(keep_up))?];
    Ok(Handle { address, stop, keeping_up: Some(keeping_up), threads })
}

async fn accept(app: Arc<App>, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(e) => return tracing::error!(error = %e, "the socket cannot be served"),
    };
    let service = Arc::new(Guarded { inner: TowerToHyperService::new(router(app.clone())), app });
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = next(&listener, &places) => accepted,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(e) => {
                // No files left, or a peer that is gone already: neither is better at once.
                tracing::warn!(error = %e, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let (service, stopped) = (service.clone(), stopped.clone());
        tokio::spawn(async move {
            let _ = tokio::time::timeout(CONNECTION_WAIT, connection(stream, service, stopped)).await;
            drop(place);
        });
    }
    let all = places.acquire_many(CONNECTIONS_MAX as u32);
    let _ = tokio::time::timeout(STOP_WAIT, all).await;
}

async fn next(
    listener: &tokio::net::TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

/// Serves one connection to its end, or to the end of the answer under way if the server stops.
async fn connection(stream: tokio::net::TcpStream, service: Arc<Guarded>, mut stopped: watch::Receiver<bool>) {
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    // How a connection ends is the client's affair.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// The routes behind the guard.
struct Guarded {
    inner: TowerToHyperService<axum::Router>,
    app: Arc<App>,
}

impl Service<Request<Incoming>> for Guarded {
    type Response = Response;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let judged = guard::judge(&self.app.hosts, request.method(), request.uri(), request.headers());
        let answer = match judged {
            Ok(()) => Ok(self.inner.call(request)),
            Err(refused) => Err(refused),
        };
        Box::pin(async move {
            let mut response = match answer {
                Ok(answer) => answer.await?,
                Err(refused) => api::error(refused.status, refused.why),
            };
            guard::dress(&mut response);
            Ok(response)
        })
    }
}
