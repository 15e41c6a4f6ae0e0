//! Several levels become one: later visits replace earlier ones of the same page.
//!
//! All levels are sorted by key, so a node's new number grows with its old one, in every level. Rows stay sorted when their
//! nodes are renumbered, in both directions, and nothing has to be sorted again: a merge reads and writes everything
//! once, front to back. The new numbers lie in files that are read in place; what is kept in memory is a bit for
//! each node, and a few thousand rows.

use std::sync::Arc;

use rhumb_store::Result;
use rhumb_store::disk::{Disk, DiskFile};
use rhumb_store::map::Map;

use crate::GraphError;
use crate::algo::ranks::{self, Ranks};
use crate::code::Effort;
use crate::level::{DIR, Level, LevelWriter};
use crate::nodes::Bits;
use crate::rows::{Node, Rows};

/// Rows that are renumbered at a time.
const CHUNK_NODES: Node = 1 << 13;

/// A level and those of its pages that were visited again later.
#[derive(Clone)]
pub struct Part {
    /// The level.
    pub level: Arc<Level>,
    /// Pages whose links here are not in force any more.
    pub dead: Bits,
}

/// Writes the level `number` with all that is in force in `parts`, the oldest first.
pub fn merge(disk: &Arc<dyn Disk>, parts: &[Part], number: u32, effort: Effort) -> Result<Level> {
    disk.make_dir(DIR)?;
    let pages_max = parts.iter().map(|p| p.level.nodes.pages()).sum();
    let mut writer = LevelWriter::create(disk.clone(), number, true, pages_max, effort)?;
    let mut inputs = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        inputs.push(Input::new(disk, part, format!("{DIR}/{number:06}-{i}.tmp"))?);
    }
    let nodes = merge_nodes(parts, &mut inputs, &mut writer)?;
    for input in &mut inputs {
        input.seal(&**disk)?;
    }
    writer.begin_rows()?;
    merge_rows(&mut inputs, nodes, |level| &level.out, &mut |row| writer.row(row), false)?;
    writer.begin_transposed()?;
    merge_rows(&mut inputs, nodes, |level| &level.into, &mut |row| writer.row(row), true)?;
    carry_ranks(&**disk, &inputs, nodes, number)?;
    for input in &inputs {
        disk.remove(&input.name)?;
    }
    writer.finish()
}

/// Ranks stay what they were until they are computed again; nodes that have none get the lowest there is.
fn carry_ranks(disk: &dyn Disk, inputs: &[Input<'_>], nodes: Node, number: u32) -> Result<()> {
    for measure in ranks::MEASURES {
        let has = |input: &&Input<'_>| disk.exists(&ranks::file_name(input.level.number, measure));
        let heaviest = inputs.iter().filter(has).max_by_key(|input| input.level.weight());
        let Some(input) = heaviest else { continue };
        // One that does not read is not worth stopping for: it can be computed again.
        let Ok(old) = Ranks::open(disk, &ranks::file_name(input.level.number, measure)) else { continue };
        let lowest = old.iter().min_by(f32::total_cmp).unwrap_or(0.0);
        let mut values = vec![lowest; nodes as usize];
        for (node, value) in old.iter().enumerate() {
            if let Some(new) = values.get_mut(new_number(&input.numbers, node as Node) as usize) {
                *new = value;
            }
        }
        let name = ranks::file_name(number, measure);
        if let Err(GraphError::Store(e)) = ranks::write(disk, &name, measure, old.parameters(), &values) {
            return Err(e);
        }
    }
    Ok(())
}

/// A level that is being read.
struct Input<'a> {
    level: &'a Level,
    /// Pages whose links go into the new level.
    live: Bits,
    name: String,
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    /// The new number of each node.
    numbers: Map,
    /// The next node to be read.
    next: Node,
}

