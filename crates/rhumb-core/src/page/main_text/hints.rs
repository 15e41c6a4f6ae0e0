//! What the attributes of a container say about its contents: words in `class` and `id`, roles, item properties, styles.
//!
//! Authors name containers after what is in them (`entry-content`, `share-bar`), in English nearly everywhere. The names are
//! searched for a few hundred known pieces; a piece counts wherever it stands in a name, as `comment` does in
//! `disqus_comments`, and a short one only as a whole word (`ad`).
//!
//! Invariant: time linear in the attribute values, of which only [`VALUE_BYTES_MAX`] bytes each are read.

/// Bytes read of one attribute value.
const VALUE_BYTES_MAX: usize = 256;

/// What is known of a container, as a set of flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Hints(u16);

impl Hints {
    /// Named like a text.
    pub(super) const GOOD: Hints = Hints(1);
    /// Named like something beside the text.
    pub(super) const BAD: Hints = Hints(1 << 1);
    /// Named like something that hardly ever holds the text.
    pub(super) const UNLIKELY: Hints = Hints(1 << 2);
    /// Named like something that may hold it after all.
    pub(super) const MAYBE: Hints = Hints(1 << 3);
    /// Named like what stands in the middle of texts without belonging to them: share bars, related links, sign-up forms.
    pub(super) const JUNK: Hints = Hints(1 << 4);
    /// Named the way the body of an article is, or marked as such.
    pub(super) const BODY: Hints = Hints(1 << 5);
    /// Not shown.
    pub(super) const HIDDEN: Hints = Hints(1 << 6);
    /// Its role is another than to hold text.
    pub(super) const ROLE: Hints = Hints(1 << 7);
    /// Comments of readers.
    pub(super) const COMMENTS: Hints = Hints(1 << 8);
    /// What an image shows.
    pub(super) const CAPTION: Hints = Hints(1 << 9);
    /// The id was named like a text, too.
    pub(super) const GOOD_ID: Hints = Hints(1 << 10);
    /// The id was named like something beside the text, too.
    pub(super) const BAD_ID: Hints = Hints(1 << 11);
    /// Who wrote it and when.
    pub(super) const BYLINE: Hints = Hints(1 << 12);

    /// Asks for consent to something.
    pub(super) const NOTICE: Hints = Hints(1 << 13);

    /// Whether any of these flags is set.
    #[inline]
    pub(super) fn any(self, of: Hints) -> bool {
        self.0 & of.0 != 0
    }

    /// Both sets.
    #[inline]
    pub(super) const fn with(self, other: Hints) -> Hints {
        Hints(self.0 | other.0)
    }

    /// Adds what an attribute says; name and value as written.
    #[inline]
    pub(in super::super) fn read(&mut self, name: &str, value: &str) {
        match name.len() {
            2 if name.eq_ignore_ascii_case("id") => {
                let found = names(value);
                let moved = (found.0 & Hints::GOOD.0) << 10 | (found.0 & Hints::BAD.0) << 10;
                self.0 |= found.0 & !(Hints::GOOD.0 | Hints::BAD.0) | moved;
            }
            5 if name.eq_ignore_ascii_case("class") => self.0 |= names(value).0,
            5 if name.eq_ignore_ascii_case("style") && hides(value) => self.0 |= Hints::HIDDEN.0,
            4 if name.eq_ignore_ascii_case("role") => {
                const OTHERS: [&str; 12] = [
                    "menu",
                    "menubar",
                    "complementary",
                    "navigation",
                    "alert",
                    "alertdialog",
                    "dialog",
                    "contentinfo",
                    "search",
                    "banner",
                    "toolbar",
                    "tablist",
                ];
                if OTHERS.iter().any(|r| value.trim_ascii().eq_ignore_ascii_case(r)) {
                    self.0 |= Hints::ROLE.0;
                }
            }
            6 if name.eq_ignore_ascii_case("hidden") => self.0 |= Hints::HIDDEN.0,
            11 if name.eq_ignore_ascii_case("aria-hidden") && value.eq_ignore_ascii_case("true") => {
                self.0 |= Hints::HIDDEN.0;
            }
            8 if name.eq_ignore_ascii_case("itemprop") => {
                let mut words = value.split_ascii_whitespace();
                if words.any(|w| w.eq_ignore_ascii_case("articleBody") || w.eq_ignore_ascii_case("reviewBody")) {
                    self.0 |= Hints::BODY.0;
                } else if value.eq_ignore_ascii_case("author") {
                    self.0 |= Hints::BYLINE.0;
                }
            }
            _ => {}
        }
    }

