//! Which part of the page holds the text: paragraphs vote for the containers around them.
//!
//! This is the way of Arc90's Readability, which the reader modes of browsers descend from: a paragraph counts for its length and
//! its commas, for its parent in full, for its grandparent by half, less further up; names of containers add or take away;
//! what is mostly links loses by that share. The best container is the text, with those of its siblings that are like it.
//!
//! Invariant: linear in nodes and text; the same page gives the same answer.

use super::super::tag::Tag;
use super::hints::Hints;
use super::tree::{Node, Tree};

/// Shorter lines do not vote.
const LINE_BYTES_MIN: u32 = 25;
/// Longer lines read like sentences, and those half as long with a comma.
const SENTENCE_BYTES_MIN: u32 = 80;
/// How many containers above a paragraph hear of it.
const LEVELS: usize = 5;

/// How much is left out before the vote.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strictness {
    /// Only what is hidden.
    Lax,
    /// Also what is there for other purposes: navigation, forms, footers.
    Middle,
    /// Also what is named like something beside the text.
    Strict,
}

impl Node {
    /// The share of its text that is in links.
    pub(super) fn link_density(&self) -> f32 {
        if self.bytes == 0 { 0.0 } else { (self.links as f32 / self.bytes as f32).min(1.0) }
    }
}

impl Tree {
    /// Marks what is left out, sums up what is not, and lets paragraphs vote.
    pub(super) fn weigh(&mut self, text: &str, strictness: Strictness) {
        self.leave_out(strictness);
        self.sum_up(text);
    }

    fn leave_out(&mut self, strictness: Strictness) {
        for i in 0..self.nodes.len() {
            let parent_is_out = i > 0 && self.nodes[self.nodes[i].parent as usize].is_out;
            let node = &mut self.nodes[i];
            node.is_out = parent_is_out || node.is_template || is_beside(node, strictness);
            node.is_candidate = false;
            node.score = 0.0;
            (node.bytes, node.good, node.commas, node.paragraphs, node.items) = (0, 0, 0, 0, 0);
            (node.links, node.images, node.inputs) = (node.own_links, node.own_images, node.own_inputs);
        }
    }

    /// From the last node to the first: every node has its subtree's sums before its parent asks for them.
    fn sum_up(&mut self, text: &str) {
        for i in (0..self.nodes.len()).rev() {
            if self.nodes[i].is_out {
                continue;
            }
            self.own_text(i, text);
            let node = self.nodes[i];
            let parent = &mut self.nodes[node.parent as usize];
            if i > 0 {
                parent.bytes += node.bytes;
                parent.good += node.good;
                parent.links += node.links;
                parent.commas += node.commas;
                parent.paragraphs = parent.paragraphs.saturating_add(node.paragraphs + u16::from(node.tag == Tag::P));
                parent.items = parent.items.saturating_add(node.items + u16::from(node.tag == Tag::Li));
                parent.images = parent.images.saturating_add(node.images);
                parent.inputs = parent.inputs.saturating_add(node.inputs);
            }
        }
    }

    /// Hands each piece of a node's text that is not in a child to `f`.
    pub(super) fn own_pieces<'t>(&self, i: usize, text: &'t str, mut f: impl FnMut(&'t [u8])) {
        let node = &self.nodes[i];
        let mut at = node.text.0;
        for child in self.children(i) {
            f(&text.as_bytes()[at as usize..self.nodes[child].text.0 as usize]);
            at = self.nodes[child].text.1;
        }
        f(&text.as_bytes()[at as usize..node.text.1 as usize]);
    }

    /// Counts the text of a node that is not in a child, and lets its lines vote.
    fn own_text(&mut self, i: usize, text: &str) {
        if !self.nodes[i].is_measured {
            self.measure(i, text);
        }
        let node = &mut self.nodes[i];
        node.bytes += node.own_bytes;
        node.good += node.own_good;
        node.commas += node.own_commas;
        let vote = node.own_vote;
        if vote > 0.0 {
            self.vote(i, vote);
        }
    }

