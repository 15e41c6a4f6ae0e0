//! Named fields of a record: the lines between `WARC/1.1` and the block.

use super::{is_space, line_text};

/// The named fields of one record, in file order. Names compare without regard to case; the first of a name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The version line, such as `WARC/1.1`.
    pub version: String,
    /// Name and value of each field.
    pub list: Vec<(String, String)>,
}

impl Fields {
    /// The first value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// WARC-Type: `response`, `request`, …
    pub fn kind(&self) -> &str {
        self.get("WARC-Type").unwrap_or("")
    }

    /// WARC-Target-URI, without the angle brackets some writers put around it, spaces escaped.
    pub fn target_uri(&self) -> Option<String> {
        let raw = self.get("WARC-Target-URI")?;
        let bare = raw.strip_prefix('<').and_then(|r| r.strip_suffix('>')).unwrap_or(raw);
        Some(bare.replace(' ', "%20"))
    }

    /// Content-Length, where it is a number.
    pub fn content_length(&self) -> Option<u64> {
        self.get("Content-Length")?.trim().parse().ok()
    }

    /// Whether the block begins with an HTTP head: exchanges over http and https with something in them.
    pub fn holds_http(&self) -> bool {
        matches!(self.kind(), "request" | "response" | "revisit")
            && self.content_length() != Some(0)
            && self.target_uri().is_some_and(|uri| uri.starts_with("http:") || uri.starts_with("https:"))
    }

    /// Reads the fields from a whole header, version line first. Lines may end in LF alone; folded lines are joined.
    pub(crate) fn parse(header: &[u8]) -> Fields {
        let mut lines = header.split(|&b| b == b'\n').map(line_text);
        let version = lines.next().unwrap_or_default().trim_end_matches(is_space).to_owned();
        Fields { version, list: parse_lines(lines) }
    }
}

/// `name: value` lines, folded ones joined to the line before, lines without a colon left out.
pub(crate) fn parse_lines(lines: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let mut list: Vec<(String, String)> = Vec::new();
    // A line without a colon swallows its own continuation lines.
    let mut in_field = false;
    for line in lines {
        let line = line.trim_end_matches(is_space);
        if line.is_empty() {
            break;
        }
        if line.starts_with([' ', '\t']) {
            if let (true, Some((_, value))) = (in_field, list.last_mut()) {
                value.push_str(line);
            }
            continue;
        }
        in_field = match line.split_once(':') {
            Some((name, value)) => {
                list.push((
                    name.trim_end_matches([' ', '\t']).to_owned(),
                    value.trim_start_matches(is_space).to_owned(),
                ));
                true
            }
            None => false,
        };
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_many_writers() {
        let check = |header: &str, name: &str, expected: Option<&str>| {
            assert_eq!(Fields::parse(header.as_bytes()).get(name), expected, "{header:?}");
        };
        check("WARC/1.0\r\nwarc-type: response\r\n\r\n", "WARC-Type", Some("response"));
        check("WARC/1.0\nWARC-Type:response\n\n", "warc-type", Some("response"));
        check("WARC/1.0\r\nA: one\r\n two\r\nB: x\r\n\r\n", "a", Some("one two"));
        check("WARC/1.0\r\nno colon\r\n and more\r\nB: x\r\n\r\n", "B", Some("x"));
        check("WARC/1.0\r\nA: 1\r\nA: 2\r\n\r\n", "A", Some("1"));
        check("WARC/1.0\r\nA : 1:2 \r\n\r\n", "A", Some("1:2"));
        check("WARC/1.0\r\n\r\nA: after\r\n", "A", None);
        check("", "A", None);
    }

    #[test]
    fn bracketed_uris() {
        let uri =
            |value: &str| Fields::parse(format!("WARC/1.0\r\nWARC-Target-URI: {value}\r\n").as_bytes()).target_uri();
        assert_eq!(uri("<http://a/>").as_deref(), Some("http://a/"));
        assert_eq!(uri("http://a/b c").as_deref(), Some("http://a/b%20c"));
    }
}
