//! Pages that are what they say: distinct text under a title, and links.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::hash::{Purpose, mix_bytes};
use crate::text::Text;
use crate::web::respond::Reply;

/// The type of every page that does not lie about it.
pub(super) const HTML: &str = "text/html; charset=utf-8";

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::new(0));

/// The path of an honest page.
pub(super) fn path(n: u32) -> String {
    format!("/page/{n}")
}

/// Some text that belongs to `key` alone.
pub(super) fn text(key: &str, bytes: usize) -> String {
    let run = TEXT.run(mix_bytes(0, Purpose::Text, key.as_bytes()), bytes);
    String::from_utf8_lossy(run).into_owned()
}

/// A page with a title, this inside and links to these targets.
pub(super) fn html(title: &str, inside: &str, links: impl IntoIterator<Item = impl AsRef<str>>) -> Reply {
    let mut out = format!("<!doctype html>\n<title>{title}</title>\n<h1>{title}</h1>\n{inside}\n<ul>\n");
    for link in links {
        let link = link.as_ref().replace('&', "&amp;").replace('"', "&quot;");
        // Writing into memory cannot fail.
        let _ = writeln!(out, "<li><a href=\"{link}\">{link}</a>");
    }
    out.push_str("</ul>\n");
    Reply::new(200, HTML, &out)
}

/// The honest page that this path names, of a host that has so many.
pub(super) fn honest(host: &str, path: &str, count: u32) -> Option<Reply> {
    let n: u32 = path.strip_prefix("/page/")?.parse().ok()?;
    if n == 0 || n > count || path != self::path(n) {
        return None;
    }
    let inside = format!("<p>{}</p>\n<p>{}</p>", text(&format!("{host}{n}"), 900), text(&format!("{n}{host}"), 600));
    let others = links(count).filter(|link| link != path);
    Some(html(&format!("Page {n} of {host}"), &inside, others))
}

/// The paths of all honest pages.
pub(super) fn links(count: u32) -> impl Iterator<Item = String> {
    (1..=count).map(path)
}

/// A home page: honest links and those of the trouble.
pub(super) fn home(host: &str, count: u32, more: impl IntoIterator<Item = String>) -> Reply {
    let inside = format!("<p>{}</p>", text(host, 1200));
    html(&format!("Welcome to {host}"), &inside, links(count).chain(more))
}

/// "Not here", said honestly.
pub(super) fn not_found() -> Reply {
    Reply::new(404, HTML, "<!doctype html>\n<title>404</title>\n<p>There is no such page.</p>\n")
}
