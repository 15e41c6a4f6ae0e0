//! What the members of a JSON Feed mean (<https://www.jsonfeed.org/version/1.1/>).
//!
//! Read as it comes, item by item: of a file that breaks off, what was whole before counts. A member of the wrong type is as if it was
//! not there; numbers pass for ids, as the standard asks.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use url::Url;

use super::{Collector, DateRank, Draft, Feed, FeedOptions, LocRank, SUMMARY_BYTES_MAX};
use crate::page::cut;
use crate::sitemap::{SitemapLimits, Trouble};
use crate::xml::{Place, Source};

/// How every version's name begins, behind `http:` or `https:`.
const VERSION: &str = "//jsonfeed.org/version/";

/// Reads a feed from a source at its opening brace.
pub(crate) fn read<R: Read>(
    source: &mut Source<R>,
    own: Option<&Url>,
    limits: &SitemapLimits,
    options: &FeedOptions,
    feed: &mut Feed,
) {
    let place = Cell::new(source.place());
    let mut reader =
        Reader { to: Collector::new(own, limits, options, feed), place: &place, is_feed: false, trouble: None };
    let mut json = serde_json::Deserializer::from_reader(Followed { source, place: &place });
    let result = (&mut reader).deserialize(&mut json);
    let (is_feed, trouble) = (reader.is_feed, reader.trouble);
    drop(json);
    if !is_feed {
        *feed = Feed::default();
        feed.listing.problem(limits, place.get(), source.trouble().unwrap_or(Trouble::NotASitemap), "");
    } else if let Err(error) = result {
        let trouble = trouble.or(source.trouble()).unwrap_or(match error.classify() {
            serde_json::error::Category::Eof => Trouble::EndsEarly,
            _ => Trouble::BadMarkup,
        });
        feed.listing.problem(limits, place.get(), trouble, "");
    }
}

/// A source that tells how far it was read.
struct Followed<'a, R: Read> {
    source: &'a mut Source<R>,
    place: &'a Cell<Place>,
}

impl<R: Read> Read for Followed<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(into)?;
        self.place.set(self.source.place());
        Ok(n)
    }
}

struct Reader<'a, 'p> {
    to: Collector<'a>,
    place: &'p Cell<Place>,
    is_feed: bool,
    trouble: Option<Trouble>,
}

impl<'de> DeserializeSeed<'de> for &mut Reader<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

/// The feed itself.
impl<'de> Visitor<'de> for &mut Reader<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a feed")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text(KEY_BYTES_MAX))? {
            let loc_bytes_max = self.to.limits.loc_bytes_max;
            match key.as_deref().unwrap_or_default() {
                "version" => {
                    let version = map.next_value_seed(Text(KEY_BYTES_MAX))?.unwrap_or_default();
                    let behind = version.strip_prefix("https:").or_else(|| version.strip_prefix("http:"));
                    self.is_feed = behind.is_some_and(|v| v.replacen("//www.", "//", 1).starts_with(VERSION));
                }
                "title" => {
                    let title = map.next_value_seed(Text(SUMMARY_BYTES_MAX))?.unwrap_or_default();
                    self.to.set_title(&title, false);
                }
                "description" => {
                    let text = map.next_value_seed(Text(SUMMARY_BYTES_MAX))?.unwrap_or_default();
                    self.to.set_description(&text, false);
                }
                "home_page_url" => {
                    let url = map.next_value_seed(Text(loc_bytes_max))?.unwrap_or_default();
                    self.to.set_home(&url);
                }
                "next_url" => {
                    let url = map.next_value_seed(Text(loc_bytes_max))?.unwrap_or_default();
                    self.to.set_next(&url);
                }
                "language" => {
                    let tag = map.next_value_seed(Text(KEY_BYTES_MAX))?.unwrap_or_default();
                    self.to.set_language(&tag);
                }
                "items" => map.next_value_seed(Items(self))?,
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// The list of items.
struct Items<'r, 'a, 'p>(&'r mut Reader<'a, 'p>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Item(self.0))?.is_some() {}
        Ok(())
    }
}

/// One item.
struct Item<'r, 'a, 'p>(&'r mut Reader<'a, 'p>);

impl<'de> DeserializeSeed<'de> for Item<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Item<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let reader = self.0;
        let place = reader.place.get();
        let words_bytes_max = if reader.to.options.words { SUMMARY_BYTES_MAX } else { 0 };
        let mut draft = Draft::default();
        while let Some(key) = map.next_key_seed(Text(KEY_BYTES_MAX))? {
            let key = key.unwrap_or_default();
            let loc_rank = match key.as_str() {
                "url" => Some(LocRank::Link),
                "external_url" => Some(LocRank::Foreign),
                "id" => Some(LocRank::Id),
                _ => None,
            };
            if let Some(rank) = loc_rank {
                // One byte too many stays, so that too long is too long.
                let text = map.next_value_seed(Text(reader.to.limits.loc_bytes_max + 1))?.unwrap_or_default();
                draft.offer_loc(rank, text.trim(), &reader.to.bases);
                continue;
            }
            match key.as_str() {
                "date_modified" => {
                    draft.offer_date(
                        DateRank::Updated,
                        map.next_value_seed(Text(KEY_BYTES_MAX))?.unwrap_or_default().trim(),
                    );
                }
                "date_published" => {
                    draft.offer_date(
                        DateRank::Published,
                        map.next_value_seed(Text(KEY_BYTES_MAX))?.unwrap_or_default().trim(),
                    );
                }
                "title" => {
                    let title = map.next_value_seed(Text(words_bytes_max))?.unwrap_or_default();
                    draft.title = reader.to.words.reduce(&title, false);
                }
                key @ ("content_html" | "content_text" | "summary") => {
                    let text = map.next_value_seed(Text(words_bytes_max))?.unwrap_or_default();
                    let text = reader.to.words.reduce(&text, key == "content_html");
                    draft.offer_summary(text);
                }
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        reader.to.finish_entry(draft, place, false).map_err(|trouble| {
            reader.trouble = Some(trouble);
            A::Error::custom("enough")
        })
    }
}

/// Longest key, date or tag that is looked at.
const KEY_BYTES_MAX: usize = 128;

/// A text of so many bytes at the most; nothing if it is something else.
struct Text(usize);

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(cut(text, self.0).to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.to_string()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}