impl<'a> Input<'a> {
    fn new(disk: &Arc<dyn Disk>, part: &'a Part, name: String) -> Result<Input<'a>> {
        let file = disk.create(&name)?;
        let (live, numbers) = (Bits::default(), Map::from(Vec::new()));
        Ok(Input { level: &part.level, live, name, file, buffer: Vec::new(), numbers, next: 0 })
    }

    fn number(&mut self, new: Node) -> Result<()> {
        self.buffer.extend_from_slice(&new.to_le_bytes());
        if self.buffer.len() < 1 << 18 {
            return Ok(());
        }
        self.file.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn seal(&mut self, disk: &dyn Disk) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.buffer = Vec::new();
        self.numbers = disk.map(&self.name)?;
        Ok(())
    }
}

/// The new number of a node.
fn new_number(numbers: &[u8], node: Node) -> Node {
    let at = node as usize * 4;
    numbers.get(at..at + 4).map_or(0, |b| Node::from_le_bytes(b.try_into().expect("four bytes")))
}

/// Writes all nodes, numbers them, and says which pages of which level are in force.
fn merge_nodes(parts: &[Part], inputs: &mut [Input<'_>], writer: &mut LevelWriter) -> Result<Node> {
    let mut scans: Vec<_> = parts.iter().filter_map(|p| p.level.urls.as_ref()).map(|urls| urls.scan(0)).collect();
    assert_eq!(scans.len(), parts.len(), "only graphs with URLs are merged");
    let mut heads: Vec<Option<Vec<u8>>> = scans.iter_mut().map(|s| s.next().map(<[u8]>::to_vec)).collect();
    let mut at = vec![0 as Node; parts.len()];
    let mut total: Node = 0;
    let mut key = Vec::new();
    let mut among: Vec<usize> = Vec::with_capacity(parts.len());
    loop {
        // There are a dozen levels at the most, so looking at all heads beats a heap.
        among.clear();
        for (i, head) in heads.iter().enumerate() {
            let Some(head) = head else { continue };
            match among.first().map(|&a| head.as_slice().cmp(heads[a].as_deref().unwrap_or_default())) {
                Some(std::cmp::Ordering::Greater) => {}
                Some(std::cmp::Ordering::Equal) => among.push(i),
                _ => {
                    among.clear();
                    among.push(i);
                }
            }
        }
        let Some(&first) = among.first() else { return Ok(total) };
        key.clear();
        key.extend_from_slice(heads[first].as_deref().unwrap_or_default());
        let mut place = None;
        // The newest level comes last; its visit is the one that counts.
        for &i in among.iter().rev() {
            let node = at[i];
            if place.is_none() && !parts[i].dead.contains(node) {
                place = parts[i].level.nodes.place(node);
                if place.is_some() {
                    inputs[i].live.insert(node);
                }
            }
            inputs[i].number(total)?;
            at[i] += 1;
            match (scans[i].next(), &mut heads[i]) {
                (Some(next), Some(head)) => {
                    head.clear();
                    head.extend_from_slice(next);
                }
                (_, head) => *head = None,
            }
        }
        writer.node(&key, place)?;
        total += 1;
    }
}

/// Hands over all rows of the new level in order. `transposed` rows are of predecessors, who must be in force each; of the others
/// only those of pages in force count.
fn merge_rows(
    inputs: &mut [Input<'_>],
    nodes: Node,
    rows_of: fn(&Level) -> &crate::code::Coded,
    push: &mut dyn FnMut(&[Node]) -> Result<()>,
    transposed: bool,
) -> Result<()> {
    let mut arcs: Vec<Node> = Vec::new();
    // Of each row of a chunk, where its parts lie in `arcs`: (row, from, to), sorted by row within each input.
    let mut pieces: Vec<(Node, u32, u32)> = Vec::new();
    let mut row: Vec<Node> = Vec::new();
    for input in inputs.iter_mut() {
        input.next = 0;
    }
    let mut start = 0;
    while start < nodes {
        let end = nodes.min(start + CHUNK_NODES);
        arcs.clear();
        pieces.clear();
        for input in inputs.iter_mut() {
            let rows = rows_of(input.level);
            let from = input.next;
            let mut to = from;
            while to < rows.nodes() && new_number(&input.numbers, to) < end {
                to += 1;
            }
            input.next = to;
            let (numbers, live): (&[u8], &Bits) = (&input.numbers, &input.live);
            rows.scan(from, to, &mut |node, row| {
                let at = arcs.len() as u32;
                if transposed {
                    arcs.extend(row.iter().filter(|&&n| live.contains(n)).map(|&n| new_number(numbers, n)));
                } else if live.contains(node) {
                    arcs.extend(row.iter().map(|&n| new_number(numbers, n)));
                }
                if arcs.len() as u32 > at {
                    pieces.push((new_number(numbers, node), at, arcs.len() as u32));
                }
            });
        }
        if inputs.len() > 1 {
            pieces.sort_unstable();
        }
        let mut rest = pieces.as_slice();
        for node in start..end {
            let own = rest.iter().take_while(|(n, ..)| *n == node).count();
            let (now, later) = rest.split_at(own);
            rest = later;
            match now {
                [] => push(&[])?,
                [(_, from, to)] => push(&arcs[*from as usize..*to as usize])?,
                several => {
                    row.clear();
                    several.iter().for_each(|(_, f, t)| row.extend_from_slice(&arcs[*f as usize..*t as usize]));
                    row.sort_unstable();
                    row.dedup();
                    push(&row)?;
                }
            }
        }
        start = end;
    }
    Ok(())
}
