//! The habits of the house, checked: crate directions, module headers, links in documents, file sizes, licences,
//! duplicate dependencies, and words that do not belong. Each test names what it found and where.
//!
//! Needs nothing but cargo, so that it holds where cargo-deny cannot be installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

/// Which of our crates may use which, tests included. A crate that is not here is a decision to be taken.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("rhumb", &["rhumb-core", "rhumb-crawl", "rhumb-export", "rhumb-graph", "rhumb-index", "rhumb-sim", "rhumb-store"]),
    ("rhumb-crawl", &["rhumb-core", "rhumb-store"]),
    ("rhumb-core", &["rhumb-store"]),
    ("rhumb-export", &["rhumb-core", "rhumb-store"]),
    ("rhumb-fuzz", &["rhumb-core", "rhumb-crawl", "rhumb-graph", "rhumb-index", "rhumb-store"]),
    ("rhumb-graph", &["rhumb-store"]),
    ("rhumb-index", &["rhumb-store"]),
    ("rhumb-sim", &["rhumb-core", "rhumb-store"]),
    ("rhumb-store", &[]),
];

const LINES_MAX: usize = 800;

/// Files that may be longer, each with its reason, such as a generated table.
const LONG: &[(&str, &str)] = &[];

/// Where `unsafe` may be allowed.
const UNSAFE: &[&str] = &["crates/rhumb-store/src/map.rs"];

/// The licences of deny.toml.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that stand in the tree twice, as in deny.toml, which gives the reasons.
const DUPLICATES: &[&str] = &[
    "bit-vec",
    "block-buffer",
    "cpufeatures",
    "crypto-common",
    "digest",
    "foldhash",
    "getrandom",
    "hashbrown",
    "nom",
    "rand",
    "rand_core",
    "sha2",
    "syn",
    "synstructure",
];

/// The bans of deny.toml.
const BANNED: &[&str] = &["openssl-sys", "native-tls", "aws-lc-sys", "reqwest", "isahc", "sled", "hickory-resolver"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Every file of the repository, by its path from the root.
fn files() -> &'static BTreeMap<String, PathBuf> {
    static FILES: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let root = root();
        let (mut found, mut folders) = (BTreeMap::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("read a folder") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().and_then(|n| n.to_str()).expect("a name in UTF-8").to_owned();
                let skip = matches!(
                    name.as_str(),
                    "target" | ".git" | "__pycache__" | "proptest-regressions" | "node_modules"
                ) || name.starts_with(".venv")
                    || name.ends_with(".crawl");
                if skip || path.is_symlink() {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let from_root =
                        path.strip_prefix(&root).expect("below the root").to_str().expect("UTF-8").to_owned();
                    found.insert(from_root, path);
                }
            }
        }
        found
    })
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()))
}

fn ending_in(suffix: &str) -> impl Iterator<Item = (&'static str, String)> {
    files().iter().filter(move |(name, _)| name.ends_with(suffix)).map(|(name, path)| (name.as_str(), text(path)))
}

fn nothing(found: &[String], what: &str) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// `cargo metadata` of what is built on this machine.
fn metadata() -> &'static Value {
    static METADATA: OnceLock<Value> = OnceLock::new();
    METADATA.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let rustc = Command::new("rustc").arg("-vV").output().expect("ask rustc");
        let told = String::from_utf8(rustc.stdout).expect("UTF-8");
        let host = told.lines().find_map(|l| l.strip_prefix("host: ")).expect("rustc names its host");
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host])
            .current_dir(root())
            .output()
            .expect("run cargo metadata");
        assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    })
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Every package that is built on this machine, ours and others'.
fn packages() -> impl Iterator<Item = &'static Value> {
    let nodes = metadata()["resolve"]["nodes"].as_array().expect("nodes");
    let built: BTreeSet<&str> = nodes.iter().map(|n| word(n, "id")).collect();
    metadata()["packages"].as_array().expect("packages").iter().filter(move |p| built.contains(word(p, "id")))
}

fn ours() -> impl Iterator<Item = &'static Value> {
    packages().filter(|p| p["source"].is_null())
}

