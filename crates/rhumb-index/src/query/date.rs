//! Dates as they are typed behind `after:` and `before:`.
//!
//! A year, a month or a day stands for its first instant, so that `after:2024 before:2025` is all of 2024. Invariant: what is read lies
//! between 1970 and the end of the year 9999, and [`display`] writes it so that it is read as the same instant.

use rhumb_store::Timestamp;

const DAY_MS: i64 = 86_400_000;
/// The last millisecond of the year 9999.
const LAST_MS: i64 = 253_402_300_799_999;

/// Reads `2024`, `2024-05`, `2024-05-17`, RFC 3339, or `12h`, `7d`, `3w`, `2m`, `1y` before now. Separators may be `-`, `/` or `.`.
pub(super) fn parse(text: &str, now_ms: i64) -> Option<i64> {
    absolute(text).or_else(|| relative(text, now_ms)).map(|ms| ms.clamp(0, LAST_MS))
}

/// The shortest form that says it: a day, or an instant with or without milliseconds.
pub(super) fn display(ms: i64) -> String {
    let time = Timestamp(u64::try_from(ms).unwrap_or(0));
    match ms {
        _ if ms % DAY_MS == 0 => time.iso_seconds().chars().take(10).collect(),
        _ if ms % 1_000 == 0 => time.iso_seconds(),
        _ => time.to_string(),
    }
}

fn relative(text: &str, now_ms: i64) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    // Six digits of hours are more than a century.
    if number.is_empty() || number.len() > 6 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number = number.parse::<i64>().ok()?;
    let now_ms = now_ms.clamp(0, LAST_MS);
    match unit {
        "h" | "H" => Some(now_ms - number * 3_600_000),
        "d" | "D" => Some(now_ms - number * DAY_MS),
        "w" | "W" => Some(now_ms - number * 7 * DAY_MS),
        "m" | "M" => Some(months_before(now_ms, number)),
        "y" | "Y" => Some(months_before(now_ms, number * 12)),
        _ => None,
    }
}

/// The same time on the same day of an earlier month, or on its last day if it is too short.
fn months_before(now_ms: i64, months: i64) -> i64 {
    let (year, month, day, ..) = Timestamp(now_ms as u64).civil();
    let count = year as i64 * 12 + month as i64 - 1 - months;
    let (year, month) = (count.div_euclid(12), count.rem_euclid(12) + 1);
    day_ms(year, month, (day as i64).min(days(year, month))) + now_ms % DAY_MS
}

fn absolute(text: &str) -> Option<i64> {
    let mut rest = text.as_bytes();
    let year = number(&mut rest, 4, 0, 9999)?;
    let separator = |b: u8| matches!(b, b'-' | b'/' | b'.');
    if rest.is_empty() {
        return Some(day_ms(year, 1, 1));
    }
    one_of(&mut rest, separator)?;
    let month = number(&mut rest, 2, 1, 12).or_else(|| number(&mut rest, 1, 1, 9))?;
    if rest.is_empty() {
        return Some(day_ms(year, month, 1));
    }
    one_of(&mut rest, separator)?;
    let last = days(year, month);
    let day = number(&mut rest, 2, 1, last).or_else(|| number(&mut rest, 1, 1, 9))?;
    let mut ms = day_ms(year, month, day);
    if rest.is_empty() {
        return Some(ms);
    }
    one_of(&mut rest, |b| matches!(b, b'T' | b't' | b' ' | b'_'))?;
    ms += number(&mut rest, 2, 0, 23)? * 3_600_000;
    one_of(&mut rest, |b| b == b':')?;
    ms += number(&mut rest, 2, 0, 59)? * 60_000;
    if one_of(&mut rest, |b| b == b':').is_some() {
        ms += number(&mut rest, 2, 0, 60)? * 1_000;
        if one_of(&mut rest, |b| b == b'.').is_some() {
            let mut unit = 100;
            let len = rest.len();
            while let Some(digit) = number(&mut rest, 1, 0, 9) {
                ms += digit * unit;
                unit /= 10;
            }
            (rest.len() < len).then_some(())?;
        }
    }
    if one_of(&mut rest, |b| matches!(b, b'Z' | b'z')).is_none() && !rest.is_empty() {
        let sign = one_of(&mut rest, |b| matches!(b, b'+' | b'-'))?;
        let hours = number(&mut rest, 2, 0, 23)?;
        one_of(&mut rest, |b| b == b':');
        let offset_ms = (hours * 60 + number(&mut rest, 2, 0, 59)?) * 60_000;
        ms += if sign == b'-' { offset_ms } else { -offset_ms };
    }
    rest.is_empty().then_some(ms)
}

