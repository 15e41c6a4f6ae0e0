//! robots.txt, judged beside a reference that is slow and obvious.
//!
//! Input: a line with a path, then the file.

use rhumb_core::robots::{ROBOTS_BYTES_MAX, RobotsTxt, Rules};

use crate::line;

const AGENT: &str = "rhumb";

/// The verdict is the reference's where that understands the file; rules read back as they were written; the deciding line is
/// there; stored rules that are no rules are refused or harmless.
pub fn run(data: &[u8]) {
    let (path, file) = line(data);
    let path = String::from_utf8_lossy(path);
    let robots = RobotsTxt::parse(file, ROBOTS_BYTES_MAX);
    let rules = robots.for_agent(AGENT);
    assert_eq!(Rules::from_bytes(rules.to_bytes()).as_ref(), Ok(&rules));
    let lines = 1 + file.iter().filter(|b| matches!(b, b'\n' | b'\r')).count();
    assert!(rules.len() <= lines && robots.sitemaps().len() <= lines);
    assert!(rules.memory_bytes() <= 24 + 10 + lines * 9 + 9 * file.len(), "rules grow with their file alone");
    let verdict = rules.verdict(&path);
    assert!(verdict.line.is_none_or(|l| l as usize <= lines));
    assert_eq!(RobotsTxt::parse(file, file.len()).for_agent(AGENT), rules);
    if let Some(expected) = reference(file, &path) {
        assert_eq!((verdict.allowed, verdict.line), expected, "{path}");
    }
    if let Ok(stored) = Rules::from_bytes(file) {
        let _ = (stored.verdict(&path), stored.crawl_delay_ms());
    }
}

/// Characters that stand for themselves in paths and patterns.
fn is_plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~/?:@!&()+,;=[]".contains(&b)
}

/// RFC 9309 by the letter, for files of plain characters: the verdict and its line. `None` where it would have to know more.
fn reference(file: &[u8], path: &str) -> Option<(bool, Option<u32>)> {
    let knows = |b: &u8| is_plain(*b) || b"*$# \t\r\n".contains(b);
    if file.len() > 4096 || !file.iter().all(knows) || !path.starts_with('/') || !path.bytes().all(is_plain) {
        return None;
    }
    if path == "/robots.txt" {
        return Some((true, None));
    }
    let text = std::str::from_utf8(file).ok()?.replace("\r\n", "\n").replace('\r', "\n");
    let (mut own, mut others, mut named) = (Vec::new(), Vec::new(), false);
    let (mut for_us, mut for_all, mut in_rules) = (false, false, true);
    for (number, line) in text.split('\n').enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (key, value) = match line.split_once(':') {
            Some((key, value)) => (key.trim(), value.trim()),
            None if words.len() == 2 => (words[0], words[1]),
            None => continue,
        };
        match key.to_ascii_lowercase().as_str() {
            "user-agent" | "useragent" | "user agent" => {
                if in_rules {
                    (for_us, for_all, in_rules) = (false, false, false);
                }
                let is_us = |name: &str| {
                    let cut = name.find(|c: char| !(c.is_ascii_alphabetic() || c == '-' || c == '_'));
                    name[..cut.unwrap_or(name.len())].eq_ignore_ascii_case(AGENT)
                };
                if value.split_whitespace().next() == Some("*") {
                    for_all = true;
                } else if value.split([' ', '\t', ',']).any(is_us) {
                    (for_us, named) = (true, true);
                }
            }
            key @ ("allow" | "disallow" | "dissallow" | "dissalow" | "disalow" | "diasllow" | "disallaw"
            | "desallow") => {
                in_rules = true;
                let inner = value.strip_suffix('$').unwrap_or(value);
                if inner.contains(['$', ' ', '\t']) {
                    return None;
                }
                let rule = (value.len(), key == "allow", std::cmp::Reverse(number as u32 + 1), value);
                own.extend((for_us && !value.is_empty()).then_some(rule));
                others.extend((for_all && !value.is_empty()).then_some(rule));
            }
            _ => {}
        }
    }
    let rules = if named { own } else { others };
    let best = rules.into_iter().filter(|rule| matches(rule.3.as_bytes(), path.as_bytes())).max();
    Some(best.map_or((true, None), |(_, allowed, line, _)| (allowed, Some(line.0))))
}

/// Whether a pattern matches, by trying everything: `reached[i]` says that the pattern so far can end before byte `i`.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, anchored) = match pattern.strip_suffix(b"$") {
        Some(inner) => (inner, true),
        None => (pattern, false),
    };
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for &b in pattern {
        let mut next = vec![false; path.len() + 1];
        for i in 0..=path.len() {
            if b == b'*' {
                next[i] = reached[..=i].contains(&true);
            } else if i > 0 {
                next[i] = reached[i - 1] && path[i - 1] == b;
            }
        }
        reached = next;
    }
    if anchored { reached[path.len()] } else { reached.contains(&true) }
}
