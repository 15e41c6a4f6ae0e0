//! What is decoded in a URL and what is thrown away: percent-encoding, session ids, tracking parameters.

/// Parameters that only say where a visitor came from. A name that ends in `*` stands for all that begin so.
pub const TRACKING_PARAMS: &[&str] = &[
    "utm_*",
    "gclid",
    "gclsrc",
    "gbraid",
    "wbraid",
    "dclid",
    "fbclid",
    "msclkid",
    "twclid",
    "ttclid",
    "li_fat_id",
    "yclid",
    "ysclid",
    "igshid",
    "igsh",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "_hsenc",
    "_hsmi",
    "hsCtaTracking",
    "_ga",
    "_gl",
    "_openstat",
    "vero_id",
    "vero_conv",
    "oly_anon_id",
    "oly_enc_id",
    "wickedid",
    "s_cid",
    "rb_clickid",
    "__s",
];

/// Query parameters that carry a session whatever their value is.
const SESSION_PARAMS: &[&str] =
    &["jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken", "oscsid", "zenid", "asp.net_sessionid"];

/// Query parameters that carry a session when the value looks random; `sid=7` may well be a section of the site.
const SESSION_PARAMS_IF_HEX: &[&str] = &["sid", "sessionid", "session_id", "sessid"];

/// Path parameters (`;name=value`) that carry a session.
const SESSION_PATH_PARAMS: &[&str] = &["jsessionid", "phpsessid", "sessionid"];

/// Appends `text` to `out` with percent-encoding in one form.
///
/// Hexadecimal digits become upper case and unreserved characters (RFC 3986 section 2.3) are decoded, because both
/// spellings name the same resource; every other escape is kept, because decoding `%2F` or `%26` would change the
/// meaning. A `%` that begins no escape stays as it is, and the characters after it are not decoded if that would
/// make an escape of it, or a second pass would decode once more. `^` is encoded: the standard has demanded this
/// in paths since 2024 and the parser below us does not do it yet.
pub(super) fn push_percent_normal(text: &str, caret: bool, out: &mut String) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    let mut stray = None;
    let mut next = 0;
    while let Some(found) = memchr::memchr2(b'%', b'^', &bytes[next..]) {
        let at = next + found;
        next = at + 1;
        if bytes[at] == b'^' {
            if caret {
                out.push_str(&text[copied..at]);
                out.push_str("%5E");
                copied = next;
            }
            continue;
        }
        out.push_str(&text[copied..at]);
        let Some(octet) = escape_at(bytes, at) else {
            stray = Some(out.len());
            out.push('%');
            copied = next;
            continue;
        };
        let after_stray = stray.map_or("-", |position| &out[position + 1..]);
        let revives = octet.is_ascii_hexdigit() && after_stray.len() <= 1 && is_hex(after_stray);
        if is_unreserved(octet) && !revives {
            out.push(octet as char);
        } else {
            out.push('%');
            out.push(bytes[at + 1].to_ascii_uppercase() as char);
            out.push(bytes[at + 2].to_ascii_uppercase() as char);
        }
        next = at + 3;
        copied = next;
    }
    out.push_str(&text[copied..]);
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The octet that `%XX` at this place stands for.
pub(crate) fn escape_at(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    Some(digit(*bytes.get(at + 1)?)? << 4 | digit(*bytes.get(at + 2)?)?)
}

/// RFC 3986's unreserved characters.
pub(crate) fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// The path without session ids, or nothing if there are none.
pub(super) fn strip_path_sessions(path: &str) -> Option<String> {
    memchr::memchr2(b';', b'(', path.as_bytes())?;
    let mut out = String::with_capacity(path.len());
    for segment in path[1..].split('/').filter(|segment| !is_aspnet_session(segment)) {
        out.push('/');
        let start = out.len();
        let mut params = segment.split(';');
        out.push_str(params.next().unwrap_or_default());
        for param in params.filter(|param| !is_session_path_param(param)) {
            out.push(';');
            out.push_str(param);
        }
        // `..;jsessionid=1` names a file of that name; without the parameter it would name the parent.
        if matches!(&out[start..], "." | "..") {
            out.truncate(start);
            out.push_str(segment);
        }
    }
    if out.is_empty() {
        out.push('/');
    }
    (out != path).then_some(out)
}

