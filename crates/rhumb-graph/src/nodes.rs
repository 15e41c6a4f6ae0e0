//! What is known of the nodes of one level beside their URLs: which of them are pages whose links it has, where in the
//! log each of these was visited, and where each host begins (`*.nodes`; docs/formats/graph.md).
//!
//! Pages also go into a Bloom filter, so that a page that is not here costs no look-up of its URL.

use rhumb_store::Result;
use rhumb_store::disk::Disk;
use xxhash_rust::xxh3::xxh3_64;

use crate::rows::Node;
use rhumb_store::sealed::{Kind, Sealed, SealedWriter};

const KIND: Kind = Kind { magic: *b"rhumbnod", version: 1 };
/// Nodes, pages, hosts, words of the filter: a word each, at the end of the content.
const HEAD_WORDS: usize = 4;
/// Words of the bitmap between two counts.
const RANK_WORDS: usize = 8;
const FILTER_BITS_PER_PAGE: u64 = 10;
const FILTER_PROBES: u64 = 5;

/// A set of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    count: u64,
}

impl Bits {
    /// Adds a node.
    pub fn insert(&mut self, node: Node) {
        let word = node as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (node % 64);
        self.count += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// Whether it is there.
    pub fn contains(&self, node: Node) -> bool {
        self.words.get(node as usize / 64).is_some_and(|w| w >> (node % 64) & 1 == 1)
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Node> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.checked_ilog2().map(|_| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(i as Node * 64 + bit)
            })
        })
    }
}

/// Writes the file, node by node.
pub struct NodesWriter {
    file: SealedWriter,
    nodes: Node,
    pages: Bits,
    hosts: Vec<Node>,
    host: Vec<u8>,
    filter: Vec<u64>,
}

impl NodesWriter {
    /// Begins the file `name`, which will have so many pages at most.
    pub fn create(disk: &dyn Disk, name: &str, pages_max: u64) -> Result<NodesWriter> {
        let words = (pages_max * FILTER_BITS_PER_PAGE).div_ceil(64).max(1);
        Ok(NodesWriter {
            file: SealedWriter::create(disk, name, KIND)?,
            nodes: 0,
            pages: Bits::default(),
            hosts: Vec::new(),
            host: Vec::new(),
            filter: vec![0; words as usize],
        })
    }

    /// Adds the next node: its key, and the place of its visit if it is a page.
    pub fn push(&mut self, key: &[u8], place: Option<u64>) -> Result<()> {
        let host = crate::key::host_part(key);
        if self.nodes == 0 || self.host != host {
            self.host.clear();
            self.host.extend_from_slice(host);
            self.hosts.push(self.nodes);
        }
        if let Some(place) = place {
            self.pages.insert(self.nodes);
            for bit in probes(key, self.filter.len()) {
                self.filter[bit / 64] |= 1 << (bit % 64);
            }
            self.file.write(&place.to_le_bytes())?;
        }
        self.nodes += 1;
        Ok(())
    }

    /// So many nodes without keys, of which nothing is known.
    pub fn push_nameless(&mut self, nodes: Node) {
        self.nodes += nodes;
    }

    /// How many nodes there are so far.
    pub fn nodes(&self) -> Node {
        self.nodes
    }

    /// Seals the file.
    pub fn finish(mut self) -> Result<u64> {
        let words = (self.nodes as usize).div_ceil(64);
        self.pages.words.resize(words, 0);
        for word in &self.pages.words {
            self.file.write(&word.to_le_bytes())?;
        }
        for word in &self.filter {
            self.file.write(&word.to_le_bytes())?;
        }
        let mut before = 0u32;
        for group in self.pages.words.chunks(RANK_WORDS) {
            self.file.write(&before.to_le_bytes())?;
            before += group.iter().map(|w| w.count_ones()).sum::<u32>();
        }
        for start in &self.hosts {
            self.file.write(&start.to_le_bytes())?;
        }
        self.file.align(8)?;
        let figures = [u64::from(self.nodes), self.pages.len(), self.hosts.len() as u64, self.filter.len() as u64];
        for figure in figures {
            self.file.write(&figure.to_le_bytes())?;
        }
        self.file.finish()
    }
}

