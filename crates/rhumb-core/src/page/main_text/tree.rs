//! The containers of a page as a tree in one array, built while the extractor walks over the tokens.
//!
//! Only elements that begin a block are nodes; inline elements belong to the text around them. Where authors leave out end
//! tags, the few rules of the standard that matter are kept: `<p>` ends at the next block, `<li>` at the next `<li>`, a cell at
//! the next cell, and an end tag without its start tag is nothing.
//!
//! Invariant: nodes lie in the order of their start tags, so a subtree is a range of the array; a node's text and source are
//! ranges that hold those of its children. Depth is bounded, and deeper elements belong to the deepest node: time and memory
//! are linear in the page.

use super::super::tag::Tag;
use super::hints::Hints;

/// Elements nested deeper belong to the one at this depth.
const DEPTH_MAX: usize = 256;
/// Nodes of one page; what comes later belongs to the node that is open.
const NODES_MAX: usize = 1 << 16;

/// A container or a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// The node around it; the root is its own.
    pub(super) parent: u32,
    /// One behind its last descendant.
    pub(super) end: u32,
    /// Where its text begins and ends in the page's text, gaps included.
    pub(super) text: (u32, u32),
    /// Where it begins and ends in the source.
    pub(super) html: (u32, u32),
    /// Bytes of its own text in links.
    pub(super) own_links: u32,
    /// Images of its own, not of a node in it.
    pub(super) own_images: u16,
    /// Form fields of its own.
    pub(super) own_inputs: u16,
    /// Bytes of text in links, of the subtree that counts.
    pub(super) links: u32,
    /// Bytes of its own text, not in a node in it.
    pub(super) own_bytes: u32,
    /// Bytes of its own lines that read like sentences.
    pub(super) own_good: u32,
    /// Commas in it.
    pub(super) own_commas: u32,
    /// What its lines say for the containers around them.
    pub(super) own_vote: f32,
    /// Whether these four are known.
    pub(super) is_measured: bool,
    /// Bytes of the text that counts, in the subtree.
    pub(super) bytes: u32,
    /// Bytes of lines that read like sentences, in the subtree.
    pub(super) good: u32,
    /// Commas and their like in that text.
    pub(super) commas: u32,
    /// Paragraphs in the subtree.
    pub(super) paragraphs: u16,
    /// List items in the subtree.
    pub(super) items: u16,
    /// Images in the subtree.
    pub(super) images: u16,
    /// Form fields in the subtree.
    pub(super) inputs: u16,
    /// Which element it is.
    pub(super) tag: Tag,
    /// Whether it is left out.
    pub(super) is_out: bool,
    /// Whether a paragraph counted for it.
    pub(super) is_candidate: bool,
    /// Whether its own text stands on other pages of the site, too.
    pub(super) is_template: bool,
    /// What its attributes say.
    pub(super) hints: Hints,
    /// How much it looks like the container of the text.
    pub(super) score: f32,
}

/// The tree, with the room to build it in.
#[derive(Debug, Default)]
pub(in super::super) struct Tree {
    pub(super) nodes: Vec<Node>,
    open: Vec<u32>,
    /// Elements that are open but were too deep to become nodes.
    too_deep: u32,
    /// Where the text of the open link begins, if it counts.
    link: Option<u32>,
}

impl Tree {
    /// Starts a new page.
    pub(in super::super) fn start(&mut self) {
        self.nodes.clear();
        self.open.clear();
        self.too_deep = 0;
        self.link = None;
        self.push(Tag::Body, Hints::default(), 0, 0);
    }

    fn top(&self) -> Tag {
        self.open.last().map_or(Tag::Body, |&i| self.nodes[i as usize].tag)
    }

