//! What a page says, as the visit log keeps it: its main text, with headings and emphasis, and its own description.
//!
//! The marks of a [`Page`] lie in all of its text; here they lie in the text that is kept, which consists of pieces of the other. A
//! mark that is not wholly in one of the pieces is left out. docs/formats/log.md describes the bytes.
//!
//! Invariant: spans lie in the text, on characters, in the order of their beginnings; nothing is larger than its bound, neither what is
//! written nor what is read.

use std::ops::Range;

use rhumb_store::codec::{Malformed, Put, Take};

use super::{Heading, Page, cut};

/// What a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageText {
    /// The main text; of a page without one, the visible text.
    pub text: String,
    /// The headings in `text`, in order.
    pub headings: Vec<Heading>,
    /// The emphasised spans of `text`, in order.
    pub emphasis: Vec<Range<usize>>,
    /// What the page says of itself in `<meta name=description>`.
    pub description: String,
}

/// Longest form of what comes behind the text: three bytes for a place, four for a length with a level.
const MARKS_BYTES_MAX: usize =
    PageText::DESCRIPTION_BYTES_MAX + 7 * (PageText::HEADINGS_MAX + PageText::EMPHASIS_MAX) + 16;

impl PageText {
    /// Text kept; the rest is cut off between two characters.
    pub const TEXT_BYTES_MAX: usize = 256 << 10;
    /// Description kept.
    pub const DESCRIPTION_BYTES_MAX: usize = 512;
    /// Headings kept.
    pub const HEADINGS_MAX: usize = 512;
    /// Emphasised spans kept.
    pub const EMPHASIS_MAX: usize = 1024;

    /// What a page says.
    pub fn of(page: &Page) -> PageText {
        let mut said = PageText::default();
        said.fill(page);
        said
    }

    /// Becomes what a page says, in the same memory.
    pub fn fill(&mut self, page: &Page) {
        self.clear();
        let whole = 0..page.text.len();
        let (text, pieces) = match page.main_text.is_empty() {
            true => (&page.text, std::slice::from_ref(&whole)),
            false => (&page.main_text, &page.main_pieces[..]),
        };
        self.text.push_str(cut(text, PageText::TEXT_BYTES_MAX));
        self.description
            .push_str(cut(page.description.as_deref().unwrap_or_default(), PageText::DESCRIPTION_BYTES_MAX));
        let mut moved = Moved::new(page, &self.text, pieces);
        let headings = page.headings.iter().filter_map(|Heading { level, span }| {
            Some(Heading { level: (*level).clamp(1, 6), span: moved.next(span)? })
        });
        self.headings.extend(headings.take(PageText::HEADINGS_MAX));
        let mut moved = Moved::new(page, &self.text, pieces);
        self.emphasis.extend(page.emphasis.iter().filter_map(|span| moved.next(span)).take(PageText::EMPHASIS_MAX));
    }

