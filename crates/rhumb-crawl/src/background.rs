//! What goes on beside the engine's turns: long work on other threads, and the time lost to names that are not known yet.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use tokio::sync::mpsc::UnboundedSender;

use crate::engine::Event;

/// Runs something long on another thread; the event it comes to is always sent, for the engine waits for it.
pub(crate) fn in_background(events: &UnboundedSender<Event>, work: impl FnOnce() -> Event + Send + 'static) {
    let events = events.clone();
    tokio::task::spawn_blocking(move || {
        let event = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Event::Panicked);
        // The engine may be gone already; then nobody waits for this.
        let _ = events.send(event);
    });
}

/// How much fetching was lost to names that were not known yet: workers that nobody could use, as many as there were hosts
/// that waited for nothing but their address, over time.
#[derive(Default)]
pub(crate) struct DnsIdle {
    /// Names being looked up.
    pub lookups: usize,
    /// Workers idle because of them since the last turn.
    workers: usize,
    since: Option<Instant>,
    /// Idle workers, summed over time.
    pub seconds: f64,
}

impl DnsIdle {
    /// A turn is over, and leaves so many workers without a visit.
    pub fn note(&mut self, workers_free: usize) {
        let workers = workers_free.min(self.lookups);
        if workers == 0 && self.workers == 0 {
            return;
        }
        let now = Instant::now();
        let spent = self.since.map_or(0.0, |since| now.duration_since(since).as_secs_f64());
        self.seconds += spent * self.workers as f64;
        (self.workers, self.since) = (workers, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    /// The engine would wait for ever for a checkpoint or a look-up that nobody reports.
    #[tokio::test]
    async fn background_work_that_panics_is_heard_of() {
        let (events, mut inbox) = unbounded_channel();
        in_background(&events, || panic!("a fault"));
        let heard = tokio::time::timeout(Duration::from_secs(20), inbox.recv()).await;
        assert!(matches!(heard, Ok(Some(Event::Panicked))));
    }
}
