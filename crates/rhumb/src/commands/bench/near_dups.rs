//! The content-seen test: precision and recall on a labelled set, the cost of a sketch, and the set of known pages at any size.

use std::path::Path;

use anyhow::{Context as _, Result};
use rhumb_core::priority::Random;
use rhumb_core::seen::{Content, Found, PageRef, SIMILARITY_MIN, Seen, SeenConfig, Sketcher};
use rhumb_crawl::status;
use rhumb_store::codec::Take;
use rhumb_store::disk::RealDisk;
use serde_json::{Value, json};

use super::labelled::{self, KINDS, Text, resemblance, spell};
use super::{cpu_seconds, disk_bytes};

/// Sites of many pages with one template, beside the pairs.
const SITES: usize = 100;
const SITE_PAGES: usize = 20;
/// Look-ups that are measured.
const LOOK_UPS: u64 = 400_000;
/// Records of the log are some kilobytes apart.
const RECORD_BYTES: u64 = 6_000;

/// All three parts.
pub fn run(pages: u64, pairs: u64, memory: usize, dir: &Path) -> Result<Value> {
    let accuracy = accuracy(pairs, memory, &dir.join("labelled"))?;
    Ok(json!({
        "accuracy": accuracy, "sketch_us_per_kb": sketch_cost()?, "store": store(pages, memory, &dir.join("pages"))?,
        "popular_key": popular_key(pages.min(200_000), memory, &dir.join("popular"))?,
        "peak_rss_bytes": status::peak_rss_bytes(),
    }))
}

fn new_seen(memory: usize, dir: &Path) -> Result<Seen> {
    std::fs::create_dir_all(dir.join("state")).context("make a directory")?;
    Ok(Seen::new(RealDisk::new(dir), SeenConfig::within(memory))?)
}

/// Counts of reported pairs and of those that should be.
#[derive(Default)]
struct Score {
    reported: u64,
    reported_rightly: u64,
    wanted: u64,
    wanted_found: u64,
}

impl Score {
    fn figures(&self) -> Value {
        json!({
            "precision": self.reported_rightly as f64 / self.reported.max(1) as f64,
            "recall": self.wanted_found as f64 / self.wanted.max(1) as f64,
            "reported": self.reported, "duplicates": self.wanted,
        })
    }
}

/// The whole way: sketches, look-ups, verification. A reported pair is right if its exact resemblance is 0.9 or more; a pair of such resemblance
/// is found if its second page is reported, rightly.
fn accuracy(pairs: u64, memory: usize, dir: &Path) -> Result<Value> {
    let mut random = Random::new(5);
    let mut texts: Vec<Text> = Vec::new();
    let mut labels = Vec::new();
    for kind in KINDS {
        for _ in 0..pairs {
            let pair = labelled::pair(kind, &mut random);
            labels.push((pair.kind, texts.len(), resemblance(&pair.texts[0], &pair.texts[1])));
            texts.extend(pair.texts);
        }
    }
    let pairs_end = texts.len();
    (0..SITES).for_each(|n| texts.extend(labelled::site(SITE_PAGES, 5 * n, &mut random)));
    let mut seen = new_seen(memory, dir)?;
    let mut sketcher = Sketcher::default();
    let mut found: Vec<Option<Found>> = vec![None; texts.len()];
    for (page, text) in texts.iter().enumerate() {
        sketcher.push(&spell(text));
        if let Some(content) = sketcher.finish() {
            seen.offer(PageRef(page as u64), &content);
        }
        seen.work()?;
    }
    seen.flush()?;
    while let Some(f) = seen.take_found() {
        found[f.page.0 as usize] = Some(f);
    }
    let (mut same_site, mut cross_site, mut band) = (Score::default(), Score::default(), Score::default());
    let mut by_kind = serde_json::Map::new();
    let mut curve = [(0u64, 0u64); 21];
    for kind in KINDS {
        let mut score = Score::default();
        for &(_, first, truth) in labels.iter().filter(|(k, ..)| *k == kind) {
            let reported = found[first + 1];
            let right = reported.is_some_and(|f| resemblance(&texts[f.of.0 as usize], &texts[first + 1]) >= 0.9);
            let site = if kind.is_same_site() { &mut same_site } else { &mut cross_site };
            let is_border = (0.85..0.95).contains(&truth);
            let mut scores = vec![site, &mut score];
            scores.extend(is_border.then_some(&mut band));
            for score in scores {
                score.reported += u64::from(reported.is_some());
                score.reported_rightly += u64::from(right);
                score.wanted += u64::from(truth >= 0.9);
                score.wanted_found += u64::from(truth >= 0.9 && right);
            }
            if truth >= 0.8 {
                let step = &mut curve[((truth - 0.8) * 100.0 + 1e-9) as usize];
                *step = (step.0 + 1, step.1 + u64::from(reported.is_some()));
            }
            // First pages are strangers to all before them.
            cross_site.reported += u64::from(found[first].is_some());
        }
        by_kind.insert(format!("{kind:?}"), score.figures());
    }
    let mut sites = Score::default();
    for page in pairs_end..texts.len() {
        let site = pairs_end + (page - pairs_end) / SITE_PAGES * SITE_PAGES;
        let is_near = |other: usize| resemblance(&texts[other], &texts[page]) >= 0.9;
        // One that duplicates a duplicate need not resemble what that one duplicates.
        let wanted = (site..page).any(|other| found[other].is_none() && is_near(other));
        let right = found[page].is_some_and(|f| is_near(f.of.0 as usize));
        for score in [&mut sites, &mut same_site] {
            score.reported += u64::from(found[page].is_some());
            score.reported_rightly += u64::from(right);
            score.wanted += u64::from(wanted);
            score.wanted_found += u64::from(wanted && right);
        }
    }
    by_kind.insert("Site".to_string(), sites.figures());
    let curve: Vec<Value> = curve.iter().enumerate().map(|(i, (pairs, reported))| {
        json!({ "resemblance": 0.8 + i as f64 / 100.0, "pairs": pairs, "reported": *reported as f64 / (*pairs).max(1) as f64 })
    }).collect();
    let in_band = |min: f64, max: f64| labels.iter().filter(|(.., truth)| (min..max).contains(truth)).count();
    Ok(json!({
        "similarity_min": SIMILARITY_MIN, "pairs": labels.len(), "pages": texts.len(),
        "pairs_0.85_to_0.90": in_band(0.85, 0.9), "pairs_0.90_to_0.95": in_band(0.9, 0.95), "pairs_0.95_to_1.00": in_band(0.95, 1.01),
        "same_site": same_site.figures(), "cross_site": cross_site.figures(), "border_0.85_to_0.95": band.figures(),
        "by_kind": by_kind, "curve": curve,
    }))
}

