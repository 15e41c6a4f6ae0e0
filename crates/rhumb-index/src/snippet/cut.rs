//! Where passages begin and end, and how they are written.
//!
//! A passage begins with a sentence if one begins near by, else with a word, and ends behind a word. Only what is longer than any word is
//! cut in the middle, between two characters as a reader sees them.

use std::ops::Range;

use super::Snippet;
use super::scan::{Match, Measure, Shown, is_cjk, is_gap, is_mark};

/// What is longer is no word, or is of a language that writes no spaces.
const WORD_CHARS_MAX: usize = 40;
/// Characters that are looked at to see whether anything was left out.
const LOOK_CHARS: usize = 256;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    pub(super) bytes: Range<usize>,
}

/// As much of the beginning of a text as fits.
pub(super) fn beginning(text: &str, width: usize) -> Passage {
    let start = text.find(|c| !is_gap(c)).unwrap_or(text.len());
    Passage { bytes: start..forward(text, start, width, true).0 }
}

/// As much as fits around the words from `first` to `last`.
pub(super) fn around(text: &str, first: &Match, last: &Match, width: usize) -> Passage {
    let spare = width.saturating_sub(last.shown.end - first.shown.start);
    if spare == 0 {
        return Passage { bytes: first.bytes.start..forward(text, first.bytes.start, width, true).0 };
    }
    // What comes behind a word tells more of it than what comes before.
    let lead = first.shown.start - first.sentence.shown;
    let (mut start, lead) =
        if lead <= spare * 2 / 3 { (first.sentence.byte, lead) } else { backward(text, first.bytes.start, spare / 3) };
    let (end, behind) = forward(text, last.bytes.end, spare - lead, false);
    if end == text.len() && lead + behind < spare {
        start = start.min(backward(text, first.bytes.start, spare - behind).0);
    }
    Passage { bytes: start..end }
}

/// Two passages in the order of the text, or one if there is nothing between them.
pub(super) fn in_order(text: &str, one: Passage, two: Passage) -> Vec<Passage> {
    let (a, b) = if one.bytes.start <= two.bytes.start { (one, two) } else { (two, one) };
    if text.get(a.bytes.end..b.bytes.start).is_some_and(|between| between.contains(|c| !is_gap(c))) {
        return vec![a, b];
    }
    vec![Passage { bytes: a.bytes.start..a.bytes.end.max(b.bytes.end) }]
}

/// The end of a passage that has this many characters behind `from`, which is the end of a word, or the start of the passage if there
/// `must` be something; and how many characters these are.
fn forward(text: &str, from: usize, width: usize, must: bool) -> (usize, usize) {
    let mut measure = if must { Measure::default() } else { Measure::inside() };
    let before = measure.chars;
    let (mut at_word, mut at_char) = ((from, 0), (from, 0));
    let (mut last, mut half_flag) = (' ', false);
    for (at, c) in text[from..].char_indices() {
        let here = (from + at, measure.chars - before);
        if is_gap(c) && !is_gap(last) || c.is_alphanumeric() && (is_cjk(c) || is_cjk(last)) {
            at_word = here;
        }
        let is_flag = ('\u{1f1e6}'..='\u{1f1ff}').contains(&c);
        if !is_mark(c) && last != '\u{200d}' && !(is_flag && half_flag) {
            at_char = here;
        }
        measure.step(c);
        if measure.chars - before > width {
            let too_little = width - at_word.1 > WORD_CHARS_MAX || must && at_word.1 == 0;
            return if too_little && at_char.1 > at_word.1 { at_char } else { at_word };
        }
        half_flag = is_flag && !half_flag;
        last = c;
    }
    (text.len(), measure.chars - before)
}

