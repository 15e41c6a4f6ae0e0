//! What an entry says of itself: frequencies and priorities. Dates are read by [`crate::dates`].

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

#[cfg(test)]
mod tests {
    use super::*;

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
