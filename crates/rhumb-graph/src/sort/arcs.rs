//! Sorts arcs, and leaves each once.
//!
//! In memory an arc is one number, sorted digit by digit. In a run it is a number: twice what the successor is more than the one
//! before and one, or, for another node, twice what that is more and one, with the successor after it, less the node, folded.

use std::sync::Arc;

use rhumb_store::disk::Disk;

use super::runs::{NUMBER_BYTES_MAX, NumberTournament, RUNS_MAX, Run, RunReader, put_number};
use crate::bv::{fold, unfold};
use crate::{Node, Result};

/// Arcs taken at least before a run is written, however little memory was given.
const ARCS_MIN: usize = 4096;
/// In memory an arc takes 8 bytes, and 8 while it is sorted.
const ARC_BYTES: usize = 16;

/// Takes arcs in any order.
pub struct ArcSorter {
    disk: Arc<dyn Disk>,
    prefix: String,
    memory_bytes: usize,
    arcs_max: usize,
    arcs: Vec<u64>,
    scratch: Vec<u64>,
    runs: Vec<Run>,
    files: u64,
}

impl ArcSorter {
    /// A sorter that has its runs in files of `disk` whose names begin with `prefix`.
    pub fn new(disk: Arc<dyn Disk>, prefix: &str, memory_bytes: usize) -> ArcSorter {
        ArcSorter {
            disk,
            prefix: prefix.to_string(),
            memory_bytes,
            arcs_max: (memory_bytes / ARC_BYTES).max(ARCS_MIN),
            arcs: Vec::new(),
            scratch: Vec::new(),
            runs: Vec::new(),
            files: 0,
        }
    }

    /// Takes an arc. No node is `u32::MAX`, because so many there are at most.
    #[inline]
    pub fn push(&mut self, from: Node, to: Node) -> Result<()> {
        debug_assert!(from < Node::MAX && to < Node::MAX);
        if self.arcs.len() == self.arcs.capacity() {
            self.make_room()?;
        }
        self.arcs.push(u64::from(from) << 32 | u64::from(to));
        Ok(())
    }

    #[cold]
    fn make_room(&mut self) -> Result<()> {
        if self.arcs.len() >= self.arcs_max {
            return self.spill();
        }
        let len = self.arcs.len();
        self.arcs.reserve_exact((2 * len).clamp(ARCS_MIN, self.arcs_max) - len);
        Ok(())
    }

    /// Sorts everything.
    pub fn finish(mut self) -> Result<SortedArcs> {
        if self.runs.is_empty() {
            self.sort();
            let arcs = std::mem::take(&mut self.arcs);
            return Ok(SortedArcs { last: None, from: From::Memory(arcs.into_iter()) });
        }
        self.spill()?;
        self.arcs = Vec::new();
        self.scratch = Vec::new();
        let merge = Merge::new(std::mem::take(&mut self.runs), self.memory_bytes / 4)?;
        Ok(SortedArcs { last: None, from: From::Runs(Box::new(merge)) })
    }

    fn sort(&mut self) {
        sort_by_digits(&mut self.arcs, &mut self.scratch);
    }

    fn spill(&mut self) -> Result<()> {
        if self.runs.len() == RUNS_MAX {
            // The arcs in memory stay; the few buffers come on top.
            let merge = Merge::new(std::mem::take(&mut self.runs), 0)?;
            let mut all = SortedArcs { last: None, from: From::Runs(Box::new(merge)) };
            let mut writer = ArcWriter::new(self.next_run()?);
            while let Some(arc) = all.next_packed()? {
                writer.push(arc)?;
            }
            self.runs.push(writer.finish()?);
        }
        self.sort();
        let mut writer = ArcWriter::new(self.next_run()?);
        let mut last = u64::MAX;
        for &arc in &self.arcs {
            if arc != last {
                writer.push(arc)?;
                last = arc;
            }
        }
        self.runs.push(writer.finish()?);
        self.arcs.clear();
        Ok(())
    }

    fn next_run(&mut self) -> Result<Run> {
        self.files += 1;
        Run::create(&self.disk, format!("{}{:05}", self.prefix, self.files))
    }
}

/// Arcs in order, each once.
pub struct SortedArcs {
    last: Option<u64>,
    from: From,
}

