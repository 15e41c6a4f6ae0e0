//! Main text: what a page has to say, without the menus, sidebars, share bars and footers around it.
//!
//! While the extractor walks over a page, `tree.rs` notes its containers: which part of the text each holds, how much of that is
//! links, and what its attributes say (`hints.rs`). At the end `score.rs` chooses the containers that hold the text and `prune.rs`
//! leaves out what stands between without belonging to it. `markdown.rs` writes the same content for people, and for programs that read text.
//! Reading order: this file, `tree.rs`, `score.rs`, `prune.rs`.
//!
//! Invariant: a page with text has a main text, and it consists of pieces of the page's text in their order; time and memory are
//! linear in the page. No words are counted, only bytes: languages without spaces are no exception.

mod hints;
mod inline;
mod markdown;
mod prune;
mod score;
mod template;
mod tree;

pub(super) use hints::Hints;
pub use template::SiteTemplate;
pub(super) use tree::Tree;

use super::{ExtractOptions, Page};
use markdown::Markdown;
use score::Strictness;
use template::BlockHash;

/// A choice with less text than this is doubted.
const TEXT_BYTES_MIN: u32 = 500;

/// Fills in the main text of a page that is not markup: its text, unless a format knew better.
pub(super) fn of_plain_text(page: &mut Page, options: &ExtractOptions) {
    if options.main_text && page.main_text.is_empty() {
        page.main_text.push_str(&page.text);
        page.main_pieces.clear();
        page.main_pieces.push(0..page.text.len());
    }
    if options.main_text && options.markdown && page.markdown.is_empty() {
        inline::push_lines(&page.main_text, &mut page.markdown);
    }
}

/// Blocks of this length tell whether a page is made of others.
const SENTENCE_BYTES: u32 = 60;

/// What is kept of a page.
#[derive(Debug, Default)]
struct Kept {
    /// Pieces of the page's text.
    text: Vec<(u32, u32)>,
    /// Pieces of its source.
    html: Vec<(u32, u32)>,
}

/// The working memory of main text extraction.
#[derive(Debug, Default)]
pub(super) struct MainText {
    pub(super) tree: Tree,
    chosen: Vec<u32>,
    kept: Kept,
    /// The best choice so far.
    best: Kept,
    markdown: Markdown,
    /// What the pages of this page's site have in common, if that is to be left out.
    pub(super) template: Option<SiteTemplate>,
    /// Hashes of the blocks of this page.
    blocks: Vec<(u32, u64)>,
}

impl MainText {
    /// Marks the blocks that the site's template knows, and teaches it this page.
    fn compare(&mut self, text: &str) {
        let Some(template) = &mut self.template else { return };
        let mut whole = BlockHash::new(text.len());
        whole.add(text.as_bytes());
        let whole = whole.finish();
        self.blocks.clear();
        let (mut bytes, mut known) = (0, 0);
        for i in 0..self.tree.nodes.len() {
            let mut length = 0;
            self.tree.own_pieces(i, text, |piece| length += piece.trim_ascii().len() as u32);
            if length == 0 {
                continue;
            }
            let mut hash = BlockHash::new(length as usize);
            self.tree.own_pieces(i, text, |piece| hash.add(piece.trim_ascii()));
            let hash = hash.finish();
            self.blocks.push((i as u32, hash));
            let is_leaf = self.tree.nodes[i].end as usize == i + 1;
            let is_known = is_leaf && template.knows(hash, length);
            self.tree.nodes[i].is_template = is_known;
            if length >= SENTENCE_BYTES {
                bytes += length;
                known += if is_known { length } else { 0 };
            }
        }
        // A page of nothing but what others say is not made of template: it repeats one of them, as a whole.
        if template.knows_page(whole) || known * 10 > bytes * 9 {
            self.tree.nodes.iter_mut().for_each(|node| node.is_template = false);
        }
        template.learn(whole, self.blocks.iter().map(|(_, hash)| *hash));
    }

    /// Writes the main text of a page whose tree is finished, and where its pieces lie in the text.
    pub(super) fn write(
        &mut self,
        text: &str,
        title: Option<&str>,
        out: &mut String,
        pieces: &mut Vec<std::ops::Range<usize>>,
    ) {
        out.clear();
        pieces.clear();
        self.compare(text);
        let mut most = 0;
        self.best.text.clear();
        self.best.html.clear();
        for strictness in [Strictness::Strict, Strictness::Middle, Strictness::Lax] {
            if strictness == Strictness::Lax && most >= TEXT_BYTES_MIN {
                break;
            }
            self.tree.weigh(text, strictness);
            self.tree.choose(text, &mut self.chosen);
            let good: u32 = self.chosen.iter().map(|&i| self.tree.nodes[i as usize].good).sum();
            if most > 0 && good * 2 < most * 5 {
                continue;
            }
            self.keep(text, title);
            most = good.max(1);
            std::mem::swap(&mut self.kept, &mut self.best);
        }
        for &(start, end) in &self.best.text {
            let piece = text[start as usize..end as usize].trim_ascii_start();
            let start = end as usize - piece.len();
            let piece = piece.trim_ascii_end();
            if !piece.is_empty() {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(piece);
                pieces.push(start..start + piece.len());
            }
        }
        if out.is_empty() {
            out.push_str(text);
            pieces.push(0..text.len());
        }
    }

    /// Prunes the chosen containers and collects the pieces of text that are left.
    fn keep(&mut self, text: &str, title: Option<&str>) {
        self.kept.text.clear();
        self.kept.html.clear();
        for &root in &self.chosen {
            self.tree.prune(root as usize, text, title);
        }
        self.tree.trim(&self.chosen, text, title);
        let nodes = &self.tree.nodes;
        for &root in &self.chosen {
            let first = root as usize + 1;
            let root = &nodes[root as usize];
            let (mut at, mut at_html) = (root.text.0, root.html.0);
            let mut keep = |text: u32, html: u32, next: (u32, u32)| {
                if at < text {
                    self.kept.text.push((at, text));
                }
                if at_html < html {
                    self.kept.html.push((at_html, html));
                }
                (at, at_html) = next;
            };
            let mut i = first;
            while i < root.end as usize {
                let node = &nodes[i];
                if node.is_out {
                    keep(node.text.0, node.html.0, (node.text.1, node.html.1));
                    i = node.end as usize;
                } else {
                    i += 1;
                }
            }
            keep(root.text.1, root.html.1, (0, 0));
        }
    }

    /// Writes the same content as markdown, after [`MainText::write`] of the same page.
    pub(super) fn write_markdown(
        &mut self,
        html: &str,
        main_text: &str,
        base: Option<url::Url>,
        bytes_max: usize,
        out: &mut String,
    ) {
        self.markdown.base = base;
        out.clear();
        let nodes = &self.tree.nodes;
        let is_data_table = |at: usize| {
            let at = at as u32;
            nodes.binary_search_by_key(&at, |node| node.html.0).is_ok_and(|i| self.tree.is_data_table(i))
        };
        let everything = [(0, html.len() as u32)];
        let parts = if self.best.html.is_empty() { &everything[..] } else { &self.best.html };
        self.markdown.write(html, parts, bytes_max, &is_data_table, out);
        if out.is_empty() {
            inline::push_lines(main_text, out);
        }
    }
}

#[cfg(test)]
mod tests;
