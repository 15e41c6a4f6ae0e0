//! Durations and sizes as people write them: `2s`, `500ms`, `1h30m`, `512MiB`, `16 MB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A number of bytes with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Span {
    pub const fn seconds(n: u64) -> Span {
        Span(Duration::from_secs(n))
    }

    pub fn ms(self) -> u64 {
        self.0.as_millis() as u64
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let wrong = || format!("{text:?} is not a duration; write it like 2s, 500ms, 10m or 1h30m");
        let mut rest = text.trim();
        if rest == "0" {
            return Ok(Span(Duration::ZERO));
        }
        let mut seconds = 0.0;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = rest[digits..].trim_start();
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let unit = match &rest[..letters] {
                "ms" => 0.001,
                "s" | "sec" | "second" | "seconds" => 1.0,
                "m" | "min" | "minute" | "minutes" => 60.0,
                "h" | "hour" | "hours" => 3_600.0,
                "d" | "day" | "days" => 86_400.0,
                _ => return Err(wrong()),
            };
            seconds += number * unit;
            rest = rest[letters..].trim_start();
        }
        // Whole milliseconds, as they are written; what is less than one is one, because nothing is something else.
        let ms = (seconds * 1_000.0).round();
        let ms = if seconds > 0.0 { ms.max(1.0) } else { ms };
        Duration::try_from_secs_f64(ms / 1_000.0).map_err(|_| wrong())?;
        Ok(Span(Duration::from_millis(ms as u64)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.ms();
        match ms {
            0 => write!(f, "0s"),
            _ if ms.is_multiple_of(3_600_000) => write!(f, "{}h", ms / 3_600_000),
            _ if ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            _ if ms.is_multiple_of(1_000) => write!(f, "{}s", ms / 1_000),
            _ => write!(f, "{ms}ms"),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("{text:?} is not a size; write it like 512MiB, 64KiB or 1GiB");
        let text_trimmed = text.trim();
        let digits = text_trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text_trimmed.len());
        let number: f64 = text_trimmed[..digits].parse().map_err(|_| wrong())?;
        let unit = match text_trimmed[digits..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => 1024.0,
            "kb" => 1e3,
            "m" | "mib" => 1024.0 * 1024.0,
            "mb" => 1e6,
            "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
            "gb" => 1e9,
            "t" | "tib" => 1024f64.powi(4),
            _ => return Err(wrong()),
        };
        let bytes = number * unit;
        if bytes < 0.0 || bytes > u64::MAX as f64 / 2.0 { Err(wrong()) } else { Ok(Size(bytes as u64)) }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0;
        let mut unit = 0;
        while value >= 1024 && value.is_multiple_of(1024) && unit + 1 < units.len() {
            value /= 1024;
            unit += 1;
        }
        write!(f, "{value}{}", units[unit])
    }
}

macro_rules! as_text {
    ($kind:ty, $expected:literal) => {
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $kind;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$kind, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

as_text!(Span, "a duration in quotes such as \"2s\"");
as_text!(Size, "a size in quotes such as \"512MiB\"");

/// Bytes for people: three figures and a unit.
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if value < 999.5 {
            return if unit == "B" {
                format!("{value:.0} B")
            } else {
                format!("{value:.*} {unit}", usize::from(value < 9.95))
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes() {
        let span = |text: &str, ms: u64| assert_eq!(text.parse::<Span>().map(Span::ms), Ok(ms), "{text}");
        span("2s", 2_000);
        span("0s", 0);
        span("0", 0);
        span("500ms", 500);
        span("1h30m", 5_400_000);
        span("1.5s", 1_500);
        span("2 days", 172_800_000);
        for wrong in ["", "2", "s", "-1s", "2 parsecs", "1e9s"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong:?}");
        }
        let size = |text: &str, bytes: u64| assert_eq!(text.parse::<Size>(), Ok(Size(bytes)), "{text}");
        size("512MiB", 512 << 20);
        size("16 MB", 16_000_000);
        size("100", 100);
        size("1G", 1 << 30);
        for wrong in ["", "MiB", "-1", "3 apples"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong:?}");
        }
        for text in ["2s", "500ms", "24h", "10m"] {
            assert_eq!(text.parse::<Span>().expect(text).to_string(), text);
        }
        assert_eq!(Size(512 << 20).to_string(), "512MiB");
        assert_eq!(human_bytes(1_234_567), "1.2 MB");
        assert_eq!(human_bytes(12_345_678), "12 MB");
    }
}
