//! Lines of a list of arcs: which two fields they have, and what is wrong if they have others.
//!
//! Fields are separated by blanks, a tab or a comma, and may be in double quotes. Empty lines are passed over, and so are those
//! that begin with `#` or `%`, and a first line `source,target`. Only the start of a line that is too long is kept.

use std::io::{BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use crate::{GraphError, Node, Result};

const BUFFER_BYTES: usize = 256 << 10;
/// Longer lines are no two URLs.
const LINE_BYTES_MAX: u64 = 256 << 10;
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Fields<'a> {
    /// Two node numbers.
    Nodes(Node, Node),
    /// Two URLs, not looked at.
    Urls(&'a str, &'a str),
}

/// The lines of a list that say arcs.
pub struct Lines {
    name: String,
    source: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
    /// Whether an arc was read.
    begun: bool,
    /// Whether the next line is the last one again.
    again: bool,
}

impl Lines {
    /// The lines of a source, unpacked if it is gzip.
    pub fn new(name: &str, mut source: Box<dyn Read>) -> Result<Lines> {
        let mut head = Vec::new();
        let read = source.by_ref().take(GZIP.len() as u64).read_to_end(&mut head);
        read.map_err(|e| GraphError::input(format!("{name}: cannot be read: {e}")))?;
        let packed = head == GZIP;
        let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(head).chain(source));
        let source: Box<dyn BufRead> = if packed {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Lines { name: name.to_string(), source, line: Vec::new(), number: 0, begun: false, again: false })
    }

    /// Has the next line be the last one again.
    pub fn again(&mut self) {
        self.again = true;
    }

    /// The fields of the next line that has some.
    pub fn next(&mut self) -> Result<Option<Fields<'_>>> {
        if !std::mem::take(&mut self.again) && !self.next_line()? {
            return Ok(None);
        }
        match parse(&self.line) {
            Ok(fields) => Ok(Some(fields)),
            Err(what) => Err(self.wrong(&what)),
        }
    }

    /// What is wrong with the line that was read last.
    pub fn wrong(&self, what: &str) -> GraphError {
        GraphError::input(format!("{}: line {}: {what}", self.name, self.number))
    }

    /// Reads up to the next line that is no comment; false at the end.
    fn next_line(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            self.number += 1;
            match self.source.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut self.line) {
                Err(e) => return Err(self.wrong(&format!("cannot be read: {e}"))),
                Ok(0) => return Ok(false),
                Ok(_) if self.line.len() as u64 > LINE_BYTES_MAX => {
                    return Err(self.wrong(&format!("longer than {LINE_BYTES_MAX} bytes")));
                }
                Ok(_) => {}
            }
            if self.number == 1 && self.line.starts_with(b"\xEF\xBB\xBF") {
                self.line.drain(..3);
            }
            let line = self.line.trim_ascii();
            let header = !self.begun && line == b"source,target";
            if !line.is_empty() && !line.starts_with(b"#") && !line.starts_with(b"%") && !header {
                self.begun = true;
                return Ok(true);
            }
        }
    }
}

fn parse(line: &[u8]) -> Result<Fields<'_>, String> {
    if let Some((from, to)) = two_numbers(line) {
        return Ok(Fields::Nodes(from, to));
    }
    let line = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_string())?.trim();
    let (from, to) = split(line)?;
    match (field(from)?, field(to)?) {
        (Some(from), Some(to)) => Ok(Fields::Nodes(from, to)),
        (None, None) => Ok(Fields::Urls(from, to)),
        _ => Err("a node number and a URL".into()),
    }
}

/// The usual line of numbers, without looking at it twice.
fn two_numbers(line: &[u8]) -> Option<(Node, Node)> {
    let mut at = 0;
    let mut number = || {
        let start = at;
        let mut number = 0u64;
        while let Some(digit) = line.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10 && at < start + 10) {
            number = 10 * number + u64::from(digit);
            at += 1;
        }
        let separated = line.get(at).is_none_or(|b| matches!(b, b' ' | b'\t' | b',' | b'\r' | b'\n'));
        at += 1;
        (at > start + 1 && separated && number < u64::from(Node::MAX)).then_some(number as Node)
    };
    let (from, to) = (number()?, number()?);
    line.get(at - 1..).unwrap_or_default().trim_ascii().is_empty().then_some((from, to))
}

/// A node number, or nothing for a URL.
fn field(text: &str) -> Result<Option<Node>, String> {
    let shown = || text.chars().take(60).flat_map(char::escape_default).collect::<String>();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits(text) {
        let number = text.parse().ok().filter(|&n| n < Node::MAX);
        return number
            .map(Some)
            .ok_or_else(|| format!("{} is above the largest node number, {}", shown(), Node::MAX - 1));
    }
    match text.strip_prefix('-') {
        Some(rest) if digits(rest) => Err(format!("{} is negative, no node number", shown())),
        _ if text.contains("://") => Ok(None),
        _ => Err(format!("{} is neither a node number nor a URL", shown())),
    }
}

