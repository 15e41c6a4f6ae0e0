//! What a sitemap or feed says of a page, in a few bytes that travel with its URL, and how far the site is to be believed.
//!
//! Sitemaps are written by programs that often know no better: every page was changed a minute ago, every page has the highest priority.
//! So a date is compared with what the page's own visit shows, and each host earns or loses [`Trust`]. Priorities need no trust: they
//! only order the pages of one site among themselves, and nobody else's.

use rhumb_store::Timestamp;
use rhumb_store::codec::{Malformed, Put, Take};

use super::SitemapUrl;
use crate::dates;

/// What is said of a page. The default says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// When it changed, in minutes since 1970; 0 if that is not said.
    lastmod_min: u32,
    /// From 1 (always) to 7 (never); 0 if it is not said.
    changefreq: u8,
    /// In hundredths and one more; 0 if it is not said.
    priority: u8,
}

/// How often the protocol says that pages change.
const FREQUENCIES: [(&str, u64); 7] = [
    ("always", 3_600_000),
    ("hourly", 3_600_000),
    ("daily", 86_400_000),
    ("weekly", 7 * 86_400_000),
    ("monthly", 30 * 86_400_000),
    ("yearly", 365 * 86_400_000),
    ("never", u64::MAX),
];

impl Hint {
    /// What an entry says.
    pub fn of(entry: &SitemapUrl) -> Hint {
        Hint::said(entry.lastmod.as_deref(), entry.changefreq.as_deref(), entry.priority)
    }

    /// What is said in these words.
    pub fn said(lastmod: Option<&str>, changefreq: Option<&str>, priority: Option<f32>) -> Hint {
        let lastmod = lastmod.and_then(dates::parse);
        let position = |name: &str| FREQUENCIES.iter().position(|(f, _)| *f == name);
        Hint {
            lastmod_min: lastmod.map_or(0, |t| u32::try_from(t.0 / 60_000).unwrap_or(u32::MAX).max(1)),
            changefreq: changefreq.and_then(position).map_or(0, |i| i as u8 + 1),
            priority: priority.map_or(0, |p| (p.clamp(0.0, 1.0) * 100.0).round() as u8 + 1),
        }
    }

    /// When the page changed, to the minute.
    pub fn lastmod(&self) -> Option<Timestamp> {
        (self.lastmod_min > 0).then(|| Timestamp(u64::from(self.lastmod_min) * 60_000))
    }

    /// How long the page is said to stay as it is, in milliseconds.
    pub fn change_ms(&self) -> Option<u64> {
        FREQUENCIES.get(usize::from(self.changefreq).wrapping_sub(1)).map(|(_, ms)| *ms)
    }

    /// The frequency by name.
    pub fn changefreq(&self) -> Option<&'static str> {
        FREQUENCIES.get(usize::from(self.changefreq).wrapping_sub(1)).map(|(name, _)| *name)
    }

    /// The priority from 0 to 1; the protocol's default is 0.5.
    pub fn priority(&self) -> Option<f32> {
        self.priority.checked_sub(1).map(|p| f32::from(p) / 100.0)
    }

    /// Appends the bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.put_u64(u64::from(self.lastmod_min));
        into.extend_from_slice(&[self.changefreq, self.priority]);
    }

    /// Reads what [`Hint::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Hint, Malformed> {
        Ok(Hint { lastmod_min: from.u32()?, changefreq: from.u8()?, priority: from.u8()? })
    }
}

/// Whether a site's dates tell the truth: how often they did, and how often they did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Dates that the page's own visit bore out.
    pub right: u8,
    /// Dates that it contradicted.
    pub wrong: u8,
}

/// Dates this near to each other are the same: zones are forgotten, and days are rounded.
const SAME_MS: u64 = 26 * 3_600_000;
/// A page whose server says that it changed just now is made anew for each request, and shows nothing.
const JUST_NOW_MS: u64 = 10 * 60_000;

impl Trust {
    /// A number from 0 to 1; a half for a site of which nothing is known.
    pub fn share(self) -> f64 {
        (f64::from(self.right) + 1.0) / (f64::from(self.right) + f64::from(self.wrong) + 2.0)
    }

    /// Whether dates of this site are believed.
    pub fn is_earned(self) -> bool {
        self.share() > 0.6
    }

    /// Learns from a visit at `visited` of a page that is said to have changed at `said`: by the date that its server gives, if it
    /// gives one; and if the page was fetched before (`before`), by whether it changed since then.
    pub fn learn(&mut self, said: Timestamp, visited: Timestamp, server: Option<Timestamp>, before: Option<Before>) {
        let verdict = match (before, server) {
            // It is said to have changed since it was last here, and it did, or it is not and it did not.
            (Some(before), _) => Some((said > before.at) == before.changed),
            (None, Some(server)) if visited.ms_since(server) > JUST_NOW_MS => {
                Some(said.0.abs_diff(server.0) <= SAME_MS)
            }
            // The future is always a lie.
            _ if said.0 > visited.0.saturating_add(SAME_MS) => Some(false),
            _ => None,
        };
        match verdict {
            Some(true) => self.right = self.right.saturating_add(1),
            Some(false) => self.wrong = self.wrong.saturating_add(1),
            None => {}
        }
        // Old experience counts for less, so that a site can change its ways.
        if self.right.max(self.wrong) == u8::MAX {
            (self.right, self.wrong) = (self.right / 2, self.wrong / 2);
        }
    }

