//! Markup: what a page looks like on the wire.
//!
//! Head, navigation, article, footer. The article is cut by its links: between two of them stands a run of sentences,
//! so long that the whole comes to the size the page should have. Everything is appended to one buffer, most of it by
//! copying runs of sentences; the hashing per page is a few dozen draws.

use super::Web;
use super::links::{Place, Plan};
use super::path::Target;
use crate::hash::{Dice, Purpose};

/// Bytes that a link adds beside its share of text: the tag, the host name, the path, the anchor text.
const LINK_BYTES: usize = 90;
const LINKS_PER_PARAGRAPH: usize = 3;
const PARAGRAPHS_PER_HEADING: usize = 3;
const FOOTER_BYTES: usize = 260;

const STYLE: &str = "<style>\nbody { font: 16px/1.5 serif; margin: 0 auto; max-width: 60rem }\n\
    nav li { display: inline; margin-right: 1rem }\nfooter { color: #666; font-size: .8rem }\n</style>\n";

impl Web {
    /// Writes the page (an original, never a duplicate) as it stands in this version.
    pub(crate) fn put_page(&self, host: u64, page: u64, version: u64, plans: &mut Vec<Plan>, out: &mut Vec<u8>) {
        let start = out.len();
        self.plan(host, page, plans);
        let mut dice = Dice::new(self.draw(Purpose::Text, host, page ^ version.rotate_left(40)));
        let goal = self.config.page_bytes / 2 + dice.below(self.config.page_bytes as u64 + 1) as usize;
        let own = Target::Page { host, page };
        let depth = self.depth_of(host, page);

        put(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
        self.put_title(own, out);
        put(out, " - ");
        self.put_host_name(host, out);
        put(out, "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        put(out, "<meta name=\"description\" content=\"");
        out.extend_from_slice(self.text.run(dice.next(), 1).trim_ascii_end());
        put(out, "\">\n");
        if self.names_canonical(host, page) {
            put(out, "<link rel=\"canonical\" href=\"");
            self.put_origin(host, out);
            self.put_path(own, "&amp;", out);
            put(out, "\">\n");
        }
        put(out, STYLE);
        put(out, "</head>\n<body>\n<header>\n<p class=\"site\">");
        self.put_host_name(host, out);
        put(out, "</p>\n<nav>\n<ul>\n");
        let nav = plans.iter().take_while(|p| p.place == Place::Nav).count();
        for plan in &plans[..nav] {
            put(out, "<li>");
            self.put_link(plan, depth, out);
            put(out, "</li>\n");
        }
        put(out, "</ul>\n</nav>\n</header>\n<main>\n<article>\n<h1>");
        self.put_title(own, out);
        put(out, "</h1>\n");

        let (body, footer): (&[Plan], &[Plan]) = match plans[nav..].split_last() {
            Some((last, rest)) if last.place == Place::Footer => (rest, std::slice::from_ref(last)),
            _ => (&plans[nav..], &[]),
        };
        self.put_article(body, depth, goal.saturating_sub(out.len() - start + FOOTER_BYTES), &mut dice, out);

        put(out, "</article>\n</main>\n<footer>\n<p>");
        for plan in footer {
            self.put_link(plan, depth, out);
        }
        put(out, " &middot; &copy; 2024 ");
        self.put_host_name(host, out);
        put(
            out,
            " &middot; All rights reserved. Opinions are those of their authors.</p>\n</footer>\n</body>\n</html>\n",
        );
    }

    /// One host in four names canonical URLs; so does every page that may be found elsewhere as well.
    pub(crate) fn names_canonical(&self, host: u64, page: u64) -> bool {
        host.is_multiple_of(4) || self.is_original(host, page)
    }

    /// Text and links in turn, in paragraphs under headings, about `bytes` long.
    fn put_article(&self, links: &[Plan], depth: usize, bytes: usize, dice: &mut Dice, out: &mut Vec<u8>) {
        let gap = bytes.saturating_sub(links.len() * LINK_BYTES) / (links.len() + 1);
        put(out, "<p>");
        for (i, plan) in links.iter().enumerate() {
            if i > 0 && i % LINKS_PER_PARAGRAPH == 0 {
                let paragraph = i / LINKS_PER_PARAGRAPH;
                put(out, "</p>\n");
                if paragraph.is_multiple_of(PARAGRAPHS_PER_HEADING) {
                    let draw = dice.next();
                    put(out, "<h2 id=\"part-");
                    out.push(b'0' + (paragraph / PARAGRAPHS_PER_HEADING % 10) as u8);
                    put(out, "\">");
                    self.text.put_word(draw, out);
                    put(out, " ");
                    self.text.put_word(draw >> 20, out);
                    put(out, "</h2>\n");
                }
                put(out, "<p>");
            }
            self.put_text(gap, dice, out);
            self.put_link(plan, depth, out);
            put(out, ". ");
        }
        self.put_text(gap, dice, out);
        put(out, "</p>\n");
    }

    /// A run of sentences, now and then followed by something emphasised.
    fn put_text(&self, bytes: usize, dice: &mut Dice, out: &mut Vec<u8>) {
        let draw = dice.next();
        if bytes >= 20 {
            out.extend_from_slice(self.text.run(draw, bytes));
        }
        let (open, close) = match draw & 15 {
            0 => ("<em>", "</em> "),
            1 => ("<strong>", "</strong> "),
            2 => ("<b>", "</b> "),
            _ => return,
        };
        put(out, open);
        self.text.put_word(draw >> 8, out);
        put(out, close);
    }

    fn put_link(&self, plan: &Plan, depth: usize, out: &mut Vec<u8>) {
        put(out, "<a href=\"");
        self.put_href(plan, depth, "&amp;", out);
        put(out, if plan.nofollow { "\" rel=\"nofollow\">" } else { "\">" });
        self.put_anchor(plan, out);
        put(out, "</a>");
    }
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use crate::{Request, Web, WebConfig};

    fn body(web: &Web, host: u64, page: u64, time_ms: u64) -> String {
        let url = web.url(host, page);
        let path = url.strip_prefix(&web.origin(host)).unwrap();
        let name = web.host_name(host);
        let reply = web.respond(&Request { host: &name, path, time_ms, ..Request::default() });
        assert_eq!(reply.status, 200, "{url}");
        String::from_utf8(reply.body).unwrap()
    }

    /// The naive reading: everything between `<a href="` and the next quote.
    fn hrefs(html: &str) -> Vec<String> {
        let parts = html.split("<a href=\"").skip(1);
        parts.map(|p| p.split('"').next().unwrap().replace("&amp;", "&")).collect()
    }

    #[test]
    fn markup_and_data_have_the_same_links() {
        let web = Web::new(WebConfig { hosts: 60, pages: 20, ..WebConfig::default() }).unwrap();
        for host in 0..60 {
            for page in 0..web.pages_of(host).min(60) {
                let html = body(&web, host, page, 0);
                let links = web.links(host, page);
                assert_eq!(hrefs(&html), links.iter().map(|l| l.href.clone()).collect::<Vec<_>>());
                assert_eq!(html.matches("rel=\"nofollow\"").count(), links.iter().filter(|l| l.nofollow).count());
                for link in &links {
                    assert!(html.contains(&format!(">{}</a>", link.text)));
                }
            }
        }
    }

    #[test]
    fn hrefs_resolve_to_the_urls_in_the_data() {
        let web = Web::new(WebConfig { hosts: 20, ..WebConfig::default() }).unwrap();
        for host in 0..20 {
            for page in 0..web.pages_of(host).min(40) {
                // A duplicate's links are all absolute, so its own address is a fair base.
                let base = web.url(host, page);
                for link in web.links(host, page) {
                    assert_eq!(resolve(&base, &link.href), link.url, "{} on {base}", link.href);
                }
            }
        }
    }

    fn resolve(base: &str, href: &str) -> String {
        let href = href.split('#').next().unwrap();
        let base = base.split('?').next().unwrap();
        let host_end = base[7..].find('/').unwrap() + 7;
        if href.starts_with("http://") {
            return href.to_owned();
        }
        if href.starts_with("//") {
            return format!("http:{href}");
        }
        if href.starts_with('/') {
            return format!("{}{href}", &base[..host_end]);
        }
        let mut folders: Vec<&str> = base[host_end + 1..].split('/').collect();
        folders.pop();
        for part in href.split_inclusive('/') {
            match part {
                "./" => {}
                "../" => drop(folders.pop().unwrap()),
                part => folders.push(part.strip_suffix('/').unwrap_or(part)),
            }
        }
        let end = if href.ends_with('/') && !folders.is_empty() { "/" } else { "" };
        format!("{}/{}{end}", &base[..host_end], folders.join("/"))
    }

    #[test]
    fn the_same_twice_and_different_elsewhere() {
        let config = WebConfig { hosts: 10, duplicate_share: 0.0, ..WebConfig::default() };
        let (one, two) = (Web::new(config.clone()).unwrap(), Web::new(config.clone()).unwrap());
        let other = Web::new(WebConfig { seed: 2, ..config }).unwrap();
        for host in 0..10 {
            assert_eq!(body(&one, host, 0, 5), body(&two, host, 0, 5));
            assert_ne!(body(&one, host, 0, 5), body(&other, host, 0, 5));
            assert_ne!(body(&one, host, 0, 5), body(&one, (host + 1) % 10, 0, 5));
        }
    }

    #[test]
    fn duplicates_are_identical_to_the_byte() {
        let web = Web::new(WebConfig { hosts: 40, duplicate_share: 0.3, ..WebConfig::default() }).unwrap();
        let (mut near, mut far) = (0, 0);
        for host in 0..40 {
            for page in 0..web.pages_of(host).min(80) {
                let Some(twin) = web.twin(host, page) else { continue };
                assert_eq!(body(&web, host, page, 0), body(&web, twin.host, twin.page, 0));
                if twin.host == host { near += 1 } else { far += 1 }
            }
        }
        assert!(near > 10 && far > 10, "{near} {far}");
    }

    #[test]
    fn pages_have_the_size_asked_for_and_sound_markup() {
        for page_bytes in [4_000, 10_000, 40_000] {
            let web = Web::new(WebConfig { page_bytes, ..WebConfig::plain(20, 30) }).unwrap();
            let pages: Vec<String> =
                (0..20).flat_map(|h| (0..30).map(move |p| (h, p))).map(|(h, p)| body(&web, h, p, 0)).collect();
            let mean = pages.iter().map(String::len).sum::<usize>() / pages.len();
            assert!(mean.abs_diff(page_bytes) < page_bytes / 5, "{mean} for {page_bytes}");
            for html in &pages {
                for tag in ["p", "ul", "li", "h1", "h2", "em", "strong", "b", "a", "article", "title"] {
                    let opened = html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
                    assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
                }
            }
        }
    }
}
