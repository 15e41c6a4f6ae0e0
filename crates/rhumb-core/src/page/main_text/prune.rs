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
        if hints.any(Hints::JUNK) && !hints.any(Hints::BODY) && share < 0.3 {
            return true;
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

    pub(super) fn text_of<'t>(&self, i: usize, text: &'t str) -> &'t str {
        let (start, end) = self.nodes[i].text;
        text[start as usize..end as usize].trim_ascii()
    }
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
