//! A file system without space: one clear line, and nothing is lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use rhumb_sim::{Scope, WebConfig};

use super::Facts;
use crate::common::{Place, crawl, json, rhumb, run, serve};

/// A small file system in memory, unmounted when dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    pub fn new(at: &Path, size: &str) -> Option<Mounted> {
        std::fs::create_dir_all(at).expect("make the mount point");
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(at).output().ok()?;
        if !mounted.status.success() {
            println!("skipped: mounting is not permitted: {}", String::from_utf8_lossy(&mounted.stderr).trim());
            return None;
        }
        Some(Mounted(at.to_path_buf()))
    }

    pub fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().expect("mount").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_crawl_that_fills_its_disk_goes_on_later() {
    let place = Place::new();
    let Some(mounted) = Mounted::new(&place.dir, "400k") else { return };
    let server = serve(WebConfig { page_bytes: 20_000, ..WebConfig::plain(10, 12) });
    let dir = mounted.0.join("crawl");
    let seed = server.web().url(0, 0);
    let command = || crawl(&server, &dir, &[&seed, "--scope", "any", "--delay", "0s", "--per-ip", "0"]);
    // Twice: a second try on the full disk does no harm either.
    for _ in 0..2 {
        let output = run(&mut command());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains("No space left on device"), "{stderr}");
        assert!(output.stdout.is_empty());
    }
    let status = json(&run(rhumb().args(["status", "--json"]).arg(&dir)), 0);
    assert_eq!(status["state"], "stopped");
    mounted.grow("64m");
    json(&run(&mut command()), 0);
    let truth = server.web().reachable(&[&seed], Scope::Any, "rhumb", false);
    assert_eq!(Facts::read(&dir).expect("a sound log").pages, truth.pages);
}