/// Processor time of a sketch, by script and length.
fn sketch_cost() -> Result<Value> {
    let mut random = Random::new(6);
    let mut figures = serde_json::Map::new();
    let latin = spell(&(0..200_000).map(|_| (random.next() % 4_000) as u32).collect::<Vec<_>>());
    let letter =
        |from: u32, n: u64, random: &mut Random| char::from_u32(from + (random.next() % n) as u32).unwrap_or(' ');
    let mut others = [String::new(), String::new()];
    for _ in 0..100_000 {
        (0..6).for_each(|_| others[0].push(letter(0x430, 32, &mut random)));
        others[0].push(' ');
        (0..6).for_each(|_| others[1].push(letter(0x4e00, 3_000, &mut random)));
        others[1].push('。');
    }
    let [cyrillic, han] = &others;
    for (name, text, kb) in [
        ("latin_1_kb", &latin, 1),
        ("latin_10_kb", &latin, 10),
        ("latin_100_kb", &latin, 100),
        ("cyrillic_10_kb", cyrillic, 10),
        ("han_10_kb", han, 10),
    ] {
        let mut pieces: Vec<&str> = Vec::new();
        let mut rest = text.as_str();
        while rest.len() > kb * 1000 {
            let (piece, more) = rest.split_at(boundary(rest, kb * 1000));
            pieces.push(piece);
            rest = more;
        }
        let mut sketcher = Sketcher::default();
        let (mut bytes, start) = (0, cpu_seconds());
        while cpu_seconds() - start < 0.4 {
            for piece in &pieces {
                sketcher.push(piece);
                std::hint::black_box(sketcher.finish());
                bytes += piece.len();
            }
        }
        figures.insert(name.to_string(), json!((cpu_seconds() - start) * 1e6 / (bytes as f64 / 1e3)));
    }
    Ok(figures.into())
}

