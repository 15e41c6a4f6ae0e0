//! What a crawler understands of an answer, without the markup between them.
//!
//! Writing a page and parsing it again is most of the cost of a simulated visit, and tells nothing new about the
//! decisions that follow from it. [`Web::outlinks`] gives the same links in the same order, already canonical; the test
//! below holds it against the real extractor and normaliser reading the real page.

use super::links::Plan;
use super::path::Target;
use super::{Page, Web};

/// Buffers for [`Web::outlinks`], in use again and again.
#[derive(Default)]
pub struct OutlinkScratch {
    plans: Vec<Plan>,
    url: Vec<u8>,
}

/// One link of a page as the extractor and the normaliser give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Where it leads, canonical.
    pub url: &'a str,
    /// What is there.
    pub target: Target,
    /// Marked `rel="nofollow"`.
    pub nofollow: bool,
    /// A `<link rel="canonical">` in the head rather than an `<a>`.
    pub canonical: bool,
}

impl Web {
    /// The links of a page, in document order, one call of `each` per link. A duplicate has the links of its original.
    pub fn outlinks(&self, host: u64, page: u64, scratch: &mut OutlinkScratch, mut each: impl FnMut(Found<'_>)) {
        let Page { host, page } = self.twin(host, page).unwrap_or(Page { host, page });
        let OutlinkScratch { plans, url } = scratch;
        self.plan(host, page, plans);
        let mut give = |target: Target, nofollow, canonical| {
            url.clear();
            self.put_origin(target.host(), url);
            self.put_path(target, "&", url);
            if let Ok(url) = std::str::from_utf8(url) {
                each(Found { url, target, nofollow, canonical });
            }
        };
        if self.names_canonical(host, page) {
            give(Target::Page { host, page }, false, true);
        }
        for plan in plans.iter() {
            give(plan.target, plan.nofollow, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, WebConfig};
    use rhumb_core::filter::{Filter, FilterConfig, Scope};
    use rhumb_core::page::{self, Extractor, LinkTag, ParseOptions};
    use rhumb_core::robots::RobotsTxt;
    use rhumb_core::url::{Normalizer, Url};

    fn web() -> Web {
        let trouble =
            WebConfig { redirect_share: 0.1, not_found_share: 0.05, error_share: 0.05, ..WebConfig::default() };
        Web::new(WebConfig { hosts: 40, pages: 20, duplicate_share: 0.2, nofollow_share: 0.1, ..trouble }).unwrap()
    }

    /// What the real extractor and normaliser make of the page that is really served.
    fn parsed(web: &Web, url: &Url) -> Vec<(String, bool, bool)> {
        let name = web.host_name(web.host_index(url.host_str()).unwrap());
        let reply = web.respond(&Request { host: &name, path: url.path_and_query(), ..Request::default() });
        let mut page = page::Page::default();
        let options = ParseOptions::default();
        page::parse_page_into(
            &mut Extractor::default(),
            &reply.body,
            reply.header("content-type"),
            &options,
            &mut page,
        );
        let normalizer = Normalizer::default();
        let base = normalizer.base(url.as_str(), None).unwrap();
        let links = page.links.iter().map(|link| {
            let target = normalizer.normalize(link.href, Some(&base)).unwrap();
            (String::from(target), link.flags.is_unvouched(), link.tag == LinkTag::Link)
        });
        links.collect()
    }

    #[test]
    fn the_short_way_finds_what_the_parser_finds() {
        let web = web();
        let filter = Filter::new(FilterConfig { scope: Scope::Any, ..FilterConfig::default() }).unwrap();
        let (mut links, mut nofollow, mut twins) = (0, 0, 0);
        for host in 0..40 {
            for page in 0..web.pages_of(host).min(60) {
                let url = Url::parse(&web.url(host, page)).unwrap();
                assert_eq!(url.as_str(), web.url(host, page), "the web's own URLs are canonical");
                let mut found = Vec::new();
                web.outlinks(host, page, &mut OutlinkScratch::default(), |f| {
                    let target = Url::parse(f.url).unwrap();
                    assert_eq!(target.as_str(), f.url);
                    assert_eq!(filter.judge(&target, 3), Ok(()), "everything is wanted where nothing is out of scope");
                    found.push((f.url.to_owned(), f.nofollow, f.canonical));
                });
                assert_eq!(found, parsed(&web, &url), "{url}");
                links += found.len();
                nofollow += found.iter().filter(|f| f.1).count();
                twins += usize::from(web.twin(host, page).is_some());
            }
        }
        assert!(links > 5_000 && nofollow > 100 && twins > 20, "{links} {nofollow} {twins}");
    }

    #[test]
    fn redirects_and_errors_answer_as_the_data_say() {
        let web = web();
        let normalizer = Normalizer::default();
        for (host, key) in (0..40).flat_map(|host| (0..8).map(move |key| (host, key))) {
            for target in [Target::Redirect { host, key }, Target::Missing { host, key }, Target::Error { host, key }] {
                let url = Url::parse(&web.target_url(target)).unwrap();
                let name = web.host_name(host);
                let reply = web.respond(&Request { host: &name, path: url.path_and_query(), ..Request::default() });
                assert_eq!(reply.status, web.status_of(target), "{url}");
                assert!(parsed(&web, &url).is_empty(), "{url} has no links");
                assert_eq!(reply.header("retry-after"), (reply.status == 503).then_some("1"), "{url}");
                if let Target::Redirect { host, key } = target {
                    let base = normalizer.base(url.as_str(), None).unwrap();
                    let to = normalizer.normalize(reply.header("location").unwrap(), Some(&base)).unwrap();
                    assert_eq!(to.as_str(), web.target_url(web.redirect_target(host, key)));
                }
            }
        }
    }

    #[test]
    fn rules_as_data_are_rules_as_read() {
        let web = Web::new(WebConfig { hosts: 200, crawl_delay_share: 0.3, ..WebConfig::default() }).unwrap();
        for host in 0..200 {
            let name = web.host_name(host);
            let reply = web.respond(&Request { host: &name, path: "/robots.txt", ..Request::default() });
            let data = web.robots(host);
            assert_eq!(reply.status, data.status);
            if data.status != 200 {
                continue;
            }
            let rules = RobotsTxt::parse(&reply.body, usize::MAX).for_agent("rhumb");
            assert_eq!(rules.crawl_delay_ms().map(u64::from), data.crawl_delay_ms("rhumb"));
            for page in 0..web.pages_of(host).min(30) {
                let url = web.url(host, page);
                for path in [url.strip_prefix(&web.origin(host)).unwrap(), "/private/x-1.html", "/a?print=1"] {
                    assert_eq!(rules.allows(path), data.allows("rhumb", path), "{url} {path}");
                }
            }
        }
    }
}
