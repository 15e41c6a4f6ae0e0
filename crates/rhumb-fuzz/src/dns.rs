//! Answers of name servers.
//!
//! Input: a packet that may answer the question for `a.example`, of type A or AAAA.

use std::collections::BTreeSet;

use rhumb_crawl::fuzzing::dns_reply;

const ASKED: &str = "a.example";

/// An answer keeps to the bounds (asserted where it is read), depends neither on the identifier nor on the case of the question,
/// and lists no address twice; as long a chain before it leaves it the same or a loop.
pub fn run(data: &[u8]) {
    for v6 in [false, true] {
        let reply = dns_reply(data, ASKED, v6, 0);
        if let Some((_, addresses)) = &reply {
            let distinct: BTreeSet<_> = addresses.iter().collect();
            assert_eq!(distinct.len(), addresses.len(), "{addresses:?}");
            assert!(addresses.iter().all(|a| a.is_ipv6() == v6), "{addresses:?}");
        }
        let mut shouted = data.to_vec();
        shouted.iter_mut().take(2).for_each(|b| *b ^= 0x5a);
        // Labels of the question: header, length, `a`, length, `example`.
        if reply.is_some()
            && let Some(question) = shouted.get_mut(13..22)
        {
            question.make_ascii_uppercase();
        }
        assert_eq!(dns_reply(&shouted, ASKED, v6, 0), reply, "id or case");
        if let (Some((one, _)), Some((other, _))) = (&reply, dns_reply(data, ASKED, v6, 10)) {
            assert!(*one == other || other == "AliasLoop" || one.starts_with("Alias"), "{one} and {other}");
        }
    }
}
