//! Sorts byte strings, each with a number; of equal ones the smaller number comes first.
//!
//! In memory, strings lie one after the other, and what is sorted are 16 bytes for each: where it is, how long, and the eight
//! bytes after all that the strings of its group have in common. Most comparisons are of those. Groups that are equal in them
//! are sorted again, with the next bytes. In a run a string is said by how much of the one before it begins with.

use std::sync::Arc;

use rhumb_store::disk::Disk;

use super::runs::{NUMBER_BYTES_MAX, RUNS_MAX, Run, RunReader, Tournament, put_number};
use crate::{GraphError, Result};

/// Longer strings are refused.
pub const KEY_BYTES_MAX: usize = 1 << 20;
/// Memory for strings at least, however little was given.
const MEMORY_BYTES_MIN: usize = 64 << 10;
/// Where a string is has 32 bits.
const TEXT_BYTES_MAX: usize = u32::MAX as usize - KEY_BYTES_MAX - NUMBER_BYTES;
const NUMBER_BYTES: usize = 8;
/// Keys whose places in memory are asked for at once.
const BATCH: usize = 32;

/// Takes byte strings with a number each, in any order.
pub struct KeySorter {
    disk: Arc<dyn Disk>,
    prefix: String,
    memory_bytes: usize,
    /// The strings, the number of each before it.
    text: Vec<u8>,
    entries: Vec<Entry>,
    /// Whether the numbers in memory came in their order, as they do when they count.
    ascending: bool,
    number_last: u64,
    runs: Vec<Run>,
    files: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Eight bytes of the string, from the depth at which its group is being sorted.
    word: u64,
    at: u32,
    len: u32,
}

impl Entry {
    #[inline]
    fn key(self, text: &[u8]) -> &[u8] {
        &text[self.at as usize + NUMBER_BYTES..][..self.len as usize]
    }

    #[inline]
    fn number(self, text: &[u8]) -> u64 {
        let bytes = &text[self.at as usize..][..NUMBER_BYTES];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

impl KeySorter {
    /// A sorter that has its runs in files of `disk` whose names begin with `prefix`.
    pub fn new(disk: Arc<dyn Disk>, prefix: &str, memory_bytes: usize) -> KeySorter {
        KeySorter {
            disk,
            prefix: prefix.to_string(),
            memory_bytes: memory_bytes.max(MEMORY_BYTES_MIN),
            text: Vec::new(),
            entries: Vec::new(),
            ascending: true,
            number_last: 0,
            runs: Vec::new(),
            files: 0,
        }
    }

    /// Takes a string and its number.
    pub fn push(&mut self, key: &[u8], number: u64) -> Result<()> {
        if key.len() > KEY_BYTES_MAX {
            return Err(GraphError::input(format!("a key of {} bytes; at most {KEY_BYTES_MAX} are sorted", key.len())));
        }
        let bytes = NUMBER_BYTES + key.len();
        // What grows is doubled, so that for a moment there is one and a half of it.
        let used = self.text.len() + bytes + (self.entries.len() + 1) * size_of::<Entry>();
        if used > self.memory_bytes || self.text.len() + bytes > TEXT_BYTES_MAX {
            self.spill()?;
        }
        grow(&mut self.text, bytes, self.memory_bytes);
        grow(&mut self.entries, 1, self.memory_bytes / size_of::<Entry>());
        self.ascending &= self.number_last <= number;
        self.number_last = number;
        self.entries.push(Entry { word: 0, at: self.text.len() as u32, len: key.len() as u32 });
        self.text.extend_from_slice(&number.to_le_bytes());
        self.text.extend_from_slice(key);
        Ok(())
    }

    /// Sorts everything.
    pub fn finish(mut self) -> Result<SortedKeys> {
        let used = self.text.len() + self.entries.len() * size_of::<Entry>();
        if self.runs.is_empty() && used <= self.memory_bytes / 2 {
            sort(&mut self.entries, &self.text, self.ascending);
            let (entries, text) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.text));
            return Ok(SortedKeys { from: From::Memory { entries: entries.into_iter(), text } });
        }
        self.spill()?;
        self.text = Vec::new();
        self.entries = Vec::new();
        let merge = Merge::new(std::mem::take(&mut self.runs), self.memory_bytes / 4)?;
        Ok(SortedKeys { from: From::Runs(Box::new(merge)) })
    }

