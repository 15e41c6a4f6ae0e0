//! Dates as the web writes them: the W3C's form of ISO 8601, and the forms of mail and HTTP with what people made of them.
//!
//! Invariant: no input fails otherwise than by `None`. A date before 1970 is the first instant of 1970: nothing on the web is older.

use rhumb_store::Timestamp;

/// Reads a date in any form that is known here.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    w3c(text).or_else(|| written_out(text))
}

/// A date in the W3C's form of ISO 8601 (NOTE-datetime): a year, a month, a day, or a day with a time. A time without
/// seconds, without a zone or with a zone without colon passes, for they are common and their meaning is clear.
pub fn w3c(text: &str) -> Option<Timestamp> {
    let (year, rest) = digits(text.as_bytes(), 4, 0, 9999)?;
    let Some(rest) = part(rest, b'-')? else { return Some(instant(year, 1, 1, 0, 0)) };
    let (month, rest) = digits(rest, 2, 1, 12)?;
    let Some(rest) = part(rest, b'-')? else { return Some(instant(year, month, 1, 0, 0)) };
    let (day, rest) = digits(rest, 2, 1, days(year, month))?;
    let Some((b'T' | b't' | b' ', rest)) = rest.split_first() else {
        return rest.is_empty().then(|| instant(year, month, day, 0, 0));
    };
    let (hour, rest) = digits(rest, 2, 0, 23)?;
    let (minute, mut rest) = digits(rest.strip_prefix(b":")?, 2, 0, 59)?;
    let mut second = 0;
    if let Some(seconds) = rest.strip_prefix(b":") {
        (second, rest) = digits(seconds, 2, 0, 60)?;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let len = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
            rest = &fraction[len..];
            (len > 0).then_some(())?;
        }
    }
    let offset_s = match rest {
        [] | [b'Z' | b'z'] => 0,
        [b'+' | b'-', ..] => numeric_zone(rest)?,
        _ => return None,
    };
    Some(instant(year, month, day, hour * 3_600 + minute * 60 + second, offset_s))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `25-Jun-10 15:00 PST`, `Sun Nov  6 08:49:37 1994` and their like: a day, a month by name and a
/// year, in any order that people use, perhaps a time and a zone.
fn written_out(text: &str) -> Option<Timestamp> {
    const WORDS_MAX: usize = 12;
    let (mut day, mut month, mut year, mut time_s, mut offset_s) = (None, None, None, 0, 0);
    let is_zone = |word: &str| word.starts_with(['+', '-']) && word.len() >= 5;
    let words = text.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|w| !w.is_empty()).take(WORDS_MAX);
    for word in words {
        if word.contains(':') && !is_zone(word) {
            time_s = time_of_day(word)?;
        } else if is_zone(word) {
            offset_s = numeric_zone(word.as_bytes())?;
        } else {
            for piece in word.split('-').filter(|p| !p.is_empty()) {
                match piece.parse::<u32>() {
                    Ok(n) if day.is_none() && (1..=31).contains(&n) && piece.len() <= 2 => day = Some(n),
                    Ok(n) if year.is_none() && piece.len() == 4 => year = Some(n),
                    // RFC 2822: two digits below 50 are of this century.
                    Ok(n) if year.is_none() && piece.len() == 2 => {
                        year = Some(if n < 50 { 2000 + n } else { 1900 + n })
                    }
                    Ok(_) => return None,
                    Err(_) => match (month_of(piece), named_zone(piece)) {
                        (Some(m), _) if month.is_none() => month = Some(m),
                        (_, Some(hours)) => offset_s = hours * 3_600,
                        _ => {}
                    },
                }
            }
        }
    }
    let (year, month, day) = (year?, month?, day?);
    (day <= days(year, month)).then(|| instant(year, month, day, time_s, offset_s))
}

fn time_of_day(word: &str) -> Option<u32> {
    let mut parts = word.split(':').map(|p| p.split('.').next().unwrap_or(p).parse::<u32>().ok());
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3_600 + minute * 60 + second)
}

fn month_of(word: &str) -> Option<u32> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = word.get(..3)?;
    MONTHS.iter().position(|m| start.eq_ignore_ascii_case(m)).map(|i| i as u32 + 1)
}

