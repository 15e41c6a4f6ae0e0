//! Ranks as files keyed by node: one number for every node of a graph, read in place.
//!
//! The file is sealed ([`rhumb_store::sealed`]), so it is whole or refused; `docs/formats/graph.md` says what its bytes are. Values are
//! single floats: ranks are compared and weighed, and seven digits are more than any of the measures is exact to.
//!
//! **Cost.** 4 bytes a node, and 4 KiB of quantiles for [`Ranks::percentile`]. Writing sorts a copy of the values: 4 bytes a
//! node more. [`Ranks::get`] is one read, [`Ranks::percentile`] a search among a thousand, [`Ranks::top`] a pass over all.

use rhumb_store::disk::Disk;

use crate::{GraphError, Node, Result};
use rhumb_store::sealed::{Kind, Sealed, SealedWriter};

/// What the files begin with.
pub const KIND: Kind = Kind { magic: *b"rhumbrnk", version: 1 };
/// Values in the table of quantiles at most: a percentile is exact to a thousandth.
const QUANTILES_MAX: usize = 1025;
/// Bytes of a name or of parameters at most; they are a line, not a text.
const TEXT_BYTES_MAX: usize = 4096;
const HEAD_BYTES: usize = 16;

/// What pages are ranked by; the first is what others go by.
pub const MEASURES: [&str; 2] = ["pagerank", "harmonic"];

/// The name of the file with a level's ranks.
pub fn file_name(level: u32, measure: &str) -> String {
    crate::level::file_name(level, &format!("{measure}.rank"))
}

/// Writes the file `file`: the values of `measure` ("pagerank", "harmonic"), one for each node, computed as `parameters` says
/// ("damping=0.85 …"). The bytes of the file.
pub fn write(disk: &dyn Disk, file: &str, measure: &str, parameters: &str, values: &[f32]) -> Result<u64> {
    if measure.len().max(parameters.len()) > TEXT_BYTES_MAX {
        return Err(GraphError::input(format!("a measure's name or parameters exceed {TEXT_BYTES_MAX} bytes")));
    }
    let Ok(nodes) = Node::try_from(values.len()) else {
        return Err(GraphError::input(format!("ranks of {} nodes, which is more than a graph has", values.len())));
    };
    if let Some(node) = values.iter().position(|value| !value.is_finite()) {
        return Err(GraphError::input(format!("the {measure} of node {node} is {}", values[node])));
    }
    let quantiles = quantiles(values);
    let mut writer = SealedWriter::create(disk, file, KIND)?;
    for number in [nodes, measure.len() as u32, parameters.len() as u32, quantiles.len() as u32] {
        writer.write(&number.to_le_bytes())?;
    }
    writer.write(measure.as_bytes())?;
    writer.write(parameters.as_bytes())?;
    writer.align(4)?;
    for value in quantiles.iter().chain(values) {
        writer.write(&value.to_le_bytes())?;
    }
    Ok(writer.finish()?)
}

/// Values as they are kept.
pub fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// Evenly spaced values of all, sorted; lowest and highest included.
fn quantiles(values: &[f32]) -> Vec<f32> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let count = sorted.len().min(QUANTILES_MAX);
    (0..count).map(|n| sorted[n * (sorted.len() - 1) / (count - 1).max(1)]).collect()
}

/// A file of ranks.
pub struct Ranks {
    file: Sealed,
    nodes: Node,
    /// Where measure, parameters, quantiles and values end.
    ends: [usize; 4],
}

