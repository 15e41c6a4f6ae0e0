//! Reading keys one after the other, as merging tables does.

use super::Urls;
use super::segment::{BLOCK_KEYS, GROUP_KEYS, GroupReader, Reader};
use crate::rows::Node;

/// Keys in order. Each is lent until the next is asked for.
pub struct UrlScan<'a> {
    urls: &'a Urls,
    /// The node that comes next.
    node: Node,
    /// The first node of the next segment.
    segment_end: Node,
    group: Option<GroupReader<'a>>,
    block: Option<Reader<'a>>,
    left_in_block: u32,
    head: Vec<u8>,
    key: Vec<u8>,
}

impl<'a> UrlScan<'a> {
    pub(super) fn new(urls: &'a Urls, from: Node) -> UrlScan<'a> {
        let mut scan = UrlScan {
            urls,
            node: from,
            segment_end: 0,
            group: None,
            block: None,
            left_in_block: 0,
            head: Vec::new(),
            key: Vec::new(),
        };
        let Some(segment) = urls.segment_of(from) else { return scan };
        let in_group = (from - segment.first) % GROUP_KEYS;
        scan.node = from - in_group;
        for _ in 0..in_group / BLOCK_KEYS {
            scan.next_block();
            scan.node += BLOCK_KEYS;
        }
        scan.left_in_block = 0;
        for _ in 0..in_group % BLOCK_KEYS {
            scan.next();
        }
        scan
    }

    /// The next key; nothing after the last.
    #[allow(clippy::should_implement_trait)] // An iterator cannot lend.
    pub fn next(&mut self) -> Option<&[u8]> {
        if self.node >= self.urls.len() {
            return None;
        }
        match &mut self.block {
            Some(block) if self.left_in_block > 0 => {
                let shared = block.shared();
                self.key.truncate(shared);
                block.rest(&mut self.key);
                self.left_in_block -= 1;
            }
            _ => {
                self.next_block();
                self.key.clear();
                self.key.extend_from_slice(&self.head);
            }
        }
        self.node += 1;
        Some(&self.key)
    }

    /// The node of the key that [`UrlScan::next`] gives next.
    pub fn node(&self) -> Node {
        self.node
    }

    /// Goes to the block that begins with the node that comes next.
    fn next_block(&mut self) {
        let mut found = self.group.as_mut().and_then(|group| group.next_block(&mut self.head));
        if found.is_none() || self.node >= self.segment_end {
            let Some(segment) = self.urls.segment_of(self.node) else { return };
            self.segment_end = segment.first + segment.keys;
            let number = (self.node - segment.first) / GROUP_KEYS;
            let mut group = segment.group(&self.urls.content, number);
            self.urls.index.get(segment.first_group + number, &mut self.head);
            found = group.next_block(&mut self.head);
            self.group = Some(group);
        }
        self.left_in_block = found.map_or(0, |(_, keys)| keys);
        self.block = found.map(|(reader, _)| reader);
    }
}