/// The zones that RFC 822 names, in hours east of Greenwich.
fn named_zone(word: &str) -> Option<i64> {
    const ZONES: [(&str, i64); 15] = [
        ("GMT", 0),
        ("UTC", 0),
        ("UT", 0),
        ("Z", 0),
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
    ZONES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, hours)| *hours)
}

/// `+0100`, `-05:30`: seconds east of Greenwich.
fn numeric_zone(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = zone.split_first()?;
    let (hours, rest) = digits(rest, 2, 0, 23)?;
    let (minutes, rest) = digits(rest.strip_prefix(b":").unwrap_or(rest), 2, 0, 59)?;
    let seconds = i64::from(hours * 3_600 + minutes * 60);
    rest.is_empty().then_some(if *sign == b'-' { -seconds } else { seconds })
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

/// The instant of a valid date, `time_s` seconds into its day, in a zone `offset_s` east of Greenwich.
fn instant(year: u32, month: u32, day: u32, time_s: u32, offset_s: i64) -> Timestamp {
    // Years are counted from March, so that the leap day comes last in its year.
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let seconds = (era * 146_097 + day_of_era - 719_468) * 86_400 + i64::from(time_s) - offset_s;
    Timestamp(seconds.max(0) as u64 * 1_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0u64..4_000_000_000_000) {
            let time = Timestamp(ms / 1000 * 1000);
            prop_assert_eq!(parse(&time.iso_seconds()), Some(time));
            let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_millis(time.0));
            prop_assert_eq!(parse(&date), Some(time));
        }

        #[test]
        fn any_text_is_read(text in "[0-9A-Za-zä:., +-]{0,40}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn dates_of_the_w3c() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(w3c(text).map(|t| t.iso_seconds()).as_deref(), expected, "{text}");
        };
        check("2026", Some("2026-01-01T00:00:00Z"));
        check("2026-11", Some("2026-11-01T00:00:00Z"));
        check("2024-02-29", Some("2024-02-29T00:00:00Z"));
        check("2026-11-16T09:30Z", Some("2026-11-16T09:30:00Z"));
        check("2026-11-16T09:30:15+01:00", Some("2026-11-16T08:30:15Z"));
        check("2026-11-16T09:30:15.250Z", Some("2026-11-16T09:30:15Z"));
        check("2026-11-16T23:30:15-0100", Some("2026-11-17T00:30:15Z"));
        check("2026-11-16 09:30:15", Some("2026-11-16T09:30:15Z"));
        check("1961-04-12", Some("1970-01-01T00:00:00Z"));
        for bad in ["", "26", "2026-13", "2026-02-30", "2023-02-29", "2026-11-16T", "2026-11-16T25:00Z", "16.11.2026"] {
            check(bad, None);
        }
        for bad in ["2026-11-16T09:30:15.Z", "2026-11-16T09:30+1", "2026/11"] {
            check(bad, None);
        }
    }

    #[test]
    fn dates_of_mail_and_http() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse(text).map(|t| t.iso_seconds()).as_deref(), expected, "{text}");
        };
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some("1994-11-06T08:49:37Z"));
        check("Sunday, 06-Nov-94 08:49:37 GMT", Some("1994-11-06T08:49:37Z"));
        check("Sun Nov  6 08:49:37 1994", Some("1994-11-06T08:49:37Z"));
        check("25 Jun 2010 15:00:00 PST", Some("2010-06-25T23:00:00Z"));
        check("Mon, 16 Nov 2026 09:30 +0530", Some("2026-11-16T04:00:00Z"));
        check("16 November 2026", Some("2026-11-16T00:00:00Z"));
        check("6 Jun 10 1:2:3 EDT", Some("2010-06-06T05:02:03Z"));
        check(" 2026-11-16 ", Some("2026-11-16T00:00:00Z"));
        check("2010-Jun-25", Some("2010-06-25T00:00:00Z"));
        check("Sat,07 September 2002 00:00:01 GMT", Some("2002-09-07T00:00:01Z"));
        check("Thursday, 31 Dec 98 23:59 PDT (x)", Some("1999-01-01T06:59:00Z"));
        check("Dec 31, 1998 23:59", Some("1998-12-31T23:59:00Z"));
        for bad in ["", "soon", "31 Feb 2026", "25 Jun", "Jun 2010", "25 Jun 2010 25:00", "99999 Jun 2010", "1 Jan -5"]
        {
            check(bad, None);
        }
    }
}