enum From {
    Memory(std::vec::IntoIter<u64>),
    Runs(Box<Merge>),
}

impl SortedArcs {
    #[inline]
    fn next_packed(&mut self) -> Result<Option<u64>> {
        loop {
            let next = match &mut self.from {
                From::Memory(arcs) => arcs.next(),
                From::Runs(merge) => merge.next()?,
            };
            if next.is_none() || next != self.last {
                self.last = next;
                return Ok(next);
            }
        }
    }

    /// The next arc.
    #[inline]
    pub fn next_arc(&mut self) -> Result<Option<(Node, Node)>> {
        Ok(self.next_packed()?.map(|arc| ((arc >> 32) as Node, arc as Node)))
    }

    /// Gives the rows of all nodes below `nodes` to `row`, empty ones included.
    pub fn for_each_row(mut self, nodes: Node, mut row: impl FnMut(Node, &[Node]) -> Result<()>) -> Result<()> {
        let mut successors = Vec::new();
        let mut next = self.next_arc()?;
        for node in 0..nodes {
            successors.clear();
            while let Some((_, to)) = next.filter(|&(from, _)| from == node) {
                successors.push(to);
                next = self.next_arc()?;
            }
            row(node, &successors)?;
        }
        Ok(())
    }
}

impl Iterator for SortedArcs {
    type Item = Result<(Node, Node)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_arc().transpose()
    }
}

struct ArcWriter {
    run: Run,
    from: i64,
    to: i64,
}

impl ArcWriter {
    fn new(run: Run) -> ArcWriter {
        ArcWriter { run, from: -1, to: 0 }
    }

    #[inline]
    fn push(&mut self, arc: u64) -> Result<()> {
        let (from, to) = ((arc >> 32) as i64, (arc & 0xFFFF_FFFF) as i64);
        let buffer = self.run.buffer();
        if from == self.from {
            put_number(((to - self.to - 1) << 1) as u64, buffer);
        } else {
            put_number(((from - self.from - 1) << 1 | 1) as u64, buffer);
            put_number(fold(to - from), buffer);
        }
        (self.from, self.to) = (from, to);
        self.run.flush_if_full()
    }

    fn finish(mut self) -> Result<Run> {
        self.run.finish()?;
        Ok(self.run)
    }
}

struct Source {
    reader: RunReader,
    /// The arc before; of the node before the first at the start.
    from: i64,
    to: i64,
}

impl Source {
    /// The next arc; `u64::MAX`, which is none, at the end.
    #[inline]
    fn next(&mut self) -> Result<u64> {
        if !self.reader.want(2 * NUMBER_BYTES_MAX)? {
            return Ok(u64::MAX);
        }
        let number = self.reader.number()?;
        // Numbers that are too large turn negative or are found to be no nodes below.
        let gap = 1 + (number >> 1) as i64;
        if number & 1 == 0 {
            self.to = self.to.wrapping_add(gap);
        } else {
            self.from = self.from.wrapping_add(gap);
            self.to = self.from.wrapping_add(unfold(self.reader.number()?));
        }
        let nodes = 0..i64::from(Node::MAX);
        if !nodes.contains(&self.from) || !nodes.contains(&self.to) {
            return Err(self.reader.damaged("this is no arc").into());
        }
        Ok((self.from as u64) << 32 | self.to as u64)
    }
}

struct Merge {
    sources: Vec<Source>,
    tournament: NumberTournament,
}

impl Merge {
    fn new(runs: Vec<Run>, memory_bytes: usize) -> Result<Merge> {
        let count = runs.len();
        let readers = runs.into_iter().map(|run| RunReader::new(run, count, memory_bytes));
        let mut sources: Vec<Source> = readers.map(|reader| Source { reader, from: -1, to: 0 }).collect();
        let heads = sources.iter_mut().map(Source::next).collect::<Result<Vec<u64>>>()?;
        Ok(Merge { sources, tournament: NumberTournament::new(&heads) })
    }

    #[inline]
    fn next(&mut self) -> Result<Option<u64>> {
        let (arc, source) = self.tournament.winner();
        if arc == u64::MAX {
            return Ok(None);
        }
        self.tournament.replace(self.sources[source].next()?);
        Ok(Some(arc))
    }
}

