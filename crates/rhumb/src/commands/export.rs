//! `rhumb export`: a crawl in a form that others read. The work is done by `rhumb-export`; here is what people type and see.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use rhumb_export::{ExportError, Filter, Moment, Options, Progress, Stage, Summary, Target, export};
use rhumb_store::StoreError;
use serde_json::json;

use super::crawl::stop_on_signal;
use super::{crawl_directory, with_advice};
use crate::cli::ExportArgs;
use crate::display::{clock, thousands};
use crate::units::human_bytes;
use crate::{Exit, out, usage};

/// Exports, or goes on with an export.
pub fn run(args: &ExportArgs, as_json: bool) -> Result<Exit> {
    let options = options(args)?;
    let stdout = args.out == Path::new("-");
    let target = match stdout {
        true => Target::Stdout,
        false => Target::Path { path: args.out.clone(), overwrite: args.overwrite },
    };
    let progress = Arc::new(Progress::default());
    let told = progress.clone();
    stop_on_signal(move || told.stop())?;
    let began = Instant::now();
    let display = (!args.quiet).then(|| Display::start(progress.clone()));
    let done = export(&args.dir, &options, &target, &progress);
    drop(display);
    let summary = match done {
        Ok(summary) => summary,
        Err(ExportError::Interrupted) if stdout => {
            out::note("rhumb: interrupted");
            return Ok(Exit::Interrupted);
        }
        Err(ExportError::Interrupted) => {
            out::note("rhumb: interrupted; run the same command again to go on");
            return Ok(Exit::Interrupted);
        }
        Err(ExportError::Refused(what)) => return Err(usage(what)),
        Err(ExportError::Stdout(e)) => return Err(e.into()),
        Err(ExportError::Store(e @ StoreError::Locked(_))) => return Err(usage(e.to_string())),
        Err(ExportError::Store(e)) => return Err(with_advice(e, &args.dir)),
        Err(e) => return Err(e.into()),
    };
    tell(args, &summary, began.elapsed(), as_json, stdout)?;
    Ok(if summary.bodies_missing > 0 { Exit::Look } else { Exit::Done })
}

/// What was typed, with the settings of the crawl.
pub(super) fn options(args: &ExportArgs) -> Result<Options> {
    let settings = crawl_directory(&args.dir)?.settings().map_err(|e| usage(format!("{e:#}")))?;
    let matching = args.matching.iter().map(|text| {
        // An expression may be given many times over by a script; each has a bound of its own.
        regex::RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|e| usage(format!("matching {text:?}: {e}")))
    });
    let hosts = args.host.iter().map(|h| h.trim_matches('.').to_ascii_lowercase()).collect();
    let filter = Filter {
        hosts,
        prefixes: args.prefix.clone(),
        matching: matching.collect::<Result<_>>()?,
        kinds: args.kind.clone(),
        since: args.since,
    };
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    if !(1..=1_024).contains(&threads) {
        return Err(usage(format!("threads {threads}: between 1 and 1024")));
    }
    Ok(Options {
        format: args.format,
        include_failed: args.include_failed,
        links: !args.no_links,
        text: !args.no_text,
        filter,
        row_group_bytes: args.row_group.0.clamp(1, 1 << 30) as usize,
        commit_every: args.commit_every.0,
        memory_bytes: args.memory.0 as usize,
        threads,
        parse: settings.parse,
        formats: settings.formats,
        normalize: settings.normalize,
        decode: settings.decode,
        software: concat!("rhumb/", env!("CARGO_PKG_VERSION")).to_string(),
    })
}

fn tell(args: &ExportArgs, summary: &Summary, took: Duration, as_json: bool, stdout: bool) -> Result<()> {
    let format = args.format.name();
    let unit = if format == "cdxj" { "lines" } else { "pages" };
    if summary.bodies_missing > 0 {
        let text = "could not be read from the archive and stand there without text; see: rhumb warc check";
        out::note(&format!("rhumb: {} pages {text} {}", thousands(summary.bodies_missing), out::shell(&args.dir)));
    }
    if stdout {
        // The output itself is there.
        return Ok(());
    }
    if as_json {
        return out::json(&json!({
            "format": format, "pages": summary.pages, "bytes": summary.bytes, "out": args.out.display().to_string(),
            "bodies_missing": summary.bodies_missing, "resumed": summary.resumed, "seconds": took.as_secs_f64(),
        }));
    }
    let (pages, bytes) = (thousands(summary.pages), human_bytes(summary.bytes));
    out::line(&format!("{pages} {unit}, {bytes}, in {}: {}", clock(took.as_secs_f64()), args.out.display()))
}

/// A line on stderr, on a thread of its own: drawn again on a terminal, every ten seconds elsewhere.
struct Display {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Display {
    fn start(progress: Arc<Progress>) -> Display {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let draw = move || draw(&progress, &stopped);
        Display { stop, thread: std::thread::Builder::new().name("display".to_string()).spawn(draw).ok() }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn draw(progress: &Progress, stop: &AtomicBool) {
    let terminal = std::io::stderr().is_terminal();
    let pause = if terminal { Duration::from_millis(500) } else { Duration::from_secs(10) };
    let mut since = (Instant::now(), progress.moment());
    let mut next = Instant::now() + pause;
    loop {
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
        let mut stderr = std::io::stderr().lock();
        if stop.load(Ordering::Relaxed) {
            if terminal {
                let _ = write!(stderr, "\r\x1b[K");
            }
            return;
        }
        let now = progress.moment();
        if now.stage != since.1.stage {
            since = (Instant::now(), now);
        }
        let line = line(&now, now.done.saturating_sub(since.1.done), since.0.elapsed());
        let _ = if terminal { write!(stderr, "\r\x1b[K\x1b[?7l{line}\x1b[?7h") } else { writeln!(stderr, "{line}") };
        let _ = stderr.flush();
        next = Instant::now() + pause;
    }
}

/// How far it is, how fast, and how long it will take, `done` units having been done in `took`.
fn line(now: &Moment, done: u64, took: Duration) -> String {
    let rate = done as f64 / took.as_secs_f64().max(0.001);
    let left = now.total.saturating_sub(now.done) as f64 / rate.max(1e-9);
    let left = if now.total > 0 && done > 0 { format!(", {} left", clock(left)) } else { String::new() };
    let written = human_bytes(now.bytes);
    let of = |shown: fn(u64) -> String| match now.total {
        0 => shown(now.done),
        total => format!("{} of {}", shown(now.done), shown(total.max(now.done))),
    };
    match now.stage {
        Stage::Reading => format!("reading the log: {}{left}", of(human_bytes)),
        Stage::Pages => format!("{} pages ({rate:.0}/s), {written}{left}", of(thousands)),
        Stage::Lines => format!("{} lines of the index ({rate:.0}/s)", of(thousands)),
        Stage::Copying => format!("copying the archive: {} ({}/s){left}", of(human_bytes), human_bytes(rate as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_in_a_line() {
        let check = |stage, done, total, expected: &str| {
            let now = Moment { stage, done, total, bytes: 5_000_000 };
            assert_eq!(line(&now, done, Duration::from_secs(10)), expected);
        };
        check(Stage::Pages, 1_000, 3_000, "1,000 of 3,000 pages (100/s), 5.0 MB, 20.0 s left");
        check(Stage::Pages, 0, 3_000, "0 of 3,000 pages (0/s), 5.0 MB");
        check(Stage::Lines, 2_000, 0, "2,000 lines of the index (200/s)");
        check(Stage::Reading, 1_000_000, 10_000_000, "reading the log: 1.0 MB of 10 MB, 1:30 left");
    }
}
