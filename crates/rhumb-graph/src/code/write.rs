//! Writes rows: collects a segment of them, chooses references, writes bits, tables and offsets.

use rhumb_store::Result;
use rhumb_store::disk::Disk;

use super::bits::BitWriter;
use super::choose::{Block, choose, walk};
use super::model::{Emitter, PARTS, Sink, WINDOW_MAX};
use super::{CodeOptions, CodeStats, GROUP_MAX, KIND, huffman, offsets};
use crate::Node;
use rhumb_store::sealed::SealedWriter;

/// Rows and arcs from which on a segment is written.
const SEGMENT_ROWS: usize = 128 << 10;
const SEGMENT_ARCS: usize = 4 << 20;

/// Writes the rows of a graph, one after the other, in the memory that one segment takes.
pub struct CodeWriter {
    out: SealedWriter,
    nodes: Node,
    options: CodeOptions,
    /// The first node of the segment.
    first: Node,
    rows: Block,
    degree_max: u32,
    directory: Vec<u8>,
    stats: CodeStats,
}

impl CodeWriter {
    /// Begins the file `name` for a graph of so many nodes.
    pub fn create(disk: &dyn Disk, name: &str, nodes: Node, mut options: CodeOptions) -> Result<CodeWriter> {
        options.window = options.window.clamp(1, WINDOW_MAX);
        options.chain_max = options.chain_max.min(super::CHAIN_MAX);
        options.group = options.group.clamp(1, GROUP_MAX as u8);
        let out = SealedWriter::create(disk, name, KIND)?;
        Ok(CodeWriter {
            out,
            nodes,
            options,
            first: 0,
            rows: Block::default(),
            degree_max: 0,
            directory: Vec::new(),
            stats: CodeStats { nodes, ..CodeStats::default() },
        })
    }

    /// Adds the row of the next node: strictly ascending nodes of the graph.
    pub fn push(&mut self, row: &[Node]) -> Result<()> {
        assert!(self.rows.rows() < (self.nodes - self.first) as usize, "a graph has no more rows than nodes");
        assert!(row.last().is_none_or(|&last| last < self.nodes), "successors are nodes of the graph");
        assert!(row.windows(2).all(|two| two[0] < two[1]), "a row is strictly ascending");
        let full = self.rows.rows() >= self.options.segment_rows.unwrap_or(SEGMENT_ROWS)
            || self.rows.arcs() + row.len() > SEGMENT_ARCS;
        if full && self.rows.rows() > 0 {
            self.segment()?;
        }
        self.rows.push(row.iter().copied());
        self.degree_max = self.degree_max.max(row.len() as u32);
        Ok(())
    }

    /// Writes what is left and seals the file. Nodes without a row have no successors.
    pub fn finish(mut self) -> Result<CodeStats> {
        while self.rows.rows() < (self.nodes - self.first) as usize {
            self.push(&[])?;
        }
        self.segment()?;
        let mut end = self.directory;
        for number in [u64::from(self.nodes), self.stats.arcs, self.stats.segments] {
            end.extend_from_slice(&number.to_le_bytes());
        }
        end.extend_from_slice(&[self.options.window, self.options.chain_max, self.options.group, 0, 0, 0, 0, 0]);
        for part in
            [self.stats.bits_links, self.stats.bits_tables, self.stats.bits_offsets].iter().chain(&self.stats.parts())
        {
            end.extend_from_slice(&part.to_le_bytes());
        }
        self.out.align(8)?;
        self.out.write(&end)?;
        self.stats.file_bytes = self.out.finish()?;
        Ok(self.stats)
    }

    fn segment(&mut self) -> Result<()> {
        let rows = self.rows.rows();
        if rows == 0 {
            return Ok(());
        }
        let (references, counts) = choose(self.first, &self.rows, &self.options);
        let (codes, tables) = huffman::build(&counts.counts);
        let group = usize::from(self.options.group);
        let mut bits = BitWriter::default();
        let mut parts = [0u64; PARTS];
        let mut begins = Vec::with_capacity(rows / group + 1);
        let first = self.first;
        walk(first, &self.rows, &references, group, |n, split, head, context| {
            if n % group == 0 {
                begins.push(bits.len());
            }
            let mut emitter = Emitter { starts: counts.starts, codes: &codes, out: &mut bits, parts: &mut parts };
            emitter.put(context, head.0, 0, 0);
            split.body(first + n as Node, head, &mut emitter);
        });
        let links = bits.len();
        let offsets = offsets::write(&begins, links);
        let at = self.out.position();
        self.out.write(&tables)?;
        self.out.align(8)?;
        self.out.write(&offsets)?;
        self.out.write(&bits.finish())?;
        self.out.align(8)?;
        for number in [
            u64::from(first) | (rows as u64) << 32,
            self.rows.arcs() as u64,
            at,
            tables.len() as u64 | u64::from(self.degree_max) << 32,
            links,
        ] {
            self.directory.extend_from_slice(&number.to_le_bytes());
        }
        let stats = &mut self.stats;
        stats.arcs += self.rows.arcs() as u64;
        stats.segments += 1;
        stats.bits_links += links;
        stats.bits_tables += tables.len() as u64 * 8;
        stats.bits_offsets += offsets.len() as u64 * 8;
        stats.add(&parts);
        self.first += rows as Node;
        self.rows.clear();
        self.degree_max = 0;
        Ok(())
    }
}
