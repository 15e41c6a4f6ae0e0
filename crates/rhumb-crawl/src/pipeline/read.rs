//! What an answer says: where a redirect leads, what is on a page, what a sitemap lists. All of it becomes fields and links of the visit's
//! record; each link is made canonical and judged by the filter here.
//!
//! Invariant: whatever the bytes are, a record comes out; what could not be used is counted or named in its detail.

use rhumb_core::outcome::Outcome;
use rhumb_core::page::{Body, Gist, Page, Rel};
use rhumb_core::robots::{ROBOTS_BYTES_MAX, RobotsTxt};
use rhumb_core::sitemap::{Hint, SITEMAPS_MAX, Sitemap, SitemapKind, SitemapLevel, SitemapLimits};
use rhumb_core::url::Url;
use rhumb_core::visit::{LinkKind, Outlink, VisitRecord};

use super::keep::may_be_kept;
use super::{Scratch, Tools};
use crate::fetch::Fetched;

/// `Link` headers that are looked at, and links in one of them.
const LINK_HEADERS_MAX: usize = 32;
/// Longest address in one.
const LINK_HREF_BYTES_MAX: usize = 8 << 10;
/// Of a Location that cannot be used, the log keeps so much.
const LOCATION_CHARS_SHOWN: usize = 200;

pub(super) fn follow_redirect(record: &mut VisitRecord, fetched: &Fetched, tools: &Tools) {
    let location = fetched.headers.get("location").map(|v| String::from_utf8_lossy(v.as_bytes()));
    let base = tools.normalizer.own_base(&record.entry.url);
    let target = match location {
        None => Err("no Location".to_string()),
        Some(location) if location.trim().is_empty() => Err("Location is empty".to_string()),
        Some(location) => tools.normalizer.normalize(&location, Some(&base)).map_err(|e| {
            let shown: String = location.chars().take(LOCATION_CHARS_SHOWN).collect();
            let dots = if shown.len() < location.len() { "…" } else { "" };
            format!("Location {shown:?}{dots}: {e}")
        }),
    };
    match target {
        Err(why) => {
            record.outcome = Outcome::BadRedirect;
            record.detail = why.into();
        }
        Ok(_) if record.purpose.is_page() && record.entry.redirects >= tools.redirects_max => {
            record.outcome = Outcome::TooManyRedirects;
            record.detail = format!("more than {} redirects in a row", tools.redirects_max).into();
        }
        Ok(url) => {
            // Where a seed leads is where the user wants to go, also if it is another host.
            let wanted = record.entry.seed || wanted(&url, record.entry.depth, tools);
            record.links = vec![Outlink::bare(url, LinkKind::Redirect, wanted)];
        }
    }
}

