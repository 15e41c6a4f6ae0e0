//! Runs against sets.

use super::*;
use crate::disk::RealDisk;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn write(disk: &dyn Disk, name: &str, keys: &BTreeSet<u64>) -> Arc<Run> {
    let mut writer = RunWriter::create(disk, name).expect("create");
    keys.iter().for_each(|&k| writer.push(k).expect("push"));
    writer.finish().expect("finish");
    Arc::new(Run::open(disk, name).expect("open"))
}

fn all(run: &Arc<Run>) -> Vec<u64> {
    let mut scan = run.scan();
    std::iter::from_fn(|| scan.next().expect("scan")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_run_holds_exactly_its_keys(
        mut keys in proptest::collection::btree_set(any::<u64>(), 0..5000),
        others in proptest::collection::vec(any::<u64>(), 0..200),
        shape in 0..4u8,
    ) {
        match shape {
            0 => keys = keys.into_iter().map(|k| k % 10_000).collect(),
            // Clusters far apart, and both ends of the range.
            1 => keys = keys.into_iter().map(|k| ((k & 7) << 61) | (k % 4096)).chain([0, u64::MAX]).collect(),
            2 => keys = (0..keys.len() as u64).collect(),
            _ => {}
        }
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let run = write(&*disk, "a", &keys);
        prop_assert_eq!(all(&run), keys.iter().copied().collect::<Vec<_>>());
        let mut wanted: Vec<u64> = others.into_iter().chain(keys.iter().copied().step_by(7)).collect();
        wanted.extend([0, u64::MAX]);
        wanted.sort_unstable();
        wanted.dedup();
        let mut found = vec![false; wanted.len()];
        run.find_sorted(&wanted, |i| found[i] = true).expect("find");
        for (key, found) in wanted.iter().zip(found) {
            prop_assert_eq!(found, keys.contains(key));
        }
    }

    #[test]
    fn prefixes_are_found(
        keys in proptest::collection::btree_set(any::<u64>(), 0..5000),
        prefixes in 1..2000u64,
        others in proptest::collection::btree_set(0..(1u64 << 36), 0..50),
        max in 1..2000usize,
    ) {
        // Few prefixes of many keys each, over several blocks, and some of one.
        let place = |k: u64| if k.is_multiple_of(3) { k } else { (((k >> 28) % prefixes) << 28) | (k & 0xfff_ffff) };
        let keys: BTreeSet<u64> = keys.into_iter().map(place).collect();
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let run = write(&*disk, "a", &keys);
        let mut wanted: Vec<u64> = others.into_iter().chain(keys.iter().map(|k| k >> 28).step_by(3)).collect();
        wanted.extend([0, (1 << 36) - 1]);
        wanted.sort_unstable();
        wanted.dedup();
        let mut found = vec![Vec::new(); wanted.len()];
        run.find_prefixes(&wanted, 28, |i, key| { found[i].push(key); found[i].len() < max }).expect("find");
        for (&prefix, found) in wanted.iter().zip(found) {
            let expected: Vec<u64> = keys.range(prefix << 28..=prefix << 28 | 0xfff_ffff).copied().take(max).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn merging_is_union(a in proptest::collection::btree_set(any::<u64>(), 0..3000), b in proptest::collection::btree_set(0..5000u64, 0..3000)) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let (ra, rb) = (write(&*disk, "a", &a), write(&*disk, "b", &b));
        let levels = [ra, rb].map(|added| Level { added, deleted: None });
        let c = merge(&*disk, &levels, "c", Some("d")).expect("merge");
        prop_assert_eq!(all(&c.added), a.union(&b).copied().collect::<Vec<_>>());
        prop_assert!(c.deleted.is_none());
    }

    /// Against sets to which each level is applied in turn.
    #[test]
    fn the_newest_level_decides(
        levels in proptest::collection::vec(
            (proptest::collection::btree_set(0..300u64, 0..200), proptest::collection::btree_set(0..300u64, 0..200)),
            1..5,
        ),
        below: bool,
    ) {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        let (mut added, mut deleted) = (BTreeSet::new(), BTreeSet::new());
        let mut runs = Vec::new();
        for (i, (a, d)) in levels.iter().enumerate() {
            let (ra, rd) = (write(&*disk, &format!("a{i}"), a), write(&*disk, &format!("d{i}"), d));
            runs.push(Level { added: ra, deleted: (!d.is_empty()).then_some(rd) });
            added = &(&added - d) | a;
            deleted = &(&deleted | d) - a;
        }
        let merged = merge(&*disk, &runs, "a", below.then_some("d")).expect("merge");
        prop_assert_eq!(all(&merged.added), added.into_iter().collect::<Vec<_>>());
        let left = merged.deleted.as_ref().map(all).unwrap_or_default();
        let expected = if below { deleted.into_iter().collect() } else { Vec::new() };
        prop_assert_eq!(left, expected);
    }

    /// Any flipped bit is reported; never a panic or another key.
    #[test]
    fn damage_is_found(at in 0.0f64..1.0, bit in 0u8..8) {
        let keys: BTreeSet<u64> = (0..3000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        write(&*disk, "a", &keys);
        let path = dir.path().join("a");
        let mut bytes = std::fs::read(&path).expect("read");
        let place = (at * bytes.len() as f64) as usize;
        bytes[place] ^= 1 << bit;
        std::fs::write(&path, bytes).expect("write");
        if let Ok(run) = Run::open(&*disk, "a") {
            let mut scan = Arc::new(run).scan();
            let mut seen = Vec::new();
            let outcome = loop {
                match scan.next() {
                    Ok(Some(k)) => seen.push(k),
                    Ok(None) => break Ok(()),
                    Err(e) => break Err(e),
                }
            };
            prop_assert!(outcome.is_err() || seen == keys.into_iter().collect::<Vec<_>>());
        }
    }
}

#[test]
fn size_is_near_the_entropy() {
    let keys: BTreeSet<u64> = (1..=100_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i << 7)).collect();
    let dir = tempfile::tempdir().expect("temporary directory");
    let disk = RealDisk::new(dir.path());
    let run = write(&*disk, "a", &keys);
    let bits = run.bytes() as f64 * 8.0 / keys.len() as f64;
    // log2(2^64 / 100,000) + log2(e) = 48.8 bits is the entropy of uniform keys.
    assert!(bits < 50.5, "{bits} bits a key");
}
