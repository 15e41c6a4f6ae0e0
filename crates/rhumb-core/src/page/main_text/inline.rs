//! A paragraph on its way to markdown: its text with marks on it, and how both become CommonMark that renders as the text.
//!
//! Emphasis is written only where CommonMark would read it back: its delimiters must lean on a word (section 6.2 of the
//! specification), and where they do not, the text goes without. One level of it is enough.
//!
//! Invariant: whatever the text is, what is written renders as that text: every character that could begin something is escaped.

use super::super::text::Collapsed;

/// What begins or ends at a place in a paragraph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Accent {
    /// `<b>`, `<strong>`.
    Strong,
    /// `<i>`, `<em>`.
    Emphasis,
    /// `<code>`.
    Code,
    /// `<a>`, with the number of its address.
    Link(u32),
}

/// Where a paragraph goes. In headings and cells a line break is a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// A paragraph of its own.
    Text,
    /// A heading.
    Heading,
    /// A cell of a table, which ends at a bar.
    Cell,
}

/// A stretch of a paragraph with a mark on it, as byte offsets.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    mark: Accent,
}

/// A mark that nobody closes ends after so many paragraphs: an address written again and again would make much of little.
const PARAGRAPHS_MAX: u8 = 8;
/// Marks kept of one paragraph.
const SPANS_MAX: usize = 1000;

/// A paragraph being read.
#[derive(Debug, Default)]
pub(super) struct Paragraph {
    text: Collapsed,
    /// Marks that are open, where they begin, and how many paragraphs before they were open in.
    open: Vec<(Accent, usize, u8)>,
    spans: Vec<Span>,
}

impl Paragraph {
    /// Forgets the text; marks that are open stay open.
    pub(super) fn restart(&mut self, bytes_max: usize) {
        self.text.restart(bytes_max);
        self.spans.clear();
        for (_, start, paragraphs) in &mut self.open {
            *start = 0;
            *paragraphs += 1;
        }
        self.open.retain(|(_, _, paragraphs)| *paragraphs < PARAGRAPHS_MAX);
    }

    /// Forgets the marks, too.
    pub(super) fn reset(&mut self, bytes_max: usize) {
        self.open.clear();
        self.restart(bytes_max);
    }

    /// The text so far; line breaks in it were asked for.
    pub(super) fn text(&mut self) -> &mut Collapsed {
        &mut self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.as_str().is_empty()
    }

    pub(super) fn open(&mut self, mark: Accent) {
        if self.open.len() < 16 {
            self.open.push((mark, self.text.as_str().len(), 0));
        }
    }

    /// Ends the innermost open mark of this kind.
    pub(super) fn close(&mut self, is_it: impl Fn(Accent) -> bool) {
        if let Some(at) = self.open.iter().rposition(|(mark, ..)| is_it(*mark)) {
            let (mark, start, _) = self.open.remove(at);
            self.add(mark, start);
        }
    }

    fn add(&mut self, mark: Accent, start: usize) {
        let text = self.text.as_str();
        let inside = &text[start.min(text.len())..];
        let start = text.len() - inside.trim_start().len();
        let end = start + inside.trim().len();
        if start < end && self.spans.len() < SPANS_MAX {
            self.spans.push(Span { start, end, mark });
        }
    }

    /// Ends the paragraph: what is open counts up to here and goes on in the next.
    pub(super) fn end(&mut self) {
        for i in 0..self.open.len() {
            let (mark, start, _) = self.open[i];
            self.add(mark, start);
        }
    }

    /// Writes the paragraph in CommonMark.
    pub(super) fn write(&mut self, hrefs: &[String], kind: Line, out: &mut String) {
        let text = self.text.as_str();
        self.spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
        let mut writer = Writer { text, hrefs, kind, out, at: 0, line_start: true };
        writer.write(&self.spans);
    }
}

struct Writer<'t, 'o> {
    text: &'t str,
    hrefs: &'t [String],
    kind: Line,
    out: &'o mut String,
    at: usize,
    line_start: bool,
}

