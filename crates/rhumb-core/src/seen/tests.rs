//! The set of known pages against a naive model: every page compared with every older one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rhumb_store::codec::Take;
use rhumb_store::disk::{Disk, RealDisk};

use super::level::{Entry, keys_of};
use super::*;
use crate::priority::Random;

fn small() -> SeenConfig {
    SeenConfig { batch_pages_max: 7, memory_pages_max: 12, recent_max: 64 }
}

/// A text of a family, with some of its words changed.
fn content(family: u64, edits: &[u8], words: usize) -> Content {
    let mut random = Random::new(family);
    let mut text: Vec<String> = (0..words).map(|_| format!("w{}", random.next() % 1_000)).collect();
    for &edit in edits {
        text[usize::from(edit) % words] = format!("edit{edit}");
    }
    Content::of(&text.join(" ")).expect("words")
}

/// Every page that was not deleted, by brute force.
#[derive(Default)]
struct Model {
    pages: BTreeMap<u64, (Entry, BTreeSet<u64>)>,
}

impl Model {
    fn offer(&mut self, page: u64, content: &Content) -> Option<Found> {
        let mut entry = Entry::new(page, content);
        let keys: BTreeSet<u64> = keys_of(content).collect();
        let stands = |e: &Entry| e.of.is_none_or(|of| !self.pages.contains_key(&of));
        let mut best: Option<Found> = None;
        for (older, their_keys) in self.pages.values().filter(|(e, _)| stands(e)) {
            let Some((similarity, exact)) = older.resembles(&entry).filter(|_| !keys.is_disjoint(their_keys)) else {
                continue;
            };
            if best.is_none_or(|b| (exact, similarity) > (b.exact, b.similarity)) {
                best = Some(Found { page: PageRef(page), of: PageRef(older.page), similarity, exact });
            }
        }
        entry.of = best.map(|b| b.of.0);
        self.pages.insert(page, (entry, keys));
        best
    }
}

#[derive(Clone, Debug)]
enum Op {
    Offer { family: u64, edits: Vec<u8>, words: usize },
    Again,
    Delete(prop::sample::Index),
    Restart,
    Flush,
}

fn op() -> impl Strategy<Value = Op> {
    let offer = (0..6u64, proptest::collection::vec(any::<u8>(), 0..3), prop_oneof![Just(3usize), Just(60), Just(150)]);
    prop_oneof![
        12 => offer.prop_map(|(family, edits, words)| Op::Offer { family, edits, words }),
        1 => Just(Op::Again),
        3 => any::<prop::sample::Index>().prop_map(Op::Delete),
        1 => Just(Op::Restart),
        1 => Just(Op::Flush),
    ]
}

/// Through a checkpoint: files that it does not name are removed as after a crash.
fn restart(disk: &Arc<dyn Disk>, seen: Seen) -> Seen {
    let mut body = Vec::new();
    seen.save(&mut body);
    drop(seen);
    let mut from = Take::new(&body);
    let seen = Seen::load(disk.clone(), small(), &mut from).expect("load");
    assert!(from.is_empty());
    let needed: BTreeSet<&str> = seen.file_names().collect();
    for name in disk.list(DIR).expect("list").iter().map(|n| format!("{DIR}/{n}")) {
        if !needed.contains(name.as_str()) {
            disk.remove(&name).expect("remove");
        }
    }
    seen
}

fn disk(dir: &Path) -> Arc<dyn Disk> {
    let disk = RealDisk::new(dir);
    disk.make_dir("state").expect("make a directory");
    disk
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_found_is_what_brute_force_finds(ops in proptest::collection::vec(op(), 1..150)) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = disk(dir.path());
        let mut seen = Seen::new(disk.clone(), small()).expect("new");
        let mut model = Model::default();
        let mut contents: BTreeMap<u64, Content> = BTreeMap::new();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        let mut page = 0;
        for op in ops {
            match op {
                Op::Offer { family, edits, words } => {
                    page += 1 + family * 1000;
                    let content = content(family, &edits, words);
                    seen.offer(PageRef(page), &content);
                    seen.work().expect("work");
                    expected.extend(model.offer(page, &content));
                    contents.insert(page, content);
                }
                Op::Again => for (page, content) in &contents {
                    seen.offer(PageRef(*page), content);
                },
                Op::Delete(index) => if !contents.is_empty() {
                    // A deletion counts from the next look-up on; here it is said which one that is.
                    seen.flush().expect("flush");
                    found.extend(std::iter::from_fn(|| seen.take_found()));
                    let page = *contents.keys().nth(index.index(contents.len())).expect("a page");
                    contents.remove(&page);
                    seen.delete(PageRef(page));
                    model.pages.remove(&page);
                },
                Op::Restart => {
                    found.extend(std::iter::from_fn(|| seen.take_found()));
                    found.iter().for_each(|f: &Found| seen.reported(f.page));
                    seen = restart(&disk, seen);
                }
                Op::Flush => seen.flush().expect("flush"),
            }
            seen.take_garbage();
        }
        seen.flush().expect("flush");
        found.extend(std::iter::from_fn(|| seen.take_found()));
        prop_assert_eq!(found, expected);
    }

    /// A crash at any time: what was offered since the checkpoint is offered again, and each duplicate comes out once.
    #[test]
    fn a_replay_finds_the_same(
        offers in proptest::collection::vec((0..4u64, proptest::collection::vec(any::<u8>(), 0..2)), 1..80),
        saved_at in any::<prop::sample::Index>(),
        logged in 0..100usize,
    ) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = disk(dir.path());
        let mut seen = Seen::new(disk.clone(), small()).expect("new");
        let contents: Vec<Content> = offers.iter().map(|(family, edits)| content(*family, edits, 80)).collect();
        let saved_at = saved_at.index(contents.len());
        let (mut body, mut found) = (Vec::new(), Vec::new());
        for (i, content) in contents.iter().enumerate() {
            seen.offer(PageRef(i as u64), content);
            // Work that is out when the checkpoint is taken.
            let work = seen.take_work();
            if i == saved_at {
                seen.save(&mut body);
            }
            if let Some(work) = work {
                seen.finish_work(work.run().expect("work"));
            }
            found.extend(std::iter::from_fn(|| seen.take_found()));
        }
        seen.flush().expect("flush");
        found.extend(std::iter::from_fn(|| seen.take_found()));
        // The log has some of it.
        let logged = logged.min(found.len());
        let mut seen = Seen::load(disk.clone(), small(), &mut Take::new(&body)).expect("load");
        let mut again = Vec::new();
        for (i, content) in contents.iter().enumerate() {
            seen.offer(PageRef(i as u64), content);
        }
        found[..logged].iter().for_each(|f| seen.reported(f.page));
        seen.flush().expect("flush");
        again.extend(std::iter::from_fn(|| seen.take_found()));
        let before_checkpoint = found.iter().skip(logged).filter(|f| !again.contains(f)).count();
        // What was taken before the checkpoint is the log's business: a checkpoint is taken behind what is in the log.
        prop_assert_eq!(&found[logged + before_checkpoint..], &again[..]);
        prop_assert!(found.iter().skip(logged).take(before_checkpoint).all(|f| f.page.0 as usize <= saved_at));
    }
}