/// The bits of a filter of so many words that stand for a key.
fn probes(key: &[u8], words: usize) -> impl Iterator<Item = usize> {
    let hash = xxh3_64(key);
    let bits = words as u64 * 64;
    let step = (hash >> 32) | 1;
    (0..FILTER_PROBES).map(move |i| {
        let mixed = hash.wrapping_add(i.wrapping_mul(step)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mixed) * u128::from(bits)) >> 64) as usize
    })
}

/// The file, opened.
pub struct Nodes {
    file: Sealed,
    nodes: Node,
    pages: u64,
    hosts: usize,
    filter_words: usize,
    bitmap_at: usize,
    filter_at: usize,
    ranks_at: usize,
    hosts_at: usize,
}

impl Nodes {
    /// Opens the file `name`.
    pub fn open(disk: &dyn Disk, name: &str) -> Result<Nodes> {
        Nodes::read(Sealed::open(disk, name, KIND)?)
    }

    /// The same from the content of a file, without its seal.
    pub fn from_bytes(content: &[u8]) -> Result<Nodes> {
        Nodes::read(Sealed::in_memory("nodes in memory", content))
    }

    fn read(file: Sealed) -> Result<Nodes> {
        let head = file.len().checked_sub(HEAD_WORDS * 8).ok_or_else(|| file.damaged(0, "figures are missing"))?;
        let figure = |i: usize| word_at(&file, head + i * 8);
        let odd = || file.damaged(head, "the figures do not add up");
        let nodes = Node::try_from(figure(0)).map_err(|_| odd())?;
        let (pages, hosts, filter_words) = (figure(1), figure(2), figure(3));
        let words = (nodes as usize).div_ceil(64);
        let limit = file.len() as u64;
        if pages > u64::from(nodes) || hosts > u64::from(nodes) || filter_words == 0 || filter_words > limit {
            return Err(odd());
        }
        let bitmap_at = pages as usize * 8;
        let filter_at = bitmap_at + words * 8;
        let ranks_at = filter_at + filter_words as usize * 8;
        let hosts_at = ranks_at + words.div_ceil(RANK_WORDS) * 4;
        if (hosts_at + hosts as usize * 4).next_multiple_of(8) != head {
            return Err(odd());
        }
        let (hosts, filter_words) = (hosts as usize, filter_words as usize);
        let nodes = Nodes { file, nodes, pages, hosts, filter_words, bitmap_at, filter_at, ranks_at, hosts_at };
        nodes.checked()
    }

    /// Pages and hosts are where the counts say; a pass over both, which is less than the checksum took.
    fn checked(self) -> Result<Nodes> {
        let words = (self.nodes as usize).div_ceil(64);
        let mut pages = 0;
        for word in 0..words {
            let at = self.ranks_at + word / RANK_WORDS * 4;
            if word % RANK_WORDS == 0 && u64::from(half_at(&self.file, at)) != pages {
                return Err(self.file.damaged(at, "pages are counted wrongly"));
            }
            pages += u64::from(word_at(&self.file, self.bitmap_at + word * 8).count_ones());
        }
        let beyond = self.nodes % 64;
        let rest = if beyond == 0 { 0 } else { word_at(&self.file, self.filter_at - 8) >> beyond };
        if pages != self.pages || rest != 0 {
            return Err(self.file.damaged(self.bitmap_at, "pages are counted wrongly"));
        }
        let start = |i: usize| half_at(&self.file, self.hosts_at + i * 4);
        let in_order = (1..self.hosts).all(|i| start(i - 1) < start(i));
        if !in_order || (self.hosts > 0 && (start(0) != 0 || start(self.hosts - 1) >= self.nodes)) {
            return Err(self.file.damaged(self.hosts_at, "hosts are not in order"));
        }
        Ok(self)
    }

