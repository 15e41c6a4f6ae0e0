//! Snippets: the part of a page's text that answers a query best, with the words that match.
//!
//! `scan.rs` walks over the text once and notes where words of the query are, which takes as much memory as there are
//! such words. Here the windows are chosen that have the most different ones close together: one, or two where two
//! have more of them. `cut.rs` finds good places around them to begin and to end, and writes them out.
//!
//! Invariant: a snippet is one line without control characters and without characters that change the direction of text, no longer than
//! was asked; its highlights are ascending, apart from each other, and each is a word of the query.

mod cut;
mod scan;
#[cfg(test)]
mod tests;

use cut::Passage;
use scan::Match;
pub(crate) use scan::is_cjk;

/// Less is no snippet.
const CHARS_MIN: usize = 16;
/// Two passages of less say less than one.
const HALF_CHARS_MIN: usize = 24;
/// What left-out text is shown as, with its spaces: before, between and behind passages.
const ELLIPSIS_CHARS: usize = 2;
const JOIN_CHARS: usize = 3;
/// Terms that are told apart; those from the last on count as one. Queries have fewer.
const TERMS_MAX: usize = 256;

/// What a snippet should be like.
#[derive(Clone, Copy, Debug)]
pub struct SnippetOptions<'a> {
    /// What each term of the query is worth; 1 if it is not said.
    pub weights: &'a [f32],
    /// Characters, ellipses included. At least 16.
    pub chars_max: usize,
    /// Whether there may be two passages.
    pub two_passages: bool,
    /// Bytes of the text that are looked at.
    pub bytes_max: usize,
}

impl Default for SnippetOptions<'_> {
    fn default() -> Self {
        SnippetOptions { weights: &[], chars_max: 240, two_passages: true, bytes_max: 64 << 10 }
    }
}

/// A part of a page's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// One line.
    pub text: String,
    /// Beginnings and ends of what matches, in characters (Unicode scalar values).
    pub highlights: Vec<(usize, usize)>,
}

/// The snippet of a text. `terms` says which term of the query a word is; it is asked for runs of alphanumeric characters as they are
/// written, and where words are not set apart (Han, kana, hangul) for each character and each pair of neighbours.
pub fn make(text: &str, terms: &dyn Fn(&str) -> Option<u32>, options: &SnippetOptions<'_>) -> Snippet {
    let chars_max = options.chars_max.max(CHARS_MIN);
    let scanned = scan::cut(text, options.bytes_max);
    let matches = scan::matches(scanned, terms);
    let worth = worth_of(options.weights);
    let width = chars_max - 2 * ELLIPSIS_CHARS;
    let width_half = (chars_max - 2 * ELLIPSIS_CHARS - JOIN_CHARS) / 2;

    let Some(whole) = best(&matches, width, &worth, &[false; TERMS_MAX]) else {
        return cut::write(text, &[cut::beginning(scanned, width)], &matches);
    };
    let passage = |window: &Window, matches: &[Match], width| {
        cut::around(scanned, &matches[window.first], &matches[window.last], width)
    };
    if options.two_passages
        && width_half >= HALF_CHARS_MIN
        && let Some(first) = best(&matches, width_half, &worth, &[false; TERMS_MAX])
        && first.covered < worth_of_all(&matches, &worth)
    {
        let one = passage(&first, &matches, width_half);
        if let Some(other) = second(&matches, &one, width_half, &worth)
            && first.covered + other.1.covered > whole.covered
        {
            let two = passage(&other.1, other.0, width_half);
            return cut::write(text, &cut::in_order(text, one, two), &matches);
        }
    }
    cut::write(text, &[passage(&whole, &matches, width)], &matches)
}

/// What of a short text, such as a title, matches: beginnings and ends in characters of the text as it is.
pub fn highlight(text: &str, terms: &dyn Fn(&str) -> Option<u32>) -> Vec<(usize, usize)> {
    let bytes_max = SnippetOptions::default().bytes_max;
    let mut highlights = cut::Highlights::new(&scan::matches(scan::cut(text, bytes_max), terms));
    for (index, (at, c)) in text.char_indices().take_while(|(at, _)| *at < bytes_max).enumerate() {
        highlights.step(at, c, index);
    }
    highlights.finish()
}

