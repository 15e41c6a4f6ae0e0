//! What the resolver remembers: addresses, denials and failures, each for a while.
//!
//! Each shard keeps two generations. New entries go into the young one; when it has filled its half of the shard, it
//! becomes the old one and the former old one is dropped whole. A hit in the old generation moves the entry to the
//! young one. So an entry used since the last change of generations survives the next (second chance), eviction costs
//! nothing per entry, and the bound holds exactly.
//!
//! **Invariant**: never more than `entries_max` entries of [`ENTRY_BYTES`], and no answer after its time. An entry takes 40
//! bytes in the table (62 on average with the table's slack), its name, and a list only where there is more than one
//! address. A longer one counts for several: names without end, as long as names can be and each with all the addresses
//! that are kept, are what a wildcard domain would fill a cache with. Read next: `wire.rs`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::DnsError;

const SHARDS: usize = 32;

/// What an entry may take before it counts for more than one.
pub const ENTRY_BYTES: usize = 256;
/// What every entry takes beside its name and its list.
const TABLE_BYTES: usize = 62;

/// What is known of a name: its addresses, or why there are none.
pub(super) type Knowledge = Result<Arc<[IpAddr]>, DnsError>;

/// A bounded map from canonical names to what is known of them. Times are milliseconds of the resolver's own clock.
pub(super) struct Cache {
    shards: Vec<Mutex<Shard>>,
    chooser: RandomState,
}

struct Shard {
    young: HashMap<Box<str>, Entry>,
    old: HashMap<Box<str>, Entry>,
    /// What the young ones count for together.
    young_weight: usize,
    young_max: usize,
}

struct Entry {
    expires_ms: u64,
    value: Value,
}

/// Two levels, so that the null of the list's pointer can tell them apart and a value takes 16 bytes.
enum Value {
    Many(Arc<[IpAddr]>),
    Small(Small),
}

/// One IPv4 address, the most common answer, needs no list of its own.
enum Small {
    One(Ipv4Addr),
    Failed { error: DnsError, strikes: u8 },
}

impl Value {
    fn knowledge(&self) -> Knowledge {
        match self {
            Value::Many(addresses) => Ok(Arc::clone(addresses)),
            Value::Small(Small::One(ip)) => Ok(Arc::new([IpAddr::V4(*ip)])),
            Value::Small(Small::Failed { error, .. }) => Err(*error),
        }
    }
}

impl Cache {
    pub(super) fn new(entries_max: usize) -> Cache {
        // Small caches have fewer shards, so that a bound of ten means ten.
        let shard_count = (entries_max / 64).clamp(1, SHARDS);
        let young_max = (entries_max / shard_count / 2).max(1);
        let shard = || Mutex::new(Shard { young: HashMap::new(), old: HashMap::new(), young_weight: 0, young_max });
        Cache { shards: (0..shard_count).map(|_| shard()).collect(), chooser: RandomState::new() }
    }

    /// What is known of the name at `now_ms`, and until when.
    pub(super) fn get(&self, name: &str, now_ms: u64) -> Option<(Knowledge, u64)> {
        let mut shard = self.shard(name);
        if let Some(entry) = shard.young.get(name) {
            return entry.at(now_ms);
        }
        let entry = shard.old.get(name)?;
        let known = entry.at(now_ms)?;
        if let Some((name, entry)) = shard.old.remove_entry(name) {
            shard.insert(name, entry);
        }
        Some(known)
    }

    /// Remembers addresses until `expires_ms`.
    pub(super) fn put_addresses(&self, name: &str, addresses: &Arc<[IpAddr]>, expires_ms: u64) {
        let value = match **addresses {
            [IpAddr::V4(ip)] => Value::Small(Small::One(ip)),
            _ => Value::Many(Arc::clone(addresses)),
        };
        self.shard(name).replace(name, Entry { expires_ms, value });
    }

    /// Remembers a failure. `ttl_ms` is told how many passing failures in a row came before this one, so that a server
    /// that stays broken is asked ever more rarely; the time it gives is counted from `now_ms` and returned as expiry.
    pub(super) fn put_failure(&self, name: &str, error: DnsError, now_ms: u64, ttl_ms: impl FnOnce(u8) -> u64) -> u64 {
        let mut shard = self.shard(name);
        let before = shard.young.get(name).or_else(|| shard.old.get(name));
        let strikes = match before.map(|entry| &entry.value) {
            Some(Value::Small(Small::Failed { error, strikes })) if !error.is_permanent() => strikes.saturating_add(1),
            _ => 0,
        };
        let expires_ms = now_ms.saturating_add(ttl_ms(strikes));
        shard.replace(name, Entry { expires_ms, value: Value::Small(Small::Failed { error, strikes }) });
        expires_ms
    }

    /// Entries held now, expired ones included.
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard)).map(|shard| shard.young.len() + shard.old.len()).sum()
    }

    fn shard(&self, name: &str) -> MutexGuard<'_, Shard> {
        let hash = self.chooser.hash_one(name) as usize;
        lock(&self.shards[hash % self.shards.len()])
    }
}

