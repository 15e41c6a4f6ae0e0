//! What a word that nobody writes was meant to be: a word that many write and that differs in a letter or two.
//!
//! Most words of a vocabulary differ in far more, and are not read at all: a [`Table`] has for each how many letters it has, which ones,
//! and about how often it occurs. An edit changes the number of letters by one at most, and takes away or adds one letter at most;
//! what is left after that, a word in some hundred, is compared.

use std::collections::BTreeMap;

use super::{BLOCK_WORDS, Words};
use crate::snippet::is_cjk;

/// Letters of a word that is compared.
const LETTERS_MAX: usize = 32;
/// Edits that are forgiven.
const DISTANCE_MAX: usize = 2;

/// When a word is taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuggestOptions {
    /// A word that occurs no more often than this may be an error: authors mistype too, each in his own way.
    pub own_max: u64,
    /// So does one that is this small a part of all words: in millions of pages a common error occurs many times. It is taken for another
    /// word only if that occurs `ratio` times as often again, for it may as well be a rare word.
    pub own_share: u64,
    /// How many times as often another word must occur, for each letter in which it differs: of two errors in a word there are
    /// about this many times fewer than of one.
    pub ratio: u64,
}

impl Default for SuggestOptions {
    fn default() -> Self {
        SuggestOptions { own_max: 2, own_share: 1_000_000, ratio: 10 }
    }
}

/// What a word was probably meant to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The word, in lower case.
    pub word: String,
    /// How often it occurs.
    pub count: u64,
    /// Letters left out, added, changed, or swapped with their neighbours.
    pub distance: u8,
}

/// The word that was probably meant, if another is much more likely: the nearest, of these the most frequent, of these one
/// with the same first letter. Words of three or four letters may have one error, longer ones two; shorter ones, and what has digits or
/// is written without letters, is what it is.
pub fn suggest(dictionaries: &[&Words], word: &str, options: &SuggestOptions) -> Option<Suggestion> {
    let word = word.to_lowercase();
    let letters = Letters::of(&word)?;
    let distance_max = match letters.len {
        0..3 => return None,
        3..5 => 1,
        _ => DISTANCE_MAX,
    };
    let sum = |word: &str| dictionaries.iter().map(|words| words.count(word)).fold(0, u64::saturating_add);
    let own = sum(&word);
    let total = dictionaries.iter().map(|words| words.total()).fold(0, u64::saturating_add);
    let caution = match own {
        _ if own <= options.own_max => 1,
        _ if own <= total / options.own_share.max(1) => options.ratio,
        _ => return None,
    };
    let needed = |distance: u32| {
        let times = caution.saturating_mul(options.ratio.saturating_pow(distance)).max(1);
        own.saturating_add(1).saturating_mul(times)
    };

    // A word that is frequent enough in all of them together is so in its share in one of them.
    let count_min = needed(1).div_ceil(dictionaries.len().max(1) as u64);
    let mut near = BTreeMap::new();
    for words in dictionaries {
        let table = words.table.get_or_init(|| Table::of(words));
        table.near(words, &letters, distance_max, count_min, |word, distance| {
            near.entry(word.to_string()).or_insert(distance);
        });
    }
    let candidates = near.into_iter().filter(|(_, distance)| *distance > 0).map(|(word, distance)| {
        let count = sum(&word);
        Suggestion { word, count, distance: distance as u8 }
    });
    let first = word.chars().next();
    candidates.filter(|s| s.count >= needed(u32::from(s.distance))).max_by_key(|s| {
        (u8::MAX - s.distance, s.count, s.word.chars().next() == first, std::cmp::Reverse(s.word.clone()))
    })
}

impl Words {
    /// Memory of what was made to find near words, if any were looked for.
    pub fn memory_bytes(&self) -> usize {
        self.table.get().map_or(0, |table| table.blocks.capacity() * size_of::<Block>())
    }
}

