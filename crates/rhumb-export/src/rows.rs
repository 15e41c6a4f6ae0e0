//! Carries the plan out: log and archive are read in their own order, rows are made by several threads, and written in that order.
//!
//! Work is done in batches of a bounded number of pages and bytes. After a row, if nothing waits in the format's own
//! buffers and some time has passed, the place commits. What is written is a function of plan, log and archive alone, so an export
//! that was interrupted ends with the same bytes as one that was not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rhumb_core::record::Record;
use rhumb_core::visit::{Purpose, VisitRecord};
use rhumb_store::disk::Disk;
use rhumb_store::log::Position;

use crate::body::Bodies;
use crate::error::Result;
use crate::jsonl;
use crate::markdown;
use crate::options::{Format, Options};
use crate::parquet::{MAGIC, ParquetWriter};
use crate::place::{Output, Place, State};
use crate::plan::{Item, Plan, Scan, decode, ended_early};
use crate::progress::{Progress, Stage};
use crate::row::{Maker, Row};
use crate::wet;

/// Pages of a batch, and about how many bytes of bodies and records.
const BATCH_PAGES: usize = 256;
const BATCH_BYTES: usize = 8 << 20;
/// What a page counts for beside its record.
const PAGE_BYTES: usize = 32 << 10;

/// A visit to be made a row of, still as the log has it.
struct Task {
    item: Item,
    kind: u8,
    payload: Vec<u8>,
    at: Position,
    after: Mark,
}

/// Where reading goes on.
#[derive(Clone, Copy)]
struct Mark {
    plan_offset: u64,
    log_at: Position,
    log_number: u64,
}

/// A row in the form that goes into the output.
pub(crate) enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file of its own, by its name below the output, and a line for the index.
    File { name: String, text: Vec<u8>, line: Vec<u8> },
    /// A row for the table.
    Row(Box<Row>),
}

impl Piece {
    fn file_bytes(&self) -> u64 {
        if let Piece::File { text, .. } = self { text.len() as u64 } else { 0 }
    }
}

/// What became of a task.
struct Made {
    piece: Option<Piece>,
    body_missing: bool,
}

/// Writes all rows of the plan.
pub(crate) fn run(
    crawl: &Path,
    disk: &Arc<dyn Disk>,
    place: &mut Place,
    options: &Options,
    progress: &Progress,
) -> Result<Output> {
    let bodies = Bodies::new(crawl, disk.clone());
    let mut workers: Vec<Worker<'_>> = (0..options.threads.max(1)).map(|_| Worker::new(options, &bodies)).collect();
    let mut out = place.output()?;
    let mut table =
        (options.format == Format::Parquet).then(|| ParquetWriter::new(&place.state.format, options.row_group_bytes));
    if place.state.data_bytes == 0 {
        match options.format {
            Format::Wet => out.write(&wet::begin(&place.state, options)?)?,
            Format::Parquet => out.write(MAGIC)?,
            _ => {}
        }
    }
    let mut reader = Reader::open(disk, place)?;
    progress.begin(Stage::Pages, place.state.items);
    progress.add(place.state.done);
    // The place's own state is what is committed; this one runs ahead of it.
    let mut state = place.state.clone();
    let mut committed = Instant::now();
    loop {
        let tasks = reader.batch()?;
        if tasks.is_empty() {
            break;
        }
        for (task, made) in tasks.iter().zip(make_all(&tasks, &mut workers)?) {
            state.done += 1;
            state.missing += u64::from(made.body_missing);
            let group_ended = match made.piece {
                Some(piece) => {
                    state.rows += 1;
                    state.file_bytes += piece.file_bytes();
                    write(piece, place, &mut out, table.as_mut())?
                }
                None => false,
            };
            task.after.note(&mut state);
            let due = if table.is_some() { group_ended } else { committed.elapsed() >= options.commit_every };
            if due {
                commit(&state, table.as_ref(), place, &mut out)?;
                committed = Instant::now();
            }
        }
        progress.add(tasks.len() as u64);
        progress.wrote(out.position);
        if progress.is_stopped() && table.is_none() {
            commit(&state, None, place, &mut out)?;
        }
        progress.go_on()?;
    }
    // What is written from here on has no place to go on from, and needs none: it is the end of the last group.
    if let Some(table) = &mut table {
        table.finish(&mut out, &state, options)?;
    }
    place.state = state;
    progress.wrote(out.position);
    Ok(out)
}

