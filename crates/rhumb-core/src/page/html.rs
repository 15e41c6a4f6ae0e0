//! The extractor: one pass over an HTML page for its title, links with anchor text, visible text and what it says
//! about itself. No tree is built.
//!
//! Where a browser's tree would differ from the order of the tags, the few rules that matter to a crawler are kept by
//! hand: an `<a>` ends at the next `<a>`, at the end of the table cell it was opened in, or at the end of the page; the
//! contents of `<template>` are not part of the page; inside SVG and MathML scripts and titles are markup.
//!
//! Visible text leaves out title, script, style, textarea, iframe, noembed, noframes (never parsed as markup), template,
//! SVG's title and desc, and noscript. A `<noscript>`'s links count nevertheless: we are a reader without scripting, but
//! what it has to say is mostly that we are. `xmp` and `plaintext` are text.
//!
//! Invariant: time linear in the page, memory linear in [`ExtractOptions`]' bounds; whatever exceeds a bound is left out
//! and counted, never an error.

use super::charref::push_attribute;
use super::gist::GistReader;
use super::main_text::{Hints, MainText, SiteTemplate, Tree};
use super::meta::{Refresh, Rel, srcset};
use super::tag::{Content, Tag};
use super::text::{Collapsed, Gap, cut};
use super::tokenize::{Attribute, Keep, Token, Tokenizer};
use super::{Gist, Heading, LinkTag, MetaRobots, Page};
use crate::url::Url;

/// What to extract, and how much at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtractOptions {
    /// Also report what the page is built from: images, scripts, embedded media, style sheets, icons.
    pub resources: bool,
    /// Collect visible text, headings and emphasis. Links and their texts come either way.
    pub text: bool,
    /// Also choose the main text: the page without menus, sidebars and footers. Needs `text`.
    pub main_text: bool,
    /// Write the main text as markdown, too. Needs `main_text`.
    pub markdown: bool,
    /// Our product token: `<meta name=…>` with it speaks to us as `robots` does.
    pub agent: String,
    /// Links kept of one page.
    pub links_max: usize,
    /// Visible text kept.
    pub text_bytes_max: usize,
    /// Title kept.
    pub title_bytes_max: usize,
    /// Text kept of one link.
    pub anchor_bytes_max: usize,
    /// Longest address, undecoded; a link with a longer one is left out.
    pub href_bytes_max: usize,
    /// Longest other attribute value; the rest of it is cut off.
    pub value_bytes_max: usize,
    /// Headings kept, and as many emphasised spans.
    pub marks_max: usize,
    /// Robots meta elements kept, and as many hreflang alternates times eight.
    pub metas_max: usize,
    /// Attributes noticed of one tag.
    pub attributes_max: usize,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        ExtractOptions {
            resources: false,
            text: true,
            main_text: false,
            markdown: false,
            agent: "rhumb".to_owned(),
            links_max: 5_000,
            text_bytes_max: 2 << 20,
            title_bytes_max: 1 << 10,
            anchor_bytes_max: 256,
            href_bytes_max: 8 << 10,
            value_bytes_max: 2 << 10,
            marks_max: 2_000,
            metas_max: 16,
            attributes_max: 256,
        }
    }
}

/// Extracts pages one after the other, keeping its working memory.
#[derive(Debug, Default)]
pub struct Extractor {
    attributes: Vec<Attribute>,
    text: Collapsed,
    anchor: Collapsed,
    value: String,
    gist: GistReader,
    main_text: MainText,
    /// Where the next page was found.
    own: Option<url::Url>,
    /// Whether the next page's gist is wanted.
    wants_gist: bool,
}

impl Extractor {
    /// An extractor with no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the gist of the next page too, which was found at `url`.
    pub fn want_gist(&mut self, url: &Url) {
        self.gist.start(url);
        self.wants_gist = true;
    }

    /// Leaves out of the main text of the following pages what the pages of their site have in common, and learns that from
    /// them; all must be of the template's site. [`Extractor::take_template`] gives the template back.
    pub fn use_template(&mut self, template: SiteTemplate) {
        self.main_text.template = Some(template);
    }

    /// The template in use, with what it learned; pages to come are judged alone.
    pub fn take_template(&mut self) -> Option<SiteTemplate> {
        self.main_text.template.take()
    }

    /// The next page was found there: the links in its markdown lead from there. Otherwise they stay as written.
    pub(super) fn found_at(&mut self, url: Option<&str>) {
        self.own = url.and_then(|url| url::Url::parse(url).ok());
    }