const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts numbers by the digits in which they differ, the lowest first. `scratch` has as many numbers as `numbers` afterwards.
fn sort_by_digits(numbers: &mut Vec<u64>, scratch: &mut Vec<u64>) {
    if numbers.len() < 1024 {
        return numbers.sort_unstable();
    }
    let mut differ = 0;
    let mut sorted = true;
    let mut last = numbers[0];
    for &number in numbers.iter() {
        differ |= number ^ last;
        sorted &= last <= number;
        last = number;
    }
    if sorted {
        return;
    }
    scratch.clear();
    scratch.resize(numbers.len(), 0);
    let mut shift = 0;
    while differ >> shift != 0 {
        shift += (differ >> shift).trailing_zeros();
        let digit = |number: u64| (number >> shift) as usize & (DIGITS - 1);
        let mut ends = vec![0usize; DIGITS];
        for &number in numbers.iter() {
            ends[digit(number)] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        for &number in numbers.iter() {
            let end = &mut ends[digit(number)];
            scratch[*end] = number;
            *end += 1;
        }
        std::mem::swap(numbers, scratch);
        shift += DIGIT_BITS;
        if shift >= u64::BITS {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use rhumb_store::disk::RealDisk;

    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn arcs_come_out_sorted_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path());
        disk.make_dir("graph").unwrap();
        for (count, nodes, memory_bytes) in [
            (0, 5, 0),
            (1, 5, 0),
            (4096, 50, 0),
            (4097, 50, 0),
            (60_000, 3000, 0),
            (60_000, u32::MAX, 0),
            (60_000, 3000, 1 << 20),
        ] {
            let mut state = 88_172_645_463_325_252;
            let mut sorter = ArcSorter::new(disk.clone(), "graph/tmp-", memory_bytes);
            let mut expected = Vec::new();
            for _ in 0..count {
                let from = (random(&mut state) % u64::from(nodes)) as Node;
                let to = if from.is_multiple_of(3) { from } else { (random(&mut state) % u64::from(nodes)) as Node };
                sorter.push(from, to).unwrap();
                expected.push((from, to));
            }
            expected.sort_unstable();
            expected.dedup();
            let found: Vec<(Node, Node)> = sorter.finish().unwrap().map(|arc| arc.unwrap()).collect();
            assert!(found == expected, "{count} arcs of {nodes} nodes in {memory_bytes} bytes");
            assert_eq!(disk.list("graph").unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn more_runs_than_are_merged_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path());
        let mut sorter = ArcSorter::new(disk.clone(), "tmp-", 0);
        let count = (ARCS_MIN * (RUNS_MAX + 3)) as u64;
        for n in 0..count {
            let n = n * 7_368_787 % count;
            sorter.push((n >> 8) as Node, n as Node).unwrap();
        }
        let mut rows = sorter.finish().unwrap();
        for n in 0..count {
            assert_eq!(rows.next_arc().unwrap(), Some(((n >> 8) as Node, n as Node)));
        }
        assert_eq!(rows.next_arc().unwrap(), None);
    }

    #[test]
    fn files_go_when_nobody_wants_the_result() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path());
        let fill = || {
            let mut sorter = ArcSorter::new(disk.clone(), "tmp-", 0);
            for n in 0..20_000 {
                sorter.push(n, n / 2).unwrap();
            }
            assert!(!disk.list(".").unwrap().is_empty());
            sorter
        };
        drop(fill());
        assert_eq!(disk.list(".").unwrap(), Vec::<String>::new());
        let mut sorted = fill().finish().unwrap();
        assert_eq!(sorted.next_arc().unwrap(), Some((0, 0)));
        drop(sorted);
        assert_eq!(disk.list(".").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn rows_of_all_nodes() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = ArcSorter::new(RealDisk::new(dir.path()), "tmp-", 0);
        for (from, to) in [(3, 1), (1, 4), (1, 0), (3, 1)] {
            sorter.push(from, to).unwrap();
        }
        let mut rows = Vec::new();
        let each = |_, row: &[Node]| {
            rows.push(row.to_vec());
            Ok(())
        };
        sorter.finish().unwrap().for_each_row(5, each).unwrap();
        assert_eq!(rows, [vec![], vec![0, 4], vec![], vec![1], vec![]]);
    }
}