fn is_session_path_param(param: &str) -> bool {
    let name = param.split('=').next().unwrap_or_default();
    SESSION_PATH_PARAMS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// ASP.NET's cookieless sessions: a segment such as `(S(lit3py55t21z5v55vlm25s55))` or `(X(1)S(…))`.
fn is_aspnet_session(segment: &str) -> bool {
    let Some(mut rest) = segment.strip_prefix('(').and_then(|s| s.strip_suffix(')')) else { return false };
    let mut session = false;
    while let Some(&letter) = rest.as_bytes().first() {
        let Some((value, after)) = rest.get(1..).and_then(|s| s.strip_prefix('(')).and_then(|s| s.split_once(')'))
        else {
            return false;
        };
        if !matches!(letter, b'A' | b'F' | b'S' | b'X') || value.is_empty() || !value.bytes().all(is_unreserved) {
            return false;
        }
        session |= letter == b'S';
        rest = after;
    }
    session
}

/// The query parameters to drop, found by their first letter.
#[derive(Clone, Debug)]
pub(super) struct ParamTable {
    /// Sorted by the first byte of the name, which is in lower case.
    rules: Vec<ParamRule>,
    /// `rules[first[b]..first[b + 1]]` are the names that begin with `b`.
    first: Vec<u16>,
}

#[derive(Clone, Debug)]
struct ParamRule {
    name: Box<str>,
    prefix: bool,
    value_hex: bool,
}

impl ParamTable {
    pub(super) fn new(session_ids: bool, tracking: &[String]) -> ParamTable {
        let rule = |name: &str, value_hex| {
            let stem = name.strip_suffix('*');
            let text = stem.unwrap_or(name).to_ascii_lowercase();
            ParamRule { name: text.into(), prefix: stem.is_some(), value_hex }
        };
        let mut rules: Vec<ParamRule> = tracking.iter().map(|name| rule(name, false)).collect();
        if session_ids {
            rules.extend(SESSION_PARAMS.iter().map(|name| rule(name, false)));
            rules.extend(SESSION_PARAMS_IF_HEX.iter().map(|name| rule(name, true)));
        }
        // A bare `*` would drop every query; that is not a list of tracking parameters, so it is not heeded.
        rules.retain(|rule| !rule.name.is_empty());
        rules.truncate(usize::from(u16::MAX));
        rules.sort_by_key(|rule| rule.name.as_bytes()[0]);
        let first =
            (0..=256).map(|b| rules.partition_point(|r| usize::from(r.name.as_bytes()[0]) < b) as u16).collect();
        ParamTable { rules, first }
    }

    /// Whether `name=value` goes.
    #[inline]
    pub(super) fn drops(&self, param: &[u8]) -> bool {
        let Some(&letter) = param.first() else { return false };
        let letter = usize::from(letter.to_ascii_lowercase());
        let (from, to) = (self.first[letter], self.first[letter + 1]);
        from < to && self.drops_among(param, usize::from(from)..usize::from(to))
    }

    fn drops_among(&self, param: &[u8], rules: std::ops::Range<usize>) -> bool {
        let equals = memchr::memchr(b'=', param);
        let name = &param[..equals.unwrap_or(param.len())];
        let value = equals.map_or(&[][..], |at| &param[at + 1..]);
        self.rules[rules].iter().any(|rule| {
            let known = rule.name.as_bytes();
            let named = match rule.prefix {
                true => name.len() >= known.len() && name[..known.len()].eq_ignore_ascii_case(known),
                false => name.eq_ignore_ascii_case(known),
            };
            named && (!rule.value_hex || value.len() >= 32 && value.iter().all(u8::is_ascii_hexdigit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_has_one_form() {
        fn check(text: &str, expected: &str) {
            let mut out = String::new();
            push_percent_normal(text, true, &mut out);
            assert_eq!(out, expected, "{text}");
        }
        check("/plain", "/plain");
        check("/%7euser/%41%2d%2E%5f", "/~user/A-._");
        check("/a%2fb%3a%c3%a9", "/a%2Fb%3A%C3%A9");
        check("/100%/x%zz%4", "/100%/x%zz%4");
        check("/%%32e/%2%65", "/%%32e/%2%65");
        check("/%%7Ea", "/%~a");
        check("/%x%41", "/%xA");
        check("/a^b%5e", "/a%5Eb%5E");
        check("/%252e", "/%252e");
    }

    #[test]
    fn sessions_in_paths() {
        fn check(path: &str, expected: &str) {
            assert_eq!(strip_path_sessions(path).as_deref().unwrap_or(path), expected, "{path}");
        }
        check("/a.jsp;jsessionid=0AB1!7", "/a.jsp");
        check("/a;JSESSIONID=1;v=2;jsessionid=3/b", "/a;v=2/b");
        check("/a;v=1", "/a;v=1");
        check("/..;jsessionid=1/x", "/..;jsessionid=1/x");
        check("/;jsessionid=1", "/");
        check("/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "/a.aspx");
        check("/x/(X(1)S(abc))/", "/x/");
        check("/(S(abc))", "/");
        check("/f(S(abc))", "/f(S(abc))");
        check("/(X(1))/a", "/(X(1))/a");
        check("/((", "/((");
    }

    #[test]
    fn parameters() {
        let tracking: Vec<String> = TRACKING_PARAMS.iter().map(|s| s.to_string()).collect();
        let table = ParamTable::new(true, &tracking);
        for dropped in ["utm_source=x", "UTM_Medium", "gclid=1", "_hsenc=", "PHPSESSID=a", "ASPSESSIONIDQQ=1", "CFID=2"]
        {
            assert!(table.drops(dropped.as_bytes()), "{dropped}");
        }
        let hex = "0123456789abcdef0123456789ABCDEF";
        assert!(table.drops(format!("sid={hex}").as_bytes()));
        for kept in ["", "=", "sid=7", "sid", "id=utm_source", "utm", "gclide=1", "é=1", "q=1"] {
            assert!(!table.drops(kept.as_bytes()), "{kept}");
        }
        assert!(!ParamTable::new(false, &["*".into()]).drops(b"a=1"));
    }
}
