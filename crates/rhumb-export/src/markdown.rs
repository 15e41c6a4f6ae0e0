//! Markdown: a file for each page with what is known of it in front, and an index of all files.
//!
//! Read `names.rs` for where a page lies. A file is written whole or not at all: after an interruption those that the index
//! does not name yet are written again.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use rhumb_core::url::Url;
use serde_json::json;

use crate::error::{ExportError, Result};
use crate::names;
use crate::row::Row;
use crate::rows::Piece;

/// The file and the index line of a page; nothing if it has no text.
pub(crate) fn piece(row: &Row) -> Option<Piece> {
    let body = row.markdown.as_deref().or(row.text.as_deref()).filter(|t| !t.trim().is_empty())?;
    let name = names::of(&Url::from_canonical(&row.url)?);
    let mut text = String::from("---\n");
    let fetched = row.fetched.to_string();
    let front = [
        ("url", Some(row.url.as_str())),
        ("title", row.title.as_deref()),
        ("fetched", Some(fetched.as_str())),
        ("language", row.language.as_deref()),
    ];
    for (key, value) in front {
        if let Some(value) = value {
            text.push_str(&format!("{key}: {}\n", quoted(value)));
        }
    }
    text.push_str("---\n\n");
    text.push_str(body.trim_end());
    text.push('\n');
    let line = json!({
        "file": name, "url": row.url, "title": row.title, "fetched": fetched, "language": row.language,
        "digest": row.digest, "bytes": text.len(),
    });
    Some(Piece::File { line: format!("{line}\n").into_bytes(), name, text: text.into_bytes() })
}

/// A text in double quotes, as JSON and YAML both read it; what YAML wants escaped, is.
fn quoted(text: &str) -> String {
    let json = json!(text).to_string();
    let harmless =
        |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    json.chars().map(|c| if harmless(c) { c.to_string() } else { format!("\\u{:04x}", c as u32) }).collect()
}

/// Writes a page's file below `root`.
pub(crate) fn write(root: &Path, name: &str, text: &[u8]) -> Result<()> {
    let path = root.join(name);
    let written = || {
        let mut file = match File::create(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(path.parent().unwrap_or(root))?;
                File::create(&path)?
            }
            other => other?,
        };
        file.write_all(text)
    };
    written().map_err(|e| ExportError::io("write to", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_stays_in_its_line() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected);
        check("plain: ü #x", "\"plain: ü #x\"");
        check("a\n---\nb\"", "\"a\\n---\\nb\\\"\"");
        check("\u{7f}\u{85}\u{2028}", "\"\\u007f\\u0085\\u2028\"");
    }
}
