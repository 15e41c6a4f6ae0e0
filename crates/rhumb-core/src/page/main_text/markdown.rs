//! The main text as CommonMark: headings, lists, quotes, code, tables, emphasis and links of what was kept.
//!
//! The kept parts of the source are tokenized once more, which costs time only for those who ask for markdown and leaves the
//! first pass alone. No tag of the page goes through: every element becomes a mark of CommonMark or nothing.
//!
//! Invariant: one pass over the kept source; the output is bounded; structure the page nests deeper than [`DEPTH_MAX`] is flat.

use super::super::charref::{Place, push_attribute, push_decoded};
use super::super::tag::{Content, Tag};
use super::super::text::Gap;
use super::super::tokenize::{Attribute, Keep, Token, Tokenizer};
use super::inline::{Accent, Line, Paragraph, longest_run};

/// Quotes and lists in one another.
const DEPTH_MAX: usize = 12;
/// Bytes of one paragraph.
const PARAGRAPH_BYTES_MAX: usize = 4 << 20;
/// Columns of a table.
const COLUMNS_MAX: usize = 50;

/// What is open around the current block.
#[derive(Clone, Copy, Debug)]
enum Around {
    Quote,
    /// A list with the number of its next item, if it has numbers.
    List(Option<u32>),
    /// An item: how wide its marker is, and whether it still has to be written.
    Item {
        width: usize,
        number: Option<u32>,
        is_new: bool,
    },
}

/// Writes markdown, keeping its working memory.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    paragraph: Paragraph,
    around: Vec<Around>,
    hrefs: Vec<String>,
    /// What addresses are relative to; without it they stay as written.
    pub(super) base: Option<url::Url>,
    attributes: Vec<Attribute>,
    line: String,
    /// Rows of the open table, if it is one of data.
    table: Option<Vec<Vec<String>>>,
    in_cell: bool,
    heading: Option<u8>,
    /// Whether the last block was inside a list or a quote.
    last_was_item: bool,
    /// The text of the open `<pre>` and its language.
    code: Option<(String, String)>,
    /// As in the extractor: the text of a `<noscript>` does not count, and the first end tag ends it.
    in_noscript: bool,
    /// What is passed over, and how deep we are in it.
    skip: Option<(Tag, u32)>,
}

impl Markdown {
    /// Writes the given parts of `html`. `is_data_table` says of a table that begins at an offset whether it has columns.
    pub(super) fn write(
        &mut self,
        html: &str,
        parts: &[(u32, u32)],
        bytes_max: usize,
        is_data_table: &dyn Fn(usize) -> bool,
        out: &mut String,
    ) {
        self.around.clear();
        self.hrefs.clear();
        (self.table, self.heading, self.code, self.skip) = (None, None, None, None);
        (self.in_cell, self.last_was_item, self.in_noscript) = (false, false, false);
        self.paragraph.reset(PARAGRAPH_BYTES_MAX);
        let mut attributes = std::mem::take(&mut self.attributes);
        for &(start, end) in parts {
            let Some(part) = html.get(start as usize..end as usize) else { continue };
            let mut tokens = Tokenizer::new(part, Keep::WantedAndBlocks(64), &mut attributes);
            while let Some(token) = tokens.next() {
                match token {
                    Token::Text(raw) => self.text(raw),
                    Token::Cdata(_) => {}
                    Token::Start { tag, .. } => {
                        let at = start as usize + tokens.tag_span().0;
                        self.start(tag, &mut tokens, at, is_data_table, out);
                    }
                    Token::End { tag } => self.end(tag, out),
                }
                if out.len() > bytes_max {
                    break;
                }
            }
            // What was left out between two parts was a block.
            if self.table.is_none() && self.code.is_none() {
                self.flush(out);
            }
        }
        self.end_table(out);
        self.end_code(out);
        self.flush(out);
        self.attributes = attributes;
        if out.len() > bytes_max {
            let kept = super::super::text::cut(out, bytes_max).len();
            out.truncate(kept);
        }
        out.truncate(out.trim_end().len());
    }

    fn text(&mut self, raw: &str) {
        if self.skip.is_some() || self.in_noscript {
            return;
        }
        match &mut self.code {
            Some((code, _)) => push_verbatim(raw, code),
            None => self.paragraph.text().push(raw, true),
        }
    }