/// Matches that are near each other.
struct Window {
    first: usize,
    last: usize,
    score: u64,
    /// What its terms are worth, each once.
    covered: u64,
}

/// What each term is worth, in thousandths: whole numbers can be taken away again without a remainder.
fn worth_of(weights: &[f32]) -> [u64; TERMS_MAX] {
    let thousandths = |weight: &f32| (weight.clamp(0.0, 1e6) * 1000.0) as u64;
    std::array::from_fn(|term| weights.get(term).map_or(1000, thousandths))
}

fn worth_of_all(matches: &[Match], worth: &[u64; TERMS_MAX]) -> u64 {
    let mut seen = [false; TERMS_MAX];
    matches.iter().map(|m| if std::mem::replace(&mut seen[m.slot()], true) { 0 } else { worth[m.slot()] }).sum()
}

/// The window of at most this many characters that is best. What was shown already is worth little.
fn best(
    matches: &[Match],
    width: usize,
    worth: &[u64; TERMS_MAX],
    shown_already: &[bool; TERMS_MAX],
) -> Option<Window> {
    // A term that is there again says little, up to a point; terms side by side are likely to be meant together. Neither outweighs
    // a term that is missing, unless that is a word of no weight.
    const REPEATS_MAX: u32 = 4;
    const NEIGHBOURS_MAX: u64 = 2;
    let repeat = |slot: usize| worth[slot] / 20;
    let first_time = |slot: usize| if shown_already[slot] { worth[slot] / 10 } else { worth[slot] };
    let neighbours = |at: usize| {
        let (before, this) = (&matches[at - 1], &matches[at]);
        u64::from(before.slot() != this.slot() && this.shown.start <= before.shown.end + 1)
    };

    let mut best: Option<Window> = None;
    let mut counts = [0u32; TERMS_MAX];
    let (mut first, mut score, mut covered, mut pairs) = (0, 0, 0, 0);
    for (last, added) in matches.iter().enumerate() {
        let slot = added.slot();
        match counts[slot] {
            0 => {
                score += first_time(slot);
                covered += if shown_already[slot] { 0 } else { worth[slot] };
            }
            n if n <= REPEATS_MAX => score += repeat(slot),
            _ => {}
        }
        counts[slot] += 1;
        pairs += if last > first { neighbours(last) } else { 0 };
        while first < last && added.shown.end - matches[first].shown.start > width {
            let slot = matches[first].slot();
            counts[slot] -= 1;
            match counts[slot] {
                0 => {
                    score -= first_time(slot);
                    covered -= if shown_already[slot] { 0 } else { worth[slot] };
                }
                n if n <= REPEATS_MAX => score -= repeat(slot),
                _ => {}
            }
            pairs -= neighbours(first + 1);
            first += 1;
        }
        let sentence = added.shown.end - matches[first].sentence.shown <= width;
        let rewarded = score + pairs.min(NEIGHBOURS_MAX) * score / 8 + if sentence { score / 12 } else { 0 };
        if best.as_ref().is_none_or(|b| rewarded > b.score) {
            best = Some(Window { first, last, score: rewarded, covered });
        }
    }
    best
}

/// The best window before or behind a passage, if it has what the passage lacks; with the matches it counts in.
fn second<'m>(
    matches: &'m [Match],
    passage: &Passage,
    width: usize,
    worth: &[u64; TERMS_MAX],
) -> Option<(&'m [Match], Window)> {
    let before = matches.partition_point(|m| m.bytes.start < passage.bytes.start);
    let behind = matches.partition_point(|m| m.bytes.start < passage.bytes.end);
    let mut shown = [false; TERMS_MAX];
    matches[before..behind].iter().for_each(|m| shown[m.slot()] = true);
    let sides = [&matches[..before], &matches[behind..]];
    let windows = sides.into_iter().filter_map(|side| Some((side, best(side, width, worth, &shown)?)));
    // Of two that are alike the earlier one counts.
    windows.rev().max_by_key(|(_, window)| window.score)
}
