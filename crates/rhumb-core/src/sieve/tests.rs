//! Random histories against an exact set.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rhumb_store::codec::{Put, Take};
use rhumb_store::disk::RealDisk;

use super::*;

fn key(n: u64) -> Fingerprint {
    // One URL has the fingerprint that marks empty slots elsewhere, and one the largest.
    Fingerprint(match n {
        0 => 0,
        1 => u64::MAX,
        _ => xxhash_rust::xxh3::xxh3_64(&n.to_le_bytes()),
    })
}

fn tiny(fresh_keys_max: usize, batch_keys_max: usize) -> SieveConfig {
    SieveConfig { filter_bytes_max: 80, recent_keys: 4, fresh_keys_max, batch_keys_max, buffer_bytes: 100 }
}

/// A sieve whose work is done at moments of the test's choosing, beside what should come of it.
struct Story {
    disk: Arc<dyn Disk>,
    config: SieveConfig,
    sieve: Sieve,
    out: Vec<SieveWork>,
    /// What it should let through and what it did, as of now and as of the checkpoint.
    now: Model,
    then: Model,
    checkpoint: Vec<u8>,
}

#[derive(Clone, Default)]
struct Model {
    /// Offered since they were removed, if ever; all of these must have come through once all is done.
    due: BTreeSet<u64>,
    known: BTreeSet<u64>,
    removals: BTreeMap<u64, u64>,
    passes: BTreeMap<u64, u64>,
}

impl Model {
    fn passed(&mut self, n: u64) {
        assert!(self.known.insert(n), "{n} passes twice");
        *self.passes.entry(n).or_default() += 1;
    }
}

impl Story {
    fn new(disk: Arc<dyn Disk>, config: SieveConfig) -> Story {
        let mut sieve = Sieve::new(disk.clone(), config.clone()).expect("new");
        let mut checkpoint = Vec::new();
        sieve.save(&mut checkpoint, &mut Vec::new());
        let (now, then) = Default::default();
        Story { disk, config, sieve, out: Vec::new(), now, then, checkpoint }
    }

    fn offer(&mut self, n: u64) {
        let offered = self.sieve.offer(key(n), |b| b.put_u64(n)).expect("offer");
        self.now.due.insert(n);
        match offered {
            Offered::New => self.now.passed(n),
            Offered::Seen => {}
            Offered::Later => {}
        }
    }

    fn remove(&mut self, n: u64) {
        if self.now.known.remove(&n) {
            self.sieve.remove(key(n));
            self.now.due.remove(&n);
            *self.now.removals.entry(n).or_default() += 1;
        }
    }

    fn take_work(&mut self) {
        self.out.extend(self.sieve.take_work());
        assert!(self.out.len() <= 2);
        assert!(self.out.len() < 2 || self.out[0].lane() != self.out[1].lane(), "one piece of work per lane");
    }

    fn finish_work(&mut self, which: usize) {
        if !self.out.is_empty() {
            let work = self.out.remove(which % self.out.len());
            self.sieve.finish_work(work.run().expect("work")).expect("finish");
        }
    }

    fn let_through(&mut self, max: usize) {
        let now = &mut self.now;
        let through = |_: Fingerprint, e: &[u8]| {
            now.passed(Take::new(e).u64().expect("entry"));
            Ok(())
        };
        self.sieve.let_through(max, through).expect("let through");
    }

    fn save(&mut self) {
        self.checkpoint.clear();
        self.sieve.save(&mut self.checkpoint, &mut Vec::new());
        self.then = self.now.clone();
        for name in self.sieve.take_garbage() {
            self.disk.remove(&name).expect("remove");
        }
        for name in self.sieve.file_names() {
            assert!(self.disk.exists(name));
        }
    }

