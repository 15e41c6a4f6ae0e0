//! What stands behind `site:`, `lang:` and `type:`.
//!
//! Invariant: a value that was read is read as itself again.

/// Bytes of a host's name, as DNS has it.
const HOST_BYTES_MAX: usize = 253;

/// The host of `example.org`, `*.example.org`, `example.org/docs` or `https://user@example.org:80/docs?a#b`, and the path if there
/// is one: everything behind the host but the fragment.
pub(super) fn site(text: &str) -> Option<(String, Option<String>)> {
    let is_scheme = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let text = text.split_once("://").filter(|(name, _)| is_scheme(name)).map_or(text, |(_, behind)| behind);
    let text = text.trim_start_matches('/');
    let text = text.split_once('#').map_or(text, |(before, _)| before);
    let (authority, path) = text.split_at(text.find(['/', '?']).unwrap_or(text.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let host = host.trim_start_matches(['*', '.']).trim_end_matches('.').to_lowercase();
    let path = match path {
        "" | "/" => None,
        _ if path.starts_with('/') => Some(path.to_string()),
        _ => Some(format!("/{path}")),
    };
    is_host(&host).then_some((host, path))
}

/// Whether it could be one: names are letters, digits, hyphens and dots, and letters of other alphabets where they are not written in
/// punycode yet. Addresses of IPv6 have colons between brackets.
fn is_host(host: &str) -> bool {
    let (inside, is_address) = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(inside) => (inside, true),
        None => (host, false),
    };
    let allowed = |c: char| match c {
        ':' => is_address,
        _ if c.is_ascii() => c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'),
        _ => !is_address,
    };
    host.len() <= HOST_BYTES_MAX && inside.chars().any(char::is_alphanumeric) && inside.chars().all(allowed)
}

/// The code of a language, for a code (`de`, `de-AT`, `deu`, `ger`) or an English name.
pub(super) fn language(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let known = |name: &str| LANGUAGES.iter().find(|(_, names)| names.contains(&name)).map(|(code, _)| *code);
    if let Some(code) = known(&text) {
        return Some(code.to_string());
    }
    let code = text.split(['-', '_']).next().unwrap_or_default();
    let is_code = matches!(code.len(), 2 | 3) && code.bytes().all(|b| b.is_ascii_lowercase());
    is_code.then(|| known(code).unwrap_or(code).to_string())
}

/// What a kind of page is called, for its name, the ending of a file's name or a media type.
pub(super) fn kind(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let text = text.trim_start_matches(['.', '*']);
    let name = match text.rsplit_once('/') {
        Some((_, subtype)) => subtype.split([';', '+']).next().unwrap_or_default(),
        None => text,
    };
    let name = match name {
        "htm" | "xhtml" | "shtml" | "webpage" => "html",
        "txt" | "plain" => "text",
        "rss" | "atom" | "feeds" => "feed",
        "jsonld" | "ld" => "json-ld",
        _ => name,
    };
    let is_name = (1..=16).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !name.starts_with('-');
    is_name.then(|| name.to_string())
}

/// Codes of ISO 639-1, with codes of three letters and English names that mean the same.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("af", &["afr", "afrikaans"]),
    ("am", &["amh", "amharic"]),
    ("ar", &["ara", "arb", "arabic"]),
    ("az", &["aze", "azerbaijani", "azeri"]),
    ("be", &["bel", "belarusian"]),
    ("bg", &["bul", "bulgarian"]),
    ("bn", &["ben", "bengali", "bangla"]),
    ("bs", &["bos", "bosnian"]),
    ("ca", &["cat", "catalan"]),
    ("cs", &["ces", "cze", "czech"]),
    ("cy", &["cym", "wel", "welsh"]),
    ("da", &["dan", "danish"]),
    ("de", &["deu", "ger", "german"]),
    ("el", &["ell", "gre", "greek"]),
    ("en", &["eng", "english"]),
    ("eo", &["epo", "esperanto"]),
    ("es", &["spa", "spanish", "castilian"]),
    ("et", &["est", "estonian"]),
    ("eu", &["eus", "baq", "basque"]),
    ("fa", &["fas", "per", "pes", "persian", "farsi"]),
    ("fi", &["fin", "finnish"]),
    ("fr", &["fra", "fre", "french"]),
    ("ga", &["gle", "irish"]),
    ("gl", &["glg", "galician"]),
    ("gu", &["guj", "gujarati"]),
    ("he", &["heb", "iw", "hebrew"]),
    ("hi", &["hin", "hindi"]),
    ("hr", &["hrv", "croatian"]),
    ("hu", &["hun", "hungarian"]),
    ("hy", &["hye", "arm", "armenian"]),
    ("id", &["ind", "in", "indonesian"]),
    ("is", &["isl", "ice", "icelandic"]),
    ("it", &["ita", "italian"]),
    ("ja", &["jpn", "japanese"]),
    ("jv", &["jav", "javanese"]),
    ("ka", &["kat", "geo", "georgian"]),
    ("kk", &["kaz", "kazakh"]),
    ("km", &["khm", "khmer"]),
    ("kn", &["kan", "kannada"]),
    ("ko", &["kor", "korean"]),
    ("la", &["lat", "latin"]),
    ("lo", &["lao"]),
    ("lt", &["lit", "lithuanian"]),
    ("lv", &["lav", "latvian"]),
    ("mk", &["mkd", "mac", "macedonian"]),
    ("ml", &["mal", "malayalam"]),
    ("mn", &["mon", "mongolian"]),
    ("mr", &["mar", "marathi"]),
    ("ms", &["msa", "may", "malay"]),
    ("mt", &["mlt", "maltese"]),
    ("my", &["mya", "bur", "burmese"]),
    ("nb", &["nob", "bokmal"]),
    ("ne", &["nep", "nepali"]),
    ("nl", &["nld", "dut", "dutch"]),
    ("nn", &["nno", "nynorsk"]),
    ("no", &["nor", "norwegian"]),
    ("pa", &["pan", "punjabi"]),
    ("pl", &["pol", "polish"]),
    ("pt", &["por", "portuguese"]),
    ("ro", &["ron", "rum", "romanian"]),
    ("ru", &["rus", "russian"]),
    ("sk", &["slk", "slo", "slovak"]),
    ("sl", &["slv", "slovene", "slovenian"]),
    ("sq", &["sqi", "alb", "albanian"]),
    ("sr", &["srp", "serbian"]),
    ("sv", &["swe", "swedish"]),
    ("sw", &["swa", "swahili"]),
    ("ta", &["tam", "tamil"]),
    ("te", &["tel", "telugu"]),
    ("th", &["tha", "thai"]),
    ("tl", &["tgl", "tagalog", "filipino"]),
    ("tr", &["tur", "turkish"]),
    ("uk", &["ukr", "ukrainian"]),
    ("ur", &["urd", "urdu"]),
    ("uz", &["uzb", "uzbek"]),
    ("vi", &["vie", "vietnamese"]),
    ("yi", &["yid", "ji", "yiddish"]),
    ("zh", &["zho", "chi", "cmn", "chinese", "mandarin"]),
    ("zu", &["zul", "zulu"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_what_is_typed() {
        let check = |text: &str, expected: Option<(&str, Option<&str>)>| {
            let found = site(text);
            let found = found.as_ref().map(|(host, path)| (host.as_str(), path.as_deref()));
            assert_eq!(found, expected, "{text}");
            if let Some((host, path)) = found {
                let again = format!("{host}{}", path.unwrap_or_default());
                assert_eq!(site(&again), site(text), "{text} again");
            }
        };
        check("Example.ORG", Some(("example.org", None)));
        check("www.example.org/", Some(("www.example.org", None)));
        check("*.example.org.", Some(("example.org", None)));
        check(".org", Some(("org", None)));
        check("https://example.org/Docs", Some(("example.org", Some("/Docs"))));
        check("https://me:secret@example.org:8080/a?b=c#d", Some(("example.org", Some("/a?b=c"))));
        check("example.org?q=1", Some(("example.org", Some("/?q=1"))));
        check("example.org/a://b@c:1", Some(("example.org", Some("/a://b@c:1"))));
        check("//example.org//", Some(("example.org", Some("//"))));
        check("a://b://c", Some(("b", Some("//c"))));
        check("bücher.example", Some(("bücher.example", None)));
        check("[2001:DB8::1]:80/x", Some(("[2001:db8::1]", Some("/x"))));
        check("127.0.0.1", Some(("127.0.0.1", None)));
        check("https:", Some(("https", None)));
        for bad in ["/", "http://", "*", "...", "a b", "exam*ple.org", "a:b", "::1", "[", "[]", "a,b.org", "--"] {
            check(bad, None);
        }
        check(&"a".repeat(254), None);
    }

    #[test]
    fn languages_have_codes_and_names() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(language(text).as_deref(), expected, "{text}");
        check("DE", Some("de"));
        check("German", Some("de"));
        check("de-AT", Some("de"));
        check("pt_br", Some("pt"));
        check("deu", Some("de"));
        check("zh-Hans-CN", Some("zh"));
        check("chi", Some("zh"));
        check("gsw", Some("gsw"));
        check("xx", Some("xx"));
        for bad in ["", "-", "d", "klingon", "d3", "de at", "дe", "ü"] {
            check(bad, None);
        }
        for (code, names) in LANGUAGES {
            check(code, Some(code));
            names.iter().for_each(|name| check(name, Some(code)));
        }
    }

    #[test]
    fn kinds_have_names_endings_and_media_types() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(kind(text).as_deref(), expected, "{text}");
            expected.iter().for_each(|name| assert_eq!(kind(name).as_deref(), Some(*name), "{text} again"));
        };
        check("PDF", Some("pdf"));
        check(".htm", Some("html"));
        check("txt", Some("text"));
        check("text/plain; charset=utf-8", Some("text"));
        check("application/rss+xml", Some("feed"));
        check("application/ld+json", Some("json-ld"));
        check("application/pdf", Some("pdf"));
        check("*.docx", Some("docx"));
        for bad in ["", ".", "a/", "-x", "päge", "a_b", "abcdefghijklmnopq"] {
            check(bad, None);
        }
    }
}
