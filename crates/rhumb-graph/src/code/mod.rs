//! The compressed graph: two bits for a link, any row in less than a microsecond.
//!
//! What is kept of Boldi and Vigna's WebGraph framework (WWW 2004): a row may refer to one of the rows shortly before, of which it copies blocks; what is left
//! are gaps and runs; chains of references are short, so any row is had from a few others. What is different: every number is
//! written in a code made for this part of this graph (Huffman's, over tokens, as Zuckerli has it, Versari et al. 2020); what is left of a
//! row is told from the node outwards, down and up; a node that leads to itself is a flag; and offsets are kept
//! for groups of rows only, which is possible because a row can be passed over without the rows it refers to.
//!
//! Invariant: what [`Coded`] gives is what [`CodeWriter`] was given, whichever way it is asked for. The bytes are in
//! `docs/formats/graph.md`.
//!
//! Read `model.rs` first (what a row is made of), then `choose.rs` (which rows refer to which), `huffman.rs`, `offsets.rs` and `read.rs`.

mod bits;
mod choose;
mod huffman;
mod measure;
mod model;
mod offsets;
mod read;
mod write;

pub use measure::{Measured, measure};
use model::PARTS;
pub use read::{Coded, Scratch};
pub use write::CodeWriter;

use crate::rows::Node;
use rhumb_store::sealed::Kind;

/// What files with rows are.
pub const KIND: Kind = Kind { magic: *b"rhumbrow", version: 1 };

/// The largest group a file may have.
const GROUP_MAX: usize = 16;
/// The longest chain of references a file may have.
const CHAIN_MAX: u8 = 32;

/// How much work compressing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Effort {
    /// Three rounds of choosing references.
    #[default]
    Best,
    /// One round.
    Fast,
}

/// How rows are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeOptions {
    /// How many rows back a row may refer, up to 63.
    pub window: u8,
    /// How many references may follow each other, up to 32: what any row costs at most.
    pub chain_max: u8,
    /// How much work it may be.
    pub effort: Effort,
    /// Rows in a group, up to 16: only the first can be found at once, the others by passing over those before. Eight instead of four
    /// spare a tenth of a bit a link of offsets, and random rows take a third longer.
    pub group: u8,
    /// Rows in a segment, if not as many as usual; for tests.
    #[doc(hidden)]
    pub segment_rows: Option<usize>,
}

impl Default for CodeOptions {
    fn default() -> CodeOptions {
        CodeOptions { window: 32, chain_max: 3, effort: Effort::Best, group: 4, segment_rows: None }
    }
}

/// How many bits went where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeStats {
    /// Nodes of the graph.
    pub nodes: Node,
    /// Arcs of the graph.
    pub arcs: u64,
    /// Parts of the file with codes of their own.
    pub segments: u64,
    /// Bits for rows, the sum of the five below.
    pub bits_links: u64,
    /// Bits to find rows.
    pub bits_offsets: u64,
    /// Bits that tell the codes.
    pub bits_tables: u64,
    /// The whole file, seal included.
    pub file_bytes: u64,
    /// Bits for heads of rows: references and what follows.
    pub bits_heads: u64,
    /// Bits for copied blocks.
    pub bits_blocks: u64,
    /// Bits for how many steps there are.
    pub bits_counts: u64,
    /// Bits for steps to successors that are not copied.
    pub bits_steps: u64,
    /// Bits of numbers beyond their symbols.
    pub bits_plain: u64,
}

impl CodeStats {
    /// Bits for a link, codes included and offsets not.
    pub fn bits_per_link(&self) -> f64 {
        (self.bits_links + self.bits_tables) as f64 / self.arcs.max(1) as f64
    }

    /// Bits for a link with everything that is needed to find it.
    pub fn bits_per_link_with_offsets(&self) -> f64 {
        (self.bits_links + self.bits_tables + self.bits_offsets) as f64 / self.arcs.max(1) as f64
    }

    fn parts(&self) -> [u64; PARTS] {
        [self.bits_heads, self.bits_blocks, self.bits_counts, self.bits_steps, self.bits_plain]
    }

    fn add(&mut self, parts: &[u64; PARTS]) {
        let into = [
            &mut self.bits_heads,
            &mut self.bits_blocks,
            &mut self.bits_counts,
            &mut self.bits_steps,
            &mut self.bits_plain,
        ];
        for (into, part) in into.into_iter().zip(parts) {
            *into += part;
        }
    }
}

#[cfg(test)]
mod tests;
