//! International host names in ASCII, as the indexers of archives make them (IDNA 2003, RFC 3490 and 3492).
//!
//! Our own URLs hold ASCII hosts already; this serves files of others. Names are folded to lower case and a few characters
//! mapped as Nameprep does, but not normalised (NFKC): composed letters, the usual case, come out right.

/// The host with its labels in ASCII, or `None` where a label is empty or too long.
pub(crate) fn to_ascii(host: &str) -> Option<String> {
    let labels: Vec<&str> = host.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']).collect();
    let mut out = Vec::with_capacity(labels.len());
    for (i, label) in labels.iter().enumerate() {
        let ascii = if label.is_ascii() { (*label).to_owned() } else { label_to_ascii(label)? };
        // The last label may be empty: the dot of the root.
        let trailing = i + 1 == labels.len() && i > 0;
        if ascii.len() >= 64 || (ascii.is_empty() && !trailing) {
            return None;
        }
        out.push(ascii);
    }
    Some(out.join("."))
}

fn label_to_ascii(label: &str) -> Option<String> {
    let mut prepared = String::with_capacity(label.len());
    for c in label.chars() {
        match c {
            'ß' | 'ẞ' => prepared.push_str("ss"),
            'ς' => prepared.push('σ'),
            '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
            // Full-width ASCII.
            '\u{ff01}'..='\u{ff5e}' => {
                let narrow = u32::from(c) - 0xff01 + 0x21;
                prepared.extend(char::from_u32(narrow).map(|c| c.to_ascii_lowercase()));
            }
            _ => prepared.extend(c.to_lowercase()),
        }
    }
    if prepared.is_ascii() { Some(prepared) } else { punycode(&prepared).map(|code| format!("xn--{code}")) }
}

/// RFC 3492, section 6.3. `None` on overflow, which takes a label longer than any host may have.
fn punycode(label: &str) -> Option<String> {
    let points: Vec<u32> = label.chars().map(u32::from).collect();
    if points.len() > 64 {
        return None;
    }
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = out.len() as u32;
    if basic > 0 {
        out.push('-');
    }
    let (mut n, mut delta, mut bias, mut handled) = (128_u32, 0_u32, 72_u32, basic);
    while (handled as usize) < points.len() {
        let m = points.iter().copied().filter(|&p| p >= n).min()?;
        delta = delta.checked_add((m - n).checked_mul(handled + 1)?)?;
        n = m;
        for &p in &points {
            if p < n {
                delta = delta.checked_add(1)?;
            }
            if p == n {
                let mut q = delta;
                for k in (36..).step_by(36) {
                    let t = (k as u32).saturating_sub(bias).clamp(1, 26);
                    if q < t {
                        break;
                    }
                    out.push(digit(t + (q - t) % (36 - t)));
                    q = (q - t) / (36 - t);
                }
                out.push(digit(q));
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(out)
}

fn digit(d: u32) -> char {
    char::from(if d < 26 { b'a' + d as u8 } else { b'0' + (d - 26) as u8 })
}

fn adapt(delta: u32, handled: u32, first: bool) -> u32 {
    let mut delta = if first { delta / 700 } else { delta / 2 };
    delta += delta / handled;
    let mut k = 0;
    while delta > 455 {
        delta /= 35;
        k += 36;
    }
    k + 36 * delta / (delta + 38)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_ascii() {
        let check = |host: &str, expected: Option<&str>| assert_eq!(to_ascii(host).as_deref(), expected, "{host}");
        check("bücher.example", Some("xn--bcher-kva.example"));
        check("BÜCHER.Example.", Some("xn--bcher-kva.Example."));
        check("例え。テスト", Some("xn--r8jz45g.xn--zckzah"));
        check("пример.испытание", Some("xn--e1afmkfd.xn--80akhbyknj4f"));
        check("straße.de", Some("strasse.de"));
        check("a..ü", None);
        check(&"ü".repeat(80), None);
    }
}
