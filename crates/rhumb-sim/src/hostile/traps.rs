//! URLs without end: each host has some honest pages, and something that makes new addresses for ever.
//!
//! What comes out of a trap is as it is on the web: months without an entry, the same shop under ever new session ids,
//! the same excuse at every address. Only the link farm writes new text every time.

use std::sync::LazyLock;

use rhumb_core::outcome::Outcome;

use super::{Asked, End, Group, Kind, SUFFIX, Serve, page};
use crate::hash::{Dice, Purpose, mix_bytes};
use crate::web::respond::Reply;

/// Honest pages of each host.
const HONEST: u32 = 12;
/// robots.txt, the home page and the honest pages.
const HONEST_REQUESTS: u64 = 2 + HONEST as u64;

const TRAP: Kind = Kind {
    group: Group::Traps,
    honest: HONEST,
    ends: &[End::of("/", Outcome::Ok)],
    requests_max: TRAP_REQUESTS_MAX,
    ..Kind::BARE
};

/// What a trap without an end may cost: some dozens of requests until a rule is learned, or at the most the credit that a host
/// has to begin with (200) and what its honest pages earn.
const TRAP_REQUESTS_MAX: u64 = 320;
/// The credit of a domain (1,000), and a robots.txt for each of its hosts.
const WILDCARD_REQUESTS_MAX: u64 = 2_500;
/// What is new every time is not held back before the crawl ends; politeness is what bounds it.
const FRESH_REQUESTS_MAX: u64 = 900;

/// The traps.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "calendar",
        about: "a calendar whose months never end; nothing happens in most of them",
        serve: Serve::Reply(calendar),
        ..TRAP
    },
    Kind {
        name: "session-query",
        about: "every link carries a new session id in the query; the pages are the same dozen",
        serve: Serve::Reply(session_query),
        ..TRAP
    },
    Kind {
        name: "session-path",
        about: "every link carries a new session id in the path; the pages are the same dozen",
        serve: Serve::Reply(session_path),
        ..TRAP
    },
    Kind {
        name: "deeper",
        about: "relative links that lead one directory deeper on every page",
        serve: Serve::Reply(deeper),
        ..TRAP
    },
    Kind {
        name: "doubling",
        about: "every page links to its own address written twice",
        serve: Serve::Reply(doubling),
        requests_max: HONEST_REQUESTS + 20,
        ..TRAP
    },
    Kind {
        name: "facets",
        about: "a shop whose filters can be combined in any number and in any order",
        serve: Serve::Reply(facets),
        requests_max: FRESH_REQUESTS_MAX,
        ..TRAP
    },
    Kind {
        name: "farm",
        about: "a link farm: every page is new, random, and links to twenty more",
        serve: Serve::Reply(farm),
        requests_max: FRESH_REQUESTS_MAX,
        ..TRAP
    },
    Kind {
        name: "wildcard",
        about: "sub-domains without end, all of them the same site",
        serve: Serve::Reply(wildcard),
        requests_max: WILDCARD_REQUESTS_MAX,
        ..TRAP
    },
    Kind {
        name: "mirrors",
        about: "the same site under eight names",
        serve: Serve::Reply(mirrors),
        requests_max: 9 * HONEST_REQUESTS,
        ..TRAP
    },
    Kind {
        name: "soft-404",
        about: "says \"not found\" with status 200 at every address, and links to more of them",
        serve: Serve::Reply(soft_404),
        ..TRAP
    },
    Kind {
        name: "links-200k",
        about: "a page with 200,000 links to pages that hardly differ",
        ends: &[End::of("/", Outcome::Ok).detail("links")],
        serve: Serve::Reply(links_200k),
        ..TRAP
    },
    Kind {
        name: "spellings",
        about: "one page under dozens of spellings of its address",
        serve: Serve::Reply(spellings),
        requests_max: HONEST_REQUESTS + SPELLINGS.len() as u64,
        ..TRAP
    },
    Kind {
        name: "error-200",
        about: "a broken database: every item is an error message with status 200, under ever new numbers",
        serve: Serve::Reply(error_200),
        ..TRAP
    },
];

fn home(asked: &Asked<'_>, more: impl IntoIterator<Item = String>) -> Reply {
    page::home(asked.host, HONEST, more)
}

/// The number at the end of a path.
fn number_behind(path: &str, prefix: &str) -> Option<u64> {
    path.strip_prefix(prefix)?.parse().ok()
}

