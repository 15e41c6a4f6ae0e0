//! What the visit log holds: the bytes of each kind of record. docs/formats/log.md describes them.
//!
//! Appending a record is the commit point; all state is a fold over these. `skim.rs` reads a visit for those who need a part of it.

use std::net::IpAddr;

use rhumb_store::Timestamp;
use rhumb_store::archive::ArchiveRef;
use rhumb_store::codec::{Malformed, Put, Take};

use crate::frontier::Hold;
use crate::outcome::Outcome;
use crate::page::{Directives, Rel};
use crate::reading::Reading;
use crate::seen::{Content, PageRef};
use crate::sitemap::Hint;
use crate::traps::RuleChange;
use crate::url::{Fingerprint, Host, Url};
use crate::visit::{Entry, LinkKind, Outlink, Purpose, Validators, VisitRecord};

pub use crate::skim::{Skimmed, SkimmedLink, SkimmedPage};

/// One record of the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A process began (or went on with) the crawl.
    Opened(Timestamp),
    /// The user named a URL.
    Seed(Entry, Timestamp),
    /// A host is about to be contacted. Written first, so that a crash in mid-fetch keeps its delay.
    Issued {
        /// Who.
        host: Host,
        /// Fingerprint of the URL.
        url: Fingerprint,
        /// When.
        at: Timestamp,
    },
    /// A visit is finished.
    Visited(Box<VisitRecord>),
    /// A URL left the frontier without a visit.
    Dropped {
        /// The URL and its history.
        entry: Entry,
        /// Why.
        outcome: Outcome,
        /// When.
        at: Timestamp,
    },
    /// A rule about the URLs of a site was learned, retracted or undone.
    Rule(RuleChange, Timestamp),
    /// A host is left alone for a while, and its URLs with it.
    Held {
        /// Who.
        host: Host,
        /// Why, since when, until when.
        hold: Hold,
    },
    /// How far a source was read that others filled.
    Read(Reading, Timestamp),
    /// A page says what an older one says, word for word or nearly so.
    Duplicate(Box<Duplicate>, Timestamp),
    /// The process was alive.
    Alive(Timestamp),
    /// The process ended in order; nothing was in flight.
    Closed {
        /// When.
        at: Timestamp,
        /// Whether nothing was left to visit, save what is held.
        finished: bool,
    },
}

/// A page and the one that stands for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplicate {
    /// The record of the page's visit.
    pub page: PageRef,
    /// The page.
    pub url: Url,
    /// Its representative, which is older and no duplicate itself.
    pub of: Url,
    /// The estimated resemblance, in ten-thousandths.
    pub similarity: u16,
    /// Whether both have the same words in the same order.
    pub exact: bool,
}

impl Duplicate {
    fn put(&self, into: &mut Vec<u8>) {
        into.put_u64(self.page.0);
        into.put_u64(u64::from(self.similarity));
        into.put_u8(u8::from(self.exact));
        into.put_str(self.url.as_str());
        into.put_str(self.of.as_str());
    }

    fn take(from: &mut Take<'_>) -> Result<Duplicate, Malformed> {
        let page = PageRef(from.u64()?);
        let similarity = u16::try_from(from.u64()?).ok().filter(|s| *s <= 10_000);
        let similarity = similarity.ok_or(Malformed("an impossible resemblance"))?;
        let exact = from.u8()? == 1;
        let mut url = || Url::from_canonical(from.str()?).ok_or(Malformed("a page is not canonical"));
        Ok(Duplicate { page, similarity, exact, url: url()?, of: url()? })
    }
}

impl Record {
    /// The record's kind byte.
    pub fn kind(&self) -> u8 {
        match self {
            Record::Opened(_) => 1,
            Record::Seed(..) => 2,
            Record::Issued { .. } => 3,
            Record::Visited(_) => 4,
            Record::Dropped { .. } => 5,
            Record::Alive(_) => 6,
            Record::Rule(..) => 9,
            Record::Read(..) => 11,
            Record::Duplicate(..) => 10,
            Record::Closed { .. } => 7,
            Record::Held { .. } => 8,
        }
    }

    /// When it happened.
    pub fn at(&self) -> Timestamp {
        match self {
            Record::Rule(_, at) | Record::Read(_, at) | Record::Duplicate(_, at) => *at,
            Record::Opened(at) | Record::Alive(at) | Record::Closed { at, .. } | Record::Seed(_, at) => *at,
            Record::Issued { at, .. } | Record::Dropped { at, .. } => *at,
            Record::Visited(v) => v.ended,
            Record::Held { hold, .. } => hold.at,
        }
    }