    /// How the names of class and id weigh, as readers of articles have long done it: 25 for each.
    pub(super) fn weight(self) -> f32 {
        let of = |flag: Hints| if self.any(flag) { 25.0 } else { 0.0 };
        of(Hints::GOOD) - of(Hints::BAD) + of(Hints::GOOD_ID) - of(Hints::BAD_ID)
    }
}

/// Whether a style hides its element.
fn hides(style: &str) -> bool {
    let after = |property: &str, value: &str| {
        let bytes = style.as_bytes();
        let Some(at) = memchr::memmem::find(bytes, property.as_bytes()) else { return false };
        let rest = bytes[at + property.len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|rest| rest.trim_ascii_start().starts_with(value.as_bytes()))
    };
    style.len() >= 12 && (after("display", "none") || after("visibility", "hidden"))
}

/// A piece of a name. Whole: it must stand between non-letters.
struct Piece {
    text: &'static [u8],
    flags: Hints,
    whole: bool,
}

const fn part(text: &'static str, flags: Hints) -> Piece {
    Piece { text: text.as_bytes(), flags, whole: false }
}

const fn word(text: &'static str, flags: Hints) -> Piece {
    Piece { text: text.as_bytes(), flags, whole: true }
}

const GOOD: Hints = Hints::GOOD;
const BAD: Hints = Hints::BAD;
const BODY: Hints = Hints::BODY.with(GOOD).with(Hints::MAYBE);
const GOOD_MAYBE: Hints = GOOD.with(Hints::MAYBE);
const BAD_UNLIKELY: Hints = BAD.with(Hints::UNLIKELY);
const JUNK: Hints = Hints::JUNK.with(BAD);
const JUNK_UNLIKELY: Hints = JUNK.with(Hints::UNLIKELY);
const COMMENTS: Hints = Hints::COMMENTS.with(BAD_UNLIKELY);
const NOTICE: Hints = Hints::NOTICE.with(JUNK_UNLIKELY);
const UNLIKELY: Hints = Hints::UNLIKELY;