    /// The gist of a page that is plain text, if it was wanted.
    pub(super) fn gist_of_text(&mut self, text: &str) -> Gist {
        if std::mem::take(&mut self.wants_gist) {
            self.gist.read_lines(text);
        }
        self.gist.finish()
    }

    /// Extracts a page.
    pub fn extract(&mut self, html: &str, options: &ExtractOptions) -> Page {
        let mut page = Page::default();
        self.extract_into(html, options, &mut page);
        page
    }

    /// Extracts into a page that is cleared first and keeps its memory.
    pub fn extract_into(&mut self, html: &str, options: &ExtractOptions, page: &mut Page) {
        self.extract_markup(html, options, false, page);
    }

    /// The same for a page that came as XHTML, if `xhtml`: there `<script/>` is empty and CDATA sections are text.
    pub(super) fn extract_markup(&mut self, html: &str, options: &ExtractOptions, xhtml: bool, page: &mut Page) {
        page.clear();
        self.text.start(std::mem::take(&mut page.text), options.text_bytes_max);
        self.value.clear();
        let wants_main_text = options.main_text && options.text && u32::try_from(html.len()).is_ok();
        let keep = match wants_main_text {
            true => Keep::WantedAndBlocks(options.attributes_max),
            false => Keep::Wanted(options.attributes_max),
        };
        if wants_main_text {
            self.main_text.tree.start();
        }
        let mut walk = Walk {
            tokens: Tokenizer::new(html, keep, &mut self.attributes),
            options,
            page,
            xhtml,
            text: &mut self.text,
            anchor: &mut self.anchor,
            value: &mut self.value,
            gist: std::mem::take(&mut self.wants_gist).then_some(&mut self.gist),
            tree: wants_main_text.then_some(&mut self.main_text.tree),
            open_link: None,
            tables_in_link: 0,
            skip: None,
            in_noscript: false,
            foreign: 0,
            foreign_outside: 0,
            heading: None,
            emphasis: None,
        };
        walk.set_foreign(0);
        walk.run();
        page.truncated |= self.text.is_full();
        page.text = self.text.finish();
        if wants_main_text {
            self.main_text.tree.finish(html.len(), page.text.len());
            let title = page.title.as_deref();
            self.main_text.write(&page.text, title, &mut page.main_text, &mut page.main_pieces);
            if options.markdown {
                let bytes_max = options.text_bytes_max.saturating_mul(2);
                let base = self.own.take().map(|own| page.document_base(&own));
                self.main_text.write_markdown(html, &page.main_text, base, bytes_max, &mut page.markdown);
            }
        }
        page.gist = self.gist.finish();
    }
}

/// An element whose contents are passed over.
#[derive(Clone, Copy)]
struct Skip {
    tag: Tag,
    depth: u32,
    foreign: bool,
}

struct Walk<'a, 'w> {
    tokens: Tokenizer<'a, 'w>,
    options: &'w ExtractOptions,
    page: &'w mut Page,
    xhtml: bool,
    text: &'w mut Collapsed,
    anchor: &'w mut Collapsed,
    value: &'w mut String,
    gist: Option<&'w mut GistReader>,
    /// The containers, when main text is wanted.
    tree: Option<&'w mut Tree>,
    /// The link whose text is being read.
    open_link: Option<usize>,
    tables_in_link: u32,
    skip: Option<Skip>,
    in_noscript: bool,
    /// How many `<svg>` and `<math>` are open.
    foreign: u32,
    /// The same outside the `<foreignObject>` that we are in.
    foreign_outside: u32,
    heading: Option<(u8, usize)>,
    emphasis: Option<(Tag, usize)>,
}

impl Walk<'_, '_> {
    fn run(&mut self) {
        while let Some(token) = self.tokens.next() {
            match token {
                Token::Text(raw) => self.text(raw, true),
                Token::Cdata(raw) => self.text(raw, false),
                Token::Start { tag: Tag::Other, .. } | Token::End { tag: Tag::Other } => {}
                Token::Start { tag, self_closing } => self.start(tag, self_closing),
                Token::End { tag } => self.end(tag),
            }
        }
        self.close_link();
        self.close_heading();
        self.close_emphasis();
    }

    #[inline]
    fn text(&mut self, raw: &str, references: bool) {
        if self.skip.is_some() {
            return;
        }
        if self.open_link.is_some() {
            self.anchor.push(raw, references);
        }
        if self.in_noscript {
            return;
        }
        if self.options.text {
            self.text.push(raw, references);
        }
        if let Some(gist) = &mut self.gist {
            gist.read(raw);
        }
    }