    /// Everything since the checkpoint is forgotten, by the sieve and by the model, but not by the disk.
    fn crash(&mut self) {
        self.out.clear();
        let from = &mut Take::new(&self.checkpoint);
        self.sieve = Sieve::load(self.disk.clone(), self.config.clone(), from).expect("load");
        assert!(from.is_empty());
        self.now = self.then.clone();
        let needed: BTreeSet<String> = self.sieve.file_names().map(String::from).collect();
        for name in self.disk.list(DIR).expect("list") {
            let name = format!("{DIR}/{name}");
            if !needed.contains(&name) {
                self.disk.remove(&name).expect("remove");
            }
        }
    }

    fn flush(&mut self) {
        while !self.out.is_empty() {
            self.finish_work(0);
        }
        let now = &mut self.now;
        let through = |_: Fingerprint, e: &[u8]| {
            now.passed(Take::new(e).u64().expect("entry"));
            Ok(())
        };
        self.sieve.flush(through).expect("flush");
        assert!(!self.sieve.has_pending() && !self.sieve.has_work() && !self.sieve.is_working());
        let lost: Vec<_> = self.now.due.difference(&self.now.known).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        assert_eq!(self.sieve.len(), self.now.known.len() as u64);
        for (n, passes) in &self.now.passes {
            assert!(*passes <= 1 + self.now.removals.get(n).copied().unwrap_or(0), "{n} passes {passes} times");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `each_url_once` and `nothing_lost_in_a_crash`: against an exact set, with a filter so small that it is nearly always wrong,
    /// or that grows, work done at random later moments, removals, checkpoints and crashes.
    #[test]
    fn each_url_once(
        events in proptest::collection::vec((0u64..500, 0u8..64), 1..2000),
        fresh in 5usize..60,
        batch in 2usize..300,
        removes: bool,
        filter in prop_oneof![Just(80usize), Just(350), Just(2_000)],
    ) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let config = SieveConfig { filter_bytes_max: filter, ..tiny(fresh, batch) };
        let mut story = Story::new(RealDisk::new(dir.path()), config);
        for (n, event) in events {
            match event {
                0..=1 if removes => story.remove(n),
                2..=8 => story.take_work(),
                9..=15 => story.finish_work(n as usize),
                16..=21 => story.let_through(n as usize % 20),
                22 => story.sieve.want_check(),
                23 if n < 150 => story.save(),
                24 if n < 60 => story.crash(),
                25 if n < 40 => story.flush(),
                _ => story.offer(n),
            }
        }
        story.flush();
        // What is on disk says the same as what was in memory.
        story.save();
        story.crash();
        (0..500).for_each(|n| story.offer(n));
        story.flush();
        prop_assert_eq!(story.now.known.len(), 500);
    }
}

/// In the order of discovery, and the first of equal URLs.
#[test]
fn what_waited_comes_in_order() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let disk = RealDisk::new(dir.path());
    // No filter to speak of: all wait.
    let mut sieve = Sieve::new(disk.clone(), tiny(10, 100_000)).expect("new");
    for n in 0..30 {
        sieve.offer(key(n), |_| ()).expect("offer");
        sieve.flush(|_, _| Ok(())).expect("flush");
    }
    let mut expected = Vec::new();
    for (i, n) in (0..20_000u64).map(|i| (i, i * 7919 % 12_345)).filter(|&(_, n)| n >= 30) {
        if sieve.offer(key(n), |b| b.put_u64(i)).expect("offer") == Offered::Later && i < 12_345 {
            expected.push(i);
        }
    }
    let mut came = Vec::new();
    sieve
        .flush(|_, e| {
            came.push(Take::new(e).u64().expect("entry"));
            Ok(())
        })
        .expect("flush");
    assert!(came.len() > 10_000);
    assert_eq!(came, expected);
}

