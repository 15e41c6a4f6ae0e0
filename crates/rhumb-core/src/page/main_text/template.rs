//! What the pages of one site have in common: blocks of text that stand on several of them are its template, not the text.
//!
//! One page alone cannot tell a house slogan from a sentence of the article; its neighbours can. For each site the blocks of the
//! pages seen are remembered by 32 bits of their hash, with the number of pages they stood on, in a table of at most
//! [`SLOTS_MAX`] slots. Blocks that were seen once make room for new ones first, so a template of some hundred blocks survives
//! any number of pages. In short blocks digits count as one another: "3 comments" and "7 comments" are the same block.
//!
//! A page that says what others said as a whole (a mirror, a print version, an error page) keeps its text: nothing would be
//! left of it otherwise. The same page once more teaches nothing.
//!
//! Invariant: memory at most [`SiteTemplate::BYTES_MAX`]; the same pages in the same order give the same template, byte for byte.

use rhumb_store::codec::{Malformed, Put, Take};

/// Slots of a set: a block is looked for in one set only.
const WAYS: usize = 4;
const SLOTS_MIN: usize = 64;
/// Slots of the largest table.
const SLOTS_MAX: usize = 768;
/// Hashes of whole pages that are remembered.
const PAGES_MAX: usize = 64;
/// A block that stood on so many pages before is the template's.
const PAGES_MIN: u8 = 2;
/// Longer blocks must have stood on one page more: articles are quoted and syndicated.
const LONG_BYTES: u32 = 400;

/// A block that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Slot {
    /// Bits of its hash; 0 for an empty slot.
    tag: u32,
    /// The page it was seen on last, counted in pages learned.
    last: u16,
    /// On how many pages, at most 255.
    pages: u8,
}

/// The template of one site. See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteTemplate {
    slots: Vec<Slot>,
    used: u16,
    /// Pages learned.
    learned: u16,
    /// Hashes of the pages learned last.
    pages: Vec<u64>,
}

impl SiteTemplate {
    /// Bytes that a template takes at most, in memory as well as saved.
    pub const BYTES_MAX: usize = 8 << 10;

    /// A template that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many pages it has learned from, at most 65,535.
    pub fn pages_learned(&self) -> u16 {
        self.learned
    }

    /// Whether a block with this hash and length stood on several other pages.
    pub(super) fn knows(&self, hash: u64, bytes: u32) -> bool {
        let pages = self.find(hash).map_or(0, |slot| slot.pages);
        pages >= PAGES_MIN + u8::from(bytes >= LONG_BYTES)
    }

    /// Whether this very page was among those learned last.
    pub(super) fn knows_page(&self, hash: u64) -> bool {
        self.pages.contains(&hash)
    }

    /// Learns a page from the hashes of its blocks.
    pub(super) fn learn(&mut self, page: u64, blocks: impl Iterator<Item = u64>) {
        if self.knows_page(page) {
            return;
        }
        if self.pages.len() >= PAGES_MAX {
            self.pages.remove(0);
        }
        self.pages.push(page);
        self.learned = self.learned.saturating_add(1);
        for hash in blocks {
            self.note(hash);
        }
    }

    fn set_of(&self, tag: u32) -> usize {
        // The number of sets is no power of two: the upper half of a product spreads as well as a remainder, and cheaper.
        let sets = self.slots.len() / WAYS;
        ((u64::from(tag) * sets as u64) >> 32) as usize * WAYS
    }

    fn find(&self, hash: u64) -> Option<&Slot> {
        let tag = tag_of(hash);
        if self.slots.is_empty() {
            return None;
        }
        let set = self.set_of(tag);
        self.slots[set..set + WAYS].iter().find(|slot| slot.tag == tag)
    }

    fn note(&mut self, hash: u64) {
        let tag = tag_of(hash);
        if self.slots.len() < SLOTS_MAX && usize::from(self.used) * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let set = self.set_of(tag);
        let learned = self.learned;
        let slots = &mut self.slots[set..set + WAYS];
        if let Some(slot) = slots.iter_mut().find(|slot| slot.tag == tag) {
            if slot.last != learned {
                slot.pages = slot.pages.saturating_add(1);
                slot.last = learned;
            }
            return;
        }
        // An empty slot, else the one seen on the fewest pages; each hundred pages of absence count as one page less.
        let worth = |slot: &Slot| match slot.tag {
            0 => (-1000, 0),
            _ => (i32::from(slot.pages) - i32::from(learned.saturating_sub(slot.last)) / 100, i32::from(slot.last)),
        };
        if let Some(slot) = slots.iter_mut().min_by_key(|slot| worth(slot)) {
            self.used += u16::from(slot.tag == 0);
            *slot = Slot { tag, last: learned, pages: 1 };
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).clamp(SLOTS_MIN, SLOTS_MAX);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        self.used = 0;
        for slot in old.into_iter().filter(|slot| slot.tag != 0) {
            let set = self.set_of(slot.tag);
            // A set's blocks spread over at least one set; one too many is forgotten.
            if let Some(empty) = self.slots[set..set + WAYS].iter_mut().find(|s| s.tag == 0) {
                *empty = slot;
                self.used += 1;
            }
        }
    }

