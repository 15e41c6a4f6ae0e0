//! Bytes into characters: the encoding decision of the HTML standard.
//!
//! In order: byte order mark, the charset that HTTP declared, the prescan of the first 1,024 bytes for `<meta>` or an XML
//! declaration, UTF-8 if the bytes are that, and a guess by chardetng with the host's top-level domain as a hint.
//!
//! Invariant: any bytes decode; bytes that are already UTF-8 are borrowed, not copied.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// How far the search for `<meta charset>` goes.
const PRESCAN_BYTES: usize = 1024;

/// How much the detector sees of a page that says nothing about its encoding, from the first byte that is not ASCII.
/// It takes some 70 ns a byte, more than everything else that is done to a page.
const DETECT_BYTES_MAX: usize = 8 << 10;

/// Decodes an HTML page; also names the encoding, as the Encoding standard spells it.
pub fn decode_html<'a>(bytes: &'a [u8], charset: Option<&str>, tld: Option<&str>) -> (Cow<'a, str>, &'static str) {
    decode(bytes, charset, tld, prescan)
}

/// Decodes text that is not HTML: no `<meta>` is looked for, but an XML declaration is honoured.
pub fn decode_text<'a>(bytes: &'a [u8], charset: Option<&str>, tld: Option<&str>) -> (Cow<'a, str>, &'static str) {
    decode(bytes, charset, tld, xml_declaration)
}

fn decode<'a>(
    bytes: &'a [u8],
    charset: Option<&str>,
    tld: Option<&str>,
    declared: fn(&[u8]) -> Option<&'static Encoding>,
) -> (Cow<'a, str>, &'static str) {
    if let Some((encoding, bom_bytes)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[bom_bytes..]);
        return (text, encoding.name());
    }
    let encoding = charset
        .and_then(|label| Encoding::for_label(label.as_bytes()))
        .or_else(|| declared(&bytes[..bytes.len().min(PRESCAN_BYTES)]));
    let encoding = match encoding {
        Some(encoding) => encoding,
        None => match std::str::from_utf8(bytes) {
            Ok(text) => return (Cow::Borrowed(text), UTF_8.name()),
            // A body cut off inside a character was UTF-8 up to there, if it had any other.
            Err(e) if e.error_len().is_none() && !bytes[..e.valid_up_to()].is_ascii() => UTF_8,
            Err(_) => detect(bytes, tld),
        },
    };
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    (text, encoding.name())
}

fn detect(bytes: &[u8], tld: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    // A few bytes of context, because the detector scores a letter by its neighbours.
    let bytes = &bytes[Encoding::ascii_valid_up_to(bytes).saturating_sub(16)..];
    detector.feed(&bytes[..bytes.len().min(DETECT_BYTES_MAX)], bytes.len() <= DETECT_BYTES_MAX);
    // The detector insists on a lower-case label in its ASCII form.
    let tld = tld.map(str::to_ascii_lowercase);
    let tld = tld
        .as_deref()
        .filter(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
    detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow)
}

/// The standard's prescan: which encoding do the first bytes of a page declare?
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while at < head.len() {
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            // `<!-->` is a whole comment, so the search begins at its dashes.
            at = memchr::memmem::find(&rest[2..], b"-->").map_or(head.len(), |i| at + 2 + i + 3);
        } else if is_meta(rest) {
            let (found, next) = meta(head, at + 5);
            if found.is_some() {
                return found;
            }
            at = next;
        } else if is_tag(rest) {
            at += rest.iter().position(|&b| is_space(b) || b == b'>').unwrap_or(rest.len());
            while let Some((_, next)) = attribute(head, at) {
                at = next;
            }
            at = skip_past_gt(head, at);
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            at = skip_past_gt(head, at);
        } else {
            at += 1 + memchr::memchr(b'<', &rest[1..]).unwrap_or(rest.len() - 1);
        }
    }
    xml_declaration(head)
}

fn is_meta(rest: &[u8]) -> bool {
    rest.len() > 5 && rest[..5].eq_ignore_ascii_case(b"<meta") && (is_space(rest[5]) || rest[5] == b'/')
}

