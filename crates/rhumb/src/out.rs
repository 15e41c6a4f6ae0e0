//! Printing: crawled text is shown so that it cannot do anything to a terminal.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

/// What could move the cursor, change colours, or make text read in another order than it is written.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text with control and bidirectional characters made visible. Tabs and line ends stay.
pub fn escape(text: &str) -> String {
    let shown = |c: char| !is_harmful(c) || c == '\n' || c == '\t';
    if text.chars().all(shown) {
        return text.to_string();
    }
    text.chars().map(|c| if shown(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

/// One JSON document and a line end on stdout.
pub fn json(value: &impl Serialize) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", json_text(value)?)?;
    Ok(())
}

/// A value as JSON. Characters that could harm a terminal stand only inside strings, where an escape means the same.
pub fn json_text(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).map_err(std::io::Error::from)?;
    // Nearly all output is plain, which a loop without branches sees at once.
    let plain = text.bytes().fold(true, |plain, b| plain & (b' '..0x7f).contains(&b));
    if plain || !text.chars().any(is_harmful) {
        return Ok(text);
    }
    Ok(text.chars().map(|c| if is_harmful(c) { format!("\\u{:04x}", c as u32) } else { c.to_string() }).collect())
}

/// A line on stderr. Nobody may be listening there any more, which is no reason to stop.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape(text));
}

/// A line on stdout.
pub fn line(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", escape(text))?;
    Ok(())
}

/// A path as it can be typed into a shell.
pub fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_raw() {
        let check = |text: &str, expected: &str| assert_eq!(escape(text), expected);
        check("plain ünïcode 漢字", "plain ünïcode 漢字");
        check("\u{1b}[31mred", "\\u{1b}[31mred");
        check("a\u{202e}b", "a\\u{202e}b");
        assert_eq!(shell(Path::new("/a/b-c_1.crawl")), "/a/b-c_1.crawl");
        assert_eq!(shell(Path::new("/a b/it's")), "'/a b/it'\\''s'");
        check("bell\u{7}\u{9b}", "bell\\u{7}\\u{9b}");
    }
}
