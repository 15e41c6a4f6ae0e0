//! Printing: crawled text is shown so that it cannot do anything to a terminal.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

/// Text with control and bidirectional characters made visible.
pub fn escape(text: &str) -> String {
    let harmful = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    if !text.chars().any(harmful) {
        return text.to_string();
    }
    text.chars().map(|c| if harmful(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// One JSON document and a line end on stdout.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer(&mut stdout, value).map_err(std::io::Error::from)?;
    writeln!(stdout)?;
    Ok(())
}

/// A line on stdout.
pub fn line(text: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", escape(text))?;
    Ok(())
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
        check("bell\u{7}\u{9b}", "bell\\u{7}\\u{9b}");
    }
}