    /// What the text of a node that is not in a child is worth, however strictly the page is read.
    fn measure(&mut self, i: usize, text: &str) {
        let (mut bytes, mut good, mut commas, mut vote) = (0, 0, 0, 0.0);
        self.own_pieces(i, text, |piece| {
            let mut at = 0;
            for end in memchr::memchr_iter(b'\n', piece).chain([piece.len()]) {
                let line = piece[at..end].trim_ascii();
                at = end + 1;
                let length = line.len() as u32;
                if length == 0 {
                    continue;
                }
                let found = commas_in(line);
                bytes += length;
                commas += found;
                if length >= SENTENCE_BYTES_MIN || (length >= SENTENCE_BYTES_MIN / 2 && found > 0) {
                    good += length;
                }
                if length >= LINE_BYTES_MIN {
                    vote += 1.0 + found as f32 + (length as f32 / 100.0).min(3.0);
                }
            }
        });
        let node = &mut self.nodes[i];
        let good = if node.own_links * 3 < bytes { good } else { 0 };
        (node.own_bytes, node.own_good, node.own_commas, node.own_vote) = (bytes, good, commas, vote);
        node.is_measured = true;
    }

    /// A node's own lines count for the node itself, if it is a container, and for those around it.
    fn vote(&mut self, i: usize, vote: f32) {
        use Tag::*;
        let tag = self.nodes[i].tag;
        let mut to = match tag {
            P | Pre | Blockquote | H2 | H3 | H4 | H5 | H6 => self.nodes[i].parent as usize,
            Li | Dd | Dt | H1 | Figcaption | Caption | Summary | Legend | Option | Button | Select => return,
            _ => i,
        };
        for level in 0..LEVELS {
            let share = match level {
                0 => 1.0,
                1 => 2.0,
                level => level as f32 * 3.0,
            };
            let node = &mut self.nodes[to];
            if !node.is_candidate {
                node.is_candidate = true;
                node.score += prior(node);
            }
            node.score += vote / share;
            if to == 0 {
                break;
            }
            to = node.parent as usize;
        }
    }

    /// The containers that hold the text, in order; nothing when no paragraph voted.
    pub(super) fn choose(&self, text: &str, chosen: &mut Vec<u32>) {
        chosen.clear();
        let Some(best) = self.best() else { return };
        let best = self.climb(best);
        if best == 0 {
            chosen.push(0);
            return;
        }
        self.add_siblings(best, text, chosen);
    }

    /// A candidate's score, less its share of links.
    pub(super) fn standing(&self, i: usize) -> f32 {
        let node = &self.nodes[i];
        node.score * (1.0 - node.link_density())
    }

    fn candidates(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|&i| self.nodes[i].is_candidate && !self.nodes[i].is_out)
    }

    fn best(&self) -> Option<usize> {
        // The first of equals, so that the outermost wins.
        let mut best = None;
        for i in self.candidates() {
            let standing = self.standing(i);
            if best.is_none_or(|(_, most)| standing > most) {
                best = Some((i, standing));
            }
        }
        let (best, most) = best?;
        Some(self.common_container(best, most).unwrap_or(best))
    }

    /// When several containers are nearly as good, the text is spread over them, and what holds at least three of them is
    /// better than any.
    fn common_container(&self, best: usize, most: f32) -> Option<usize> {
        const OTHERS: usize = 3;
        let mut near: Vec<usize> =
            self.candidates().filter(|&i| i != best && self.standing(i) >= most * 0.75).collect();
        if near.len() < OTHERS {
            return None;
        }
        near.sort_by(|&a, &b| self.standing(b).total_cmp(&self.standing(a)).then(a.cmp(&b)));
        near.truncate(4);
        let mut at = self.nodes[best].parent as usize;
        while at != 0 {
            let held = near.iter().filter(|&&i| i > at && i < self.nodes[at].end as usize).count();
            if held >= OTHERS {
                return Some(at);
            }
            at = self.nodes[at].parent as usize;
        }
        None
    }

    /// A container whose parent is better yet, or holds nothing else, gives way to it.
    fn climb(&self, best: usize) -> usize {
        let mut top = best;
        let mut last = self.nodes[best].score;
        let least = last / 3.0;
        let mut at = self.nodes[best].parent as usize;
        while at != 0 {
            let node = &self.nodes[at];
            if node.is_candidate {
                if node.score < least {
                    break;
                }
                if node.score > last {
                    top = at;
                    break;
                }
                last = node.score;
            }
            at = node.parent as usize;
        }
        self.widen(&mut top);
        loop {
            let parent = self.nodes[top].parent as usize;
            if top == 0 || parent == 0 || self.nodes[parent].bytes > self.nodes[top].bytes {
                return top;
            }
            top = parent;
        }
    }

    /// A text may be spread over several containers, its beginning in one of its own: whatever holds more sentences, and next to
    /// nothing else, is the better choice.
    fn widen(&self, top: &mut usize) {
        let mut at = *top;
        while at != 0 {
            at = self.nodes[at].parent as usize;
            let (inner, outer) = (&self.nodes[*top], &self.nodes[at]);
            let gained = outer.good - inner.good;
            let added = outer.bytes - inner.bytes;
            if gained > 0 && u64::from(gained) * 20 > u64::from(added) * 19 {
                *top = at;
            }
        }
    }

    fn add_siblings(&self, best: usize, text: &str, chosen: &mut Vec<u32>) {
        let most = self.standing(best);
        let least = (most * 0.2).max(10.0);
        for i in self.children(self.nodes[best].parent as usize) {
            let node = &self.nodes[i];
            if node.is_out {
                continue;
            }
            let is_alike = node.tag == self.nodes[best].tag && node.hints == self.nodes[best].hints;
            let bonus = if is_alike { most * 0.2 } else { 0.0 };
            let counts = i == best
                || (node.is_candidate && self.standing(i) + bonus >= least)
                || (node.tag == Tag::P && is_paragraph(node, text));
            if counts {
                chosen.push(i as u32);
            }
        }
    }
}

