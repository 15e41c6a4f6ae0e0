//! Runs on disk, numbers within them, and the tournament that merges them.

use std::sync::Arc;

use rhumb_store::StoreError;
use rhumb_store::disk::{Disk, DiskFile};

use crate::Result;

const WRITE_BYTES: usize = 256 << 10;
/// Merging reads so much of a run at once, or less if there are many.
const READ_BYTES_MAX: usize = 256 << 10;
const READ_BYTES_MIN: usize = 16 << 10;
/// More runs than this are first merged to one. Each is an open file.
pub const RUNS_MAX: usize = 256;
/// A number takes at most so many bytes.
pub const NUMBER_BYTES_MAX: usize = 10;

/// Adds a number, seven bits to a byte, the lowest first.
#[inline]
pub fn put_number(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// A run: its file goes when it does.
pub struct Run {
    disk: Arc<dyn Disk>,
    name: String,
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Run {
    /// Begins a run in the file `name`.
    pub fn create(disk: &Arc<dyn Disk>, name: String) -> Result<Run> {
        let file = disk.create(&name)?;
        Ok(Run { disk: disk.clone(), name, file, buffer: Vec::with_capacity(WRITE_BYTES + 1024), bytes: 0 })
    }

    /// What is put here is added to the run by [`Run::flush`].
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the buffer if it is worth it.
    #[inline]
    pub fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the run; its memory is given back.
    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.buffer = Vec::new();
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // A file that cannot be removed is no reason to fail: it is below the name of temporary files and is made anew.
        let _ = self.disk.remove(&self.name);
    }
}

/// Reads a run from front to back.
pub struct RunReader {
    run: Run,
    offset: u64,
    at: usize,
    len: usize,
}

impl RunReader {
    /// Reads a finished run that is one of `runs`, with its part of `memory_bytes`.
    pub fn new(mut run: Run, runs: usize, memory_bytes: usize) -> RunReader {
        let size = (memory_bytes / runs.max(1)).clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        run.buffer = vec![0; size.min(run.bytes as usize)];
        RunReader { run, offset: 0, at: 0, len: 0 }
    }

    /// Bytes not yet taken that are in memory.
    #[inline]
    pub fn ready(&self) -> &[u8] {
        &self.run.buffer[self.at..self.len]
    }

    /// Passes over bytes that are ready.
    #[inline]
    pub fn take(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Makes at least `bytes` ready, or all that are left; false at the end.
    #[inline]
    pub fn want(&mut self, bytes: usize) -> Result<bool> {
        if self.len - self.at >= bytes {
            return Ok(true);
        }
        self.load(bytes)?;
        Ok(self.at < self.len)
    }

    #[cold]
    fn load(&mut self, bytes: usize) -> Result<()> {
        if self.offset == self.run.bytes {
            return Ok(());
        }
        self.run.buffer.copy_within(self.at..self.len, 0);
        self.len -= self.at;
        self.at = 0;
        if self.run.buffer.len() < bytes {
            self.run.buffer.resize(bytes, 0);
        }
        let read = self.run.file.read_at(self.offset, &mut self.run.buffer[self.len..])?;
        if read == 0 {
            return Err(self.damaged("the run is cut short").into());
        }
        self.offset += read as u64;
        self.len += read;
        Ok(())
    }

    /// The next number, of which all bytes are ready unless the run is cut.
    #[inline]
    pub fn number(&mut self) -> Result<u64> {
        const ENDS: u64 = 0x8080_8080_8080_8080;
        if let Some(bytes) = self.run.buffer.get(self.at..self.at + 8) {
            // Up to five bytes at once, whatever their number: branches would be guessed wrong.
            let word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            let len = (!word & ENDS).trailing_zeros() / 8 + 1;
            if len <= 5 && self.at + len as usize <= self.len {
                self.at += len as usize;
                let word = word & (!0 >> (64 - 8 * len));
                return Ok(word & 0x7F
                    | word >> 1 & 0x7F << 7
                    | word >> 2 & 0x7F << 14
                    | word >> 3 & 0x7F << 21
                    | word >> 4 & 0x7F << 28);
            }
        }
        self.number_slowly()
    }

    fn number_slowly(&mut self) -> Result<u64> {
        let mut number = 0;
        for (n, &byte) in self.ready().iter().take(NUMBER_BYTES_MAX).enumerate() {
            number |= u64::from(byte & 0x7F) << (7 * n);
            if byte < 0x80 {
                self.at += n + 1;
                return Ok(number);
            }
        }
        Err(self.damaged("a number without an end").into())
    }

    /// The run does not hold what was written.
    #[cold]
    pub fn damaged(&self, what: &str) -> StoreError {
        StoreError::corrupt(&self.run.name, self.offset - (self.len - self.at) as u64, what)
    }
}

/// Which of several sources comes first, found again with as many comparisons as the tree is high when one has moved on: a tree
/// of losers (Knuth, TAOCP 3, 5.4.1).
pub struct Tournament {
    /// The winner, then the loser of every match.
    tree: Vec<usize>,
}

impl Tournament {
    const NOBODY: usize = usize::MAX;

    /// Plays all matches; `before(a, b)` says whether the source `a` comes before `b`.
    pub fn new(sources: usize, mut before: impl FnMut(usize, usize) -> bool) -> Tournament {
        let mut tournament = Tournament { tree: vec![Self::NOBODY; sources.max(1)] };
        for source in 0..sources {
            tournament.play(source, &mut before);
        }
        tournament
    }

    /// The source that comes first. There must be one.
    #[inline]
    pub fn winner(&self) -> usize {
        self.tree[0]
    }

    /// Plays the matches of the winner again, after it has moved on.
    #[inline]
    pub fn replay(&mut self, mut before: impl FnMut(usize, usize) -> bool) {
        self.play(self.tree[0], &mut before);
    }

    #[inline]
    fn play(&mut self, mut source: usize, before: &mut impl FnMut(usize, usize) -> bool) {
        let mut at = (source + self.tree.len()) / 2;
        while at > 0 {
            let other = self.tree[at];
            if other == Self::NOBODY {
                self.tree[at] = source;
                return;
            }
            if before(other, source) {
                self.tree[at] = source;
                source = other;
            }
            at /= 2;
        }
        self.tree[0] = source;
    }
}

/// The same for numbers, which are kept in the tree itself: nothing is looked up, and no branch depends on who wins.
pub struct NumberTournament {
    /// A number and, below it, its source: the winner, then the loser of every match.
    tree: Vec<u128>,
}

impl NumberTournament {
    /// Plays all matches between the first numbers of all sources.
    pub fn new(numbers: &[u64]) -> NumberTournament {
        let mut tournament = NumberTournament { tree: vec![u128::MAX; numbers.len().max(1)] };
        // Whoever has won stays where it is until all have played: so every match is between two.
        let mut round: Vec<u128> = numbers.iter().zip(0..).map(|(&n, source)| u128::from(n) << 64 | source).collect();
        let leaves = round.len();
        let mut winners = vec![u128::MAX; leaves];
        winners.append(&mut round);
        for at in (1..leaves).rev() {
            let (a, b) = (winners[2 * at], winners[2 * at + 1]);
            winners[at] = a.min(b);
            tournament.tree[at] = a.max(b);
        }
        if leaves > 0 {
            tournament.tree[0] = winners[1];
        }
        tournament
    }

    /// The smallest number and its source.
    #[inline]
    pub fn winner(&self) -> (u64, usize) {
        ((self.tree[0] >> 64) as u64, self.tree[0] as u64 as usize)
    }

    /// The source that has won has moved on to `number`.
    #[inline]
    pub fn replace(&mut self, number: u64) {
        let source = self.tree[0] as u64;
        let mut player = u128::from(number) << 64 | u128::from(source);
        let mut at = (source as usize + self.tree.len()) / 2;
        while at > 0 {
            let other = self.tree[at];
            self.tree[at] = player.max(other);
            player = player.min(other);
            at /= 2;
        }
        self.tree[0] = player;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_up_to_the_last_byte() {
        let dir = tempfile::tempdir().unwrap();
        let disk = rhumb_store::disk::RealDisk::new(dir.path());
        let numbers: Vec<u64> = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, u64::MAX >> bit]).collect();
        for start in 0..numbers.len() {
            let mut run = Run::create(&disk, "a".into()).unwrap();
            numbers[start..].iter().rev().for_each(|&number| put_number(number, run.buffer()));
            run.finish().unwrap();
            let mut reader = RunReader::new(run, 1, 0);
            for &number in numbers[start..].iter().rev() {
                assert!(reader.want(NUMBER_BYTES_MAX).unwrap());
                assert_eq!(reader.number().unwrap(), number);
            }
            assert!(!reader.want(1).unwrap());
            assert!(reader.number().is_err());
        }
    }

    #[test]
    fn the_first_of_any_number_of_sources_is_found() {
        for sources in 1..40 {
            let mut heads: Vec<usize> = (0..sources).map(|n| n * 7919 % 13).collect();
            let mut tournament = Tournament::new(sources, |a, b| heads[a] < heads[b]);
            let numbers: Vec<u64> = heads.iter().map(|&head| head as u64).collect();
            let mut of_numbers = NumberTournament::new(&numbers);
            let mut numbers_left = numbers;
            for step in 0..200 {
                let winner = tournament.winner();
                assert_eq!(heads[winner], *heads.iter().min().unwrap(), "{sources} sources, step {step}");
                heads[winner] += 1 + step * 31 % 17;
                tournament.replay(|a, b| heads[a] < heads[b]);
                let (number, source) = of_numbers.winner();
                assert_eq!((number, source), numbers_left.iter().copied().zip(0..).min().unwrap());
                numbers_left[source] += 1 + step as u64 * 31 % 17;
                of_numbers.replace(numbers_left[source]);
            }
        }
    }
}