    /// Appends the payload.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.put_u64(self.at().0);
        match self {
            Record::Opened(_) | Record::Alive(_) => {}
            Record::Closed { finished, .. } => into.put_u8(u8::from(*finished)),
            Record::Seed(entry, _) => into.put_bytes(&entry.to_bytes()),
            Record::Issued { host, url, .. } => {
                into.put_str(host.as_str());
                into.extend_from_slice(&url.0.to_le_bytes());
            }
            Record::Dropped { entry, outcome, .. } => {
                into.put_u8(outcome.code());
                into.put_bytes(&entry.to_bytes());
            }
            Record::Visited(visit) => put_visit(visit, into),
            Record::Rule(change, _) => change.put(into),
            Record::Read(reading, _) => reading.put(into),
            Record::Duplicate(duplicate, _) => duplicate.put(into),
            Record::Held { host, hold } => {
                into.put_str(host.as_str());
                hold.put(into);
            }
        }
    }

    /// Reads a record by its kind.
    pub fn take(kind: u8, payload: &[u8]) -> Result<Record, Malformed> {
        let mut from = Take::new(payload);
        let at = Timestamp(from.u64()?);
        Ok(match kind {
            1 => Record::Opened(at),
            2 => Record::Seed(Entry::from_bytes(from.bytes()?)?, at),
            3 => {
                let host = take_host(&mut from)?;
                Record::Issued { host, url: Fingerprint(take_word(&mut from)?), at }
            }
            4 => Record::Visited(Box::new(take_visit(&mut from, at)?)),
            5 => {
                let outcome = take_outcome(&mut from)?;
                Record::Dropped { entry: Entry::from_bytes(from.bytes()?)?, outcome, at }
            }
            6 => Record::Alive(at),
            9 => Record::Rule(RuleChange::take(&mut from)?, at),
            11 => Record::Read(Reading::take(&mut from)?, at),
            10 => Record::Duplicate(Box::new(Duplicate::take(&mut from)?), at),
            // Earlier versions did not say.
            7 => Record::Closed { at, finished: !from.is_empty() && from.u8()? == 1 },
            8 => Record::Held { host: take_host(&mut from)?, hold: Hold::take(&mut from, at)? },
            _ => return Err(Malformed("a record of unknown kind")),
        })
    }
}

/// The URL of a visit, from the payload of its record, without reading the rest.
pub fn visited_url(payload: &[u8]) -> Result<Url, Malformed> {
    let mut from = Take::new(payload);
    from.u64()?;
    from.raw(2)?;
    Ok(Entry::from_bytes(from.bytes()?)?.url)
}

pub(crate) fn rel_of(flags: u8) -> Rel {
    Rel::from_unvouched_bits((flags & NOFOLLOW) >> 4 | (flags & (UGC | SPONSORED)) >> 5)
}

pub(crate) const RETRY: u8 = 1;
const TRUNCATED: u8 = 2;
pub(crate) const ROBOTS: u8 = 4;
pub(crate) const DIGEST: u8 = 8;
pub(crate) const ARCHIVED: u8 = 16;
pub(crate) const ADDRESS: u8 = 32;
pub(crate) const RETRY_AFTER: u8 = 64;
pub(crate) const ROBOTS_BODY: u8 = 128;
/// More flags, which come last and only if there are any.
const NOTHING_NEW: u8 = 1;
/// Behind them come fields that most visits do not have: a tag, a length and so many bytes each. Unknown ones are passed over.
pub(crate) const FIELDS: u8 = 2;
const SITEMAP_WANTED: u8 = 4;
pub(crate) const FIELD_DIRECTIVES: u8 = 1;
pub(crate) const FIELD_CANONICAL: u8 = 2;
pub(crate) const FIELD_LANGUAGE: u8 = 3;
pub(crate) const FIELD_TEXT_KEPT: u8 = 4;
const FIELD_HINTS: u8 = 5;
const FIELD_CONTENT: u8 = 6;
const FIELD_COPY_OF: u8 = 7;
pub(crate) const FIELD_SAID: u8 = 8;

/// Bits of a link beside its kind.
const NOFOLLOW: u8 = 16;
const WANTED: u8 = 32;
const UGC: u8 = 64;
const SPONSORED: u8 = 128;