    fn push(&mut self, tag: Tag, hints: Hints, html: u32, text: u32) {
        let index = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent: self.open.last().copied().unwrap_or(0),
            end: index + 1,
            text: (text, text),
            html: (html, html),
            own_links: 0,
            own_images: 0,
            own_inputs: 0,
            links: 0,
            own_bytes: 0,
            own_good: 0,
            own_commas: 0,
            own_vote: 0.0,
            is_measured: false,
            bytes: 0,
            good: 0,
            commas: 0,
            paragraphs: 0,
            items: 0,
            images: 0,
            inputs: 0,
            tag,
            is_out: false,
            is_candidate: false,
            is_template: false,
            hints,
            score: 0.0,
        });
        self.open.push(index);
    }

    fn pop(&mut self, html: u32, text: u32) {
        // The root stays open until the end of the page.
        if self.open.len() > 1
            && let Some(index) = self.open.pop()
        {
            self.settle(index, html, text);
        }
    }

    fn settle(&mut self, index: u32, html: u32, text: u32) {
        let end = self.nodes.len() as u32;
        let node = &mut self.nodes[index as usize];
        node.end = end;
        node.text.1 = text;
        node.html.1 = html;
    }

    /// The text of the open link so far belongs to the node that is open so far.
    fn settle_link(&mut self, text: u32) {
        if let (Some(start), Some(&index)) = (&mut self.link, self.open.last()) {
            self.nodes[index as usize].own_links += text.saturating_sub(*start);
            *start = text;
        }
    }

    /// A start tag of a block. `html` is where it begins in the source, `text` how much text there is so far.
    pub(in super::super) fn open(&mut self, tag: Tag, hints: Hints, html: usize, text: usize) {
        let (html, text) = (html as u32, text as u32);
        self.settle_link(text);
        self.close_implied(tag, html, text);
        if self.open.len() >= DEPTH_MAX || self.nodes.len() >= NODES_MAX {
            if !tag.may_lack_end() {
                self.too_deep = self.too_deep.saturating_add(1);
            }
            return;
        }
        self.push(tag, hints, html, text);
    }

    /// Ends what a start tag ends by itself.
    fn close_implied(&mut self, tag: Tag, html: u32, text: u32) {
        use Tag::*;
        let top = self.top();
        if top == P && !matches!(tag, Button | Select | Option | Td | Th | Tr | Tbody | Thead | Tfoot | Caption) {
            self.pop(html, text);
        }
        if top.heading_level().is_some() && tag.heading_level().is_some() {
            self.pop(html, text);
        }
        match tag {
            Li => self.close_up_to(|t| t == Li, |t| matches!(t, Div | P | Address), html, text),
            Dd | Dt => self.close_up_to(|t| matches!(t, Dd | Dt), |t| matches!(t, Div | P | Address), html, text),
            Td | Th => self.close_up_to(|t| matches!(t, Td | Th), |t| !is_wall(t) && t != Tr, html, text),
            Tr => self.close_up_to(|t| t == Tr, |t| !matches!(t, Table | Body | Tbody | Thead | Tfoot), html, text),
            Tbody | Thead | Tfoot => {
                self.close_up_to(|t| matches!(t, Tbody | Thead | Tfoot), |t| !matches!(t, Table | Body), html, text);
            }
            Option | Optgroup => self.close_up_to(|t| t == Option, |_| false, html, text),
            _ => {}
        }
    }

    /// Pops the innermost open element that is `wanted`, with all inside it, unless one that may not be `crossed` comes first.
    fn close_up_to(&mut self, wanted: impl Fn(Tag) -> bool, crossed: impl Fn(Tag) -> bool, html: u32, text: u32) {
        for depth in (1..self.open.len()).rev() {
            let tag = self.nodes[self.open[depth] as usize].tag;
            if wanted(tag) {
                while self.open.len() > depth {
                    self.pop(html, text);
                }
                return;
            }
            if !crossed(tag) {
                return;
            }
        }
    }

    /// An end tag of a block, which lies at `html` in the source.
    pub(in super::super) fn close(&mut self, tag: Tag, html: (usize, usize), text: usize) {
        use Tag::*;
        let text = text as u32;
        self.settle_link(text);
        if self.too_deep > 0 && !tag.may_lack_end() {
            self.too_deep -= 1;
            return;
        }
        let before = self.open.len();
        let (start, end) = (html.0 as u32, html.1 as u32);
        match tag {
            Table => self.close_up_to(|t| t == Table, |_| true, start, text),
            Td | Th | Tr | Tbody | Thead | Tfoot => self.close_up_to(|t| t == tag, |t| t != Table, start, text),
            Li => self.close_up_to(|t| t == Li, |t| !is_wall(t) && !matches!(t, Ul | Ol), start, text),
            H1 | H2 | H3 | H4 | H5 | H6 => {
                self.close_up_to(|t| t.heading_level().is_some(), |t| !is_wall(t), start, text);
            }
            _ => self.close_up_to(|t| t == tag, |t| !is_wall(t), start, text),
        }
        if self.open.len() < before {
            // The element closed last is the one that the tag names: the tag belongs to it. Its index is that of the last node
            // whose parent is open now and whose subtree ends here.
            let mut index = self.nodes.len() as u32 - 1;
            let open = *self.open.last().unwrap_or(&0);
            while index > open && self.nodes[index as usize].parent != open {
                index = self.nodes[index as usize].parent;
            }
            self.nodes[index as usize].html.1 = end;
        }
    }

    /// A link begins; `counts` is false for one that leads within the page.
    pub(in super::super) fn open_link(&mut self, counts: bool, text: usize) {
        self.close_link(text);
        self.link = counts.then_some(text as u32);
    }

    /// The open link ends.
    pub(in super::super) fn close_link(&mut self, text: usize) {
        self.settle_link(text as u32);
        self.link = None;
    }

    /// An image stands in the open node.
    pub(in super::super) fn image(&mut self) {
        if let Some(&index) = self.open.last() {
            let images = &mut self.nodes[index as usize].own_images;
            *images = images.saturating_add(1);
        }
    }

    /// A form field stands in the open node.
    pub(in super::super) fn input(&mut self) {
        if let Some(&index) = self.open.last() {
            let inputs = &mut self.nodes[index as usize].own_inputs;
            *inputs = inputs.saturating_add(1);
        }
    }

    /// The page ends.
    pub(in super::super) fn finish(&mut self, html: usize, text: usize) {
        self.close_link(text);
        while let Some(index) = self.open.pop() {
            self.settle(index, html as u32, text as u32);
        }
    }

    /// Whether a node is a table of data and not of layout: rows and columns whose cells hold hardly more than a line each.
    pub(super) fn is_data_table(&self, i: usize) -> bool {
        use Tag::*;
        let node = &self.nodes[i];
        let inside = &self.nodes[i + 1..node.end as usize];
        let count = |of: fn(Tag) -> bool| inside.iter().filter(|n| of(n.tag)).count();
        let rows = count(|t| t == Tr);
        let cells = count(|t| matches!(t, Td | Th));
        node.tag == Table
            && rows >= 2
            && cells > rows
            && count(|t| matches!(t, P | Div)) <= cells
            && count(|t| {
                matches!(t, Table | Ul | Ol | Pre | Blockquote | Section | Article) || t.heading_level().is_some()
            }) == 0
    }

    /// The children of a node.
    pub(super) fn children(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes[of].end as usize;
        let mut next = of + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.nodes[child].end as usize;
            Some(child)
        })
    }
}

/// End tags and implied ends do not reach beyond these.
fn is_wall(tag: Tag) -> bool {
    matches!(tag, Tag::Table | Tag::Td | Tag::Th | Tag::Caption | Tag::Body)
}
