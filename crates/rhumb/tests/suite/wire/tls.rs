//! TLS: certificates, handshakes, endings.

use super::*;

#[test]
fn every_kind_has_its_outcome() {
    block_on(async {
        let wild = Wild::new(limits());
        for kind in of_group(Group::Tls) {
            let began = Instant::now();
            let fetched = wild.fetch(kind, "/").await;
            eprintln!(
                "{:20} {:?} {:?} {} bytes {:?} {:?}",
                kind.name,
                fetched.outcome,
                fetched.cut,
                fetched.body.len(),
                fetched.detail,
                began.elapsed()
            );
        }
        wild.all_closed().await;
    });
}
