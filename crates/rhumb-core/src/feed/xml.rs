//! What the tags of RSS and Atom mean.
//!
//! Names are compared without regard to case. Those with the prefix of the feed's own elements are the feed's, whatever the prefix;
//! of the extensions a few are known by the prefix that everybody uses (`dc:date`, `content:encoded`, `atom:link`), all others
//! (`media:title`, `itunes:image`) are nobody's. Markup inside a summary is put together again and read as HTML.

use std::io::Read;

use url::Url;

use super::{Collector, DateRank, Draft, Feed, FeedOptions, LocRank, SUMMARY_BYTES_MAX};
use crate::sitemap::{SitemapLimits, Trouble};
use crate::xml::{Place, Token, Tokens, fingerprint, split};

/// The attributes that matter.
pub(crate) const ATTRIBUTES: &[&str] =
    &["href", "rel", "type", "xml:base", "xml:lang", "rdf:about", "isPermaLink", "src", "mode"];

/// What an open element is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The root or the channel: what is in here speaks of the feed.
    Feed,
    Entry,
    Field(Field),
    /// Markup inside a field, which is kept.
    Markup,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Loc(LocRank),
    Date(DateRank),
    Title,
    Summary,
    FeedTitle,
    FeedText,
    Home,
    Language,
}

impl Field {
    /// Whether it is for readers, so that odd references in it are no trouble.
    fn is_words(self) -> bool {
        matches!(self, Field::Title | Field::Summary | Field::FeedTitle | Field::FeedText)
    }
}

struct Open {
    name: u64,
    role: Role,
    /// Whether it has an `xml:base`.
    has_base: bool,
}

struct Walk<'a, 't, 's, R: Read> {
    tokens: &'t mut Tokens<'s, R>,
    to: Collector<'a>,
    open: Vec<Open>,
    /// The prefix of the feed's own elements; RSS of the RDF kind shows it with its first element.
    prefix: Option<Vec<u8>>,
    is_atom: bool,
    draft: Option<(Draft, Place)>,
    /// Whether the field that is open holds HTML.
    is_html: bool,
}

/// Reads a feed whose root's start tag was the last token.
pub(crate) fn read<R: Read>(
    tokens: &mut Tokens<'_, R>,
    own: Option<&Url>,
    limits: &SitemapLimits,
    options: &FeedOptions,
    feed: &mut Feed,
    empty: bool,
) {
    let to = Collector::new(own, limits, options, feed);
    let (prefix, local) = split(&tokens.name);
    let is_atom = local.eq_ignore_ascii_case(b"feed");
    let prefix = (!local.eq_ignore_ascii_case(b"rdf")).then(|| prefix.to_vec());
    let mut walk = Walk { tokens, to, open: Vec::new(), prefix, is_atom, draft: None, is_html: false };
    walk.push(Role::Feed);
    if let Some(tag) = walk.tokens.attribute("xml:lang") {
        walk.to.set_language(&tag);
    }
    let ended = if empty { walk.close() } else { Ok(()) };
    if let Err(trouble) = ended.and_then(|()| walk.run()) {
        walk.problem(trouble);
    }
    // What was whole of the entry in which reading ended counts.
    if let Some((draft, place)) = walk.draft.take() {
        let _ = walk.to.finish_entry(draft, place, true);
    }
}

