//! Writes a graph for the tools of the WebGraph framework, in the codes that all of them read.
//!
//! A row is written against each row of the window whose own chain of references is short enough, on paper, and then the
//! shortest for real; the nearest wins among equals, as in the original. The properties come last: without them, no tool
//! takes files that were not finished for a graph.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::bits::BitWriter;
use super::codes::{Code, fold};
use super::file_of;
use crate::{GraphError, Node, Result, Rows};

/// How a graph is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BvOptions {
    /// How many rows before may be copied from; at most 1024.
    pub window: u32,
    /// How many references lead to a row at most, each of which random access has to follow.
    pub references_max: u32,
    /// The shortest interval; 0 for none.
    pub interval_min: u32,
    /// The parameter of ζ for what is neither copied nor in an interval; 1 to 7.
    pub zeta: u32,
}

impl Default for BvOptions {
    fn default() -> BvOptions {
        BvOptions { window: 7, references_max: 3, interval_min: 4, zeta: 3 }
    }
}

/// What became of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BvStats {
    /// How many nodes there are.
    pub nodes: Node,
    /// How many arcs there are.
    pub arcs: u64,
    /// Bits of the rows.
    pub graph_bits: u64,
    /// Bits of the offsets.
    pub offsets_bits: u64,
    /// Arcs copied from another row.
    pub arcs_copied: u64,
    /// Arcs that are part of an interval.
    pub arcs_in_intervals: u64,
    /// References along the chains of all rows, and how far back they go.
    references: (u64, u64),
}

impl BvStats {
    /// Bits of the rows for each arc.
    pub fn bits_per_link(&self) -> f64 {
        if self.arcs == 0 { 0.0 } else { self.graph_bits as f64 / self.arcs as f64 }
    }
}

/// Writes `basename.graph`, `basename.offsets` and `basename.properties`.
pub fn write(basename: &Path, graph: &dyn Rows, options: BvOptions) -> Result<BvStats> {
    if options.window > 1024 || !(1..=7).contains(&options.zeta) {
        return Err(GraphError::input("a BV graph has a window of at most 1024 and a zeta between 1 and 7"));
    }
    let failed = |extension: &str, e: io::Error| {
        GraphError::input(format!("{}: cannot be written: {e}", file_of(basename, extension).display()))
    };
    let properties = file_of(basename, "properties");
    match fs::remove_file(&properties) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed("properties", e)),
        _ => {}
    }
    let create = |extension: &str| File::create(file_of(basename, extension)).map_err(|e| failed(extension, e));
    let mut coder = Coder::new(create("graph")?, create("offsets")?, options);
    let mut outcome = coder.offsets.bits(1, 1);
    graph.scan_all(&mut |node, row| {
        if outcome.is_ok() {
            outcome = coder.push(node, row);
        }
    });
    outcome.map_err(|e| failed("graph", e))?;
    coder.stats.offsets_bits = coder.offsets.position();
    let Coder { graph, offsets, stats, .. } = coder;
    graph.finish().and_then(|file| file.sync_all()).map_err(|e| failed("graph", e))?;
    offsets.finish().and_then(|file| file.sync_all()).map_err(|e| failed("offsets", e))?;
    fs::write(&properties, properties_of(&stats, options)).map_err(|e| failed("properties", e))?;
    Ok(stats)
}

fn properties_of(stats: &BvStats, options: BvOptions) -> String {
    let BvStats { nodes, arcs, graph_bits, .. } = stats;
    let BvOptions { window, references_max, interval_min, zeta } = options;
    let references_max = references_max.min(i32::MAX as u32);
    // The Rust program looks at zetak only if a flag names ζ.
    let flags = if zeta == 3 { "" } else { "RESIDUALS_ZETA" };
    let mut text = format!(
        "#BVGraph properties\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\nnodes={nodes}\narcs={arcs}\n\
         windowsize={window}\nmaxrefcount={references_max}\nminintervallength={interval_min}\nzetak={zeta}\n\
         compressionflags={flags}\nlength={graph_bits}\n"
    );
    if *nodes > 0 {
        let per_node = |sum: u64| sum as f64 / f64::from(*nodes);
        let (chains, distances) = stats.references;
        text += &format!("bitspernode={:.3}\n", per_node(*graph_bits));
        text += &format!("avgref={:.3}\navgdist={:.3}\n", per_node(chains), per_node(distances));
    }
    if *arcs > 0 {
        text += &format!("bitsperlink={:.3}\n", stats.bits_per_link());
    }
    text
}

