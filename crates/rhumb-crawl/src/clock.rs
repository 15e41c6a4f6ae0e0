//! The one clock of a crawl: wall time at the start, monotonic from then on, so that a clock that is set back
//! or forward in mid-crawl neither shortens a delay nor stalls the crawl.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rhumb_core::Timestamp;

/// Reads time for a running crawl.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// In microseconds: a process that began to count at a whole millisecond would be up to one ahead of the process
    /// before it, and a delay that spans both so much too short.
    wall_us: u64,
    instant: Instant,
}

impl Clock {
    /// A clock that never shows a time before `not_before` (the last one in the log).
    pub fn start(not_before: Timestamp) -> Clock {
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64);
        Clock { wall_us: now_us.max(not_before.0.saturating_mul(1_000)), instant: Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// The time at an instant.
    pub fn at(&self, instant: Instant) -> Timestamp {
        let elapsed_us = instant.saturating_duration_since(self.instant).as_micros() as u64;
        Timestamp(self.wall_us.saturating_add(elapsed_us) / 1_000)
    }

    /// The instant of a time, at most a day ahead.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = Duration::from_micros(at.0.saturating_mul(1_000).saturating_sub(self.wall_us));
        self.instant + ahead.min(self.instant.elapsed() + Duration::from_secs(86_400))
    }

    /// How long this process has been crawling.
    pub fn ran(&self) -> Duration {
        self.instant.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_clock_is_not_ahead_of_an_earlier_one() {
        for _ in 0..50 {
            let first = Clock::start(Timestamp(0));
            std::thread::sleep(Duration::from_micros(370));
            let second = Clock::start(Timestamp(0));
            let now = Instant::now();
            let (a, b) = (first.at(now), second.at(now));
            // The system's clock may be slewed in between, by far less than a millisecond.
            assert!(a.0.abs_diff(b.0) <= 1, "{a:?} and {b:?}");
            assert!(first.at(first.instant(a)) >= Timestamp(a.0), "waking at a time is not before it");
        }
        let ahead = Timestamp::now().plus_ms(5_000);
        assert!(Clock::start(ahead).now() >= ahead);
    }
}