/// Takes a number of so many digits off the front, or nothing.
fn number(rest: &mut &[u8], digits: usize, min: i64, max: i64) -> Option<i64> {
    let (number, behind) = rest.split_at_checked(digits)?;
    let value = number.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))?;
    (min..=max).contains(&value).then(|| *rest = behind)?;
    Some(value)
}

fn one_of(rest: &mut &[u8], is: impl Fn(u8) -> bool) -> Option<u8> {
    let (&first, behind) = rest.split_first()?;
    is(first).then(|| *rest = behind)?;
    Some(first)
}

fn days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The first instant of a day.
fn day_ms(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that the leap day comes last in its year.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468) * DAY_MS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_are_read_as_they_are_typed() {
        let now = absolute("2026-03-31T12:30:00Z").expect("a date");
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse(text, now).map(display).as_deref(), expected, "{text}");
        };
        check("2024", Some("2024-01-01"));
        check("2024-05", Some("2024-05-01"));
        check("2024-05-17", Some("2024-05-17"));
        check("2024/5/7", Some("2024-05-07"));
        check("2024.12.31", Some("2024-12-31"));
        check("2024-05-17T10:20:30Z", Some("2024-05-17T10:20:30Z"));
        check("2024-05-17t10:20:30.5+02:00", Some("2024-05-17T08:20:30.500Z"));
        check("2024-05-17 10:20", Some("2024-05-17T10:20:00Z"));
        check("2024-05-17T22:00-0530", Some("2024-05-18T03:30:00Z"));
        check("2024-02-29", Some("2024-02-29"));
        check("1066", Some("1970-01-01"));
        check("9999-12-31T23:59:60-23:59", Some("9999-12-31T23:59:59.999Z"));
        check("12h", Some("2026-03-31T00:30:00Z"));
        check("7d", Some("2026-03-24T12:30:00Z"));
        check("3W", Some("2026-03-10T12:30:00Z"));
        check("1m", Some("2026-02-28T12:30:00Z"));
        check("25m", Some("2024-02-29T12:30:00Z"));
        check("1y", Some("2025-03-31T12:30:00Z"));
        check("0d", Some("2026-03-31T12:30:00Z"));
        check("999999y", Some("1970-01-01"));
        for bad in ["", "d", "x", "-7d", "7", "7x", "1234567d", "202", "20245", "2024-", "2024-13", "2023-02-29"] {
            check(bad, None);
        }
        for bad in ["2024-05-17T", "2024-05-17T10", "2024-05-17T10:20:30.", "2024-05-17T10:20Zx", "2024-05-17T10:20+1"]
        {
            check(bad, None);
        }
        for bad in ["7é", "é", "२०२४", "2024−05", "2024-05-17T10:20:30.1é"] {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn what_is_displayed_is_read_again(ms in 0..=LAST_MS, unit in prop::sample::select(vec![1, 1_000, DAY_MS])) {
            let ms = ms / unit * unit;
            prop_assert_eq!(parse(&display(ms), 0), Some(ms), "{}", display(ms));
        }

        #[test]
        fn dates_lie_between_1970_and_9999(text in "[0-9]{0,7}[-/dwmyh0-9:TZ.+ ]{0,16}", now: i64) {
            prop_assert!(parse(&text, now).is_none_or(|ms| (0..=LAST_MS).contains(&ms)));
        }
    }
}