pub(super) fn read_page(
    record: &mut VisitRecord,
    body: &Body<'_>,
    read: Option<Box<Page>>,
    fetched: &Fetched,
    tools: &Tools,
    scratch: &mut Scratch,
) -> Gist {
    record.fingerprint = xxhash_rust::xxh3::xxh3_64(body.bytes);
    if let Some(page) = read {
        scratch.page = *page;
    } else {
        if tools.gists {
            scratch.extractor.want_gist(&record.entry.url);
        }
        let host = record.entry.url.host();
        let templates = || tools.templates.lock().expect("nobody panics while borrowing a template");
        if tools.parse.extract.main_text {
            scratch.extractor.use_template(templates().take(&host));
        }
        tools.formats.read_into(body, &mut scratch.extractor, &tools.parse, &mut scratch.page);
        if let Some(template) = scratch.extractor.take_template() {
            templates().put(&host, template);
        }
    }
    let page = &scratch.page;
    if tools.parse.extract.main_text {
        scratch.sketcher.push(&page.main_text);
        record.content = scratch.sketcher.finish();
    }
    record.title = page.title.as_deref().unwrap_or_default().into();
    record.links_unusable = page.links_dropped as u32;
    let gist = if page.gist.is_empty() { Gist::of_bytes(record.fingerprint) } else { page.gist };
    if page.links_dropped > 0 {
        add_detail(record, &format!("{} links beyond the bounds left out", page.links_dropped));
    }
    if page.truncated {
        add_detail(record, "text beyond the bound left out");
    }
    if let Some(trouble) = &page.trouble {
        add_detail(record, trouble);
    }
    if !tools.stages.normalize {
        return gist;
    }
    let own = tools.normalizer.own_base(&record.entry.url);
    let base = page.base.as_deref().and_then(|href| tools.normalizer.base(href, Some(&own)).ok()).unwrap_or(own);
    record.directives = page.directives();
    for value in fetched.headers.get_all("x-robots-tag") {
        record.directives.read_header(&String::from_utf8_lossy(value.as_bytes()), &tools.parse.extract.agent);
    }
    let follow = !(tools.obey.nofollow && record.directives.nofollow.is_some());
    let depth = record.entry.depth.saturating_add(1);
    let filter = tools.filter.read().expect("nobody panics while replacing the filter").clone();
    let mut add = |href: &str, text: &str, kind: LinkKind, rel: Rel, hint: Hint| match tools
        .normalizer
        .normalize(href, Some(&base))
    {
        Ok(url) => {
            let follow = follow && !(tools.obey.rel_nofollow && rel.intersects(Rel::NOFOLLOW));
            let wanted = follow && filter.judge(&url, depth).is_ok();
            let rel = rel.unvouched();
            record.links.push(Outlink { url, text: text.into(), kind, rel, hint, wanted });
        }
        Err(_) => record.links_unusable += 1,
    };
    let mut hints = page.hints.iter().peekable();
    for (i, link) in page.links.iter().enumerate() {
        let hint = hints.next_if(|h| h.link == i);
        let hint = hint.map(|h| Hint::said(h.lastmod.as_deref(), h.changefreq.as_deref(), h.priority));
        add(link.href, link.text, link.tag.into(), link.flags, hint.unwrap_or_default());
    }
    let by_header = canonical_of_header(fetched);
    if let Some(href) = &by_header {
        add(href, "", LinkKind::Link, Rel::default(), Hint::default());
    }
    if let Some(refresh) = &page.refresh {
        add(&refresh.href, "", LinkKind::Refresh, Rel::default(), Hint::default());
        // A page that sends its reader on is one more redirect in a row.
        if record.entry.redirects >= tools.redirects_max
            && let Some(link) = record.links.last_mut().filter(|l| l.kind == LinkKind::Refresh)
        {
            link.wanted = false;
            add_detail(record, &format!("refresh not followed: more than {} redirects in a row", tools.redirects_max));
        }
    }
    let canonical = page.canonical.as_deref().or(by_header.as_deref());
    record.canonical = canonical.and_then(|href| tools.normalizer.normalize(href, Some(&base)).ok());
    record.canonical.take_if(|url| *url == record.entry.url);
    record.language = page.declared_language().unwrap_or_default().into();
    keep_text(record, tools, scratch);
    // A site's front page, or where the user begins: the sitemap is asked for once, if robots.txt named none.
    if tools.sitemaps && record.entry.url.is_web() && (record.entry.seed || record.entry.url.path() == "/") {
        record.sitemap_wanted = wanted(&record.entry.url.host().sitemap_url(), 1, tools);
    }
    gist
}

/// What the page says goes into the log, for an index that is made from there; not if it asks to be kept out of one.
fn keep_text(record: &mut VisitRecord, tools: &Tools, scratch: &mut Scratch) {
    if record.directives.hides_at(record.ended).is_some() {
        return;
    }
    if !tools.said {
        let hidden = !may_be_kept(record, tools);
        record.text_kept = hidden.then(|| scratch.page.main_text.as_str().into());
        return;
    }
    scratch.said.fill(&scratch.page);
    if !scratch.said.is_empty() {
        scratch.packed.clear();
        scratch.said.put(&mut scratch.packed);
        record.said = Some(scratch.packed.as_slice().into());
    }
}

