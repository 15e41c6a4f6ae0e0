//! Sitemaps of any kind, plain or gzip.
//!
//! Input: the file.

use rhumb_core::sitemap::{Sitemap, SitemapKind, SitemapLimits};
use rhumb_core::url::Url;

use crate::{Single, gzip};

/// Bounds are kept; every address is one; reading byte by byte or through gzip gives the same; what is written as a sitemap reads back
/// the same.
pub fn run(data: &[u8]) {
    let narrow = SitemapLimits {
        decoded_bytes_max: 1000,
        urls_max: 3,
        depth_max: 4,
        attributes_max: 3,
        name_bytes_max: 16,
        loc_bytes_max: 64,
        problems_max: 4,
        ..SitemapLimits::default()
    };
    check(&Sitemap::read(data, &narrow), &narrow);
    let limits = SitemapLimits::default();
    let sitemap = Sitemap::read(data, &limits);
    check(&sitemap, &limits);
    if !data.starts_with(&[0x1f]) {
        // In a feed, addresses may be relative to one that is written once.
        let grown = if sitemap.kind == Some(SitemapKind::Feed) { 5 << 20 } else { 0 };
        let locs = sitemap.urls.iter().map(|u| u.loc.len()).sum::<usize>();
        assert!(locs <= 3 * data.len() + grown, "nothing is expanded");
        assert_eq!(Sitemap::read(Single(data), &limits), sitemap, "byte by byte");
        assert_eq!(Sitemap::read(&gzip(data)[..], &limits), sitemap, "through gzip");
    }
    if sitemap.kind == Some(SitemapKind::Urlset) {
        let again = Sitemap::read(written(&sitemap).as_bytes(), &limits);
        assert_eq!((&again.urls, &again.errors[..]), (&sitemap.urls, &[][..]));
    }
}

fn check(sitemap: &Sitemap, limits: &SitemapLimits) {
    assert!(sitemap.urls.len() <= limits.urls_max && sitemap.errors.len() <= limits.problems_max);
    assert!(sitemap.errors_untold == 0 || sitemap.errors.len() == limits.problems_max);
    assert!(sitemap.kind.is_some() || sitemap.urls.is_empty() && !sitemap.errors.is_empty(), "{sitemap:?}");
    for url in &sitemap.urls {
        assert!(url.loc.len() <= limits.loc_bytes_max && Url::parse(&url.loc).is_ok(), "{url:?}");
        assert!(url.priority.is_none_or(|p| (0.0..=1.0).contains(&p)));
        assert!(url.lastmod.as_ref().is_none_or(|d| d.len() <= 64));
    }
    for problem in &sitemap.errors {
        assert!(problem.line >= 1 && problem.offset <= limits.decoded_bytes_max && problem.found.len() <= 80);
        assert!(!problem.to_string().contains('\n'), "{problem}");
    }
    assert!(sitemap.errors_untold > 0 || sitemap.errors.len() <= limits.problems_max);
}

fn written(sitemap: &Sitemap) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let mut out = String::from("<urlset>");
    for url in &sitemap.urls {
        out += &format!("<url><loc>{}</loc>", escape(&url.loc));
        for (name, value) in [("lastmod", &url.lastmod), ("changefreq", &url.changefreq)] {
            if let Some(value) = value {
                out += &format!("<{name}>{}</{name}>", escape(value));
            }
        }
        if let Some(priority) = url.priority {
            out += &format!("<priority>{priority}</priority>");
        }
        out += "</url>";
    }
    out + "</urlset>"
}