impl<R: Read> Walk<'_, '_, '_, R> {
    /// To the end, or to what ends it.
    fn run(&mut self) -> Result<(), Trouble> {
        loop {
            match self.tokens.next() {
                Token::Start { empty } => {
                    self.start()?;
                    if empty {
                        self.close()?;
                    }
                }
                Token::End => self.end()?,
                Token::Text => {}
                Token::Trouble(trouble) => {
                    let of_words = matches!(self.role(), Some(Role::Field(f)) if f.is_words())
                        || self.role() == Some(Role::Markup);
                    if of_words {
                        self.tokens.found.clear();
                    } else {
                        self.problem(trouble);
                    }
                }
                Token::Fatal(trouble) => return Err(trouble),
                Token::Over if self.open.is_empty() => return Ok(()),
                Token::Over => return Err(Trouble::EndsEarly),
            }
        }
    }

    fn role(&self) -> Option<Role> {
        self.open.last().map(|open| open.role)
    }

    fn problem(&mut self, trouble: Trouble) {
        let found = std::mem::take(&mut self.tokens.found);
        let place = self.tokens.place;
        self.to.problem(place, trouble, &found);
    }

    fn push(&mut self, role: Role) {
        let base = self.tokens.attribute("xml:base");
        let has_base = base.is_some_and(|base| self.to.bases.open(&base));
        self.open.push(Open { name: fingerprint(&self.tokens.name), role, has_base });
    }

    fn start(&mut self) -> Result<(), Trouble> {
        // Markup in summaries nests more deeply than a feed does.
        if self.open.len() >= self.to.limits.depth_max * 4 {
            return Err(Trouble::TooDeep);
        }
        let role = self.role_of_tag();
        self.push(role);
        match role {
            Role::Entry => {
                let mut draft = Draft::default();
                if let Some(about) = self.tokens.attribute("rdf:about") {
                    draft.offer_loc(LocRank::About, &about, &self.to.bases);
                }
                self.draft = Some((draft, self.tokens.place));
            }
            Role::Field(field) => self.start_field(field),
            Role::Markup => self.keep_tag(b"<"),
            Role::Feed | Role::Other => {}
        }
        Ok(())
    }

    fn role_of_tag(&mut self) -> Role {
        let parent = self.role();
        match parent {
            Some(Role::Field(field)) if field.is_words() => return Role::Markup,
            Some(Role::Markup) => return Role::Markup,
            Some(Role::Field(_) | Role::Other) | None => return Role::Other,
            Some(Role::Feed | Role::Entry) => {}
        }
        let name = self.tokens.name.to_ascii_lowercase();
        let (prefix, local) = split(&name);
        let is_part = matches!(local, b"channel" | b"item" | b"entry");
        if self.prefix.is_none() && is_part {
            self.prefix = Some(prefix.to_vec());
        }
        let ours = self.prefix.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(prefix));
        let field = if parent == Some(Role::Entry) {
            entry_field(ours, prefix, local)
        } else {
            match local {
                b"channel" if ours && !self.is_atom => return Role::Feed,
                b"item" | b"entry" if ours => return Role::Entry,
                b"title" if ours => Some(Field::FeedTitle),
                b"description" | b"subtitle" | b"tagline" if ours => Some(Field::FeedText),
                b"link" if ours || is_atoms(prefix) => Some(Field::Home),
                b"language" if ours || prefix == b"dc" => Some(Field::Language),
                _ => None,
            }
        };
        field.map_or(Role::Other, Role::Field)
    }

    fn start_field(&mut self, field: Field) {
        self.tokens.text.clear();
        self.tokens.keeps = !field.is_words() || self.to.options.words;
        let bytes_max = if field.is_words() { SUMMARY_BYTES_MAX } else { self.to.limits.loc_bytes_max };
        self.tokens.text_bytes_max = bytes_max;
        let kind = self.tokens.attribute("type").unwrap_or_default().to_ascii_lowercase();
        if field.is_words() {
            self.is_html = !self.is_atom || kind.contains("html") || self.tokens.attribute("mode").is_some();
            self.tokens.raw = self.is_atom && kind.contains("xhtml");
        }
        let Some(href) = self.tokens.attribute(if field == Field::Summary { "src" } else { "href" }) else {
            if field == Field::Loc(LocRank::Guid)
                && self.tokens.attribute("isPermaLink").is_some_and(|v| v.eq_ignore_ascii_case("false"))
            {
                self.tokens.keeps = false;
            }
            return;
        };
        let rel = self.tokens.attribute("rel").unwrap_or_default().to_ascii_lowercase();
        let is_page = kind.is_empty() || kind.contains("html");
        let alternate = rel.is_empty() || rel == "alternate";
        match field {
            Field::Loc(rank) if alternate => {
                let rank = if is_page { rank } else { rank.max(LocRank::OtherType) };
                self.offer(|draft, bases| draft.offer_loc(rank, &href, bases));
            }
            Field::Summary => self.offer(|draft, bases| draft.offer_loc(LocRank::Source, &href, bases)),
            Field::Home if alternate && is_page => self.to.set_home(&href),
            Field::Home if rel == "next" => self.to.set_next(&href),
            _ => {}
        }
        if matches!(field, Field::Loc(_) | Field::Home) {
            // Atom has its addresses in attributes, RSS in text; what stands between Atom's tags is nothing.
            self.tokens.keeps = false;
        }
    }

    fn offer(&mut self, offer: impl FnOnce(&mut Draft, &super::Bases)) {
        if let Some((draft, _)) = &mut self.draft {
            offer(draft, &self.to.bases);
        }
    }

    /// Puts a tag of markup back together, for the reader of HTML.
    fn keep_tag(&mut self, opening: &[u8]) {
        if self.tokens.keeps && self.tokens.text.len() < SUMMARY_BYTES_MAX {
            let (_, local) = split(&self.tokens.name);
            let local = local.to_vec();
            self.tokens.text.extend_from_slice(opening);
            self.tokens.text.extend_from_slice(&local);
            self.tokens.text.push(b'>');
            self.is_html = true;
        }
    }

    fn end(&mut self) -> Result<(), Trouble> {
        let name = fingerprint(&self.tokens.name);
        let Some(depth) = self.open.iter().rposition(|open| open.name == name) else {
            if self.role() != Some(Role::Markup) {
                self.problem_at_tag();
            }
            return Ok(());
        };
        let inner = &self.open[depth + 1..];
        if inner.iter().any(|open| open.role != Role::Markup) {
            self.problem_at_tag();
        }
        while self.open.len() > depth {
            self.close()?;
        }
        Ok(())
    }

    fn problem_at_tag(&mut self) {
        self.tokens.found = String::from_utf8_lossy(&self.tokens.name).into_owned();
        self.problem(Trouble::Mismatch);
    }

    /// Closes the innermost element.
    fn close(&mut self) -> Result<(), Trouble> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        match open.role {
            Role::Entry => {
                if let Some((draft, place)) = self.draft.take() {
                    self.to.finish_entry(draft, place, false)?;
                }
            }
            Role::Field(field) => self.finish_field(field),
            Role::Markup => self.keep_tag(b"</"),
            Role::Feed | Role::Other => {}
        }
        if open.has_base {
            self.to.bases.stack.pop();
        }
        Ok(())
    }

    fn finish_field(&mut self, field: Field) {
        let kept = std::mem::take(&mut self.tokens.keeps);
        self.tokens.raw = false;
        if !kept {
            return;
        }
        let text = self.tokens.trimmed();
        let is_html = self.is_html;
        match field {
            Field::Loc(rank) => self.offer(|draft, bases| draft.offer_loc(rank, &text, bases)),
            Field::Date(rank) => self.offer(|draft, _| draft.offer_date(rank, &text)),
            Field::Title => {
                let title = self.to.words.reduce(&text, is_html);
                self.offer(|draft, _| draft.title = title);
            }
            Field::Summary => {
                let summary = self.to.words.reduce(&text, is_html);
                self.offer(|draft, _| draft.offer_summary(summary));
            }
            Field::FeedTitle => self.to.set_title(&text, is_html),
            Field::FeedText => self.to.set_description(&text, is_html),
            Field::Home => self.to.set_home(&text),
            Field::Language => self.to.set_language(&text),
        }
    }
}

