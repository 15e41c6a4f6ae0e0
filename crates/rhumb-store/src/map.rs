//! Files that are read in place, without being copied into memory first.
//!
//! This is the one file of the store with `unsafe` in it. A mapping is sound as long as nobody changes or cuts the file: so
//! only files are mapped that rhumb writes once, under a name that is never used again, and that are removed but
//! not emptied when they have had their day.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// The bytes of a whole file.
pub struct Map(Bytes);

enum Bytes {
    Mapped(memmap2::Mmap),
    Read(Vec<u8>),
}

impl Map {
    /// Maps a file as it is now.
    #[allow(unsafe_code)]
    pub fn of(file: &File) -> io::Result<Map> {
        if file.metadata()?.len() == 0 {
            return Ok(Map(Bytes::Read(Vec::new())));
        }
        // SAFETY: the mapping is read-only, and files that are mapped are not changed or cut by any rhumb process
        // (see the head of this file).
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(Map(Bytes::Mapped(map)))
    }
}

impl From<Vec<u8>> for Map {
    fn from(bytes: Vec<u8>) -> Map {
        Map(Bytes::Read(bytes))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}

// SAFETY: the bytes lie in the mapping or in the vector's own memory, neither of which moves or changes when the `Map` is moved, and
// there is no way to change either through it.
#[allow(unsafe_code)]
unsafe impl stable_deref_trait::StableDeref for Map {}