struct Coder<W: io::Write> {
    graph: BitWriter<W>,
    offsets: BitWriter<W>,
    options: BvOptions,
    /// The last rows, each with the length of its chain of references; the latest at the end.
    window: VecDeque<(Vec<Node>, u32)>,
    best: Plan,
    trial: Plan,
    stats: BvStats,
}

impl<W: io::Write> Coder<W> {
    fn new(graph: W, offsets: W, options: BvOptions) -> Coder<W> {
        Coder {
            graph: BitWriter::new(graph),
            offsets: BitWriter::new(offsets),
            options,
            window: VecDeque::new(),
            best: Plan::default(),
            trial: Plan::default(),
            stats: BvStats::default(),
        }
    }

    fn push(&mut self, node: Node, row: &[Node]) -> io::Result<()> {
        let (before, options) = (self.graph.position(), self.options);
        self.best.make(node, row, 0, &[], options, u64::MAX);
        let mut chain = 0;
        for (back, (reference, references)) in (1..).zip(self.window.iter().rev()) {
            if row.is_empty() || reference.is_empty() || *references >= options.references_max {
                continue;
            }
            if self.trial.make(node, row, back, reference, options, self.best.bits) {
                std::mem::swap(&mut self.best, &mut self.trial);
                chain = references + 1;
            }
        }
        self.best.write(node, row.len() as u64, options, &mut self.graph)?;
        let bits = self.graph.position() - before;
        debug_assert_eq!(bits, self.best.bits);
        Code::Gamma.write(bits, &mut self.offsets)?;

        self.stats.nodes += 1;
        self.stats.arcs += row.len() as u64;
        self.stats.graph_bits += bits;
        self.stats.arcs_copied += (row.len() - self.best.extras.len()) as u64;
        self.stats.arcs_in_intervals += (self.best.extras.len() - self.best.residuals.len()) as u64;
        self.stats.references.0 += u64::from(chain);
        self.stats.references.1 += self.best.back;
        if options.window > 0 {
            let oldest = if self.window.len() < options.window as usize { None } else { self.window.pop_front() };
            let (mut kept, _) = oldest.unwrap_or_default();
            kept.clear();
            kept.extend_from_slice(row);
            self.window.push_back((kept, chain));
        }
        Ok(())
    }
}

/// How a row would be written.
#[derive(Default)]
struct Plan {
    bits: u64,
    back: u64,
    /// As written: the first as it is, all others less one.
    blocks: Vec<u64>,
    extras: Vec<Node>,
    /// Left end and length.
    intervals: Vec<(Node, u32)>,
    residuals: Vec<Node>,
}

impl Plan {
    /// Plans a row against a reference `back` nodes before. False, with the plan unfinished, if it takes `limit` bits or more.
    fn make(
        &mut self,
        node: Node,
        row: &[Node],
        back: u64,
        reference: &[Node],
        options: BvOptions,
        limit: u64,
    ) -> bool {
        self.back = back;
        self.blocks.clear();
        self.extras.clear();
        self.intervals.clear();
        self.residuals.clear();
        self.bits = Code::Gamma.len(row.len() as u64);
        if row.is_empty() {
            return self.bits < limit;
        }
        if options.window > 0 {
            self.bits += Code::Unary.len(back);
        }
        if back > 0 {
            self.copy(row, reference);
            self.bits += Code::Gamma.len(self.blocks.len() as u64);
            self.bits += self.blocks.iter().map(|&block| Code::Gamma.len(block)).sum::<u64>();
        } else {
            self.extras.extend_from_slice(row);
        }
        if self.bits >= limit {
            return false;
        }
        if self.extras.is_empty() {
            return true;
        }
        if options.interval_min > 0 {
            self.find_intervals(options.interval_min);
            self.bits += Code::Gamma.len(self.intervals.len() as u64);
            for_each_interval(&self.intervals, node, options.interval_min, |number| {
                self.bits += Code::Gamma.len(number);
            });
        } else {
            self.residuals.extend_from_slice(&self.extras);
        }
        let zeta = Code::Zeta(options.zeta);
        for_each_residual(&self.residuals, node, |number| self.bits += zeta.len(number));
        self.bits < limit
    }