    /// Forgets everything but its memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.headings.clear();
        self.emphasis.clear();
        self.description.clear();
    }

    /// Whether the page says nothing.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.description.is_empty()
    }

    /// The headings with their text.
    pub fn headings(&self) -> impl Iterator<Item = (u8, &str)> {
        self.headings.iter().map(|h| (h.level, &self.text[h.span.clone()]))
    }

    /// The texts of the emphasised spans.
    pub fn emphasised(&self) -> impl Iterator<Item = &str> {
        self.emphasis.iter().map(|span| &self.text[span.clone()])
    }

    /// Appends the compressed bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        // One block for all: in short pages marks and description are a good part of the whole.
        let mut raw = Vec::with_capacity(self.text.len() + self.description.len() + 4 * self.headings.len() + 64);
        raw.extend_from_slice(self.text.as_bytes());
        raw.put_str(&self.description);
        raw.put_u64(self.headings.len() as u64);
        let mut gap = Gap(0);
        for Heading { level, span } in &self.headings {
            raw.put_u64(gap.to(span));
            raw.put_u64((span.len() as u64) << 3 | u64::from(*level));
        }
        raw.put_u64(self.emphasis.len() as u64);
        let mut gap = Gap(0);
        for span in &self.emphasis {
            raw.put_u64(gap.to(span));
            raw.put_u64(span.len() as u64);
        }
        into.put_u64(self.text.len() as u64);
        into.put_u64((raw.len() - self.text.len()) as u64);
        let start = into.len();
        into.resize(start + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
        let length = lz4_flex::block::compress_into(&raw, &mut into[start..]).expect("room for the worst case");
        into.truncate(start + length);
    }

    /// The compressed bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }

    /// Reads what [`PageText::put`] wrote.
    pub fn take(bytes: &[u8]) -> Result<PageText, Malformed> {
        let mut said = PageText::default();
        said.take_into(bytes)?;
        Ok(said)
    }

    /// Reads what [`PageText::put`] wrote, into the same memory. What does not read leaves nothing.
    pub fn take_into(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let read = self.unpack(bytes);
        if read.is_err() {
            self.clear();
        }
        read
    }

    fn unpack(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.clear();
        let mut from = Take::new(bytes);
        let text_bytes = take_at_most(&mut from, PageText::TEXT_BYTES_MAX)?;
        let marks_bytes = take_at_most(&mut from, MARKS_BYTES_MAX)?;
        // The text comes first and stays where it was unpacked.
        let mut raw = std::mem::take(&mut self.text).into_bytes();
        raw.resize(text_bytes + marks_bytes, 0);
        if lz4_flex::block::decompress_into(from.rest(), &mut raw).ok() != Some(raw.len()) {
            return Err(Malformed("a page's text does not unpack"));
        }
        let mut marks = [0; MARKS_BYTES_MAX];
        let marks = &mut marks[..marks_bytes];
        marks.copy_from_slice(&raw[text_bytes..]);
        raw.truncate(text_bytes);
        self.text = String::from_utf8(raw).map_err(|_| Malformed("a page's text is not UTF-8"))?;
        self.take_marks(&mut Take::new(marks))
    }

    fn take_marks(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        let description = from.str()?;
        if description.len() > PageText::DESCRIPTION_BYTES_MAX {
            return Err(Malformed("a description is too long"));
        }
        self.description.push_str(description);
        let mut at = 0;
        for _ in 0..take_at_most(from, PageText::HEADINGS_MAX)? {
            let (gap, packed) = (from.u64()?, from.u64()?);
            let level = (packed & 7) as u8;
            if !(1..=6).contains(&level) {
                return Err(Malformed("a heading of impossible level"));
            }
            self.headings.push(Heading { level, span: span(&self.text, &mut at, gap, packed >> 3)? });
        }
        let mut at = 0;
        for _ in 0..take_at_most(from, PageText::EMPHASIS_MAX)? {
            let (gap, length) = (from.u64()?, from.u64()?);
            self.emphasis.push(span(&self.text, &mut at, gap, length)?);
        }
        if from.is_empty() { Ok(()) } else { Err(Malformed("something behind a page's marks")) }
    }
}

/// How far spans lie apart, from beginning to beginning.
struct Gap(usize);

impl Gap {
    fn to(&mut self, span: &Range<usize>) -> u64 {
        assert!(self.0 <= span.start && span.start <= span.end, "marks are in order");
        (span.start - std::mem::replace(&mut self.0, span.start)) as u64
    }
}

fn take_at_most(from: &mut Take<'_>, max: usize) -> Result<usize, Malformed> {
    let n = usize::try_from(from.u64()?).ok().filter(|n| *n <= max);
    n.ok_or(Malformed("more of a page's text than there may be"))
}

/// The span `gap` bytes behind `at`, if it lies in the text.
fn span(text: &str, at: &mut usize, gap: u64, length: u64) -> Result<Range<usize>, Malformed> {
    let within = |n: u64| usize::try_from(n).ok().filter(|n| *n <= text.len());
    let span = within(gap).zip(within(length)).map(|(gap, length)| *at + gap..*at + gap + length);
    let span = span.filter(|span| text.get(span.clone()).is_some()).ok_or(Malformed("a mark outside the text"))?;
    *at = span.start;
    Ok(span)
}

/// Where spans of the whole text lie in the text made of its pieces, each on a line of its own.
struct Moved<'a> {
    page: &'a Page,
    text: &'a str,
    pieces: &'a [Range<usize>],
    /// Where the first of the pieces begins in `text`.
    at: usize,
    /// Where the last span began that was found.
    last: usize,
}

impl<'a> Moved<'a> {
    fn new(page: &'a Page, text: &'a str, pieces: &'a [Range<usize>]) -> Self {
        Moved { page, text, pieces, at: 0, last: 0 }
    }

