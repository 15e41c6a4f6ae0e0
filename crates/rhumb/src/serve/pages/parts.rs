//! Pieces of pages: URLs as people read them, links to walk along, figures, bars.

use maud::{Markup, html};

use crate::display::thousands;

/// A text as it stands in the query of an address.
pub fn in_query(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The page about a URL.
pub fn page_of(url: &str) -> String {
    format!("/page?url={}", in_query(url))
}

/// The page about a host.
pub fn host_of(host: &str) -> String {
    format!("/host?host={}", in_query(host))
}

/// A URL in its parts: scheme if it is not https, host, the rest.
pub fn split(url: &str) -> (&str, &str, &str) {
    let Some((scheme, rest)) = url.split_once("://") else { return ("", "", url) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let scheme = if scheme == "https" { "" } else { &url[..scheme.len() + 3] };
    (scheme, &rest[..end], &rest[end..])
}

/// A URL to read: the host stands out, direction and line ends of the text around it do not matter.
pub fn shown(url: &str) -> Markup {
    let (scheme, host, rest) = split(url);
    html! { bdi class="url" dir="ltr" { span class="dim" { (scheme) } b { (host) } (rest) } }
}

/// A URL to walk to. Graphs that came without names have none.
pub fn walk(url: &str) -> Markup {
    if url.is_empty() {
        return html! { span class="dim" { "(no name)" } };
    }
    html! { a class="walk" href=(page_of(url)) title=(url) { (shown(url)) } }
}

/// A host to read; some URLs have none.
pub fn host_name(host: &str) -> &str {
    if host.is_empty() { "(no host)" } else { host }
}

/// Whether a URL is one of the web: other schemes could run something.
pub fn is_web(url: &str) -> bool {
    let begins = |scheme: &str| url.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
}

/// Opens the page itself, if it is one of the web.
pub fn outside(url: &str) -> Markup {
    html! {
        @if is_web(url) {
            a class="outside" href=(url) rel="noreferrer noopener nofollow" target="_blank" title="Open the page itself" {
                "open" span aria-hidden="true" { " ↗" }
            }
        }
    }
}

/// URLs one below the other.
pub fn listed<'a>(urls: impl Iterator<Item = &'a str>) -> Markup {
    html! { ul class="urls" { @for url in urls { li { (walk(url)) } } } }
}

/// Figures side by side, each with its name and, for what a script refreshes, its field in the answer.
pub fn figures(all: &[(&str, u64, &str)]) -> Markup {
    html! {
        dl class="figures" {
            @for (name, value, field) in all {
                div { dt { (name) } dd data-field=[(!field.is_empty()).then_some(field)] { (thousands(*value)) } }
            }
        }
    }
}

/// A bar of `share` (0 to 1). An SVG, because elements may have no style of their own.
pub fn bar(share: f64) -> Markup {
    let percent = format!("{:.1}%", (share.clamp(0.0, 1.0) * 100.0).max(0.8));
    html! { svg class="bar" aria-hidden="true" { rect width=(percent) height="100%" rx="2" {} } }
}

/// A number that may be a count or a rank.
pub fn figure(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        thousands(value.max(0.0) as u64)
    } else if value.abs() >= 100.0 {
        thousands(value.round().max(0.0) as u64)
    } else if value.abs() >= 0.01 {
        format!("{value:.3}")
    } else {
        format!("{value:.2e}")
    }
}

/// `one` or `many` of something.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_addresses_can_be_opened() {
        let check =
            |url: &str, expected: bool| assert_eq!(outside(url).into_string().contains("href"), expected, "{url}");
        check("https://a.example/", true);
        check("HTTP://a.example/", true);
        for url in [
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "//a.example/",
            "http:",
            "vbscript:x",
            "",
            "ftp://a/",
        ] {
            check(url, false);
        }
    }

    #[test]
    fn figures_are_readable() {
        let check = |value: f64, expected: &str| assert_eq!(figure(value), expected);
        check(12_345.0, "12,345");
        check(0.0, "0");
        check(1234.5, "1,235");
        check(0.25, "0.250");
        check(0.000_177_719, "1.78e-4");
        check(f64::NAN, "NaN");
    }

    #[test]
    fn urls_come_apart() {
        let check = |url: &str, expected: (&str, &str, &str)| assert_eq!(split(url), expected);
        check("https://a.example/b?c", ("", "a.example", "/b?c"));
        check("http://a.example:81?c", ("http://", "a.example:81", "?c"));
        check("file:///a", ("file://", "", "/a"));
        check("javascript:1", ("", "", "javascript:1"));
    }
}
