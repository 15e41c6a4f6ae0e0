//! The gist of a page: a few phrases that stand for its text, so that what is new on it can be told from what is not.
//!
//! The text is cut into phrases of some words, at line ends and behind words whose hash says so: the same sentence gives the same
//! phrases wherever it stands. Words with digits (dates, counters, session ids) and words of the page's own URL (an error page
//! repeats what was asked for) count as one and the same word. Of a long paragraph the beginning is read and then a sentence
//! here and there, which costs a fifth and tells as much. Of all phrases the gist keeps those with the least hashes,
//! long ones with better odds: a fair sample of what there is to read, in 64 bytes.
//!
//! Two pages with the same gist say the same thing; and a site whose phrases are all known says nothing new.

use crate::url::Url;

/// Phrases in a gist at the most.
pub const PHRASES_MAX: usize = 16;
/// A phrase ends behind this many words if nothing ended it before.
const WORDS_MAX: u32 = 16;
/// Words read in a row before a stretch of a long paragraph is passed over,
const STRETCH_WORDS: u32 = 16;
/// which is so many bytes, and on to the end of a sentence.
const PASSED_BYTES: usize = 256;
/// Words of the URL that are passed over, at the most.
const URL_WORDS_MAX: usize = 32;
/// What a word that does not count is taken for.
const MASKED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Text read at the most; what comes behind it decides nothing.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// See the module's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gist {
    phrases: [u32; PHRASES_MAX],
    len: u8,
}

impl Gist {
    /// The gist of a text that was found at `url`.
    pub fn of(text: &str, url: &Url) -> Gist {
        let mut reader = GistReader::default();
        reader.start(url);
        reader.read_lines(text);
        reader.finish()
    }

    /// The gist of something that is not text: its bytes as one phrase.
    pub fn of_bytes(fingerprint: u64) -> Gist {
        let mut gist = Gist { len: 1, ..Gist::default() };
        gist.phrases[0] = (fingerprint >> 32) as u32;
        gist
    }

    /// The phrases.
    pub fn phrases(&self) -> &[u32] {
        &self.phrases[..usize::from(self.len)]
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether two pages say the same but for a word here and there: seven phrases of eight are shared.
    pub fn says_the_same_as(&self, other: &Gist) -> bool {
        let shared = self.phrases().iter().filter(|p| other.phrases().contains(p)).count();
        let most = self.len.max(other.len);
        shared * 8 >= usize::from(most) * 7
    }
}

/// Takes the gist of a page piece by piece, as the pieces come out of the markup.
#[derive(Debug, Default)]
pub(super) struct GistReader {
    own: UrlWords,
    phrase: Phrase,
    sample: Sample,
    /// Words that are still read of this stretch.
    words_left: u32,
    /// Text that may still be read; nothing before a start.
    bytes_left: usize,
}

impl GistReader {
    /// Begins with a page found at `url`.
    pub fn start(&mut self, url: &Url) {
        self.own.read(url);
        self.words_left = STRETCH_WORDS;
        self.bytes_left = TEXT_BYTES_MAX;
    }

    /// Reads a piece. Where it ends, a word ends.
    pub fn read(&mut self, text: &str) {
        let text = &text.as_bytes()[..text.len().min(self.bytes_left)];
        self.bytes_left -= text.len();
        let mut at = 0;
        while let Some((word, end)) = next_word(text, at) {
            at = end;
            let masked = word.has_digit || self.own.contains(word.hash);
            self.phrase.push(if masked { MASKED } else { word.hash }, masked);
            // A masked word would cut its neighbours apart in every place, so it never does.
            if self.phrase.words >= WORDS_MAX || !masked && word.hash & 7 == 0 {
                self.end_phrase();
            }
            self.words_left -= 1;
            if self.words_left == 0 {
                self.end_line();
                let passed = text.get(at + PASSED_BYTES..).and_then(|rest| memchr::memchr(b'.', rest));
                let Some(passed) = passed else { return };
                at += PASSED_BYTES + passed;
            }
        }
    }

    /// Reads text with line ends in it.
    pub fn read_lines(&mut self, text: &str) {
        for line in text.split('\n') {
            self.read(line);
            self.end_line();
        }
    }