    /// How many nodes there are.
    pub fn len(&self) -> Node {
        self.nodes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// How many of them are pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Whether a node is a page.
    pub fn is_page(&self, node: Node) -> bool {
        node < self.nodes && word_at(&self.file, self.bitmap_at + node as usize / 64 * 8) >> (node % 64) & 1 == 1
    }

    /// Where in the log a page was visited; nothing for a node that is none.
    pub fn place(&self, node: Node) -> Option<u64> {
        if !self.is_page(node) {
            return None;
        }
        let word = node as usize / 64;
        let group = word / RANK_WORDS;
        let mut rank = u64::from(half_at(&self.file, self.ranks_at + group * 4));
        for before in group * RANK_WORDS..word {
            rank += u64::from(word_at(&self.file, self.bitmap_at + before * 8).count_ones());
        }
        let own = word_at(&self.file, self.bitmap_at + word * 8) & ((1 << (node % 64)) - 1);
        rank += u64::from(own.count_ones());
        (rank < self.pages).then(|| word_at(&self.file, rank as usize * 8))
    }

    /// Whether the key may be that of a page here: no is certain.
    pub fn may_have_page(&self, key: &[u8]) -> bool {
        probes(key, self.filter_words)
            .all(|bit| word_at(&self.file, self.filter_at + bit / 64 * 8) >> (bit % 64) & 1 == 1)
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// The nodes of the host of this number, in the order of keys.
    pub fn host(&self, number: usize) -> std::ops::Range<Node> {
        let start = |i: usize| half_at(&self.file, self.hosts_at + i * 4);
        start(number)..if number + 1 < self.hosts { start(number + 1) } else { self.nodes }
    }

    /// The number of the host that a node belongs to.
    pub fn host_of(&self, node: Node) -> usize {
        let (mut low, mut high) = (0, self.hosts);
        while low < high {
            let middle = usize::midpoint(low, high);
            if half_at(&self.file, self.hosts_at + middle * 4) <= node { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("eight bytes")))
}

fn half_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes(b.try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use rhumb_store::disk::RealDisk;

    use super::*;

    #[test]
    fn pages_places_and_hosts_are_found_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        let mut writer = NodesWriter::create(&*disk, "n", 700).expect("created");
        let key = |i: u32| format!("com,h{:03})http/{i}", i / 7).into_bytes();
        let place = |i: u32| (i.is_multiple_of(3) || i % 64 == 5).then_some(u64::from(i) * 1_000_003);
        for i in 0..1500 {
            writer.push(&key(i), place(i)).expect("pushed");
        }
        writer.finish().expect("finished");
        let nodes = Nodes::open(&*disk, "n").expect("opened");
        assert_eq!((nodes.len(), nodes.hosts()), (1500, 1500usize.div_ceil(7)));
        let mut wrongly = 0;
        for i in 0..1500 {
            assert_eq!((nodes.place(i), nodes.is_page(i)), (place(i), place(i).is_some()), "{i}");
            assert_eq!(nodes.host_of(i), i as usize / 7, "{i}");
            if place(i).is_some() {
                assert!(nodes.may_have_page(&key(i)), "{i}");
            } else {
                wrongly += u32::from(nodes.may_have_page(&key(i)));
            }
        }
        assert!(wrongly < 60, "the filter lets {wrongly} of about 980 through");
        assert_eq!(nodes.host(2), 14..21);
        assert_eq!(nodes.host(214), 1498..1500);
        assert_eq!(nodes.place(1500), None);
    }

    #[test]
    fn a_set_lists_what_is_in_it() {
        let mut bits = Bits::default();
        for node in [3, 64, 63, 1000, 3] {
            bits.insert(node);
        }
        assert_eq!(bits.iter().collect::<Vec<_>>(), [3, 63, 64, 1000]);
        assert_eq!((bits.len(), bits.contains(64), bits.contains(65), bits.contains(5000)), (4, true, false, false));
    }

    /// Counts that do not fit what they count are refused, for others rely on them.
    #[test]
    fn every_flipped_bit_of_pages_and_their_counts_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = RealDisk::new(dir.path());
        let mut writer = NodesWriter::create(&*disk, "n", 30).expect("created");
        for i in 0..70 {
            let key = format!("com,h{:03})http/{i:03}", i / 7);
            writer.push(key.as_bytes(), (i % 3 == 0).then_some(i)).expect("pushed");
        }
        writer.finish().expect("finished");
        let file = disk.read("n").expect("read");
        let content = &file[16..file.len() - 16];
        let sound = Nodes::from_bytes(content).expect("sound");
        for bit in 0..content.len() * 8 {
            let mut flipped = content.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let refused = Nodes::from_bytes(&flipped).is_err();
            // Bits of pages, counts between them, and the count of all. The others may be as they are for all that is known here.
            let at = bit / 8;
            let certain = (sound.bitmap_at..sound.filter_at).contains(&at)
                || (sound.ranks_at..sound.hosts_at).contains(&at)
                || (content.len() - 24..content.len() - 16).contains(&at);
            assert!(refused || !certain, "bit {bit}");
        }
    }
}
