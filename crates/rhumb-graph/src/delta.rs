//! The newest links: what was visited since the last level was written, in memory.
//!
//! It answers in both directions at once. URLs are told apart by a fingerprint that the caller gives, the one by which the
//! whole crawl tells them apart; so a link that was seen before costs one look into a table, and its key is made once.

use crate::key::put_key;
use crate::rows::{Csr, Node};

/// No node, no arc.
const NONE: u32 = u32::MAX;

/// Links of pages visited lately. Nodes here are numbered in the order they were met.
#[derive(Default)]
pub struct Delta {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    fingerprints: Vec<u64>,
    table: Vec<u32>,
    /// Of each node: its page, its newest arc in, and the page that saw it last.
    page_of: Vec<u32>,
    first_in: Vec<u32>,
    seen_by: Vec<u32>,
    pages: Vec<Page>,
    /// Of each arc: where it leads, the page it is on (`NONE` if that was visited again), the next arc to the same node.
    targets: Vec<u32>,
    sources: Vec<u32>,
    next_in: Vec<u32>,
    arcs_dead: u64,
    /// Nobody will ask for predecessors, and `first_in`, `sources` and `next_in` are not kept.
    only_written: bool,
}

#[derive(Clone, Copy)]
struct Page {
    node: u32,
    place: u64,
    arcs: (u32, u32),
}

/// The links of a delta as a level has them: nodes in the order of keys.
pub struct Sorted {
    /// Of each node in order: its number in the delta.
    pub order: Vec<u32>,
    /// The rows.
    pub rows: Csr,
}

impl Delta {
    /// One that is only going to be written: half the memory, but it cannot be asked for predecessors.
    pub fn only_written() -> Delta {
        Delta { only_written: true, ..Delta::default() }
    }

    /// The same, empty.
    pub fn emptied(&self) -> Delta {
        Delta { only_written: self.only_written, ..Delta::default() }
    }

    /// Adds a page, visited at `place` of the log, in place of what was known of it. False if its URL is none.
    pub fn page(&mut self, fingerprint: u64, url: &str, place: u64) -> bool {
        let Some(node) = self.intern(fingerprint, url) else { return false };
        let old = self.page_of[node as usize];
        if old != NONE {
            let (from, to) = self.pages[old as usize].arcs;
            self.arcs_dead += u64::from(to - from);
            if !self.only_written {
                self.sources[from as usize..to as usize].fill(NONE);
            }
        }
        self.page_of[node as usize] = self.pages.len() as u32;
        let at = self.targets.len() as u32;
        self.pages.push(Page { node, place, arcs: (at, at) });
        true
    }

    /// Adds a link of the page that was added last; once if it stands there several times.
    pub fn link(&mut self, fingerprint: u64, url: &str) {
        let Some(target) = self.intern(fingerprint, url) else { return };
        let number = self.pages.len() as u32;
        let Some(page) = self.pages.last_mut() else { return };
        if std::mem::replace(&mut self.seen_by[target as usize], number) == number {
            return;
        }
        let arc = self.targets.len() as u32;
        self.targets.push(target);
        page.arcs.1 = arc + 1;
        if !self.only_written {
            self.sources.push(page.node);
            self.next_in.push(std::mem::replace(&mut self.first_in[target as usize], arc));
        }
    }

