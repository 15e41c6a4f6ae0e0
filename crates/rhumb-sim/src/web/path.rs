//! Paths: written from an index, read back into it.
//!
//! Every path carries the index of what it names and words that follow from it. Reading takes the last number, writes
//! the path that this number should have, and compares: a path is either exactly ours or unknown, without any table.
//!
//! | path | what it is |
//! | --- | --- |
//! | `/` | page 0 |
//! | `/news/word-word-17.html`, `/news/word-17/`, `/news/view?id=17`, `/news/list?lang=en&page=17` | page 17 |
//! | `/private/open/word-17.html` | page 17 too; robots.txt allows it within what it closes |
//! | `/private/word-17.html`, `/news/word-word-17.html?print=1` | closed by robots.txt where it closes anything |
//! | `/go/17` | a redirect |
//! | `/missing/word-17.html` | 404 or 410 |
//! | `/broken/word-17.html` | 500 or 503 |

use super::Web;
use crate::hash::Purpose;

/// What a URL of this web names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// An ordinary page.
    Page {
        /// Index of the host.
        host: u64,
        /// Index of the page.
        page: u64,
    },
    /// The print version of a page: the same body at another URL, which robots.txt usually closes.
    Print {
        /// Index of the host.
        host: u64,
        /// Index of the page.
        page: u64,
    },
    /// A document under `/private/`.
    Private {
        /// Index of the host.
        host: u64,
        /// Which one.
        key: u64,
    },
    /// A URL that redirects.
    Redirect {
        /// Index of the host.
        host: u64,
        /// Which one.
        key: u64,
    },
    /// A URL that answers 404 or 410.
    Missing {
        /// Index of the host.
        host: u64,
        /// Which one.
        key: u64,
    },
    /// A URL that answers 500 or 503.
    Error {
        /// Index of the host.
        host: u64,
        /// Which one.
        key: u64,
    },
}

impl Target {
    /// Index of the host that serves it.
    pub fn host(&self) -> u64 {
        match *self {
            Target::Page { host, .. }
            | Target::Print { host, .. }
            | Target::Private { host, .. }
            | Target::Redirect { host, .. }
            | Target::Missing { host, .. }
            | Target::Error { host, .. } => host,
        }
    }

    /// The draw that its words come from.
    fn draw(&self, web: &Web) -> u64 {
        let (host, key, salt) = match *self {
            Target::Page { host, page } | Target::Print { host, page } => (host, page, 0),
            Target::Private { host, key } => (host, key, 1),
            Target::Redirect { host, key } => (host, key, 2),
            Target::Missing { host, key } => (host, key, 3),
            Target::Error { host, key } => (host, key, 4),
        };
        web.draw(Purpose::Path, host, key ^ (salt << 56))
    }
}

pub(crate) const SECTIONS: [&str; 12] = [
    "news", "articles", "docs", "blog", "archive", "science", "travel", "guides", "people", "products", "reports",
    "events",
];
const PRINT: &str = "?print=1";

impl Web {
    /// The URL of a target.
    pub fn target_url(&self, target: Target) -> String {
        let mut url = Vec::with_capacity(64);
        self.put_origin(target.host(), &mut url);
        self.put_path(target, "&", &mut url);
        String::from_utf8_lossy(&url).into_owned()
    }

    /// What this path (with query) of a host names, if anything.
    pub fn target(&self, host: u64, path: &str) -> Option<Target> {
        match path {
            "/" => return Some(Target::Page { host, page: 0 }),
            "/?print=1" => return Some(Target::Print { host, page: 0 }),
            _ => {}
        }
        let (plain, print) = match path.strip_suffix(PRINT) {
            Some(plain) => (plain, true),
            None => (path, false),
        };
        let key = last_number(plain)?;
        let (head, rest) = plain.strip_prefix('/')?.split_once('/')?;
        let page = || (key > 0 && key < self.pages_of(host)).then_some(Target::Page { host, page: key });
        let target = match head {
            "go" => Target::Redirect { host, key },
            "missing" => Target::Missing { host, key },
            "broken" => Target::Error { host, key },
            "private" if !rest.starts_with("open/") => Target::Private { host, key },
            _ => page()?,
        };
        let mut expected = Vec::with_capacity(64);
        self.put_path(target, "&", &mut expected);
        if expected != plain.as_bytes() {
            return None;
        }
        match (target, print) {
            (Target::Page { host, page }, true) => self.has_print(host, page).then_some(Target::Print { host, page }),
            (_, true) => None,
            (target, false) => Some(target),
        }
    }

    /// Writes path and query. `ampersand` is `&` in a URL and `&amp;` in markup.
    pub(crate) fn put_path(&self, target: Target, ampersand: &str, out: &mut Vec<u8>) {
        let draw = target.draw(self);
        let (folder, key) = match target {
            Target::Page { page: 0, .. } => return out.push(b'/'),
            Target::Page { page, .. } => return self.put_page_path(page, draw, ampersand, out),
            Target::Print { page: 0, .. } => return out.extend_from_slice(b"/?print=1"),
            Target::Print { page, .. } => {
                self.put_page_path(page, draw, ampersand, out);
                return out.extend_from_slice(PRINT.as_bytes());
            }
            Target::Redirect { key, .. } => {
                out.extend_from_slice(b"/go/");
                return put_number(out, key);
            }
            Target::Private { key, .. } => ("/private/", key),
            Target::Missing { key, .. } => ("/missing/", key),
            Target::Error { key, .. } => ("/broken/", key),
        };
        out.extend_from_slice(folder.as_bytes());
        self.put_slug(draw, 1, key, ".html", out);
    }

