//! The first keys of all groups, in memory: what a search begins with.
//!
//! Sixteen of them make a bucket. The first of a bucket stands there in full, the others say what they share with the
//! one before. The first keys of buckets are kept once more in the same way, side by side, so that a search halves its
//! way through few keys, which stay in the processor's cache, and then walks two buckets.

use std::cmp::Ordering;

use super::write::shared_bytes;

const BUCKET_KEYS: u32 = 16;

/// First keys in order.
#[derive(Default)]
pub(super) struct Index {
    keys: Level,
    /// The first keys of the buckets of `keys`.
    above: Level,
}

impl Index {
    /// How many keys there are.
    pub(super) fn len(&self) -> u32 {
        self.keys.len
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.above.memory_bytes()
    }

    /// Adds a key of at most 65,535 bytes.
    pub(super) fn push(&mut self, key: &[u8]) {
        if self.keys.push(key) {
            self.above.push(key);
        }
    }

    /// Puts a key into `into`, which is emptied first.
    pub(super) fn get(&self, number: u32, into: &mut Vec<u8>) {
        into.clear();
        let Some(&bucket) = self.keys.buckets.get((number / BUCKET_KEYS) as usize) else { return };
        let mut at = bucket;
        for _ in 0..=number % BUCKET_KEYS {
            let (shared, rest, next) = self.keys.at(at);
            into.truncate(shared);
            into.extend_from_slice(rest);
            at = next;
        }
    }

    /// The last key that is not greater than what is sought, how many bytes they have in common, and whether they
    /// are equal. Nothing if all are greater.
    pub(super) fn search(&self, sought: &[u8]) -> Option<(u32, usize, bool)> {
        let above = self.above.buckets.partition_point(|&at| self.above.at(at).1 <= sought).checked_sub(1)?;
        let (bucket, ..) = self.above.walk(above as u32, sought)?;
        self.keys.walk(bucket, sought)
    }
}

/// Keys in buckets.
#[derive(Default)]
struct Level {
    /// For every key what it shares (two bytes), how long the rest is (two bytes), the rest.
    bytes: Vec<u8>,
    /// Where buckets begin.
    buckets: Vec<usize>,
    last: Vec<u8>,
    len: u32,
}

impl Level {
    fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&self.buckets[..])
    }

    /// Adds a key. Whether it is the first of a bucket.
    fn push(&mut self, key: &[u8]) -> bool {
        let begins = self.len.is_multiple_of(BUCKET_KEYS);
        if begins {
            self.buckets.push(self.bytes.len());
            self.last.clear();
        }
        let shared = shared_bytes(&self.last, key);
        self.bytes.extend_from_slice(&(shared as u16).to_le_bytes());
        self.bytes.extend_from_slice(&((key.len() - shared) as u16).to_le_bytes());
        self.bytes.extend_from_slice(&key[shared..]);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.len += 1;
        begins
    }

    /// What a key shares with the one before, its rest, and where the next one is.
    #[inline]
    fn at(&self, at: usize) -> (usize, &[u8], usize) {
        let lengths: [u8; 4] = self.bytes.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default();
        let shared = u16::from_le_bytes([lengths[0], lengths[1]]);
        let end = at + 4 + usize::from(u16::from_le_bytes([lengths[2], lengths[3]]));
        (usize::from(shared), self.bytes.get(at + 4..end).unwrap_or_default(), end)
    }

    /// The last key of a bucket that is not greater than what is sought, how many bytes they have in common, and whether
    /// they are equal. The bucket's first key must not be greater.
    fn walk(&self, bucket: u32, sought: &[u8]) -> Option<(u32, usize, bool)> {
        let mut number = bucket * BUCKET_KEYS;
        let (_, rest, mut at) = self.at(*self.buckets.get(bucket as usize)?);
        let mut same = shared_bytes(rest, sought);
        let mut equal = same == sought.len() && same == rest.len();
        for next in number + 1..self.len.min(number + BUCKET_KEYS) {
            let (shared, rest, end) = self.at(at);
            match shared.cmp(&same) {
                // As in a block: it is less too, or it is greater.
                Ordering::Greater => {}
                Ordering::Less => break,
                Ordering::Equal => {
                    let more = shared_bytes(rest, &sought[same..]);
                    if rest.get(more).is_some_and(|b| sought.get(same + more).is_none_or(|s| b > s)) {
                        break;
                    }
                    same += more;
                    equal = more == rest.len() && same == sought.len();
                }
            }
            (number, at) = (next, end);
        }
        Some((number, same, equal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_key_that_is_not_greater() {
        let keys: Vec<Vec<u8>> =
            (0..1000).map(|n| format!("{:04}/{}", n * 2, "x".repeat(n % 40)).into_bytes()).collect();
        let mut index = Index::default();
        assert_eq!(index.search(b"a"), None);
        keys.iter().for_each(|key| index.push(key));
        let mut got = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            index.get(n as u32, &mut got);
            assert_eq!(&got, key);
            assert_eq!(index.search(key), Some((n as u32, key.len(), true)));
            let after = [&key[..], b"\0"].concat();
            assert_eq!(index.search(&after), Some((n as u32, key.len(), false)));
            let between = format!("{:04}", n * 2 + 1).into_bytes();
            assert_eq!(index.search(&between), Some((n as u32, shared_bytes(key, &between), false)));
        }
        assert_eq!(index.search(b""), None);
        assert_eq!(index.search(b"0000"), None);
    }
}