#[test]
fn the_followers_of_a_deleted_page_stand_for_themselves() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut seen = Seen::new(disk(dir.path()), small()).expect("new");
    let one = content(1, &[], 150);
    let of = |seen: &mut Seen, page: u64| {
        seen.offer(PageRef(page), &one);
        seen.flush().expect("flush");
        seen.take_found().map(|f| f.of.0)
    };
    assert_eq!([1, 2, 3].map(|page| of(&mut seen, page)), [None, Some(1), Some(1)]);
    seen.delete(PageRef(1));
    assert_eq!(of(&mut seen, 4), Some(2), "the oldest that is left");
    // Now on disk, in several levels.
    for page in 5..40 {
        seen.offer(PageRef(page), &content(page, &[], 60));
        seen.flush().expect("flush");
    }
    assert_eq!(of(&mut seen, 40), Some(2));
    seen.delete(PageRef(2));
    assert_eq!(of(&mut seen, 41), Some(3));
    [3, 4, 40, 41].into_iter().for_each(|page| seen.delete(PageRef(page)));
    assert_eq!(of(&mut seen, 42), None);
}

#[test]
fn half_is_deleted_and_the_other_half_is_found() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let config = SeenConfig { batch_pages_max: 100, memory_pages_max: 200, recent_max: 64 };
    let mut seen = Seen::new(disk(dir.path()), config).expect("new");
    let contents: Vec<Content> = (0..2_000).map(|n| content(n, &[], 60)).collect();
    let mut page = 0;
    let mut offer_all = |seen: &mut Seen| {
        let mut found = BTreeSet::new();
        for content in &contents {
            seen.offer(PageRef(page), content);
            seen.work().expect("work");
            page += 1;
        }
        seen.flush().expect("flush");
        found.extend(std::iter::from_fn(|| seen.take_found()).map(|f| f.of.0));
        found
    };
    assert_eq!(offer_all(&mut seen), BTreeSet::new());
    (0..2_000).step_by(2).for_each(|page| seen.delete(PageRef(page)));
    seen.work().expect("work");
    assert_eq!(offer_all(&mut seen), (1..2_000).step_by(2).collect());
    // Those that were deleted are representatives in their second coming.
    let even = (2_000..4_000).step_by(2);
    assert_eq!(offer_all(&mut seen), (1..2_000).step_by(2).chain(even).collect());
}

/// Many pages in little memory, one key for all of them, and next to no two alike.
#[test]
fn memory_is_bounded_and_a_popular_key_does_no_harm() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let bytes_max = 512 << 10;
    let mut seen = Seen::new(disk(dir.path()), SeenConfig::within(bytes_max)).expect("new");
    let common = content(0, &[], 60).sketch.expect("a sketch").keys;
    let mut content = content(0, &[], 60);
    let mut random = Random::new(1);
    for page in 0..20_000 {
        content.exact = random.next();
        let sketch = content.sketch.as_mut().expect("a sketch");
        sketch.keys = std::array::from_fn(|i| if i < 2 { common[i] } else { random.next() >> 28 });
        sketch.body.bits = std::array::from_fn(|_| random.next() as u8);
        seen.offer(PageRef(page * 4_000), &content);
        while let Some(work) = seen.take_work() {
            let done = work.run().expect("work");
            assert!(seen.memory_bytes() <= bytes_max, "{} bytes at {page}", seen.memory_bytes());
            seen.finish_work(done);
        }
        assert!(seen.memory_bytes() <= bytes_max, "{} bytes at {page}", seen.memory_bytes());
    }
    seen.flush().expect("flush");
    assert_eq!((seen.len(), seen.take_found()), (20_000, None));
    let kept = (seen.disk_bytes() as usize + seen.memory_bytes()) / 20_000;
    assert!(kept < 110, "{kept} bytes a page, most of them in memory");
}