    fn gap(&mut self, gap: Gap) {
        if let (Gap::Line, Some(gist)) = (gap, &mut self.gist) {
            gist.end_line();
        }
        self.text.gap(gap);
        self.anchor.gap(Gap::Space);
    }

    fn start(&mut self, tag: Tag, self_closing: bool) {
        if self.foreign > 0 {
            if tag.ends_foreign_content() {
                self.set_foreign(0);
                self.skip = self.skip.filter(|s| !s.foreign);
            } else if !self_closing && matches!(tag, Tag::Title | Tag::Desc | Tag::Script | Tag::Style) {
                self.skip_contents(tag, true);
                return;
            }
        }
        if self.foreign == 0 && tag.content() != Content::Markup {
            self.start_raw(tag, self_closing);
            return;
        }
        if self.skip.is_some() {
            if tag == Tag::Template {
                self.skip_contents(tag, false);
            }
            return;
        }
        if tag.is_block() {
            self.gap(Gap::Line);
        }
        if self.tree.is_some() && !self.in_noscript {
            self.start_in_tree(tag);
        }
        match tag {
            Tag::A => {
                self.close_link();
                let before = self.page.links.len();
                if !self.link_from("href", LinkTag::A) && self.foreign > 0 {
                    self.link_from("xlink:href", LinkTag::A);
                }
                if self.page.links.len() > before {
                    self.open_link = Some(before);
                    self.tables_in_link = 0;
                    self.anchor.restart(self.options.anchor_bytes_max);
                }
            }
            Tag::Img => self.image(),
            Tag::Area => {
                if self.link_from("href", LinkTag::Area) {
                    self.alternative_text_as_link_text();
                }
            }
            Tag::Link => self.link_element(),
            Tag::Frame => _ = self.link_from("src", LinkTag::Frame),
            Tag::Embed if self.options.resources => _ = self.link_from("src", LinkTag::Embed),
            Tag::Source if self.options.resources => {
                self.link_from("src", LinkTag::Source);
                self.links_from_srcset(LinkTag::Source);
            }
            Tag::Meta => self.meta(),
            Tag::Base => {
                if self.page.base.is_none() {
                    self.page.base = self.attribute_within("href", self.options.href_bytes_max);
                }
            }
            Tag::Html => {
                if self.page.html_lang.is_none() {
                    self.page.html_lang = self.attribute("lang").filter(|lang| !lang.is_empty());
                }
            }
            Tag::Body => self.in_noscript = false,
            Tag::Noscript => self.in_noscript = true,
            Tag::Template => self.skip_contents(tag, false),
            Tag::Svg | Tag::Math => {
                if !self_closing {
                    self.set_foreign(self.foreign.saturating_add(1));
                }
            }
            Tag::ForeignObject if self.foreign > 0 && !self_closing => {
                self.foreign_outside = self.foreign;
                self.set_foreign(0);
            }
            Tag::Table => self.tables_in_link = self.tables_in_link.saturating_add(1),
            Tag::Td | Tag::Th => {
                self.gap(Gap::Space);
                if self.tables_in_link == 0 {
                    self.close_link();
                }
            }
            _ => {
                if let Some(level) = tag.heading_level() {
                    self.close_heading();
                    self.heading = Some((level, self.text.as_str().len()));
                } else if tag.is_emphasis() && self.emphasis.is_none() {
                    self.emphasis = Some((tag, self.text.as_str().len()));
                }
            }
        }
    }