/// What an element directly inside an entry is.
fn entry_field(ours: bool, prefix: &[u8], local: &[u8]) -> Option<Field> {
    if ours {
        return Some(match local {
            b"link" => Field::Loc(LocRank::Link),
            b"guid" => Field::Loc(LocRank::Guid),
            b"id" => Field::Loc(LocRank::Id),
            b"title" => Field::Title,
            b"description" | b"summary" | b"content" => Field::Summary,
            b"updated" | b"modified" => Field::Date(DateRank::Updated),
            b"pubdate" | b"published" | b"issued" | b"date" => Field::Date(DateRank::Published),
            b"created" => Field::Date(DateRank::Created),
            _ => return None,
        });
    }
    Some(match (prefix, local) {
        (atom, b"link") if is_atoms(atom) => Field::Loc(LocRank::Foreign),
        (atom, b"updated") if is_atoms(atom) => Field::Date(DateRank::Updated),
        (b"dcterms", b"modified") => Field::Date(DateRank::Updated),
        (b"dc", b"date") | (b"dcterms", b"issued") => Field::Date(DateRank::Published),
        (b"dcterms", b"created") => Field::Date(DateRank::Created),
        (b"content", b"encoded") => Field::Summary,
        _ => return None,
    })
}

/// Whether everybody takes this prefix for Atom.
fn is_atoms(prefix: &[u8]) -> bool {
    matches!(prefix, b"atom" | b"atom10" | b"a10")
}
