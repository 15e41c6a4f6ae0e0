//! What the tags of a sitemap mean, and what the lines of a plain one.
//!
//! Names are compared without their prefix and without regard to case, so that any namespace or none will do; but a field counts only
//! directly inside its entry and with the prefix of the root, so that `image:loc` is nobody's address.

use std::io::Read;

use super::{Sitemap, SitemapKind, SitemapLimits, SitemapUrl, Trouble, fields};
use crate::feed::{self, Feed, FeedOptions};
use crate::url::Url;
use crate::xml::{Place, Source, Token, Tokens, fingerprint, split};

/// So many lines of a plain file without one address, and it is not a sitemap.
const LINES_TRIED: u32 = 20;

/// Reads all there is. Addresses in feeds may be relative to `own`; those of sitemaps may not.
pub(super) fn walk<R: Read>(
    source: &mut Source<R>,
    own: Option<&url::Url>,
    limits: &SitemapLimits,
    sitemap: &mut Sitemap,
) {
    source.skip_space();
    let place = source.place();
    let plain = FeedOptions { words: false, ..FeedOptions::default() };
    match source.peek() {
        Some(b'<') => {
            let mut feed = Feed::default();
            match xml(source, own, limits, &plain, sitemap, &mut feed) {
                Root::Feed => *sitemap = feed.listing,
                Root::Sitemap => {}
            }
        }
        Some(b'{') => {
            let mut feed = Feed::default();
            feed::read_json(source, own, limits, &plain, &mut feed);
            *sitemap = feed.listing;
        }
        Some(_) => text(source, limits, sitemap),
        None => {
            let trouble = source.trouble().unwrap_or(Trouble::NotASitemap);
            sitemap.problem(limits, place, trouble, "");
        }
    }
}

/// Reads a feed in XML; anything else is trouble.
pub(crate) fn feed<R: Read>(
    source: &mut Source<R>,
    own: Option<&url::Url>,
    limits: &SitemapLimits,
    options: &FeedOptions,
    feed: &mut Feed,
) {
    let mut sitemap = Sitemap::default();
    let place = source.place();
    match xml(source, own, limits, options, &mut sitemap, feed) {
        Root::Feed => {}
        Root::Sitemap if sitemap.kind.is_some() => feed.listing.problem(limits, place, Trouble::NotASitemap, ""),
        Root::Sitemap => feed.listing = sitemap,
    }
}

/// Who reads what is behind the root.
enum Root {
    Sitemap,
    Feed,
}

/// What an open element is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Root,
    Entry,
    Field(Field),
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Loc,
    Lastmod,
    Changefreq,
    Priority,
}

/// An entry that is being read, its fields as written.
struct Draft {
    place: Place,
    fields: [Option<String>; 4],
}

struct Walk<'a, 's, R: Read> {
    tokens: Tokens<'s, R>,
    limits: &'a SitemapLimits,
    sitemap: &'a mut Sitemap,
    /// Open elements: the name's fingerprint, and what it is.
    open: Vec<(u64, Role)>,
    prefix: Vec<u8>,
    draft: Option<Draft>,
}

fn xml<R: Read>(
    source: &mut Source<R>,
    own: Option<&url::Url>,
    limits: &SitemapLimits,
    options: &FeedOptions,
    sitemap: &mut Sitemap,
    feed: &mut Feed,
) -> Root {
    let tokens = Tokens::new(source, limits, feed::ATTRIBUTES);
    let mut walk = Walk { tokens, limits, sitemap, open: Vec::new(), prefix: Vec::new(), draft: None };
    match walk.run() {
        Ok(None) => {}
        Ok(Some(Feeds { empty })) => {
            let mut before = std::mem::take(walk.sitemap);
            feed.listing.errors.append(&mut before.errors);
            feed::read_xml(&mut walk.tokens, own, limits, options, feed, empty);
            return Root::Feed;
        }
        Err(trouble) => walk.problem(trouble),
    }
    // What was whole of the entry in which reading ended counts.
    let _ = walk.finish_entry(true);
    Root::Sitemap
}

/// The root is that of a feed, and perhaps there is nothing in it.
struct Feeds {
    empty: bool,
}

