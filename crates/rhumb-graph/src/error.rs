//! The one error type of this crate.

use rhumb_store::StoreError;

/// What can go wrong with a graph.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// A file cannot be written or read, or is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of somebody else's does not hold what it should; the text says which, where and what.
    #[error("{0}")]
    Input(String),
}

impl GraphError {
    /// Something is wrong with what was given.
    pub fn input(what: impl Into<String>) -> GraphError {
        GraphError::Input(what.into())
    }
}

/// Shorthand for results of this crate.
pub type Result<T, E = GraphError> = std::result::Result<T, E>;
