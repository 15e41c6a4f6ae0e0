//! What keeps an export from going on. What a single page lacks is counted instead, see [`crate::Summary`].

use std::io;
use std::path::Path;

use rhumb_store::StoreError;
use rhumb_store::warc::WarcError;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// What was asked for cannot be: the output exists, another export is unfinished there, a filter makes no sense.
    #[error("{0}")]
    Refused(String),
    /// The crawl's own files could not be read, or a work file not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refused something to do with the output.
    #[error("could not {doing} {file}: {source}")]
    Io {
        /// A verb phrase: "write to", "rename".
        doing: &'static str,
        /// Which file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output was closed or failed.
    #[error("could not write to standard output: {0}")]
    Stdout(#[source] io::Error),
    /// A record could not be made.
    #[error(transparent)]
    Warc(#[from] WarcError),
    /// The user asked for an end. Everything needed to go on is kept.
    #[error("interrupted")]
    Interrupted,
}

/// Shorthand for results of an export.
pub type Result<T, E = ExportError> = std::result::Result<T, E>;

impl ExportError {
    /// Wraps an I/O error with what was being done to which file.
    pub(crate) fn io(doing: &'static str, file: &Path, source: io::Error) -> ExportError {
        ExportError::Io { doing, file: file.display().to_string(), source }
    }
}