/// A draw that belongs to this address.
fn dice(asked: &Asked<'_>) -> Dice {
    Dice::new(mix_bytes(1, Purpose::Links, asked.path.as_bytes()))
}

fn calendar(asked: &Asked<'_>) -> Reply {
    const FIRST: u64 = 2026 * 12 + 10;
    let link = |month: u64| format!("/calendar/{}/{:02}", month / 12, month % 12 + 1);
    if asked.path == "/" {
        return home(asked, [link(FIRST)]);
    }
    let month = asked.path.strip_prefix("/calendar/").and_then(|rest| rest.split_once('/'));
    let month = month.and_then(|(year, month)| Some((year.parse::<u64>().ok()?, month.parse::<u64>().ok()?)));
    let Some((year, month @ 1..=12)) = month else { return page::not_found() };
    let at = year.saturating_mul(12) + month - 1;
    let days: String = (1..=28).map(|day| format!("<td>{day}</td>")).collect();
    // There is something on near the present, and nothing ever after.
    let events = if at.abs_diff(FIRST) < 3 {
        format!("<p>{}</p>", page::text(asked.path, 300))
    } else {
        "<p>No events this month.</p>".to_string()
    };
    let links = [link(at.saturating_sub(1)), link(at.saturating_add(1)), link(at.saturating_add(12))];
    page::html("Calendar", &format!("<p>{year}-{month:02}</p><table><tr>{days}</table>{events}"), links)
}

/// The same dozen of articles, whatever the session.
fn article(asked: &Asked<'_>, n: u64, links: impl IntoIterator<Item = String>) -> Reply {
    let inside = format!("<p>{}</p>", page::text(&format!("{} article {n}", asked.host), 700));
    page::html(&format!("Article {n}"), &inside, links)
}

fn session_query(asked: &Asked<'_>) -> Reply {
    let mut dice = dice(asked);
    let mut link = |n: u64| format!("/shop?item={n}&visit={:016x}", dice.next());
    if asked.path == "/" {
        return home(asked, [link(1)]);
    }
    let item = asked.query().split('&').find_map(|pair| number_behind(pair, "item="));
    match item {
        Some(n @ 1..=12) if asked.path.starts_with("/shop?") => {
            article(asked, n, [link(n % 12 + 1), link((n + 4) % 12 + 1), link(n)])
        }
        _ => page::not_found(),
    }
}

fn session_path(asked: &Asked<'_>) -> Reply {
    let mut dice = dice(asked);
    let mut link = |n: u64| format!("/s-{:016x}/item/{n}", dice.next());
    if asked.path == "/" {
        return home(asked, [link(1)]);
    }
    let item = asked.path.strip_prefix("/s-").and_then(|rest| rest.split_once('/'));
    match item.and_then(|(_, rest)| number_behind(rest, "item/")) {
        Some(n @ 1..=12) => article(asked, n, [link(n % 12 + 1), link((n + 4) % 12 + 1), link(n)]),
        _ => page::not_found(),
    }
}

/// The names of directories differ, so that no segment is repeated.
fn deeper(asked: &Asked<'_>) -> Reply {
    if asked.path == "/" {
        return home(asked, ["/deep/".to_string()]);
    }
    if !asked.path.starts_with("/deep/") {
        return page::not_found();
    }
    let mut dice = dice(asked);
    let links = [format!("d{}/", dice.below(1_000_000)), format!("d{}/", dice.below(1_000_000))];
    page::html("Directory", "<p>This directory holds two more.</p>", links)
}

fn doubling(asked: &Asked<'_>) -> Reply {
    match asked.path {
        "/" => home(asked, ["/again/".to_string(), "/look?at=/look".to_string()]),
        path if path.starts_with("/again/") => {
            page::html("Again", "<p>The same once more.</p>", [format!("{path}{}", &path[1..])])
        }
        path if path.starts_with("/look?") => {
            page::html("Look", "<p>The same once more.</p>", [format!("{path}&{}", asked.query())])
        }
        _ => page::not_found(),
    }
}

const FACETS: [(&str, [&str; 4]); 6] = [
    ("colour", ["red", "green", "blue", "black"]),
    ("size", ["s", "m", "l", "xl"]),
    ("brand", ["acme", "globex", "initech", "umbrella"]),
    ("price", ["low", "middle", "high", "sale"]),
    ("material", ["wool", "cotton", "linen", "silk"]),
    ("sort", ["name", "price", "new", "rating"]),
];

