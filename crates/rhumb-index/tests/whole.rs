//! The index as a whole: pages in, answers out, however they are spread over parts and tiers.

use std::sync::Arc;

use proptest::prelude::*;
use rhumb_index::arrange::Arrangement;
use rhumb_index::late::{Link, LinkSource};
use rhumb_index::page::{Page, Weights};
use rhumb_index::query::Query;
use rhumb_index::search::{Nothing, Ranking, Request, Snapshot};
use rhumb_index::store::Writer;
use rhumb_store::disk::{Disk, Overlay, RealDisk};

const WORDS: [&str; 24] = [
    "harbour", "lantern", "meadow", "copper", "violet", "engine", "river", "castle", "orchard", "signal", "marble",
    "forest", "bridge", "candle", "winter", "garden", "mirror", "thunder", "velvet", "anchor", "pepper", "quartz",
    "saddle", "tunnel",
];

/// A page made up from a seed, with words as skewed as those of real ones.
#[derive(Clone, Debug)]
struct Made {
    id: u64,
    url: String,
    title: String,
    text: String,
}

fn made(id: u64, seed: u64) -> Made {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id;
    let mut next = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut words = |n: u64| {
        let n = 1 + next(n);
        let mut words = Vec::new();
        for _ in 0..n {
            let limit = 1 + next(24);
            words.push(WORDS[next(limit) as usize]);
        }
        words.join(" ")
    };
    let (title, text) = (words(4), words(60));
    let host = id % 7;
    Made { id, url: format!("http://h{host}.example/p{id}"), title, text }
}

fn page(made: &Made) -> Page<'_> {
    Page {
        id: made.id,
        url: &made.url,
        title: &made.title,
        text: &made.text,
        declared: "en",
        kind: "html",
        ..Page::default()
    }
}

/// Links from each page to a few with small numbers.
struct Links(Vec<Made>);