/// What is known of each word without reading it.
pub(super) struct Table {
    blocks: Vec<Block>,
}

/// What is known of the words of a block: a bit for each letter that a word has, how many letters it has, and the logarithm of its count.
/// Words that are never suggested have no letters.
#[derive(Clone, Copy, Default)]
struct Block {
    masks: [u32; BLOCK_WORDS],
    lens: [u8; BLOCK_WORDS],
    magnitudes: [u8; BLOCK_WORDS],
}

/// What a word must be like to be worth reading.
struct Sieve {
    mask: u32,
    len_min: u8,
    len_max: u8,
    magnitude_min: u8,
    /// Whether two letters may differ, not one.
    two: bool,
}

impl Sieve {
    /// A byte for each word of a block: 0 if it cannot be near. There are no branches, so that several words are judged at once.
    #[inline]
    fn judge(&self, block: &Block) -> [u8; BLOCK_WORDS] {
        let second = if self.two { u32::MAX } else { 0 };
        // Whether there is but one bit, or two: taking them away is quicker than counting, which not every processor can.
        let too_many = |bits: u32| {
            let fewer = bits & bits.wrapping_sub(1);
            fewer & (fewer.wrapping_sub(1) | !second)
        };
        let mut near = [0; BLOCK_WORDS];
        for (near, mask) in near.iter_mut().zip(&block.masks) {
            *near = u8::from(too_many(self.mask & !mask) | too_many(mask & !self.mask) == 0);
        }
        for (near, len) in near.iter_mut().zip(&block.lens) {
            *near &= u8::from(*len >= self.len_min) & u8::from(*len <= self.len_max);
        }
        for (near, magnitude) in near.iter_mut().zip(&block.magnitudes) {
            *near &= u8::from(*magnitude >= self.magnitude_min);
        }
        near
    }
}

impl Table {
    fn of(words: &Words) -> Table {
        let mut blocks = Vec::with_capacity(words.len().min(words.blocks_bytes).div_ceil(BLOCK_WORDS));
        let mut cursor = words.cursor();
        let mut number = 0;
        while let Some((word, count)) = cursor.next() {
            let at = number % BLOCK_WORDS;
            if at == 0 {
                blocks.push(Block::default());
            }
            if let (Some(block), Some(letters)) = (blocks.last_mut(), Letters::of(word)) {
                block.masks[at] = letters.mask;
                block.lens[at] = letters.len as u8;
                block.magnitudes[at] = magnitude(count);
            }
            number += 1;
        }
        Table { blocks }
    }

    /// Hands on the words that are near, and how near.
    fn near(
        &self,
        words: &Words,
        to: &Letters,
        distance_max: usize,
        count_min: u64,
        mut found: impl FnMut(&str, usize),
    ) {
        let sieve = Sieve {
            mask: to.mask,
            len_min: (to.len - distance_max) as u8,
            len_max: (to.len + distance_max) as u8,
            magnitude_min: magnitude(count_min),
            two: distance_max > 1,
        };
        let mut cursor = words.cursor();
        for (number, block) in self.blocks.iter().enumerate() {
            let near = sieve.judge(block);
            if u128::from_ne_bytes(near) == 0 {
                continue;
            }
            let last = near.iter().rposition(|n| *n != 0).unwrap_or(0);
            cursor.next = number * BLOCK_WORDS;
            for is_near in &near[..=last] {
                if !cursor.advance() {
                    break;
                }
                if *is_near != 0
                    && let Ok(word) = std::str::from_utf8(&cursor.word)
                    && let Some(letters) = Letters::of(word)
                    && let Some(distance) = distance(to.as_slice(), letters.as_slice(), distance_max)
                {
                    found(word, distance);
                }
            }
        }
    }
}

fn magnitude(count: u64) -> u8 {
    count.checked_ilog2().unwrap_or(0) as u8
}

/// A word letter by letter.
struct Letters {
    letters: [char; LETTERS_MAX],
    len: usize,
    mask: u32,
}