/// What is shown depends on the set of filters, not on their order; most sets leave nothing to show.
fn facets(asked: &Asked<'_>) -> Reply {
    if asked.path == "/" {
        return home(asked, ["/shop".to_string()]);
    }
    if asked.path != "/shop" && !asked.path.starts_with("/shop?") {
        return page::not_found();
    }
    let chosen: Vec<&str> = asked.query().split('&').filter(|pair| !pair.is_empty()).collect();
    let mut links = Vec::new();
    for (name, values) in FACETS {
        if chosen.iter().any(|pair| pair.starts_with(name)) {
            continue;
        }
        for value in values {
            // A filter may go in front or behind.
            let (mut front, mut behind) = (vec![format!("{name}={value}")], Vec::new());
            front.extend(chosen.iter().map(|pair| (*pair).to_string()));
            behind.extend(chosen.iter().map(|pair| (*pair).to_string()));
            behind.push(format!("{name}={value}"));
            links.push(format!("/shop?{}", front.join("&")));
            links.push(format!("/shop?{}", behind.join("&")));
        }
    }
    let mut set: Vec<&str> = chosen.iter().copied().filter(|pair| !pair.starts_with("sort")).collect();
    set.sort_unstable();
    let goods = if set.len() > 2 {
        "<p>No goods match these filters.</p>".to_string()
    } else {
        format!("<p>{}</p>", page::text(&set.join("&"), 400))
    };
    page::html("Our goods", &goods, links)
}

fn farm(asked: &Asked<'_>) -> Reply {
    let mut dice = dice(asked);
    let links: Vec<String> = (0..20).map(|_| format!("/best/{:012x}.html", dice.next() >> 16)).collect();
    match asked.path {
        "/" => home(asked, links),
        path if path.starts_with("/best/") => {
            page::html("The best offers", &format!("<p>{}</p>", page::text(path, 1_500)), links)
        }
        _ => page::not_found(),
    }
}

fn wildcard(asked: &Asked<'_>) -> Reply {
    if asked.path != "/" {
        return page::not_found();
    }
    let mut dice = Dice::new(mix_bytes(2, Purpose::Links, asked.host.as_bytes()));
    let port = asked.place.port;
    let links = (0..4).map(|_| format!("http://w{:08x}.wildcard{SUFFIX}:{port}/", dice.next() >> 32));
    page::home(&format!("wildcard{SUFFIX}"), HONEST, links.collect::<Vec<_>>()).with_latency_ms(WILDCARD_MS)
}

/// Each sub-domain is a host of its own and need not be waited for; this is what slows the flood down.
const WILDCARD_MS: u64 = 100;

/// The home page is the same everywhere, too: it names all mirrors.
fn mirrors(asked: &Asked<'_>) -> Reply {
    if asked.path != "/" {
        return page::not_found();
    }
    let port = asked.place.port;
    let links = (1..=8).map(|n| format!("http://m{n}.mirrors{SUFFIX}:{port}/"));
    page::home(&format!("mirrors{SUFFIX}"), HONEST, links.collect::<Vec<_>>())
}

fn soft_404(asked: &Asked<'_>) -> Reply {
    let mut dice = dice(asked);
    let links: Vec<String> = (0..3).map(|_| format!("/archive/{}.html", dice.below(1 << 40))).collect();
    if asked.path == "/" {
        return home(asked, links);
    }
    let excuse = "<p>Sorry, the page you are looking for could not be found. You may be interested in these:</p>";
    page::html("Page not found", excuse, links)
}

fn links_200k(asked: &Asked<'_>) -> Reply {
    match asked.path {
        "/" => {
            static LINKS: LazyLock<String> =
                LazyLock::new(|| (1..=200_000).map(|n| format!("<a href=/e/{n}>{n}</a>\n")).collect());
            let mut reply = home(asked, []);
            reply.body.extend_from_slice(LINKS.as_bytes());
            reply
        }
        path if path.starts_with("/e/") => page::html("Entry", "<p>This entry is being written.</p>", ["/"]),
        _ => page::not_found(),
    }
}

