//! The one clock of a crawl: wall time at the start, monotonic from then on, so that a clock that is set back
//! or forward in mid-crawl neither shortens a delay nor stalls the crawl.
//!
//! Nor does one that is set between two processes: the first leaves an [`Anchor`] that ties the crawl's time to the
//! machine's uptime, and the next, if the machine was not started again meanwhile, believes that rather than a wall clock
//! which ran ahead.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rhumb_core::Timestamp;
use rhumb_store::codec::crc32;

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
    pub fn start(not_before: Timestamp, anchor: Option<&Anchor>) -> Clock {
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64);
        let by_uptime_us = anchor.and_then(Anchor::now_us);
        // Never ahead of the process before, by however little: its pauses would be so much too short.
        let now_us = by_uptime_us.map_or(now_us, |us| us.min(now_us));
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

/// A time of the crawl, and the machine's uptime then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Changes with every start of the machine.
    boot: String,
    uptime_us: u64,
    time_us: u64,
}

impl Anchor {
    /// The file that keeps it.
    pub const FILE: &'static str = "state/clock";

    /// Ties a clock to the uptime; nothing where the system does not tell it.
    pub fn of(clock: &Clock) -> Option<Anchor> {
        // In this order: what passes in between makes the next clock late, and not early.
        let time_us = clock.wall_us.saturating_add(clock.instant.elapsed().as_micros() as u64);
        let (boot, uptime_us) = machine()?;
        Some(Anchor { boot, uptime_us, time_us })
    }

    /// The crawl's time now; nothing if the machine was started again since.
    fn now_us(&self) -> Option<u64> {
        let (boot, uptime_us) = machine()?;
        let passed_us = uptime_us.checked_sub(self.uptime_us).filter(|_| boot == self.boot)?;
        Some(self.time_us.saturating_add(passed_us))
    }

    /// One line, with a checksum in front.
    pub fn to_text(&self) -> String {
        let text = format!("{} {} {}", self.boot, self.uptime_us, self.time_us);
        format!("{:08x} {text}\n", crc32(text.as_bytes()))
    }

    /// Reads what [`Anchor::to_text`] wrote; damaged, it is as good as none.
    pub fn from_text(bytes: &[u8]) -> Option<Anchor> {
        let (sum, text) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once(' ')?;
        let mut words = text.split(' ').filter(|_| sum == format!("{:08x}", crc32(text.as_bytes())));
        let boot = words.next()?.to_string();
        Some(Anchor { boot, uptime_us: words.next()?.parse().ok()?, time_us: words.next()?.parse().ok()? })
    }
}

/// What tells this start of the machine from others, and how long ago it was.
#[cfg(target_os = "linux")]
fn machine() -> Option<(String, u64)> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // To the microsecond; /proc/uptime goes in hundredths of a second.
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Some((boot.trim().to_string(), uptime.tv_sec as u64 * 1_000_000 + uptime.tv_nsec as u64 / 1_000))
}

/// Elsewhere the wall clock is believed.
#[cfg(not(target_os = "linux"))]
fn machine() -> Option<(String, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_was_set_forward_is_not_believed() {
        let Some((boot, uptime_us)) = machine() else { return };
        let wall = Timestamp::now();
        let check = |boot: &str, behind_ms: u64, expected_behind_ms: u64| {
            let anchor = Anchor { boot: boot.to_string(), uptime_us, time_us: (wall.0 - behind_ms) * 1_000 };
            assert_eq!(Anchor::from_text(anchor.to_text().as_bytes()), Some(anchor.clone()));
            let behind_ms = Timestamp::now().0.saturating_sub(Clock::start(Timestamp(0), Some(&anchor)).now().0);
            assert!(behind_ms.abs_diff(expected_behind_ms) < 1_000, "{behind_ms} instead of {expected_behind_ms}");
        };
        check(&boot, 3_600_000, 3_600_000);
        check(&boot, 3_000, 3_000);
        check("another-start-of-the-machine", 3_600_000, 0);
        let ahead = Anchor { boot, uptime_us, time_us: (wall.0 + 3_600_000) * 1_000 };
        assert!(
            Clock::start(Timestamp(0), Some(&ahead)).now() < wall.plus_ms(60_000),
            "the log decides, not the anchor"
        );
        let mut text = ahead.to_text().into_bytes();
        for place in 0..text.len() {
            text[place] ^= 2;
            assert_eq!(Anchor::from_text(&text), None, "flipped at {place}");
            text[place] ^= 2;
        }
    }

    #[test]
    fn a_later_clock_is_not_ahead_of_an_earlier_one() {
        for _ in 0..50 {
            let first = Clock::start(Timestamp(0), None);
            std::thread::sleep(Duration::from_micros(370));
            let second = Clock::start(Timestamp(0), None);
            let now = Instant::now();
            let (a, b) = (first.at(now), second.at(now));
            // The system's clock may be slewed in between, by far less than a millisecond.
            assert!(a.0.abs_diff(b.0) <= 1, "{a:?} and {b:?}");
            assert!(first.at(first.instant(a)) >= Timestamp(a.0), "waking at a time is not before it");
        }
        let ahead = Timestamp::now().plus_ms(5_000);
        assert!(Clock::start(ahead, None).now() >= ahead);
    }
}