    /// What comes next has nothing to do with what was.
    pub fn end_line(&mut self) {
        self.end_phrase();
        self.words_left = STRETCH_WORDS;
    }

    fn end_phrase(&mut self) {
        if self.phrase.words > 0 {
            self.sample.add(std::mem::take(&mut self.phrase));
        }
    }

    /// The gist; the next page begins with a start.
    pub fn finish(&mut self) -> Gist {
        self.end_line();
        self.bytes_left = 0;
        std::mem::take(&mut self.sample).into_gist()
    }
}

#[derive(Debug, Default)]
struct Phrase {
    hash: u64,
    words: u32,
    /// Words that are not masked.
    weight: u32,
}

impl Phrase {
    fn push(&mut self, word: u64, masked: bool) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.words += 1;
        self.weight += u32::from(!masked);
    }
}

/// The phrases with the least hashes so far, in the order of these.
#[derive(Debug, Default)]
struct Sample {
    kept: [(u32, u32); PHRASES_MAX],
    len: usize,
}

impl Sample {
    fn add(&mut self, phrase: Phrase) {
        if phrase.weight == 0 {
            return;
        }
        let mixed = phrase.hash ^ phrase.hash >> 29;
        let hash = (mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53) >> 32) as u32;
        // A phrase of eight words is eight times as likely to be kept as a word that stands alone.
        let rank = hash / phrase.weight.min(8);
        let kept = &self.kept[..self.len];
        if self.len == PHRASES_MAX && rank >= kept[PHRASES_MAX - 1].0 || kept.contains(&(rank, hash)) {
            return;
        }
        let at = kept.partition_point(|&(other, _)| other < rank);
        let end = self.len.min(PHRASES_MAX - 1);
        self.kept.copy_within(at..end, at + 1);
        self.kept[at] = (rank, hash);
        self.len = end + 1;
    }

    fn into_gist(self) -> Gist {
        let mut gist = Gist { len: self.len as u8, ..Gist::default() };
        for (phrase, (_, hash)) in gist.phrases.iter_mut().zip(&self.kept[..self.len]) {
            *phrase = *hash;
        }
        gist
    }
}

struct Word {
    hash: u64,
    has_digit: bool,
}

/// What a byte is: 0 between words, 1 of a word, 3 a digit of a word.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        classes[b] = byte.is_ascii_alphabetic() as u8 | (byte >= 0x80) as u8 | (3 * byte.is_ascii_digit() as u8);
        b += 1;
    }
    classes
};

/// The next run of letters and digits at or behind `at`, small and capital letters alike, and where it ends.
#[inline]
fn next_word(bytes: &[u8], at: usize) -> Option<(Word, usize)> {
    let class = |b: u8| CLASSES[usize::from(b)];
    let begin = at + bytes.get(at..)?.iter().position(|&b| class(b) != 0)?;
    let mut classes = 0;
    let length = bytes[begin..].iter().take_while(|b| {
        let class = class(**b);
        classes |= class;
        class != 0
    });
    let end = begin + length.count();
    let hash = if classes & 2 == 0 { hash_of(&bytes[begin..end]) } else { 0 };
    Some((Word { hash, has_digit: classes & 2 != 0 }, end))
}