/// Spellings of one address. About half of them are one and the same by RFC 3986; the others only the server knows.
const SPELLINGS: [&str; 40] = [
    "/the/page",
    "/the/./page",
    "/the/x/../page",
    "/%74he/page",
    "/the/%70age",
    "/the/page#top",
    "/the/page#bottom",
    "/the/page?",
    "/the/page?utm_source=a",
    "/the/page?utm_source=b&utm_medium=c",
    "/the/page?gclid=1",
    "/the/page?fbclid=2",
    "/the/page;jsessionid=0123456789abcdef0123456789abcdef",
    "/the/page;jsessionid=fedcba9876543210fedcba9876543210",
    "/the/page?PHPSESSID=0123456789abcdef0123456789abcdef",
    "/the/page?PHPSESSID=fedcba9876543210fedcba9876543210",
    "//the/page",
    "/the//page",
    "/the/page/",
    "/the/page//",
    "/the/page/index.html",
    "/the/page/index.php",
    "/the/page.html",
    "/the/page.htm",
    "/THE/PAGE",
    "/The/Page",
    "/the/PAGE",
    "/the/page?a=1&b=2",
    "/the/page?b=2&a=1",
    "/the/page?&a=1&b=2",
    "/the/page?a=1&b=2&",
    "/the/page?a=1&&b=2",
    "/the/page?print=1",
    "/the/page?format=html",
    "/the/page?lang=en",
    "/the/page?ref=home",
    "/the/page?ref=footer",
    "/the/page?t=1700000000",
    "/the/page?t=1700000001",
    "/the/%50age",
];

fn spellings(asked: &Asked<'_>) -> Reply {
    if asked.path == "/" {
        let prefix = format!("http://{}:{}", asked.host, asked.place.port);
        // Two slashes in front would name a host.
        let whole = |path: &str| if path.starts_with("//") { format!("{prefix}{path}") } else { path.to_string() };
        return home(asked, SPELLINGS.iter().map(|path| whole(path)));
    }
    let path = asked.path.to_ascii_lowercase();
    if path.contains("page") && path.contains("he") {
        return article(asked, 1, []);
    }
    page::not_found()
}

fn error_200(asked: &Asked<'_>) -> Reply {
    let Some(n) = number_behind(asked.path, "/item?id=") else {
        return if asked.path == "/" { home(asked, ["/item?id=1".to_string()]) } else { page::not_found() };
    };
    let links = [n.saturating_add(1), n.saturating_mul(2), n.saturating_mul(3)].map(|n| format!("/item?id={n}"));
    let request = dice(asked).next();
    let inside = format!(
        "<p>Fatal error: Uncaught PDOException: SQLSTATE[HY000] [2002] Connection refused in /srv/shop/db.php:42</p>\n\
         <p>Stack trace: #0 /srv/shop/item.php(17): connect() #1 {{main}} thrown. Request {request:016x}.</p>"
    );
    page::html("Error", &inside, links)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hostile::Place;

    fn ask(kind: &Kind, path: &str) -> Reply {
        let Serve::Reply(reply) = kind.serve else { panic!("{} has no reply", kind.name) };
        let place = Place { port: 80, ..Place::default() };
        reply(&Asked { host: &kind.host(), path, cookie: None, place: &place })
    }

    fn links(reply: &Reply) -> Vec<String> {
        let body = String::from_utf8_lossy(&reply.body).replace("&amp;", "&");
        let link = |rest: &str| rest.trim_start_matches('"').split(['"', '>']).next().map(str::to_string);
        body.split("href=").skip(1).filter_map(link).collect()
    }

    /// Whoever follows every link on the same host never comes to an end, but for the few traps that are finite.
    #[test]
    fn traps_go_on_and_honest_pages_are_linked() {
        for kind in KINDS {
            let home = links(&ask(kind, "/"));
            for n in 1..=HONEST {
                assert!(home.contains(&page::path(n)), "{}: page {n}", kind.name);
            }
            let (mut seen, mut waiting) = (BTreeSet::new(), vec![url::join("/", "/")]);
            while let Some(path) = waiting.pop()
                && seen.len() < 500
            {
                if !seen.insert(path.clone()) {
                    continue;
                }
                let more = links(&ask(kind, &path)).into_iter().filter(|l| !l.starts_with("http"));
                let wanted = |p: &String| !p.starts_with("/page/") && p.len() < 4096;
                waiting.extend(more.map(|l| url::join(&path, &l)).filter(wanted).take(1_000));
            }
            let endless = !["deeper", "doubling", "mirrors", "wildcard", "spellings"].contains(&kind.name);
            assert!(seen.len() >= 500 || !endless, "{} ends after {}", kind.name, seen.len());
        }
    }

    /// Just enough of relative references for the links above.
    mod url {
        pub fn join(base: &str, link: &str) -> String {
            let directory = &base[..=base.rfind('/').unwrap_or(0)];
            if link.starts_with('/') { link.to_string() } else { format!("{directory}{link}") }
        }
    }
}