    /// Appends the template to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.put_u64(u64::from(self.learned));
        out.put_u64(self.pages.len() as u64);
        for page in &self.pages {
            out.extend_from_slice(&page.to_le_bytes());
        }
        out.put_u64(self.slots.len() as u64);
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.tag != 0) {
            out.put_u64(at as u64);
            out.extend_from_slice(&slot.tag.to_le_bytes());
            out.extend_from_slice(&slot.last.to_le_bytes());
            out.put_u8(slot.pages);
        }
        out.put_u64(self.slots.len() as u64);
    }

    /// Reads back what [`SiteTemplate::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Self, Malformed> {
        let learned = u16::try_from(from.u64()?).map_err(|_| Malformed("a template learned too many pages"))?;
        let pages = from.u64()? as usize;
        if pages > PAGES_MAX {
            return Err(Malformed("a template has too many pages"));
        }
        let pages = (0..pages).map(|_| from.raw(8).map(le_u64)).collect::<Result<Vec<_>, _>>()?;
        let size = from.u64()? as usize;
        let is_size = size == 0 || ((SLOTS_MIN..=SLOTS_MAX).contains(&size) && size.is_multiple_of(WAYS));
        if !is_size {
            return Err(Malformed("a template has an odd size"));
        }
        let mut template = SiteTemplate { slots: vec![Slot::default(); size], used: 0, learned, pages };
        loop {
            let at = from.u64()? as usize;
            if at == size {
                return Ok(template);
            }
            let bytes = from.raw(7)?;
            let slot = Slot {
                tag: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
                last: u16::from_le_bytes([bytes[4], bytes[5]]),
                pages: bytes[6],
            };
            match template.slots.get_mut(at) {
                Some(empty) if empty.tag == 0 && slot.tag != 0 => *empty = slot,
                _ => return Err(Malformed("a block of a template is out of place")),
            }
            template.used += 1;
        }
    }
}

fn le_u64(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Never 0, which marks an empty slot.
fn tag_of(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}

/// In blocks up to this length digits are all the same.
const SHORT_BYTES: usize = 60;

/// Hashes the text of a block of known length.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockHash {
    state: u64,
    is_short: bool,
}

impl BlockHash {
    pub(super) fn new(bytes: usize) -> Self {
        BlockHash { state: 0x9E37_79B9_7F4A_7C15, is_short: bytes <= SHORT_BYTES }
    }

    pub(super) fn add(&mut self, text: &[u8]) {
        if !self.is_short {
            self.state = xxhash_rust::xxh3::xxh3_64_with_seed(text, self.state);
            return;
        }
        for chunk in text.chunks(8) {
            let mut word = [0; 8];
            for (to, &from) in word.iter_mut().zip(chunk) {
                *to = if from.is_ascii_digit() { b'0' } else { from };
            }
            let mixed = (self.state ^ u64::from_le_bytes(word)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
            self.state = mixed ^ mixed >> 29 ^ chunk.len() as u64;
        }
    }

    pub(super) fn finish(self) -> u64 {
        let mixed = (self.state ^ self.state >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        mixed ^ mixed >> 33
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> u64 {
        let mut hash = BlockHash::new(text.len());
        hash.add(text.as_bytes());
        hash.finish()
    }

    fn page(template: &mut SiteTemplate, n: usize) {
        let own = (0..60).map(|block| hash(&format!("{} of {}", "x".repeat(block + 1), "y".repeat(n % 4096 + 1))));
        let common = (0..40).map(|block| hash(&"z".repeat(block + 1)));
        template.learn(n as u64, own.chain(common));
    }

    #[test]
    fn a_template_survives_many_pages_in_little_memory() {
        let mut template = SiteTemplate::new();
        for n in 0..2000 {
            page(&mut template, n);
            assert!(template.slots.len() * size_of::<Slot>() + PAGES_MAX * 8 + 64 <= SiteTemplate::BYTES_MAX);
        }
        let known = (0..40).filter(|block| template.knows(hash(&"z".repeat(block + 1)), 50)).count();
        assert!(known >= 38, "{known} of 40 common blocks are known");
        let own =
            (0..60).filter(|b| template.knows(hash(&format!("{} of {}", "x".repeat(b + 1), "y".repeat(1999 + 1))), 50));
        assert_eq!(own.count(), 0, "what one page alone says is no template");
    }

    #[test]
    fn the_same_page_teaches_nothing() {
        let mut template = SiteTemplate::new();
        for _ in 0..10 {
            template.learn(7, [1 << 40, 2 << 40].into_iter());
        }
        assert_eq!(template.pages_learned(), 1);
        assert!(!template.knows(1 << 40, 10) && template.knows_page(7));
    }

    #[test]
    fn a_template_is_saved_and_read_back() {
        let mut template = SiteTemplate::new();
        for n in 0..30 {
            let mut bytes = Vec::new();
            template.put(&mut bytes);
            assert!(bytes.len() <= SiteTemplate::BYTES_MAX, "{} bytes", bytes.len());
            let mut from = Take::new(&bytes);
            assert_eq!(SiteTemplate::take(&mut from), Ok(template.clone()));
            assert!(from.is_empty());
            for cut in 0..bytes.len() {
                assert!(SiteTemplate::take(&mut Take::new(&bytes[..cut])).is_err(), "{cut} of {} bytes", bytes.len());
            }
            page(&mut template, n);
        }
    }

    #[test]
    fn digits_are_all_the_same_in_short_blocks() {
        let check = |a: &str, b: &str, same: bool| assert_eq!(hash(a) == hash(b), same, "{a} {b}");
        check("3 comments", "7 comments", true);
        check(&"3 comments ".repeat(9), &"7 comments ".repeat(9), false);
        check("a", "b", false);
        check("ab", "ab\0", false);
        check("abcdefgh", "abcdefghi", false);
    }
}