    fn spill(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        if self.runs.len() == RUNS_MAX {
            let mut merge = Merge::new(std::mem::take(&mut self.runs), 0)?;
            let mut writer = KeyWriter { run: self.next_run()?, last: Vec::new() };
            while let Some((key, number)) = merge.next()? {
                writer.push(key, number)?;
            }
            self.runs.push(writer.finish()?);
        }
        sort(&mut self.entries, &self.text, self.ascending);
        let mut writer = KeyWriter { run: self.next_run()?, last: Vec::new() };
        // Keys are read in an order that is not theirs in memory. Asked for several at once, they arrive together.
        for batch in self.entries.chunks(BATCH) {
            let mut numbers = [0; BATCH];
            let mut ends = 0;
            for (entry, number) in batch.iter().zip(&mut numbers) {
                *number = entry.number(&self.text);
                ends ^= entry.key(&self.text).last().unwrap_or(&0);
            }
            std::hint::black_box(ends);
            for (entry, number) in batch.iter().zip(numbers) {
                writer.push(entry.key(&self.text), number)?;
            }
        }
        self.runs.push(writer.finish()?);
        self.entries.clear();
        self.text.clear();
        (self.ascending, self.number_last) = (true, 0);
        Ok(())
    }

    fn next_run(&mut self) -> Result<Run> {
        self.files += 1;
        Run::create(&self.disk, format!("{}{:05}", self.prefix, self.files))
    }
}

/// Makes room for `more`: twice as much as there was, but not beyond `most` unless it must be.
#[inline]
fn grow<T>(vec: &mut Vec<T>, more: usize, most: usize) {
    let wanted = vec.len() + more;
    if wanted > vec.capacity() {
        vec.reserve_exact((2 * vec.len()).max(4096).min(most).max(wanted) - vec.len());
    }
}

/// Byte strings in order, equal ones in the order of their numbers.
pub struct SortedKeys {
    from: From,
}

enum From {
    Memory { entries: std::vec::IntoIter<Entry>, text: Vec<u8> },
    Runs(Box<Merge>),
}

impl SortedKeys {
    /// The next string and its number.
    #[allow(clippy::should_implement_trait)] // What it gives is lent until the next.
    pub fn next(&mut self) -> Result<Option<(&[u8], u64)>> {
        match &mut self.from {
            From::Memory { entries, text } => Ok(entries.next().map(|entry| (entry.key(text), entry.number(text)))),
            From::Runs(merge) => merge.next(),
        }
    }
}