fn commit(state: &State, table: Option<&ParquetWriter>, place: &mut Place, out: &mut Output) -> Result<()> {
    place.state = state.clone();
    if let Some(table) = table {
        place.state.format = table.save();
    }
    place.commit(out)
}

/// Writes a piece; true if it was the last of a group of a table, so that nothing waits in memory.
fn write(piece: Piece, place: &Place, out: &mut Output, table: Option<&mut ParquetWriter>) -> Result<bool> {
    match piece {
        Piece::Bytes(bytes) => out.write(&bytes)?,
        Piece::File { name, text, line } => {
            markdown::write(&place.dir.join("data"), &name, &text)?;
            out.write(&line)?;
        }
        Piece::Row(row) => match table {
            Some(table) => return table.push(&row, out),
            None => unreachable!("only tables are given rows"),
        },
    }
    Ok(false)
}

impl Mark {
    fn note(self, state: &mut State) {
        state.plan_offset = self.plan_offset;
        state.log_at = (self.log_at.segment, self.log_at.offset);
        state.log_number = self.log_number;
    }
}

/// Reads what the plan names from the log.
struct Reader {
    plan: Plan,
    scan: Scan,
}

impl Reader {
    fn open(disk: &Arc<dyn Disk>, place: &Place) -> Result<Reader> {
        let state = &place.state;
        let scan = Scan::open(disk, state.position(), state.log_number)?;
        Ok(Reader { plan: Plan::open(&place.dir, state.plan_offset)?, scan })
    }

    /// The next visits; none at the end.
    fn batch(&mut self) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        let mut bytes = 0;
        while tasks.len() < BATCH_PAGES && bytes < BATCH_BYTES {
            let Some(item) = self.plan.next()? else { break };
            let (kind, payload, at) = loop {
                let (at, number) = (self.scan.position(), self.scan.number);
                let Some((kind, payload)) = self.scan.next()? else {
                    return Err(ended_early(at));
                };
                if number == item.number {
                    break (kind, payload, at);
                }
            };
            let after =
                Mark { plan_offset: self.plan.offset, log_at: self.scan.position(), log_number: self.scan.number };
            // A body is about as long as its record says; what is compressed well is read by few threads at a time.
            bytes += payload.len() + PAGE_BYTES;
            tasks.push(Task { item, kind, payload, at, after });
        }
        Ok(tasks)
    }
}

/// One thread's tools.
struct Worker<'a> {
    options: &'a Options,
    maker: Maker<'a>,
    wet: wet::Encoder,
}

impl<'a> Worker<'a> {
    fn new(options: &'a Options, bodies: &'a Bodies) -> Worker<'a> {
        Worker { options, maker: Maker::new(options, bodies), wet: wet::Encoder::default() }
    }

    fn make(&mut self, task: &Task) -> Result<Made> {
        let visit = match decode(task.kind, &task.payload, task.at)? {
            Record::Visited(visit) => visit,
            Record::Dropped { entry, outcome, at } => {
                Box::new(VisitRecord::bare(entry, Purpose::Page, at, at, outcome))
            }
            _ => unreachable!("the plan names visits"),
        };
        let Some(row) = self.maker.make(&task.item, &visit) else {
            return Ok(Made { piece: None, body_missing: false });
        };
        let body_missing = row.body_missing;
        let piece = match self.options.format {
            Format::Jsonl => Some(Piece::Bytes(jsonl::line(&row))),
            Format::Markdown => markdown::piece(&row),
            Format::Parquet => Some(Piece::Row(Box::new(row))),
            Format::Wet => self.wet.record(&row)?.map(Piece::Bytes),
            Format::Cdxj | Format::Wacz => None,
        };
        Ok(Made { piece, body_missing })
    }
}

/// Makes all rows of a batch, each thread taking the next that nobody has taken.
fn make_all(tasks: &[Task], workers: &mut [Worker<'_>]) -> Result<Vec<Made>> {
    if let [alone] = workers {
        return tasks.iter().map(|task| alone.make(task)).collect();
    }
    let next = AtomicUsize::new(0);
    let take = |worker: &mut Worker<'_>| -> Result<Vec<(usize, Made)>> {
        let mut made = Vec::new();
        while let Some((i, task)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, tasks.get(i)?))) {
            made.push((i, worker.make(task)?));
        }
        Ok(made)
    };
    let mut made: Vec<(usize, Made)> = Vec::with_capacity(tasks.len());
    std::thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| take(worker))).collect();
        for thread in threads {
            made.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(())
    })?;
    made.sort_unstable_by_key(|(i, _)| *i);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}
