//! Parquet, written by hand: one file of row groups, each a bounded number of rows, and the metadata at its end.
//!
//! What a reader needs of a group is remembered until the end of the file and kept in the export's state, so that an
//! interrupted file is gone on with behind its last whole group. Read `schema.rs` for the columns, `column.rs` for what a page
//! holds, `thrift.rs` for the metadata's bytes. The format: <https://parquet.apache.org/docs/file-format/>.
//!
//! Invariant: where a group ends depends on its rows alone.

mod column;
mod schema;
mod thrift;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::options::Options;
use crate::place::{Output, State};
use crate::row::Row;
use column::{Column, PLAIN, RLE};
use thrift::Thrift;

/// First and last bytes of a file.
pub(crate) const MAGIC: &[u8] = b"PAR1";
/// A group has no more rows, however short they are.
const GROUP_ROWS: u64 = 100_000;
const ZSTD: i32 = 6;

/// What the end of the file tells of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Group {
    rows: u64,
    chunks: Vec<Chunk>,
}

/// A column of a group: where it begins, its bytes packed and unpacked, its values.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Chunk(u64, u64, u64, u64);

/// Gathers rows and writes whole groups.
pub(crate) struct ParquetWriter {
    columns: Vec<Column>,
    rows: u64,
    group_bytes: usize,
    groups: Vec<Group>,
}

impl ParquetWriter {
    /// A writer that goes on behind the groups that [`ParquetWriter::save`] told of.
    pub(crate) fn new(saved: &Value, group_bytes: usize) -> ParquetWriter {
        let groups = serde_json::from_value(saved.clone()).unwrap_or_default();
        ParquetWriter { columns: schema::columns(), rows: 0, group_bytes, groups }
    }

    /// What the end of the file must tell.
    pub(crate) fn save(&self) -> Value {
        serde_json::to_value(&self.groups).unwrap_or_default()
    }

    /// Adds a row; true if that ended a group, which is written then.
    pub(crate) fn push(&mut self, row: &Row, out: &mut Output) -> Result<bool> {
        schema::push(row, &mut self.columns);
        self.rows += 1;
        let mut bytes = 0;
        for column in &mut self.columns {
            column.end_row();
            let (waiting, packed) = column.bytes();
            bytes += waiting + packed + column.unpacked_bytes as usize;
        }
        let ended = self.rows >= GROUP_ROWS || bytes >= self.group_bytes;
        if ended {
            self.end_group(out)?;
        }
        Ok(ended)
    }

    fn end_group(&mut self, out: &mut Output) -> Result<()> {
        let mut chunks = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            column.end_page();
            chunks.push(Chunk(out.position, column.pages.len() as u64, column.unpacked_bytes, column.values_total));
            out.write(&column.pages)?;
            column.clear();
        }
        self.groups.push(Group { rows: self.rows, chunks });
        self.rows = 0;
        Ok(())
    }

    /// Writes the last group and the end of the file.
    pub(crate) fn finish(&mut self, out: &mut Output, state: &State, options: &Options) -> Result<()> {
        if self.rows > 0 {
            self.end_group(out)?;
        }
        let metadata = self.metadata(state, options);
        out.write(&metadata)?;
        out.write(&(metadata.len() as u32).to_le_bytes())?;
        out.write(MAGIC)
    }

    fn metadata(&self, state: &State, options: &Options) -> Vec<u8> {
        let made = rhumb_store::Timestamp(state.made).to_string();
        let facts = [("rhumb.software", options.software.as_str()), ("rhumb.crawled_until", made.as_str())];
        Thrift::of(|t| {
            t.i32(1, 2);
            schema::write(t, 2);
            t.i64(3, self.groups.iter().map(|g| g.rows).sum());
            t.structures(4, &self.groups, |t, group| self.group(t, group));
            t.structures(5, &facts, |t, (key, value)| {
                t.text(1, key);
                t.text(2, value);
            });
            t.text(6, &options.software);
        })
    }

    fn group(&self, thrift: &mut Thrift, group: &Group) {
        let both: Vec<(&Column, &Chunk)> = self.columns.iter().zip(&group.chunks).collect();
        thrift.structures(1, &both, |t, (column, Chunk(offset, packed, unpacked, values))| {
            t.i64(2, *offset);
            t.structure(3, |t| {
                t.i32(1, column.kind.physical());
                t.numbers(2, &[PLAIN, RLE]);
                t.texts(3, &column.path);
                t.i32(4, ZSTD);
                t.i64(5, *values);
                t.i64(6, *unpacked);
                t.i64(7, *packed);
                t.i64(9, *offset);
            });
        });
        thrift.i64(2, group.chunks.iter().map(|c| c.2).sum());
        thrift.i64(3, group.rows);
        if let Some(first) = group.chunks.first() {
            thrift.i64(5, first.0);
        }
        thrift.i64(6, group.chunks.iter().map(|c| c.1).sum());
    }
}
