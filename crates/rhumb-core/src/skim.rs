//! Visits as those read them who fold the log into something of their own: without making a record of each.
//!
//! [`Skimmed`] is for followers of links, [`SkimmedPage`] for a text index. Both read what a visit has before its links; the one then
//! goes through the links, the other passes over them to what stands behind.
//!
//! Invariant: what [`Record::take`](crate::record::Record::take) understands is understood here, and to the same effect.

use rhumb_store::Timestamp;
use rhumb_store::archive::ArchiveRef;
use rhumb_store::codec::{Malformed, Take};

use crate::outcome::Outcome;
use crate::page::{Directives, PageText, Rel};
use crate::record::{
    ADDRESS, ARCHIVED, DIGEST, FIELD_CANONICAL, FIELD_DIRECTIVES, FIELD_LANGUAGE, FIELD_SAID, FIELD_TEXT_KEPT, FIELDS,
    RETRY, RETRY_AFTER, ROBOTS, ROBOTS_BODY, rel_of, take_outcome,
};
use crate::url::Url;
use crate::visit::{Entry, LinkKind};

/// A visit as a follower of links sees it.
#[derive(Clone, Debug)]
pub struct Skimmed<'a> {
    /// When it ended.
    pub ended: Timestamp,
    /// What was asked for.
    pub url: Url,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it was a page that was asked for, and will not be asked for again for want of an answer.
    pub is_final_page: bool,
    /// The page's title.
    pub title: &'a str,
    links: Take<'a>,
}

/// A link as a follower of links sees it.
#[derive(Clone, Debug)]
pub struct SkimmedLink<'a> {
    /// Where it leads, canonical.
    pub url: &'a str,
    /// How it was marked up.
    pub kind: LinkKind,
    /// By which marks the author declines to vouch for it.
    pub rel: Rel,
    /// Anchor text.
    pub text: &'a str,
}