impl LinkSource for Links {
    fn each_link(&mut self, each: &mut dyn FnMut(&Link<'_>)) -> rhumb_index::Result<()> {
        for page in &self.0 {
            for step in 1..4u64 {
                let target = page.id / (1 << step);
                let text = &self.0[(target % self.0.len() as u64) as usize].title;
                each(&Link { source: page.id, source_host: page.id % 7, target, text });
            }
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

fn disk() -> (tempfile::TempDir, Arc<dyn Disk>) {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = Overlay::new(RealDisk::new(dir.path()));
    (dir, disk)
}

fn one_band() -> Arrangement {
    Arrangement { shares: Vec::new(), ..Arrangement::default() }
}

fn answers(disk: &Arc<dyn Disk>, typed: &str, limit: usize, tiered: bool) -> Vec<(u64, f64)> {
    let index = Snapshot::open(disk.clone()).expect("opened").expect("an index");
    let query = Query::parse(typed);
    let request = Request { tiered, ..Request::new(&query, limit) };
    let (found, _) = index.search(&request, &Ranking::default(), &Nothing).expect("searched");
    found.hits.iter().map(|hit| (hit.id, hit.score)).collect()
}

fn built(disk: &Arc<dyn Disk>, pages: &[Made], flush_every: usize, how: Option<&Arrangement>) {
    let mut writer = Writer::open(disk.clone(), Weights::default(), 8 << 20).expect("opened");
    for chunk in pages.chunks(flush_every.max(1)) {
        for made in chunk {
            writer.add(&page(made)).expect("added");
        }
        writer.flush().expect("flushed");
        while writer.merge().expect("merged") {}
    }
    if let Some(how) = how {
        writer.settle(&mut Links(pages.to_vec()), how, 1).expect("arranged");
    }
}

const QUERIES: [&str; 12] = [
    "harbour",
    "lantern meadow",
    "copper violet engine",
    "tunnel saddle quartz pepper",
    "\"river castle\"",
    "+signal -marble forest",
    "intitle:garden winter",
    "site:h3.example mirror",
    "velv*",
    "thunder thunder velvet anchor harbour meadow bridge candle",
    "-harbour",
    "site:h1.example",
];

#[test]
fn answers_do_not_depend_on_how_pages_are_spread() {
    let pages: Vec<Made> = (1..1_500).map(|id| made(id, 7)).collect();
    let (_a, whole) = disk();
    built(&whole, &pages, 10_000, Some(&one_band()));
    for (flush_every, shares) in [(10_000, vec![0.1]), (300, vec![0.05, 0.3]), (97, vec![0.02, 0.2, 0.5]), (41, vec![])]
    {
        let (_b, spread) = disk();
        let how = Arrangement { shares: shares.clone(), pages_min: 10, memory_bytes: 100_000 };
        built(&spread, &pages, flush_every, Some(&how));
        let index = Snapshot::open(spread.clone()).expect("opened").expect("an index");
        assert_eq!(index.list().parts.len(), shares.len() + 1);
        for query in QUERIES {
            for limit in [1, 10, 50] {
                // With room for all of them, no page is passed over.
                let mut expected = answers(&whole, query, 999, false);
                expected.truncate(limit);
                assert!(!expected.is_empty(), "{query}");
                assert_eq!(answers(&whole, query, limit, false), expected, "{query}, {limit} of all");
                assert_eq!(
                    answers(&spread, query, limit, true),
                    expected,
                    "{query}, {limit} of {shares:?} every {flush_every}"
                );
                assert_eq!(answers(&spread, query, limit, false), expected, "{query} untiered");
            }
        }
    }
}

#[test]
fn the_first_tier_has_answers_of_its_own() {
    let pages: Vec<Made> = (1..3_000).map(|id| made(id, 3)).collect();
    let (_dir, disk) = disk();
    // Nobody links to the other pages.
    let how = Arrangement { shares: vec![0.6], pages_min: 10, ..Arrangement::default() };
    built(&disk, &pages, 1_000, Some(&how));
    let index = Snapshot::open(disk).expect("opened").expect("an index");
    let tier = |typed: &str, ranking: &Ranking| {
        let query = Query::parse(typed);
        index.search(&Request::new(&query, 5), ranking, &Nothing).expect("searched").0.tier
    };
    let by_rank = Ranking { rank: 2.0, ..Ranking::default() };
    assert_eq!(tier("harbour", &by_rank), 1, "rank decides");
    assert_eq!(
        tier("harbour", &Ranking { rank: 0.0, anchor: 0.0, ..Ranking::default() }),
        2,
        "nothing rules the second tier out"
    );
}

#[test]
fn a_page_that_changed_is_found_as_what_it_is_now() {
    let (_dir, disk) = disk();
    let mut writer = Writer::open(disk.clone(), Weights::default(), 8 << 20).expect("opened");
    let add = |writer: &mut Writer, text: &str| {
        let made = Made { id: 5, url: "http://a.example/".into(), title: "t".into(), text: text.into() };
        writer.add(&page(&made)).expect("added");
    };
    add(&mut writer, "first words");
    add(&mut writer, "second words");
    writer.flush().expect("flushed");
    let count = |typed: &str| answers(&disk, typed, 10, true).len();
    assert_eq!((count("first"), count("second")), (0, 1));
    add(&mut writer, "third words");
    writer.flush().expect("flushed");
    assert_eq!((count("second"), count("third"), count("words")), (0, 1, 1));
    writer.settle(&mut Links(vec![made(5, 1)]), &one_band(), 1).expect("arranged");
    assert_eq!((count("second"), count("third"), count("words")), (0, 1, 1));
    assert!(writer.remove(5) && !writer.remove(5));
    writer.flush().expect("flushed");
    assert_eq!(count("words"), 0);
    drop(writer);
    let writer = Writer::open(disk.clone(), Weights::default(), 8 << 20).expect("opened again");
    assert_eq!(writer.pages(), 0);
}

/// Pages come, change and go while others are arranged.
#[test]
fn what_happens_during_arranging_is_not_lost() {
    let (_dir, disk) = disk();
    let mut writer = Writer::open(disk.clone(), Weights::default(), 8 << 20).expect("opened");
    let mut pages: Vec<Made> = (1..400).map(|id| made(id, 1)).collect();
    for chunk in pages.chunks(100) {
        chunk.iter().for_each(|made| writer.add(&page(made)).expect("added"));
        writer.flush().expect("flushed");
    }
    let how = Arrangement { shares: vec![0.2], pages_min: 10, ..Arrangement::default() };
    let job = writer.begin_arranging(&how, 1).expect("begun");
    assert!(writer.remove(7));
    pages.retain(|made| made.id != 7);
    pages[20] = made(pages[20].id, 2);
    writer.add(&page(&pages[20])).expect("added");
    writer.note_duplicate(50, 51);
    for id in 400..420 {
        pages.push(made(id, 1));
        writer.add(&page(pages.last().expect("one"))).expect("added");
        writer.flush().expect("flushed");
        while writer.merge().expect("merged") {}
    }
    let arranged = job.run(&mut Links(pages.clone())).expect("arranged");
    writer.finish_arranging(arranged).expect("finished");
    assert_eq!(writer.pages(), pages.len() as u64);
    writer.settle(&mut Links(pages.clone()), &one_band(), 1).expect("settled");
    drop(writer);
    let (_b, fresh) = self::disk();
    let mut writer = Writer::open(fresh.clone(), Weights::default(), 8 << 20).expect("opened");
    pages.iter().for_each(|made| writer.add(&page(made)).expect("added"));
    writer.note_duplicate(50, 51);
    writer.settle(&mut Links(pages), &one_band(), 1).expect("settled");
    for query in QUERIES {
        assert_eq!(answers(&disk, query, 20, true), answers(&fresh, query, 20, false), "{query}");
    }
}

#[test]
fn duplicates_are_shown_when_asked_for() {
    let (_dir, disk) = disk();
    let mut writer = Writer::open(disk.clone(), Weights::default(), 8 << 20).expect("opened");
    let pages: Vec<Made> =
        (1..=3).map(|id| Made { text: "same words".into(), title: "t".into(), ..made(id, 1) }).collect();
    pages.iter().for_each(|made| writer.add(&page(made)).expect("added"));
    writer.note_duplicate(2, 1);
    writer.flush().expect("flushed");
    writer.note_duplicate(3, 1);
    writer.flush().expect("flushed");
    let found = |typed: &str| {
        let mut ids: Vec<u64> = answers(&disk, typed, 10, true).iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    };
    let check = || {
        assert_eq!(found("same"), [1]);
        assert_eq!(found("same dup:"), [1, 2, 3]);
        assert_eq!(found("same +dup:"), [2, 3]);
    };
    check();
    writer.settle(&mut Links(pages), &one_band(), 1).expect("arranged");
    check();
}

#[test]
fn links_speak_for_pages() {
    let (_dir, disk) = disk();
    let pages: Vec<Made> =
        (1..=40).map(|id| Made { text: "plain words".into(), title: format!("t{id}"), ..made(id, 1) }).collect();
    struct One;
    impl LinkSource for One {
        fn each_link(&mut self, each: &mut dyn FnMut(&Link<'_>)) -> rhumb_index::Result<()> {
            for source in 2..20 {
                each(&Link { source, source_host: source, target: 1, text: "Lighthouses" });
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
    let mut writer = Writer::open(disk.clone(), Weights::default(), 8 << 20).expect("opened");
    pages.iter().for_each(|made| writer.add(&page(made)).expect("added"));
    writer.flush().expect("flushed");
    assert!(answers(&disk, "lighthouse", 5, true).is_empty());
    writer.settle(&mut One, &one_band(), 1).expect("arranged");
    assert_eq!(answers(&disk, "lighthouse", 5, true)[0].0, 1);
    assert_eq!(answers(&disk, "plain", 5, true)[0].0, 1, "and its rank counts whatever is asked");
    let index = Snapshot::open(disk).expect("opened").expect("an index");
    let query = Query::parse("lighthouse");
    let request = Request::new(&query, 5);
    let (found, plan) = index.search(&request, &Ranking::default(), &Nothing).expect("searched");
    let parts = index.explain(&found.hits[0], &plan, &request, &Ranking::default()).expect("explained");
    let sum: f64 = parts.iter().map(|part| part.score).sum();
    assert!((sum - found.hits[0].score).abs() < 1e-9, "{parts:?}");
    assert!(parts.iter().any(|part| part.what.starts_with("links")) && parts.iter().any(|part| part.what == "rank"));
    assert_eq!(index.show(&found.hits[0], &plan, 200, &Nothing).expect("shown").links_in, 18);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever is added, replaced and removed in whatever order, with restarts in between: the same as a fresh index of what is left.
    #[test]
    fn history_does_not_matter(steps in proptest::collection::vec((0u8..12, 1u64..40, 0u64..4), 1..120)) {
        let (_a, worn) = disk();
        let mut model = std::collections::BTreeMap::<u64, Made>::new();
        let mut writer = Writer::open(worn.clone(), Weights::default(), 8 << 20).expect("opened");
        for (step, id, seed) in steps {
            match step {
                0..=6 => {
                    let made = made(id, seed);
                    writer.add(&page(&made)).expect("added");
                    model.insert(id, made);
                }
                7 | 8 => {
                    prop_assert_eq!(writer.remove(id), model.remove(&id).is_some());
                }
                9 => writer.flush().expect("flushed"),
                10 => while writer.merge().expect("merged") {},
                _ => {
                    writer.flush().expect("flushed");
                    drop(writer);
                    writer = Writer::open(worn.clone(), Weights::default(), 8 << 20).expect("opened");
                }
            }
        }
        let left: Vec<Made> = model.into_values().collect();
        prop_assert_eq!(writer.pages(), left.len() as u64);
        let how = Arrangement { shares: vec![0.3], pages_min: 5, ..Arrangement::default() };
        writer.settle(&mut Links(left.clone()), &how, 1).expect("arranged");
        let (_b, fresh) = disk();
        built(&fresh, &left, 10_000, Some(&one_band()));
        for query in QUERIES {
            prop_assert_eq!(answers(&worn, query, 10, true), answers(&fresh, query, 10, false), "{}", query);
        }
    }
}

/// Whoever still has parts of the old index open does not take new ones for them.
#[test]
fn an_index_that_is_made_anew_is_not_taken_for_the_old_one() {
    let (_a, disk) = disk();
    let (before, after): (Vec<Made>, Vec<Made>) = (1..40).map(|id| (made(id, 1), made(id, 2))).unzip();
    built(&disk, &before, 100, Some(&one_band()));
    let old = Snapshot::open(disk.clone()).expect("opened").expect("an index");
    rhumb_index::store::discard(&*disk).expect("forgotten");
    assert!(old.renewed().expect("looked").is_none(), "there is nothing newer yet");
    built(&disk, &after, 100, Some(&one_band()));
    let renewed = old.renewed().expect("looked").expect("there is a newer one");
    let numbers = |index: &Snapshot| index.list().parts.iter().map(|part| part.number).collect::<Vec<_>>();
    assert!(numbers(&old).iter().all(|number| !numbers(&renewed).contains(number)));
    for typed in QUERIES {
        let query = Query::parse(typed);
        let (found, _) = renewed.search(&Request::new(&query, 10), &Ranking::default(), &Nothing).expect("searched");
        let found: Vec<(u64, f64)> = found.hits.iter().map(|hit| (hit.id, hit.score)).collect();
        assert_eq!(found, answers(&disk, typed, 10, true), "{typed}");
    }
    // Nothing of the old one is left.
    let files = disk.list("index").expect("listed");
    let known = |name: &String| numbers(&renewed).iter().any(|n| name.starts_with(&format!("{n:06}")));
    assert!(files.iter().filter(|name| *name != "parts").all(known), "{files:?}");
}

#[test]
fn a_duplicate_is_hidden_as_long_as_another_page_stands_for_it() {
    let (_a, disk) = disk();
    let pages: Vec<Made> = (1..4).map(|id| Made { text: "harbour".to_string(), ..made(id, 1) }).collect();
    built(&disk, &pages, 100, None);
    let ids = || {
        let mut ids: Vec<u64> = answers(&disk, "harbour", 10, true).into_iter().map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    };
    let change = |act: &dyn Fn(&mut Writer)| {
        let mut writer = Writer::open(disk.clone(), Weights::default(), 8 << 20).expect("opened");
        act(&mut writer);
        writer.flush().expect("flushed");
    };
    change(&|writer| writer.note_duplicate(2, 1));
    assert_eq!(ids(), [1, 3]);
    // Found to be duplicates of each other, one after the other: one of them stands for both.
    change(&|writer| writer.note_duplicate(1, 2));
    assert_eq!(ids(), [1, 3]);
    change(&|writer| assert!(writer.remove(1)));
    assert_eq!(ids(), [2, 3]);
}