fn is_tag(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'/', b, ..] | [b'<', b, ..] => b.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Reads the attributes of a `<meta>` from `at`; returns what it declares and where it ends.
fn meta(head: &[u8], mut at: usize) -> (Option<&'static Encoding>, usize) {
    let mut seen: [bool; 3] = [false; 3];
    let mut got_pragma = false;
    let mut need_pragma = None;
    let mut charset: Option<&'static Encoding> = None;
    while let Some(((name, value), next)) = attribute(head, at) {
        at = next;
        let Some(which) = ["http-equiv", "content", "charset"].iter().position(|known| *known == name) else {
            continue;
        };
        if std::mem::replace(&mut seen[which], true) {
            continue;
        }
        match which {
            0 => got_pragma |= value == "content-type",
            1 => {
                if charset.is_none()
                    && need_pragma.is_none()
                    && let Some(encoding) = charset_in_content(&value)
                {
                    charset = Some(encoding);
                    need_pragma = Some(true);
                }
            }
            _ => {
                charset = Encoding::for_label(value.as_bytes());
                need_pragma = Some(false);
            }
        }
    }
    let holds = match need_pragma {
        None => false,
        Some(need) => !need || got_pragma,
    };
    (charset.filter(|_| holds).map(as_declared), skip_past_gt(head, at))
}

/// A page that can be read as ASCII is not UTF-16, whatever it says.
fn as_declared(encoding: &'static Encoding) -> &'static Encoding {
    match encoding {
        e if e == UTF_16LE || e == UTF_16BE => UTF_8,
        e if e == X_USER_DEFINED => WINDOWS_1252,
        e => e,
    }
}

/// The standard's "get an attribute": name and value in lower case, and where to go on. Nothing at `>` or the end.
fn attribute(head: &[u8], mut at: usize) -> Option<((String, String), usize)> {
    let lower = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let space = |mut at: usize| {
        while head.get(at).is_some_and(|&b| is_space(b)) {
            at += 1;
        }
        at
    };
    while head.get(at).is_some_and(|&b| is_space(b) || b == b'/') {
        at += 1;
    }
    if *head.get(at)? == b'>' {
        return None;
    }
    let start = at;
    at += 1;
    while head.get(at).is_some_and(|&b| !is_space(b) && !matches!(b, b'=' | b'/' | b'>')) {
        at += 1;
    }
    let name = lower(&head[start..at]);
    at = space(at);
    if *head.get(at)? != b'=' {
        return Some(((name, String::new()), at));
    }
    at = space(at + 1);
    match *head.get(at)? {
        quote @ (b'"' | b'\'') => {
            let start = at + 1;
            let length = memchr::memchr(quote, &head[start..])?;
            Some(((name, lower(&head[start..start + length])), start + length + 1))
        }
        _ => {
            let start = at;
            while head.get(at).is_some_and(|&b| !is_space(b) && b != b'>') {
                at += 1;
            }
            // A value that runs into the end of what we may see is not known.
            head.get(at)?;
            Some(((name, lower(&head[start..at])), at))
        }
    }
}

/// `text/html; charset=x` in a `content` attribute (lower case already).
fn charset_in_content(content: &str) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        rest = rest[rest.find("charset")? + 7..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        let Some(value) = rest.strip_prefix('=') else { continue };
        let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let label = match value.chars().next()? {
            quote @ ('"' | '\'') => value[1..].split_once(quote)?.0,
            _ => value.split(|c: char| c.is_ascii_whitespace() || c == ';').next()?,
        };
        return Encoding::for_label(label.as_bytes());
    }
}

/// `<?xml … encoding="x" …?>` at the very beginning, also when it shows that the page is UTF-16 without a mark.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let rest = declaration[memchr::memmem::find(declaration, b"encoding")? + 8..].trim_ascii_start();
    let rest = rest.strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, rest) = rest.split_first().filter(|(q, _)| matches!(q, b'"' | b'\''))?;
    Encoding::for_label(&rest[..memchr::memchr(quote, rest)?]).map(as_declared)
}

