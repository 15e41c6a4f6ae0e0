//! State on disk: checkpoints, runs, queues, tables, spools.
//!
//! Checksums keep accidents out; here they are put right first, so that the readers behind them meet any bytes at all.
//!
//! Input: a byte that chooses; then (0) the body of a checkpoint, (1) a run's index offset and file, (2) keys for a run, (3) a
//! segment's length and bytes, and a queue's part of a checkpoint, (4) a table's run, (5) a spool's part of a checkpoint, (6) a
//! checkpoint file; the same from 7 on, except (200) a page's content, (201) how much of the rest is blocks, and a file of rows, (202) the part of a
//! checkpoint that is about known pages, over a level made of such a file.

use std::sync::Arc;

use rhumb_core::crawl::{Crawl, CrawlConfig};
use rhumb_core::frontier::FrontierConfig;
use rhumb_core::priority::Prioritizer;
use rhumb_core::seen::{Content, PageRef, Seen, SeenConfig, similarity};
use rhumb_core::sieve::SieveConfig;
use rhumb_store::checkpoint::{self, Found};
use rhumb_store::codec::{Put, Take};
use rhumb_store::disk::Disk;
use rhumb_store::fifo::{self, Fifo, FifoDisk};
use rhumb_store::rows::Rows;
use rhumb_store::runs::{BLOCK_KEYS, Run, RunWriter};
use rhumb_store::spool::{Picker, Spool};
use rhumb_store::table::{Table, TableConfig};

use crate::{byte, disk};

/// See the input: every reader gives an error or something that can be used.
pub fn run(data: &[u8]) {
    let (choice, data) = byte(data);
    match choice {
        200 => content(data),
        201 => drop(rows(data)),
        202 => known_pages(data),
        _ => state(choice, data),
    }
}

fn state(choice: u8, data: &[u8]) {
    match choice % 7 {
        0 => body(data),
        1 => foreign_run(data),
        2 => own_run(data),
        3 => queue(data),
        4 => table(data),
        5 => spool(data),
        _ => {
            let disk = disk();
            put(&*disk, "state/checkpoint-000000000001", data);
            let found = checkpoint::load(&*disk).expect("memory does not fail");
            assert!(!matches!(found, Found::None));
        }
    }
}

fn put(disk: &dyn Disk, name: &str, bytes: &[u8]) {
    disk.create(name).and_then(|mut file| file.append(bytes)).expect("memory");
}

/// What can be loaded can be saved, and what was saved is loaded again.
fn body(data: &[u8]) {
    let config = CrawlConfig {
        frontier: FrontierConfig::default().within(1 << 20),
        sieve: SieveConfig::within(64 << 10),
        prioritizer: Prioritizer::new(Vec::new()),
        seen_bytes_max: 4 << 10,
        redirects_max: 10,
        seed: 1,
    };
    let disk = disk();
    let Ok(mut crawl) = Crawl::load(disk.clone(), &config, data) else { return };
    let Ok(saved) = crawl.save() else { return };
    assert!(!saved.is_empty());
    saved.write(&*disk, 1).expect("memory");
    let Ok(Found::Whole(_, again)) = checkpoint::load(&*disk) else { panic!("it was just written") };
    assert!(Crawl::load(disk, &config, &again).is_ok(), "what was saved is loaded again");
}

const RUN: &str = "state/sieve/1.run";