impl Shard {
    fn replace(&mut self, name: &str, entry: Entry) {
        if let Some(place) = self.young.get_mut(name) {
            self.young_weight = self.young_weight + entry.weight(name) - place.weight(name);
            *place = entry;
            return;
        }
        let name = self.old.remove_entry(name).map_or_else(|| name.into(), |(name, _)| name);
        self.insert(name, entry);
    }

    fn insert(&mut self, name: Box<str>, entry: Entry) {
        let weight = entry.weight(&name);
        if self.young_weight + weight > self.young_max {
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
        self.young_weight += weight;
        self.young.insert(name, entry);
    }
}

impl Entry {
    /// How many entries it counts for under this name.
    fn weight(&self, name: &str) -> usize {
        let list_bytes = match &self.value {
            Value::Many(addresses) => 2 * size_of::<usize>() + size_of_val(&**addresses),
            Value::Small(_) => 0,
        };
        (TABLE_BYTES + name.len() + list_bytes).div_ceil(ENTRY_BYTES)
    }

    fn at(&self, now_ms: u64) -> Option<(Knowledge, u64)> {
        (now_ms < self.expires_ms).then(|| (self.value.knowledge(), self.expires_ms))
    }
}

/// A panic while the lock was held cannot leave a shard half-changed in a way that matters: it is only a cache.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(last: u8) -> Arc<[IpAddr]> {
        Arc::new([IpAddr::from([192, 0, 2, last])])
    }

    #[test]
    fn answers_last_their_time_and_no_longer() {
        let cache = Cache::new(100);
        cache.put_addresses("a.example", &addresses(1), 1_000);
        assert_eq!(cache.get("a.example", 999), Some((Ok(addresses(1)), 1_000)));
        assert_eq!(cache.get("a.example", 1_000), None);
        assert_eq!(cache.get("b.example", 0), None);
        let many: Arc<[IpAddr]> = Arc::new([[192, 0, 2, 1].into(), [192, 0, 2, 2].into()]);
        cache.put_addresses("a.example", &many, 2_000);
        assert_eq!(cache.get("a.example", 1_500), Some((Ok(many), 2_000)));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn failures_in_a_row_are_counted_beyond_their_expiry() {
        let cache = Cache::new(100);
        let ttl_ms = |strikes: u8| (5_000_u64 << strikes.min(10)).min(60_000);
        let mut now_ms = 0;
        for expected in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] {
            let expires_ms = cache.put_failure("a.example", DnsError::ServFail, now_ms, ttl_ms);
            assert_eq!(expires_ms - now_ms, expected);
            assert_eq!(cache.get("a.example", now_ms), Some((Err(DnsError::ServFail), expires_ms)));
            now_ms = expires_ms;
            assert_eq!(cache.get("a.example", now_ms), None);
        }
        cache.put_addresses("a.example", &addresses(1), now_ms + 1);
        assert_eq!(cache.put_failure("a.example", DnsError::ServFail, now_ms, ttl_ms), now_ms + 5_000);
    }

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
        for entries_max in [2, 10, 1_000, 5_000] {
            let cache = Cache::new(entries_max);
            cache.put_addresses("used.example", &addresses(1), u64::MAX);
            for i in 0..20_000_u32 {
                cache.put_addresses(&format!("h{i}.example"), &addresses(2), u64::MAX);
                assert!(i % 100 != 0 || cache.len() <= entries_max, "{} of {entries_max}", cache.len());
                assert!(cache.get("used.example", 0).is_some(), "evicted at {i} of {entries_max}");
            }
            assert!(cache.len() <= entries_max && cache.len() >= entries_max / 3, "{} of {entries_max}", cache.len());
        }
    }

    #[test]
    fn long_entries_count_for_several() {
        let crowd: Arc<[IpAddr]> = (0..16).map(|n| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n])).collect();
        for entries_max in [64, 2_000] {
            let cache = Cache::new(entries_max);
            let mut most = 0;
            for i in 0..20_000_u32 {
                let name = format!("{i}.{}.example", "x".repeat(230));
                match i % 3 {
                    0 => cache.put_addresses(&name, &crowd, u64::MAX),
                    1 => cache.put_addresses(&name, &addresses(1), u64::MAX),
                    _ => _ = cache.put_failure(&name, DnsError::ServFail, 0, |_| 1_000),
                }
                // An entry that grows in its place is counted, too.
                cache.put_addresses(&name, &crowd, u64::MAX);
                most = most.max(cache.len());
            }
            let each = TABLE_BYTES + 245 + size_of_val(&*crowd);
            assert!(most * each <= entries_max * ENTRY_BYTES + 2 * SHARDS * each, "{most} of {entries_max}");
            assert!(most * each >= entries_max * ENTRY_BYTES / 3, "{most} of {entries_max}");
        }
    }

    #[test]
    fn entries_are_small() {
        assert!(size_of::<(Box<str>, Entry)>() <= 40, "{}", size_of::<(Box<str>, Entry)>());
    }
}