/// One size follows the other up to the largest, which is the end of it: whatever the memory, nothing is rounded twice.
#[test]
fn filters_grow_to_the_largest() {
    for bytes_max in [0, 64, 1000, 99_999, 1 << 20, 100_663_296, 104_857_600, 123_456_789] {
        let (largest, _) = filter_size(u64::MAX, bytes_max);
        let sizes: std::collections::BTreeSet<usize> = (0..64).map(|i| filter_size(1 << i, bytes_max).0).collect();
        let sizes: Vec<usize> = sizes.into_iter().collect();
        assert_eq!(sizes.last(), Some(&largest));
        assert!(sizes.iter().all(|s| *s > 0 && s % 64 == 0), "{sizes:?}");
        let grows = |pair: &[usize]| pair[1] >= pair[0] * FILTER_GROWTH && pair[1] + pair[0] <= bytes_max;
        assert!(sizes.windows(2).all(grows), "{sizes:?} of {bytes_max}");
    }
}

/// The filter's error is the formula's through all its sizes, and a restart makes it anew in the background.
#[test]
fn the_filter_grows_and_its_error_is_known() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let disk = RealDisk::new(dir.path());
    let config = SieveConfig { fresh_keys_max: 30_000, batch_keys_max: 50_000, ..SieveConfig::within(1 << 20) };
    let mut sieve = Sieve::new(disk.clone(), config.clone()).expect("new");
    let mut through = 0;
    for n in 0..1_200_000 {
        through += u64::from(sieve.offer(key(n), |_| ()).expect("offer") == Offered::New);
        if sieve.has_work() {
            sieve
                .work(|_, _| {
                    through += 1;
                    Ok(())
                })
                .expect("work");
        }
    }
    sieve
        .flush(|_, _| {
            through += 1;
            Ok(())
        })
        .expect("flush");
    assert_eq!(through, 1_200_000);
    let figures = sieve.filter_figures();
    assert!(figures.bytes > 300_000 && figures.bytes <= 1 << 19, "{figures:?}");
    let ratio = figures.wrong as f64 / figures.wrong_expected;
    assert!((ratio - 1.0).abs() < 0.05, "{figures:?}");

    let mut body = Vec::new();
    sieve.save(&mut body, &mut Vec::new());
    let mut sieve = Sieve::load(disk, config, &mut Take::new(&body)).expect("load");
    assert_eq!(sieve.filter_figures().bytes, 0);
    assert_eq!(sieve.offer(key(5), |_| ()).expect("offer"), Offered::Later);
    let work = std::iter::from_fn(|| sieve.take_work()).collect::<Vec<_>>();
    for work in work {
        sieve.finish_work(work.run().expect("work")).expect("finish");
    }
    assert_eq!(sieve.filter_figures().bytes, figures.bytes);
    sieve.flush(|_, _| panic!("nothing is new")).expect("flush");
}

/// So many keys came while a filter was made that nothing more should be offered: then no offer brings it up to date, and asking for what
/// went through must.
#[test]
fn a_late_filter_is_caught_up_with_while_nothing_is_offered() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let config = SieveConfig { fresh_keys_max: 1 << 16, ..SieveConfig::within(16 << 20) };
    let mut sieve = Sieve::new(RealDisk::new(dir.path()), config).expect("new");
    let mut late = None;
    for n in 0..1_000_000 {
        sieve.offer(key(n), |_| ()).expect("offer");
        while let Some(work) = sieve.take_work() {
            if work.lane() == Lane::Back && late.is_none() {
                late = Some(work);
            } else {
                sieve.finish_work(work.run().expect("work")).expect("finish");
            }
        }
        if late.is_some() && sieve.must_wait() {
            break;
        }
    }
    assert!(sieve.must_wait(), "a million keys are too many to keep for a filter");
    let late = late.expect("a filter was wanted");
    sieve.finish_work(late.run().expect("work")).expect("finish");
    for _ in 0..1_000 {
        while let Some(work) = sieve.take_work() {
            sieve.finish_work(work.run().expect("work")).expect("finish");
        }
        if !sieve.let_through(10_000, |_, _| Ok(())).expect("let through") && !sieve.has_work() {
            break;
        }
    }
    assert!(!sieve.must_wait());
}
