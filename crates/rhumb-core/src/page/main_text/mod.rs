//! Main text: what a page has to say, without the menus, sidebars, share bars and footers around it.
//!
//! While the extractor walks over a page, `tree.rs` notes its containers: which part of the text each holds, how much of that is
//! links, and what its attributes say (`hints.rs`). At the end `score.rs` chooses the containers that hold the text and `prune.rs`
//! leaves out what stands between without belonging to it. `markdown.rs` writes the same content for people and language models.
//! Reading order: this file, `tree.rs`, `score.rs`, `prune.rs`.
//!
//! Invariant: a page with text has a main text, and it consists of pieces of the page's text in their order; time and memory are
//! linear in the page. No words are counted, only bytes: languages without spaces are no exception.

mod hints;
mod prune;
mod score;
mod tree;

pub(super) use hints::Hints;
pub(super) use tree::Tree;

use score::Strictness;

/// A choice with less text than this is doubted.
const TEXT_BYTES_MIN: usize = 500;

/// The working memory of main text extraction.
#[derive(Debug, Default)]
pub(super) struct MainText {
    pub(super) tree: Tree,
    chosen: Vec<u32>,
    /// Pieces of the page's text that are kept.
    kept: Vec<(u32, u32)>,
    /// The same for the best choice so far.
    best: Vec<(u32, u32)>,
}

impl MainText {
    /// Writes the main text of a page whose tree is finished.
    pub(super) fn write(&mut self, text: &str, title: Option<&str>, out: &mut String) {
        out.clear();
        let mut most = 0;
        self.best.clear();
        for strictness in [Strictness::Strict, Strictness::Middle, Strictness::Lax] {
            self.tree.weigh(text, strictness);
            self.tree.choose(text, &mut self.chosen);
            self.keep(text, title);
            let bytes = self.kept.iter().map(|(start, end)| (end - start) as usize).sum();
            if bytes > most {
                most = bytes;
                std::mem::swap(&mut self.kept, &mut self.best);
            }
            if most >= TEXT_BYTES_MIN {
                break;
            }
        }
        for &(start, end) in &self.best {
            let piece = text[start as usize..end as usize].trim_ascii();
            if !piece.is_empty() {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(piece);
            }
        }
        if out.is_empty() {
            out.push_str(text);
        }
    }

    /// Prunes the chosen containers and collects the pieces of text that are left.
    fn keep(&mut self, text: &str, title: Option<&str>) {
        self.kept.clear();
        for c in 0..self.chosen.len() {
            let root = self.chosen[c] as usize;
            self.tree.prune(root, text, title);
            let nodes = &self.tree.nodes;
            let mut at = nodes[root].text.0;
            let mut i = root + 1;
            while i < nodes[root].end as usize {
                if nodes[i].is_out {
                    if at < nodes[i].text.0 {
                        self.kept.push((at, nodes[i].text.0));
                    }
                    at = nodes[i].text.1;
                    i = nodes[i].end as usize;
                } else {
                    i += 1;
                }
            }
            if at < nodes[root].text.1 {
                self.kept.push((at, nodes[root].text.1));
            }
        }
    }
}
