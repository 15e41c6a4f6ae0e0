//! URLs: parsing, resolving, normalising.
//!
//! Input: a line with the base, then a link.

use std::sync::OnceLock;

use rhumb_core::url::{Host, NormalizeOptions, Normalizer, ShapeLimits, Url, shape_problem, whatwg_parse};

use crate::line;

/// Normal forms are normal: normalising again, parsing, reading back and resolving against anything changes nothing, and the parts
/// are those that the standard's parser sees.
pub fn run(data: &[u8]) {
    let (base, raw) = line(data);
    let (base, raw) = (String::from_utf8_lossy(base), String::from_utf8_lossy(raw));
    for (normalizer, bytes_max) in normalizers() {
        let base = normalizer.base(&base, None).ok();
        let Ok(url) = normalizer.normalize(&raw, base.as_ref()) else { continue };
        assert!(url.as_str().len() <= *bytes_max);
        assert_eq!(normalizer.normalize(url.as_str(), None).as_ref(), Ok(&url), "again, from {raw:?}");
        assert_eq!(normalizer.normalize(url.as_str(), base.as_ref()).as_ref(), Ok(&url), "against a base");
        assert_eq!(Url::parse(url.as_str()).as_ref(), Ok(&url), "parsed");
        assert_eq!(Url::from_canonical(url.as_str()).as_ref(), Some(&url), "read back");
        assert_eq!(Host::from_canonical(url.host().as_str()), Some(url.host()));
        parts(&url);
        let own = normalizer.own_base(&url);
        assert_eq!(normalizer.normalize("", Some(&own)).as_ref(), Ok(&url), "the empty link is the page itself");
        if !url.path().starts_with("//") {
            assert_eq!(normalizer.normalize(url.path_and_query(), Some(&own)).as_ref(), Ok(&url), "its own path");
        }
        let _ = shape_problem(&url, &ShapeLimits::default());
    }
    if let Ok(href) = whatwg_parse(&raw, Some(&*base).filter(|b| !b.is_empty())) {
        assert_eq!(whatwg_parse(&href, None).as_deref(), Ok(&*href), "the standard's own form, from {raw:?}");
    }
}

/// Three ways to normalise, each with the longest URL it lets pass.
fn normalizers() -> &'static [(Normalizer, usize)] {
    static ALL: OnceLock<Vec<(Normalizer, usize)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let sorted = NormalizeOptions { sort_query: true, url_bytes_max: 200, ..NormalizeOptions::default() };
        let all = [NormalizeOptions::default(), NormalizeOptions::plain(), sorted];
        all.iter().map(|options| (Normalizer::new(options), options.url_bytes_max)).collect()
    })
}

fn parts(url: &Url) {
    let seen = url::Url::parse(url.as_str()).expect("the standard's parser reads it");
    assert_eq!(seen.as_str(), url.as_str());
    // A file has no host, and no port.
    assert_eq!(seen.host_str().unwrap_or_default(), url.host_str());
    assert_eq!(seen.port_or_known_default().unwrap_or_default(), url.port());
    assert_eq!((seen.scheme(), seen.path(), seen.query()), (url.scheme(), url.path(), url.query()));
    assert!(seen.fragment().is_none() && seen.username().is_empty() && seen.password().is_none());
    assert!(url.host_str().ends_with(url.registrable_domain()));
    assert_eq!((url.host().name(), url.host().port()), (url.host_str(), url.port()));
    assert_eq!(url.ip_literal().is_some(), !matches!(seen.host(), None | Some(url::Host::Domain(_))));
}