/// Appends a visit's payload behind its end time.
fn put_visit(visit: &VisitRecord, into: &mut Vec<u8>) {
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    into.put_u8(
        flag(visit.retry, RETRY)
            | flag(visit.truncated, TRUNCATED)
            | flag(!visit.purpose.is_page(), ROBOTS)
            | flag(visit.digest.is_some(), DIGEST)
            | flag(visit.archived.is_some(), ARCHIVED)
            | flag(visit.address.is_some(), ADDRESS)
            | flag(visit.retry_after_ms.is_some(), RETRY_AFTER)
            | flag(visit.robots.is_some(), ROBOTS_BODY),
    );
    into.put_u8(visit.outcome.code());
    into.put_bytes(&visit.entry.to_bytes());
    into.put_u64(visit.duration_ms());
    into.put_u64(u64::from(visit.status));
    into.put_u64(visit.wire_bytes);
    into.put_str(&visit.detail);
    into.put_str(&visit.media_type);
    visit.validators.put(into);
    into.put_opt_str(visit.duplicate_of.as_deref());
    into.put_str(&visit.title);
    if let Purpose::Robots { host, hops } = &visit.purpose {
        into.put_str(host.as_str());
        into.put_u8(*hops);
    }
    if visit.is_page() {
        into.extend_from_slice(&visit.fingerprint.to_le_bytes());
    }
    if let Some(digest) = &visit.digest {
        into.extend_from_slice(digest);
    }
    if let Some(archived) = &visit.archived {
        archived.put(into);
    }
    match visit.address {
        Some(IpAddr::V4(a)) => into.put_bytes(&a.octets()),
        Some(IpAddr::V6(a)) => into.put_bytes(&a.octets()),
        None => {}
    }
    if let Some(ms) = visit.retry_after_ms {
        into.put_u64(ms);
    }
    if let Some(body) = &visit.robots {
        into.put_bytes(body);
    }
    into.put_u64(u64::from(visit.links_unusable));
    into.put_u64(visit.links.len() as u64);
    // Links of a page share long prefixes with their neighbours; each is written as what differs.
    let mut previous: &str = visit.entry.url.as_str();
    for link in &visit.links {
        let url = link.url.as_str();
        let shared = shared_prefix(previous, url);
        into.put_u8(
            link.kind as u8
                | flag(link.wanted, WANTED)
                | flag(link.rel.intersects(Rel::NOFOLLOW), NOFOLLOW)
                | flag(link.rel.intersects(Rel::UGC), UGC)
                | flag(link.rel.intersects(Rel::SPONSORED), SPONSORED),
        );
        into.put_u64(shared as u64);
        into.put_str(&url[shared..]);
        into.put_str(&link.text);
        previous = url;
    }
    let at = into.len();
    into.put_u8(flag(visit.nothing_new, NOTHING_NEW) | flag(visit.sitemap_wanted, SITEMAP_WANTED));
    put_fields(visit, into);
    if into.len() > at + 1 {
        into[at] |= FIELDS;
    } else if into[at] == 0 {
        into.pop();
    }
}

/// Appends what most visits do not have.
fn put_fields(visit: &VisitRecord, into: &mut Vec<u8>) {
    let mut put = |tag: u8, bytes: &[u8]| {
        into.put_u8(tag);
        into.put_bytes(bytes);
    };
    if !visit.directives.is_empty() {
        let mut bytes = Vec::new();
        visit.directives.put(&mut bytes);
        put(FIELD_DIRECTIVES, &bytes);
    }
    if let Some(canonical) = &visit.canonical {
        put(FIELD_CANONICAL, canonical.as_str().as_bytes());
    }
    if !visit.language.is_empty() {
        put(FIELD_LANGUAGE, visit.language.as_bytes());
    }
    if let Some(text) = &visit.text_kept {
        put(FIELD_TEXT_KEPT, text.as_bytes());
    }
    if let Some(content) = &visit.content {
        let mut bytes = Vec::with_capacity(64);
        content.put(&mut bytes);
        put(FIELD_CONTENT, &bytes);
    }
    if let Some(page) = visit.copy_of {
        put(FIELD_COPY_OF, &page.0.to_le_bytes());
    }
    if let Some(said) = &visit.said {
        put(FIELD_SAID, said);
    }
    let mut hints = Vec::new();
    let mut last = 0;
    for (i, link) in visit.links.iter().enumerate().filter(|(_, l)| l.hint != Hint::default()) {
        hints.put_u64((i - last) as u64);
        link.hint.put(&mut hints);
        last = i;
    }
    if !hints.is_empty() {
        put(FIELD_HINTS, &hints);
    }
}

