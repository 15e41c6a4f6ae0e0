//! One walk over a text: where the words of a query are, and how long the text is as it would be shown.
//!
//! Shown text has one space for any amount of white space, no control characters, nothing that changes the direction of text, and at
//! most a few marks on a letter. [`Measure`] is the one place that says so: what is measured here is what is written later.

use std::ops::Range;

use super::TERMS_MAX;

/// Matches that are noted; a text with more has been understood.
const MATCHES_MAX: usize = 2048;
/// Marks on one character that are shown. No script needs more; some authors would cover the lines above.
const MARKS_MAX: u8 = 8;

/// A word of the query in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// Where it is.
    pub(super) bytes: Range<usize>,
    /// Where it is in the text as it would be shown, in characters.
    pub(super) shown: Range<usize>,
    /// The beginning of its sentence or line.
    pub(super) sentence: Place,
    term: u32,
}

impl Match {
    /// Its place in tables of terms.
    pub(super) fn slot(&self) -> usize {
        (self.term as usize).min(TERMS_MAX - 1)
    }
}

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// In bytes.
    pub(super) byte: usize,
    /// In characters, as shown.
    pub(super) shown: usize,
}

/// How a character is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// It is.
    Yes,
    /// It is, with a space before it for the white space before it.
    AfterSpace,
    /// It is not.
    No,
}

/// Counts the characters of a text as they would be shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measure {
    /// How many there are so far, without white space at the end.
    pub(super) chars: usize,
    gap: bool,
    marks: u8,
}

impl Measure {
    /// Behind a character that is counted already, once.
    pub(super) fn inside() -> Measure {
        Measure { chars: 1, ..Measure::default() }
    }

    /// The next character.
    #[inline]
    pub(super) fn step(&mut self, c: char) -> Shown {
        if is_plain(c) {
            self.marks = 0;
        } else if is_gap(c) {
            self.gap = true;
            return Shown::No;
        } else if is_dropped(c) {
            return Shown::No;
        } else if is_mark(c) {
            // Nothing can carry the mark at the start or behind a space.
            if self.chars == 0 || self.gap || self.marks == MARKS_MAX {
                return Shown::No;
            }
            self.marks += 1;
        } else {
            self.marks = 0;
        }
        let space = std::mem::take(&mut self.gap) && self.chars > 0;
        self.chars += 1 + usize::from(space);
        if space { Shown::AfterSpace } else { Shown::Yes }
    }

    /// The same for this many ASCII letters and digits.
    #[inline]
    fn step_ascii(&mut self, len: usize) {
        let space = std::mem::take(&mut self.gap) && self.chars > 0;
        self.chars += len + usize::from(space);
        self.marks = 0;
    }
}

/// What needs no closer look: most of what is written is neither white space nor a mark, and is seen to be so at once.
#[inline]
fn is_plain(c: char) -> bool {
    matches!(c, '!'..='~' | '\u{a1}'..='\u{2ff}' | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{590}' | '\u{3001}'..='\u{3098}' | '\u{309b}'..='\u{d7ff}')
}

/// What `char::is_alphanumeric` says, sooner for the letters of most texts.
#[inline]
pub(super) fn is_alphanumeric(c: char) -> bool {
    match c {
        '\0'..='\u{7f}' => c.is_ascii_alphanumeric(),
        '\u{c0}'..='\u{24f}' => c != '×' && c != '÷',
        '\u{400}'..='\u{481}' | '\u{3041}'..='\u{3096}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => true,
        _ => c.is_alphanumeric(),
    }
}

/// White space, and control characters, which are as good as that.
pub(super) fn is_gap(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// What has no form of its own but an influence on others: overrides and isolates of direction, marks of byte order.
fn is_dropped(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// What belongs to the character before it: the combining marks of most scripts, joiners and variants of emoji. Signs
/// of Indic scripts that Unicode counts as letters are not among them.
pub(super) fn is_mark(c: char) -> bool {
    (c >= '\u{300}')
        && matches!(c,
            '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}'
            | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}'
            | '\u{93c}' | '\u{94d}' | '\u{9bc}' | '\u{9cd}' | '\u{a3c}' | '\u{a4d}' | '\u{abc}' | '\u{acd}' | '\u{b4d}'
            | '\u{bcd}' | '\u{c4d}' | '\u{ccd}' | '\u{d4d}' | '\u{dca}' | '\u{e31}' | '\u{e34}'..='\u{e3a}'
            | '\u{e47}'..='\u{e4e}' | '\u{eb1}' | '\u{eb4}'..='\u{ebc}' | '\u{ec8}'..='\u{ece}' | '\u{1039}'..='\u{103a}'
            | '\u{17d2}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200c}'..='\u{200d}'
            | '\u{20d0}'..='\u{20ff}' | '\u{3099}'..='\u{309a}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
            | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Characters of scripts that do not set words apart, each of which counts as a word.
#[inline]
pub(crate) fn is_cjk(c: char) -> bool {
    match c {
        '\0'..='\u{10ff}' => false,
        '\u{3041}'..='\u{3096}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => true,
        _ => is_rare_cjk(c),
    }
}

fn is_rare_cjk(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{318f}'
        | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{a960}'..='\u{a97f}'
        | '\u{d7a4}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ffdc}'
        | '\u{1aff0}'..='\u{1b16f}' | '\u{20000}'..='\u{3ffff}')
        && is_alphanumeric(c)
}

/// The beginning of a text, in whole characters, and in whole words unless they are very long.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    const WORD_BYTES: usize = 128;
    if text.len() <= bytes_max {
        return text;
    }
    let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut before = text[..end].char_indices().rev().take_while(|(at, _)| at + WORD_BYTES > end);
    let end = before.find(|(_, c)| is_gap(*c)).map_or(end, |(at, _)| at);
    &text[..end]
}

/// The words of a text that are terms of a query, by where they begin.
pub(super) fn matches(text: &str, terms: &dyn Fn(&str) -> Option<u32>) -> Vec<Match> {
    let mut walk = Walk { text, terms, matches: Vec::new(), sentence: Place::default() };
    walk.run();
    walk.matches
}

struct Walk<'a> {
    text: &'a str,
    terms: &'a dyn Fn(&str) -> Option<u32>,
    matches: Vec<Match>,
    sentence: Place,
}

/// What was seen of the end of a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing.
    None,
    /// A full stop or its like: white space makes it an end.
    Stop,
    /// All of it: what comes next begins a sentence.
    Seen,
}

