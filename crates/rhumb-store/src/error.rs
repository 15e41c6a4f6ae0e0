//! The one error type of the store: what we were doing, to which file, and what went wrong.

use std::io;

/// Our machinery failing. The web being the web is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused: disk full, no permission, a device gone.
    #[error("could not {doing} {file}: {source}")]
    Io {
        /// A verb phrase: "append to", "open".
        doing: &'static str,
        /// The file's name below the crawl directory.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A checksum or a structure does not hold.
    #[error("{file} is damaged at byte {offset}: {what}")]
    Corrupt {
        /// The file's name below the crawl directory.
        file: String,
        /// Where the damage starts.
        offset: u64,
        /// What was found.
        what: String,
    },
    /// A file of a version this program does not read.
    #[error("{file} has format version {found}; this program reads version {known}")]
    Version {
        /// The file's name below the crawl directory.
        file: String,
        /// The version in the file.
        found: u32,
        /// The version this program writes and reads.
        known: u32,
    },
    /// Another process writes this crawl directory.
    #[error("{0} is in use by another rhumb process; wait for it or stop it")]
    Locked(String),
    /// An earlier write failed, so nothing more may be added to this file.
    #[error("{0} had a failed write and takes no more; start the crawl again to go on from the last whole record")]
    Poisoned(String),
}

impl StoreError {
    /// Wraps an I/O error with its context.
    pub fn io(doing: &'static str, file: &str, source: io::Error) -> Self {
        StoreError::Io { doing, file: file.to_string(), source }
    }

    /// Whether what is wrong is a file below `state/`, all of which can be made anew from the log.
    pub fn is_in_derived_state(&self) -> bool {
        match self {
            StoreError::Corrupt { file, .. } | StoreError::Version { file, .. } => file.starts_with("state/"),
            StoreError::Io { file, source, .. } => {
                file.starts_with("state/") && source.kind() == io::ErrorKind::NotFound
            }
            StoreError::Locked(_) | StoreError::Poisoned(_) => false,
        }
    }

    /// Damage found at `offset` of `file`.
    pub fn corrupt(file: &str, offset: u64, what: impl Into<String>) -> Self {
        StoreError::Corrupt { file: file.to_string(), offset, what: what.into() }
    }
}

/// Shorthand for store results.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