fn take_fields(from: &mut Take<'_>, visit: &mut VisitRecord) -> Result<(), Malformed> {
    while !from.is_empty() {
        let tag = from.u8()?;
        let bytes = from.bytes()?;
        let text = || std::str::from_utf8(bytes).map_err(|_| Malformed("a field is not UTF-8"));
        match tag {
            FIELD_DIRECTIVES => visit.directives = Directives::take(&mut Take::new(bytes))?,
            FIELD_CANONICAL => {
                visit.canonical =
                    Some(Url::from_canonical(text()?).ok_or(Malformed("a preferred address is not canonical"))?);
            }
            FIELD_LANGUAGE => visit.language = text()?.into(),
            FIELD_TEXT_KEPT => visit.text_kept = Some(text()?.into()),
            FIELD_CONTENT => visit.content = Some(Content::take(&mut Take::new(bytes))?),
            FIELD_COPY_OF => visit.copy_of = Some(PageRef(take_word(&mut Take::new(bytes))?)),
            FIELD_SAID => visit.said = Some(bytes.into()),
            FIELD_HINTS => {
                let mut hints = Take::new(bytes);
                let mut at = 0;
                while !hints.is_empty() {
                    at += usize::try_from(hints.u64()?).map_err(|_| Malformed("an impossible link"))?;
                    let hint = Hint::take(&mut hints)?;
                    visit.links.get_mut(at).ok_or(Malformed("a hint for no link"))?.hint = hint;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Bytes both begin with, ending at a character.
fn shared_prefix(a: &str, b: &str) -> usize {
    let mut n = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    while !b.is_char_boundary(n) {
        n -= 1;
    }
    n
}

fn take_visit(from: &mut Take<'_>, ended: Timestamp) -> Result<VisitRecord, Malformed> {
    let flags = from.u8()?;
    let outcome = take_outcome(from)?;
    let entry = Entry::from_bytes(from.bytes()?)?;
    let duration_ms = from.u64()?;
    let started = Timestamp(ended.0.saturating_sub(duration_ms));
    let mut visit = VisitRecord::bare(entry, Purpose::Page, started, ended, outcome);
    visit.retry = flags & RETRY != 0;
    visit.truncated = flags & TRUNCATED != 0;
    visit.status = u16::try_from(from.u64()?).map_err(|_| Malformed("an impossible status"))?;
    visit.wire_bytes = from.u64()?;
    visit.detail = from.str()?.into();
    visit.media_type = from.str()?.into();
    visit.validators = Validators::take(from)?;
    visit.duplicate_of = from.opt_str()?.map(Into::into);
    visit.title = from.str()?.into();
    if flags & ROBOTS != 0 {
        visit.purpose = Purpose::Robots { host: take_host(from)?, hops: from.u8()? };
    }
    if visit.is_page() {
        visit.fingerprint = take_word(from)?;
    }
    if flags & DIGEST != 0 {
        visit.digest = Some(from.raw(20)?.try_into().map_err(|_| Malformed("half a digest"))?);
    }
    if flags & ARCHIVED != 0 {
        visit.archived = Some(ArchiveRef::take(from)?);
    }
    if flags & ADDRESS != 0 {
        let bytes = from.bytes()?;
        visit.address = match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
            (Ok(v4), _) => Some(IpAddr::from(v4)),
            (_, Ok(v6)) => Some(IpAddr::from(v6)),
            _ => return Err(Malformed("an address of odd length")),
        };
    }
    if flags & RETRY_AFTER != 0 {
        visit.retry_after_ms = Some(from.u64()?);
    }
    if flags & ROBOTS_BODY != 0 {
        visit.robots = Some(from.bytes()?.into());
    }
    visit.links_unusable = from.u32()?;
    let count = from.u64()?;
    let mut previous = visit.entry.url.as_str().to_string();
    for _ in 0..count {
        let flags = from.u8()?;
        let shared = usize::try_from(from.u64()?).map_err(|_| Malformed("an impossible prefix"))?;
        let prefix = previous.get(..shared).ok_or(Malformed("a link prefix is too long"))?;
        previous = format!("{prefix}{}", from.str()?);
        visit.links.push(Outlink {
            url: Url::from_canonical(&previous).ok_or(Malformed("a link is not canonical"))?,
            text: from.str()?.into(),
            kind: LinkKind::from_code(flags & 15),
            rel: rel_of(flags),
            hint: Hint::default(),
            wanted: flags & WANTED != 0,
        });
    }
    if !from.is_empty() {
        let more = from.u8()?;
        visit.nothing_new = more & NOTHING_NEW != 0;
        visit.sitemap_wanted = more & SITEMAP_WANTED != 0;
        if more & FIELDS != 0 {
            take_fields(from, &mut visit)?;
        }
    }
    Ok(visit)
}

fn take_word(from: &mut Take<'_>) -> Result<u64, Malformed> {
    Ok(u64::from_le_bytes(from.raw(8)?.try_into().map_err(|_| Malformed("half a word"))?))
}

pub(crate) fn take_outcome(from: &mut Take<'_>) -> Result<Outcome, Malformed> {
    Outcome::from_code(from.u8()?).ok_or(Malformed("an unknown outcome"))
}

fn take_host(from: &mut Take<'_>) -> Result<Host, Malformed> {
    Host::from_canonical(from.str()?).ok_or(Malformed("a host is not an origin"))
}