impl Writer<'_, '_> {
    fn write(&mut self, spans: &[Span]) {
        let mut next = 0;
        while let Some(span) = spans.get(next) {
            next += 1;
            if span.start < self.at {
                continue;
            }
            let inner = next;
            match span.mark {
                Accent::Code => {
                    self.escape_up_to(span.start);
                    self.code(span);
                }
                Accent::Link(href) => {
                    self.escape_up_to(span.start);
                    let Some(href) = self.hrefs.get(href as usize) else { continue };
                    self.out.push('[');
                    self.line_start = false;
                    // Code and emphasis inside a link; links do not nest.
                    while let Some(within) = spans.get(next).filter(|s| s.end <= span.end) {
                        next += 1;
                        if within.start >= self.at {
                            self.mark(within);
                        }
                    }
                    self.escape_up_to(span.end);
                    self.out.push_str("](");
                    push_address(href, self.out);
                    self.out.push(')');
                }
                Accent::Strong | Accent::Emphasis => {
                    self.escape_up_to(span.start);
                    let Some(delimiter) = self.delimiter(span) else { continue };
                    self.out.push_str(delimiter);
                    self.line_start = false;
                    while let Some(within) = spans.get(next).filter(|s| s.end <= span.end) {
                        next += 1;
                        if within.start < self.at {
                            continue;
                        }
                        match within.mark {
                            Accent::Link(href) if self.hrefs.len() > href as usize => {
                                self.escape_up_to(within.start);
                                self.out.push('[');
                                self.escape_up_to(within.end);
                                self.out.push_str("](");
                                push_address(&self.hrefs[href as usize], self.out);
                                self.out.push(')');
                            }
                            Accent::Code => {
                                self.escape_up_to(within.start);
                                self.code(within);
                            }
                            _ => {}
                        }
                    }
                    self.escape_up_to(span.end);
                    self.out.push_str(delimiter);
                }
            }
            debug_assert!(next >= inner, "spans are read once");
        }
        self.escape_up_to(self.text.len());
    }

    /// A mark inside a link.
    fn mark(&mut self, span: &Span) {
        match span.mark {
            Accent::Code => {
                self.escape_up_to(span.start);
                self.code(span);
            }
            Accent::Strong | Accent::Emphasis => {
                self.escape_up_to(span.start);
                if let Some(delimiter) = self.delimiter(span) {
                    self.out.push_str(delimiter);
                    self.escape_up_to(span.end);
                    self.out.push_str(delimiter);
                }
            }
            Accent::Link(_) => {}
        }
    }

    /// The delimiter for an emphasised span, if CommonMark would take it for one here.
    fn delimiter(&self, span: &Span) -> Option<&'static str> {
        let before = self.text[..span.start].chars().next_back();
        let after = self.text[span.end..].chars().next();
        let inside = &self.text[span.start..span.end];
        let is_open = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        // Outside a word both delimiters lean on what they enclose, whatever that is; inside one only letters will do.
        let leans = is_open(before) && is_open(after)
            || (inside.starts_with(char::is_alphanumeric) && inside.ends_with(char::is_alphanumeric));
        (leans && !self.out.ends_with('*') && !inside.contains('\n')).then_some(match span.mark {
            Accent::Strong => "**",
            _ => "*",
        })
    }

    /// A code span: its text as it stands between more backticks than it has in a row.
    fn code(&mut self, span: &Span) {
        let mut code = self.text[span.start..span.end].replace('\n', " ");
        if self.kind == Line::Cell {
            code = code.replace('|', "\\|");
        }
        let fence = "`".repeat(longest_run(&code, '`') + 1);
        let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        for piece in [&fence, pad, &code, pad, &fence] {
            self.out.push_str(piece);
        }
        self.at = span.end;
        self.line_start = false;
    }

    fn escape_up_to(&mut self, end: usize) {
        let (text, from) = (self.text, self.at);
        let Some(piece) = text.get(from..end) else { return };
        for (offset, c) in piece.char_indices() {
            let at = from + offset;
            if c == '\n' {
                self.out.push_str(if self.kind == Line::Text { "\\\n" } else { " " });
                self.line_start = self.kind == Line::Text;
                continue;
            }
            if needs_escape(text, at, c, self.line_start, self.kind) {
                self.out.push('\\');
            }
            self.out.push(c);
            // A number at the start of a line may still become a list: "1." is escaped at its dot.
            self.line_start &= c.is_ascii_digit();
        }
        self.at = end.max(from);
    }
}

