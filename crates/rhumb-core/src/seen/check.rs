//! Looks a batch of pages up: in all levels, in memory, and among themselves.
//!
//! The keys of the batch are sorted, so every level is walked through once. Whoever shares a key is a candidate; its sketch decides. A candidate that is deleted does not
//! count, nor one that is a duplicate itself, unless what it duplicates is deleted.

use std::collections::BTreeSet;

use rhumb_store::Result;

use super::level::{CANDIDATES_MAX, Entries, Entry, Graves, Level, PLACE_BITS, Segment, place};
use super::store::{Found, PageRef};

/// Candidates that are verified together: they are read in the order in which they lie on disk.
const CANDIDATES_TOGETHER: usize = 64 << 10;

/// Finds which pages of the batch are duplicates, and notes it in their entries.
pub(super) fn check(
    batch: &mut Segment,
    levels: &[Level],
    segments: &[&Segment],
    graves: &Graves,
) -> Result<Vec<Found>> {
    let groups = Groups::new(&batch.keys);
    let mut best: Vec<Option<Hit>> = vec![None; batch.entries.len()];
    for level in levels {
        let entries = Entries::Disk(level.rows.reader(), level.rows.name());
        let mut verifier =
            Verifier { batch, groups: &groups, entries, graves, best: &mut best, candidates: Vec::new() };
        let mut trouble = Ok(());
        level.find(&groups.prefixes, |i, place| {
            if trouble.is_ok() {
                trouble = verifier.add(i, place);
            }
        })?;
        trouble?;
        verifier.verify()?;
    }
    for segment in segments {
        let entries = Entries::Memory(segment);
        let mut verifier =
            Verifier { batch, groups: &groups, entries, graves, best: &mut best, candidates: Vec::new() };
        let mut trouble = Ok(());
        segment.find(&groups.prefixes, |i, place| {
            if trouble.is_ok() {
                trouble = verifier.add(i, place);
            }
        });
        trouble?;
        verifier.verify()?;
    }
    Ok(compare_among_themselves(batch, &groups, best))
}

/// What a page is a duplicate of.
#[derive(Clone, Copy, Debug)]
struct Hit {
    of: u64,
    similarity: f32,
    exact: bool,
}

impl Hit {
    /// The same text is better than a similar one, more similar is better than less, and of equals the oldest is.
    fn is_better_than(&self, other: &Hit) -> bool {
        let order = self.exact.cmp(&other.exact).then(self.similarity.total_cmp(&other.similarity));
        order.then(other.of.cmp(&self.of)).is_gt()
    }
}

fn keep_better(best: &mut Option<Hit>, hit: Hit) {
    if best.is_none_or(|b| hit.is_better_than(&b)) {
        *best = Some(hit);
    }
}

/// The pages of the batch by key.
struct Groups {
    /// Keys, ascending.
    prefixes: Vec<u64>,
    /// Where the places of each begin, and where the last ones end.
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl Groups {
    fn new(keys: &[u64]) -> Groups {
        let mut groups = Groups {
            prefixes: Vec::with_capacity(keys.len()),
            starts: Vec::with_capacity(keys.len() + 1),
            places: Vec::with_capacity(keys.len()),
        };
        for &key in keys {
            if groups.prefixes.last() != Some(&(key >> PLACE_BITS)) {
                groups.prefixes.push(key >> PLACE_BITS);
                groups.starts.push(groups.places.len() as u32);
            }
            groups.places.push(place(key));
        }
        groups.starts.push(groups.places.len() as u32);
        groups
    }

    fn of(&self, i: usize) -> &[u32] {
        &self.places[self.starts[i] as usize..self.starts[i + 1] as usize]
    }
}

/// Compares pages of the batch with candidates of one level.
struct Verifier<'a> {
    batch: &'a Segment,
    groups: &'a Groups,
    entries: Entries<'a>,
    graves: &'a Graves,
    best: &'a mut [Option<Hit>],
    /// The candidate's place, and that of the page in the batch.
    candidates: Vec<(u32, u32)>,
}

impl Verifier<'_> {
    /// The page at `candidate` has key `i`.
    fn add(&mut self, i: usize, candidate: u32) -> Result<()> {
        for &place in self.groups.of(i) {
            self.candidates.push((candidate, place));
            if self.candidates.len() >= CANDIDATES_TOGETHER {
                self.verify()?;
            }
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<()> {
        self.candidates.sort_unstable();
        self.candidates.dedup();
        let mut hits: Vec<(u32, Entry, f32, bool)> = Vec::new();
        let mut at: Option<(u32, Entry)> = None;
        for (candidate, place) in self.candidates.drain(..) {
            let entry = match at {
                Some((number, entry)) if number == candidate => entry,
                _ => self.entries.get(candidate)?,
            };
            at = Some((candidate, entry));
            if let Some((similarity, exact)) = entry.resembles(&self.batch.entries[place as usize]) {
                hits.push((place, entry, similarity, exact));
            }
        }
        let pages = hits.iter().flat_map(|(_, e, ..)| [Some(e.page), e.of]).flatten().collect();
        let dead: BTreeSet<u64> = self.graves.among(pages)?;
        for (place, entry, similarity, exact) in hits {
            let stands = entry.of.is_none_or(|of| dead.contains(&of));
            if stands && !dead.contains(&entry.page) {
                keep_better(&mut self.best[place as usize], Hit { of: entry.page, similarity, exact });
            }
        }
        Ok(())
    }
}

/// The last step goes from the oldest page to the youngest: whether a page of the batch is a representative is known when the next one is looked at.
fn compare_among_themselves(batch: &mut Segment, groups: &Groups, mut best: Vec<Option<Hit>>) -> Vec<Found> {
    // The groups that have more than one page, by page, and for each group room for the representatives met in it, as many as are looked at.
    let mut shared: Vec<(u32, u32)> = Vec::new();
    let mut rooms: Vec<(u32, u32)> = Vec::new();
    let mut room = 0;
    for i in (0..groups.prefixes.len()).filter(|&i| groups.of(i).len() > 1) {
        shared.extend(groups.of(i).iter().map(|&place| (place, rooms.len() as u32)));
        rooms.push((room, room));
        room += groups.of(i).len().min(CANDIDATES_MAX) as u32;
    }
    shared.sort_unstable();
    let mut met = vec![0u32; room as usize];
    let mut found = Vec::new();
    let mut rest = &shared[..];
    for (i, best) in best.iter_mut().enumerate() {
        let (mine, behind) = rest.split_at(rest.iter().take_while(|(place, _)| *place as usize == i).count());
        rest = behind;
        for (_, group) in mine {
            let (start, end) = rooms[*group as usize];
            for &other in &met[start as usize..end as usize] {
                let older = &batch.entries[other as usize];
                if let Some((similarity, exact)) = older.resembles(&batch.entries[i]) {
                    keep_better(best, Hit { of: older.page, similarity, exact });
                }
            }
        }
        let entry = &mut batch.entries[i];
        match best {
            Some(hit) => {
                entry.of = Some(hit.of);
                let (page, of) = (PageRef(entry.page), PageRef(hit.of));
                found.push(Found { page, of, similarity: hit.similarity, exact: hit.exact });
            }
            None => {
                for (_, group) in mine {
                    let (start, end) = &mut rooms[*group as usize];
                    if *end - *start < CANDIDATES_MAX as u32 {
                        met[*end as usize] = i as u32;
                        *end += 1;
                    }
                }
            }
        }
    }
    found
}