/// A content that resembles no other.
fn content(n: u64) -> Result<Content> {
    let mut random = Random::new(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes = random.next().to_le_bytes().to_vec();
    bytes.push(1);
    for _ in 0..4 {
        bytes.extend_from_slice(&(random.next() >> 28).to_le_bytes()[..5]);
    }
    bytes.extend_from_slice(&[0x80, 1, 70]);
    (0..5).for_each(|_| bytes.extend_from_slice(&random.next().to_le_bytes()));
    Content::take(&mut Take::new(&bytes)).map_err(|m| anyhow::anyhow!("a content: {}", m.0))
}

/// Processor time of the store's work, apart.
#[derive(Default)]
struct Spent {
    look_ups: f64,
    files: f64,
}

fn work(seen: &mut Seen, dir: &Path, spent: &mut Spent) -> Result<()> {
    while let Some(work) = seen.take_work() {
        let (start, is_look_up) = (cpu_seconds(), work.is_look_up());
        seen.finish_work(work.run()?);
        *(if is_look_up { &mut spent.look_ups } else { &mut spent.files }) += cpu_seconds() - start;
    }
    // No checkpoint names them.
    seen.take_garbage().iter().try_for_each(|name| std::fs::remove_file(dir.join(name))).context("remove a file")
}

/// Fills the set, looks pages up, deletes half, and looks them up again.
fn store(pages: u64, memory: usize, dir: &Path) -> Result<Value> {
    let mut seen = new_seen(memory, dir)?;
    let mut spent = Spent::default();
    let start = cpu_seconds();
    let mut page = 0;
    for n in 0..pages {
        seen.offer(PageRef(page), &content(n)?);
        page += RECORD_BYTES + n % 977;
        if seen.has_work() {
            work(&mut seen, dir, &mut spent)?;
        }
    }
    seen.flush()?;
    work(&mut seen, dir, &mut spent)?;
    let filled = cpu_seconds() - start;
    let (on_disk, in_memory, in_files) = (seen.disk_bytes(), seen.memory_bytes() as u64, disk_bytes(dir));
    let place = |n: u64| {
        n / 977 * (977 * RECORD_BYTES + 977 * 976 / 2)
            + n % 977 * RECORD_BYTES
            + (n % 977) * (n % 977).saturating_sub(1) / 2
    };
    let mut random = Random::new(7);
    // Half of what is looked up is known.
    let mut look_up = |seen: &mut Seen, is_deleted: &dyn Fn(u64) -> bool| -> Result<Value> {
        let (mut spent, mut expected, mut wrong, mut deleted_found) =
            (Spent::default(), std::collections::BTreeMap::new(), 0u64, 0u64);
        let mut asked = std::collections::BTreeSet::new();
        for _ in 0..LOOK_UPS / 2 {
            let n = random.next() % pages;
            if asked.insert(n) {
                seen.offer(PageRef(page), &content(n)?);
                expected.insert(page, n);
                page += RECORD_BYTES;
            }
            seen.offer(PageRef(page), &content(random.next() | 1 << 63)?);
            page += RECORD_BYTES;
            if seen.has_work() {
                work(seen, dir, &mut spent)?;
            }
        }
        let looked_up = asked.len() as u64 + LOOK_UPS / 2;
        seen.want_check();
        work(seen, dir, &mut spent)?;
        while let Some(found) = seen.take_found() {
            match expected.remove(&found.page.0) {
                Some(n) => {
                    // Of a deleted one the copy is found that was looked up before.
                    let is_first = found.of.0 == place(n);
                    deleted_found += u64::from(is_deleted(n) && is_first);
                    wrong += u64::from(!(is_deleted(n) || is_first) || !found.exact);
                }
                None => wrong += 1,
            }
        }
        let missed = expected.values().filter(|n| !is_deleted(**n)).count();
        Ok(json!({
            "look_ups": looked_up, "look_ups_per_cpu_second": looked_up as f64 / spent.look_ups.max(0.001),
            "missed": missed, "wrong": wrong, "deleted_found": deleted_found, "cpu_seconds_for_files": spent.files,
        }))
    };
    let full = look_up(&mut seen, &|_| false)?;
    let mut deleting = Spent::default();
    let start = cpu_seconds();
    for n in (0..pages).step_by(2) {
        seen.delete(PageRef(place(n)));
        if seen.has_work() {
            work(&mut seen, dir, &mut deleting)?;
        }
    }
    let deleted = cpu_seconds() - start;
    let halved = look_up(&mut seen, &|n| n % 2 == 0)?;
    Ok(json!({
        "pages": pages, "filled_pages_per_cpu_second": pages as f64 / filled, "cpu_seconds_look_ups": spent.look_ups, "cpu_seconds_files": spent.files,
        "disk_bytes_per_page": on_disk as f64 / pages as f64, "memory_bytes_per_page": in_memory as f64 / pages as f64,
        "bytes_per_page": (on_disk + in_memory) as f64 / pages as f64, "directory_bytes_per_page": in_files as f64 / pages as f64,
        "full": full, "deletions_per_cpu_second": pages as f64 / 2.0 / deleted, "half_deleted": halved,
    }))
}

/// Pages that share all their keys and resemble each other in nothing: the cost must not grow with their number.
fn popular_key(pages: u64, memory: usize, dir: &Path) -> Result<Value> {
    let mut seen = new_seen(memory, dir)?;
    let keys = content(0)?.sketch.context("a sketch")?.keys;
    let mut spent = Spent::default();
    let mut halves = [0.0; 2];
    let start = cpu_seconds();
    for n in 0..pages {
        let mut content = content(n)?;
        content.sketch.as_mut().context("a sketch")?.keys = keys;
        seen.offer(PageRef(n * RECORD_BYTES), &content);
        if seen.has_work() {
            work(&mut seen, dir, &mut spent)?;
        }
        if n + 1 == pages / 2 {
            halves[0] = cpu_seconds() - start;
        }
    }
    seen.flush()?;
    halves[1] = cpu_seconds() - start - halves[0];
    Ok(json!({
        "pages": pages, "us_per_page_first_half": halves[0] * 2e6 / pages as f64, "us_per_page_second_half": halves[1] * 2e6 / pages as f64,
    }))
}

/// The last boundary of a character that is not behind `most`.
fn boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