/// How many bytes two strings have in common at their start.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut at = 0;
    for (x, y) in words_a.zip(words_b) {
        let (x, y) =
            (u64::from_le_bytes(x.try_into().expect("eight")), u64::from_le_bytes(y.try_into().expect("eight")));
        if x != y {
            return at + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}

/// Eight bytes from `depth` as a number that sorts as they do; zeros where the string has ended.
#[inline]
fn word_at(key: &[u8], depth: usize) -> u64 {
    match key.get(depth..depth + 8) {
        Some(bytes) => u64::from_be_bytes(bytes.try_into().expect("eight bytes")),
        None => key
            .get(depth..)
            .unwrap_or_default()
            .iter()
            .enumerate()
            .fold(0, |word, (n, &b)| word | u64::from(b) << (56 - 8 * n)),
    }
}

fn sort(entries: &mut [Entry], text: &[u8], ascending: bool) {
    // If numbers are in the order of places, they need not be fetched.
    let number = |entry: &Entry| if ascending { u64::from(entry.at) } else { entry.number(text) };
    // Groups still to be sorted, and up to where all strings of each are equal. Strings may be long, so no recursion.
    let mut groups = vec![(0, entries.len(), 0)];
    while let Some((start, end, mut depth)) = groups.pop() {
        let group = &mut entries[start..end];
        if group.len() < 12 {
            group.sort_unstable_by(|a, b| {
                let (x, y) = (&a.key(text)[depth..], &b.key(text)[depth..]);
                x.cmp(y).then_with(|| number(a).cmp(&number(b)))
            });
            continue;
        }
        // The loads of a group do not wait for each other, which is most of what there is to gain: each is far away.
        let depth = loop {
            let (mut differ, mut ended) = (0, false);
            let first = word_at(group[0].key(text), depth);
            for entry in group.iter_mut() {
                entry.word = word_at(entry.key(text), depth);
                differ |= entry.word ^ first;
                ended |= entry.len as usize <= depth + 8;
            }
            let same = differ.leading_zeros() as usize / 8;
            if same == 0 || same == 8 && ended {
                break depth;
            }
            depth += same;
        };
        group.sort_unstable_by_key(|entry| entry.word);
        let mut at = 0;
        while at < group.len() {
            let word = group[at].word;
            let len = group[at..].iter().take_while(|entry| entry.word == word).count();
            if len > 1 {
                // Strings that end here come first, the shorter before the longer: those have zeros where these have nothing.
                let same = &mut group[at..at + len];
                same.sort_unstable_by_key(|entry| (entry.len as usize).min(depth + 9));
                let ended = same.iter().take_while(|entry| entry.len as usize <= depth + 8).count();
                let mut equal = &mut same[..ended];
                while let Some(first) = equal.first() {
                    let len = first.len;
                    let count = equal.iter().take_while(|entry| entry.len == len).count();
                    let (now, later) = equal.split_at_mut(count);
                    now.sort_unstable_by_key(number);
                    equal = later;
                }
                if len - ended > 1 {
                    groups.push((start + at + ended, start + at + len, depth + 8));
                }
            }
            at += len;
        }
    }
}

struct KeyWriter {
    run: Run,
    last: Vec<u8>,
}

impl KeyWriter {
    fn push(&mut self, key: &[u8], number: u64) -> Result<()> {
        let same = common(&self.last, key);
        let buffer = self.run.buffer();
        put_number(same as u64, buffer);
        put_number((key.len() - same) as u64, buffer);
        put_number(number, buffer);
        buffer.extend_from_slice(&key[same..]);
        self.last.truncate(same);
        self.last.extend_from_slice(&key[same..]);
        self.run.flush_if_full()
    }

    fn finish(mut self) -> Result<Run> {
        self.run.finish()?;
        Ok(self.run)
    }
}

struct Source {
    reader: RunReader,
    key: Vec<u8>,
    number: u64,
    ended: bool,
}

impl Source {
    fn advance(&mut self) -> Result<()> {
        if !self.reader.want(3 * NUMBER_BYTES_MAX)? {
            self.ended = true;
            return Ok(());
        }
        let (same, more) = (self.reader.number()? as usize, self.reader.number()? as usize);
        self.number = self.reader.number()?;
        if same > self.key.len() || more > KEY_BYTES_MAX {
            return Err(self.reader.damaged("this is no key").into());
        }
        self.reader.want(more)?;
        self.key.truncate(same);
        match self.reader.ready().get(..more) {
            Some(bytes) => self.key.extend_from_slice(bytes),
            None => return Err(self.reader.damaged("the run is cut short").into()),
        }
        self.reader.take(more);
        Ok(())
    }

    #[inline]
    fn before(&self, other: &Source) -> bool {
        if self.ended || other.ended {
            return !self.ended;
        }
        (&self.key[..], self.number) < (&other.key[..], other.number)
    }
}

struct Merge {
    sources: Vec<Source>,
    tournament: Option<Tournament>,
}

impl Merge {
    fn new(runs: Vec<Run>, memory_bytes: usize) -> Result<Merge> {
        let count = runs.len();
        let readers = runs.into_iter().map(|run| RunReader::new(run, count, memory_bytes));
        let sources = readers.map(|reader| Source { reader, key: Vec::new(), number: 0, ended: false }).collect();
        Ok(Merge { sources, tournament: None })
    }

    fn next(&mut self) -> Result<Option<(&[u8], u64)>> {
        let sources = &mut self.sources;
        // What was given last is lent out until now, so its source moves on only now.
        let tournament = match &mut self.tournament {
            Some(tournament) => {
                sources[tournament.winner()].advance()?;
                tournament.replay(|a, b| sources[a].before(&sources[b]));
                tournament
            }
            none => {
                sources.iter_mut().try_for_each(Source::advance)?;
                none.insert(Tournament::new(sources.len(), |a, b| sources[a].before(&sources[b])))
            }
        };
        let winner = &self.sources[tournament.winner()];
        Ok((!winner.ended).then_some((&winner.key, winner.number)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rhumb_store::disk::RealDisk;

    use super::*;

    fn check(memory_bytes: usize, keys: Vec<(Vec<u8>, u64)>) {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(dir.path());
        let mut sorter = KeySorter::new(disk.clone(), "tmp-", memory_bytes);
        for (key, number) in &keys {
            sorter.push(key, *number).unwrap();
        }
        let mut expected = keys;
        expected.sort_unstable();
        let mut sorted = sorter.finish().unwrap();
        for (n, (key, number)) in expected.iter().enumerate() {
            assert_eq!(sorted.next().unwrap(), Some((&key[..], *number)), "the {n}th");
        }
        assert_eq!(sorted.next().unwrap(), None);
        drop(sorted);
        assert_eq!(disk.list(".").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn keys_come_out_sorted() {
        check(0, vec![]);
        check(0, vec![(vec![], 1)]);
        let url =
            |n: u64| format!("com,example,www{})https/a/long/path/that/all/share/{}?{}", n % 7, n * 7919 % 3001, n % 3);
        check(0, (0..20_000).map(|n| (url(n).into_bytes(), n * 31 % 97)).collect());
        check(16 << 20, (0..20_000).map(|n| (url(n).into_bytes(), n * 31 % 97)).collect());
        // More runs than are merged at once, and keys longer than what is read at once.
        check(0, (0..280u64).map(|n| (vec![(n * 37 % 256) as u8; 70_000], n)).collect());
    }

    #[test]
    fn a_key_that_is_too_long_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = KeySorter::new(RealDisk::new(dir.path()), "tmp-", 0);
        let error = sorter.push(&vec![0; KEY_BYTES_MAX + 1], 0).unwrap_err().to_string();
        assert_eq!(error, "a key of 1048577 bytes; at most 1048576 are sorted");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn keys_of_few_letters_come_out_sorted(keys in prop::collection::vec((prop::collection::vec(0..3u8, 0..30), 0..5u64), 0..400)) {
            check(0, keys);
        }
    }
}
