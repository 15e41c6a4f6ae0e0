//! Names that lead nowhere, or astray.
