//! The columns of the table: their names and types, and which value of a row goes where.
//!
//! One list, [`COLUMNS`], is the schema; the order of its leaves is that of the column chunks. Nested columns follow Parquet's
//! three-level form of lists: an optional group marked LIST, a repeated group `list`, and `element`.

use serde::Serialize;

use super::column::Column;
use super::thrift::Thrift;
use crate::row::{Row, RowLink};

/// What a leaf holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bool,
    Int,
    Long,
    /// Milliseconds since 1970, UTC.
    Time,
}

impl Kind {
    pub(super) fn physical(self) -> i32 {
        match self {
            Kind::Bool => 0,
            Kind::Int => 1,
            Kind::Long | Kind::Time => 2,
            Kind::Text => 6,
        }
    }
}

/// A column of the table.
pub(super) enum Field {
    /// One value in each row.
    Leaf(&'static str, Kind, bool),
    /// A list of texts.
    Texts(&'static str),
    /// A list of structs, with these leaves.
    Structs(&'static str, &'static [(&'static str, Kind, bool)]),
}

const OPTIONAL: bool = true;
const REQUIRED: bool = false;

/// The schema, as docs/formats/export.md lists it.
pub(super) const COLUMNS: &[Field] = &[
    Field::Leaf("url", Kind::Text, REQUIRED),
    Field::Leaf("fetched", Kind::Time, REQUIRED),
    Field::Leaf("status", Kind::Int, OPTIONAL),
    Field::Leaf("outcome", Kind::Text, REQUIRED),
    Field::Leaf("detail", Kind::Text, OPTIONAL),
    Field::Leaf("redirect", Kind::Text, OPTIONAL),
    Field::Leaf("redirects", Kind::Int, REQUIRED),
    Field::Leaf("depth", Kind::Int, REQUIRED),
    Field::Leaf("seed", Kind::Bool, REQUIRED),
    Field::Leaf("media_type", Kind::Text, OPTIONAL),
    Field::Leaf("kind", Kind::Text, OPTIONAL),
    Field::Leaf("charset", Kind::Text, OPTIONAL),
    Field::Leaf("language", Kind::Text, OPTIONAL),
    Field::Leaf("title", Kind::Text, OPTIONAL),
    Field::Leaf("description", Kind::Text, OPTIONAL),
    Field::Leaf("canonical", Kind::Text, OPTIONAL),
    Field::Leaf("text", Kind::Text, OPTIONAL),
    Field::Leaf("markdown", Kind::Text, OPTIONAL),
    Field::Structs(
        "links",
        &[
            ("url", Kind::Text, REQUIRED),
            ("text", Kind::Text, REQUIRED),
            ("rel", Kind::Text, OPTIONAL),
            ("kind", Kind::Text, REQUIRED),
            ("nofollow", Kind::Bool, REQUIRED),
        ],
    ),
    Field::Texts("structured"),
    Field::Texts("robots"),
    Field::Leaf("digest", Kind::Text, OPTIONAL),
    Field::Leaf("fingerprint", Kind::Text, OPTIONAL),
    Field::Leaf("duplicate_of", Kind::Text, OPTIONAL),
    Field::Leaf("etag", Kind::Text, OPTIONAL),
    Field::Leaf("last_modified", Kind::Text, OPTIONAL),
    Field::Leaf("wire_bytes", Kind::Long, REQUIRED),
    Field::Leaf("truncated", Kind::Bool, REQUIRED),
    Field::Leaf("warc_file", Kind::Text, OPTIONAL),
    Field::Leaf("warc_offset", Kind::Long, OPTIONAL),
    Field::Leaf("warc_length", Kind::Long, OPTIONAL),
];

/// An empty column for each leaf, in order.
pub(super) fn columns() -> Vec<Column> {
    let mut columns = Vec::new();
    for field in COLUMNS {
        match field {
            Field::Leaf(name, kind, optional) => columns.push(Column::new(vec![name], *kind, u8::from(*optional), 0)),
            Field::Texts(name) => columns.push(Column::new(vec![name, "list", "element"], Kind::Text, 2, 1)),
            Field::Structs(name, leaves) => {
                for (leaf, kind, optional) in *leaves {
                    let path = vec![*name, "list", "element", leaf];
                    columns.push(Column::new(path, *kind, 2 + u8::from(*optional), 1));
                }
            }
        }
    }
    columns
}

/// Adds a row to the columns.
pub(super) fn push(row: &Row, columns: &mut [Column]) {
    let Row {
        url,
        fetched,
        status,
        outcome,
        detail,
        redirect,
        redirects,
        depth,
        seed,
        media_type,
        kind,
        charset,
        language,
        title,
        description,
        canonical,
        text,
        markdown,
        links,
        structured,
        robots,
        digest,
        fingerprint,
        duplicate_of,
        etag,
        last_modified,
        wire_bytes,
        truncated,
        warc_file,
        warc_offset,
        warc_length,
        record_id: _,
        language3: _,
        body_missing: _,
    } = row;
    let mut columns = columns.iter_mut();
    let mut next = || columns.next().expect("a column for each field");
    next().text(Some(url));
    next().long(Some(fetched.0));
    next().int(status.map(u32::from));
    next().text(Some(outcome));
    next().text(detail.as_deref());
    next().text(redirect.as_deref());
    next().int(Some(*redirects));
    next().int(Some(*depth));
    next().bool(*seed);
    next().text(media_type.as_deref());
    next().text(kind.map(word).as_deref());
    for value in [charset, language, title, description, canonical, text, markdown] {
        next().text(value.as_deref());
    }
    push_links(links.as_deref(), [next(), next(), next(), next(), next()]);
    next().texts(structured.as_ref().map(|list| list.iter().map(String::as_str)));
    next().texts(Some(robots.iter().copied()));
    for value in [digest, fingerprint, duplicate_of, etag, last_modified] {
        next().text(value.as_deref());
    }
    next().long(Some(*wire_bytes));
    next().bool(*truncated);
    next().text(warc_file.as_deref());
    next().long(*warc_offset);
    next().long(*warc_length);
    assert!(columns.next().is_none(), "a field for each column");
}

/// A value as serde names it, so that all formats have the same word.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_string()
}

fn push_links(links: Option<&[RowLink]>, columns: [&mut Column; 5]) {
    let [url, text, rel, kind, nofollow] = columns;
    let Some(links) = links.filter(|l| !l.is_empty()) else {
        for column in [url, text, rel, kind, nofollow] {
            column.no_list(links.is_some());
        }
        return;
    };
    for (i, link) in links.iter().enumerate() {
        url.element(i == 0, Some(&link.url));
        text.element(i == 0, Some(&link.text));
        rel.element(i == 0, link.rel.as_deref());
        kind.element(i == 0, Some(link.kind));
        nofollow.bool_element(i == 0, link.nofollow);
    }
}

const UTF8: i32 = 0;
const LIST: i32 = 3;
const TIMESTAMP_MILLIS: i32 = 9;

/// Appends the schema's elements to the file's metadata.
pub(super) fn write(thrift: &mut Thrift, id: i16) {
    enum Element {
        Root,
        Leaf(&'static str, Kind, bool),
        List(&'static str),
        Repeated,
        Struct(usize),
    }
    let mut elements = vec![Element::Root];
    for field in COLUMNS {
        match field {
            Field::Leaf(name, kind, optional) => elements.push(Element::Leaf(name, *kind, *optional)),
            Field::Texts(name) => {
                elements.extend([
                    Element::List(name),
                    Element::Repeated,
                    Element::Leaf("element", Kind::Text, REQUIRED),
                ]);
            }
            Field::Structs(name, leaves) => {
                elements.extend([Element::List(name), Element::Repeated, Element::Struct(leaves.len())]);
                elements.extend(leaves.iter().map(|(name, kind, optional)| Element::Leaf(name, *kind, *optional)));
            }
        }
    }
    thrift.structures(id, &elements, |t, element| match element {
        Element::Root => {
            t.text(4, "page");
            t.i32(5, COLUMNS.len() as i32);
        }
        Element::Leaf(name, kind, optional) => {
            t.i32(1, kind.physical());
            t.i32(3, i32::from(*optional));
            t.text(4, name);
            match kind {
                Kind::Text => {
                    t.i32(6, UTF8);
                    t.structure(10, |t| t.structure(1, |_| {}));
                }
                Kind::Time => {
                    t.i32(6, TIMESTAMP_MILLIS);
                    t.structure(10, |t| {
                        t.structure(8, |t| {
                            t.bool(1, true);
                            t.structure(2, |t| t.structure(1, |_| {}));
                        });
                    });
                }
                Kind::Bool | Kind::Int | Kind::Long => {}
            }
        }
        Element::List(name) => {
            t.i32(3, 1);
            t.text(4, name);
            t.i32(5, 1);
            t.i32(6, LIST);
            t.structure(10, |t| t.structure(3, |_| {}));
        }
        Element::Repeated => {
            t.i32(3, 2);
            t.text(4, "list");
            t.i32(5, 1);
        }
        Element::Struct(leaves) => {
            t.i32(3, 0);
            t.text(4, "element");
            t.i32(5, *leaves as i32);
        }
    });
}
