//! Writes a graph, or a part of one, as other programs read it: lists of arcs, tables, GraphML, DOT.
//!
//! URLs and labels come from the web and may hold anything. What is written is always one record to a line and valid in its
//! format: control characters, blanks and quotes in URLs are percent-encoded, as they must be in URLs anyway; in labels they become blanks or
//! U+FFFD. Nothing is kept: nodes and arcs are taken one after the other and written.
//!
//! Lists and tables are in `tables.rs`, the two languages for drawings in `drawings.rs`.

mod drawings;
mod tables;

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

pub use drawings::{dot, graphml};
pub use tables::{arcs_csv, edge_list, nodes_csv};

use crate::Node;

/// A node, with what is known of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportNode<'a> {
    /// Its number.
    pub id: Node,
    /// Its URL, if the graph has them.
    pub url: Option<Cow<'a, str>>,
    /// What a person may call it: a title, a host.
    pub label: Option<Cow<'a, str>>,
    /// Its rank.
    pub rank: Option<f64>,
}

/// An arc, with what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportArc<'a> {
    /// The node it leaves.
    pub from: Node,
    /// The node it leads to.
    pub to: Node,
    /// How many links it stands for, between hosts for instance.
    pub weight: Option<u64>,
    /// The text of the link.
    pub anchor: Option<Cow<'a, str>>,
}

/// What a node is called in a list: all the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// By its number.
    Id(Node),
    /// By its URL.
    Url(Cow<'a, str>),
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Id(id) => Display::fmt(id, f),
            Name::Url(url) => Url(url).fmt(f),
        }
    }
}

/// A URL without blanks, quotes and control characters.
struct Url<'a>(&'a str);

impl Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|c: char| c == '"' || c.is_whitespace() || c.is_control() || !is_xml(c)) {
            f.write_str(&rest[..at])?;
            let len = rest[at..].chars().next().map_or(1, char::len_utf8);
            for byte in rest[at..at + len].bytes() {
                write!(f, "%{byte:02X}")?;
            }
            rest = &rest[at + len..];
        }
        f.write_str(rest)
    }
}

/// Text without line ends and control characters.
struct Line<'a>(&'a str);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|c: char| c != ' ' && (c.is_whitespace() || c.is_control()) || !is_xml(c)) {
            f.write_str(&rest[..at])?;
            let c = rest[at..].chars().next().unwrap_or(' ');
            f.write_char(if c.is_whitespace() { ' ' } else { char::REPLACEMENT_CHARACTER })?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Whether XML 1.0 may hold a character, escaped or not.
fn is_xml(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_is_left() {
        for (text, url, line) in [
            ("http://a/ü?b", "http://a/ü?b", "http://a/ü?b"),
            ("a b\tc\r\nd", "a%20b%09c%0D%0Ad", "a b c  d"),
            ("\"a\"", "%22a%22", "\"a\""),
            ("\u{1b}[2J\0\u{7f}", "%1B[2J%00%7F", "\u{FFFD}[2J\u{FFFD}\u{FFFD}"),
            ("\u{9b}2J\u{85}\u{2028}", "%C2%9B2J%C2%85%E2%80%A8", "\u{FFFD}2J  "),
            ("\u{FFFE}\u{FFFF}", "%EF%BF%BE%EF%BF%BF", "\u{FFFD}\u{FFFD}"),
        ] {
            assert_eq!(Url(text).to_string(), url, "{text:?}");
            assert_eq!(Line(text).to_string(), line, "{text:?}");
        }
    }
}
