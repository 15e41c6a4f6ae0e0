//! What `rhumb parse` prints: a page with its addresses resolved.
//!
//! Invariant: every address in a report is absolute and `http` or `https`; those that do not parse or lead elsewhere
//! (`mailto:`, `javascript:`, `data:`) are left out. Fragments are kept: this is what a browser would follow, not what the
//! crawler's normaliser makes of it.

use serde::{Deserialize, Serialize};
use url::Url;

use super::sniff::MediaKind;
use super::{Page, Refresh};

/// A page for people and their programs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ParseReport {
    /// What kind of thing the body was.
    pub kind: MediaKind,
    /// The format that it was read as; empty when nobody could read it.
    pub format: String,
    /// What of it could not be read.
    pub trouble: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The document base: `<base href>` resolved, or the page's own address.
    pub base: String,
    /// The links, in order.
    pub links: Vec<ReportLink>,
    /// The visible text.
    pub text: String,
    /// The text without menus, sidebars and footers; absent when it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_text: Option<String>,
    /// The main text as CommonMark; absent when it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    /// The character encoding, or nothing when the body is not text.
    pub charset: Option<String>,
    /// The language: as detected if that is reliable, else as `<html lang>` says, else as detected after all.
    pub language: Option<String>,
    /// The `lang` of `<html>`.
    pub html_lang: Option<String>,
    /// The contents of the robots meta elements that speak to us.
    pub meta_robots: Vec<String>,
    /// The canonical address.
    pub canonical: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// Where the page wants to send its reader.
    pub refresh: Option<Refresh>,
    /// Translations.
    pub hreflang: Vec<ReportAlternate>,
    /// Headings.
    pub headings: Vec<ReportHeading>,
    /// Structured data (JSON-LD), each piece a JSON document as written.
    pub structured: Vec<String>,
    /// Links left out because a bound was reached.
    pub links_dropped: usize,
    /// Whether any bound cut something off.
    pub truncated: bool,
}

/// A link with its address resolved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReportLink {
    /// Where it leads.
    pub url: String,
    /// What it says.
    pub text: String,
    /// The `rel` attribute; empty when there is none.
    pub rel: String,
    /// The element it came from.
    pub tag: String,
}

/// A translation of the page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReportAlternate {
    /// The language tag.
    pub lang: String,
    /// Its address.
    pub url: String,
}

/// A heading.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReportHeading {
    /// 1 to 6.
    pub level: u8,
    /// What it says.
    pub text: String,
}

impl ParseReport {
    /// Reports on a page that was found at `own`.
    pub fn new(page: &Page, own: &Url) -> ParseReport {
        let base = page.document_base(own);
        let resolve =
            |href: &str| base.join(href).ok().filter(|u| matches!(u.scheme(), "http" | "https")).map(String::from);
        ParseReport {
            kind: page.kind,
            format: page.format.to_owned(),
            trouble: page.trouble.clone(),
            title: page.title.clone(),
            links: page
                .links
                .iter()
                .filter_map(|link| {
                    Some(ReportLink {
                        url: resolve(link.href)?,
                        text: link.text.to_owned(),
                        rel: link.rel.to_owned(),
                        tag: link.tag.as_str().to_owned(),
                    })
                })
                .collect(),
            text: page.text.clone(),
            main_text: (!page.main_text.is_empty() || page.text.is_empty()).then(|| page.main_text.clone()),
            markdown: (!page.markdown.is_empty()).then(|| page.markdown.clone()),
            charset: (!page.charset.is_empty()).then(|| page.charset.to_owned()),
            language: page.best_language(),
            html_lang: page.html_lang.clone(),
            meta_robots: page.meta_robots.iter().map(|m| m.content.clone()).collect(),
            canonical: page.canonical.as_deref().and_then(resolve),
            description: page.description.clone(),
            refresh: page.refresh.as_ref().and_then(|r| Some(Refresh { delay_s: r.delay_s, href: resolve(&r.href)? })),
            hreflang: page
                .hreflang
                .iter()
                .filter_map(|(lang, href)| Some(ReportAlternate { lang: lang.clone(), url: resolve(href)? }))
                .collect(),
            headings: page.headings().map(|(level, text)| ReportHeading { level, text: text.to_owned() }).collect(),
            structured: page.structured.clone(),
            links_dropped: page.links_dropped,
            truncated: page.truncated,
            base: base.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ParseOptions, parse_page};
    use super::*;

    fn report(html: &str, own: &str) -> ParseReport {
        let options = ParseOptions { detect_language: true, ..ParseOptions::default() };
        ParseReport::new(&parse_page(html.as_bytes(), Some("text/html"), &options), &Url::parse(own).expect("test URL"))
    }

    #[test]
    fn addresses_are_resolved_as_browsers_do() {
        let check = |html: &str, expected: &[&str]| {
            let urls: Vec<_> = report(html, "http://h.test/d/p?q#f").links.into_iter().map(|l| l.url).collect();
            assert_eq!(urls, expected, "{html}");
        };
        check("<a href=x>", &["http://h.test/d/x"]);
        check("<a href=''>", &["http://h.test/d/p?q"]);
        check("<a href='#a'>", &["http://h.test/d/p?q#a"]);
        check("<a href=' /a b\n'>", &["http://h.test/a%20b"]);
        check("<a href=x><base href='/e/'>", &["http://h.test/e/x"]);
        check("<base href='//i.test'><base href='/e/'><a href=x>", &["http://i.test/x"]);
        check("<base target=_top><base href='/e/'><a href=x>", &["http://h.test/e/x"]);
        check("<base href='data:,x'><a href=x>", &["http://h.test/d/x"]);
        check("<a href=mailto:x><a href=javascript:x><a href=data:,x><a href='http://['><a href=tel:1>", &[]);
        check("<a href='\\\\i.test\\x'>", &["http://i.test/x"]);
        check("<a href='ja&Tab;vascript:x'>", &[]);
    }

    #[test]
    fn a_report_becomes_json() {
        let html = "<html lang=de-CH><title>T</title><meta name=robots content=noindex><link rel=canonical href=/c>\
                    <meta http-equiv=refresh content='3;url=/r'><link rel=alternate hreflang=fr href=/fr>\
                    <h1>H</h1><a rel=nofollow href=x>X</a>";
        let json = serde_json::to_value(report(html, "http://h.test/")).expect("a report is plain data");
        assert_eq!(json["title"], "T");
        assert_eq!(json["language"], "de");
        assert_eq!(json["meta_robots"][0], "noindex");
        assert_eq!(json["canonical"], "http://h.test/c");
        assert_eq!(json["refresh"]["href"], "http://h.test/r");
        assert_eq!(json["hreflang"][0]["url"], "http://h.test/fr");
        assert_eq!(json["charset"], "UTF-8");
        let link = &json["links"][2];
        assert_eq!((&link["url"], &link["tag"]), (&"http://h.test/x".into(), &"a".into()));
        assert_eq!((&link["text"], &link["rel"]), (&"X".into(), &"nofollow".into()));
    }
}