#[test]
fn crates_point_one_way() {
    let mut found = Vec::new();
    for package in ours() {
        let name = word(package, "name");
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(n, _)| *n == name) else {
            found.push(format!("{name} is not in DIRECTIONS"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let to = word(dependency, "name");
            if to.starts_with("rhumb") && !allowed.contains(&to) {
                found.push(format!("{name} → {to}"));
            }
        }
    }
    nothing(&found, "a crate uses one that it should not know");
}

#[test]
fn every_module_has_a_header() {
    let found: Vec<String> =
        ending_in(".rs").filter(|(_, t)| !t.starts_with("//! ")).map(|(n, _)| n.to_owned()).collect();
    nothing(&found, "these files do not begin with `//!` and a sentence");
}

#[test]
fn files_are_of_readable_size() {
    let mut found = Vec::new();
    for (name, text) in ending_in(".rs") {
        let lines = text.lines().count();
        match (lines > LINES_MAX, LONG.iter().any(|(long, _)| *long == name)) {
            (true, false) => found.push(format!("{name}: {lines} lines")),
            (false, true) => found.push(format!("{name}: {lines} lines, needs no place in LONG")),
            _ => {}
        }
    }
    nothing(&found, "look for the second idea inside (or add to LONG, with a reason)");
}

#[test]
fn unsafe_is_denied() {
    let manifest = text(&root().join("Cargo.toml"));
    assert!(manifest.contains("unsafe_code = \"deny\""), "Cargo.toml: [workspace.lints.rust] denies unsafe_code");
    let mut found = Vec::new();
    for (name, text) in ending_in("Cargo.toml").filter(|(n, _)| n.starts_with("crates/")) {
        if !text.contains("[lints]\nworkspace = true") {
            found.push(format!("{name}: does not take the workspace's lints"));
        }
    }
    let allowed = Regex::new(r"(allow|expect)\([^)]*unsafe_code").expect("an expression");
    for (name, text) in ending_in(".rs").filter(|(n, _)| !UNSAFE.contains(n)) {
        if allowed.is_match(&text) {
            found.push(format!("{name}: allows unsafe code"));
        }
    }
    nothing(&found, "unsafe code");
}

/// Clippy sees `HashMap::new` but not `HashMap<K, V>` that is built by `default` or `collect`.
#[test]
fn the_core_has_no_randomly_seeded_map() {
    let tests = Regex::new(r"#\[cfg\(test\)\]\s*mod \w+ \{").expect("an expression");
    let mut found = Vec::new();
    for (name, text) in ending_in(".rs") {
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        if !name.starts_with("crates/rhumb-core/src/") || is_test {
            continue;
        }
        // Tests are the last module of a file.
        let code = tests.split(&text).next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
            for (kind, arguments) in [("HashMap<", 3), ("HashSet<", 2)] {
                for (at, _) in line.match_indices(kind) {
                    if type_arguments(&line[at + kind.len()..]) < arguments {
                        found.push(format!("{name}:{}: {}", number + 1, line.trim()));
                    }
                }
            }
        }
    }
    nothing(&found, "name a fixed hasher, or use a BTreeMap or a BTreeSet");
}

/// How many types stand between here and the matching `>`.
fn type_arguments(rest: &str) -> usize {
    let (mut depth, mut arguments) = (0, 1);
    for c in rest.chars() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' if depth == 0 => break,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => arguments += 1,
            _ => {}
        }
    }
    arguments
}

#[test]
fn links_in_documents_lead_somewhere() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("an expression");
    let mut found = Vec::new();
    for (name, text) in ending_in(".md") {
        let folder = root().join(name).parent().expect("a folder").to_owned();
        for (number, line) in outside_fences(&text) {
            for target in link.captures_iter(line).map(|c| c.get(1).expect("a group").as_str()) {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = if file.is_empty() { root().join(name) } else { folder.join(file) };
                if !path.exists() {
                    found.push(format!("{name}:{number}: {target}"));
                } else if !anchor.is_empty()
                    && path.is_file()
                    && !anchors(&fs::read_to_string(&path).unwrap_or_default()).contains(anchor)
                {
                    found.push(format!("{name}:{number}: {target}: no such heading"));
                }
            }
        }
    }
    nothing(&found, "links that lead nowhere");
}

fn outside_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((i + 1, line))
    })
}

