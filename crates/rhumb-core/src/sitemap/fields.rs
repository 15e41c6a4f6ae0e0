//! What an entry says of itself: dates, frequencies, priorities.

/// The frequencies of the protocol.
const FREQUENCIES: [&str; 7] = ["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"];

/// A frequency in lower case, if it is one.
pub(super) fn changefreq(text: &str) -> Option<String> {
    FREQUENCIES.iter().find(|f| f.eq_ignore_ascii_case(text)).map(|f| (*f).to_owned())
}

/// A priority, if it is a number from 0 to 1.
pub(super) fn priority(text: &str) -> Option<f32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'+'));
    text.parse().ok().filter(|p| plain && (0.0..=1.0).contains(p))
}

/// Whether this is a date in the W3C's form of ISO 8601 (NOTE-datetime): a year, a month, a day, or a day with a time. A time without
/// seconds, without a zone or with a zone without colon passes, for they are common and their meaning is clear.
pub(super) fn is_date(text: &str) -> bool {
    date(text.as_bytes()).is_some()
}

fn date(bytes: &[u8]) -> Option<()> {
    let (year, rest) = digits(bytes, 4, 0, 9999)?;
    let Some(rest) = part(rest, b'-')? else { return Some(()) };
    let (month, rest) = digits(rest, 2, 1, 12)?;
    let Some(rest) = part(rest, b'-')? else { return Some(()) };
    let (_, rest) = digits(rest, 2, 1, days(year, month))?;
    let Some((b'T' | b't' | b' ', rest)) = rest.split_first() else { return rest.is_empty().then_some(()) };
    let (_, rest) = digits(rest, 2, 0, 23)?;
    let (_, mut rest) = digits(rest.strip_prefix(b":")?, 2, 0, 59)?;
    if let Some(seconds) = rest.strip_prefix(b":") {
        rest = digits(seconds, 2, 0, 60)?.1;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let len = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
            rest = &fraction[len..];
            (len > 0).then_some(())?;
        }
    }
    match rest {
        [] | [b'Z' | b'z'] => Some(()),
        [b'+' | b'-', zone @ ..] => {
            let (_, rest) = digits(zone, 2, 0, 23)?;
            let (_, rest) = digits(rest.strip_prefix(b":").unwrap_or(rest), 2, 0, 59)?;
            rest.is_empty().then_some(())
        }
        _ => None,
    }
}

/// What follows a separator; `Some(None)` at the end.
fn part(rest: &[u8], separator: u8) -> Option<Option<&[u8]>> {
    match rest.split_first() {
        None => Some(None),
        Some((&b, rest)) => (b == separator).then_some(Some(rest)),
    }
}

fn digits(bytes: &[u8], count: usize, min: u32, max: u32) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_at_checked(count)?;
    let value = number.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0')))?;
    (min..=max).contains(&value).then_some((value, rest))
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let check = |text: &str, expected: bool| assert_eq!(is_date(text), expected, "{text}");
        for good in [
            "2026",
            "2026-11",
            "2026-11-16",
            "2024-02-29",
            "2026-11-16T09:30Z",
            "2026-11-16T09:30:15+01:00",
            "2026-11-16T09:30:15.250Z",
            "2026-11-16T09:30:15",
            "2026-11-16 09:30:15+0100",
        ] {
            check(good, true);
        }
        for bad in [
            "",
            "26",
            "2026-13",
            "2026-02-30",
            "2023-02-29",
            "2026-11-16T",
            "2026-11-16T25:00Z",
            "16.11.2026",
            "2026-11-16T09:30:15.Z",
            "2026-11-16T09:30+1",
            "2026/11",
        ] {
            check(bad, false);
        }
    }

    #[test]
    fn priorities_and_frequencies() {
        let check = |text: &str, expected: Option<f32>| assert_eq!(priority(text), expected, "{text}");
        check("0.5", Some(0.5));
        check("1", Some(1.0));
        check("0", Some(0.0));
        check("1.1", None);
        check("-0", None);
        check("NaN", None);
        check("1e-1", None);
        check("", None);
        assert_eq!(changefreq("Daily").as_deref(), Some("daily"));
        assert_eq!(changefreq("often"), None);
    }
}
