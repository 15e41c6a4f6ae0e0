//! JSON lines: a row each, every field in every row, `null` where there is nothing to tell.

use crate::row::Row;

/// The line of a row, with its end.
pub(crate) fn line(row: &Row) -> Vec<u8> {
    // A row is plain data: texts, numbers, lists. Nothing in it can fail to be written.
    let mut line = serde_json::to_vec(row).unwrap_or_default();
    line.push(b'\n');
    line
}