impl Ranks {
    /// Opens the file `file` if it is whole.
    pub fn open(disk: &dyn Disk, file: &str) -> Result<Ranks> {
        let file = Sealed::open(disk, file, KIND)?;
        if file.len() < HEAD_BYTES {
            return Err(file.damaged(0, "there is no head").into());
        }
        let [nodes, measure, parameters, quantiles] =
            [0, 4, 8, 12].map(|at| u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]));
        let measure_end = HEAD_BYTES + measure as usize;
        let parameters_end = measure_end + parameters as usize;
        let quantiles_end = parameters_end.next_multiple_of(4) + quantiles as usize * 4;
        let ends = [measure_end, parameters_end, quantiles_end, quantiles_end + nodes as usize * 4];
        if ends[3] != file.len() || quantiles as usize != QUANTILES_MAX.min(nodes as usize) {
            return Err(file.damaged(0, "the head does not match the length").into());
        }
        for text in [HEAD_BYTES..ends[0], ends[0]..ends[1]] {
            if std::str::from_utf8(&file[text.clone()]).is_err() {
                return Err(file.damaged(text.start, "a text is not UTF-8").into());
            }
        }
        Ok(Ranks { file, nodes, ends })
    }

    /// How many nodes the graph has.
    pub fn nodes(&self) -> Node {
        self.nodes
    }

    /// What was measured.
    pub fn measure(&self) -> &str {
        self.text(HEAD_BYTES, self.ends[0])
    }

    /// How it was computed.
    pub fn parameters(&self) -> &str {
        self.text(self.ends[0], self.ends[1])
    }

    fn text(&self, from: usize, to: usize) -> &str {
        // It was checked when the file was opened.
        std::str::from_utf8(&self.file[from..to]).unwrap_or_default()
    }

    /// The value of a node; nothing for one that does not exist.
    pub fn get(&self, node: Node) -> Option<f32> {
        self.values().get(node as usize).map(|&bytes| f32::from_le_bytes(bytes))
    }

    /// All values in the order of nodes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f32> + '_ {
        self.values().iter().map(|&bytes| f32::from_le_bytes(bytes))
    }

    /// The `k` highest values, highest first, ties by node.
    pub fn top(&self, k: usize) -> Vec<(Node, f32)> {
        let values = self.iter().enumerate().map(|(node, value)| (node as Node, f64::from(value)));
        super::top(values, k).into_iter().map(|(node, value)| (node, value as f32)).collect()
    }

    /// The part of all nodes with a lower value, from 0 to 1, to a thousandth; nothing for a node that does not exist.
    pub fn percentile(&self, node: Node) -> Option<f64> {
        let value = self.get(node)?;
        let table = self.file[self.ends[1].next_multiple_of(4)..self.ends[2]].as_chunks::<4>().0;
        let at = |n: usize| f32::from_le_bytes(table[n]);
        let above = table.partition_point(|&bytes| f32::from_le_bytes(bytes) < value);
        if above == 0 || above >= table.len() {
            return Some(if above == 0 { 0.0 } else { 1.0 });
        }
        // Within a step of the table values are taken to be evenly spread.
        let (low, high) = (f64::from(at(above - 1)), f64::from(at(above)));
        Some(((above - 1) as f64 + (f64::from(value) - low) / (high - low)) / (table.len() - 1) as f64)
    }

    fn values(&self) -> &[[u8; 4]] {
        self.file[self.ends[2]..self.ends[3]].as_chunks::<4>().0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rhumb_store::disk::RealDisk;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        let check = |measure: &str, parameters: &str, values: &[f32], top: &[Node]| {
            let bytes = write(&*disk, "a.rank", measure, parameters, values).expect("written");
            assert_eq!(bytes, disk.read("a.rank").expect("read").len() as u64);
            let ranks = Ranks::open(&*disk, "a.rank").expect("opened");
            assert_eq!((ranks.measure(), ranks.parameters()), (measure, parameters));
            assert_eq!((ranks.nodes() as usize, ranks.get(values.len() as Node)), (values.len(), None));
            assert_eq!(ranks.percentile(values.len() as Node), None);
            assert_eq!(ranks.iter().collect::<Vec<f32>>(), values);
            assert_eq!(ranks.top(2).into_iter().map(|(node, _)| node).collect::<Vec<_>>(), top);
        };
        check("pagerank", "damping=0.85", &[0.25, 0.5, 0.25], &[1, 0]);
        check("", "", &[], &[]);
        check("größe", "é", &[-1.0], &[0]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        let error = write(&*disk, "a", "x", "", &[0.0, f32::NAN]).expect_err("refused");
        assert_eq!(error.to_string(), "the x of node 1 is NaN");
        assert!(write(&*disk, "a", &"x".repeat(5000), "", &[]).is_err());
        // Sealed, but not what the head says.
        let check = |content: &[u8]| {
            let mut writer = SealedWriter::create(&*disk, "b", KIND).expect("created");
            writer.write(content).expect("written");
            writer.finish().expect("finished");
            assert!(Ranks::open(&*disk, "b").is_err(), "{content:?}");
        };
        check(b"");
        check(&[255; 16]);
        check(&[0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        check(&[0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]);
        check(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn percentiles_are_exact_to_a_thousandth(
            mut values in proptest::collection::vec(0.0..1.0f32, 1..3000), steps in 1..2000u32
        ) {
            let dir = tempfile::tempdir().expect("a directory");
            let disk = RealDisk::new(dir.path());
            // Many equal values, as ranks have them.
            values.iter_mut().for_each(|value| *value = (*value * steps as f32).floor());
            write(&*disk, "a", "m", "", &values).expect("written");
            let ranks = Ranks::open(&*disk, "a").expect("opened");
            let step = 1.0 / values.len().min(QUANTILES_MAX).saturating_sub(1).max(1) as f64;
            for node in (0..values.len()).step_by(97) {
                let below = values.iter().filter(|&&value| value < values[node]).count() as f64;
                let found = ranks.percentile(node as Node).expect("a percentile");
                let exact = below / (values.len() - 1).max(1) as f64;
                prop_assert!((found - exact).abs() <= step + 1e-6, "{found}, {exact}");
            }
        }
    }
}
