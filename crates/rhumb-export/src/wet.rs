//! WET: WARC 1.1 with a `conversion` record for the text of each page, a gzip member each, as Common Crawl publishes it.
//!
//! Record ids are made from the id of the record that the text was taken from, so that the same export has the same bytes.

use rhumb_store::Timestamp;
use rhumb_store::warc::{Capture, RecordId, RecordWriter};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::Result;
use crate::options::Options;
use crate::place::State;
use crate::row::Row;

/// Makes records; keeps its buffers between them.
#[derive(Default)]
pub(crate) struct Encoder {
    writer: RecordWriter,
}

impl Encoder {
    /// The record of a page; nothing if it has no text.
    pub(crate) fn record(&mut self, row: &Row) -> Result<Option<Vec<u8>>> {
        let Some(text) = row.text.as_deref().filter(|t| !t.trim().is_empty()) else { return Ok(None) };
        let source = row.record_id.as_deref();
        let id = RecordId::from_bits(xxh3_128(format!("conversion {} {:?}", row.url, source).as_bytes()));
        let capture = Capture { uri: &row.url, date: row.fetched, ip: None, protocols: &[] };
        let mut out = Vec::new();
        self.writer.conversion(&mut out, id, &capture, source, row.language3, text)?;
        Ok(Some(out))
    }
}

/// The record a file begins with.
pub(crate) fn begin(state: &State, options: &Options) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let id = RecordId::from_bits(xxh3_128(format!("wet {} {}", state.crawl, state.made).as_bytes()));
    let fields = [("software", options.software.as_str()), ("format", "WARC File Format 1.1")];
    RecordWriter::default().warcinfo(&mut out, id, Timestamp(state.made), "pages.wet.gz", &fields)?;
    Ok(out)
}