/// The start of a passage with at most this many characters before `from`, which is the start of a word; and how many these are.
fn backward(text: &str, from: usize, width: usize) -> (usize, usize) {
    let (mut found, mut chars, mut gap) = ((from, 0), 0, false);
    let mut next = text[from..].chars().next().unwrap_or(' ');
    for (at, c) in text[..from].char_indices().rev() {
        if is_gap(c) && !gap || next.is_alphanumeric() && (is_cjk(c) || is_cjk(next)) {
            found = (at + c.len_utf8(), chars);
        }
        // White space counts when there is something before it.
        chars += if is_gap(c) { 0 } else { 1 + usize::from(gap) };
        gap = is_gap(c);
        next = c;
        if chars > width {
            return found;
        }
    }
    (0, chars)
}

/// Whether any of these would be shown.
fn is_something(mut chars: impl Iterator<Item = char>) -> bool {
    let mut measure = Measure::default();
    chars.by_ref().take(LOOK_CHARS).any(|c| measure.step(c) != Shown::No)
}

/// The passages as one line.
pub(super) fn write(text: &str, passages: &[Passage], matches: &[Match]) -> Snippet {
    let mut highlights = Highlights::new(matches);
    let (mut line, mut chars, mut end) = (String::new(), 0, 0);
    let push = |line: &mut String, chars: &mut usize, c: char| {
        line.push(c);
        *chars += 1;
    };
    for (n, passage) in passages.iter().enumerate() {
        if n > 0 || is_something(text[..passage.bytes.start].chars().rev()) {
            let join = if n > 0 { " … " } else { "… " };
            join.chars().for_each(|c| push(&mut line, &mut chars, c));
        }
        let mut measure = Measure::default();
        for (at, c) in text[passage.bytes.clone()].char_indices() {
            match measure.step(c) {
                Shown::No => continue,
                Shown::Yes => {}
                Shown::AfterSpace => push(&mut line, &mut chars, ' '),
            }
            highlights.step(passage.bytes.start + at, c, chars);
            push(&mut line, &mut chars, c);
        }
        highlights.close();
        end = passage.bytes.end;
    }
    if is_something(text[end..].chars()) {
        let next = text[end..].chars().next();
        let in_word = next.is_some_and(char::is_alphanumeric) && line.ends_with(char::is_alphanumeric);
        line.push_str(if in_word || line.is_empty() { "…" } else { " …" });
    }
    Snippet { text: line, highlights: highlights.finish() }
}

/// Turns matches in a text into highlights of what is shown of it.
pub(super) struct Highlights {
    /// Bytes that match, ascending, apart from each other.
    ranges: Vec<Range<usize>>,
    next: usize,
    open: Option<(usize, usize)>,
    done: Vec<(usize, usize)>,
}

impl Highlights {
    pub(super) fn new(matches: &[Match]) -> Highlights {
        let mut ranges = Vec::<Range<usize>>::with_capacity(matches.len());
        for m in matches {
            match ranges.last_mut() {
                Some(last) if m.bytes.start <= last.end => last.end = last.end.max(m.bytes.end),
                _ => ranges.push(m.bytes.clone()),
            }
        }
        Highlights { ranges, next: 0, open: None, done: Vec::new() }
    }

    /// The next character that is shown, where it is in the text and as which character it is shown.
    pub(super) fn step(&mut self, byte: usize, c: char, index: usize) {
        if let Some((_, end)) = &mut self.open
            && (is_mark(c) || self.ranges.get(self.next).is_some_and(|r| r.contains(&byte)))
        {
            *end = index + 1;
            return;
        }
        self.close();
        while self.ranges.get(self.next).is_some_and(|r| r.end <= byte) {
            self.next += 1;
        }
        if self.ranges.get(self.next).is_some_and(|r| r.contains(&byte)) {
            self.open = Some((index, index + 1));
        }
    }

    /// What comes next does not belong to what came before.
    pub(super) fn close(&mut self) {
        self.done.extend(self.open.take());
    }

    pub(super) fn finish(mut self) -> Vec<(usize, usize)> {
        self.close();
        self.done
    }
}
