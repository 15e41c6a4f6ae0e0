//! Reads rows, in place: any of them, or one after the other.
//!
//! Nothing that stands in the file makes this panic, read outside, or work for long: numbers are held to what the directory
//! allows, and a chain of references to its length. A file that was not written by us may hold wrong rows, of nodes of the graph.

use std::cell::RefCell;
use std::sync::OnceLock;

use rhumb_store::Result;
use rhumb_store::disk::Disk;

use super::bits::BitReader;
use super::huffman::{LEN_MAX, Tables};
use super::model::{
    HEAD_FIRST, Head, NUMBER, NUMBERS, WINDOW_MAX, above_context, below_context, block_context, step_contexts,
};
use super::offsets::Offsets;
use super::{CHAIN_MAX, CodeStats, GROUP_MAX, KIND, PARTS};
use crate::rows::{Node, Rows};
use rhumb_store::sealed::Sealed;

const ENTRY_BYTES: usize = 40;
pub(super) const END_BYTES: usize = 32 + 8 * (3 + PARTS);
/// A symbol and the bits of its number.
const NUMBER_BITS: u32 = LEN_MAX as u32 + 30;

/// A compressed graph.
pub struct Coded {
    content: Sealed,
    segments: Vec<Segment>,
    nodes: Node,
    window: u32,
    chain_max: usize,
    group: u32,
    stats: CodeStats,
}

struct Segment {
    first: Node,
    rows: u32,
    degree_max: u32,
    tables_at: usize,
    tables_end: usize,
    offsets_at: usize,
    offsets: Offsets,
    links_at: usize,
    tables: OnceLock<Tables>,
}

/// Space in which rows are put together; making it once spares time.
#[derive(Default)]
pub struct Scratch {
    /// A row for every place in a chain of references.
    levels: Vec<Vec<Node>>,
    extra: Vec<Node>,
    trail: Trail,
}

/// Rows that were passed over on the way to another one: what is referred to is often among them.
#[derive(Default)]
struct Trail {
    group: u32,
    /// How many of its rows were passed over.
    known: usize,
    /// Their heads, and where what follows begins.
    rows: [(Head, u64); GROUP_MAX],
}

impl Scratch {
    /// Makes ready for another row.
    fn begin(&mut self, chain_max: usize) {
        self.trail.known = 0;
        if self.levels.len() < chain_max + 2 {
            self.levels.resize(chain_max + 2, Vec::new());
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Coded {
    /// Opens the file `name`.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<Coded> {
        Coded::read(Sealed::open(disk, name, KIND)?)
    }

    /// Reads a graph from the content of a file, without its seal.
    pub fn from_bytes(content: &[u8]) -> Result<Coded> {
        Coded::read(Sealed::in_memory("a graph in memory", content))
    }

    fn read(content: Sealed) -> Result<Coded> {
        let parsed = parse(&content, content.len() as u64 + 32).map_err(|(at, what)| content.damaged(at, what))?;
        let Parsed { segments, nodes, window, chain_max, group, stats } = parsed;
        Ok(Coded { content, segments, nodes, window, chain_max, group, stats })
    }

    /// What was found when the file was written.
    pub fn stats(&self) -> CodeStats {
        self.stats
    }

    /// As [`Rows::row`], in space that is kept from one call to the next.
    pub fn row_with(&self, node: Node, into: &mut Vec<Node>, scratch: &mut Scratch) {
        into.clear();
        let Some(segment) = self.segment_of(node) else { return };
        let tables = self.tables(segment);
        scratch.begin(self.chain_max);
        std::mem::swap(&mut scratch.levels[0], into);
        let own = self.fetch(segment, tables, node - segment.first, 0, scratch);
        std::mem::swap(&mut scratch.levels[0], into);
        if own {
            let at = into.partition_point(|&s| s < node);
            into.insert(at, node);
        }
    }

    fn segment_of(&self, node: Node) -> Option<&Segment> {
        let after = if self.segments.len() == 1 { 1 } else { self.segments.partition_point(|s| s.first <= node) };
        let segment = self.segments.get(after.wrapping_sub(1))?;
        (node - segment.first < segment.rows).then_some(segment)
    }

    #[inline]
    fn tables<'a>(&'a self, segment: &'a Segment) -> &'a Tables {
        segment.tables.get_or_init(|| {
            Tables::read(&self.content[segment.tables_at..segment.tables_end])
                .expect("checked when the file was opened")
        })
    }

    /// A reader of the first row of the group that row `n` of a segment is in.
    #[inline(always)]
    fn group_of<'a>(&'a self, segment: &Segment, n: u32) -> BitReader<'a> {
        let offsets = &self.content[segment.offsets_at..segment.offsets_at + segment.offsets.len];
        let begin = segment.offsets.get(offsets, (n / self.group) as usize);
        BitReader::at(&self.content[segment.links_at..], begin)
    }