/// A file of blocks and an index of any content, whose checksums are right.
fn sealed(header: &[u8; 16], data: &[u8]) -> Option<Vec<u8>> {
    let (&[low, high], rest) = data.split_first_chunk::<2>()?;
    let blocks_end = usize::from(u16::from_le_bytes([low, high])) % (rest.len() + 1);
    let (blocks, index) = rest.split_at(blocks_end);
    let mut index = index[..index.len() / 24 * 24].to_vec();
    let mut file = header.to_vec();
    file.extend_from_slice(blocks);
    let places: Vec<usize> = index.chunks(24).map(|e| word(&e[8..]) as usize % (file.len() + 1)).collect();
    for (i, entry) in index.chunks_mut(24).enumerate() {
        let end = places.get(i + 1).copied().unwrap_or(file.len());
        let bytes = file.get(places[i]..end).unwrap_or_default();
        entry[8..16].copy_from_slice(&(places[i] as u64).to_le_bytes());
        entry[20..].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    }
    let items: u64 = index.chunks(24).map(|e| u64::from(u16::from_le_bytes([e[16], e[17]]))).sum();
    let crc = crc32fast::hash(&[&header[..], &index].concat());
    let at = file.len() as u64;
    file.extend_from_slice(&index);
    for n in [at, index.len() as u64 / 24, items] {
        file.extend_from_slice(&n.to_le_bytes());
    }
    file.extend_from_slice(&crc.to_le_bytes());
    file.extend_from_slice(&header[..8]);
    Some(file)
}

/// Any file whose checksums are right: an error, or keys that can be found.
fn foreign_run(data: &[u8]) {
    let Some(file) = sealed(b"rhumbrun\x02\0\0\0\0\0\0\0", data) else { return };
    let disk = disk();
    put(&*disk, RUN, &file);
    let Ok(run) = Run::open(&*disk, RUN).map(Arc::new) else { return };
    let mut scan = run.scan();
    let mut read = Vec::new();
    let whole = loop {
        match scan.next() {
            Ok(Some(key)) => read.push(key),
            Ok(None) => break true,
            Err(_) => break false,
        }
        assert!(read.len() <= file.len() / 24 * BLOCK_KEYS);
    };
    let ascends = read.is_sorted_by(|a, b| a < b);
    let mut wanted = read.clone();
    wanted.extend([0, 1, u64::MAX]);
    wanted.sort_unstable();
    let mut found = 0;
    let answer = run.find_sorted(&wanted, |_| found += 1);
    if whole && ascends && answer.is_ok() {
        assert!(found >= read.len(), "{found} of {} are found", read.len());
    }
}

/// Keys that were written are found, and no others.
fn own_run(data: &[u8]) {
    let mut keys: Vec<u64> =
        data.chunks(3).map(|c| c.iter().fold(0, |n, &b| (n << 20) | (u64::from(b) * 77))).collect();
    keys.sort_unstable();
    keys.dedup();
    let disk = disk();
    let mut writer = RunWriter::create(&*disk, RUN).expect("memory");
    keys.iter().for_each(|&key| writer.push(key).expect("memory"));
    assert_eq!(writer.finish().expect("memory"), keys.len() as u64);
    let run = Arc::new(Run::open(&*disk, RUN).expect("own file"));
    let mut scan = run.scan();
    let read: Vec<u64> = std::iter::from_fn(|| scan.next().expect("own file")).collect();
    assert_eq!(read, keys);
    let mut wanted: Vec<u64> = keys.iter().flat_map(|&k| [k, k.wrapping_add(1)]).collect();
    wanted.sort_unstable();
    let mut found = Vec::new();
    run.find_sorted(&wanted, |i| found.push(wanted[i])).expect("own file");
    found.dedup();
    assert_eq!(found, keys);
}

