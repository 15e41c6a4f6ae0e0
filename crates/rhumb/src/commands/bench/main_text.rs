//! Main text against labels: how much of what a person marked as the text is found, how much else, and at what cost.
//!
//! The measure is the one of the article extraction benchmark (github.com/scrapinghub/article-extraction-benchmark): words in
//! groups of four, counted as often as they occur; precision and recall of each page, their means, and F1 of the means. Without
//! labelled pages, those of the synthetic web are taken, with two paragraphs set into each article that are the same on all
//! pages of a host: what one page cannot tell and its neighbours can.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rhumb_core::page::{ExtractOptions, Extractor, Page, ParseOptions, SiteTemplate, parse_page_into};
use rhumb_sim::{Request, Web, WebConfig};
use serde_json::{Value, json};

use super::cpu_seconds;

/// Words of a group.
const GROUP: usize = 4;
/// Each way of reading is measured for so much processor time at least; the clock ticks in hundredths of a second.
const MEASURED_S_MIN: f64 = 2.0;

/// A page and what its main text should be.
struct Labelled {
    html: Vec<u8>,
    text: String,
}

/// Reads the labelled pages of a directory, NAME.html and NAME.txt each.
pub fn of_directory(dir: &Path) -> Result<Value> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("read {}", dir.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).filter(|p| p.with_extension("txt").is_file()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "html"));
    paths.sort();
    ensure!(!paths.is_empty(), "{} has no pages NAME.html with their text NAME.txt", dir.display());
    let mut pages = Vec::new();
    for path in &paths {
        let html = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
        let text = std::fs::read(path.with_extension("txt"))
            .with_context(|| format!("read the text of {}", path.display()))?;
        pages.push(Labelled { html, text: String::from_utf8_lossy(&text).into_owned() });
    }
    let mut extractor = Extractor::new();
    let score = Score::of(&pages, |page| main_text(&mut extractor, &page.html));
    let mut figures = costs(&pages);
    figures["precision"] = score.precision().into();
    figures["recall"] = score.recall().into();
    figures["f1"] = score.f1().into();
    Ok(figures)
}

/// Measures on the synthetic web what a site's template adds.
pub fn of_synthetic_web(hosts: u64, pages: u64) -> Result<Value> {
    let web = Web::new(WebConfig::plain(hosts, pages)).context("make the synthetic web")?;
    let (mut alone, mut together) = (Score::default(), Score::default());
    let mut all = Vec::new();
    let mut template_bytes_max = 0;
    for host in 0..hosts {
        let pages: Vec<Labelled> = (0..pages).filter_map(|page| synthetic(&web, host, page)).collect();
        let mut extractor = Extractor::new();
        alone.add(Score::of(&pages, |page| main_text(&mut extractor, &page.html)));
        extractor.use_template(SiteTemplate::new());
        together.add(Score::of(&pages, |page| main_text(&mut extractor, &page.html)));
        let mut bytes = Vec::new();
        extractor.take_template().unwrap_or_default().put(&mut bytes);
        template_bytes_max = template_bytes_max.max(bytes.len());
        all.extend(pages);
    }
    let mut figures = costs(&all);
    figures["f1_page_alone"] = alone.f1().into();
    figures["f1_with_template"] = together.f1().into();
    figures["template_bytes_max"] = template_bytes_max.into();
    Ok(figures)
}

/// A page of the synthetic web with a paragraph of its host before and behind the text.
fn synthetic(web: &Web, host: u64, page: u64) -> Option<Labelled> {
    let article = article(web, host, page)?;
    let house = article_text(&self::article(web, (host + 1) % web.hosts(), 0)?);
    let lines: Vec<&str> = house.lines().filter(|line| line.len() > 100).take(2).collect();
    let [first, last] = lines[..] else { return None };
    let html = body(web, host, page)?.replacen(&article, &format!("<p>{first}</p>{article}<p>{last}</p>"), 1);
    Some(Labelled { html: html.into_bytes(), text: article_text(&article) })
}

fn body(web: &Web, host: u64, page: u64) -> Option<String> {
    let (url, name) = (web.url(host, page), web.host_name(host));
    let path = url.strip_prefix(&web.origin(host))?;
    String::from_utf8(web.respond(&Request { host: &name, path, ..Request::default() }).body).ok()
}

/// The article's markup without its title.
fn article(web: &Web, host: u64, page: u64) -> Option<String> {
    let body = body(web, host, page)?;
    let (_, rest) = body.split_once("</h1>\n")?;
    Some(rest.split_once("</article>")?.0.to_owned())
}

fn article_text(markup: &str) -> String {
    Extractor::new().extract(markup, &ExtractOptions::default()).text
}

fn options(main_text: bool, markdown: bool) -> ParseOptions {
    let extract = ExtractOptions { main_text, markdown, ..ExtractOptions::default() };
    ParseOptions { extract, ..ParseOptions::default() }
}

