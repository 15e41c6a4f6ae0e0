//! The text index: what indexing a page and answering a query cost, beside bare tantivy on the same pages in the same run.
//!
//! Pages are made up: words as skewed as those of a language, topics that share some of them, titles, headings, emphasis, and links of which
//! most lead to few pages. Queries are words of the titles of pages, of popular ones more often than of others, and of texts; from one to
//! five words, as people type them (Jansen and Spink, 2006: a quarter each have one and two, a fifth three, the rest more).

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rhumb_core::outcome::Outcome;
use rhumb_core::page::{Heading, PageText};
use rhumb_core::priority::Random;
use rhumb_core::record::Record;
use rhumb_core::url::Url;
use rhumb_core::visit::{Entry, LinkKind, Outlink, Purpose, VisitRecord};
use rhumb_index::arrange::Arrangement;
use rhumb_index::bare::{self, Bare};
use rhumb_index::late::{Link, LinkSource};
use rhumb_index::page::{Page, Weights};
use rhumb_index::query::Query;
use rhumb_index::search::{Nothing, Ranking, Request, Snapshot};
use rhumb_index::store::Writer;
use rhumb_store::Timestamp;
use rhumb_store::disk::{Disk, RealDisk};
use rhumb_store::log::{Log, Position};
use serde_json::{Value, json};

use super::{cpu_seconds, disk_bytes};
use crate::search::fold::{self, LogLinks, Reached};

/// Words there are, topics, and words of a topic.
const WORDS: usize = 120_000;
const TOPICS: u64 = 300;
const TOPIC_WORDS: u64 = 400;
/// Words of a text of 10 KB of markup, on average.
const TEXT_WORDS: u64 = 620;
const LINKS: u64 = 20;
const HOST_PAGES: u64 = 50;
/// Memory for pages that are not on disk yet.
const MEMORY_BYTES: usize = 64 << 20;

/// The made-up pages.
struct Pages {
    words: Vec<String>,
    pages: u64,
    seed: u64,
}

/// One of them.
#[derive(Default)]
struct Made {
    url: String,
    title: String,
    text: String,
    headings: Vec<Range<usize>>,
    emphasis: Vec<Range<usize>>,
}

impl Pages {
    fn new(pages: u64, seed: u64) -> Pages {
        let mut random = Random::new(seed);
        let syllables =
            ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu", "pla", "gre", "sti", "dor", "fen", "mar"];
        let mut words = Vec::with_capacity(WORDS);
        for n in 0..WORDS {
            let mut word = String::new();
            for _ in 0..2 + below(&mut random, 3) {
                word.push_str(syllables[below(&mut random, 16) as usize]);
            }
            // So that all are different, whatever their endings.
            let mut rest = n;
            while rest > 0 {
                word.push((b'a' + (rest % 26) as u8) as char);
                rest /= 26;
            }
            words.push(word);
        }
        Pages { words, pages, seed }
    }

    fn random(&self, page: u64, purpose: u64) -> Random {
        Random::new(self.seed ^ page.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ purpose << 56)
    }

    /// A word of the language: the frequent ones much more often (Zipf).
    fn word(&self, random: &mut Random) -> usize {
        let u = random.unit();
        ((WORDS as f64).powf(u) - 1.0) as usize
    }

    /// A word of a topic, neither of the most frequent ones nor of the rarest.
    fn topic_word(&self, topic: u64, random: &mut Random) -> usize {
        let u = random.unit();
        let rank = ((TOPIC_WORDS as f64).powf(u) - 1.0) as u64;
        200 + (topic.wrapping_mul(7_919).wrapping_add(rank.wrapping_mul(104_729)) % (WORDS as u64 - 200)) as usize
    }

    fn topic(&self, page: u64) -> u64 {
        // Hosts have topics.
        below(&mut Random::new(page / HOST_PAGES), TOPICS)
    }

    fn url(&self, page: u64) -> String {
        format!("http://h{}.example/{}", page / HOST_PAGES, page % HOST_PAGES)
    }

    fn put_title(&self, page: u64, title: &mut String) {
        let (mut random, topic) = (self.random(page, 1), self.topic(page));
        title.clear();
        for i in 0..3 + below(&mut random, 3) {
            let word =
                if below(&mut random, 3) > 0 { self.topic_word(topic, &mut random) } else { self.word(&mut random) };
            title.push_str(if i > 0 { " " } else { "" });
            title.push_str(&self.words[word]);
        }
    }