    fn start(
        &mut self,
        tag: Tag,
        tokens: &mut Tokenizer<'_, '_>,
        at: usize,
        is_data_table: &dyn Fn(usize) -> bool,
        out: &mut String,
    ) {
        use Tag::*;
        if let Some((skipped, depth)) = &mut self.skip {
            *depth += u32::from(tag == *skipped);
            return;
        }
        if tag.content() != Content::Markup {
            let raw = tokens.contents(tag.content());
            if matches!(tag, Xmp | Plaintext) {
                self.flush(out);
                if !self.in_noscript {
                    self.paragraph.text().push(raw, false);
                }
            }
            return;
        }
        match tag {
            Template | Svg | Select => {
                self.skip = Some((tag, 1));
                return;
            }
            Noscript => self.in_noscript = true,
            Body => self.in_noscript = false,
            _ => {}
        }
        if self.code.is_some() {
            match tag {
                Br => self.text("\n"),
                Code => self.note_language(tokens),
                _ => {}
            }
            return;
        }
        match tag {
            B | Strong => self.paragraph.open(Accent::Strong),
            I | Em => self.paragraph.open(Accent::Emphasis),
            Code | Tt => self.paragraph.open(Accent::Code),
            A => {
                self.paragraph.close(|mark| matches!(mark, Accent::Link(_)));
                if let Some(href) = tokens.attribute("href").and_then(address) {
                    let href = self.base.as_ref().and_then(|base| base.join(&href).ok()).map_or(href, String::from);
                    self.paragraph.open(Accent::Link(self.hrefs.len() as u32));
                    self.hrefs.push(href);
                }
            }
            Br => self.paragraph.text().gap(Gap::Line),
            Td | Th => {
                self.end_cell();
                self.flush(out);
                self.in_cell = self.table.is_some();
            }
            _ if self.table.is_some() => match tag {
                Tr => {
                    self.end_cell();
                    self.flush(out);
                    if let Some(rows) = &mut self.table {
                        rows.push(Vec::new());
                    }
                }
                tag if tag.is_block() => self.paragraph.text().gap(Gap::Space),
                _ => {}
            },
            tag if tag.is_block() => {
                self.flush(out);
                match tag {
                    Pre | Listing => {
                        self.code = Some((String::new(), String::new()));
                        self.note_language(tokens);
                    }
                    Blockquote => self.push(Around::Quote),
                    Ul | Menu | Dir => self.push(Around::List(None)),
                    Ol => {
                        let first = tokens.attribute("start").and_then(|n| n.trim().parse().ok()).unwrap_or(1);
                        self.push(Around::List(Some(first)));
                    }
                    Li => self.start_item(),
                    Table if is_data_table(at) => self.table = Some(Vec::new()),
                    tag => self.heading = tag.heading_level().or(self.heading),
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: Tag, out: &mut String) {
        use Tag::*;
        if let Some((skipped, depth)) = &mut self.skip {
            *depth -= u32::from(tag == *skipped);
            if *depth == 0 {
                self.skip = None;
            }
            return;
        }
        self.in_noscript &= tag != Noscript;
        if self.code.is_some() {
            if matches!(tag, Pre | Listing) {
                self.end_code(out);
            }
            return;
        }
        match tag {
            B | Strong => self.paragraph.close(|mark| mark == Accent::Strong),
            I | Em => self.paragraph.close(|mark| mark == Accent::Emphasis),
            Code | Tt => self.paragraph.close(|mark| mark == Accent::Code),
            A => self.paragraph.close(|mark| matches!(mark, Accent::Link(_))),
            Table => {
                self.end_table(out);
                self.flush(out);
            }
            _ if self.table.is_some() => match tag {
                Td | Th => self.end_cell(),
                tag if tag.is_block() => self.paragraph.text().gap(Gap::Space),
                _ => {}
            },
            Td | Th => self.flush(out),
            tag if tag.is_block() => {
                self.flush(out);
                match tag {
                    Blockquote => self.pop(|around| matches!(around, Around::Quote)),
                    Ul | Ol | Menu | Dir => self.pop(|around| matches!(around, Around::List(_))),
                    Li => self.pop_item(),
                    tag if tag.heading_level().is_some() => self.heading = None,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, around: Around) {
        if self.around.len() < DEPTH_MAX {
            self.around.push(around);
        }
    }

    fn pop(&mut self, is_it: impl Fn(&Around) -> bool) {
        if let Some(at) = self.around.iter().rposition(is_it) {
            self.around.truncate(at);
        }
    }

    /// Ends the open item of the innermost list.
    fn pop_item(&mut self) {
        let list = self.around.iter().rposition(|a| matches!(a, Around::List(_))).map_or(0, |at| at + 1);
        if let Some(item) = self.around[list..].iter().position(|a| matches!(a, Around::Item { .. })) {
            self.around.truncate(list + item);
        }
    }

    fn start_item(&mut self) {
        self.pop_item();
        if self.around.len() >= DEPTH_MAX {
            return;
        }
        let number = match self.around.last_mut() {
            Some(Around::List(Some(next))) => {
                let number = (*next).min(999_999_999);
                *next = number + 1;
                Some(number)
            }
            _ => None,
        };
        let width = number.map_or(2, |n| n.to_string().len() + 2);
        self.around.push(Around::Item { width, number, is_new: true });
    }

    /// Writes the open paragraph or heading as a block of its own.
    fn flush(&mut self, out: &mut String) {
        self.paragraph.end();
        if !self.paragraph.is_empty() {
            let heading = self.heading;
            let mut line = std::mem::take(&mut self.line);
            line.clear();
            if let Some(level) = heading {
                line.push_str(&"######"[..level as usize]);
                line.push(' ');
            }
            let kind = if heading.is_some() { Line::Heading } else { Line::Text };
            self.paragraph.write(&self.hrefs, kind, &mut line);
            self.block(&line, out);
            self.line = line;
        }
        self.paragraph.restart(PARAGRAPH_BYTES_MAX);
    }

    /// Writes a block of lines inside what is around it.
    fn block(&mut self, lines: &str, out: &mut String) {
        // Items of a list follow each other closely, other blocks after an empty line.
        let is_item = self.around.iter().any(|a| matches!(a, Around::Item { is_new: true, .. }));
        let is_close = std::mem::replace(&mut self.last_was_item, !self.around.is_empty()) && is_item;
        if !out.is_empty() {
            out.push('\n');
            if !is_close {
                let from = out.len();
                for around in &self.around {
                    match around {
                        Around::Quote => out.push_str("> "),
                        Around::List(_) => {}
                        Around::Item { is_new: true, .. } => break,
                        Around::Item { width, .. } => out.push_str(&" ".repeat(*width)),
                    }
                }
                out.truncate(from + out[from..].trim_end().len());
                out.push('\n');
            }
        }
        for (n, line) in lines.lines().enumerate() {
            if n > 0 {
                out.push('\n');
            }
            let from = out.len();
            for around in &mut self.around {
                match around {
                    Around::Quote => out.push_str("> "),
                    Around::List(_) => {}
                    Around::Item { number, is_new, .. } if *is_new => {
                        *is_new = false;
                        match number {
                            Some(number) => out.push_str(&format!("{number}. ")),
                            None => out.push_str("- "),
                        }
                    }
                    Around::Item { width, .. } => out.push_str(&" ".repeat(*width)),
                }
            }
            if line.is_empty() {
                out.truncate(from + out[from..].trim_end().len());
            }
            out.push_str(line);
        }
    }

    /// Takes the language of code from a class such as `language-rust`.
    fn note_language(&mut self, tokens: &Tokenizer<'_, '_>) {
        let classes = tokens.attribute("class").unwrap_or("").split_ascii_whitespace();
        let named = classes.filter_map(|c| c.strip_prefix("language-").or_else(|| c.strip_prefix("lang-"))).next();
        if let (Some((_, language)), Some(name)) = (&mut self.code, named)
            && language.is_empty()
            && name.len() <= 32
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'#' | b'-'))
        {
            language.push_str(name);
        }
    }

    fn end_code(&mut self, out: &mut String) {
        let Some((code, language)) = self.code.take() else { return };
        let code = code.trim_matches('\n').trim_end();
        if code.trim().is_empty() {
            return;
        }
        let fence = "`".repeat((longest_run(code, '`') + 1).max(3));
        self.block(&format!("{fence}{language}\n{code}\n{fence}"), out);
    }

    /// Ends the open cell of the open table, if there is one.
    fn end_cell(&mut self) {
        if !std::mem::take(&mut self.in_cell) {
            return;
        }
        self.paragraph.end();
        let mut cell = String::new();
        self.paragraph.write(&self.hrefs, Line::Cell, &mut cell);
        self.paragraph.restart(PARAGRAPH_BYTES_MAX);
        let Some(rows) = &mut self.table else { return };
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        if let Some(row) = rows.last_mut().filter(|row| row.len() < COLUMNS_MAX) {
            row.push(cell);
        }
    }

    fn end_table(&mut self, out: &mut String) {
        self.end_cell();
        let Some(mut rows) = self.table.take() else { return };
        rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut lines = String::new();
        for (n, row) in rows.iter().enumerate() {
            for column in 0..columns {
                lines.push_str("| ");
                lines.push_str(row.get(column).map_or("", String::as_str));
                lines.push(' ');
            }
            lines.push_str("|\n");
            if n == 0 {
                lines.push_str(&"| --- ".repeat(columns));
                lines.push_str("|\n");
            }
        }
        if !lines.is_empty() {
            self.block(&lines, out);
        }
    }
}

/// An address worth linking to: nothing that a click would run.
fn address(href: &str) -> Option<String> {
    let mut address = String::new();
    push_attribute(super::super::text::cut(href, 8 << 10), &mut address);
    let address: String = address.trim().chars().filter(|c| !c.is_control()).collect();
    let scheme = address.split(':').next().filter(|s| s.len() < address.len()).unwrap_or("").to_ascii_lowercase();
    let is_known = !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        || matches!(scheme.as_str(), "" | "http" | "https" | "mailto" | "tel" | "ftp");
    (!address.is_empty() && is_known).then_some(address)
}

/// Adds text with its white space, references decoded.
fn push_verbatim(raw: &str, out: &mut String) {
    if raw.contains('&') {
        push_decoded(raw, Place::Text, "", out);
    } else {
        out.push_str(raw);
    }
}
