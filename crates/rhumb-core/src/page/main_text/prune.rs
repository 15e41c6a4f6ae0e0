//! What is left out of the chosen part: share bars, related links, forms, captions, lists of links.
//!
//! Invariant: linear in nodes; what is left out is a whole node.

use super::super::tag::Tag;
use super::hints::Hints;
use super::tree::Tree;

impl Tree {
    /// Marks the nodes inside `root` that do not belong to the text.
    pub(super) fn prune(&mut self, root: usize, text: &str, title: Option<&str>) {
        let end = self.nodes[root].end as usize;
        let mut i = root + 1;
        while i < end {
            let skip = self.nodes[i].is_out || self.nodes[i].bytes == 0 || {
                let is_junk = self.is_junk(i, root, text, title);
                self.nodes[i].is_out |= is_junk;
                is_junk
            };
            i = if skip { self.nodes[i].end as usize } else { i + 1 };
        }
    }

    fn is_junk(&self, i: usize, root: usize, text: &str, title: Option<&str>) -> bool {
        use Tag::*;
        let node = &self.nodes[i];
        let whole = self.nodes[root].bytes as f32;
        let share = node.bytes as f32 / whole.max(1.0);
        let density = node.link_density();
        // Whatever it is called, most of the text is the text.
        if share > 0.6 && density < 0.5 {
            return false;
        }
        let hints = node.hints;
        match node.tag {
            Nav | Footer | Aside | Button | Select | Dialog | Menu | Search | Optgroup | Option => return true,
            H1 => return title.is_some_and(|title| is_like(self.text_of(i, text), title)),
            Figure | Figcaption => return node.bytes < 400 || density > 0.5,
            _ => {}
        }
        if hints.any(Hints::ROLE) || (hints.any(Hints::COMMENTS) && !hints.any(Hints::MAYBE)) {
            return true;
        }
        // Sentences are hardly ever clutter, whatever their container is called.
        let is_text = node.good >= 300 && node.good * 10 >= node.bytes * 7 && density < 0.2;
        if node.tag == P && (is_text || node.bytes > 150) {
            return false;
        }
        if hints.any(Hints::JUNK) && !hints.any(Hints::BODY) && share < if is_text { 0.15 } else { 0.3 } {
            return true;
        }
        if is_text {
            return false;
        }
        if hints.any(Hints::CAPTION) && node.bytes < 400 {
            return true;
        }
        if hints.any(Hints::BYLINE) && node.bytes < 200 {
            return true;
        }
        matches!(node.tag, Table | Ul | Ol | Dl | Div | Section | Fieldset | Form | Header) && self.is_clutter(i)
    }

    /// The conditions under which a container in the middle of a text is clutter.
    fn is_clutter(&self, i: usize) -> bool {
        let node = &self.nodes[i];
        let weight = node.hints.weight();
        if weight < 0.0 {
            return true;
        }
        if node.commas >= 10 {
            return false;
        }
        let is_list = matches!(node.tag, Tag::Ul | Tag::Ol | Tag::Dl);
        let density = node.link_density();
        let (paragraphs, images) = (f32::from(node.paragraphs), f32::from(node.images));
        (images > 1.0 && paragraphs / images < 0.5 && node.bytes < 200)
            || (f32::from(node.inputs) > (paragraphs / 3.0).floor())
            || (!is_list && weight < 25.0 && density > 0.2 && node.paragraphs < 3)
            || (is_list && density > 0.5)
            || (weight >= 25.0 && density > 0.5)
    }

    /// Leaves out what stands before the first sentence and behind the last without being one: the title once more, dates,
    /// names, calls to share.
    pub(super) fn trim(&mut self, chosen: &[u32], text: &str, title: Option<&str>) {
        // What is left of the chosen containers: what is out is out with all inside it.
        let mut left: Vec<usize> = Vec::new();
        for &root in chosen {
            let end = self.nodes[root as usize].end as usize;
            let mut i = root as usize;
            while i < end {
                let node = &self.nodes[i];
                if node.is_out {
                    i = node.end as usize;
                    continue;
                }
                if node.own_bytes > 0 {
                    left.push(i);
                }
                i += 1;
            }
        }
        let is_heading = |i: usize| self.nodes[i].tag.heading_level().is_some();
        let Some(first) = left.iter().position(|&i| self.nodes[i].own_good > 0 && !is_heading(i)) else { return };
        let last = left.iter().rposition(|&i| !is_heading(i)).unwrap_or(first);
        for (at, &i) in left.iter().enumerate().filter(|&(at, _)| at < first || at > last) {
            let node = &self.nodes[i];
            let line = self.text_of(i, text);
            let is_leaf = node.own_bytes == node.bytes;
            if !is_leaf || matches!(node.tag, Tag::Li | Tag::Td | Tag::Th | Tag::Pre | Tag::Dd | Tag::Dt) {
                continue;
            }
            let is_heading = node.tag.heading_level().is_some();
            let is_out = at > last
                || title.is_some_and(|title| node.bytes < 300 && is_like(line, title))
                || (!is_heading && node.bytes < 120 && is_dateline(line));
            self.nodes[i].is_out |= is_out;
        }
    }

    pub(super) fn text_of<'t>(&self, i: usize, text: &'t str) -> &'t str {
        let (start, end) = self.nodes[i].text;
        text[start as usize..end as usize].trim_ascii()
    }
}

/// Whether a line tells who wrote something or when: it names a year or a time of day, or begins with "by".
fn is_dateline(line: &str) -> bool {
    let bytes = line.as_bytes();
    let has_year =
        bytes.split(|b| !b.is_ascii_digit()).any(|w| w.len() == 4 && (w.starts_with(b"20") || w.starts_with(b"19")));
    let has_time = bytes.windows(4).any(|w| {
        w[0].is_ascii_digit() && matches!(w[1], b':' | b'h') && w[2].is_ascii_digit() && w[3].is_ascii_digit()
    });
    const BY: [&str; 10] = ["by ", "von ", "par ", "por ", "di ", "door ", "av ", "af ", "author", "written by "];
    has_year || has_time || BY.iter().any(|by| line.get(..by.len()).is_some_and(|start| start.eq_ignore_ascii_case(by)))
}

/// Whether a heading says what the page's title says: nearly all of its words are in there.
fn is_like(heading: &str, title: &str) -> bool {
    let words = |s: &str| {
        s.split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .map(str::to_lowercase)
            .take(64)
            .collect::<Vec<_>>()
    };
    let (heading, title) = (words(heading), words(title));
    let shared = heading.iter().filter(|w| title.contains(w)).count();
    !heading.is_empty() && shared * 4 >= heading.len() * 3
}