fn main_text(extractor: &mut Extractor, html: &[u8]) -> String {
    let mut page = Page::default();
    parse_page_into(extractor, html, Some("text/html"), &options(true, false), &mut page);
    page.main_text
}

/// Processor time of the three ways to read the pages, measured in turn so that a busy machine is fair to all.
fn costs(pages: &[Labelled]) -> Value {
    let ways = [options(false, false), options(true, false), options(true, true)];
    let kilobytes = pages.iter().map(|p| p.html.len()).sum::<usize>() as f64 / 1024.0;
    let mut seconds = [0.0; 3];
    let mut rounds = 0;
    let (mut extractor, mut page) = (Extractor::new(), Page::default());
    while seconds.iter().any(|s| *s < MEASURED_S_MIN) {
        for (way, seconds) in ways.iter().zip(&mut seconds) {
            let start = cpu_seconds();
            // Enough in a row for the clock to tick.
            for _ in 0..(64.0 * 1024.0 / kilobytes).ceil() as usize {
                for labelled in pages {
                    parse_page_into(&mut extractor, &labelled.html, Some("text/html"), way, &mut page);
                }
            }
            *seconds += cpu_seconds() - start;
        }
        rounds += (64.0 * 1024.0 / kilobytes).ceil() as u64;
    }
    let per_kb = seconds.map(|s| s * 1e6 / (kilobytes * rounds as f64));
    json!({
        "pages": pages.len(), "html_kb_mean": kilobytes / pages.len() as f64,
        "links_and_text_us_per_kb": per_kb[0], "with_main_text_us_per_kb": per_kb[1], "with_markdown_us_per_kb": per_kb[2],
        "main_text_adds_us_per_kb": per_kb[1] - per_kb[0],
    })
}

/// Precision and recall, page by page.
#[derive(Default)]
struct Score {
    precisions: Vec<f64>,
    recalls: Vec<f64>,
}

impl Score {
    fn of(pages: &[Labelled], mut read: impl FnMut(&Labelled) -> String) -> Score {
        let mut score = Score::default();
        for page in pages {
            score.add_page(&page.text, &read(page));
        }
        score
    }

    fn add_page(&mut self, expected: &str, found: &str) {
        let (expected, found) = (groups(expected), groups(found));
        let common: u64 = found.iter().map(|(group, n)| expected.get(group).map_or(0, |m| *n.min(m))).sum();
        let share = |of: &HashMap<u64, u64>| {
            let all: u64 = of.values().sum();
            (all > 0).then(|| common as f64 / all as f64)
        };
        self.precisions.extend(share(&found));
        self.recalls.extend(share(&expected));
    }

    fn add(&mut self, other: Score) {
        self.precisions.extend(other.precisions);
        self.recalls.extend(other.recalls);
    }

    fn precision(&self) -> f64 {
        mean(&self.precisions)
    }

    fn recall(&self) -> f64 {
        mean(&self.recalls)
    }

    fn f1(&self) -> f64 {
        let (p, r) = (self.precision(), self.recall());
        if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// How often each group of four words occurs; a text of fewer words is one group.
fn groups(text: &str) -> HashMap<u64, u64> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = text.split(|c| !is_word(c)).filter(|w| !w.is_empty()).collect();
    let mut counts = HashMap::new();
    for group in words.windows(GROUP.min(words.len().max(1))) {
        let mut hasher = DefaultHasher::new();
        group.hash(&mut hasher);
        *counts.entry(hasher.finish()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_benchmark() {
        let check = |expected: &str, found: &str, precision: f64, recall: f64| {
            let mut score = Score::default();
            score.add_page(expected, found);
            assert_eq!((score.precision(), score.recall()), (precision, recall), "{expected:?} {found:?}");
        };
        check("a b c d", "a b c d", 1.0, 1.0);
        check("a b c d e", "a, b. c d", 1.0, 0.5);
        check("a b c d", "x a b c d", 0.5, 1.0);
        check("a b c d", "e f g h", 0.0, 0.0);
        check("a", "a", 1.0, 1.0);
        check("a b c d a b c d", "a b c d", 1.0, 0.2);
    }

    #[test]
    fn a_template_helps_on_the_synthetic_web() {
        let web = Web::new(WebConfig::plain(2, 12)).unwrap();
        let pages: Vec<Labelled> = (0..12).filter_map(|page| synthetic(&web, 0, page)).collect();
        let mut extractor = Extractor::new();
        let alone = Score::of(&pages, |page| main_text(&mut extractor, &page.html)).f1();
        extractor.use_template(SiteTemplate::new());
        let together = Score::of(&pages, |page| main_text(&mut extractor, &page.html)).f1();
        assert!(pages.len() == 12 && together > alone + 0.02 && together > 0.97, "{alone} alone, {together} together");
    }
}
