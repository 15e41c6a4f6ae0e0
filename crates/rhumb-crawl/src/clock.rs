//! The one clock of a crawl: wall time at the start, monotonic from then on, so that a clock that is set back
//! or forward in mid-crawl neither shortens a delay nor stalls the crawl.

use std::time::{Duration, Instant};

use rhumb_core::Timestamp;

/// Reads time for a running crawl.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: Timestamp,
    instant: Instant,
}

impl Clock {
    /// A clock that never shows a time before `not_before` (the last one in the log).
    pub fn start(not_before: Timestamp) -> Clock {
        Clock { wall: Timestamp::now().max(not_before), instant: Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// The time at an instant.
    pub fn at(&self, instant: Instant) -> Timestamp {
        self.wall.plus_ms(instant.saturating_duration_since(self.instant).as_millis() as u64)
    }

    /// The instant of a time, at most a day ahead.
    pub fn instant(&self, at: Timestamp) -> Instant {
        self.instant
            + Duration::from_millis(at.ms_since(self.wall)).min(self.instant.elapsed() + Duration::from_secs(86_400))
    }

    /// How long this process has been crawling.
    pub fn ran(&self) -> Duration {
        self.instant.elapsed()
    }
}