/// Eight letters at a time. Setting one bit makes capital letters small ones.
#[inline]
fn hash_of(word: &[u8]) -> u64 {
    const SMALL: u64 = 0x2020_2020_2020_2020;
    let mut hash = word.len() as u64;
    let mut chunks = word.chunks_exact(8);
    for chunk in &mut chunks {
        let letters = u64::from_le_bytes(chunk.try_into().unwrap_or_default()) | SMALL;
        hash = (hash.rotate_left(23) ^ letters).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    let mut letters = 0;
    for &b in chunks.remainder() {
        letters = letters << 8 | u64::from(b | 0x20);
    }
    hash = (hash.rotate_left(23) ^ letters).wrapping_mul(0x517c_c1b7_2722_0a95);
    hash ^ hash >> 32
}

/// The words of a URL's path and query, behind a filter of 64 bits that most words do not pass.
#[derive(Debug, Default)]
struct UrlWords {
    hashes: Vec<u64>,
    bits: u64,
}

impl UrlWords {
    fn read(&mut self, url: &Url) {
        self.hashes.clear();
        self.bits = 0;
        let text = url.path_and_query().as_bytes();
        let mut at = 0;
        while let Some((word, end)) = next_word(text, at) {
            at = end;
            if self.hashes.len() < URL_WORDS_MAX && !word.has_digit {
                self.bits |= 1 << (word.hash >> 58);
                self.hashes.push(word.hash);
            }
        }
    }

    fn contains(&self, hash: u64) -> bool {
        self.bits >> (hash >> 58) & 1 == 1 && self.hashes.contains(&hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gist(text: &str, url: &str) -> Gist {
        Gist::of(text, &Url::parse(url).expect(url))
    }

    fn prose(seed: u64, words: usize) -> String {
        let word = |i: usize| {
            let h = xxhash_rust::xxh3::xxh3_64_with_seed(&(i as u64).to_le_bytes(), seed);
            format!(
                "{}{}",
                ["ba", "ro", "ti", "mu", "ke"][h as usize % 5],
                ["lan", "vor", "sem", "qui"][h as usize / 5 % 4]
            )
        };
        (0..words).map(|i| word(i) + if i % 40 == 39 { "\n" } else { " " }).collect()
    }

    #[test]
    fn what_does_not_count() {
        fn check(a: (&str, &str), b: (&str, &str), same: bool) {
            let (x, y) = (gist(a.0, a.1), gist(b.0, b.1));
            assert_eq!(x.says_the_same_as(&y), same, "{a:?} {b:?}");
        }
        let home = "http://a.test/";
        check(("Monday, 3 May 2031\nNo events today", home), ("Monday, 17 May 1999\nNo events today", home), true);
        check(("Monday\nNo events today", home), ("Monday\nThe choir sings at noon", home), false);
        check(
            ("Sorry, the page wombat was not found", "http://a.test/wombat"),
            ("Sorry, the page giraffe was not found", "http://a.test/giraffe"),
            true,
        );
        check(("A  b, c.\nD", home), ("a b c\nd", home), true);
        check(("1 2 3", home), ("4", home), true);
    }

    #[test]
    fn a_sample_of_what_there_is() {
        let page = prose(1, 800);
        let own = gist(&page, "http://a.test/");
        assert_eq!(own.phrases().len(), PHRASES_MAX);
        assert_eq!(own, gist(&page.to_uppercase(), "http://a.test/"));
        assert!(!own.says_the_same_as(&gist(&prose(2, 800), "http://a.test/")));
        let changed = page.replacen(' ', " completely other words ", 2);
        assert!(own.says_the_same_as(&gist(&changed, "http://a.test/")));
        // Half of the page is new: so is about half of the gist.
        let half = format!("{}{}", &page[..page.len() / 2], prose(3, 400));
        let shared = gist(&half, "http://a.test/").phrases().iter().filter(|p| own.phrases().contains(p)).count();
        assert!((3..=13).contains(&shared), "{shared}");
    }

    #[test]
    fn any_text_has_a_gist() {
        for text in ["", "\n\n", "\u{0}\u{fffd}", "é", &"x".repeat(1 << 20), &"ab ".repeat(1 << 18)] {
            assert!(gist(text, "http://a.test/?x=%FF").phrases().len() <= PHRASES_MAX);
        }
        assert!(gist("12 34", "http://a.test/").is_empty());
        assert_ne!(Gist::of_bytes(1 << 40), Gist::of_bytes(1 << 41));
    }

    /// `cargo test --release -p rhumb-core gist_cost -- --ignored --nocapture` prints nanoseconds per KiB.
    #[test]
    #[ignore = "a measurement, run by hand"]
    #[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
    fn gist_cost() {
        let (text, url) = (prose(1, 2_000), Url::parse("http://a.test/some/page?id=1").expect("parses"));
        let begin = std::time::Instant::now();
        for _ in 0..2_000 {
            std::hint::black_box(Gist::of(std::hint::black_box(&text), &url));
        }
        println!("{} ns per KiB", begin.elapsed().as_nanos() * 1024 / (2_000 * text.len() as u128));
    }
}