    /// The head of row `n` of a segment, and a reader of what follows.
    #[inline]
    fn seek<'a>(&'a self, segment: &Segment, tables: &Tables, n: u32, trail: &mut Trail) -> (BitReader<'a>, Head) {
        let place = (n % self.group) as usize;
        if trail.group == n / self.group && place < trail.known {
            let (head, at) = trail.rows[place];
            return (BitReader::at(&self.content[segment.links_at..], at), head);
        }
        let mut reader = self.group_of(segment, n);
        let mut context = HEAD_FIRST;
        trail.group = n / self.group;
        trail.known = place;
        for row in &mut trail.rows[..place] {
            reader.need(LEN_MAX as u32);
            let head = Head(tables.symbol(context, &mut reader));
            *row = (head, reader.position());
            skip(tables, &mut reader, head, segment.degree_max);
            context = head.context_after();
        }
        reader.need(LEN_MAX as u32);
        let head = Head(tables.symbol(context, &mut reader));
        (reader, head)
    }

    /// Puts row `n` into its place in the chain, as rows are seen that are referred to. Whether the node itself belongs to it.
    fn fetch(&self, segment: &Segment, tables: &Tables, n: u32, depth: usize, scratch: &mut Scratch) -> bool {
        let (mut reader, head) = self.seek(segment, tables, n, &mut scratch.trail);
        let reference = head.reference();
        let refers = reference > 0 && reference <= n && depth < self.chain_max;
        if refers {
            self.fetch(segment, tables, n - reference, depth + 1, scratch);
        }
        let (levels, sources) = scratch.levels.split_at_mut(depth + 1);
        let (row, source) = (&mut levels[depth], &mut sources[0]);
        if !refers {
            source.clear();
        }
        row.clear();
        let bounds = Bounds { node: segment.first + n, nodes: self.nodes, degree_max: segment.degree_max };
        body(tables, &mut reader, head, bounds, source, &mut scratch.extra, row);
        head.own()
    }

    fn scan_segment(&self, segment: &Segment, from: u32, to: u32, each: &mut dyn FnMut(Node, &[Node])) {
        let tables = self.tables(segment);
        let ring_len = (self.window as usize + 1).next_power_of_two();
        let mut ring: Vec<Vec<Node>> = vec![Vec::new(); ring_len];
        let mut scratch = Scratch::default();
        let mut with_own = Vec::new();
        let mut reader = self.group_of(segment, from);
        let mut context = HEAD_FIRST;
        for _ in 0..from % self.group {
            reader.need(LEN_MAX as u32);
            let head = Head(tables.symbol(context, &mut reader));
            skip(tables, &mut reader, head, segment.degree_max);
            context = head.context_after();
        }
        for n in from..to {
            if n % self.group == 0 {
                context = HEAD_FIRST;
            }
            reader.need(LEN_MAX as u32);
            let head = Head(tables.symbol(context, &mut reader));
            context = head.context_after();
            let reference = head.reference();
            let node = segment.first + n;
            let mut row = std::mem::take(&mut ring[n as usize & (ring_len - 1)]);
            row.clear();
            let source: &[Node] = if reference == 0 || reference > n || reference > self.window {
                &[]
            } else if n - reference >= from {
                &ring[(n - reference) as usize & (ring_len - 1)]
            } else {
                scratch.begin(self.chain_max);
                self.fetch(segment, tables, n - reference, 0, &mut scratch);
                &scratch.levels[0]
            };
            let bounds = Bounds { node, nodes: self.nodes, degree_max: segment.degree_max };
            body(tables, &mut reader, head, bounds, source, &mut scratch.extra, &mut row);
            if head.own() {
                let at = row.partition_point(|&s| s < node);
                with_own.clear();
                with_own.extend_from_slice(&row[..at]);
                with_own.push(node);
                with_own.extend_from_slice(&row[at..]);
                each(node, &with_own);
            } else {
                each(node, &row);
            }
            ring[n as usize & (ring_len - 1)] = row;
        }
    }
}

impl Rows for Coded {
    fn nodes(&self) -> Node {
        self.nodes
    }

    fn arcs(&self) -> u64 {
        self.stats.arcs
    }

    fn row(&self, node: Node, into: &mut Vec<Node>) {
        SCRATCH.with_borrow_mut(|scratch| self.row_with(node, into, scratch));
    }

