//! Reads a graph of somebody else's from front to back.
//!
//! Nothing is believed. Every count is held against what it counts before anything is kept for it: a row has at most as many
//! successors as there are nodes, a node takes at least a bit of the file, and the rows of a window have a bound in memory. A
//! row that comes out is strictly ascending and below the number of nodes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use super::bits::{BitReader, Fault};
use super::codes::unfold;
use super::file_of;
use super::properties::Properties;
use crate::{GraphError, Node, Result};

/// The rows of a window, and so each of them, have at most so many arcs together: 1 GiB. The largest rows known have some ten millions.
const WINDOW_ARCS_MAX: usize = 1 << 28;

/// A graph of the WebGraph framework, read from front to back.
pub struct Reader {
    path: PathBuf,
    properties: Properties,
    bits: BitReader<Box<dyn Read + Send>>,
    /// The last rows, the latest at the end.
    window: VecDeque<Vec<Node>>,
    window_arcs: usize,
    /// The node whose row comes next.
    node: Node,
    arcs: u64,
    failed: bool,
    row: Vec<Node>,
    copied: Vec<Node>,
    intervals: Vec<Node>,
    residuals: Vec<Node>,
    extras: Vec<Node>,
}

impl Reader {
    /// Opens `basename.properties` and `basename.graph`.
    pub fn open(basename: &Path) -> Result<Reader> {
        let properties = Properties::read(&file_of(basename, "properties"))?;
        let path = file_of(basename, "graph");
        let wrong = |what: String| GraphError::input(format!("{}: {what}", path.display()));
        let file = File::open(&path).map_err(|e| wrong(format!("cannot be opened: {e}")))?;
        let metadata = file.metadata().map_err(|e| wrong(format!("cannot be read: {e}")))?;
        // Things that are not files, such as pipes, have no length to be held against.
        if metadata.is_file() && u64::from(properties.nodes) > metadata.len().saturating_mul(8) {
            let (nodes, bytes) = (properties.nodes, metadata.len());
            return Err(wrong(format!("the properties promise {nodes} nodes, which {bytes} bytes cannot hold")));
        }
        Ok(Reader::new(path, properties, Box::new(file)))
    }

    /// The same from memory: what would be in the two files.
    pub fn from_bytes(properties: &[u8], graph: Vec<u8>) -> Result<Reader> {
        let properties = Properties::parse(&String::from_utf8_lossy(properties)).map_err(GraphError::input)?;
        Ok(Reader::new(PathBuf::from("a graph in memory"), properties, Box::new(Cursor::new(graph))))
    }

    fn new(path: PathBuf, properties: Properties, source: Box<dyn Read + Send>) -> Reader {
        Reader {
            bits: BitReader::new(source, properties.little),
            path,
            properties,
            window: VecDeque::new(),
            window_arcs: 0,
            node: 0,
            arcs: 0,
            failed: false,
            row: Vec::new(),
            copied: Vec::new(),
            intervals: Vec::new(),
            residuals: Vec::new(),
            extras: Vec::new(),
        }
    }

    /// How many nodes the graph has.
    pub fn nodes(&self) -> Node {
        self.properties.nodes
    }

    /// How many arcs the properties promise. Rows may be copied at almost no bits, so a small file can hold very many.
    pub fn arcs(&self) -> u64 {
        self.properties.arcs
    }

    /// The row of the next node; nothing after the last, if the graph has kept all that it promised.
    pub fn next_row(&mut self) -> Result<Option<&[Node]>> {
        if self.failed {
            return Err(self.wrong("the graph could not be read before"));
        }
        if self.node == self.properties.nodes {
            let (found, promised) = (self.arcs, self.properties.arcs);
            if found != promised {
                let what = format!("the graph has {found} arcs, its properties promise {promised}");
                return Err(GraphError::input(format!("{}: {what}", self.path.display())));
            }
            return Ok(None);
        }
        let start = self.bits.position();
        if let Err(wrong) = self.read_row() {
            self.failed = true;
            return Err(match wrong {
                Wrong::Fault(Fault::CutShort) => {
                    self.wrong(&format!("the file ends within the row that begins at bit {start}"))
                }
                Wrong::Fault(Fault::Absurd) => self.wrong("a number here is larger than any in a graph"),
                Wrong::Fault(Fault::Io(kind)) => self.wrong(&format!("cannot be read: {kind}")),
                Wrong::Row(what) => self.wrong(&what),
            });
        }
        self.node += 1;
        Ok(Some(self.window.back().unwrap_or(&self.row)))
    }

    fn wrong(&self, what: &str) -> GraphError {
        let (path, node, bit) = (self.path.display(), self.node, self.bits.position());
        GraphError::input(format!("{path}: node {node}, bit {bit}: {what}"))
    }

