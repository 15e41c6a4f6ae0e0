//! docs/hostile-web.md, made from the registry: `RHUMB_BLESS=1 cargo test -p rhumb-sim document` writes it anew.

use std::fmt::Write as _;

use super::{Kind, kinds};

const FRONT: &str = "\
# The hostile web

<!-- Made from crates/rhumb-sim/src/hostile by its test, which says how. -->

One host for every mistake and every attack that a crawler meets. `rhumb sim hostile` serves them on loopback, `rhumb demo` crawls
some of them, and `crates/rhumb/tests/suite/hostile.rs` crawls all of them at once beside 20 hosts that behave: each URL must end as
said here, no host may get more requests than said here, no address outside the two webs may be dialled, memory must stay
within its setting, and the 20 hosts must hardly notice. `make hostile` measures the latter.

The host of a kind is its name with `-hostile.example` behind it, at a loopback address of its own in 127.1.0.0/16; the DNS server of
the synthetic web knows them all. Dials of any other loopback address are counted, and so are cookies and credentials that arrive.
*Ends* are outcomes as `rhumb explain` shows them; *cut* means that a part of the body is missing and the visit says so; *held* means
that the URL waits with its host, for the reason given. *Honest* pages stand beside the trouble and must all be fetched. *Requests*
are those of one crawl with the test's settings at the most, robots.txt and retries included.
";

fn document() -> String {
    let mut out = FRONT.to_string();
    let mut group = None;
    for kind in kinds() {
        if group != Some(kind.group) {
            group = Some(kind.group);
            let name = kind.group.name();
            let title: String = name[..1].to_uppercase() + &name[1..];
            let _ = write!(
                out,
                "\n## {title}\n\n| host | what it does | ends | honest | requests |\n| --- | --- | --- | --- | --- |\n"
            );
        }
        let Kind { name, about, honest, requests_max, .. } = kind;
        let _ = writeln!(out, "| `{name}` | {about} | {} | {honest} | {requests_max} |", ends(kind));
    }
    out
}

/// The ends of a kind, each way to end once.
fn ends(kind: &Kind) -> String {
    let mut ways: Vec<(String, usize)> = Vec::new();
    for end in kind.ends {
        let way = match end.held {
            Some(reason) => format!("held: `{}`", reason.name()),
            None => format!("`{}`{}", end.outcome.name(), if end.cut { ", cut" } else { "" }),
        };
        match ways.iter_mut().find(|(known, _)| *known == way) {
            Some((_, count)) => *count += 1,
            None => ways.push((way, 1)),
        }
    }
    let shown = ways.into_iter().map(|(way, count)| if count > 1 { format!("{way} × {count}") } else { way });
    shown.collect::<Vec<_>>().join("; ")
}

#[test]
fn the_document_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hostile-web.md");
    let made = document();
    if std::env::var_os("RHUMB_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == made,
        "docs/hostile-web.md is not what the registry says: RHUMB_BLESS=1 cargo test -p rhumb-sim document"
    );
}