impl<'a> Skimmed<'a> {
    /// Reads the payload of a visit's record without making anything of its links: [`Skimmed::links`] goes through them.
    pub fn read(payload: &'a [u8]) -> Result<Skimmed<'a>, Malformed> {
        let head = Head::read(payload)?;
        let (ended, outcome, is_final_page) = (head.ended, head.outcome, head.is_final_page());
        Ok(Skimmed { ended, url: head.entry.url, outcome, is_final_page, title: head.title, links: head.links })
    }

    /// Calls `each` with the links in the order they stand on the page. `url` is room to put one after the other in.
    pub fn links(&self, url: &mut String, mut each: impl FnMut(SkimmedLink<'_>)) -> Result<(), Malformed> {
        let mut from = self.links.clone();
        url.clear();
        url.push_str(self.url.as_str());
        for _ in 0..from.u64()? {
            let flags = from.u8()?;
            let shared = usize::try_from(from.u64()?).map_err(|_| Malformed("an impossible prefix"))?;
            if !url.is_char_boundary(shared) {
                return Err(Malformed("a link prefix is too long"));
            }
            url.truncate(shared);
            url.push_str(from.str()?);
            let (kind, rel) = (LinkKind::from_code(flags & 15), rel_of(flags));
            each(SkimmedLink { url, kind, rel, text: from.str()? });
        }
        Ok(())
    }
}

/// A visit as a text index sees it.
#[derive(Clone, Debug)]
pub struct SkimmedPage<'a> {
    /// What was asked for, and how it came to be asked.
    pub entry: Entry,
    /// When dialling began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it was a page that was asked for, and will not be asked for again for want of an answer.
    pub is_final_page: bool,
    /// Status of the response, 0 without one.
    pub status: u16,
    /// Media type as the server said it.
    pub media_type: &'a str,
    /// When it changed, as the server wrote it.
    pub last_modified: Option<&'a str>,
    /// The page's title.
    pub title: &'a str,
    /// Where its records lie in the archive.
    pub archived: Option<ArchiveRef>,
    /// What the page and its server ask of robots.
    pub directives: Directives,
    /// The page's preferred address, if it is another.
    pub canonical: Option<Url>,
    /// The language, as ISO 639 names it; empty if it is not known.
    pub language: &'a str,
    /// What the page says: the bytes of a [`PageText`].
    pub said: Option<&'a [u8]>,
    /// The text of a page of which no copy may be kept, in logs that hold no more of it.
    pub text_kept: Option<&'a str>,
}

impl<'a> SkimmedPage<'a> {
    /// Reads the payload of a visit's record.
    pub fn read(payload: &'a [u8]) -> Result<SkimmedPage<'a>, Malformed> {
        let head = Head::read(payload)?;
        let mut page = SkimmedPage {
            started: Timestamp(head.ended.0.saturating_sub(head.duration_ms)),
            ended: head.ended,
            outcome: head.outcome,
            is_final_page: head.is_final_page(),
            status: head.status,
            media_type: head.media_type,
            last_modified: head.last_modified,
            title: head.title,
            archived: head.archived,
            directives: Directives::default(),
            canonical: None,
            language: "",
            said: None,
            text_kept: None,
            entry: head.entry,
        };
        let mut from = head.links;
        for _ in 0..from.u64()? {
            from.u8()?;
            from.u64()?;
            from.bytes()?;
            from.bytes()?;
        }
        if !from.is_empty() && from.u8()? & FIELDS != 0 {
            page.read_fields(from)?;
        }
        Ok(page)
    }

    /// Reads what the page says into `text`; whether the log holds it.
    pub fn read_text(&self, text: &mut PageText) -> Result<bool, Malformed> {
        text.clear();
        match (self.said, self.text_kept) {
            (Some(said), _) => text.take_into(said)?,
            (None, Some(kept)) => text.text.push_str(kept),
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    fn read_fields(&mut self, mut from: Take<'a>) -> Result<(), Malformed> {
        while !from.is_empty() {
            let tag = from.u8()?;
            let bytes = from.bytes()?;
            let text = || std::str::from_utf8(bytes).map_err(|_| Malformed("a field is not UTF-8"));
            match tag {
                FIELD_DIRECTIVES => self.directives = Directives::take(&mut Take::new(bytes))?,
                FIELD_CANONICAL => {
                    let url = Url::from_canonical(text()?).ok_or(Malformed("a preferred address is not canonical"))?;
                    self.canonical = Some(url);
                }
                FIELD_LANGUAGE => self.language = text()?,
                FIELD_TEXT_KEPT => self.text_kept = Some(text()?),
                FIELD_SAID => self.said = Some(bytes),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What a visit has before its links.
struct Head<'a> {
    flags: u8,
    ended: Timestamp,
    outcome: Outcome,
    entry: Entry,
    duration_ms: u64,
    status: u16,
    media_type: &'a str,
    last_modified: Option<&'a str>,
    title: &'a str,
    archived: Option<ArchiveRef>,
    /// Their number comes first.
    links: Take<'a>,
}

impl<'a> Head<'a> {
    fn read(payload: &'a [u8]) -> Result<Head<'a>, Malformed> {
        let mut from = Take::new(payload);
        let ended = Timestamp(from.u64()?);
        let flags = from.u8()?;
        let outcome = take_outcome(&mut from)?;
        let entry = Entry::from_bytes(from.bytes()?)?;
        let duration_ms = from.u64()?;
        let status = u16::try_from(from.u64()?).map_err(|_| Malformed("an impossible status"))?;
        from.u64()?;
        from.bytes()?;
        let media_type = from.str()?;
        let (etag, last_modified) = (from.opt_str()?, from.opt_str()?);
        if etag.is_some() || last_modified.is_some() {
            from.u64()?;
        }
        from.opt_str()?;
        let title = from.str()?;
        if flags & ROBOTS != 0 {
            from.bytes()?;
            from.u8()?;
        } else if outcome == Outcome::Ok {
            from.raw(8)?;
        }
        if flags & DIGEST != 0 {
            from.raw(20)?;
        }
        let archived = if flags & ARCHIVED != 0 { Some(ArchiveRef::take(&mut from)?) } else { None };
        if flags & ADDRESS != 0 {
            from.bytes()?;
        }
        if flags & RETRY_AFTER != 0 {
            from.u64()?;
        }
        if flags & ROBOTS_BODY != 0 {
            from.bytes()?;
        }
        from.u32()?;
        let head = Head {
            flags,
            ended,
            outcome,
            entry,
            duration_ms,
            status,
            media_type,
            last_modified,
            title,
            archived,
            links: from,
        };
        Ok(head)
    }

    fn is_final_page(&self) -> bool {
        self.flags & (ROBOTS | RETRY) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Channel;
    use crate::record::Record;
    use crate::seen::PageRef;
    use crate::sitemap::Hint;
    use crate::url::Host;
    use crate::visit::{Outlink, Purpose, Validators, VisitRecord};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn any_url() -> impl Strategy<Value = Url> {
        "http://[a-c]{1,3}\\.example/[a-z/]{0,9}".prop_map(|url| Url::from_canonical(&url).expect("canonical"))
    }

    prop_compose! {
        fn any_link()(url in any_url(), text in "\\PC{0,9}", kind in 0u8..16, wanted: bool, priority: bool) -> Outlink {
            let hint = Hint::said(None, None, priority.then_some(0.5));
            Outlink { text: text.into(), hint, ..Outlink::bare(url, LinkKind::from_code(kind), wanted) }
        }
    }

    prop_compose! {
        fn any_page()(
            (url, depth, sent_to) in (any_url(), 0u32..9, any::<u8>()),
            (started, duration_ms, ok, retry, robots) in (0..1u64 << 40, 0u64..9_000, any::<bool>(), any::<bool>(), any::<bool>()),
            (media_type, title, language) in ("[a-z/]{0,9}", "\\PC{0,20}", "[a-z]{0,2}"),
            (etag, last_modified) in (any::<Option<bool>>(), any::<Option<bool>>()),
            (archived, digest, address, retry_after_ms) in (any::<bool>(), any::<bool>(), any::<bool>(), any::<Option<u64>>()),
            links in proptest::collection::vec(any_link(), 0..5),
            canonical in proptest::option::of(any_url()),
            (noindex, after) in (any::<bool>(), any::<Option<u32>>()),
            (text_kept, said) in (any::<Option<bool>>(), any::<Option<Vec<u8>>>()),
            (copy_of, nothing_new) in (any::<Option<u64>>(), any::<bool>()),
        ) -> VisitRecord {
            let (started, outcome) = (Timestamp(started), if ok { Outcome::Ok } else { Outcome::NotFound });
            let purpose = if robots {
                Purpose::Robots { host: Host::from_canonical("http://a.example").expect("an origin"), hops: 1 }
            } else {
                Purpose::Page
            };
            let mut entry = Entry::new(url, depth);
            entry.seed = sent_to & 1 != 0;
            let mut visit = VisitRecord::bare(entry, purpose, started, Timestamp(started.0 + duration_ms), outcome);
            visit.retry = retry;
            visit.status = 200;
            (visit.media_type, visit.title, visit.language) = (media_type.into(), title.into(), language.into());
            visit.validators = Validators {
                etag: etag.map(|_| "\"x\"".into()),
                last_modified: last_modified.map(|_| "yesterday".into()),
                fetched: if etag.is_some() || last_modified.is_some() { started } else { Timestamp(0) },
            };
            visit.archived = archived.then_some(ArchiveRef { file: 3, offset: 70_000, length: 900, first: 300 });
            visit.digest = digest.then_some([7; 20]);
            visit.address = address.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
            visit.retry_after_ms = retry_after_ms;
            visit.robots = robots.then(|| b"User-agent: *".as_slice().into());
            visit.links = links;
            visit.canonical = canonical;
            visit.directives.noindex = noindex.then_some(Channel::Header);
            visit.directives.unavailable_after = after.map(|at| (Timestamp(at.into()), Channel::Meta));
            visit.text_kept = text_kept.map(|_| "kept".into());
            visit.said = said.map(Into::into);
            visit.copy_of = copy_of.map(PageRef);
            visit.nothing_new = nothing_new;
            visit
        }
    }

    proptest! {
        #[test]
        fn all_readers_agree(visit in any_page()) {
            let mut payload = Vec::new();
            Record::Visited(Box::new(visit.clone())).put(&mut payload);
            prop_assert_eq!(Record::take(4, &payload), Ok(Record::Visited(Box::new(visit.clone()))));
            let page = SkimmedPage::read(&payload).expect("understood");
            let is_final_page = visit.purpose.is_page() && !visit.retry;
            prop_assert_eq!(&page.entry, &visit.entry);
            prop_assert_eq!((page.started, page.ended, page.outcome), (visit.started, visit.ended, visit.outcome));
            prop_assert_eq!((page.is_final_page, page.status), (is_final_page, visit.status));
            prop_assert_eq!((page.media_type, page.title, page.language), (&*visit.media_type, &*visit.title, &*visit.language));
            prop_assert_eq!((page.last_modified, page.archived), (visit.validators.last_modified.as_deref(), visit.archived));
            prop_assert_eq!((page.directives, &page.canonical), (visit.directives, &visit.canonical));
            prop_assert_eq!((page.said, page.text_kept), (visit.said.as_deref(), visit.text_kept.as_deref()));
            let mut text = PageText::default();
            let read = page.read_text(&mut text).map(|held| held.then_some(text));
            prop_assert_eq!(read, visit.page_text());
            let skimmed = Skimmed::read(&payload).expect("understood");
            prop_assert_eq!((skimmed.url, skimmed.title, skimmed.is_final_page), (visit.entry.url, &*visit.title, is_final_page));
            for end in 0..payload.len() {
                let _ = SkimmedPage::read(&payload[..end]);
            }
        }

        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>) {
            let _ = SkimmedPage::read(&bytes).map(|page| page.read_text(&mut PageText::default()));
        }
    }
}