    fn make(&self, page: u64, made: &mut Made) {
        let (mut random, topic) = (self.random(page, 2), self.topic(page));
        made.url = self.url(page);
        self.put_title(page, &mut made.title);
        made.text.clear();
        made.headings.clear();
        made.emphasis.clear();
        made.text.push_str(&made.title);
        made.headings.push(0..made.title.len());
        made.text.push('\n');
        let words = TEXT_WORDS / 2 + below(&mut random, TEXT_WORDS);
        for i in 0..words {
            let word =
                if below(&mut random, 10) < 3 { self.topic_word(topic, &mut random) } else { self.word(&mut random) };
            let from = made.text.len();
            made.text.push_str(&self.words[word]);
            match i % 90 {
                0 => made.headings.push(from..made.text.len()),
                45 => made.emphasis.push(from..made.text.len()),
                _ => {}
            }
            made.text.push(if i % 90 == 0 { '\n' } else { ' ' });
        }
        made.text.pop();
    }

    /// A page that is linked to: a few of them by most.
    fn target(&self, random: &mut Random) -> u64 {
        let u = random.unit();
        let rank = ((self.pages as f64).powf(u) - 1.0) as u64;
        // The popular ones are anywhere.
        rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.pages
    }

    fn each_link(&self, page: u64, mut each: impl FnMut(u64)) {
        let mut random = self.random(page, 3);
        for _ in 0..LINKS {
            let near = below(&mut random, 2) == 0;
            let first = page / HOST_PAGES * HOST_PAGES;
            each(if near {
                (first + below(&mut random, HOST_PAGES)).min(self.pages - 1)
            } else {
                self.target(&mut random)
            });
        }
    }

    fn as_page<'a>(&self, page: u64, made: &'a Made) -> Page<'a> {
        Page {
            id: id(page),
            url: &made.url,
            title: &made.title,
            text: &made.text,
            headings: &made.headings,
            emphasis: &made.emphasis,
            declared: "en",
            kind: "html",
            date_ms: page as i64,
            fetched_ms: page as i64,
            ..Page::default()
        }
    }

    fn query(&self, random: &mut Random) -> String {
        let length = match below(random, 100) {
            0..28 => 1,
            28..60 => 2,
            60..81 => 3,
            81..93 => 4,
            _ => 5,
        };
        let page = self.target(random);
        let mut made = Made::default();
        self.make(page, &mut made);
        let of_title = below(random, 10) < 7;
        let words: Vec<&str> =
            if of_title { made.title.split(' ').collect() } else { made.text.split_whitespace().collect() };
        let from = below(random, words.len().saturating_sub(length) as u64) as usize;
        words[from..(from + length).min(words.len())].join(" ")
    }
}

fn below(random: &mut Random, n: u64) -> u64 {
    random.next() % n.max(1)
}

