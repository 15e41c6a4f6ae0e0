//! The table against a sorted list.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rhumb_store::disk::RealDisk;

use super::*;

fn table_of(keys: &[Vec<u8>], segment_keys: u32) -> (Urls, Vec<u8>) {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = RealDisk::new(dir.path());
    let writer = UrlsWriter::create(&*disk, "a.urls").expect("created");
    let mut writer = writer.with_segment_keys(segment_keys);
    keys.iter().for_each(|key| writer.push(key).expect("pushed"));
    let stats = writer.finish().expect("finished");
    let urls = Urls::open(&*disk, "a.urls").expect("opened");
    assert_eq!(stats, urls.stats());
    let file = disk.read("a.urls").expect("read");
    assert_eq!(stats.file_bytes, file.len() as u64);
    assert_eq!(stats.key_bytes, keys.iter().map(|k| k.len() as u64).sum::<u64>());
    (urls, file[16..file.len() - 16].to_vec())
}

/// Everything that can be asked, against the list; `others` are sought too.
fn same_as_list(urls: &Urls, keys: &[Vec<u8>], others: &[Vec<u8>]) {
    assert_eq!(urls.len() as usize, keys.len());
    let mut got = vec![1];
    for (node, key) in keys.iter().enumerate() {
        assert_eq!(urls.find(key), Some(node as Node));
        urls.get(node as Node, &mut got);
        assert_eq!(&got, key);
    }
    urls.get(urls.len(), &mut got);
    assert!(got.is_empty());
    let near = keys.iter().flat_map(|key| [[&key[..], b"\0"].concat(), key[..key.len() / 2].to_vec()]);
    for key in near.chain(others.iter().cloned()) {
        let bound = keys.partition_point(|k| *k < key);
        assert_eq!(urls.lower_bound(&key) as usize, bound, "{key:?}");
        assert_eq!(urls.find(&key).is_some(), keys.get(bound) == Some(&key));
        let end = bound + keys[bound..].iter().take_while(|k| k.starts_with(&key)).count();
        assert_eq!(urls.range_of_prefix(&key), bound as Node..end as Node, "{key:?}");
    }
    let step = (keys.len() / 50).max(1);
    for from in (0..=keys.len()).step_by(step) {
        let mut scan = urls.scan(from as Node);
        // To the end from the first, and from the others over the next boundaries.
        for key in keys.iter().skip(from).take(if from == 0 { usize::MAX } else { 600 }) {
            assert_eq!(scan.next(), Some(&key[..]));
        }
    }
    let mut scan = urls.scan(urls.len());
    assert_eq!(scan.next(), None);
    assert_eq!(scan.next(), None);
}

fn check(keys: impl IntoIterator<Item = Vec<u8>>, segment_keys: u32) {
    let keys: Vec<Vec<u8>> = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let (urls, content) = table_of(&keys, segment_keys);
    same_as_list(&urls, &keys, &[]);
    same_as_list(&Urls::from_bytes(&content).expect("read"), &keys, &[]);
}

fn web_like(count: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|n| {
        let mix = n.wrapping_mul(0x9e37_79b1) >> 7;
        let host = ["com,example,www", "org,example", "de,beispiel,shop", "10.0.0.1"][(mix % 4) as usize];
        let section = ["news", "products/view?id=", "a/b/c"][(mix >> 4) as usize % 3];
        format!("{host})https/{section}/item-{}.html", mix >> 6).into_bytes()
    })
}

#[test]
fn tables_of_every_size() {
    for count in [0, 1, 2, 15, 16, 17, 255, 256, 257, 512, 513, 3000] {
        check(web_like(count), u32::MAX);
    }
    check([Vec::new()], 10);
    check((0..=255).map(|b| vec![b]).chain([Vec::new()]), 100);
}

#[test]
fn several_segments() {
    for segment_keys in [1, 16, 100, 256, 700, 1024] {
        check(web_like(3000), segment_keys);
    }
}

#[test]
fn long_keys_and_keys_in_keys() {
    let long = |n: usize| [b"com,example)https/".to_vec(), vec![b'x'; n]].concat();
    check((0..600).map(|n| long(n * 7)), 256);
    check((0..40).map(|n| long(4090 + n)).chain([long(60_000), vec![0xff; 65_535]]), 20);
    check((0..300).map(|n| vec![0xff; n]), 128);
    check((0..300).map(|n| [&[0xc3; 300][..], &[n as u8, (n >> 8) as u8]].concat()), 128);
}

