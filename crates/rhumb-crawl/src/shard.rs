//! A shard: one thread that carries out visits.
//!
//! All visits of a host go to the same shard, so its connection needs no lock that
//! anybody else wants, and a visit's steps run where its bytes are warm.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rhumb_core::url::Host;
use rhumb_core::visit::Visit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::engine::Event;
use crate::fetch::Fetched;
use crate::pipeline::{self, Tools};

/// What the engine tells a shard. The engine never has more visits out than there are workers, so the channel is
/// bounded by that.
pub(crate) enum Command {
    Visit(Box<Visit>),
    /// What somebody else fetched, with its number in the order of its source.
    Read(u64, Box<Visit>, Box<Fetched>),
    Close(Host),
}

/// The engine's end of a shard.
pub(crate) struct Shard {
    pub commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
}

impl Shard {
    /// A shard that shares the engine's own thread; to be called inside its runtime.
    pub fn here(tools: Tools, events: UnboundedSender<Event>) -> Shard {
        let (commands, inbox) = unbounded_channel();
        tokio::spawn(serve(inbox, Arc::new(tools), events));
        Shard { commands, thread: None }
    }

    /// A shard with a thread of its own.
    pub fn spawn(number: usize, tools: Tools, events: UnboundedSender<Event>) -> io::Result<Shard> {
        let (commands, inbox) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let name = format!("shard-{number}");
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            runtime.block_on(serve(inbox, Arc::new(tools), events));
            // Blocking work of abandoned visits must not hold the process.
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?;
        Ok(Shard { commands, thread: Some(thread) })
    }

    /// Ends the shard: visits under way are abandoned, their connections closed.
    pub fn stop(self) {
        drop(self.commands);
        if let Some(thread) = self.thread
            && thread.join().is_err()
        {
            tracing::error!("a shard panicked");
        }
    }
}

async fn serve(mut inbox: UnboundedReceiver<Command>, tools: Arc<Tools>, events: UnboundedSender<Event>) {
    let mut visits = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            biased;
            command = inbox.recv() => match command {
                Some(Command::Visit(visit)) => {
                    let (tools, events) = (tools.clone(), events.clone());
                    visits.spawn(async move {
                        let finished = pipeline::visit(visit, &tools).await;
                        // The engine may be gone already; then nobody waits for this.
                        let _ = events.send(Event::Finished(finished));
                    });
                }
                Some(Command::Read(number, visit, fetched)) => {
                    let (tools, events) = (tools.clone(), events.clone());
                    visits.spawn(async move {
                        let finished = pipeline::finish(visit, *fetched, &tools).await;
                        let _ = events.send(Event::Read(number, Box::new(finished)));
                    });
                }
                Some(Command::Close(host)) => {
                    tools.protocols.close(&host);
                    let _ = events.send(Event::Closed(host));
                }
                None => return,
            },
            Some(ended) = visits.join_next() => {
                if ended.is_err_and(|e| e.is_panic()) {
                    let _ = events.send(Event::Panicked);
                }
            }
        }
    }
}
