//! Every input that was ever worth keeping, through the same functions that libFuzzer calls: one test per target.
//!
//! A corpus that is missing or empty fails, for it would prove nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a directory, by name; none if it is missing.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).filter(|p| p.is_file()).collect();
    paths.sort();
    paths
}

fn fuzz_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn replay(target: &str) {
    let &(_, run) = rhumb_fuzz::TARGETS.iter().find(|(name, _)| *name == target).expect("a target of this name");
    let corpus = files(&fuzz_dir().join("corpus").join(target));
    assert!(!corpus.is_empty(), "fuzz/corpus/{target} is missing or empty");
    for path in corpus.iter().chain(&files(&fuzz_dir().join("regressions").join(target))) {
        let bytes = fs::read(path).expect("read an input");
        if std::panic::catch_unwind(|| run(&bytes)).is_err() {
            panic!("{} breaks a property of the target {target}: see above", path.display());
        }
    }
}

macro_rules! replay {
    ($($target:ident),* $(,)?) => {
        $(#[test] fn $target() { replay(stringify!($target)); })*

        /// Targets, their folders, their entries for libFuzzer and the tests above are the same list.
        #[test]
        fn nothing_is_forgotten() {
            let mut known: Vec<String> = rhumb_fuzz::TARGETS.iter().map(|(name, _)| name.to_string()).collect();
            known.sort();
            assert_eq!(known, [$(stringify!($target)),*], "tests");
            let manifest = fs::read_to_string(fuzz_dir().join("Cargo.toml")).expect("fuzz/Cargo.toml");
            for name in &known {
                assert!(manifest.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml does not know {name}");
            }
            for folder in ["corpus", "regressions"] {
                let Ok(entries) = fs::read_dir(fuzz_dir().join(folder)) else { continue };
                for entry in entries {
                    let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
                    assert!(known.contains(&name), "fuzz/{folder}/{name} belongs to no target");
                }
            }
        }
    };
}

replay!(config, dns, feed, graph, head, html, index, log, query, robots, sitemap, state, url, warc);