/// A queue from a checkpoint, over a segment whose blocks have right checksums.
fn queue(data: &[u8]) {
    let Some((&[low, high], rest)) = data.split_first_chunk::<2>() else { return };
    let (segment, part) = rest.split_at(usize::from(u16::from_le_bytes([low, high])) % (rest.len() + 1));
    let mut file = b"rhumbsg2".to_vec();
    let mut blocks = segment;
    while let Some((head, more)) = blocks.split_at_checked(3) {
        let (entries, more) = more.split_at(usize::from(head[0]).min(more.len()));
        let mut block = (entries.len() as u32).to_le_bytes().to_vec();
        block.extend_from_slice(&u32::from(head[1]).to_le_bytes());
        block.extend_from_slice(entries);
        file.extend_from_slice(&(crc32fast::hash(&block) ^ u32::from(head[2] == 255)).to_le_bytes());
        file.extend_from_slice(&block);
        blocks = more;
    }
    let disk = disk();
    put(&*disk, &format!("{}/{:012}.seg", fifo::DIR, 0), &file);
    let Ok(mut fifo) = Fifo::load(&mut Take::new(part), &*disk) else { return };
    let (mut next_number, mut garbage) = (1, Vec::new());
    let mut on = FifoDisk { disk: &*disk, next_number: &mut next_number, block_bytes: 64, garbage: &mut garbage };
    let mut saved = Vec::new();
    fifo.save(&[], &mut saved);
    assert_eq!(Fifo::load(&mut Take::new(&saved), &*disk).map(|f| f.len()).ok(), Some(fifo.len()));
    // An entry takes a byte at least, in the checkpoint or in the segment.
    let mut popped = 0;
    while let Ok(Some(_)) = fifo.pop(&mut on) {
        popped += 1;
        assert!(popped <= data.len(), "a queue gives more entries than it has bytes");
    }
    let _ = fifo.push(b"last", &mut on);
}

/// A table over one run whose checksums are right.
fn table(data: &[u8]) {
    const NAME: &str = "state/hosts/00000001.tab";
    let Some((&[low, high, count, words], rest)) = data.split_first_chunk::<4>() else { return };
    let blocks_end = usize::from(u16::from_le_bytes([low, high])) % (rest.len() + 1);
    let (blocks, tail) = rest.split_at(blocks_end);
    let count = usize::from(count).min(tail.len() / 20);
    let words = usize::from(words).min((tail.len() - count * 20) / 8);
    let mut tail = tail[..count * 20 + words * 8].to_vec();
    let mut file = b"rhumbtab\x01\0\0\0\0\0\0\0".to_vec();
    file.extend_from_slice(blocks);
    let places: Vec<usize> = (0..count).map(|i| word(&tail[i * 20 + 8..]) as usize % (file.len() + 1)).collect();
    for i in 0..count {
        let end = places.get(i + 1).copied().unwrap_or(file.len());
        let crc = crc32fast::hash(file.get(places[i]..end).unwrap_or_default());
        tail[i * 20 + 8..i * 20 + 16].copy_from_slice(&(places[i] as u64).to_le_bytes());
        tail[i * 20 + 16..i * 20 + 20].copy_from_slice(&crc.to_le_bytes());
    }
    let footer: Vec<u8> =
        [file.len() as u64, count as u64, words as u64, 3].into_iter().flat_map(u64::to_le_bytes).collect();
    let crc = crc32fast::hash(&[&file[..16], &tail, &footer].concat());
    file.extend_from_slice(&tail);
    file.extend_from_slice(&footer);
    file.extend_from_slice(&crc.to_le_bytes());
    file.extend_from_slice(b"rhumbtab");
    let disk = disk();
    put(&*disk, NAME, &file);
    let mut saved = Vec::new();
    saved.put_u64(2);
    saved.put_u64(4);
    (0..4).for_each(|_| saved.put_str(NAME));
    let config = TableConfig { memory_bytes_max: 1 << 10, filter_bytes_max: 1 << 10 };
    let Ok(mut table) = Table::load(disk, "state/hosts", config, &mut Take::new(&saved)) else { return };
    let firsts: Vec<u64> = tail.chunks_exact(20).take(count).map(word).collect();
    for key in firsts.into_iter().chain([0, u64::MAX]) {
        if let Ok(Some(value)) = table.get(key) {
            assert!(value.len() <= blocks.len());
        }
    }
    if let Some(Ok(done)) = table.take_work().map(|work| work.run()) {
        table.finish_work(done);
    }
    table.put(7, b"seven");
    assert_eq!(table.get(7).ok().flatten(), Some(&b"seven"[..]));
    let _ = table.settle();
}