impl Letters {
    /// The letters of a word that has nothing else, not too many of them, and is of a script with letters.
    fn of(word: &str) -> Option<Letters> {
        let mut letters = Letters { letters: ['\0'; LETTERS_MAX], len: 0, mask: 0 };
        for c in word.chars() {
            if !(c.is_ascii_lowercase() || c.is_alphabetic() && !is_cjk(c)) {
                return None;
            }
            *letters.letters.get_mut(letters.len)? = c;
            letters.len += 1;
            // The letters of an alphabet follow each other, and few have more than this many.
            letters.mask |= 1 << (c as u32 % 32);
        }
        Some(letters)
    }

    fn as_slice(&self) -> &[char] {
        &self.letters[..self.len]
    }
}

/// How many letters must be left out, added, changed or swapped with their neighbours to make one word of the other, no part of it being
/// edited twice (optimal string alignment), if it is not more than that. Only cells that near to the diagonal matter.
fn distance(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    const FAR: u8 = u8::MAX / 2;
    let (mut before, mut above) = ([FAR; LETTERS_MAX + 1], [FAR; LETTERS_MAX + 1]);
    for (j, cell) in above.iter_mut().enumerate().take(b.len().min(most) + 1) {
        *cell = j as u8;
    }
    for i in 1..=a.len() {
        let mut row = [FAR; LETTERS_MAX + 1];
        let (from, to) = (i.saturating_sub(most), (i + most).min(b.len()));
        let mut least = FAR;
        for j in from..=to {
            if j == 0 {
                row[0] = i as u8;
            } else {
                let changed = above[j - 1] + u8::from(a[i - 1] != b[j - 1]);
                let mut cell = changed.min(above[j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    cell = cell.min(before[j - 2] + 1);
                }
                row[j] = cell;
            }
            least = least.min(row[j]);
        }
        if usize::from(least) > most {
            return None;
        }
        (before, above) = (above, row);
    }
    Some(usize::from(above[b.len()])).filter(|d| *d <= most)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chars(word: &str) -> Vec<char> {
        word.chars().collect()
    }

    #[test]
    fn distances_are_those_of_slips() {
        let check = |a: &str, b: &str, expected: Option<usize>| {
            assert_eq!(distance(&chars(a), &chars(b), 2), expected, "{a} {b}");
            assert_eq!(distance(&chars(b), &chars(a), 2), expected, "{b} {a}");
        };
        check("", "", Some(0));
        check("word", "word", Some(0));
        check("word", "wrod", Some(1));
        check("word", "ward", Some(1));
        check("word", "wor", Some(1));
        check("word", "words", Some(1));
        check("recieve", "receive", Some(1));
        check("teh", "the", Some(1));
        check("kittne", "kitten", Some(1));
        check("sitting", "kitten", None);
        check("abcd", "badc", Some(2));
        check("ab", "", Some(2));
        check("größe", "grosse", None);
        check("größe", "grösse", Some(2));
        check("москва", "москав", Some(1));
    }

    /// The whole table, without a short cut.
    pub(in crate::words) fn slow(a: &[char], b: &[char]) -> usize {
        let mut d = vec![vec![0usize; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                d[i][j] = match (i, j) {
                    (0, _) => j,
                    (_, 0) => i,
                    _ => {
                        let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                        let plain = (d[i - 1][j] + 1).min(d[i][j - 1] + 1);
                        let plain = plain.min(d[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]));
                        if swapped { plain.min(d[i - 2][j - 2] + 1) } else { plain }
                    }
                }
            }
        }
        d[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn near_the_diagonal_is_near_enough(a in "[abc]{0,9}", b in "[abc]{0,9}", most in 1usize..3) {
            let expected = Some(slow(&chars(&a), &chars(&b))).filter(|d| *d <= most);
            prop_assert_eq!(distance(&chars(&a), &chars(&b), most), expected);
        }
    }
}
