//! Dates as sitemaps, feeds and headers write them: the W3C's form of ISO 8601 (RFC 3339 is one of its shapes), and RFC 822 with
//! the liberties that feeds take: no weekday, years of two digits, whole month names, zones by name or not at all.
//!
//! Invariant: what is no date of the calendar is none here; nothing else is looked at than the text.

/// Milliseconds since 1970-01-01T00:00:00Z, negative before. A time without a zone is taken as UTC, a day as its first instant.
pub fn unix_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    iso(text.as_bytes()).or_else(|| rfc822(text))
}

/// Longer texts are no dates.
const TEXT_BYTES_MAX: usize = 64;

/// `2026`, `2026-11`, `2026-11-16`, `2026-11-16T09:30:15.250+01:00`; a space for the T, seconds and zone may be missing.
fn iso(bytes: &[u8]) -> Option<i64> {
    let (year, rest) = digits(bytes, 4, 0, 9999)?;
    let Some(rest) = part(rest, b'-')? else { return at(year, 1, 1) };
    let (month, rest) = digits(rest, 2, 1, 12)?;
    let Some(rest) = part(rest, b'-')? else { return at(year, month, 1) };
    let (day, rest) = digits(rest, 2, 1, days(year, month))?;
    let day_ms = at(year, month, day)?;
    let Some((b'T' | b't' | b' ', rest)) = rest.split_first() else { return rest.is_empty().then_some(day_ms) };
    let (hour, rest) = digits(rest, 2, 0, 23)?;
    let (minute, mut rest) = digits(rest.strip_prefix(b":")?, 2, 0, 59)?;
    let mut ms = (hour * 60 + minute) * 60_000;
    if let Some(seconds) = rest.strip_prefix(b":") {
        let (second, after) = digits(seconds, 2, 0, 60)?;
        ms += second * 1000;
        rest = after;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let len = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
            (len > 0).then_some(())?;
            let thousandths = (0..3).map(|i| fraction[..len].get(i).map_or(0, |b| i64::from(b - b'0')));
            ms += thousandths.fold(0, |n, digit| n * 10 + digit);
            rest = &fraction[len..];
        }
    }
    Some(day_ms + ms - zone_ms(rest.trim_ascii())?)
}

/// `[Mon, ]06 Sep [20]10 00:01[:02] [+0200|GMT|EST]`.
fn rfc822(text: &str) -> Option<i64> {
    let text = match text.split_once(',') {
        Some((weekday, rest)) if weekday.bytes().all(|b| b.is_ascii_alphabetic()) => rest,
        _ => text,
    };
    let mut words = text.split(|c: char| c.is_ascii_whitespace() || c == '-').filter(|w| !w.is_empty());
    // A zone may begin with a minus, so it is taken from the text itself.
    let mut first = words.next()?;
    if first.len() >= 3 && first.bytes().all(|b| b.is_ascii_alphabetic()) && month_of(first).is_none() {
        first = words.next()?;
    }
    let second = words.next()?;
    let (day, month) = match (month_of(second), month_of(first)) {
        (Some(month), _) => (first, month),
        (None, Some(month)) => (second.trim_end_matches(','), month),
        (None, None) => return None,
    };
    let year = number(words.next()?)?;
    let year = match year {
        0..50 => 2000 + year,
        50..100 => 1900 + year,
        1000..=9999 => year,
        _ => return None,
    };
    let day = number(day).filter(|d| (1..=days(year, month)).contains(d))?;
    let day_ms = at(year, month, day)?;
    let Some(time) = words.next() else { return Some(day_ms) };
    let zone = text[text.find(time)? + time.len()..].trim();
    let mut parts = time.split(':');
    let hour = number(parts.next()?).filter(|h| *h < 24)?;
    let minute = number(parts.next()?).filter(|m| *m < 60)?;
    let second = parts.next().map_or(Some(0), |s| number(s.split('.').next()?)).filter(|s| *s <= 60)?;
    Some(day_ms + ((hour * 60 + minute) * 60 + second) * 1000 - zone_ms(zone.as_bytes())?)
}

fn month_of(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    let found =
        MONTHS.iter().position(|m| word.len() >= 3 && m.starts_with(&word) || word == "sept" && m.starts_with("sep"));
    found.map(|i| i as i64 + 1)
}