    fn degree(&self, node: Node) -> u32 {
        SCRATCH.with_borrow_mut(|scratch| {
            let Some(segment) = self.segment_of(node) else { return 0 };
            scratch.begin(self.chain_max);
            let own = self.fetch(segment, self.tables(segment), node - segment.first, 0, scratch);
            scratch.levels[0].len() as u32 + u32::from(own)
        })
    }

    fn scan(&self, from: Node, to: Node, each: &mut dyn FnMut(Node, &[Node])) {
        for segment in &self.segments {
            let end = segment.first + segment.rows;
            let (from, to) = (from.max(segment.first), to.min(end));
            if from < to {
                self.scan_segment(segment, from - segment.first, to - segment.first, each);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Bounds {
    node: Node,
    nodes: Node,
    degree_max: u32,
}

/// A number; its bits must be at hand.
#[inline(always)]
fn number(tables: &Tables, reader: &mut BitReader, context: usize) -> u32 {
    reader.need(NUMBER_BITS);
    let said = NUMBER[tables.symbol(context, reader) as usize];
    said.base.wrapping_add(reader.take(u32::from(said.bits)))
}

/// How many steps lead below and above.
#[inline(always)]
fn step_counts(tables: &Tables, reader: &mut BitReader, head: Head, degree_max: u32) -> (u32, u32) {
    let mut below = 0;
    if head.below() {
        below = number(tables, reader, below_context(head)).saturating_add(1).min(degree_max);
    }
    let mut above = 0;
    if head.above() {
        above = number(tables, reader, above_context(head, below)).saturating_add(1).min(degree_max);
    }
    (below, above)
}

/// Reads what follows the head and puts the row together, but for the node itself.
#[inline(always)]
fn body(
    tables: &Tables,
    reader: &mut BitReader,
    head: Head,
    bounds: Bounds,
    source: &[Node],
    extra: &mut Vec<Node>,
    row: &mut Vec<Node>,
) {
    if head.whole() {
        row.extend_from_slice(source);
    } else {
        copy(tables, reader, bounds.degree_max, source, row);
    }
    if !head.below() && !head.above() {
        return;
    }
    let (below, above) = step_counts(tables, reader, head, bounds.degree_max);
    if row.is_empty() {
        steps::<false>(tables, reader, head, below, bounds, row);
        row.reverse();
        steps::<true>(tables, reader, head, above, bounds, row);
    } else {
        extra.clear();
        steps::<false>(tables, reader, head, below, bounds, extra);
        extra.reverse();
        steps::<true>(tables, reader, head, above, bounds, extra);
        merge(row, extra);
    }
}

/// Copies blocks of the row that is referred to.
#[inline(always)]
fn copy(tables: &Tables, reader: &mut BitReader, degree_max: u32, source: &[Node], row: &mut Vec<Node>) {
    let mut rest = source;
    let mut before = 0;
    for n in 0..=degree_max as usize + 1 {
        let len = number(tables, reader, block_context(n, before));
        before = len;
        let is_last = len == 0 && n > 0;
        let (block, after) = rest.split_at(if is_last { rest.len() } else { rest.len().min(len as usize) });
        if n % 2 == 0 {
            row.extend_from_slice(block);
        }
        rest = after;
        if is_last {
            break;
        }
    }
}

/// Walks down or up from the node.
#[inline(always)]
fn steps<const UP: bool>(
    tables: &Tables,
    reader: &mut BitReader,
    head: Head,
    count: u32,
    bounds: Bounds,
    into: &mut Vec<Node>,
) {
    let (base, mut context) = step_contexts(head, UP, count);
    let mut at = bounds.node;
    for _ in 0..count {
        reader.need(NUMBER_BITS);
        let symbol = tables.symbol(base + context, reader) as usize;
        let said = NUMBER[symbol];
        let number = said.base.wrapping_add(reader.take(u32::from(said.bits)));
        context = usize::from(said.next);
        let room = if UP { bounds.nodes - 1 - at } else { at };
        if symbol < NUMBERS {
            if number >= room {
                break;
            }
            at = if UP { at + number + 1 } else { at - number - 1 };
            into.push(at);
        } else {
            let len = number.min(room).min(bounds.degree_max);
            if UP {
                into.extend(at + 1..=at + len);
                at += len;
            } else {
                into.extend((at - len..at).rev());
                at -= len;
            }
            if into.len() > 2 * bounds.degree_max as usize {
                break;
            }
        }
    }
}

/// Passes over what follows a head.
#[inline(always)]
fn skip(tables: &Tables, reader: &mut BitReader, head: Head, degree_max: u32) {
    if !head.whole() {
        let mut before = 0;
        for n in 0..=degree_max as usize + 1 {
            before = number(tables, reader, block_context(n, before));
            if before == 0 && n > 0 {
                break;
            }
        }
    }
    let (below, above) = step_counts(tables, reader, head, degree_max);
    for (up, count) in [(false, below), (true, above)] {
        let (base, mut context) = step_contexts(head, up, count);
        for _ in 0..count {
            reader.need(NUMBER_BITS);
            let said = NUMBER[tables.symbol(base + context, reader) as usize];
            reader.drop(u32::from(said.bits));
            context = usize::from(said.next);
        }
    }
}

/// Puts the nodes of `extra` in their places in `row`; both ascend.
fn merge(row: &mut Vec<Node>, extra: &[Node]) {
    let mut end = row.len();
    row.resize(end + extra.len(), 0);
    for (n, &node) in extra.iter().enumerate().rev() {
        let mut at = end;
        while at > 0 && row[at - 1] > node {
            at -= 1;
        }
        row.copy_within(at..end, at + n + 1);
        row[at + n] = node;
        end = at;
    }
}

struct Parsed {
    segments: Vec<Segment>,
    nodes: Node,
    window: u32,
    chain_max: usize,
    group: u32,
    stats: CodeStats,
}

/// Reads the end of the content and the directory, and checks that everything lies where it should.
fn parse(content: &[u8], file_bytes: u64) -> Result<Parsed, (usize, &'static str)> {
    let end_at = content.len().checked_sub(END_BYTES).ok_or((0, "the end is missing"))?;
    let word = |at: usize| u64::from_le_bytes(content[at..at + 8].try_into().expect("eight bytes"));
    let (nodes, arcs, count) = (word(end_at), word(end_at + 8), word(end_at + 16));
    let nodes = Node::try_from(nodes).map_err(|_| (end_at, "there are too many nodes"))?;
    let [window, chain_max, group, ..] = content[end_at + 24..end_at + 32] else { unreachable!("eight bytes") };
    if window > WINDOW_MAX || chain_max > CHAIN_MAX || !(1..=GROUP_MAX).contains(&group.into()) {
        return Err((end_at + 24, "window, chain or group are out of range"));
    }
    let directory_bytes = usize::try_from(count).ok().and_then(|n| n.checked_mul(ENTRY_BYTES));
    let directory_at =
        directory_bytes.and_then(|bytes| end_at.checked_sub(bytes)).ok_or((end_at, "the directory is too long"))?;
    let mut segments = Vec::with_capacity(count as usize);
    let (mut node, mut arcs_found, mut free) = (0u64, 0u64, 0u64);
    for at in (directory_at..end_at).step_by(ENTRY_BYTES) {
        let wrong = |what| (at, what);
        let low = |word: u64| word & 0xffff_ffff;
        let (first, rows) = (low(word(at)), word(at) >> 32);
        let begin = word(at + 16);
        let (tables, degree_max) = (low(word(at + 24)), word(at + 24) >> 32);
        let links = word(at + 32);
        arcs_found = arcs_found.saturating_add(word(at + 8));
        if first != node || rows == 0 || first + rows > u64::from(nodes) {
            return Err(wrong("segments do not follow each other"));
        }
        if degree_max > word(at + 8) || degree_max > u64::from(nodes) {
            return Err(wrong("a row is longer than its segment"));
        }
        node += rows;
        let links_bytes = links.div_ceil(8);
        if begin < free || begin.saturating_add(tables).saturating_add(links_bytes) > directory_at as u64 {
            return Err(wrong("a segment lies outside"));
        }
        let tables_end = (begin + tables) as usize;
        let offsets = Offsets::new(rows.div_ceil(u64::from(group)) as usize, links);
        let offsets_at = tables_end.next_multiple_of(8);
        let links_at = offsets_at + offsets.len;
        free = links_at as u64 + links_bytes;
        if free > directory_at as u64 {
            return Err(wrong("a segment lies outside"));
        }
        Tables::read(&content[begin as usize..tables_end]).map_err(wrong)?;
        segments.push(Segment {
            first: first as Node,
            rows: rows as u32,
            degree_max: degree_max as u32,
            tables_at: begin as usize,
            tables_end,
            offsets_at,
            offsets,
            links_at,
            tables: OnceLock::new(),
        });
    }
    if node != u64::from(nodes) || arcs_found != arcs {
        return Err((end_at, "nodes or arcs are missing"));
    }
    let mut stats = CodeStats {
        nodes,
        arcs,
        segments: count,
        bits_links: word(end_at + 32),
        bits_tables: word(end_at + 40),
        bits_offsets: word(end_at + 48),
        file_bytes,
        ..CodeStats::default()
    };
    stats.add(&std::array::from_fn(|n| word(end_at + 56 + 8 * n)));
    Ok(Parsed { segments, nodes, window: window.into(), chain_max: chain_max.into(), group: group.into(), stats })
}
