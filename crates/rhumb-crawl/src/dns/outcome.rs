//! What a flight leaves behind: its queries' results joined into one, and how long that is believed.
//!
//! **Invariant**: every time in the cache lies within the bounds of the configuration, whatever TTL a server sent.
//! Read next: `transport.rs`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::wire::ADDRESSES_MAX;
use super::{DnsError, Known, Shared, millis};

/// What one query has found.
pub(super) enum Part {
    Addresses { addresses: Vec<IpAddr>, ttl_s: u32 },
    Failed { error: DnsError, ttl_s: Option<u32> },
}

/// Joins what the queries of a flight have found, and puts it into the cache.
pub(super) fn remember(shared: &Shared, name: &str, parts: impl Iterator<Item = Part>, now_ms: u64) -> Known {
    let config = &shared.config;
    let clamp = |ttl_s: u32, min: Duration, max: Duration| (u64::from(ttl_s) * 1_000).min(millis(max)).max(millis(min));
    let (mut addresses, mut addresses_ttl_s) = (Vec::new(), u32::MAX);
    let mut failure: Option<(DnsError, Option<u32>)> = None;
    for part in parts {
        match part {
            Part::Addresses { addresses: found, ttl_s } => {
                addresses.extend(found);
                addresses_ttl_s = addresses_ttl_s.min(ttl_s);
            }
            Part::Failed { error, ttl_s } => {
                // Of two failures the one that can pass decides, unless the name does not exist at all.
                let decides = failure.is_none_or(|(before, _)| before.is_permanent() && before != DnsError::NxDomain);
                if decides || error == DnsError::NxDomain {
                    failure = Some((error, ttl_s));
                }
            }
        }
    }
    match failure {
        _ if !addresses.is_empty() => {
            // Half an answer, the other half being lost for now, is asked for again soon.
            if failure.is_some_and(|(error, _)| !error.is_permanent()) {
                addresses_ttl_s = 0;
            }
            addresses.truncate(ADDRESSES_MAX);
            let addresses: Arc<[IpAddr]> = addresses.into();
            let expires_ms = now_ms.saturating_add(clamp(addresses_ttl_s, config.ttl_min, config.ttl_max));
            shared.cache.put_addresses(name, &addresses, expires_ms);
            (Ok(addresses), expires_ms)
        }
        failure => {
            let (error, ttl_s) = failure.unwrap_or((DnsError::NoData, None));
            let expires_ms = shared.cache.put_failure(name, error, now_ms, |strikes| {
                if error.is_permanent() {
                    clamp(ttl_s.unwrap_or(0), config.negative_ttl_min, config.negative_ttl_max)
                } else {
                    let doubled = millis(config.failure_ttl_min).saturating_mul(1 << strikes.min(20));
                    doubled.min(millis(config.failure_ttl_max))
                }
            });
            (Err(error), expires_ms)
        }
    }
}
