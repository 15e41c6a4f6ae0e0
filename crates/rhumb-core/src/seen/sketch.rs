//! A sketch: what a text says, in a few dozen bytes, so that the resemblance of two texts can be told from their sketches.
//!
//! The resemblance of two texts is that of their sets of five-word shingles: shared ones over all, after Jaccard (Broder 1997). Every shingle is hashed
//! once (one permutation: Li, Owen, Zhang 2012). The hash chooses one of [`BINS`] bins, and each bin keeps its least value. From these minima
//! come two things:
//!
//! - **Keys** to find candidates by. Sixteen groups of bins have a minimum each, empty groups borrow one (optimal densification: Shrivastava 2017),
//!   and four of them together make a super-shingle. Texts of resemblance s share one of the four keys with probability 1 - (1 - s⁴)⁴: 0.986 at 0.9,
//!   0.9988 at 0.95, 0.23 at one half.
//! - **Bits** to verify a candidate by. The set of all minima is kept as an odd sketch (Mitzenmacher, Pagh, Pham 2014): each minimum flips one of
//!   [`BITS`] bits. What both texts have cancels out, so the bits in which two sketches differ count the minima that they do not share. At a
//!   resemblance of 0.9 that has half the variance of as many one-bit minima, and where a text has no more shingles than there
//!   are bins, as most have, nearly all of its shingles are in the sketch and nothing is left to the luck of a sample.
//!
//! Beside them stands a fingerprint of the words in their order, by which two texts are known to be the same but for case, punctuation and spacing.
//!
//! Texts with fewer words than a shingle have the fingerprint alone. The words are those of `words.rs`.

use std::sync::LazyLock;

use rhumb_store::codec::{Malformed, Put, Take};

use super::words::{each_word, fold};

/// Words in a shingle.
pub const SHINGLE_WORDS: usize = 5;
/// Bins, each of which keeps its least shingle.
pub const BINS: usize = 1024;
/// Bits of the odd sketch.
pub const BITS: usize = 288;
/// Super-shingles of a sketch.
pub const KEYS: usize = 4;
/// Bits of a super-shingle: 10 million pages meet by chance in fewer than one look-up of a thousand.
pub const KEY_BITS: u32 = 36;
/// Texts from this resemblance on are near-duplicates.
pub const SIMILARITY_MIN: f32 = 0.9;

/// What the estimate must be for that. It errs by 0.01 to 0.02 either way, upwards by some thousandths in short texts; here precision and recall are about equal.
const ESTIMATE_MIN: f32 = 0.9025;

const MINIMA_PER_KEY: usize = 4;
const GROUPS: usize = KEYS * MINIMA_PER_KEY;
const GROUP_BINS: usize = BINS / GROUPS;
const BYTES: usize = BITS / 8;
const EMPTY: u32 = u32::MAX;
/// Lengths are kept as logarithms, so many steps to a doubling.
const STEPS_PER_DOUBLING: f32 = 8.0;
/// Texts whose lengths differ by more than a factor of 1.5 have no resemblance of [`SIMILARITY_MIN`], unless one says the same things several times, and
/// that is no copy of the other.
const STEPS_APART_MAX: u8 = 5;

const ROLL: u64 = 0x9fb2_1c65_1e98_df25;
const ROLL_OUT: u64 = ROLL.wrapping_mul(ROLL).wrapping_mul(ROLL).wrapping_mul(ROLL).wrapping_mul(ROLL);
const MIX_A: u64 = 0xbf58_476d_1ce4_e5b9;
const MIX_B: u64 = 0x94d0_49bb_1331_11eb;
const EXACT: u64 = 0xa076_1d64_78bd_642f;

/// What the content-seen test knows of a page's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// A fingerprint of the words in their order.
    pub exact: u64,
    /// None of a text with fewer words than a shingle.
    pub sketch: Option<Sketch>,
}

/// See the module's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// Super-shingles, of `KEY_BITS` bits each.
    pub keys: [u64; KEYS],
    /// What candidates are verified by.
    pub body: Body,
}

/// The part of a sketch that tells the resemblance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// The odd sketch of the minima.
    pub(super) bits: [u8; BYTES],
    /// Bins with a minimum; 0 if there is no sketch.
    pub(super) filled: u16,
    /// The logarithm of the number of shingles.
    pub(super) length: u8,
}

impl Content {
    /// The content of a text; none if it has no words.
    pub fn of(text: &str) -> Option<Content> {
        let mut sketcher = Sketcher::default();
        sketcher.push(text);
        sketcher.finish()
    }

