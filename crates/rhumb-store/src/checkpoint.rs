//! Checkpoints: a fold's state as one checksummed file, whole or not there at all.
//!
//! `state/checkpoint-N`: magic, format version, crc32 of the body, body. The newest whole one is
//! loaded; a damaged one is as good as none, because the log can always be folded from its start.

use crate::disk::Disk;
use crate::error::{Result, StoreError};

const MAGIC: &[u8; 8] = b"rhumbckp";
/// Version of the body's layout. Another one is folded anew from the log.
pub const VERSION: u32 = 5;
const HEADER_BYTES: usize = 16;

fn name(number: u64) -> String {
    format!("state/checkpoint-{number:012}")
}

fn numbers(disk: &dyn Disk) -> Result<Vec<u64>> {
    Ok(disk.list("state")?.iter().filter_map(|n| n.strip_prefix("checkpoint-")?.parse().ok()).collect())
}

/// What was found in `state/`.
pub enum Found {
    /// No checkpoint was ever written.
    None,
    /// The newest checkpoint's number and body.
    Whole(u64, Vec<u8>),
    /// There is one, but it cannot be used; the text says why.
    Unusable(String),
}

/// Loads the newest checkpoint.
pub fn load(disk: &dyn Disk) -> Result<Found> {
    let Some(&number) = numbers(disk)?.last() else { return Ok(Found::None) };
    let name = name(number);
    let bytes = disk.read(&name)?;
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if bytes.len() < HEADER_BYTES || &bytes[..8] != MAGIC {
        return Ok(Found::Unusable(StoreError::corrupt(&name, 0, "not a checkpoint").to_string()));
    }
    if word(8) != VERSION {
        let e = StoreError::Version { file: name, found: word(8), known: VERSION };
        return Ok(Found::Unusable(e.to_string()));
    }
    if word(12) != crc32fast::hash(&bytes[HEADER_BYTES..]) {
        return Ok(Found::Unusable(StoreError::corrupt(&name, 12, "the checksum does not match").to_string()));
    }
    Ok(Found::Whole(number, bytes[HEADER_BYTES..].to_vec()))
}

/// Writes checkpoint `number` durably, then removes older ones.
pub fn save(disk: &dyn Disk, number: u64, body: &[u8]) -> Result<()> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    bytes.extend_from_slice(body);
    disk.replace(&name(number), &bytes)?;
    for old in numbers(disk)?.into_iter().filter(|&n| n < number) {
        disk.remove(&name(old))?;
    }
    Ok(())
}

/// Forgets all checkpoints, so that the next start folds the log from its beginning.
pub fn discard_all(disk: &dyn Disk) -> Result<()> {
    numbers(disk)?.into_iter().try_for_each(|n| disk.remove(&name(n)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn newest_whole_one_is_loaded_and_damage_is_named() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let disk = RealDisk::new(dir.path());
        disk.make_dir("state").expect("directory");
        assert!(matches!(load(&*disk), Ok(Found::None)));
        save(&*disk, 1, b"one").expect("save");
        save(&*disk, 2, b"two").expect("save");
        assert!(matches!(load(&*disk), Ok(Found::Whole(2, body)) if body == b"two"));
        let path = dir.path().join(name(2));
        let mut bytes = std::fs::read(&path).expect("read");
        *bytes.last_mut().expect("not empty") ^= 1;
        std::fs::write(&path, bytes).expect("write");
        assert!(matches!(load(&*disk), Ok(Found::Unusable(why)) if why.contains("checkpoint-000000000002")));
    }
}
