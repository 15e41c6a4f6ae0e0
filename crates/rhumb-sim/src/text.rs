//! Words and sentences: a Zipfian vocabulary, written once, copied ever after.
//!
//! A page of 10 KB holds some 1,500 words. Drawing each by hashing would cost the server more than the crawler spends
//! on the page, so the sentences are drawn once per web into a pool, and a paragraph is a run of sentences out of it:
//! one copy. Two pages share a sentence now and then, as on the real web; two runs of the same length rarely coincide.

use crate::hash::{Dice, PowerLaw, Purpose, mix};

const POOL_BYTES: usize = 256 << 10;
const VOCABULARY: usize = 8_192;
/// Words used in paths and titles; plain ASCII, so that they need no escaping anywhere.
const PATH_WORDS: u64 = 2_048;
/// Room for the longest word that can be invented: three syllables of six letters.
const SLOT_BYTES: usize = 24;

/// The commonest words of English, commonest first: they fill the head of the distribution, so that language
/// detection and stop words meet what they expect.
const COMMON: &str = "the of and to in a is that for it as was with be by on not he his but at are this have from or had \
    an they which one you were all her she there would their we him been has when who will no more if out so up said what \
    its about than into them can only other time new some could these two may first then do any like my now over such our \
    man me even most made after also did many off before must well back through years much where your way down should \
    because long each just state those people too mr how little good world make very year still see own work men day get \
    here old life both between being under three never know same last another while us might great since against come right";

const ONSETS: [&str; 18] =
    ["b", "br", "c", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v"];
const VOWELS: [&str; 7] = ["a", "e", "i", "o", "u", "ea", "io"];
const CODAS: [&str; 9] = ["", "", "n", "r", "s", "l", "t", "nd", "m"];

/// The vocabulary and the sentence pool of one web.
pub(crate) struct Text {
    words: Vec<Box<str>>,
    /// Words for paths and titles, each in a slot of its own with its length: copying a whole slot costs a few
    /// instructions, copying so many bytes as the word has costs a call.
    slots: Vec<([u8; SLOT_BYTES], u8)>,
    pool: Vec<u8>,
    /// Where each sentence of the pool begins, and where the last one ends.
    starts: Vec<u32>,
}

impl Text {
    pub(crate) fn new(seed: u64) -> Self {
        let mut words: Vec<Box<str>> = COMMON.split_whitespace().map(Box::from).collect();
        let common = words.len();
        let mut rank = 0;
        while words.len() < VOCABULARY {
            words.push(invent(seed, rank, rank >= PATH_WORDS));
            rank += 1;
        }
        let slot = |word: &str| {
            let mut slot = [0; SLOT_BYTES];
            slot[..word.len()].copy_from_slice(word.as_bytes());
            (slot, word.len() as u8)
        };
        let slots = words[common..][..PATH_WORDS as usize].iter().map(|word| slot(word)).collect();
        let mut text = Text { words, slots, pool: Vec::with_capacity(POOL_BYTES + 512), starts: vec![0] };
        let mut dice = Dice::new(mix(seed, Purpose::Sentences, 0, 0));
        let law = PowerLaw::new(1.0);
        while text.pool.len() < POOL_BYTES {
            text.compose(&law, &mut dice);
            text.starts.push(text.pool.len() as u32);
        }
        text
    }

    /// About `bytes` bytes of whole sentences, chosen by `hash`; at least one sentence, at most the pool.
    pub(crate) fn run(&self, hash: u64, bytes: usize) -> &[u8] {
        let sentences = self.starts.len() - 1;
        let mean = self.pool.len() / sentences;
        let count = ((bytes + mean / 2) / mean).clamp(1, sentences);
        let first = Dice::new(hash).below((sentences - count + 1) as u64) as usize;
        &self.pool[self.starts[first] as usize..self.starts[first + count] as usize]
    }

    /// Writes a word fit for a path or a title.
    pub(crate) fn put_word(&self, hash: u64, out: &mut Vec<u8>) {
        let (slot, length) = &self.slots[(hash % PATH_WORDS) as usize];
        let end = out.len() + usize::from(*length);
        out.extend_from_slice(slot);
        out.truncate(end);
    }

    fn compose(&mut self, law: &PowerLaw, dice: &mut Dice) {
        let length = 6 + dice.below(13);
        for position in 0..length {
            let word = &self.words[law.rank(dice, self.words.len() as u64, 1.0) as usize];
            let start = self.pool.len();
            self.pool.extend_from_slice(word.as_bytes());
            if position == 0 {
                self.pool[start].make_ascii_uppercase();
            }
            let mark: &str = match dice.below(64) {
                _ if position + 1 == length => ". ",
                0..4 => ", ",
                4 => " &amp; ",
                5 => " &mdash; ",
                _ => " ",
            };
            self.pool.extend_from_slice(mark.as_bytes());
        }
    }
}

fn invent(seed: u64, rank: u64, accents: bool) -> Box<str> {
    let mut dice = Dice::new(mix(seed, Purpose::Words, rank, 0));
    let mut word = String::new();
    for _ in 0..2 + dice.below(2) {
        word.push_str(ONSETS[dice.below(ONSETS.len() as u64) as usize]);
        word.push_str(VOWELS[dice.below(VOWELS.len() as u64) as usize]);
        word.push_str(CODAS[dice.below(CODAS.len() as u64) as usize]);
    }
    if accents && dice.chance(0.05) { word.replacen('e', "é", 1).into() } else { word.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_whole_sentences_of_about_the_length_asked() {
        let text = Text::new(3);
        for (hash, bytes) in [(1, 300), (2, 1_000), (3, 5_000)] {
            let run = std::str::from_utf8(text.run(hash, bytes)).unwrap();
            assert!(run.ends_with(". "), "{run}");
            assert!(run.starts_with(|c: char| c.is_ascii_uppercase()), "{run}");
            let off = run.len().abs_diff(bytes);
            assert!(off < 100 + bytes / 4, "{} for {bytes}", run.len());
        }
    }

    #[test]
    fn the_vocabulary_is_zipfian_and_repeats_from_the_seed() {
        let text = Text::new(4);
        let pool = String::from_utf8(text.pool.clone()).unwrap().to_lowercase();
        let count = |word: &str| pool.split(|c: char| !c.is_alphabetic()).filter(|w| *w == word).count();
        let (first, tenth) = (count("the"), count("it"));
        assert!(first > 5 * tenth && first < 16 * tenth, "{first} {tenth}");
        assert_eq!(text.pool, Text::new(4).pool);
        assert_ne!(text.pool, Text::new(5).pool);
    }
}