    /// Learns from a whole sitemap, read at `read`: one in which all pages changed when it was made speaks of itself, not of them.
    pub fn learn_sitemap(&mut self, hints: impl Iterator<Item = Hint>, read: Timestamp) {
        const PAGES_MIN: usize = 20;
        const DISTRUST: u8 = 8;
        let (mut dated, mut fresh) = (0, 0);
        for lastmod in hints.filter_map(|h| h.lastmod()) {
            dated += 1;
            fresh += usize::from(read.0.abs_diff(lastmod.0) <= JUST_NOW_MS);
        }
        if dated >= PAGES_MIN && fresh * 20 >= dated * 19 {
            self.wrong = self.wrong.saturating_add(DISTRUST);
        }
    }
}

/// What is known of an earlier visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// When it was.
    pub at: Timestamp,
    /// Whether the page is another now.
    pub changed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lastmod: &str, changefreq: &str, priority: Option<f32>) -> SitemapUrl {
        let text = |t: &str| (!t.is_empty()).then(|| t.to_owned());
        SitemapUrl { loc: String::new(), lastmod: text(lastmod), changefreq: text(changefreq), priority }
    }

    #[test]
    fn hints_say_what_the_sitemap_says() {
        let check = |entry: SitemapUrl, expected: (Option<&str>, Option<&str>, Option<f32>)| {
            let hint = Hint::of(&entry);
            let mut bytes = Vec::new();
            hint.put(&mut bytes);
            assert_eq!(Hint::take(&mut Take::new(&bytes)), Ok(hint), "{entry:?}");
            let lastmod = hint.lastmod().map(|t| t.iso_seconds());
            assert_eq!((lastmod.as_deref(), hint.changefreq(), hint.priority()), expected, "{entry:?}");
        };
        check(entry("", "", None), (None, None, None));
        check(entry("2026-11-16", "daily", Some(0.8)), (Some("2026-11-16T00:00:00Z"), Some("daily"), Some(0.8)));
        check(entry("Mon, 16 Nov 2026 09:30:59 GMT", "", Some(0.0)), (Some("2026-11-16T09:30:00Z"), None, Some(0.0)));
        check(entry("nonsense", "never", Some(1.0)), (None, Some("never"), Some(1.0)));
        assert_eq!(Hint::of(&entry("", "weekly", None)).change_ms(), Some(7 * 86_400_000));
    }

    #[test]
    fn a_site_is_believed_while_its_dates_are_right() {
        let day = |n: u64| Timestamp(n * 86_400_000);
        let after = |said: Timestamp, server: Option<Timestamp>, before: Option<Before>| {
            let mut trust = Trust::default();
            (0..5).for_each(|_| trust.learn(said, day(1_000), server, before));
            trust.share()
        };
        assert!(after(day(900), Some(day(900)), None) > 0.8, "the server says the same");
        assert!(after(day(999), Some(day(900)), None) < 0.2, "the server says that it is older");
        assert!((after(day(900), Some(day(1_000)), None) - 0.5).abs() < 1e-9, "made anew for each request");
        assert!((after(day(900), None, None) - 0.5).abs() < 1e-9, "no server date");
        assert!(after(day(2_000), None, None) < 0.2, "the future");
        let before = |changed| Some(Before { at: day(950), changed });
        assert!(after(day(990), None, before(true)) > 0.8, "said to have changed, and it did");
        assert!(after(day(990), None, before(false)) < 0.2, "said to have changed, and it did not");
        assert!(after(day(900), None, before(true)) < 0.2, "changed, but it was not said");
        let mut trust = Trust { right: 255, wrong: 3 };
        trust.learn(day(1), day(1_000), Some(day(1)), None);
        assert!(trust.right < 200 && trust.is_earned());
    }

    #[test]
    fn a_sitemap_made_anew_for_each_request_is_not_believed() {
        let now = Timestamp(1_763_000_000_000);
        let at = |ms: u64| Hint { lastmod_min: (ms / 60_000) as u32, ..Hint::default() };
        let learn = |hints: Vec<Hint>| {
            let mut trust = Trust::default();
            trust.learn_sitemap(hints.into_iter(), now);
            trust.is_earned() || trust.share() >= 0.5
        };
        assert!(!learn(vec![at(now.0); 50]));
        assert!(learn(vec![at(now.0); 5]), "few pages may well have changed just now");
        assert!(learn((0..50).map(|i| at(now.0 - i * 86_400_000)).collect()));
    }
}
