//! What must hold of every reader of foreign bytes: one function per reader that takes any bytes and panics if a property
//! does not hold.
//!
//! Two drivers call the same functions: libFuzzer (`fuzz/`, `make fuzz`), which looks for bytes that break one, and the ordinary
//! test `tests/replay.rs`, which runs every file of `fuzz/corpus` and `fuzz/regressions` through them. A finding is mended,
//! its input kept under `fuzz/regressions/<target>/` with a name that tells its story.
//!
//! Each target says in its header how its input is laid out, so that seeds can be written by hand.

pub mod config_target;
pub mod dns;
pub mod feed;
pub mod graph;
pub mod head;
pub mod html;
pub mod index;
pub mod log;
pub mod query;
pub mod robots;
pub mod sitemap;
pub mod state;
pub mod url_target;
pub mod warc;

// The program is no library; its configuration is read here as it is there.
#[path = "../../rhumb/src/config.rs"]
#[allow(dead_code, missing_docs)]
mod config;
#[path = "../../rhumb/src/credentials.rs"]
#[allow(dead_code, missing_docs)]
mod credentials;
#[path = "../../rhumb/src/files.rs"]
#[allow(dead_code, missing_docs)]
mod files;
#[path = "../../rhumb/src/memory.rs"]
#[allow(dead_code)]
mod memory;
#[path = "../../rhumb/src/units.rs"]
#[allow(dead_code, missing_docs)]
mod units;

/// Takes any bytes, and panics if something does not hold of them.
pub type Target = fn(&[u8]);

/// All targets by name, as `fuzz/fuzz_targets`, `fuzz/corpus` and `fuzz/regressions` know them.
pub const TARGETS: &[(&str, Target)] = &[
    ("config", config_target::run),
    ("dns", dns::run),
    ("feed", feed::run),
    ("graph", graph::run),
    ("head", head::run),
    ("html", html::run),
    ("index", index::run),
    ("log", log::run),
    ("query", query::run),
    ("robots", robots::run),
    ("sitemap", sitemap::run),
    ("state", state::run),
    ("url", url_target::run),
    ("warc", warc::run),
];

/// The first line and what follows it.
fn line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|&b| b == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}

/// The first byte, or 0, and what follows it.
fn byte(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(&first, rest)| (first, rest))
}

/// A reader that gives one byte at a time.
struct Single<'a>(&'a [u8]);

impl std::io::Read for Single<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = into.len().min(1);
        self.0.read(&mut into[..n])
    }
}

/// As one gzip member.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, bytes).expect("memory");
    packer.finish().expect("memory")
}

/// An empty disk in memory.
fn disk() -> std::sync::Arc<dyn rhumb_store::disk::Disk> {
    rhumb_store::disk::Overlay::new(rhumb_store::disk::RealDisk::new(std::path::Path::new("/no/such/directory")))
}