/// The two fields of a line without blanks around.
fn split(line: &str) -> Result<(&str, &str), String> {
    const BLANKS: [char; 2] = [' ', '\t'];
    let (from, rest) = if let Some(quoted) = line.strip_prefix('"') {
        let (from, rest) = quoted.split_once('"').ok_or("a quote without an end")?;
        let rest = rest.trim_start_matches(BLANKS);
        (from, rest.strip_prefix(',').unwrap_or(rest))
    } else if let Some(at) = line.find('"').filter(|&at| at > 0 && line.as_bytes()[at - 1] == b',') {
        // Whoever quotes one field quotes every field with a comma in it.
        (&line[..at - 1], &line[at..])
    } else if let Some(at) = first_blank(line) {
        let (from, rest) = line.split_at(at);
        // A comma before the blank is part of what separates numbers; a URL may end with one.
        let number = from.strip_suffix(',').filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        (number.unwrap_or(from), rest)
    } else {
        let at = comma(line)?;
        (&line[..at], &line[at + 1..])
    };
    let to = rest.trim_matches(BLANKS);
    let to = match to.strip_prefix('"') {
        None if first_blank(to).is_some() => {
            return Err(format!("{} fields, where two are needed", line.split_whitespace().count()));
        }
        None => to,
        Some(quoted) => match quoted.split_once('"') {
            Some((to, "")) => to,
            _ => return Err("a quote without an end, or something behind it".into()),
        },
    };
    if from.is_empty() || to.is_empty() { Err("one field, where two are needed".into()) } else { Ok((from, to)) }
}

/// Two searches for a byte each are faster than one for either.
fn first_blank(text: &str) -> Option<usize> {
    [text.find(' '), text.find('\t')].into_iter().flatten().min()
}

/// Where the comma between two fields is, if nothing else separates them. URLs may have commas of their own.
fn comma(line: &str) -> Result<usize, String> {
    let commas = || line.match_indices(',').map(|(at, _)| at);
    let count = commas().count();
    if count > 1 && !line.contains("://") {
        return Err(format!("{} fields, where two are needed", count + 1));
    }
    let mut between = commas().filter(|&at| count == 1 || begins_field(&line[at + 1..]));
    match (between.next(), between.next()) {
        (Some(only), None) => Ok(only),
        _ if count == 0 => Err("one field, where two are needed".into()),
        _ => Err("which comma is between the URLs cannot be told: separate them by a tab".into()),
    }
}

fn begins_field(text: &str) -> bool {
    let scheme = text.bytes().take(20).take_while(u8::is_ascii_alphanumeric).count();
    scheme > 0 && text[scheme..].starts_with("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_what_they_say() {
        for (line, from, to) in [
            ("1 2", 1, 2),
            ("0\t4294967294\n", 0, 4_294_967_294),
            ("17,23\r\n", 17, 23),
            ("  17   23  \r\n", 17, 23),
            ("17, 23", 17, 23),
            ("\"17\",\"23\"", 17, 23),
            ("0000000000017 23", 17, 23),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(Fields::Nodes(from, to)), "{line:?}");
        }
        for (line, from, to) in [
            ("http://a/ http://b/\r\n", "http://a/", "http://b/"),
            ("http://a/\thttps://b/c,d\n", "http://a/", "https://b/c,d"),
            ("http://a/x,y,https://b/c,d\n", "http://a/x,y", "https://b/c,d"),
            ("\"http://a/x,y\",\"https://b/c,d\"\n", "http://a/x,y", "https://b/c,d"),
            ("http://a/,\"https://b/c,d\"\n", "http://a/", "https://b/c,d"),
            ("http://a/, http://b/", "http://a/,", "http://b/"),
            ("http://ü/ http://b/", "http://ü/", "http://b/"),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(Fields::Urls(from, to)), "{line:?}");
        }
        for (line, message) in [
            ("1", "one field, where two are needed"),
            ("1,", "one field, where two are needed"),
            ("http://a/", "one field, where two are needed"),
            ("1 2 3", "3 fields, where two are needed"),
            ("1,2,3", "3 fields, where two are needed"),
            ("1 -2", "-2 is negative, no node number"),
            ("1 4294967295", "4294967295 is above the largest node number, 4294967294"),
            ("99999999999999999999999 1", "99999999999999999999999 is above the largest node number, 4294967294"),
            ("1 http://a/", "a node number and a URL"),
            ("1 2.5", "2.5 is neither a node number nor a URL"),
            ("a b", "a is neither a node number nor a URL"),
            ("http://a/,http://b/,http://c/", "which comma is between the URLs cannot be told: separate them by a tab"),
            ("\"1 2", "a quote without an end"),
            ("\"1\" \"2\" 3", "a quote without an end, or something behind it"),
            ("\u{1b}[2J 1", "\\u{1b}[2J is neither a node number nor a URL"),
        ] {
            assert_eq!(parse(line.as_bytes()), Err(message.to_string()), "{line:?}");
        }
        assert_eq!(parse(b"http://a/\xFF http://b/"), Err("not UTF-8".into()));
    }
}