/// The pieces. `_` in a name is read as `-` and letters in lower case.
static PIECES: &[Piece] = &[
    part("article", GOOD_MAYBE),
    part("body", GOOD_MAYBE),
    part("content", GOOD_MAYBE),
    part("main", GOOD_MAYBE),
    part("column", Hints::MAYBE),
    part("entry", GOOD),
    part("page", GOOD),
    part("post", GOOD),
    part("text", GOOD),
    part("blog", GOOD),
    part("story", GOOD),
    part("articlebody", BODY),
    part("article-body", BODY),
    part("article--body", BODY),
    part("articlecontent", BODY),
    part("article-content", BODY),
    part("article--content", BODY),
    part("articletext", BODY),
    part("article-text", BODY),
    part("article--text", BODY),
    part("article-main", BODY),
    part("storybody", BODY),
    part("story-body", BODY),
    part("story--body", BODY),
    part("story-content", BODY),
    part("storycontent", BODY),
    part("story-text", BODY),
    part("entry-content", BODY),
    part("entrycontent", BODY),
    part("entry-text", BODY),
    part("entrytext", BODY),
    part("entry-body", BODY),
    part("post-content", BODY),
    part("post--content", BODY),
    part("postcontent", BODY),
    part("post-body", BODY),
    part("postbody", BODY),
    part("post-entry", BODY),
    part("post-text", BODY),
    part("posttext", BODY),
    part("body-copy", BODY),
    part("body-text", BODY),
    part("bodytext", BODY),
    part("body-content", BODY),
    part("content-body", BODY),
    part("content--body", BODY),
    part("content--article", BODY),
    part("content-article", BODY),
    part("single-content", BODY),
    part("node-content", BODY),
    part("field-name-body", BODY),
    part("field--name-body", BODY),
    part("news-text", BODY),
    part("news-body", BODY),
    part("rich-text", BODY),
    part("richtext", BODY),
    part("td-post-content", BODY),
    part("mw-content-text", BODY),
    part("comment", COMMENTS),
    part("disqus", COMMENTS),
    part("replies", COMMENTS),
    part("respond", COMMENTS),
    part("remark", UNLIKELY),
    part("shoutbox", BAD_UNLIKELY),
    part("combx", BAD_UNLIKELY),
    part("community", UNLIKELY),
    part("banner", BAD_UNLIKELY),
    part("breadcrumb", JUNK_UNLIKELY),
    part("cover-wrap", UNLIKELY),
    word("extra", UNLIKELY),
    part("footer", BAD_UNLIKELY),
    part("gdpr", NOTICE),
    part("cookie", NOTICE),
    part("consent", NOTICE),
    part("header", UNLIKELY),
    part("legends", UNLIKELY),
    part("menu", UNLIKELY),
    part("navbar", JUNK_UNLIKELY),
    part("navigation", JUNK_UNLIKELY),
    word("nav", JUNK_UNLIKELY),
    part("related", JUNK_UNLIKELY),
    part("recommend", JUNK_UNLIKELY),
    part("rss", UNLIKELY),
    part("sidebar", BAD_UNLIKELY),
    part("skyscraper", JUNK_UNLIKELY),
    part("social", JUNK_UNLIKELY),
    part("sponsor", JUNK_UNLIKELY),
    part("supplemental", UNLIKELY),
    word("ad", JUNK_UNLIKELY),
    word("ads", JUNK_UNLIKELY),
    word("advert", JUNK_UNLIKELY),
    part("advertis", JUNK_UNLIKELY),
    part("adsense", JUNK_UNLIKELY),
    part("agegate", JUNK_UNLIKELY),
    part("pagination", JUNK_UNLIKELY),
    part("pager", JUNK_UNLIKELY),
    part("popup", JUNK_UNLIKELY),
    part("modal", JUNK_UNLIKELY),
    part("overlay", UNLIKELY),
    part("newsletter", JUNK_UNLIKELY),
    part("subscri", JUNK),
    part("signup", JUNK),
    part("sign-up", JUNK),
    part("promo", JUNK),
    part("share", JUNK),
    part("sharing", JUNK),
    part("addthis", JUNK),
    part("addtoany", JUNK),
    part("sharedaddy", JUNK),
    part("outbrain", JUNK),
    part("taboola", JUNK),
    part("trending", JUNK),
    part("most-read", JUNK),
    part("mostread", JUNK),
    part("popular", JUNK),
    part("read-more", JUNK),
    part("readmore", JUNK),
    part("read-next", JUNK),
    part("see-also", JUNK),
    part("teaser", JUNK),
    part("toolbar", JUNK),
    part("skip-link", JUNK),
    part("screen-reader", JUNK),
    part("sr-only", JUNK),
    part("visually-hidden", JUNK),
    part("visuallyhidden", JUNK),
    part("print-only", JUNK),
    part("printonly", JUNK),
    part("noprint", BAD),
    part("hidden", BAD),
    word("hid", BAD),
    word("hide", BAD),
    part("contact", BAD),
    part("masthead", BAD),
    part("media", BAD),
    part("meta", BAD),
    part("scroll", BAD),
    part("shopping", BAD),
    part("tags", JUNK),
    part("taglist", JUNK),
    part("tag-list", JUNK),
    part("keywords", JUNK),
    part("widget", BAD),
    part("tool-", BAD),
    part("author-bio", JUNK),
    part("author-box", JUNK),
    part("authorbox", JUNK),
    part("about-author", JUNK),
    part("about-the-author", JUNK),
    part("author-info", JUNK),
    part("post-author", Hints::BYLINE),
    part("byline", Hints::BYLINE),
    part("dateline", Hints::BYLINE),
    part("pubdate", Hints::BYLINE),
    part("post-meta", JUNK),
    part("entry-meta", JUNK),
    part("entry-utility", JUNK),
    part("article-meta", JUNK),
    part("timestamp", Hints::BYLINE),
    part("caption", Hints::CAPTION),
    part("copyright", JUNK),
    part("donat", JUNK),
    part("prevnext", JUNK),
    part("prev-next", JUNK),
    part("nextprev", JUNK),
    part("post-nav", JUNK),
    part("jump-link", JUNK),
    part("rating", JUNK),
    part("likes", JUNK),
    part("feedback", JUNK),
    part("reflist", Hints::JUNK),
    part("mw-editsection", JUNK),
    part("navbox", JUNK),
    part("catlinks", JUNK),
    part("print", BAD),
];

