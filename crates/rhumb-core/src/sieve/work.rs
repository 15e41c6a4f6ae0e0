//! Long work of the sieve: decided there, carried out here, on whatever thread the caller likes.

use std::sync::Arc;

use rhumb_store::Result;
use rhumb_store::disk::Disk;
use rhumb_store::runs::{self, Level, RunWriter};
use rhumb_store::spool::Spool;

use super::Filter;
use super::layer::{FingerprintSet, Layer};
use crate::sketch::BlockedBloom;

/// A piece of work that the sieve has to do and should not wait for.
pub struct SieveWork {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) task: Task,
    pub(super) retired: Option<Filter>,
}

/// Work done, for [`super::Sieve::finish_work`].
pub struct SieveDone(pub(super) Done);

/// Work of one lane is done one after the other; the two lanes know nothing of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Looking up what waits, and writing new keys as a run: what the crawl waits for.
    Front,
    /// Merging runs and making filters: what keeps it fast.
    Back,
}

pub(super) enum Task {
    Check {
        spool: Arc<Spool>,
        levels: Vec<Level>,
        scratch: Scratch,
    },
    Write {
        layer: Arc<Layer>,
        scratch: Scratch,
        added: String,
        deleted: Option<String>,
    },
    Merge {
        from: usize,
        levels: Vec<Level>,
        added: String,
        deleted: Option<String>,
    },
    Filter {
        levels: Vec<Level>,
        layer: Option<Arc<Layer>>,
        keys: Vec<u64>,
        bytes: usize,
        capacity: u64,
        bytes_max: usize,
    },
}

/// Memory for keys of a batch or of a layer, and marks beside them.
#[derive(Default)]
pub(super) struct Scratch {
    keys: Vec<u64>,
    found: Vec<bool>,
}

pub(super) enum Done {
    /// The places of URLs that no run knows.
    Checked(Vec<u32>, Scratch),
    Written(Level, Scratch),
    /// The levels from here on, so many of them, are one.
    Merged(usize, usize, Level),
    Filter(Filter),
}

impl SieveWork {
    /// Which other work it must not overtake.
    pub fn lane(&self) -> Lane {
        match self.task {
            Task::Check { .. } | Task::Write { .. } => Lane::Front,
            Task::Merge { .. } | Task::Filter { .. } => Lane::Back,
        }
    }

    /// Does it.
    pub fn run(self) -> Result<SieveDone> {
        let disk = &*self.disk;
        drop(self.retired);
        Ok(SieveDone(match self.task {
            Task::Check { spool, levels, mut scratch } => {
                spool.sorted_keys(&mut scratch.keys)?;
                keep_unknown(&mut scratch, &levels)?;
                Done::Checked(spool.first_places(&scratch.keys)?, scratch)
            }
            Task::Write { layer, mut scratch, added, deleted } => {
                write(disk, &added, &layer.added, &mut scratch.keys)?;
                if let Some(deleted) = &deleted {
                    write(disk, deleted, &layer.deleted, &mut scratch.keys)?;
                }
                Done::Written(Level::open(disk, &added, deleted.as_deref())?, scratch)
            }
            Task::Merge { from, levels, added, deleted } => {
                Done::Merged(from, levels.len(), runs::merge(disk, &levels, &added, deleted.as_deref())?)
            }
            Task::Filter { levels, layer, keys, bytes, capacity, bytes_max } => {
                let mut filter = BlockedBloom::new(bytes, capacity);
                // Keys ascend, and so do the lines they fall into: this walks through memory and never waits for it.
                for level in &levels {
                    let mut scan = level.added.scan();
                    loop {
                        let some = scan.rest()?;
                        let n = some.len();
                        if n == 0 {
                            break;
                        }
                        some.iter().for_each(|&k| filter.add(k));
                        scan.skip(n);
                    }
                }
                layer.iter().flat_map(|l| &l.added).for_each(|&k| filter.add(k));
                keys.iter().for_each(|&k| filter.add(k));
                Done::Filter(Filter::new(filter, bytes_max))
            }
        }))
    }
}

fn write(disk: &dyn Disk, name: &str, set: &FingerprintSet, keys: &mut Vec<u64>) -> Result<()> {
    let mut writer = RunWriter::create(disk, name)?;
    keys.clear();
    keys.extend(set);
    keys.sort_unstable();
    keys.iter().try_for_each(|&k| writer.push(k))?;
    writer.finish()?;
    Ok(())
}

/// Leaves of the ascending keys those that are not in the set that the levels, oldest first, describe.
fn keep_unknown(scratch: &mut Scratch, levels: &[Level]) -> Result<()> {
    let Scratch { keys, found } = scratch;
    if levels.iter().all(|l| l.deleted.is_none()) {
        // Whoever knows a key may say so. The largest run knows most and leaves the fewest for the others.
        let mut levels: Vec<&Level> = levels.iter().collect();
        levels.sort_by_key(|l| std::cmp::Reverse(l.added.len()));
        for level in levels {
            mark(&level.added, keys, found)?;
            keep_unmarked(keys, found);
        }
        return Ok(());
    }
    let mut deleted = Vec::new();
    for level in levels.iter().rev() {
        mark(&level.added, keys, found)?;
        keep_unmarked(keys, found);
        if let Some(run) = &level.deleted {
            mark(run, keys, found)?;
            deleted.extend(keys.iter().zip(&*found).filter(|(_, found)| **found).map(|(k, _)| *k));
            keep_unmarked(keys, found);
        }
    }
    keys.append(&mut deleted);
    keys.sort_unstable();
    Ok(())
}

fn mark(run: &runs::Run, keys: &[u64], found: &mut Vec<bool>) -> Result<()> {
    found.clear();
    found.resize(keys.len(), false);
    run.find_sorted(keys, |i| found[i] = true)
}

fn keep_unmarked(keys: &mut Vec<u64>, found: &[bool]) {
    let mut kept = 0;
    for i in 0..keys.len() {
        keys[kept] = keys[i];
        kept += usize::from(!found[i]);
    }
    keys.truncate(kept);
}