/// The headings of a document as anchors.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings =
        outside_fences(text).filter(|(_, l)| l.starts_with('#')).map(|(_, l)| l.trim_start_matches('#').trim());
    let keep = |c: char| if c.is_alphanumeric() || c == '-' || c == '_' { Some(c) } else { (c == ' ').then_some('-') };
    headings.map(|h| h.to_lowercase().chars().filter_map(keep).collect()).collect()
}

/// `file.rs` and `file.rs::function` in documents: the file is there (from the root, or as the end of one path below
/// crates/) and defines that name.
#[test]
fn code_named_in_documents_is_there() {
    let span = Regex::new(r"`([A-Za-z0-9_./-]+\.rs)(?:::([A-Za-z0-9_:]+))?`").expect("an expression");
    let mut found = Vec::new();
    let mut steps = 0;
    for (name, text) in ending_in(".md").filter(|(n, _)| !n.starts_with("CHANGELOG")) {
        for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
            for captures in span.captures_iter(line) {
                let file = &captures[1];
                let paths: Vec<&PathBuf> = files()
                    .iter()
                    .filter(|(n, _)| *n == file || n.ends_with(&format!("/{file}")))
                    .map(|(_, p)| p)
                    .collect();
                if paths.is_empty() {
                    found.push(format!("{name}:{number}: no {file}"));
                    continue;
                }
                let Some(item) = captures.get(2).and_then(|i| i.as_str().rsplit("::").next()) else { continue };
                steps += 1;
                let definition = Regex::new(&format!(r"\b(fn|struct|enum|trait|type|const|static|mod)\s+{item}\b"))
                    .expect("an expression");
                if !paths.iter().any(|p| definition.is_match(&fs::read_to_string(p).expect("read a file"))) {
                    found.push(format!("{name}:{number}: no {item} in {file}"));
                }
            }
        }
    }
    nothing(&found, "documents name code that is not there");
    assert!(
        steps >= 10,
        "ARCHITECTURE.md tells the life of a URL with `file.rs::function` at each step; only {steps} were found"
    );
}

/// Written in two halves so that this file does not hold them. Each with the reason.
fn misplaced() -> Vec<(Regex, &'static str)> {
    let halves = [
        ("\\bTO", "DO\\b", "finish it or say what is absent"),
        ("\\bFIX", "ME\\b", "fix it"),
        ("\\bXX", "X\\b", "say it"),
        ("\\bto", "do!\\(", "finish it"),
        ("\\bunimple", "mented!\\(", "finish it"),
        ("\\bd", "bg!\\(", "use tracing"),
        ("/wo", "rk/(main|shared|\\.)", "a path of one machine"),
        ("/ro", "ot/", "a path of one machine"),
        ("/ho", "me/[a-z]", "a path of one machine"),
        ("/opt/", "wheels", "a path of one machine"),
        ("(index|static)\\.crates", "\\.io", "a registry's host"),
        ("py", "pi\\.(org|python)", "a registry's host"),
        ("files\\.python", "hosted", "a registry's host"),
        ("registry\\.npm", "js", "a registry's host"),
        ("deb\\.deb", "ian", "a registry's host"),
        ("(?i)\\b(clau", "de|anthropi[c]|chatgp[t]|copilo[t]|opena[i])\\b", "says who wrote it, not what it does"),
        ("(?i)\\bas an a", "i\\b", "says who wrote it, not what it does"),
        ("(?i)language mo", "del", "says who wrote it, not what it does"),
        ("(?i)issues? (no\\. ?|#)?[12]", "\\b", "says when, not why"),
    ];
    halves.iter().map(|(a, b, why)| (Regex::new(&format!("{a}{b}")).expect("an expression"), *why)).collect()
}

#[test]
fn no_misplaced_words() {
    let words = misplaced();
    let mut found = Vec::new();
    for (name, path) in files() {
        let Ok(text) = fs::read_to_string(path) else { continue };
        for (number, line) in text.lines().enumerate() {
            for (word, why) in &words {
                if word.is_match(line) {
                    let shown: String = line.trim().chars().take(80).collect();
                    found.push(format!("{name}:{}: {shown} ({why})", number + 1));
                }
            }
        }
    }
    nothing(&found, "words that do not belong");
}