    /// Appends it as bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.exact.to_le_bytes());
        into.put_u8(u8::from(self.sketch.is_some()));
        if let Some(sketch) = &self.sketch {
            sketch.put(into);
        }
    }

    /// Reads what [`Content::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Content, Malformed> {
        let exact = u64::from_le_bytes(from.raw(8)?.try_into().map_err(|_| Malformed("half a fingerprint"))?);
        let sketch = match from.u8()? {
            0 => None,
            1 => Some(Sketch::take(from)?),
            _ => return Err(Malformed("neither a sketch nor none")),
        };
        Ok(Content { exact, sketch })
    }
}

impl Sketch {
    /// Appends it as bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        self.keys.iter().for_each(|key| into.extend_from_slice(&key.to_le_bytes()[..5]));
        self.body.put(into);
    }

    /// Reads what [`Sketch::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Sketch, Malformed> {
        let mut keys = [0; KEYS];
        for key in &mut keys {
            let mut bytes = [0; 8];
            bytes[..5].copy_from_slice(from.raw(5)?);
            *key = u64::from_le_bytes(bytes);
            if *key >> KEY_BITS != 0 {
                return Err(Malformed("a key of a sketch has too many bits"));
            }
        }
        let body = Body::take(from)?;
        if body.filled == 0 {
            return Err(Malformed("a sketch of nothing"));
        }
        Ok(Sketch { keys, body })
    }
}

impl Body {
    /// The body of a content without a sketch.
    pub(super) const NONE: Body = Body { bits: [0; BYTES], filled: 0, length: 0 };
    /// Bytes that [`Body::put`] writes.
    pub(super) const BYTES: usize = BYTES + 3;

    pub(super) fn put(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.filled.to_le_bytes());
        into.put_u8(self.length);
        into.extend_from_slice(&self.bits);
    }

    pub(super) fn take(from: &mut Take<'_>) -> Result<Body, Malformed> {
        let filled = u16::from_le_bytes([from.u8()?, from.u8()?]);
        let length = from.u8()?;
        let bits = from.raw(BYTES)?.try_into().map_err(|_| Malformed("half a sketch"))?;
        if filled as usize > BINS {
            return Err(Malformed("a sketch with more minima than bins"));
        }
        Ok(Body { bits, filled, length })
    }

    fn differing_bits(&self, other: &Body) -> u32 {
        let (a, a_tail) = self.bits.as_chunks::<8>();
        let (b, b_tail) = other.bits.as_chunks::<8>();
        let whole: u32 =
            a.iter().zip(b).map(|(a, b)| (u64::from_ne_bytes(*a) ^ u64::from_ne_bytes(*b)).count_ones()).sum();
        whole + a_tail.iter().zip(b_tail).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
    }

    /// The resemblance if it may be that of near-duplicates; what it is otherwise does not matter.
    pub(super) fn near(&self, other: &Body) -> Option<f32> {
        if self.length.abs_diff(other.length) > STEPS_APART_MAX || self.filled == 0 || other.filled == 0 {
            return None;
        }
        // Most candidates are far apart, and can be told from the bits alone.
        let (fa, fb) = (f32::from(self.filled), f32::from(other.filled));
        if shared_minima(self, other) < ESTIMATE_MIN * fa.max(fb) {
            return None;
        }
        Some(estimate(self, other)).filter(|s| *s >= ESTIMATE_MIN)
    }
}

/// An estimate of the resemblance of two texts, by their sketches.
pub fn similarity(a: &Sketch, b: &Sketch) -> f32 {
    estimate(&a.body, &b.body)
}

/// Minima that two texts share, as far as the bits tell; negative if they tell that there are none.
fn shared_minima(a: &Body, b: &Body) -> f32 {
    // Minima not shared, from the bits they flipped: two of them that hit the same bit are not seen, and this is what they are expected to be.
    static APART: LazyLock<[f32; BITS + 1]> = LazyLock::new(|| {
        let n = BITS as f32;
        std::array::from_fn(|differing| match 2 * differing < BITS {
            true => (-2.0 * differing as f32 / n).ln_1p() / (-2.0 / n).ln_1p(),
            false => f32::INFINITY,
        })
    });
    (f32::from(a.filled) + f32::from(b.filled) - APART[a.differing_bits(b) as usize]) / 2.0
}

/// Shingles of a text that fills so many bins.
fn shingles(filled: u16) -> f32 {
    static SHINGLES: LazyLock<Vec<f32>> = LazyLock::new(|| {
        let bins = BINS as f32;
        (0..=BINS).map(|filled| -bins * (-(filled as f32).min(bins - 0.5) / bins).ln_1p()).collect()
    });
    SHINGLES[usize::from(filled).min(BINS)]
}