/// Bits of the table below.
const BUCKETS_LOG2: u32 = 10;
const BUCKETS: usize = 1 << BUCKETS_LOG2;
const CHAIN_END: u8 = u8::MAX;

/// The pieces by a hash of their first three letters (two and a filler for words of two): chains of indices.
struct Index {
    heads: [u8; BUCKETS],
    next: [u8; 256],
}

static INDEX: Index = {
    let mut index = Index { heads: [CHAIN_END; BUCKETS], next: [CHAIN_END; 256] };
    assert!(PIECES.len() < CHAIN_END as usize, "an index must fit a byte");
    let mut i = 0;
    while i < PIECES.len() {
        let text = PIECES[i].text;
        let bucket = bucket(text[0], text[1], if text.len() > 2 { text[2] } else { b'-' });
        index.next[i] = index.heads[bucket];
        index.heads[bucket] = i as u8;
        i += 1;
    }
    index
};

#[inline]
const fn bucket(a: u8, b: u8, c: u8) -> usize {
    let key = a as u32 | (b as u32) << 8 | (c as u32) << 16;
    (key.wrapping_mul(0x9E37_79B1) >> (32 - BUCKETS_LOG2)) as usize
}

/// What the names in a class list or an id say.
fn names(value: &str) -> Hints {
    // A separator before and after spares the search its edges.
    let mut name = [b'-'; VALUE_BYTES_MAX + 4];
    let length = value.len().min(VALUE_BYTES_MAX);
    for (to, from) in name[1..].iter_mut().zip(&value.as_bytes()[..length]) {
        *to = match from {
            b'A'..=b'Z' => from | 0x20,
            b'a'..=b'z' | b'0'..=b'9' | 0x80.. => *from,
            _ => b'-',
        };
    }
    let mut found = Hints::default();
    for at in 1..=length {
        let mut piece = INDEX.heads[bucket(name[at], name[at + 1], name[at + 2])];
        while piece != CHAIN_END {
            let Piece { text, flags, whole } = &PIECES[piece as usize];
            let end = at + text.len();
            if end <= length + 2
                && name[at..end] == **text
                && (!whole || (!name[at - 1].is_ascii_alphanumeric() && !name[end].is_ascii_alphanumeric()))
            {
                found = found.with(*flags);
            }
            piece = INDEX.next[piece as usize];
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood() {
        let check = |name: &str, wanted: Hints, unwanted: Hints| {
            let found = names(name);
            assert_eq!(found.0 & wanted.0, wanted.0, "{name}: {found:?}");
            assert!(!found.any(unwanted), "{name}: {found:?}");
        };
        check("entry-content", BODY, BAD_UNLIKELY);
        check("articleBody", BODY, BAD_UNLIKELY);
        check("c-article__body", BODY, BAD_UNLIKELY);
        check("td ad x", JUNK_UNLIKELY, GOOD);
        check("AD", JUNK_UNLIKELY, GOOD);
        check("shadow adjust", Hints::default(), JUNK);
        check("disqus_comments", COMMENTS, GOOD);
        check("", Hints::default(), GOOD);
        check(&"x".repeat(1000), Hints::default(), GOOD);
        check(&"ä".repeat(300), Hints::default(), GOOD);
    }

    #[test]
    fn attributes_are_understood() {
        let check = |name: &str, value: &str, wanted: Hints| {
            let mut hints = Hints::default();
            hints.read(name, value);
            assert_eq!(hints, wanted, "{name}={value}");
        };
        check("HIDDEN", "", Hints::HIDDEN);
        check("aria-hidden", "true", Hints::HIDDEN);
        check("aria-hidden", "false", Hints::default());
        check("style", "color:red; display : none", Hints::HIDDEN);
        check("style", "display:block", Hints::default());
        check("role", " Navigation ", Hints::ROLE);
        check("role", "main", Hints::default());
        check("itemprop", "description articleBody", Hints::BODY);
        check("id", "story", Hints::GOOD_ID);
        check("data-x", "comment", Hints::default());
    }
}
