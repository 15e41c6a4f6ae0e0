//! Compact sets and counts with a known error: [`Bloom`] and [`BlockedBloom`] say whether a key was added, [`Spectral`] says
//! how often (SPEC S1, S2), [`Recent`] forgets what was added long ago.
//!
//! Keys are uniform 64-bit fingerprints already; none of these hashes text.

mod bloom;
mod recent;
mod spectral;

pub use bloom::{BlockedBloom, Bloom};
pub use recent::Recent;
pub use spectral::{Estimate, Spectral};