impl<R: Read> Walk<'_, '_, R> {
    /// To the end, to what ends it, or to the root of a feed.
    fn run(&mut self) -> Result<Option<Feeds>, Trouble> {
        loop {
            match self.tokens.next() {
                Token::Start { empty } if self.sitemap.kind.is_none() && is_feed(&self.tokens.name) => {
                    return Ok(Some(Feeds { empty }));
                }
                Token::Start { empty } => {
                    self.start()?;
                    if empty {
                        self.close()?;
                    }
                }
                Token::End => self.end()?,
                Token::Text => {}
                Token::Trouble(trouble) => self.problem(trouble),
                Token::Fatal(trouble) => return Err(trouble),
                Token::Over if self.open.is_empty() && self.sitemap.kind.is_some() => return Ok(None),
                Token::Over if self.sitemap.kind.is_none() => return Err(Trouble::NotASitemap),
                Token::Over => return Err(Trouble::EndsEarly),
            }
        }
    }

    fn problem(&mut self, trouble: Trouble) {
        let found = std::mem::take(&mut self.tokens.found);
        self.sitemap.problem(self.limits, self.tokens.place, trouble, &found);
    }

    fn start(&mut self) -> Result<(), Trouble> {
        let (prefix, local) = split(&self.tokens.name);
        let is = |name: &str| local.eq_ignore_ascii_case(name.as_bytes());
        let ours = prefix == self.prefix;
        let field = |known: &[(&str, Field)]| {
            let found = known.iter().find(|(name, _)| ours && is(name));
            found.map_or(Role::Other, |&(_, field)| Role::Field(field))
        };
        let role = match self.open.last().map(|&(_, role)| role) {
            None if self.sitemap.kind.is_some() => Role::Other,
            None => {
                let kind = if is("urlset") {
                    SitemapKind::Urlset
                } else if is("sitemapindex") {
                    SitemapKind::Index
                } else {
                    self.tokens.found = String::from_utf8_lossy(&self.tokens.name).into_owned();
                    return Err(Trouble::NotASitemap);
                };
                self.sitemap.kind = Some(kind);
                self.prefix = prefix.to_vec();
                Role::Root
            }
            Some(Role::Root)
                if ours && is(if self.sitemap.kind == Some(SitemapKind::Index) { "sitemap" } else { "url" }) =>
            {
                Role::Entry
            }
            Some(Role::Entry) => field(&[
                ("loc", Field::Loc),
                ("lastmod", Field::Lastmod),
                ("changefreq", Field::Changefreq),
                ("priority", Field::Priority),
            ]),
            Some(_) => Role::Other,
        };
        if self.open.len() >= self.limits.depth_max {
            return Err(Trouble::TooDeep);
        }
        match role {
            Role::Entry => self.draft = Some(Draft { place: self.tokens.place, fields: Default::default() }),
            Role::Field(_) => {
                self.tokens.text.clear();
                self.tokens.keeps = true;
            }
            Role::Root | Role::Other => {}
        }
        self.open.push((fingerprint(&self.tokens.name), role));
        Ok(())
    }

    fn end(&mut self) -> Result<(), Trouble> {
        let name = fingerprint(&self.tokens.name);
        let Some(depth) = self.open.iter().rposition(|&(open, _)| open == name) else {
            self.problem_at_tag(Trouble::Mismatch);
            return Ok(());
        };
        if depth + 1 < self.open.len() {
            self.problem_at_tag(Trouble::Mismatch);
        }
        while self.open.len() > depth {
            self.close()?;
        }
        Ok(())
    }

    fn problem_at_tag(&mut self, trouble: Trouble) {
        self.tokens.found = String::from_utf8_lossy(&self.tokens.name).into_owned();
        self.problem(trouble);
    }

