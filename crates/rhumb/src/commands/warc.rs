//! `rhumb warc`: looking into WARC files, ours or somebody else's.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rhumb_store::archive;
use rhumb_store::disk::RealDisk;
use rhumb_store::warc::{self, CdxEntry, cdxj};
use serde_json::json;

use crate::cli::WarcCommand;
use crate::{Exit, out, usage};

/// Carries out one of the `warc` commands.
pub fn run(command: &WarcCommand, as_json: bool) -> Result<Exit> {
    match command {
        WarcCommand::Ls { file } => ls(file, as_json),
        WarcCommand::Check { file } => check(file, as_json),
        WarcCommand::Cdxj { file, sort } => index(file, *sort, as_json),
    }
}

/// The file itself, or all archive files of a crawl directory.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.exists() {
        return Err(usage(format!("there is no {}", path.display())));
    }
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let names = archive::files(&*RealDisk::new(path))?;
    if names.is_empty() {
        return Err(usage(format!("{} holds no archive", path.display())));
    }
    Ok(names.into_iter().map(|(_, name)| path.join(archive::DIR).join(name)).collect())
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| usage(format!("cannot read {}: {e}", path.display())))
}

fn ls(path: &Path, as_json: bool) -> Result<Exit> {
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    // A long listing is written as it is read, as one JSON array or as lines.
    let mut before = "[";
    for file in files(path)? {
        let mut failed = Ok(());
        let shown = file.display().to_string();
        warc::ls(open(&file)?, |row| {
            if failed.is_err() {
                return;
            }
            if as_json {
                let row = json!({
                    "file": shown, "offset": row.offset, "length": row.length, "type": row.kind, "date": row.date,
                    "url": row.uri, "status": row.status, "mime": row.mime, "digest": row.digest, "id": row.id,
                });
                failed = out::json_text(&row).and_then(|text| Ok(write!(stdout, "{before}{text}")?));
                before = ",";
                return;
            }
            let uri = row.uri.as_deref().unwrap_or("-");
            let status = row.status.map_or("-".to_string(), |s| s.to_string());
            let line = format!("{:>10} {:>8} {:<9} {} {status:>3} {uri}", row.offset, row.length, row.kind, row.date);
            failed = writeln!(stdout, "{}", out::escape(&line)).map_err(Into::into);
        })
        .with_context(|| format!("read {}", file.display()))?;
        failed?;
    }
    if as_json {
        writeln!(stdout, "{}]", if before == "[" { "[" } else { "" })?;
    }
    stdout.flush()?;
    Ok(Exit::Done)
}

fn check(path: &Path, as_json: bool) -> Result<Exit> {
    let mut reports = Vec::new();
    let mut sound = true;
    for file in files(path)? {
        let report = warc::check(open(&file)?);
        sound &= report.passed();
        let errors: Vec<_> = report.errors.iter().map(|e| json!({"offset": e.offset, "what": e.what})).collect();
        reports.push(json!({
            "file": file.display().to_string(), "records": report.records, "digests_checked": report.digests_checked, "errors": errors, "passed": report.passed(),
        }));
        if !as_json {
            let verdict = if report.passed() { "sound" } else { "DAMAGED" };
            out::line(&format!(
                "{}: {verdict}, {} records, {} digests checked",
                file.display(),
                report.records,
                report.digests_checked
            ))?;
            for error in &report.errors {
                out::line(&format!("  byte {}: {}", error.offset, error.what))?;
            }
        }
    }
    if as_json {
        out::json(&reports)?;
    }
    Ok(if sound { Exit::Done } else { Exit::Look })
}

fn index(path: &Path, sort: bool, as_json: bool) -> Result<Exit> {
    let mut lines = Vec::new();
    for file in files(path)? {
        let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        cdxj::index(open(&file)?, &name, |entry: CdxEntry| lines.push(entry.line()))
            .with_context(|| format!("read {}", file.display()))?;
    }
    if sort {
        cdxj::sort(&mut lines);
    }
    if as_json {
        out::json(&lines)?;
        return Ok(Exit::Done);
    }
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    for line in &lines {
        writeln!(stdout, "{}", line.trim_end())?;
    }
    stdout.flush()?;
    Ok(Exit::Done)
}