/// Whether a character at `at` could be read as something else than itself.
fn needs_escape(text: &str, at: usize, c: char, line_start: bool, kind: Line) -> bool {
    let after = text[at + c.len_utf8()..].chars().next();
    let before = text[..at].chars().next_back();
    match c {
        '\\' | '`' | '*' | '[' | ']' | '<' | '~' => true,
        '|' => kind == Line::Cell || line_start,
        '_' => !(before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)),
        '&' => after.is_some_and(|c| c == '#' || c.is_ascii_alphabetic()),
        '#' => line_start || (kind == Line::Heading && after.is_none()),
        '>' | '+' | '-' | '=' | ':' => line_start && before.is_none_or(|b| !b.is_ascii_digit()),
        '.' | ')' => line_start && before.is_some_and(|b| b.is_ascii_digit()),
        '!' => after == Some('['),
        _ => false,
    }
}

/// An address as the destination of a link.
fn push_address(address: &str, out: &mut String) {
    for c in address.chars() {
        match c {
            '(' | ')' => out.extend(['\\', c]),
            // Whatever would end the destination, or begin something that binds closer than a link.
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '\\' => out.push_str("%5C"),
            '`' => out.push_str("%60"),
            '|' => out.push_str("%7C"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => {}
            c if c.is_whitespace() => out.push_str("%20"),
            c => out.push(c),
        }
    }
}

/// How many of a character stand in a row at most.
pub(super) fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

/// Escapes plain text as one paragraph for each line.
pub(super) fn push_lines(text: &str, out: &mut String) {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        let mut paragraph = Paragraph::default();
        paragraph.reset(line.len());
        paragraph.text().push(line, false);
        paragraph.write(&[], Line::Text, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::text::Gap;
    use super::*;

    /// Pieces: `*…` emphasised, `!…` strong, `` `… `` code, `@…` a link to /x, `|` a line break.
    fn write(pieces: &[&str], kind: Line) -> String {
        let mut paragraph = Paragraph::default();
        paragraph.reset(1 << 20);
        for piece in pieces {
            let (mark, rest) = match piece.chars().next() {
                Some('*') => (Some(Accent::Emphasis), &piece[1..]),
                Some('!') => (Some(Accent::Strong), &piece[1..]),
                Some('`') => (Some(Accent::Code), &piece[1..]),
                Some('@') => (Some(Accent::Link(0)), &piece[1..]),
                _ => (None, *piece),
            };
            if *piece == "|" {
                paragraph.text().gap(Gap::Line);
                continue;
            }
            if let Some(mark) = mark {
                paragraph.open(mark);
            }
            paragraph.text().push(rest, false);
            if let Some(mark) = mark {
                paragraph.close(|m| m == mark);
            }
        }
        paragraph.end();
        let mut out = String::new();
        paragraph.write(&["/x(y) z".to_owned()], kind, &mut out);
        out
    }

    #[test]
    fn text_is_escaped() {
        let check = |text: &str, expected: &str| assert_eq!(write(&[text], Line::Text), expected, "{text}");
        check("a*b_c_d [x] <b>", "a\\*b_c_d \\[x\\] \\<b>");
        check("# a", "\\# a");
        check("1. a 1. b", "1\\. a 1. b");
        check("- a - b", "\\- a - b");
        check("1-2", "1-2");
        check("a & b &amp; &#1;", "a & b \\&amp; \\&#1;");
        check("_x_", "\\_x\\_");
        check("==", "\\==");
    }

    #[test]
    fn marks_are_written_where_they_hold() {
        let check = |pieces: &[&str], expected: &str| assert_eq!(write(pieces, Line::Text), expected, "{pieces:?}");
        check(&["a ", "!b", " c"], "a **b** c");
        check(&["a", "!b", "c"], "a**b**c");
        check(&["a", "!b.", "c"], "ab.c");
        check(&["a ", "*b.", " c"], "a *b.* c");
        check(&["a", "! b ", "c"], "a **b** c");
        check(&["`x`y"], "``x`y``");
        check(&["a ", "`*x*", " b"], "a `*x*` b");
        check(&["see ", "@this", "."], "see [this](/x\\(y\\)%20z).");
        check(&["a", "|", "# b"], "a\\\n\\# b");
        check(&["!a", "*b"], "**a**b");
    }
}
