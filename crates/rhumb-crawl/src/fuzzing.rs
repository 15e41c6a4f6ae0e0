//! Doors for the fuzz targets to readers that have none of their own: heads and frames as they pass, answers of
//! DNS, Retry-After.
//!
//! No part of the crawler uses them; `rhumb-fuzz` does.

use std::net::IpAddr;

use rhumb_core::Timestamp;

use crate::dns::wire::{ADDRESSES_MAX, Family, LINKS_MAX, Reply, WireName, parse_reply};
use crate::fetch::frames::FrameMeter;
use crate::fetch::tee::Passed;

/// The response head that is kept when these pieces come in one after the other.
pub fn head_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, head_bytes_max: usize) -> Vec<u8> {
    let mut passed = Passed::default();
    passed.reset(head_bytes_max, usize::MAX);
    pieces.into_iter().for_each(|piece| passed.copy_head(piece));
    passed.take_head()
}

/// What the meter of HTTP/2 frames says when all these pieces have passed, whatever it said before.
pub fn frames_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, head_bytes_max: usize) -> Result<(), String> {
    let mut meter = FrameMeter::default();
    meter.refill(head_bytes_max, 64);
    let mut said = Ok(());
    for piece in pieces {
        said = meter.see(piece);
    }
    said.map_err(|excess| excess.to_string())
}

/// `Retry-After` in milliseconds from `now`.
pub fn retry_after_ms(value: &str, now: Timestamp) -> Option<u64> {
    crate::pipeline::retry_after_ms(value, now)
}

/// What a packet answers to the question for a name: the answer in words, and its addresses. Panics where an answer breaks the
/// reader's own bounds.
pub fn dns_reply(packet: &[u8], asked: &str, v6: bool, links_before: u8) -> Option<(String, Vec<IpAddr>)> {
    let family = if v6 { Family::V6 } else { Family::V4 };
    let reply = parse_reply(packet, &WireName::from_text(asked)?, family, links_before)?;
    let words = format!("{reply:?}");
    let addresses = match reply {
        Reply::Addresses { addresses, .. } => {
            assert!((1..=ADDRESSES_MAX).contains(&addresses.len()), "{words}");
            addresses
        }
        Reply::Alias { target, links, .. } => {
            assert!(links > links_before && links <= LINKS_MAX && target.len() <= 255, "{words}");
            Vec::new()
        }
        _ => Vec::new(),
    };
    Some((words, addresses))
}
