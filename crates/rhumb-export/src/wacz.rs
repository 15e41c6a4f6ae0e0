//! WACZ 1.1.1: the archive, its index and the list of pages in one file that can be looked into without unpacking it.
//!
//! First what is computed is gathered in files of the unfinished export (pages, compressed index); then everything is put into a
//! ZIP, the archive's files first, as long as they were when the export began. An interrupted file is gone on with behind its
//! last whole entry. The format: <https://specs.webrecorder.net/wacz/1.1.1/>.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libdeflater::{CompressionLvl, Compressor};
use rhumb_core::record::Record;
use rhumb_core::visit::VisitRecord;
use rhumb_store::disk::Disk;
use rhumb_store::log::Position;
use rhumb_store::warc::cdxj;
use rhumb_store::{StoreError, Timestamp, archive};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{ExportError, Result};
use crate::index::Lines;
use crate::options::Options;
use crate::place::{Output, Place};
use crate::plan::{Plan, Scan, decode, ended_early};
use crate::progress::{Progress, Stage};
use crate::zip::{self, Adding, Entry};

/// Lines of a block of the compressed index.
const BLOCK_LINES: usize = 1_024;
const COPY_BYTES: usize = 1 << 20;

/// What is remembered between two runs.
#[derive(Default, Serialize, Deserialize)]
struct Saved {
    /// Whether pages and index are gathered.
    gathered: bool,
    /// Pages that are seeds, and others.
    seeds: u64,
    others: u64,
    main: Option<Main>,
    entries: Vec<Entry>,
}

/// The page a reader sees first.
#[derive(Clone, Serialize, Deserialize)]
struct Main {
    url: String,
    at: String,
}

/// Something to be put into the ZIP: a few bytes and then a part of a file.
struct Source {
    name: String,
    head: Vec<u8>,
    path: PathBuf,
    bytes: u64,
}

const SEEDS: &str = "pages-seeds";
const OTHERS: &str = "pages-others";
const CDX: &str = "index.cdx.gz";
const IDX: &str = "index.idx";

/// Writes the file.
pub(crate) fn run(
    crawl: &Path,
    disk: &Arc<dyn Disk>,
    place: &mut Place,
    options: &Options,
    progress: &Progress,
) -> Result<Output> {
    let mut saved: Saved = serde_json::from_value(place.state.format.clone()).unwrap_or_default();
    if !saved.gathered {
        gather_pages(disk, place, &mut saved, progress)?;
        gather_index(place, progress)?;
        saved.gathered = true;
        place.state.format = value(&saved);
        place.save()?;
    }
    if place.state.archive_end.0 == 0 {
        return Err(ExportError::Refused(
            "the crawl has no archive to pack (--no-archive, or nothing was fetched)".into(),
        ));
    }
    let sources = sources(crawl, disk, place, &saved)?;
    let time = zip::dos_time(Timestamp(place.state.made));
    let mut out = place.output()?;
    progress.begin(Stage::Copying, sources.iter().map(|s| s.bytes).sum());
    progress.add(saved.entries.iter().map(|e| e.bytes).sum());
    for source in &sources[saved.entries.len()..] {
        saved.entries.push(copy(source, time, &mut out, progress)?);
        place.state.done += 1;
        place.state.format = value(&saved);
        place.commit(&mut out)?;
    }
    place.state.rows = saved.seeds + saved.others;
    let package = package(&saved, place.state.made, options);
    saved.entries.push(zip::add("datapackage.json", &package, time, &mut out)?);
    let digest = json!({"path": "datapackage.json", "hash": zip::sha256(&package)}).to_string();
    saved.entries.push(zip::add("datapackage-digest.json", digest.as_bytes(), time, &mut out)?);
    zip::finish(&saved.entries, time, &mut out)?;
    progress.wrote(out.position);
    Ok(out)
}

fn value(saved: &Saved) -> Value {
    serde_json::to_value(saved).unwrap_or_default()
}

