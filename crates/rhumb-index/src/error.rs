//! The one error type of the index.

use rhumb_store::StoreError;
use tantivy::TantivyError;

/// Our machinery failing. What a person types is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A file could not be read or written, or is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// tantivy could not do what it was asked to.
    #[error("the text index failed: {0}")]
    Tantivy(TantivyError),
}

impl From<TantivyError> for IndexError {
    fn from(error: TantivyError) -> IndexError {
        // What our directory refused comes back wrapped: the file and the place in it are what a person needs.
        let io = match &error {
            TantivyError::IoError(io) => Some(io.clone()),
            TantivyError::OpenReadError(tantivy::directory::error::OpenReadError::IoError { io_error, .. })
            | TantivyError::OpenWriteError(tantivy::directory::error::OpenWriteError::IoError { io_error, .. }) => {
                Some(io_error.clone())
            }
            _ => None,
        };
        let inner = io.as_ref().and_then(|io| io.get_ref()).and_then(|e| e.downcast_ref::<StoreError>());
        match inner {
            Some(StoreError::Corrupt { file, offset, what }) => StoreError::corrupt(file, *offset, what.clone()).into(),
            Some(StoreError::Version { file, found, known }) => {
                StoreError::Version { file: file.clone(), found: *found, known: *known }.into()
            }
            Some(StoreError::Io { doing, file, source }) => {
                let source = match source.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::new(source.kind(), source.to_string()),
                };
                StoreError::Io { doing, file: file.clone(), source }.into()
            }
            _ => IndexError::Tantivy(error),
        }
    }
}

impl From<std::io::Error> for IndexError {
    fn from(error: std::io::Error) -> IndexError {
        TantivyError::from(error).into()
    }
}

impl IndexError {
    /// Whether what is on disk cannot be used and must be made anew.
    pub fn is_damage(&self) -> bool {
        match self {
            IndexError::Store(StoreError::Corrupt { .. } | StoreError::Version { .. }) => true,
            IndexError::Store(StoreError::Io { source, .. }) => source.kind() == std::io::ErrorKind::NotFound,
            IndexError::Store(_) => false,
            IndexError::Tantivy(error) => matches!(
                error,
                TantivyError::DataCorruption(_)
                    | TantivyError::IncompatibleIndex(_)
                    | TantivyError::SchemaError(_)
                    | TantivyError::OpenReadError(_)
            ),
        }
    }
}

/// Shorthand for results of the index.
pub type Result<T, E = IndexError> = std::result::Result<T, E>;