    /// Notes down what main text needs to know of a start tag.
    fn start_in_tree(&mut self, tag: Tag) {
        let Some(tree) = &mut self.tree else { return };
        let text = self.text.as_str().len();
        match tag {
            Tag::A => {
                let href = self.tokens.attribute("href");
                tree.open_link(href.is_some_and(|href| !href.starts_with('#')), text);
            }
            Tag::Img => tree.image(),
            Tag::Input => tree.input(),
            tag if tag.is_node() => {
                let mut hints = Hints::default();
                for (name, value) in self.tokens.attributes() {
                    hints.read(name, value);
                }
                tree.open(tag, hints, self.tokens.tag_span().0, text);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: Tag) {
        if matches!(tag, Tag::Svg | Tag::Math) {
            // Whatever is still open in there ends with it.
            self.skip = self.skip.filter(|s| !s.foreign);
        }
        if let Some(skip) = &mut self.skip {
            if skip.tag == tag {
                skip.depth -= 1;
                if skip.depth == 0 {
                    self.skip = None;
                }
            }
            return;
        }
        if tag.is_block() {
            self.gap(Gap::Line);
        }
        if let Some(tree) = &mut self.tree
            && !self.in_noscript
        {
            let text = self.text.as_str().len();
            if tag.is_node() {
                tree.close(tag, self.tokens.tag_span(), text);
            } else if tag == Tag::A {
                tree.close_link(text);
            }
        }
        match tag {
            Tag::A => self.close_link(),
            Tag::Noscript => self.in_noscript = false,
            Tag::Svg | Tag::Math => self.set_foreign(self.foreign.saturating_sub(1)),
            Tag::ForeignObject => {
                let outside = std::mem::take(&mut self.foreign_outside);
                self.set_foreign(self.foreign.max(outside));
            }
            Tag::Table => match self.tables_in_link {
                0 => self.close_link(),
                _ => self.tables_in_link -= 1,
            },
            Tag::Td | Tag::Th | Tag::Caption => {
                self.gap(Gap::Space);
                if self.tables_in_link == 0 {
                    self.close_link();
                }
            }
            _ => {
                if tag.heading_level().is_some() {
                    self.close_heading();
                } else if self.emphasis.is_some_and(|(open, _)| open == tag) {
                    self.close_emphasis();
                }
            }
        }
    }

    /// Elements whose contents are not markup.
    fn start_raw(&mut self, tag: Tag, self_closing: bool) {
        if self.skip.is_none() {
            match tag {
                Tag::Iframe => _ = self.link_from("src", LinkTag::Iframe),
                Tag::Script if self.options.resources => _ = self.link_from("src", LinkTag::Script),
                _ => {}
            }
        }
        let is_data = tag == Tag::Script && self.tokens.attribute("type").is_some_and(is_json_ld);
        let is_empty = self.xhtml && self_closing;
        let raw = if is_empty { "" } else { self.tokens.contents(tag.content()) };
        if self.skip.is_some() {
            return;
        }
        // Between tags a NUL vanishes; in contents that are not markup the standard puts a mark in its place.
        let marked = matches!(tag, Tag::Title | Tag::Xmp | Tag::Plaintext) && raw.contains('\0');
        let raw = if marked { &*raw.replace('\0', "\u{fffd}") } else { raw };
        match tag {
            Tag::Title if self.page.title.is_none() => {
                let mut title = Collapsed::default();
                title.start(String::new(), self.options.title_bytes_max);
                title.push(raw, true);
                self.page.title = Some(title.finish());
            }
            Tag::Xmp | Tag::Plaintext => {
                self.gap(Gap::Line);
                self.text(raw, false);
            }
            Tag::Textarea | Tag::Iframe => self.gap(Gap::Space),
            Tag::Script if is_data => _ = self.page.keep_structured(raw),
            _ => {}
        }
    }

    fn set_foreign(&mut self, foreign: u32) {
        self.foreign = foreign;
        self.tokens.foreign = self.xhtml || foreign > 0;
    }

    fn skip_contents(&mut self, tag: Tag, foreign: bool) {
        match &mut self.skip {
            None => self.skip = Some(Skip { tag, depth: 1, foreign }),
            Some(skip) if skip.tag == tag => skip.depth = skip.depth.saturating_add(1),
            Some(_) => {}
        }
    }

    /// Adds the address in an attribute of the current tag as a link; whether there was one to add.
    fn link_from(&mut self, attribute: &str, tag: LinkTag) -> bool {
        let Some(href) = self.tokens.attribute(attribute) else { return false };
        let rel = self.tokens.attribute("rel").unwrap_or("");
        self.push_link(href, rel, tag)
    }

    fn push_link(&mut self, href: &str, rel: &str, tag: LinkTag) -> bool {
        if self.page.links.len() >= self.options.links_max || href.len() > self.options.href_bytes_max {
            self.page.links_dropped += 1;
            self.page.truncated = true;
            return true;
        }
        self.value.clear();
        let rel = cut(rel, self.options.value_bytes_max);
        push_attribute(rel, self.value);
        let rel = self.page.links.intern(self.value.trim_ascii());
        self.value.clear();
        push_attribute(href, self.value);
        self.page.links.push(self.value.trim_ascii(), rel, tag);
        true
    }

    fn links_from_srcset(&mut self, tag: LinkTag) {
        let Some(value) = self.attribute_within("srcset", self.options.href_bytes_max * 4) else { return };
        for url in srcset(&value) {
            self.push_link_decoded(url, tag);
        }
    }

    fn push_link_decoded(&mut self, href: &str, tag: LinkTag) {
        if self.page.links.len() >= self.options.links_max || href.len() > self.options.href_bytes_max {
            self.page.links_dropped += 1;
            self.page.truncated = true;
        } else {
            let rel = self.page.links.intern("");
            self.page.links.push(href, rel, tag);
        }
    }

    fn close_link(&mut self) {
        if let Some(link) = self.open_link.take() {
            self.page.links.set_text(link, self.anchor.as_str());
        }
    }

    fn image(&mut self) {
        if self.open_link.is_some()
            && let Some(alt) = self.tokens.attribute("alt")
        {
            self.value.clear();
            push_attribute(cut(alt, self.options.value_bytes_max), self.value);
            self.anchor.gap(Gap::Space);
            self.anchor.push(self.value, false);
            self.anchor.gap(Gap::Space);
        }
        if self.options.resources {
            self.link_from("src", LinkTag::Img);
            self.links_from_srcset(LinkTag::Img);
        }
    }

    fn alternative_text_as_link_text(&mut self) {
        if let (Some(alt), Some(last)) = (self.attribute("alt"), self.page.links.len().checked_sub(1)) {
            let mut text = Collapsed::default();
            text.start(String::new(), self.options.anchor_bytes_max);
            text.push(&alt, false);
            self.page.links.set_text(last, text.as_str());
        }
    }

    /// `<link>`: a link like any other, and sometimes the canonical address or a translation.
    fn link_element(&mut self) {
        let Some(rel) = self.attribute("rel") else { return };
        let flags = Rel::parse(&rel);
        if flags.intersects(Rel::CANONICAL) && self.page.canonical.is_none() {
            self.page.canonical =
                self.attribute_within("href", self.options.href_bytes_max).filter(|href| !href.is_empty());
        }
        if flags.intersects(Rel::ALTERNATE)
            && self.page.hreflang.len() < self.options.metas_max * 8
            && let Some(lang) = self.attribute("hreflang").filter(|lang| !lang.is_empty())
            && let Some(href) = self.attribute_within("href", self.options.href_bytes_max)
        {
            self.page.hreflang.push((lang, href));
        }
        if self.options.resources || !flags.intersects(Rel::RESOURCE) {
            self.link_from("href", LinkTag::Link);
        }
    }

    fn meta(&mut self) {
        let Some(content) = self.attribute("content") else { return };
        if let Some(name) = self.attribute("name") {
            let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
            if is("description") && self.page.description.is_none() {
                let mut text = Collapsed::default();
                text.start(String::new(), self.options.value_bytes_max);
                text.push(&content, false);
                self.page.description = Some(text.finish());
            } else if self.page.meta_robots.len() < self.options.metas_max {
                let for_agent = !name.is_empty() && is(&self.options.agent);
                if for_agent || is("robots") {
                    self.page.meta_robots.push(MetaRobots { content, for_agent });
                }
            }
        } else if self.page.refresh.is_none()
            && self.tokens.attribute("http-equiv").is_some_and(|v| v.trim_ascii().eq_ignore_ascii_case("refresh"))
        {
            self.page.refresh = Refresh::parse(&content);
        }
    }

    /// An attribute's value, decoded, trimmed, and cut to the usual bound.
    fn attribute(&mut self, name: &str) -> Option<String> {
        let raw = cut(self.tokens.attribute(name)?, self.options.value_bytes_max);
        self.value.clear();
        push_attribute(raw, self.value);
        Some(self.value.trim_ascii().to_owned())
    }

    /// The same, but nothing when it is longer than `bytes_max`: half an address is none.
    fn attribute_within(&mut self, name: &str, bytes_max: usize) -> Option<String> {
        let raw = self.tokens.attribute(name).filter(|raw| raw.len() <= bytes_max)?;
        self.value.clear();
        push_attribute(raw, self.value);
        Some(self.value.trim_ascii().to_owned())
    }

    fn close_heading(&mut self) {
        if let Some((level, start)) = self.heading.take()
            && let Some(span) = self.span_from(start)
            && self.page.headings.len() < self.options.marks_max
        {
            self.page.headings.push(Heading { level, span });
        }
    }

    fn close_emphasis(&mut self) {
        if let Some((_, start)) = self.emphasis.take()
            && let Some(span) = self.span_from(start)
            && self.page.emphasis.len() < self.options.marks_max
        {
            self.page.emphasis.push(span);
        }
    }

    /// The text collected since `start`, without the gap before its first word.
    fn span_from(&self, start: usize) -> Option<std::ops::Range<usize>> {
        let text = self.text.as_str();
        let span = text.get(start..)?.trim_ascii_start();
        (!span.is_empty()).then(|| text.len() - span.len()..text.len())
    }
}

/// Whether a script's type says that it is structured data.
fn is_json_ld(kind: &str) -> bool {
    kind.split(';').next().is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case("application/ld+json"))
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