    fn intern(&mut self, fingerprint: u64, url: &str) -> Option<u32> {
        if self.fingerprints.len() * 4 >= self.table.len() * 3 {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut slot = fingerprint as usize & mask;
        loop {
            match self.table[slot] {
                NONE => break,
                node if self.fingerprints[node as usize] == fingerprint => return Some(node),
                _ => slot = (slot + 1) & mask,
            }
        }
        if !put_key(url, &mut self.keys) {
            return None;
        }
        let node = self.fingerprints.len() as u32;
        self.table[slot] = node;
        self.fingerprints.push(fingerprint);
        self.key_ends.push(self.keys.len() as u32);
        self.page_of.push(NONE);
        self.seen_by.push(0);
        if !self.only_written {
            self.first_in.push(NONE);
        }
        Some(node)
    }

    fn grow(&mut self) {
        let slots = (self.table.len() * 2).max(1 << 10);
        self.table.clear();
        self.table.resize(slots, NONE);
        for (node, fingerprint) in self.fingerprints.iter().enumerate() {
            let mut slot = *fingerprint as usize & (slots - 1);
            while self.table[slot] != NONE {
                slot = (slot + 1) & (slots - 1);
            }
            self.table[slot] = node as u32;
        }
    }

    /// The node of a URL's fingerprint.
    pub fn find(&self, fingerprint: u64) -> Option<u32> {
        let mask = self.table.len().checked_sub(1)?;
        let mut slot = fingerprint as usize & mask;
        loop {
            match self.table[slot] {
                NONE => return None,
                node if self.fingerprints[node as usize] == fingerprint => return Some(node),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The key of a node.
    pub fn key(&self, node: u32) -> &[u8] {
        let from = if node == 0 { 0 } else { self.key_ends[node as usize - 1] };
        &self.keys[from as usize..self.key_ends[node as usize] as usize]
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.fingerprints.len() as u32
    }

    /// How many links there are.
    pub fn arcs(&self) -> u64 {
        self.targets.len() as u64 - self.arcs_dead
    }

    /// The newest visit of each page: its node and its place.
    pub fn pages(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let newest = |(i, p): &(usize, &Page)| self.page_of[p.node as usize] == *i as u32;
        self.pages.iter().enumerate().filter(newest).map(|(_, p)| (p.node, p.place))
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Where a node was visited, if it was.
    pub fn place(&self, node: u32) -> Option<u64> {
        self.pages.get(self.page_of[node as usize] as usize).map(|p| p.place)
    }

    /// The successors of a node, in the order they stand on the page.
    pub fn successors(&self, node: u32) -> &[u32] {
        self.pages
            .get(self.page_of[node as usize] as usize)
            .map_or(&[], |p| &self.targets[p.arcs.0 as usize..p.arcs.1 as usize])
    }

    /// The predecessors of a node, the newest first.
    pub fn predecessors(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        assert!(!self.only_written, "links that are only written cannot be asked for predecessors");
        let mut arc = self.first_in[node as usize];
        std::iter::from_fn(move || {
            while arc != NONE {
                let (source, next) = (self.sources[arc as usize], self.next_in[arc as usize]);
                arc = next;
                if source != NONE {
                    return Some(source);
                }
            }
            None
        })
    }

    /// Bytes in memory, with what sorting and turning round takes.
    pub fn memory_bytes(&self) -> usize {
        let of_vec = |v: &Vec<u32>| v.capacity() * 4;
        let nodes = [&self.key_ends, &self.table, &self.page_of, &self.first_in, &self.seen_by].map(of_vec);
        let arcs = [&self.targets, &self.sources, &self.next_in].map(of_vec);
        let kept = self.keys.capacity() + self.fingerprints.capacity() * 8 + self.pages.capacity() * size_of::<Page>();
        let sorting = self.fingerprints.len() * 32 + self.targets.len() * 8;
        kept + nodes.iter().chain(&arcs).sum::<usize>() + sorting
    }

    /// Whether numbers would not hold more.
    pub fn is_full(&self) -> bool {
        self.keys.len() > (u32::MAX / 2) as usize || self.targets.len() > (u32::MAX / 2) as usize
    }

    /// The same in the order of keys.
    pub fn sorted(&self) -> Sorted {
        let mut order: Vec<(u64, u32)> = (0..self.nodes()).map(|n| (head_of(self.key(n)), n)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.key(a.1).cmp(self.key(b.1))));
        let order: Vec<u32> = order.into_iter().map(|(_, n)| n).collect();
        let mut place_of = vec![0; order.len()];
        for (place, &node) in order.iter().enumerate() {
            place_of[node as usize] = place as Node;
        }
        let mut rows = Csr::default();
        let mut row = Vec::new();
        for &node in &order {
            row.clear();
            row.extend(self.successors(node).iter().map(|&t| place_of[t as usize]));
            row.sort_unstable();
            rows.push(&row);
        }
        Sorted { order, rows }
    }
}

/// The first eight bytes of a key as a number that sorts like them.
fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let n = key.len().min(8);
    head[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    fn url(n: u32) -> String {
        format!("http://h{}.example/{n}", n % 3)
    }

    fn add(delta: &mut Delta, from: u32, place: u64, to: &[u32]) {
        let page = url(from);
        assert!(delta.page(xxh3_64(page.as_bytes()), &page, place));
        for &t in to {
            delta.link(xxh3_64(url(t).as_bytes()), &url(t));
        }
    }

    fn node(delta: &Delta, n: u32) -> u32 {
        delta.find(xxh3_64(url(n).as_bytes())).expect("known")
    }

    #[test]
    fn a_page_that_is_visited_again_has_its_new_links_alone() {
        let mut delta = Delta::default();
        add(&mut delta, 1, 10, &[2, 3, 2, 1]);
        add(&mut delta, 4, 20, &[2]);
        assert_eq!(delta.arcs(), 4);
        let two = node(&delta, 2);
        let of = |delta: &Delta, n: u32| delta.predecessors(n).collect::<Vec<_>>();
        assert_eq!(of(&delta, two), [node(&delta, 4), node(&delta, 1)]);
        add(&mut delta, 1, 30, &[5]);
        assert_eq!(of(&delta, two), [node(&delta, 4)]);
        assert_eq!(delta.successors(node(&delta, 1)), [node(&delta, 5)]);
        assert_eq!(delta.place(node(&delta, 1)), Some(30));
        assert_eq!(delta.place(two), None);
        assert_eq!(delta.arcs(), 2);
        assert_eq!(delta.pages().count(), 2);
        let sorted = delta.sorted();
        let keys: Vec<&[u8]> = sorted.order.iter().map(|&n| delta.key(n)).collect();
        assert!(keys.is_sorted());
        use crate::Rows;
        assert_eq!(sorted.rows.arcs(), 2);
    }

    #[test]
    fn many_urls_are_told_apart() {
        let mut delta = Delta::default();
        for n in 0..5000 {
            add(&mut delta, n, u64::from(n), &[n + 1, n / 2]);
        }
        assert_eq!(delta.nodes(), 5001);
        for n in 0..5000 {
            assert_eq!(delta.place(node(&delta, n)), Some(u64::from(n)));
        }
        assert_eq!(delta.find(1), None);
        assert!(!delta.page(7, "no url", 1));
    }
}