    /// Closes the innermost element.
    fn close(&mut self) -> Result<(), Trouble> {
        match self.open.pop() {
            Some((_, Role::Entry)) => self.finish_entry(false)?,
            Some((_, Role::Field(field))) => {
                self.tokens.keeps = false;
                if let Some(draft) = &mut self.draft
                    && draft.fields[field as usize].is_none()
                    && !self.tokens.text.is_empty()
                {
                    draft.fields[field as usize] = Some(self.tokens.trimmed());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Judges the fields of an entry and keeps it. One that is `cut` off counts if its address was there.
    fn finish_entry(&mut self, cut: bool) -> Result<(), Trouble> {
        let Some(Draft { place, fields: [loc, lastmod, changefreq, priority] }) = self.draft.take() else {
            return Ok(());
        };
        let Some(loc) = loc.filter(|loc| !loc.is_empty()) else {
            if !cut {
                self.sitemap.problem(self.limits, place, Trouble::NoLoc, "");
            }
            return Ok(());
        };
        if let Some(trouble) = loc_trouble(&loc, self.limits) {
            self.sitemap.problem(self.limits, place, trouble, &loc);
            return Ok(());
        }
        if self.sitemap.urls.len() >= self.limits.urls_max {
            return Err(Trouble::TooManyUrls);
        }
        let lastmod = self.judged(place, lastmod, Trouble::BadLastmod, |t| {
            (t.len() <= 64 && crate::dates::w3c(t).is_some()).then(|| t.to_owned())
        });
        let changefreq = self.judged(place, changefreq, Trouble::BadChangefreq, fields::changefreq);
        let priority = self.judged(place, priority, Trouble::BadPriority, fields::priority);
        self.sitemap.urls.push(SitemapUrl { loc, lastmod, changefreq, priority });
        Ok(())
    }

    fn judged<T>(
        &mut self,
        place: Place,
        text: Option<String>,
        trouble: Trouble,
        judge: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = text.filter(|t| !t.is_empty())?;
        let value = judge(&text);
        if value.is_none() {
            self.sitemap.problem(self.limits, place, trouble, &text);
        }
        value
    }
}

fn loc_trouble(loc: &str, limits: &SitemapLimits) -> Option<Trouble> {
    if loc.len() > limits.loc_bytes_max {
        return Some(Trouble::LocTooLong);
    }
    (!Url::parse(loc).is_ok_and(|url| url.is_web())).then_some(Trouble::BadLoc)
}

/// Whether a root of this name is that of a feed.
fn is_feed(name: &[u8]) -> bool {
    let (_, local) = split(name);
    ["rss", "feed", "rdf"].iter().any(|root| local.eq_ignore_ascii_case(root.as_bytes()))
}

/// One address a line. The protocol knows no comments, but people write them.
fn text<R: Read>(source: &mut Source<R>, limits: &SitemapLimits, sitemap: &mut Sitemap) {
    let mut line = Vec::new();
    let mut refused = 0;
    while source.peek().is_some() {
        let place = source.place();
        read_line(source, limits.loc_bytes_max, &mut line);
        let address = String::from_utf8_lossy(line.trim_ascii());
        if address.is_empty() || address.starts_with('#') {
            continue;
        }
        if let Some(trouble) = loc_trouble(&address, limits) {
            refused += 1;
            if sitemap.urls.is_empty() && refused == LINES_TRIED {
                sitemap.errors.clear();
                return sitemap.problem(limits, place, Trouble::NotASitemap, &address);
            }
            sitemap.problem(limits, place, trouble, &address);
            continue;
        }
        if sitemap.urls.len() >= limits.urls_max {
            return sitemap.problem(limits, place, Trouble::TooManyUrls, "");
        }
        sitemap.kind = Some(SitemapKind::Text);
        sitemap.urls.push(SitemapUrl { loc: address.into_owned(), lastmod: None, changefreq: None, priority: None });
    }
    let place = source.place();
    if let Some(trouble) = source.trouble() {
        sitemap.problem(limits, place, trouble, "");
    } else if sitemap.kind.is_none() {
        sitemap.problem(limits, place, Trouble::NotASitemap, "");
    }
}

/// Reads a line with its end; of a long one only one byte more than `bytes_max` is kept.
fn read_line<R: Read>(source: &mut Source<R>, bytes_max: usize, line: &mut Vec<u8>) {
    line.clear();
    loop {
        let some = source.fill();
        if some.is_empty() {
            return;
        }
        let end = memchr::memchr2(b'\n', b'\r', some);
        let n = end.unwrap_or(some.len());
        let room = (bytes_max + 1).saturating_sub(line.len());
        line.extend_from_slice(&some[..n.min(room)]);
        source.consume(n + usize::from(end.is_some()));
        if end.is_some() {
            return;
        }
    }
}