/// Whether a paragraph beside the text reads like a part of it.
fn is_paragraph(node: &Node, text: &str) -> bool {
    let density = node.link_density();
    match node.bytes {
        0 => false,
        1..80 => density == 0.0 && text[node.text.0 as usize..node.text.1 as usize].trim_end().ends_with('.'),
        _ => density < 0.25,
    }
}

/// What the element and its names are worth before anybody votes.
fn prior(node: &Node) -> f32 {
    use Tag::*;
    let of_tag = match node.tag {
        Article | Main => 8.0,
        Div => 5.0,
        Pre | Td | Blockquote => 3.0,
        Address | Ol | Ul | Dl | Dd | Dt | Li | Form => -3.0,
        H1 | H2 | H3 | H4 | H5 | H6 | Th => -5.0,
        _ => 0.0,
    };
    of_tag + node.hints.weight() + if node.hints.any(Hints::BODY) { 25.0 } else { 0.0 }
}

/// Whether a node is known to be something else than the text.
fn is_beside(node: &Node, strictness: Strictness) -> bool {
    use Tag::*;
    // Some sites hide the article until a script has run.
    if node.hints.any(Hints::HIDDEN) && !node.hints.any(Hints::BODY) {
        return true;
    }
    if strictness >= Strictness::Middle
        && (matches!(node.tag, Nav | Footer | Aside | Button | Select | Dialog | Menu | Search)
            || node.hints.any(Hints::ROLE.with(Hints::NOTICE))
            || (node.hints.any(Hints::COMMENTS) && !node.hints.any(Hints::MAYBE)))
        && !matches!(node.tag, Body | Article | Main | Table | Tbody | Tr | Td | Th | Pre)
    {
        return true;
    }
    strictness == Strictness::Strict
        && node.hints.any(Hints::UNLIKELY)
        && !node.hints.any(Hints::MAYBE)
        && !matches!(node.tag, Body | Article | Main | Table | Tbody | Tr | Td | Th | Pre)
}

/// Commas, and what stands for them elsewhere: ideographic, Arabic, full-width; also the ideographic and Devanagari full stops,
/// since what is written with them has few commas.
fn commas_in(line: &[u8]) -> u32 {
    if line.is_ascii() {
        return memchr::memchr_iter(b',', line).count() as u32;
    }
    let mut count = 0;
    for (i, &byte) in line.iter().enumerate() {
        count += u32::from(byte == b',');
        if byte >= 0xD8 {
            let rest = &line[i..];
            let is_one = match byte {
                0xE3 => rest.starts_with(&[0xE3, 0x80, 0x81]) || rest.starts_with(&[0xE3, 0x80, 0x82]),
                0xEF => rest.starts_with(&[0xEF, 0xBC, 0x8C]),
                0xD8 => rest.starts_with(&[0xD8, 0x8C]),
                0xE0 => rest.starts_with(&[0xE0, 0xA5, 0xA4]),
                _ => false,
            };
            count += u32::from(is_one);
        }
    }
    count
}