/// A file that is filled and then closed.
struct Gathered {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Gathered {
    fn create(place: &Place, name: &str) -> Result<Gathered> {
        let path = place.dir.join(name);
        let file = File::create(&path).map_err(|e| ExportError::io("create", &path, e))?;
        Ok(Gathered { path, file: BufWriter::with_capacity(1 << 18, file) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| ExportError::io("write to", &self.path, e))
    }

    fn close(mut self) -> Result<()> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(|e| ExportError::io("write to", &self.path, e))
    }
}

/// The newest visit of each page, seeds apart from the others.
fn gather_pages(disk: &Arc<dyn Disk>, place: &Place, saved: &mut Saved, progress: &Progress) -> Result<()> {
    let (mut seeds, mut others) = (Gathered::create(place, SEEDS)?, Gathered::create(place, OTHERS)?);
    let mut plan = Plan::open(&place.dir, 0)?;
    let mut scan = Scan::open(disk, Position::START, 0)?;
    progress.begin(Stage::Pages, place.state.items);
    (saved.seeds, saved.others, saved.main) = (0, 0, None);
    while let Some(item) = plan.next()? {
        progress.go_on()?;
        progress.add(1);
        let (record, number) = loop {
            let (at, number) = (scan.position(), scan.number);
            match scan.next()? {
                Some((kind, payload)) if number == item.number => break (decode(kind, &payload, at)?, number),
                Some(_) => {}
                None => return Err(ended_early(at)),
            }
        };
        let Record::Visited(visit) = record else { continue };
        if !is_readable(&visit) {
            continue;
        }
        let at = visit.started.to_string();
        let url = visit.entry.url.as_str();
        let line = json!({"id": format!("{number:x}"), "url": url, "ts": at, "title": visit.title});
        let line = format!("{line}\n");
        if visit.entry.seed {
            seeds.write(line.as_bytes())?;
            saved.seeds += 1;
        } else {
            others.write(line.as_bytes())?;
            saved.others += 1;
        }
        if saved.main.is_none() || (visit.entry.seed && saved.seeds == 1) {
            saved.main = Some(Main { url: url.to_string(), at });
        }
    }
    seeds.close()?;
    others.close()
}

/// Whether somebody would call it a page, rather than a part of one.
fn is_readable(visit: &VisitRecord) -> bool {
    let kind = cdxj::bare_type(&visit.media_type).to_ascii_lowercase();
    let pages = ["", "text/html", "application/xhtml+xml", "text/plain", "application/pdf"];
    visit.is_page() && visit.archived.is_some() && pages.contains(&kind.as_str())
}

/// The index in blocks, each a gzip member, and an index of the blocks.
fn gather_index(place: &Place, progress: &Progress) -> Result<()> {
    let (mut cdx, mut idx) = (Gathered::create(place, CDX)?, Gathered::create(place, IDX)?);
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut lines = Lines::open(place)?;
    progress.begin(Stage::Lines, 0);
    idx.write(format!("!meta 0 {}\n", json!({"format": "cdxj-gzip-1.0", "filename": CDX})).as_bytes())?;
    let mut offset = 0;
    loop {
        progress.go_on()?;
        let mut block = Vec::new();
        let mut count = 0;
        while count < BLOCK_LINES
            && let Some(line) = lines.next()?
        {
            block.extend_from_slice(line);
            block.push(b'\n');
            count += 1;
        }
        if count == 0 {
            break;
        }
        progress.add(count as u64);
        let key = block.split(|b| *b == b'{').next().unwrap_or_default();
        let key = String::from_utf8_lossy(key);
        let mut packed = vec![0; compressor.gzip_compress_bound(block.len())];
        let length = compressor.gzip_compress(&block, &mut packed).expect("the bound is kept");
        packed.truncate(length);
        let told = json!({"offset": offset, "length": length, "digest": zip::sha256(&packed)});
        idx.write(format!("{} {told}\n", key.trim_end()).as_bytes())?;
        cdx.write(&packed)?;
        offset += length as u64;
    }
    cdx.close()?;
    idx.close()
}

/// Everything that goes into the ZIP, in order.
fn sources(crawl: &Path, disk: &Arc<dyn Disk>, place: &Place, saved: &Saved) -> Result<Vec<Source>> {
    let end = place.state.archive_end;
    let mut sources = Vec::new();
    for (serial, name) in archive::files(&**disk)?.into_iter().filter(|(serial, _)| *serial <= end.0) {
        let path = crawl.join(archive::DIR).join(&name);
        let there = std::fs::metadata(&path).map_err(|e| ExportError::io("open", &path, e))?.len();
        let bytes = if serial == end.0 { end.1 } else { there };
        if there < bytes {
            let what = format!("the log speaks of {bytes} bytes, the file has {there}");
            return Err(StoreError::corrupt(&format!("{}/{name}", archive::DIR), there, what).into());
        }
        sources.push(Source { name: format!("archive/{name}"), head: Vec::new(), path, bytes });
    }
    let mut gathered = |name: &str, head: Vec<u8>, file: &str| -> Result<()> {
        let path = place.dir.join(file);
        let bytes = std::fs::metadata(&path).map_err(|e| ExportError::io("open", &path, e))?.len();
        let bytes = bytes + head.len() as u64;
        sources.push(Source { name: name.to_string(), head, path, bytes });
        Ok(())
    };
    let head = |id: &str, title: &str| {
        let told = json!({"format": "json-pages-1.0", "id": id, "title": title});
        format!("{told}\n").into_bytes()
    };
    gathered("indexes/index.cdx.gz", Vec::new(), CDX)?;
    gathered("indexes/index.idx", Vec::new(), IDX)?;
    // Where no seed brought a page the others are all there is to show.
    let first = if saved.seeds > 0 { SEEDS } else { OTHERS };
    gathered("pages/pages.jsonl", head("pages", "All Pages"), first)?;
    if saved.seeds > 0 && saved.others > 0 {
        gathered("pages/extraPages.jsonl", head("extra-pages", "Extra Pages"), OTHERS)?;
    }
    Ok(sources)
}

fn copy(source: &Source, time: u32, out: &mut Output, progress: &Progress) -> Result<Entry> {
    let io_error = |e| ExportError::io("read", &source.path, e);
    let mut adding = Adding::begin(&source.name, source.bytes, time, out)?;
    adding.write(&source.head, out)?;
    let mut left = source.bytes - source.head.len() as u64;
    progress.add(source.head.len() as u64);
    let mut file = File::open(&source.path).map_err(io_error)?;
    let mut block = vec![0; COPY_BYTES];
    while left > 0 {
        progress.go_on()?;
        let n = left.min(COPY_BYTES as u64) as usize;
        file.read_exact(&mut block[..n]).map_err(io_error)?;
        adding.write(&block[..n], out)?;
        progress.add(n as u64);
        progress.wrote(out.position);
        left -= n as u64;
    }
    adding.end(out)
}

/// datapackage.json.
fn package(saved: &Saved, made: u64, options: &Options) -> Vec<u8> {
    let resources: Vec<Value> = saved
        .entries
        .iter()
        .map(|e| {
            let name = e.name.rsplit('/').next().unwrap_or(&e.name);
            // Names in a data package are in small letters.
            json!({"name": name.to_ascii_lowercase(), "path": e.name, "hash": e.hash, "bytes": e.bytes})
        })
        .collect();
    let mut package = json!({
        "profile": "data-package", "wacz_version": "1.1.1", "software": options.software,
        "created": Timestamp(made).iso_seconds(), "resources": resources,
    });
    if let Some(main) = &saved.main {
        package["mainPageUrl"] = json!(main.url);
        package["mainPageDate"] = json!(main.at);
    }
    serde_json::to_vec_pretty(&package).unwrap_or_default()
}
