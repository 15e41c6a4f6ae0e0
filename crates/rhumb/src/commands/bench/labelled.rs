//! A labelled set of page pairs, made by construction: what differs is known, and the truth is the exact resemblance of the sets of
//! five-word shingles.
//!
//! Every pair has a body and a site of its own; the site's template is left in the text in part, as an extractor of main text would. The kinds are those of
//! [`Kind`]. Lengths go from 40 to 4,000 words, as many short as long ones by their logarithm.

use std::collections::HashSet;

use rhumb_core::priority::Random;
use rhumb_core::seen::SHINGLE_WORDS;

/// How the second page came from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Edits, from none to many, on another site whose template is left out.
    Edited,
    /// The same on the same site, some of whose template is left.
    EditedSameSite,
    /// The same body, and what is left of two templates.
    OtherTemplate,
    /// One template, and bodies that have nothing in common.
    OtherBody,
    /// One template, and two bodies of which the shorter is the beginning of the longer.
    Excerpt,
    /// A mirror: the same, or all but for a counter or a date.
    Mirror,
    /// The same page under a second URL of its site, as session numbers and print versions make: the same, or all but for a counter or a date.
    SecondUrl,
    /// Nothing in common.
    Stranger,
}

/// All kinds.
pub const KINDS: [Kind; 8] = [
    Kind::Edited,
    Kind::EditedSameSite,
    Kind::OtherTemplate,
    Kind::OtherBody,
    Kind::Excerpt,
    Kind::Mirror,
    Kind::SecondUrl,
    Kind::Stranger,
];

impl Kind {
    /// Whether both pages are on one site.
    pub fn is_same_site(self) -> bool {
        matches!(self, Kind::EditedSameSite | Kind::OtherBody | Kind::Excerpt | Kind::SecondUrl)
    }
}

/// Words, by their number in the vocabulary.
pub type Text = Vec<u32>;

/// Two pages.
pub struct Pair {
    /// How the second came from the first.
    pub kind: Kind,
    /// The texts.
    pub texts: [Text; 2],
}

/// The share of five-word shingles that two texts have in common.
pub fn resemblance(a: &[u32], b: &[u32]) -> f64 {
    let [a, b]: [HashSet<&[u32]>; 2] = [a, b].map(|t| t.windows(SHINGLE_WORDS).collect());
    let shared = a.intersection(&b).count();
    shared as f64 / (a.len() + b.len() - shared).max(1) as f64
}

/// The text as bytes.
pub fn spell(text: &[u32]) -> String {
    let mut out = String::with_capacity(text.len() * 6);
    for (i, word) in text.iter().enumerate() {
        out.push_str(if i == 0 {
            ""
        } else if i % 13 == 0 {
            ". "
        } else {
            " "
        });
        let mut n = *word;
        loop {
            out.push_str(["ra", "ne", "to", "li", "su", "mor", "den", "ka"][n as usize % 8]);
            n /= 8;
            if n == 0 {
                break;
            }
        }
    }
    out
}

/// Makes one pair.
pub fn pair(kind: Kind, random: &mut Random) -> Pair {
    let words = length(random, 40, 4_000);
    let body = words_of(random, words);
    let [mut a, mut b] = [body.clone(), body];
    match kind {
        Kind::Edited => edit_down_to(&mut b, random),
        Kind::EditedSameSite => {
            edit_down_to(&mut b, random);
            let n = below(random, words / 3 + 1);
            let template = words_of(random, n);
            [&mut a, &mut b].into_iter().for_each(|t| wrap(t, &template));
        }
        Kind::OtherTemplate => {
            // Up to a sixth of the text each: that is a resemblance of 0.7.
            for text in [&mut a, &mut b] {
                let n = below(random, words / 6 + 1);
                wrap(text, &words_of(random, n));
            }
        }
        Kind::OtherBody | Kind::Excerpt => {
            let other = length(random, 8, 1_000);
            b = if kind == Kind::Excerpt {
                a[..words - below(random, words / 3)].to_vec()
            } else {
                words_of(random, other)
            };
            // From a trace of the template to twenty times the body.
            let n = length(random, 1, 20 * other.min(words)).min(8_000);
            let template = words_of(random, n);
            [&mut a, &mut b].into_iter().for_each(|t| wrap(t, &template));
        }
        Kind::Mirror | Kind::SecondUrl => {
            if kind == Kind::SecondUrl {
                let n = below(random, words / 3 + 1);
                let template = words_of(random, n);
                [&mut a, &mut b].into_iter().for_each(|t| wrap(t, &template));
            }
            for _ in 0..below(random, 3) {
                let at = below(random, b.len());
                b[at] = word(random);
            }
        }
        Kind::Stranger => b = words_of(random, words),
    }
    Pair { kind, texts: [a, b] }
}

/// Pages of one site, with bodies of their own and as much of the template as is given, in words.
pub fn site(pages: usize, template: usize, random: &mut Random) -> Vec<Text> {
    let template = words_of(random, template);
    let page = |random: &mut Random| {
        let n = length(random, 20, 400);
        let mut text = words_of(random, n);
        wrap(&mut text, &template);
        text
    };
    (0..pages).map(|_| page(random)).collect()
}

/// Edits until a resemblance between 0.6 and 1 is reached, drawn evenly: a word replaced, a sentence inserted, deleted or moved, paragraphs shuffled.
fn edit_down_to(text: &mut Text, random: &mut Random) {
    let original = text.clone();
    let wanted = 1.0 - 0.4 * (random.next() as f64 / u64::MAX as f64);
    while resemblance(&original, text) > wanted {
        let sentence = (8 + below(random, 10)).min(text.len() / 4);
        let at = below(random, text.len() - sentence);
        match below(random, 8) {
            0 => {
                let new = words_of(random, sentence);
                text.splice(at..at, new);
            }
            1 => {
                text.drain(at..at + sentence);
            }
            2 => {
                let moved: Vec<u32> = text.drain(at..at + sentence).collect();
                let to = below(random, text.len());
                text.splice(to..to, moved);
            }
            3 if text.len() > 400 => {
                let mut paragraphs: Vec<Text> = text.chunks(100).map(<[u32]>::to_vec).collect();
                let (i, j) = (below(random, paragraphs.len()), below(random, paragraphs.len()));
                paragraphs.swap(i, j);
                *text = paragraphs.concat();
            }
            _ => text[at] = word(random),
        }
        if text.len() < 30 {
            return;
        }
    }
}

/// Half of the template in front, half of it behind.
fn wrap(text: &mut Text, template: &[u32]) {
    let (front, back) = template.split_at(template.len() / 2);
    text.splice(0..0, front.iter().copied());
    text.extend_from_slice(back);
}

fn words_of(random: &mut Random, n: usize) -> Text {
    (0..n).map(|_| word(random)).collect()
}

/// About as words are in a language: the n-th has a share of 1/n.
fn word(random: &mut Random) -> u32 {
    let x = random.next() as f64 / u64::MAX as f64;
    (30_000f64.powf(x) - 1.0) as u32
}

fn length(random: &mut Random, min: usize, max: usize) -> usize {
    let x = random.next() as f64 / u64::MAX as f64;
    (min as f64 * (max as f64 / min as f64).max(1.0).powf(x)) as usize
}

fn below(random: &mut Random, n: usize) -> usize {
    (random.next() % n.max(1) as u64) as usize
}