#[test]
fn licences_are_ours_to_use() {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(files().contains_key(name), "{name} is missing");
    }
    let mut found = Vec::new();
    for package in packages() {
        let (name, licence) = (word(package, "name"), word(package, "license"));
        if package["source"].is_null() && licence != "MIT OR Apache-2.0" {
            found.push(format!("{name} is ours and says {licence:?}"));
        }
        if !satisfied(licence) {
            found.push(format!("{name}: {licence:?}"));
        }
    }
    nothing(&found, "licences that are not in LICENCES (and deny.toml)");
    let deny = text(&root().join("deny.toml"));
    let absent: Vec<String> = LICENCES
        .iter()
        .chain(BANNED)
        .filter(|l| !deny.contains(&format!("\"{l}\"")))
        .map(|l| (*l).to_owned())
        .collect();
    nothing(&absent, "deny.toml and this test differ");
}

/// An SPDX expression of the shapes that crates use: AND of ORs, with parentheses around the ORs, or plain ORs.
fn satisfied(expression: &str) -> bool {
    let plain = expression.replace('/', " OR ").replace(['(', ')'], "");
    !plain.trim().is_empty()
        && plain.split(" AND ").all(|all| all.split(" OR ").any(|one| LICENCES.contains(&one.trim())))
}

#[test]
fn dependencies_are_few_and_known() {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    for package in packages() {
        let name = word(package, "name");
        versions.entry(name).or_default().insert(word(package, "version"));
        let source = package["source"].as_str().unwrap_or("registry+");
        if !source.starts_with("registry+") {
            found.push(format!("{name} comes from {source}"));
        }
        if BANNED.contains(&name) {
            found.push(format!("{name} is banned by deny.toml"));
        }
    }
    for (name, versions) in versions.iter().filter(|(n, v)| v.len() > 1 && !DUPLICATES.contains(n)) {
        found.push(format!("{name} in several versions: {versions:?}"));
    }
    nothing(&found, "dependencies");
}

#[test]
fn every_dependency_has_its_line() {
    let architecture = text(&root().join("ARCHITECTURE.md"));
    let section = architecture.split("\n## Dependencies").nth(1).expect("ARCHITECTURE.md has a section Dependencies");
    let section = section.split("\n## ").next().unwrap_or_default();
    let split = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
    // The first column of the table, and the lines below it.
    let named: BTreeSet<&str> = section
        .lines()
        .map(|line| line.strip_prefix('|').map_or(line, |row| row.split('|').next().unwrap_or_default()))
        .flat_map(|line| line.split(split))
        .collect();
    let direct: BTreeSet<&str> = ours()
        .flat_map(|p| p["dependencies"].as_array().expect("dependencies"))
        .map(|d| word(d, "name"))
        .filter(|d| !d.starts_with("rhumb"))
        .collect();
    let absent: Vec<String> = direct.difference(&named).map(|d| (*d).to_owned()).collect();
    nothing(&absent, "ARCHITECTURE.md does not say what these spare us");
    let rows = section.lines().filter_map(|l| l.strip_prefix('|')).filter_map(|l| l.split('|').next());
    let listed = rows
        .flat_map(|row| row.split(','))
        .map(str::trim)
        .filter(|n| !n.is_empty() && *n != "crate" && !n.starts_with('-'));
    let gone: Vec<String> = listed.filter(|n| !direct.contains(n)).map(str::to_owned).collect();
    nothing(&gone, "ARCHITECTURE.md lists what is not a direct dependency");
}

/// A dependency of the workspace's table that no crate takes is a line nobody dares to remove.
#[test]
fn the_workspace_lists_only_what_is_used() {
    let manifest: toml::Table = text(&root().join("Cargo.toml")).parse().expect("TOML");
    let listed = manifest["workspace"]["dependencies"].as_table().expect("a table");
    let used: BTreeSet<&str> =
        ours().flat_map(|p| p["dependencies"].as_array().expect("dependencies")).map(|d| word(d, "name")).collect();
    let unused: Vec<String> = listed.keys().filter(|n| !used.contains(n.as_str())).cloned().collect();
    nothing(&unused, "[workspace.dependencies] that no crate uses");
}

#[test]
fn the_changelog_knows_the_version() {
    let changelog = text(&root().join("CHANGELOG.md"));
    let heading = format!("## {}", env!("CARGO_PKG_VERSION"));
    assert!(
        changelog.lines().any(|l| l == heading || l.starts_with(&format!("{heading} "))),
        "CHANGELOG.md has no `{heading}`"
    );
}