    /// The place of the next span; nothing if it was left out, or comes out of order.
    fn next(&mut self, span: &Range<usize>) -> Option<Range<usize>> {
        while let Some((piece, rest)) = self.pieces.split_first()
            && piece.end <= span.start
        {
            self.at = self.at.saturating_add(piece.len().saturating_add(1));
            self.pieces = rest;
        }
        let piece = self.pieces.first().filter(|p| p.start <= span.start && span.end <= p.end)?;
        let start = self.at.saturating_add(span.start - piece.start);
        let moved = start..start.saturating_add(span.len());
        // Formats that fill in marks themselves may err, and a text that was cut ends before its marks do.
        let same = self.page.text.get(span.clone()).is_some_and(|was| self.text.get(moved.clone()) == Some(was));
        let is_good = same && !moved.is_empty() && self.last <= moved.start;
        self.last = if is_good { moved.start } else { self.last };
        is_good.then_some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{ExtractOptions, Extractor, ParseOptions, parse_page};
    use proptest::prelude::*;

    fn said(html: &str) -> PageText {
        let options = ExtractOptions { main_text: true, ..ExtractOptions::default() };
        PageText::of(&Extractor::new().extract(html, &options))
    }

    fn paragraph(n: usize) -> String {
        format!("<p>Paragraph {n} has <b>bold {n}</b> words, commas, and enough of both, to be the text of a page.</p>")
    }

    #[test]
    fn marks_follow_the_text() {
        let html = format!(
            "<meta name=description content=' About  it '><nav><h2>Menu</h2><b>home</b> <a href=/>x</a></nav>\
             <article>{}<h2>On é next day</h2>{}<div class=share-bar><b>Share</b></div>{}</article>\
             <footer><h3>Foot</h3><em>note</em></footer>",
            paragraph(1),
            paragraph(2),
            paragraph(3)
        );
        let said = said(&html);
        assert!(said.text.starts_with("Paragraph 1") && !said.text.contains("Share"), "{}", said.text);
        assert_eq!(said.headings().collect::<Vec<_>>(), [(2, "On é next day")]);
        assert_eq!(said.emphasised().collect::<Vec<_>>(), ["bold 1", "bold 2", "bold 3"]);
        assert_eq!(said.description, "About it");
    }

    #[test]
    fn pages_without_main_text_say_what_is_seen() {
        let html = "<h1>Title</h1><p>Some <i>text</i>.";
        let page = Extractor::new().extract(html, &ExtractOptions::default());
        let plain = PageText::of(&page);
        assert_eq!((plain.text.as_str(), plain.headings.len()), ("Title\nSome text.", 1));
        assert_eq!(plain.emphasised().collect::<Vec<_>>(), ["text"]);
        let mut options = ParseOptions::default();
        options.extract.main_text = true;
        assert_eq!(PageText::of(&parse_page(b"a b", Some("text/plain"), &options)).text, "a b");
        assert!(said("<img src=x>").is_empty());
    }

    #[test]
    fn bounds_are_kept() {
        let many: String = (0..3_000).map(|i| format!("<h3>Étage {i}</h3><b>é</b>")).collect();
        let page = Extractor::new().extract(&many, &ExtractOptions { marks_max: 9_000, ..ExtractOptions::default() });
        let text = PageText::of(&page);
        assert_eq!((text.headings.len(), text.emphasis.len()), (PageText::HEADINGS_MAX, PageText::EMPHASIS_MAX));
        assert_eq!(PageText::take(&text.to_bytes()).as_ref(), Ok(&text));
        let long = Page {
            text: format!("a{}", "é".repeat(200_000)),
            emphasis: vec![0..1, 262_141..262_143, 262_143..262_145, 300_001..300_003],
            description: Some("é".repeat(300) + "x"),
            ..Page::default()
        };
        let text = PageText::of(&long);
        assert_eq!((text.text.len(), text.description.len()), (PageText::TEXT_BYTES_MAX - 1, 512));
        assert_eq!(text.emphasis, [0..1, 262_141..262_143]);
        assert_eq!(PageText::take(&text.to_bytes()).as_ref(), Ok(&text));
    }

    #[test]
    fn marks_of_a_careless_format_are_left_out() {
        let page = Page {
            text: "one éé three".into(),
            main_text: "éé\nthree".into(),
            main_pieces: vec![4..8, 9..14],
            headings: [4..8, 4..8, 0..3, 5..8, 9..14, 4..8, 9..90].map(|span| Heading { level: 9, span }).to_vec(),
            emphasis: vec![4..4, 4..8],
            ..Page::default()
        };
        let text = PageText::of(&page);
        assert_eq!(text.headings().collect::<Vec<_>>(), [(6, "éé"), (6, "éé"), (6, "three")]);
        assert_eq!(text.emphasised().collect::<Vec<_>>(), ["éé"]);
        // Pieces of another text than the one that is kept say nothing.
        let other = Page { main_text: "three".into(), ..page };
        assert!(PageText::of(&other).headings.is_empty());
    }

    /// `cargo test --release -p rhumb-core said_cost -- --ignored --nocapture` prints what a page of 10 KB costs.
    #[test]
    #[ignore = "a measurement, run by hand"]
    fn said_cost() {
        use crate::page::samples;
        let pages: Vec<String> =
            (0..200).map(|i| if i % 4 == 0 { samples::messy(i) } else { samples::tidy(i) }).collect();
        let options = ExtractOptions { main_text: true, ..ExtractOptions::default() };
        let (mut extractor, mut page, mut said) = (Extractor::new(), Page::default(), PageText::default());
        let (mut text, mut packed) = (0, Vec::new());
        // Reading the page, then packing what it says, then unpacking it.
        let mut us = [f64::MAX; 3];
        for _ in 0..20 {
            let mut round = [0.0; 3];
            (text, packed) = (0, Vec::new());
            for html in &pages {
                let mut lap = std::time::Instant::now();
                let mut seconds = || std::mem::replace(&mut lap, std::time::Instant::now()).elapsed().as_secs_f64();
                extractor.extract_into(html, &options, &mut page);
                round[0] += seconds();
                let start = packed.len();
                said.fill(&page);
                said.put(&mut packed);
                round[1] += seconds();
                said.take_into(&packed[start..]).expect("what was put");
                round[2] += seconds();
                text += said.text.len();
            }
            us.iter_mut().zip(round).for_each(|(us, s)| *us = us.min(s * 1e6 / pages.len() as f64));
        }
        let [read, put, take] = us;
        let (text, packed) = (text / pages.len(), packed.len() / pages.len());
        println!(
            "{text} bytes in {packed}; page read in {read:.1} µs, packed in {put:.1} µs, unpacked in {take:.1} µs"
        );
    }

    fn any_text() -> impl Strategy<Value = PageText> {
        let spans = || proptest::collection::vec((0..400usize, 0..40usize, 1..7u8), 0..20);
        ("(\\PC|[a-c ]){0,300}", "\\PC{0,100}", spans(), spans()).prop_map(|(text, description, headings, emphasis)| {
            let on_characters = |marks: Vec<(usize, usize, u8)>| {
                let spans = marks.into_iter().map(|(start, length, level)| (start..start + length, level));
                let mut spans: Vec<_> = spans.filter(|(span, _)| text.get(span.clone()).is_some()).collect();
                spans.sort_by_key(|(span, _)| span.start);
                spans
            };
            let headings = on_characters(headings).into_iter().map(|(span, level)| Heading { level, span }).collect();
            let emphasis = on_characters(emphasis).into_iter().map(|(span, _)| span).collect();
            PageText { description: cut(&description, 512).to_owned(), headings, emphasis, text }
        })
    }

    proptest! {
        #[test]
        fn what_was_put_is_taken(said in any_text(), other in any_text()) {
            let mut room = other;
            prop_assert_eq!(room.take_into(&said.to_bytes()), Ok(()));
            prop_assert_eq!(&room, &said);
        }

        #[test]
        fn foreign_bytes_are_refused_or_keep_the_invariant(bytes: Vec<u8>, said in any_text(), at: usize, to: u8) {
            let mut room = said.clone();
            if room.take_into(&bytes).is_err() {
                prop_assert!(room == PageText::default());
            }
            let mut bytes = said.to_bytes();
            let at = at % bytes.len();
            bytes[at] = to;
            if room.take_into(&bytes).is_ok() {
                let _ = (room.headings().count(), room.emphasised().count());
                prop_assert_eq!(PageText::take(&room.to_bytes()), Ok(room));
            }
            prop_assert!(PageText::take(&said.to_bytes()[..at]).is_err());
        }

        #[test]
        fn foreign_marks_are_refused_or_keep_the_invariant(text in "[a-zé]{0,9}", marks: Vec<u8>) {
            let raw = [text.as_bytes(), &marks].concat();
            let mut bytes = Vec::new();
            bytes.put_u64(text.len() as u64);
            bytes.put_u64(marks.len() as u64);
            bytes.extend_from_slice(&lz4_flex::block::compress(&raw));
            if let Ok(read) = PageText::take(&bytes) {
                prop_assert_eq!(&read.text, &text);
                let _ = (read.headings().count(), read.emphasised().count());
                prop_assert_eq!(PageText::take(&read.to_bytes()), Ok(read));
            }
        }
    }
}