fn id(page: u64) -> u64 {
    (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl LinkSource for &Pages {
    fn each_link(&mut self, each: &mut dyn FnMut(&Link<'_>)) -> rhumb_index::Result<()> {
        let mut text = String::new();
        for page in 0..self.pages {
            Pages::each_link(self, page, |target| {
                self.put_title(target, &mut text);
                each(&Link { source: id(page), source_host: page / HOST_PAGES, target: id(target), text: &text });
            });
        }
        Ok(())
    }

    fn quality(&mut self, _: &str) -> Option<f32> {
        None
    }

    fn has_ranks(&self) -> bool {
        false
    }
}

/// What indexing costs: from the log to an index at rest, beside bare tantivy given the same fields. All kinds take turns; the lowest counts.
pub fn index(pages: u64, rounds: usize, dir: &Path) -> Result<Value> {
    let made = Pages::new(pages, 7);
    let disk = RealDisk::new(dir);
    write_log(&made, &disk)?;
    let log_bytes = fold::log_bytes(&*disk)?;
    let (mut ours, mut added, mut theirs) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds.max(1) {
        rhumb_index::store::discard(&*disk)?;
        let began = cpu_seconds();
        let mut writer = Writer::open(disk.clone(), Weights::default(), MEMORY_BYTES)?;
        while fold::follow(&mut writer, &disk)? == Reached::Full {
            writer.flush()?;
            while writer.merge()? {}
        }
        writer.flush()?;
        added = added.min(cpu_seconds() - began);
        let mut links = LogLinks::new(disk.clone(), writer.position(), None)?;
        writer.settle(&mut links, &Arrangement::default(), log_bytes)?;
        ours = ours.min(cpu_seconds() - began);
        drop(writer);
        theirs = theirs.min(bare_index(&made)?);
    }
    let per_page = |seconds: f64| seconds * 1e3 / pages as f64;
    Ok(json!({
        "pages": pages, "cpu_ms_per_page": per_page(ours), "of_that_before_links": per_page(added),
        "bare_cpu_ms_per_page": per_page(theirs), "ratio": ours / theirs, "ratio_max": 1.25, "cpu_ms_per_page_max": 0.25,
        "index_bytes_per_page": disk_bytes(&dir.join("index")) / pages, "log_bytes_per_page": log_bytes / pages,
        "passed": ours / theirs <= 1.25 && per_page(ours) <= 0.25,
    }))
}

/// CPU seconds of bare tantivy; making up the pages is not counted.
fn bare_index(pages: &Pages) -> Result<f64> {
    let mut anchors = vec![Vec::<u32>::new(); pages.pages as usize];
    for page in 0..pages.pages {
        pages.each_link(page, |target| anchors[target as usize].push(page as u32));
    }
    let mut bare = Bare::new(MEMORY_BYTES)?;
    let (mut made, mut text, mut spent) = (Made::default(), String::new(), 0.0);
    // In steps, because processor time is counted in hundredths of a second.
    const STEP: u64 = 1_000;
    for first in (0..pages.pages).step_by(STEP as usize) {
        let mut batch = Vec::new();
        for page in first..(first + STEP).min(pages.pages) {
            pages.make(page, &mut made);
            // What our own index keeps of the links to a page.
            text.clear();
            pages.put_title(page, &mut text);
            let said = if anchors[page as usize].is_empty() { String::new() } else { text.clone() };
            batch.push((page, std::mem::take(&mut made), said));
        }
        let began = cpu_seconds();
        for (page, made, said) in &batch {
            bare.add(&pages.as_page(*page, made), said)?;
        }
        spent += cpu_seconds() - began;
    }
    let began = cpu_seconds();
    bare.finish()?;
    Ok(spent + cpu_seconds() - began)
}

fn write_log(pages: &Pages, disk: &Arc<dyn Disk>) -> Result<()> {
    disk.make_dir("log")?;
    let mut log = Log::open(disk.clone(), Position::default(), 1 << 30)?;
    let mut made = Made::default();
    let mut text = String::new();
    for page in 0..pages.pages {
        pages.make(page, &mut made);
        let said = PageText {
            text: made.text.clone(),
            headings: made.headings.iter().map(|span| Heading { level: 2, span: span.clone() }).collect(),
            emphasis: made.emphasis.clone(),
            description: String::new(),
        };
        let url = |text: &str| Url::parse(text).context("a URL");
        let at = Timestamp(1_700_000_000_000 + page);
        let mut visit = VisitRecord::bare(Entry::new(url(&made.url)?, 0), Purpose::Page, at, at, Outcome::Ok);
        visit.said = Some(said.to_bytes().into());
        visit.title = made.title.as_str().into();
        visit.language = "en".into();
        let mut failed = None;
        pages.each_link(page, |target| {
            pages.put_title(target, &mut text);
            match url(&pages.url(target)) {
                Ok(url) => {
                    visit.links.push(Outlink { text: text.as_str().into(), ..Outlink::bare(url, LinkKind::A, true) })
                }
                Err(e) => failed = Some(e),
            }
        });
        if let Some(e) = failed {
            return Err(e);
        }
        let record = Record::Visited(Box::new(visit));
        log.append(record.kind(), |into| record.put(into));
        if page % 256 == 255 {
            log.commit()?;
        }
    }
    log.commit()?;
    Ok(())
}

/// One way to answer a query.
type Turn<'a> = &'a dyn Fn(&Query) -> Result<()>;

/// As bare tantivy is asked: the ten best, of whatever host.
fn request(query: &Query) -> Request<'_> {
    Request { counted: false, grouped: false, ..Request::new(query, 10) }
}

/// What a query costs: tiers, all of it at once, and bare tantivy take turns, query by query.
pub fn queries(pages: u64, queries: usize, ranking: &Ranking, dir: &Path) -> Result<Value> {
    let made = Pages::new(pages, 7);
    let (tiered, whole) = (dir.join("tiered"), dir.join("whole"));
    let began = cpu_seconds();
    build(&made, &tiered, &Arrangement { memory_bytes: 1 << 30, ..Arrangement::default() })?;
    copy(&tiered, &whole)?;
    // The same pages as one part.
    let disk = RealDisk::new(&whole);
    let mut writer = Writer::open(disk, Weights::default(), MEMORY_BYTES)?;
    let one = Arrangement { shares: Vec::new(), memory_bytes: 1 << 30, ..Arrangement::default() };
    writer.settle(&mut &made, &one, 1)?;
    drop(writer);
    let built = cpu_seconds() - began;
    let open = |dir: &Path| -> Result<Snapshot> { Snapshot::open(RealDisk::new(dir))?.context("an index") };
    let (tiers, whole) = (open(&tiered)?, open(&whole)?);
    let mut random = Random::new(11);
    let typed: Vec<String> = (0..queries).map(|_| made.query(&mut random)).collect();
    let parsed: Vec<Query> = typed.iter().map(|text| Query::parse(text)).collect();
    let mut differing = Vec::new();
    let (mut first_tier, mut answers) = (0, 0);
    // Once to compare and to read everything into memory.
    for (text, query) in typed.iter().zip(&parsed) {
        let (found, _) = tiers.search(&request(query), ranking, &Nothing)?;
        let (all, plan) = whole.search(&Request { tiered: false, ..request(query) }, ranking, &Nothing)?;
        bare::search(&whole, &plan, 10)?;
        let same = |hits: &[rhumb_index::search::Hit]| {
            hits.iter().map(|hit| (hit.id, hit.score.to_bits())).collect::<Vec<_>>()
        };
        if same(&found.hits) != same(&all.hits) {
            differing.push(text.clone());
        }
        first_tier += usize::from(found.tier == 1);
        answers += usize::from(!found.hits.is_empty());
    }
    // In turns, each over all queries.
    let mut spent = [f64::INFINITY; 5];
    for _ in 0..3 {
        let turns: [Turn<'_>; 5] = [
            &|query| tiers.search(&request(query), ranking, &Nothing).map(drop).map_err(Into::into),
            &|query| whole.search(&request(query), ranking, &Nothing).map(drop).map_err(Into::into),
            &|query| {
                let plan = whole.plan(&request(query), &Nothing)?;
                Ok(bare::search(&whole, &plan, 10).map(drop)?)
            },
            &|query| {
                let plan = whole.plan(&request(query), &Nothing)?;
                Ok(bare::search_with_links(&whole, &plan, 10).map(drop)?)
            },
            &|query| {
                let grouped = Request { grouped: true, ..request(query) };
                tiers.search(&grouped, ranking, &Nothing).map(drop).map_err(Into::into)
            },
        ];
        for (turn, spent) in turns.iter().zip(&mut spent) {
            let began = cpu_seconds();
            parsed.iter().try_for_each(turn)?;
            *spent = spent.min(cpu_seconds() - began);
        }
    }
    let us = |seconds: f64| seconds * 1e6 / queries as f64;
    let share = first_tier as f64 / queries as f64;
    Ok(json!({
        "pages": pages, "queries": queries, "with_answers": answers, "built_cpu_seconds": built,
        "tiered_us": us(spent[0]), "whole_us": us(spent[1]), "bare_us": us(spent[2]), "bare_with_links_us": us(spent[3]),
        "two_of_a_host_us": us(spent[4]),
        "ratio": spent[0] / spent[2], "ratio_max": 1.15,
        "first_tier_alone": share, "first_tier_alone_min": 0.9, "differing": differing.len(),
        "examples": differing.iter().take(3).collect::<Vec<_>>(),
        "passed": spent[0] / spent[2] <= 1.15 && share >= 0.9 && differing.is_empty(),
    }))
}

fn build(pages: &Pages, dir: &Path, how: &Arrangement) -> Result<()> {
    std::fs::create_dir_all(dir).context("make a directory")?;
    let mut writer = Writer::open(RealDisk::new(dir), Weights::default(), 4 * MEMORY_BYTES)?;
    let mut made = Made::default();
    for page in 0..pages.pages {
        pages.make(page, &mut made);
        writer.add(&pages.as_page(page, &made))?;
        if writer.is_full() {
            writer.flush()?;
        }
    }
    let mut source = pages;
    writer.settle(&mut source, how, 1)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to.join("index")).context("make a directory")?;
    for entry in std::fs::read_dir(from.join("index")).context("list files")? {
        let path = entry.context("list files")?.path();
        let name = path.file_name().context("a name")?;
        std::fs::copy(&path, to.join("index").join(name)).context("copy a file")?;
    }
    Ok(())
}