/// How far a zone is ahead of UTC.
fn zone_ms(zone: &[u8]) -> Option<i64> {
    const NAMED: [(&str, i64); 15] = [
        ("Z", 0),
        ("UT", 0),
        ("GMT", 0),
        ("UTC", 0),
        ("EST", -5),
        ("EDT", -4),
        ("CST", -6),
        ("CDT", -5),
        ("MST", -7),
        ("MDT", -6),
        ("PST", -8),
        ("PDT", -7),
        ("CET", 1),
        ("CEST", 2),
        ("BST", 1),
    ];
    let hours = match zone {
        [] => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let (hours, rest) = digits(zone, 2, 0, 23)?;
            let rest = rest.strip_prefix(b":").unwrap_or(rest);
            let minutes = if rest.is_empty() { 0 } else { digits(rest, 2, 0, 59).filter(|(_, r)| r.is_empty())?.0 };
            let ms = (hours * 60 + minutes) * 60_000;
            return Some(if *sign == b'-' { -ms } else { ms });
        }
        // A comment may follow the name, or the difference may follow "GMT".
        named => {
            let name = named.split(|b| !b.is_ascii_alphabetic()).next().unwrap_or_default();
            NAMED.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))?.1
        }
    };
    Some(hours * 3_600_000)
}

fn at(year: i64, month: i64, day: i64) -> Option<i64> {
    // Years are counted from March, so that the leap day comes last in its year.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let year_of_era = y.rem_euclid(400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some((era * 146_097 + day_of_era - 719_468) * 86_400_000)
}

/// What follows a separator; `Some(None)` at the end.
fn part(rest: &[u8], separator: u8) -> Option<Option<&[u8]>> {
    match rest.split_first() {
        None => Some(None),
        Some((&b, rest)) => (b == separator).then_some(Some(rest)),
    }
}

fn digits(bytes: &[u8], count: usize, min: i64, max: i64) -> Option<(i64, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(count)?;
    let value = digits.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))?;
    (min..=max).contains(&value).then_some((value, rest))
}

fn number(word: &str) -> Option<i64> {
    (word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.parse().ok())?
}

fn days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rhumb_store::Timestamp;

    use super::*;

    #[test]
    fn dates_of_all_forms() {
        let check = |text: &str, expected: &str| {
            let found = unix_ms(text).map(|ms| Timestamp(ms as u64).iso_seconds());
            assert_eq!(found.as_deref(), Some(expected).filter(|e| !e.is_empty()), "{text}");
        };
        check("2026", "2026-01-01T00:00:00Z");
        check("2026-11", "2026-11-01T00:00:00Z");
        check("2024-02-29", "2024-02-29T00:00:00Z");
        check("2026-11-16T09:30Z", "2026-11-16T09:30:00Z");
        check("2026-11-16T09:30:15+01:00", "2026-11-16T08:30:15Z");
        check("2026-11-16T09:30:15.999-0130", "2026-11-16T11:00:15Z");
        check(" 2026-11-16 09:30:15 UTC ", "2026-11-16T09:30:15Z");
        check("Mon, 06 Sep 2010 00:01:00 +0000", "2010-09-06T00:01:00Z");
        check("Mon, 06 Sep 2010 00:01:00 -0500", "2010-09-06T05:01:00Z");
        check("6 Sep 10 00:01 EST", "2010-09-06T05:01:00Z");
        check("Sat,07 September 2002 00:00:01 GMT", "2002-09-07T00:00:01Z");
        check("Thu, 31-Dec-1998 23:59:59 GMT", "1998-12-31T23:59:59Z");
        check("Thursday, 31 Dec 98 23:59 PDT (x)", "1999-01-01T06:59:00Z");
        check("Dec 31, 1998 23:59", "1998-12-31T23:59:00Z");
        check("Tue, 29 Feb 2000", "2000-02-29T00:00:00Z");
        for none in [
            "",
            "x",
            "yesterday",
            "31 Feb 2000 00:00 GMT",
            "2026-13",
            "2026-02-30",
            "2026-11-16T25:00Z",
            "16.11.2026",
            "6 Sep 2010 00:01 Nowhere",
            "6 Sep 2010 24:00 GMT",
            "2026-11-16T09:30:15.Z",
            "1 Jan 123 00:00",
        ] {
            check(none, "");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0u64..4_000_000_000_000) {
            let time = Timestamp(ms / 1000 * 1000);
            prop_assert_eq!(unix_ms(&time.iso_seconds()), Some(time.0 as i64));
            let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_millis(time.0));
            prop_assert_eq!(unix_ms(&date), Some(time.0 as i64));
        }

        #[test]
        fn any_text_is_read(text in "[0-9A-Za-zä:., +-]{0,40}") {
            let _ = unix_ms(&text);
        }
    }
}