/// The preferred address that a `Link` header names (RFC 8288, RFC 6596).
fn canonical_of_header(fetched: &Fetched) -> Option<String> {
    fetched.headers.get_all("link").iter().take(LINK_HEADERS_MAX).find_map(|value| {
        let value = std::str::from_utf8(value.as_bytes()).ok()?;
        value.split('<').skip(1).take(LINK_HEADERS_MAX).find_map(|link| {
            let (href, parameters) = link.split_once('>')?;
            let is_canonical = parameters.split(';').any(|p| {
                p.split_once('=').is_some_and(|(name, rel)| {
                    let rel = rel.trim_matches(|c: char| c.is_ascii_whitespace() || c == '"' || c == ',');
                    name.trim().eq_ignore_ascii_case("rel") && Rel::parse(rel).intersects(Rel::CANONICAL)
                })
            });
            (is_canonical && href.len() <= LINK_HREF_BYTES_MAX).then(|| href.trim().to_string())
        })
    })
}

/// The sitemaps that a robots.txt names, as links.
pub(super) fn name_sitemaps(record: &mut VisitRecord, body: &[u8], tools: &Tools) {
    let robots = RobotsTxt::parse(body, ROBOTS_BYTES_MAX);
    let named = robots.sitemaps().iter().map(|loc| (loc.as_str(), Hint::default()));
    // As wanted as a link of a seed, but no deeper than the seed itself: what a sitemap lists is one step away.
    add_listed(record, named, LinkKind::Sitemap, SITEMAPS_MAX, 1, tools);
}

/// What a sitemap lists, as links. What is wrong with it is a detail: the host answered, and nothing else is expected of it.
pub(super) fn read_sitemap(record: &mut VisitRecord, body: &[u8], level: SitemapLevel, tools: &Tools) {
    record.fingerprint = xxhash_rust::xxh3::xxh3_64(body);
    let sitemap = Sitemap::read_at(body, Some(record.entry.url.as_str()), &SitemapLimits::default());
    if let Some(problem) = sitemap.in_words("sitemap") {
        add_detail(record, &problem);
    }
    let is_index = sitemap.kind == Some(SitemapKind::Index);
    let (kind, max) = if is_index { (LinkKind::Sitemap, level.may_name()) } else { (LinkKind::Listed, usize::MAX) };
    if sitemap.urls.len() > max {
        add_detail(record, &format!("{} sitemaps beyond the bounds left out", sitemap.urls.len() - max));
    }
    let depth = record.entry.depth.saturating_add(1);
    add_listed(record, sitemap.urls.iter().map(|u| (u.loc.as_str(), Hint::of(u))), kind, max, depth, tools);
}

fn add_listed<'a>(
    record: &mut VisitRecord,
    listed: impl Iterator<Item = (&'a str, Hint)>,
    kind: LinkKind,
    max: usize,
    depth: u32,
    tools: &Tools,
) {
    let base = tools.normalizer.own_base(&record.entry.url);
    let filter = tools.filter.read().expect("nobody panics while replacing the filter").clone();
    for (i, (loc, hint)) in listed.enumerate() {
        match tools.normalizer.normalize(loc, Some(&base)) {
            Ok(url) if i < max => {
                let wanted = filter.judge(&url, depth).is_ok();
                record.links.push(Outlink { hint, ..Outlink::bare(url, kind, wanted) });
            }
            _ => record.links_unusable += 1,
        }
    }
}

pub(super) fn add_detail(record: &mut VisitRecord, more: &str) {
    record.detail = if record.detail.is_empty() { more.into() } else { format!("{}; {more}", record.detail).into() };
}

pub(super) fn wanted(url: &Url, depth: u32, tools: &Tools) -> bool {
    tools.filter.read().expect("nobody panics while replacing the filter").judge(url, depth).is_ok()
}
