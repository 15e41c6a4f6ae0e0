//! `rhumb bench crawl`: that its measurements run; what they show is for quiet machines.

use crate::common::{json, rhumb, run};

/// The measurements run to their end on a web so small that their figures mean nothing; bars may be missed.
#[test]
fn measurements_of_a_crawl_run() {
    for (more, key) in [
        ("", "cpu_ms_per_page, no archive"),
        ("--stages", "stages"),
        ("--windows --early 4 --late 8", "growth, no archive"),
        ("--https --page-bytes 2000", "cpu_ms_per_page, resumed: crawl"),
        ("--dns-ms 5 --latency-ms 1", "dns_idle_share"),
    ] {
        let line = format!("bench crawl --json --hosts 3 --pages 4 --rounds 1 {more}");
        let output = run(rhumb().args(line.split_whitespace()));
        let code = output.status.code().expect("an exit code");
        assert!(code <= 1, "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let figures = json(&output, code);
        for key in ["hosts", "pages", "bars", key] {
            assert!(figures.get(key).is_some(), "{line} has no {key:?}: {figures}");
        }
    }
    let twice = run(rhumb().args(["bench", "crawl", "--stages", "--windows"]));
    assert_eq!(twice.status.code(), Some(2), "two measurements at once");
}