    fn put_page_path(&self, page: u64, draw: u64, ampersand: &str, out: &mut Vec<u8>) {
        let style = Style::of(draw);
        if style == Style::Open {
            out.extend_from_slice(b"/private/open/");
            return self.put_slug(draw, 1, page, ".html", out);
        }
        out.push(b'/');
        out.extend_from_slice(SECTIONS[((draw >> 8) % SECTIONS.len() as u64) as usize].as_bytes());
        out.push(b'/');
        match style {
            Style::File | Style::Open => self.put_slug(draw, 2, page, ".html", out),
            Style::Folder => self.put_slug(draw, 1, page, "/", out),
            Style::View => {
                out.extend_from_slice(b"view?id=");
                put_number(out, page);
            }
            Style::List => {
                out.extend_from_slice(b"list?lang=en");
                out.extend_from_slice(ampersand.as_bytes());
                out.extend_from_slice(b"page=");
                put_number(out, page);
            }
        }
    }

    fn put_slug(&self, draw: u64, words: u32, key: u64, end: &str, out: &mut Vec<u8>) {
        for i in 0..words {
            self.text.put_word(draw >> (16 + 16 * i), out);
            out.push(b'-');
        }
        put_number(out, key);
        out.extend_from_slice(end.as_bytes());
    }

    /// The words of a target, as a title or an anchor text.
    pub(crate) fn put_title(&self, target: Target, out: &mut Vec<u8>) {
        let draw = target.draw(self);
        let start = out.len();
        self.text.put_word(draw >> 16, out);
        out[start].make_ascii_uppercase();
        out.push(b' ');
        self.text.put_word(draw >> 32, out);
    }

    /// Whether a page has a print version: those without a query of their own do, unless they lie where robots.txt
    /// allows everything (`Allow: /private/open/` is longer than the rule against print versions, and would win).
    pub(crate) fn has_print(&self, host: u64, page: u64) -> bool {
        let style = Style::of(Target::Page { host, page }.draw(self));
        page == 0 || matches!(style, Style::File | Style::Folder)
    }

    /// How many folders below the root the page lies: what `../` has to undo.
    pub(crate) fn depth_of(&self, host: u64, page: u64) -> usize {
        match Style::of(Target::Page { host, page }.draw(self)) {
            _ if page == 0 => 0,
            Style::Open | Style::Folder => 2,
            _ => 1,
        }
    }
}

/// The five looks of a page's path.
#[derive(PartialEq)]
enum Style {
    File,
    Folder,
    View,
    List,
    Open,
}

impl Style {
    fn of(draw: u64) -> Style {
        match draw & 15 {
            0 => Style::Open,
            1 => Style::View,
            2 => Style::List,
            3 => Style::Folder,
            _ => Style::File,
        }
    }
}

/// Writes a number in decimal, without the formatting machinery.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The last run of digits in a path.
fn last_number(path: &str) -> Option<u64> {
    let end = path.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = path[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    path.get(start..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WebConfig;

    #[test]
    fn every_path_is_read_back() {
        let web = Web::new(WebConfig { hosts: 20, ..WebConfig::default() }).unwrap();
        let read = |target: Target| {
            let mut path = Vec::new();
            web.put_path(target, "&", &mut path);
            let path = String::from_utf8(path).unwrap();
            assert_eq!(web.target(target.host(), &path), Some(target), "{path}");
        };
        for host in 0..20 {
            for page in 0..web.pages_of(host) {
                read(Target::Page { host, page });
                if web.has_print(host, page) {
                    read(Target::Print { host, page });
                }
            }
            for key in 0..20 {
                read(Target::Private { host, key });
                read(Target::Redirect { host, key });
                read(Target::Missing { host, key });
                read(Target::Error { host, key });
            }
        }
    }

    #[test]
    fn other_paths_are_unknown() {
        let web = Web::new(WebConfig::plain(2, 50)).unwrap();
        let known = web.url(0, 7);
        let known = known.strip_prefix("http://h0.sim.test").unwrap();
        let changed = [known.replace('7', "07"), known.replace('7', "8"), format!("{known}x"), format!("{known}&a=1")];
        for path in
            changed.iter().map(String::as_str).chain(["", "*", "//", "/go/", "/go/01", "/é7", "/news/view?id=0"])
        {
            assert_eq!(web.target(0, path), None, "{path}");
        }
        assert_eq!(web.target(1, known), None, "words differ between hosts");
    }

    #[test]
    fn depth_undoes_the_folders() {
        let web = Web::new(WebConfig::plain(1, 200)).unwrap();
        for page in 0..200 {
            let url = web.url(0, page);
            let path = url.strip_prefix("http://h0.sim.test/").unwrap();
            let folders = path.split('?').next().unwrap().matches('/').count();
            assert_eq!(web.depth_of(0, page), folders, "{url}");
        }
    }
}