/// A spool from a checkpoint, with files of the input's own bytes.
fn spool(data: &[u8]) {
    let disk = disk();
    for name in ["k", "u"] {
        put(&*disk, name, data);
    }
    let Ok(spool) = Spool::load(&*disk, &mut Take::new(data)) else { return };
    let mut saved = Vec::new();
    spool.save(&mut saved);
    assert!(Spool::load(&*disk, &mut Take::new(&saved)).is_ok(), "what was saved is loaded again");
    let mut sorted = Vec::new();
    let _ = spool.sorted_keys(&mut sorted);
    let places = spool.first_places(&sorted).unwrap_or_default();
    let count = spool.len();
    let mut picker = Picker::new(spool.seal());
    for place in places.into_iter().take(500) {
        assert!((place as usize) < count);
        if picker.key(place).is_ok() {
            let _ = picker.entry(place).map(<[u8]>::len);
        }
    }
}

/// What is understood is written as it was.
fn content(data: &[u8]) {
    let mut from = Take::new(data);
    let Ok(content) = Content::take(&mut from) else { return };
    let mut written = Vec::new();
    content.put(&mut written);
    assert_eq!(written, data[..data.len() - from.rest().len()]);
    if let Some(sketch) = &content.sketch {
        assert!(similarity(sketch, sketch) > 0.999);
    }
}

const LEVEL: &str = "state/seen/00000001";
const ROW_BYTES: usize = 43;

/// Any file of rows whose checksums are right: an error, or rows.
fn rows(data: &[u8]) -> Option<(Arc<dyn Disk>, u64)> {
    let mut header = *b"rhumbrow\x01\0\0\0\0\0\0\0";
    header[10] = ROW_BYTES as u8;
    let file = sealed(&header, data)?;
    let disk = disk();
    let name = format!("{LEVEL}.row");
    put(&*disk, &name, &file);
    let rows = Rows::open(&*disk, &name, ROW_BYTES).map(Arc::new).ok()?;
    let mut reader = rows.reader();
    for n in (0..rows.len()).chain((0..rows.len()).rev().step_by(3)) {
        if let Ok(row) = reader.get(n) {
            assert!(row.bytes.len() == ROW_BYTES && row.link.is_none_or(|l| l <= row.id));
        }
    }
    assert!(reader.get(rows.len()).is_err());
    Some((disk, rows.len()))
}

/// Known pages from a checkpoint, over a level of any rows: they can be saved and loaded again, and asked, with an answer or an error.
fn known_pages(data: &[u8]) {
    let (part, level) = data.split_at(data.len() / 2);
    let (disk, count) = rows(level).unwrap_or_else(|| (disk(), 0));
    let texts: Vec<String> = (0..8).map(|n| format!("a page about {n} and five more words")).collect();
    let contents: Vec<Content> = texts.iter().filter_map(|t| Content::of(t)).collect();
    let mut keys: Vec<u64> = contents.iter().flat_map(|c| c.sketch.iter().flat_map(|s| s.keys)).collect();
    keys.iter_mut().zip(0..).for_each(|(key, n)| *key = (*key << 28) | (n % (count + 2)));
    keys.sort_unstable();
    keys.dedup();
    for (end, keys) in [("key", &keys[..]), ("del", &[1, 2, 77])] {
        let mut writer = RunWriter::create(&*disk, &format!("{LEVEL}.{end}")).expect("memory");
        keys.iter().for_each(|&key| writer.push(key).expect("memory"));
        writer.finish().expect("memory");
    }
    let config = SeenConfig { batch_pages_max: 4, memory_pages_max: 6, recent_max: 8 };
    let Ok(mut seen) = Seen::load(disk.clone(), config.clone(), &mut Take::new(part)) else { return };
    let mut saved = Vec::new();
    seen.save(&mut saved);
    let again = Seen::load(disk, config, &mut Take::new(&saved)).expect("what was saved is loaded again");
    assert_eq!((again.len(), again.has_found()), (seen.len(), seen.has_found()));
    for (n, content) in contents.iter().enumerate() {
        seen.offer(PageRef(u64::MAX - 100 + n as u64), content);
    }
    seen.delete(PageRef(3));
    let _ = seen.flush();
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}
