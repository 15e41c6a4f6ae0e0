//! Points in time as plain integers, so that decisions can be replayed and checkpointed.

use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z. Decisions take it as an argument; only deeds read a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The system clock's time. Never called in `rhumb-core`.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |d| d.as_millis() as u64))
    }

    /// This time moved on by `ms` milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Timestamp(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; zero where it lies ahead.
    pub fn ms_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Year, month, day, hour, minute, second, millisecond in UTC.
    pub fn civil(self) -> (u64, u64, u64, u64, u64, u64, u64) {
        let (days, ms) = (self.0 / 86_400_000, self.0 % 86_400_000);
        // Days to civil date, counting years from March so that the leap day comes last in its year.
        let z = days + 719_468;
        let era = z / 146_097;
        let day_of_era = z % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        (year, month, day, ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000)
    }

    /// Fourteen digits, as CDX and WARC file names use them: `20260131235959`.
    pub fn digits14(self) -> String {
        let (y, mo, d, h, mi, s, _) = self.civil();
        format!("{y:04}{mo:02}{d:02}{h:02}{mi:02}{s:02}")
    }

    /// `2026-01-31T23:59:59Z`, the form of WARC-Date.
    pub fn iso_seconds(self) -> String {
        let (y, mo, d, h, mi, s, _) = self.civil();
        format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}Z")
    }
}

/// ISO 8601 with milliseconds.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, mo, d, h, mi, s, ms) = self.civil();
        write!(f, "{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{ms:03}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates() {
        let check = |ms: u64, expected: &str| assert_eq!(Timestamp(ms).to_string(), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_709_164_800_123, "2024-02-29T00:00:00.123Z");
        check(4_102_444_799_999, "2099-12-31T23:59:59.999Z");
        assert_eq!(Timestamp(1_709_164_800_123).digits14(), "20240229000000");
    }
}