#[test]
fn what_is_out_of_order_or_too_long_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk = RealDisk::new(dir.path());
    let mut writer = UrlsWriter::create(&*disk, "a.urls").expect("created");
    writer.push(b"b").expect("the first");
    for refused in [&b"b"[..], b"a", b"", &vec![b'c'; 65_536]] {
        assert!(writer.push(refused).is_err());
    }
    writer.push(b"ba").expect("greater");
    assert_eq!(writer.finish().expect("finished").urls, 2);
}

#[test]
fn urls_of_a_web_take_little() {
    let keys: Vec<Vec<u8>> = web_like(40_000).collect::<BTreeSet<_>>().into_iter().collect();
    let (urls, _) = table_of(&keys, u32::MAX);
    let each = urls.stats().file_bytes as f64 / keys.len() as f64;
    assert!(each < 4.5, "{each} bytes a URL");
}

#[test]
fn a_measurement_measures() {
    let keys: Vec<Vec<u8>> = web_like(1000).collect::<BTreeSet<_>>().into_iter().collect();
    let measured = measure(&table_of(&keys, 300).0, 7);
    assert!(measured.find_ns > 0.0 && measured.get_ns > 0.0 && measured.scan_ns > 0.0);
    assert_eq!(measure(&table_of(&[], 300).0, 7), Measured::default());
}

/// Asks everything of a table that may hold nonsense.
fn ask_everything(content: Vec<u8>) {
    let Ok(urls) = Urls::from_bytes(&content) else { return };
    let mut key = Vec::new();
    for node in [0, 1, 16, 255, 256, 300, urls.len() / 2, urls.len().wrapping_sub(1), urls.len(), Node::MAX] {
        urls.get(node, &mut key);
        urls.find(&key);
        let mut scan = urls.scan(node);
        for _ in 0..600 {
            scan.next();
        }
    }
    for key in [&b""[..], b"com,", b"com,example,www)https/news/", b"zzz", &[0xff; 40]] {
        urls.lower_bound(key);
        urls.range_of_prefix(key);
    }
    urls.memory_bytes();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_keys(
        keys in prop::collection::btree_set(prop::collection::vec(prop_oneof![0..3u8, 96..100u8, any::<u8>()], 0..12), 0..700),
        others in prop::collection::vec(prop::collection::vec(prop_oneof![0..3u8, 96..100u8, any::<u8>()], 0..6), 0..100),
        segment_keys in prop_oneof![1..600u32, Just(u32::MAX)],
    ) {
        let keys: Vec<Vec<u8>> = keys.into_iter().collect();
        same_as_list(&table_of(&keys, segment_keys).0, &keys, &others);
    }

    #[test]
    fn damage_is_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        segment_keys in prop_oneof![Just(300u32), Just(u32::MAX)],
    ) {
        let keys: Vec<Vec<u8>> = web_like(900).collect::<BTreeSet<_>>().into_iter().collect();
        let mut content = table_of(&keys, segment_keys).1;
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        if let Some(cut) = cut {
            content.drain(..cut.index(content.len()));
        }
        ask_everything(content);
    }

    #[test]
    fn noise_is_survived(content in prop::collection::vec(any::<u8>(), 0..400)) {
        ask_everything(content);
    }
}

#[test]
fn every_byte_of_what_tells_how_to_read_may_be_wrong() {
    let keys: Vec<Vec<u8>> = web_like(300).collect::<BTreeSet<_>>().into_iter().collect();
    let content = table_of(&keys, 200).1;
    for at in 0..content.len() {
        for value in [0, 0xff, content[at] ^ 1, content[at] ^ 0x80] {
            let mut changed = content.clone();
            changed[at] = value;
            ask_everything(changed);
        }
    }
}

/// `v1.urls` was written by the first version that wrote this format, in segments of 200. It is never written anew.
#[test]
fn a_file_of_version_1_is_read() {
    let keys: Vec<Vec<u8>> = web_like(300).collect::<BTreeSet<_>>().into_iter().collect();
    let dir = tempfile::tempdir().expect("a directory");
    let disk = RealDisk::new(dir.path());
    disk.replace("v1.urls", include_bytes!("v1.urls")).expect("written");
    same_as_list(&Urls::open(&*disk, "v1.urls").expect("opened"), &keys, &[]);
}