fn skip_past_gt(head: &[u8], at: usize) -> usize {
    let at = at.min(head.len());
    memchr::memchr(b'>', &head[at..]).map_or(head.len(), |i| at + i + 1)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: &[u8], charset: Option<&str>, text: &str, name: &str) {
        let (decoded, encoding) = decode_html(bytes, charset, None);
        assert_eq!((&*decoded, encoding), (text, name), "{:?}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn the_decision_is_made_in_order() {
        check(b"\xef\xbb\xbfa\xc3\xa9", Some("iso-8859-1"), "aé", "UTF-8");
        check(b"\xff\xfea\0\xe9\0", Some("utf-8"), "aé", "UTF-16LE");
        check(b"\xfe\xff\0a\0\xe9", None, "aé", "UTF-16BE");
        check(b"\xe9<meta charset=utf-8>", Some("latin1"), "é<meta charset=utf-8>", "windows-1252");
        check(b"\xc3\xa9", Some("no-such-thing"), "é", "UTF-8");
        check(b"<meta charset=windows-1251>\xef", None, "<meta charset=windows-1251>п", "windows-1251");
        check(b"plain", None, "plain", "UTF-8");
        check("päge".as_bytes(), None, "päge", "UTF-8");
        check(b"cut \xc3\xa9 \xc3", None, "cut é \u{fffd}", "UTF-8");
        check(b"un petit caf\xe9", None, "un petit café", "windows-1252");
        check(b"\0<\0?\0x\0m\0l\0?\0>", None, "<?xml?>", "UTF-16BE");
    }

    #[test]
    fn the_prescan_finds_what_the_standard_finds() {
        let check = |head: &str, expected: Option<&str>| {
            assert_eq!(prescan(head.as_bytes()).map(Encoding::name), expected, "{head}");
        };
        check("<meta charset=koi8-r>", Some("KOI8-R"));
        check("<META/CHARSET='Shift_JIS'>", Some("Shift_JIS"));
        check("<meta charset=\"utf-16\">", Some("UTF-8"));
        check("<meta charset=x-user-defined>", Some("windows-1252"));
        check("<meta http-equiv=Content-Type content='text/html; charset=gbk'>", Some("GBK"));
        check("<meta content='text/html; charset=gbk' http-equiv=content-type>", Some("GBK"));
        check("<meta content='text/html; charset=gbk'>", None);
        check("<meta http-equiv=content-type content='charset charset = \"big5\"'>", Some("Big5"));
        check("<meta http-equiv=content-type content='charset=\"big5'>", None);
        check("<!-- <meta charset=gbk> --><meta charset=big5>", Some("Big5"));
        check("<!--><meta charset=gbk>-->", Some("GBK"));
        check("<title a='<meta charset=gbk>'><meta charset=big5>", Some("Big5"));
        check("</x a='>' ><meta charset=big5>", Some("Big5"));
        check("<?php <meta charset=gbk>", None);
        check("<metacharset=gbk>", None);
        check("<meta charset=nonsense><meta charset=gbk>", Some("GBK"));
        check("<meta charset=gbk", None);
        check("<meta charset=gbk charset=big5>", Some("GBK"));
        check("<?xml version='1.0' encoding='euc-jp'?><html>", Some("EUC-JP"));
        check("<", None);
        check("<meta", None);
        check("<meta ", None);
    }

    #[test]
    fn utf8_is_borrowed() {
        for text in ["plain ascii", "<meta charset=utf-8>é", "日本語"] {
            assert!(matches!(decode_html(text.as_bytes(), None, None).0, Cow::Borrowed(_)), "{text}");
            assert!(matches!(decode_html(text.as_bytes(), Some("utf-8"), None).0, Cow::Borrowed(_)), "{text}");
        }
        assert!(matches!(decode_html(b"ascii", Some("latin1"), None).0, Cow::Borrowed(_)));
    }

    #[test]
    fn silent_pages_are_guessed() {
        let text = "Это обычный текст на русском языке, без всяких указаний на кодировку.";
        let (bytes, ..) = encoding_rs::WINDOWS_1251.encode(text);
        assert_eq!(decode_html(&bytes, None, Some("ru")), (Cow::Borrowed(text), "windows-1251"));
        let text = "これは日本語の文章です。文字コードの指定はありません。";
        let (bytes, ..) = encoding_rs::SHIFT_JIS.encode(text);
        assert_eq!(decode_html(&bytes, None, Some("JP.")).1, "Shift_JIS");
    }

    proptest! {
        #[test]
        fn anything_decodes(bytes in prop::collection::vec(any::<u8>(), 0..300), label in ".{0,10}", tld in ".{0,6}") {
            decode_html(&bytes, Some(&label), Some(&tld));
            decode_text(&bytes, None, Some(&tld));
        }

        #[test]
        fn any_prescan_ends(parts in prop::collection::vec(prop::sample::select(vec![
            "<", "meta", "<meta ", "charset", "=", "'", "\"", ">", "<!--", "-->", "/", "content=", "http-equiv=", " ", "é", "</",
        ]), 0..40)) {
            prescan(parts.concat().as_bytes());
        }
    }
}