    /// Reads the next row and puts it into the window; if there is none, it is in `row`.
    fn read_row(&mut self) -> Result<(), Wrong> {
        let properties = &self.properties;
        let bits = &mut self.bits;
        let (nodes, node) = (u64::from(properties.nodes), i64::from(self.node));
        self.copied.clear();
        self.intervals.clear();
        self.residuals.clear();

        let degree = properties.outdegrees.read(bits)?;
        if degree > nodes {
            return Err(Wrong::row(format!("{degree} successors, but the graph has {nodes} nodes")));
        }
        if degree > WINDOW_ARCS_MAX as u64 {
            return Err(Wrong::row(format!("{degree} successors, more than {WINDOW_ARCS_MAX}")));
        }
        self.arcs += degree;
        if self.arcs > properties.arcs {
            return Err(Wrong::row(format!("more arcs than the {} that the properties promise", properties.arcs)));
        }
        let degree = degree as usize;
        if degree > 0 && properties.window > 0 {
            let back = properties.references.read(bits)?;
            if back > self.window.len() as u64 {
                let have = self.window.len();
                return Err(Wrong::row(format!("copied from {back} nodes before, of which {have} can be")));
            }
            if back > 0 {
                let reference = &self.window[self.window.len() - back as usize];
                let blocks = properties.block_count.read(bits)?;
                let mut at = 0;
                for block in 0..blocks {
                    let len = properties.blocks.read(bits)? + u64::from(block > 0);
                    if len > (reference.len() - at) as u64 {
                        return Err(Wrong::row(format!("block {block} goes beyond the row it is copied from")));
                    }
                    let end = at + len as usize;
                    if block % 2 == 0 {
                        self.copied.extend_from_slice(&reference[at..end]);
                    }
                    at = end;
                }
                if blocks % 2 == 0 {
                    self.copied.extend_from_slice(&reference[at..]);
                }
                if self.copied.len() > degree {
                    return Err(Wrong::row(format!("{} successors are copied, of {degree}", self.copied.len())));
                }
            }
        }
        let mut left = degree - self.copied.len();
        let in_range = |successor: Option<i64>| match successor {
            Some(successor) if (0..nodes as i64).contains(&successor) => Ok(successor),
            _ => Err(Wrong::row(format!("a successor out of range: the graph has {nodes} nodes"))),
        };
        if left > 0 && properties.interval_min > 0 {
            let count = properties.intervals.read(bits)?;
            let mut end = None;
            for _ in 0..count {
                let number = properties.intervals.read(bits)?;
                let start = match end {
                    None => in_range(node.checked_add(unfold(number)))?,
                    Some(end) => in_range(i64::try_from(number).ok().and_then(|n| n.checked_add(end + 1)))?,
                };
                let len = properties.intervals.read(bits)?.saturating_add(u64::from(properties.interval_min));
                if len > left as u64 {
                    return Err(Wrong::row(format!("an interval of {len} successors, where {left} are left")));
                }
                left -= len as usize;
                let after = start + len as i64;
                in_range(Some(after - 1))?;
                self.intervals.extend(start as Node..=(after - 1) as Node);
                end = Some(after);
            }
        }
        if left > 0 {
            let number = properties.residuals.read(bits)?;
            let mut successor = in_range(node.checked_add(unfold(number)))?;
            self.residuals.push(successor as Node);
            for _ in 1..left {
                let number = properties.residuals.read(bits)?;
                successor = in_range(i64::try_from(number).ok().and_then(|n| n.checked_add(successor + 1)))?;
                self.residuals.push(successor as Node);
            }
        }
        if properties.window > 0 && self.window.len() >= properties.window as usize {
            // The oldest row is not needed any more; its memory is used again.
            self.row = self.window.pop_front().unwrap_or_default();
            self.window_arcs -= self.row.len();
        }
        let ascending = if self.copied.is_empty() {
            merge(&self.intervals, &self.residuals, &mut self.row)
        } else {
            merge(&self.intervals, &self.residuals, &mut self.extras)
                && merge(&self.copied, &self.extras, &mut self.row)
        };
        if !ascending {
            return Err(Wrong::row("a successor is there twice".into()));
        }
        if properties.window > 0 {
            self.window_arcs += self.row.len();
            if self.window_arcs > WINDOW_ARCS_MAX {
                return Err(Wrong::row(format!("the last rows have more than {WINDOW_ARCS_MAX} arcs together")));
            }
            self.window.push_back(std::mem::take(&mut self.row));
        }
        Ok(())
    }
}

/// Why a row cannot be.
enum Wrong {
    Fault(Fault),
    Row(String),
}

impl Wrong {
    #[cold]
    fn row(what: String) -> Wrong {
        Wrong::Row(what)
    }
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Wrong {
        Wrong::Fault(fault)
    }
}

/// Merges two strictly ascending lists into one; false if they have something in common.
fn merge(mut a: &[Node], mut b: &[Node], into: &mut Vec<Node>) -> bool {
    into.clear();
    while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
        if x == y {
            return false;
        }
        if x < y {
            into.push(x);
            a = &a[1..];
        } else {
            into.push(y);
            b = &b[1..];
        }
    }
    into.extend_from_slice(a);
    into.extend_from_slice(b);
    true
}