impl Walk<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut measure = Measure::default();
        let mut end = End::Seen;
        let mut at = 0;
        // The character of a script without words that ends where the next one begins, and where it is shown.
        let mut neighbour: Option<(usize, usize)> = None;
        while at < bytes.len() && self.matches.len() < MATCHES_MAX {
            let start = at;
            if bytes[at].is_ascii_alphanumeric() {
                at += bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
                measure.step_ascii(at - start);
                let shown = measure.chars - (at - start);
                if bytes.get(at).is_some_and(|b| !b.is_ascii()) {
                    at = self.rest_of_word(at, &mut measure);
                }
                self.begin(&mut end, start, shown);
                self.ask(start..at, shown..measure.chars);
                neighbour = None;
                continue;
            }
            if bytes[at] == b' ' {
                at += 1;
                measure.gap = true;
                neighbour = None;
                end = if end == End::Stop { End::Seen } else { end };
                continue;
            }
            let Some(c) = self.text[at..].chars().next() else { break };
            at += c.len_utf8();
            let is_shown = measure.step(c) != Shown::No;
            if is_cjk(c) {
                let shown = measure.chars - 1;
                self.begin(&mut end, start, shown);
                if let Some((from, from_shown)) = neighbour {
                    self.ask(from..at, from_shown..measure.chars);
                }
                self.ask(start..at, shown..measure.chars);
                neighbour = Some((start, shown));
                continue;
            }
            neighbour = None;
            if is_alphanumeric(c) {
                let shown = measure.chars - usize::from(is_shown);
                at = self.rest_of_word(at, &mut measure);
                self.begin(&mut end, start, shown);
                self.ask(start..at, shown..measure.chars);
                continue;
            }
            end = match c {
                '\n' | '\r' | '\u{2028}' | '\u{2029}' | '。' | '！' | '？' | '｡' => End::Seen,
                '.' | '!' | '?' | '…' | '؟' | '۔' | '।' => {
                    self.begin(&mut end, start, measure.chars - 1);
                    End::Stop
                }
                _ if end == End::Stop && is_gap(c) => End::Seen,
                // Quotes and brackets are closed behind the full stop.
                '"' | '\'' | '«' | '»' | '“' if end == End::Stop => end,
                ')' | ']' | '”' | '’' | '」' | '』' | '）' if end != End::None => end,
                _ if !is_shown => end,
                _ => {
                    self.begin(&mut end, start, measure.chars - 1);
                    End::None
                }
            };
        }
    }

    /// The rest of a word of which a part was read already, up to where it ends.
    fn rest_of_word(&self, mut at: usize, measure: &mut Measure) -> usize {
        for c in self.text[at..].chars() {
            if !is_alphanumeric(c) || is_cjk(c) {
                break;
            }
            measure.step(c);
            at += c.len_utf8();
        }
        at
    }

    #[inline]
    fn begin(&mut self, end: &mut End, byte: usize, shown: usize) {
        if *end == End::Seen {
            self.sentence = Place { byte, shown };
        }
        *end = End::None;
    }

    #[inline]
    fn ask(&mut self, bytes: Range<usize>, shown: Range<usize>) {
        if let Some(term) = (self.terms)(&self.text[bytes.clone()]) {
            self.matches.push(Match { bytes, shown, sentence: self.sentence, term });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_cuts_lead_to_the_same() {
        for c in '\0'..=char::MAX {
            assert_eq!(is_alphanumeric(c), c.is_alphanumeric(), "{c:?}");
            assert!(!is_plain(c) || !is_gap(c) && !is_dropped(c) && !is_mark(c), "{c:?}");
            assert!(!is_cjk(c) || is_alphanumeric(c) && !is_mark(c), "{c:?}");
        }
    }
}
