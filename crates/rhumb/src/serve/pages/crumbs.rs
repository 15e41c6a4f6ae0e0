//! An address as people read it: the host, then the steps of its path, decoded where that deceives nobody.

use maud::{Markup, html};

use super::parts::split;
use crate::out::is_harmful;

/// Steps that are shown; of more, the first ones and the last.
const STEPS_MAX: usize = 4;
/// Characters of a step, or of the host.
const CHARS_MAX: usize = 60;

/// Characters that stay encoded: they would change the order of the text, be nowhere to be seen, or look like our own signs.
fn deceives(c: char) -> bool {
    is_harmful(c)
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '/' | '›' | '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{fff9}'..='\u{fffd}' | '\u{e0000}'..='\u{e007f}')
}

/// A part of a URL, decoded for reading.
fn readable(part: &str) -> String {
    let (bytes, mut decoded, mut at) = (part.as_bytes(), Vec::with_capacity(part.len()), 0);
    let digit = |at: usize| bytes.get(at).and_then(|b| (*b as char).to_digit(16));
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    // What is no text stays as it was written.
    let text = String::from_utf8(decoded).unwrap_or_else(|_| part.to_string());
    let mut shown = String::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        if n == CHARS_MAX {
            shown.push('…');
            break;
        }
        if deceives(c) {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| shown.push_str(&format!("%{b:02X}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The host and the steps to show.
fn steps(url: &str) -> (String, Vec<String>) {
    let (_, host, rest) = split(url);
    if host.is_empty() {
        return (readable(url), Vec::new());
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let mut steps: Vec<String> = path.split('/').filter(|step| !step.is_empty()).map(readable).collect();
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        steps.push(format!("?{}", readable(query)));
    }
    if steps.len() > STEPS_MAX {
        let last = steps.split_off(steps.len() - (STEPS_MAX - 2));
        steps.truncate(1);
        steps.push("…".to_string());
        steps.extend(last);
    }
    (readable(host), steps)
}

/// The address as a line. Each part has a direction of its own, so that none can move another.
pub fn render(url: &str) -> Markup {
    let (host, steps) = steps(url);
    html! {
        bdi class="crumbs" dir="ltr" title=(url) {
            b { bdi { (host) } }
            @for step in &steps { span class="sep" { " › " } bdi { (step) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are() {
        let check = |url: &str, expected: &str| {
            let (host, steps) = steps(url);
            assert_eq!(std::iter::once(host).chain(steps).collect::<Vec<_>>().join(" › "), expected, "{url}");
        };
        check("https://a.example/", "a.example");
        check("http://a.example:81/b/c.html?x=1#d", "a.example:81 › b › c.html › ?x=1");
        check("https://a.example/a%20b/%C3%BC", "a.example › a b › ü");
        check("https://a.example/1/2/3/4/5/6", "a.example › 1 › … › 5 › 6");
        check("javascript:alert(1)", "javascript:alert(1)");
        // A turned direction, invisible letters, line ends, our own sign, a slash that is none, a percent sign, no text at all.
        check("https://a.example/%E2%80%AEfdp.exe", "a.example › %E2%80%AEfdp.exe");
        check("https://a.example/a%E2%80%8Bb%0Ac%00", "a.example › a%E2%80%8Bb%0Ac%00");
        check("https://a.example/%E2%80%BA", "a.example › %E2%80%BA");
        check("https://a.example/a%2Fb%25", "a.example › a%2Fb%");
        check("https://a.example/%FF%fe%", "a.example › %FF%fe%");
        check("https://a.example/\u{202e}x", "a.example › %E2%80%AEx");
        check(&format!("https://a.example/{}", "x".repeat(100)), &format!("a.example › {}…", "x".repeat(60)));
    }
}