fn estimate(a: &Body, b: &Body) -> f32 {
    let shared = shared_minima(a, b);
    if a.filled == 0 || b.filled == 0 || shared <= 0.0 {
        return 0.0;
    }
    let (fa, fb) = (f32::from(a.filled), f32::from(b.filled));
    // The resemblance is that of the minima, shared ones over bins in which either text has one. How many these are follows from the numbers of
    // shingles, which follow from the bins that are filled.
    let bins = BINS as f32;
    let sum = shingles(a.filled) + shingles(b.filled);
    let mut similarity = shared / fa.max(fb);
    for _ in 0..3 {
        let either = -bins * (-(sum / (1.0 + similarity)) / bins).exp_m1();
        similarity = (shared / either.max(fa.max(fb))).min(1.0);
    }
    similarity
}

/// Makes sketches, one after the other, without allocating for each.
pub struct Sketcher {
    minima: Box<[u32; BINS]>,
    recent: [u64; SHINGLE_WORDS],
    words: u64,
    rolling: u64,
    exact: u64,
}

impl Default for Sketcher {
    fn default() -> Self {
        Sketcher { minima: Box::new([EMPTY; BINS]), recent: [0; SHINGLE_WORDS], words: 0, rolling: 0, exact: EXACT }
    }
}

impl Sketcher {
    /// Adds a piece of text. A word does not go on in the next piece, a shingle does.
    pub fn push(&mut self, text: &str) {
        let Sketcher { minima, recent, words, rolling, exact } = self;
        each_word(text, |word| {
            let place = (*words % SHINGLE_WORDS as u64) as usize;
            *rolling = rolling.wrapping_mul(ROLL).wrapping_add(word).wrapping_sub(recent[place].wrapping_mul(ROLL_OUT));
            recent[place] = word;
            *words += 1;
            *exact = fold(*exact ^ word, EXACT).wrapping_add(*words);
            if *words >= SHINGLE_WORDS as u64 {
                let hash = mix(*rolling);
                let minimum = &mut minima[bin(hash)];
                *minimum = (*minimum).min(hash as u32);
            }
        });
    }

    /// The content of what was pushed; none if there were no words. The next text may begin.
    pub fn finish(&mut self) -> Option<Content> {
        let (words, exact) = (self.words, mix(self.exact));
        let sketch = (words >= SHINGLE_WORDS as u64).then(|| self.sketch(words + 1 - SHINGLE_WORDS as u64));
        if sketch.is_some() {
            self.minima.fill(EMPTY);
        }
        (self.recent, self.words, self.rolling, self.exact) = ([0; SHINGLE_WORDS], 0, 0, EXACT);
        (words > 0).then_some(Content { exact, sketch })
    }

    fn sketch(&self, shingles: u64) -> Sketch {
        let mut bits = [0; BYTES];
        let mut filled = 0;
        let mut least = [EMPTY; GROUPS];
        for (bin, &minimum) in self.minima.iter().enumerate() {
            if minimum != EMPTY {
                filled += 1;
                let hash = mix(((bin as u64) << 32) | u64::from(minimum));
                let bit = ((hash >> 32) as usize * BITS) >> 32;
                bits[bit / 8] ^= 1 << (bit % 8);
                let least = &mut least[bin / GROUP_BINS];
                *least = minimum.min(*least);
            }
        }
        let length = ((shingles as f32).log2() * STEPS_PER_DOUBLING).round().min(255.0) as u8;
        Sketch { keys: keys(&least), body: Body { bits, filled, length } }
    }
}

/// A shingle's bin, from the upper half of its hash; the lower half is its value there.
fn bin(hash: u64) -> usize {
    ((hash >> 32) as usize * BINS) >> 32
}

fn keys(least: &[u32; GROUPS]) -> [u64; KEYS] {
    let value = |group: usize| {
        let mut from = group;
        let mut attempt = 0;
        // There is a shingle, so some group has a value, and the sequence of a group comes to every other in time.
        while least[from] == EMPTY && attempt < 1 << 16 {
            attempt += 1;
            from = (mix((group as u64) << 32 | attempt) >> 32) as usize % GROUPS;
        }
        u64::from(least[from])
    };
    std::array::from_fn(|key| {
        let values = (0..MINIMA_PER_KEY).map(|i| value(key * MINIMA_PER_KEY + i));
        mix(values.fold(key as u64 + 1, |hash, value| fold(hash.wrapping_add(value) ^ EXACT, MIX_A))) >> (64 - KEY_BITS)
    })
}

pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(MIX_A);
    z = (z ^ (z >> 27)).wrapping_mul(MIX_B);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::Random;
    use std::collections::HashSet;

    fn text(random: &mut Random, words: usize) -> Vec<String> {
        (0..words).map(|_| format!("w{}", random.next() % 5_000)).collect()
    }

    fn sketch(words: &[String]) -> Sketch {
        Content::of(&words.join(" ")).and_then(|c| c.sketch).expect("a text")
    }

    fn jaccard(a: &[String], b: &[String]) -> f32 {
        let [a, b]: [HashSet<&[String]>; 2] = [a, b].map(|t| t.windows(SHINGLE_WORDS).collect());
        let shared = a.intersection(&b).count();
        shared as f32 / (a.len() + b.len() - shared) as f32
    }

    /// The error of the estimate at texts of all lengths: the mean of it, and its standard deviation.
    #[test]
    fn the_estimate_is_near_the_truth() {
        let mut random = Random::new(1);
        for (words, deviation_max) in [(100, 0.015), (400, 0.015), (1_000, 0.015), (4_000, 0.02), (20_000, 0.024)] {
            let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
            for _ in 0..150 {
                let a = text(&mut random, words);
                let mut b = a.clone();
                // About a tenth of the shingles differ.
                for _ in 0..(words / 95).max(1) {
                    let at = random.next() as usize % words;
                    b[at] = "changed".to_string();
                }
                let truth = jaccard(&a, &b);
                let error = similarity(&sketch(&a), &sketch(&b)) - truth;
                sum += error;
                squares += error * error;
                n += 1.0;
            }
            let (mean, deviation): (f32, f32) = (sum / n, (squares / n).sqrt());
            assert!(mean.abs() < 0.006 && deviation < deviation_max, "{words} words: {mean} ± {deviation}");
        }
    }

    #[test]
    fn near_duplicates_share_a_key_and_others_do_not() {
        let mut random = Random::new(2);
        let (mut met, mut strangers) = (0, 0);
        let mut before = sketch(&text(&mut random, 500));
        for _ in 0..300 {
            let a = text(&mut random, 500);
            let mut b = a.clone();
            (0..5).for_each(|i| b[i * 100 + 7] = "changed".to_string());
            let (a, b) = (sketch(&a), sketch(&b));
            met += u32::from(a.keys.iter().zip(b.keys).any(|(a, b)| *a == b));
            strangers += u32::from(a.keys.iter().zip(before.keys).any(|(a, b)| *a == b));
            assert!(a.body.near(&before.body).is_none());
            before = a;
        }
        assert!(met >= 290 && strangers == 0, "{met} of 300 are met, {strangers} strangers");
    }

    #[test]
    fn what_is_exactly_the_same() {
        let check = |a: &str, b: &str, same: bool| {
            let (a, b) = (Content::of(a), Content::of(b));
            assert_eq!(a.as_ref().map(|c| c.exact) == b.as_ref().map(|c| c.exact), same);
            if same {
                assert_eq!(a, b);
            }
        };
        check("Hello, World", "hello world", true);
        check("hello world", "world hello", false);
        check("hello world", "hello world world", false);
        check("", " - ", true);
        check("One two three four five six.", "one two\nthree—four FIVE six", true);
        check("one two three four five six", "one two three four five seven", false);
        assert_eq!(Content::of("…"), None);
        assert!(Content::of("one two three four").is_some_and(|c| c.sketch.is_none()));
        assert!(Content::of("one two three four five").is_some_and(|c| c.sketch.is_some()));
    }

    #[test]
    fn a_sketcher_forgets_and_pieces_are_one_text() {
        let mut sketcher = Sketcher::default();
        sketcher.push("some other text of more than five words");
        let first = sketcher.finish();
        sketcher.push("one two three");
        sketcher.push("four five six");
        assert_eq!(sketcher.finish(), Content::of("one two three four five six"));
        assert_eq!(first, Content::of("some other text of more than five words"));
        assert_eq!(sketcher.finish(), None);
    }

    #[test]
    fn what_was_put_is_taken() {
        for text in ["one", "one two three four five six seven"] {
            let content = Content::of(text).expect("words");
            let mut bytes = Vec::new();
            content.put(&mut bytes);
            let mut take = Take::new(&bytes);
            assert_eq!(Content::take(&mut take), Ok(content));
            assert!(take.is_empty());
            for n in 0..bytes.len() {
                assert!(Content::take(&mut Take::new(&bytes[..n])).is_err());
            }
        }
    }
}