    /// Cuts the reference into blocks that are in the row and blocks that are not. The last is not written if it can be told.
    fn copy(&mut self, row: &[Node], reference: &[Node]) {
        let (mut r, mut at) = (0, 0);
        let mut copying = true;
        let mut len = 0;
        while r < row.len() && at < reference.len() {
            let (successor, other) = (row[r], reference[at]);
            if successor < other {
                self.extras.push(successor);
                r += 1;
            } else if copying == (successor == other) {
                // The block goes on: of equal ones, or of those that the row lacks.
                r += usize::from(copying);
                at += 1;
                len += 1;
            } else {
                self.blocks.push(len);
                copying = !copying;
                len = 0;
            }
        }
        if copying && at < reference.len() {
            self.blocks.push(len);
        }
        self.extras.extend_from_slice(&row[r..]);
        for block in self.blocks.iter_mut().skip(1) {
            *block -= 1;
        }
    }

    fn find_intervals(&mut self, interval_min: u32) {
        let mut rest = &self.extras[..];
        while let Some(&left) = rest.first() {
            let len = (0..).zip(rest).take_while(|&(n, &node)| node - left == n).count();
            if len as u64 >= u64::from(interval_min) {
                self.intervals.push((left, len as u32));
            } else {
                self.residuals.extend_from_slice(&rest[..len]);
            }
            rest = &rest[len..];
        }
    }

    fn write<W: io::Write>(
        &self,
        node: Node,
        degree: u64,
        options: BvOptions,
        to: &mut BitWriter<W>,
    ) -> io::Result<()> {
        Code::Gamma.write(degree, to)?;
        if degree == 0 {
            return Ok(());
        }
        if options.window > 0 {
            Code::Unary.write(self.back, to)?;
        }
        if self.back > 0 {
            Code::Gamma.write(self.blocks.len() as u64, to)?;
            self.blocks.iter().try_for_each(|&block| Code::Gamma.write(block, to))?;
        }
        if self.extras.is_empty() {
            return Ok(());
        }
        let mut outcome = Ok(());
        if options.interval_min > 0 {
            Code::Gamma.write(self.intervals.len() as u64, to)?;
            for_each_interval(&self.intervals, node, options.interval_min, |number| {
                if outcome.is_ok() {
                    outcome = Code::Gamma.write(number, to);
                }
            });
        }
        for_each_residual(&self.residuals, node, |number| {
            if outcome.is_ok() {
                outcome = Code::Zeta(options.zeta).write(number, to);
            }
        });
        outcome
    }
}

/// The numbers that stand for intervals.
fn for_each_interval(intervals: &[(Node, u32)], node: Node, interval_min: u32, mut each: impl FnMut(u64)) {
    let mut end = None;
    for &(left, len) in intervals {
        each(match end {
            None => fold(i64::from(left) - i64::from(node)),
            Some(end) => u64::from(left) - end - 1,
        });
        each(u64::from(len - interval_min));
        end = Some(u64::from(left) + u64::from(len));
    }
}

/// The numbers that stand for what is left.
fn for_each_residual(residuals: &[Node], node: Node, mut each: impl FnMut(u64)) {
    if let Some(&first) = residuals.first() {
        each(fold(i64::from(first) - i64::from(node)));
    }
    for pair in residuals.windows(2) {
        each(u64::from(pair[1] - pair[0] - 1));
    }
}
