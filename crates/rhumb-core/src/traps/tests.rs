//! Small sites of each kind, crawled breadth first as a crawl would, with rules learned and applied on the way.

use std::collections::{BTreeSet, VecDeque};

use xxhash_rust::xxh3::xxh3_64;

use super::*;

/// What a site answers: text and links.
type Site = dyn Fn(&Url) -> (String, Vec<String>);

struct Crawled {
    fetched: BTreeSet<String>,
    held: usize,
    traps: Traps,
}

impl Crawled {
    fn kinds(&self) -> Vec<Kind> {
        self.traps.rules().iter().filter(|r| r.state == State::Active).map(|r| r.pattern.kind).collect()
    }
}

fn crawl(seed: &str, pages_max: usize, site: &Site) -> Crawled {
    let mut traps = Traps::new(TrapsConfig::default());
    let mut waiting: VecDeque<Url> = [Url::parse(seed).expect(seed)].into();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut fetched = BTreeSet::new();
    let mut held = 0;
    while let Some(url) = waiting.pop_front() {
        if fetched.len() >= pages_max {
            break;
        }
        if matches!(traps.judge(&url), Verdict::Hold(_)) {
            held += 1;
            continue;
        }
        fetched.insert(url.as_str().to_string());
        let (text, links) = site(&url);
        let gist = Gist::of(&text, &url);
        let useful = traps.is_news(&url, &gist);
        if let Some(change) = traps.observe(&url, &gist, useful) {
            traps.apply(&change, Timestamp(1));
        }
        for link in links {
            if known.insert(link.clone()) {
                waiting.push_back(Url::parse(&link).expect("a link is canonical"));
            }
        }
    }
    Crawled { fetched, held, traps }
}

/// Prose of its own for each key: some lines of words.
fn prose(key: &str, lines: usize) -> String {
    let mut state = xxh3_64(key.as_bytes());
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let syllables = ["ba", "lo", "ti", "mu", "ke", "sar", "ven", "dro", "pil", "ho"];
        (0..3).map(|i| syllables[(state >> (20 + 8 * i)) as usize % 10]).collect::<String>()
    };
    (0..lines).map(|_| (0..10).map(|_| word() + " ").collect::<String>() + "\n").collect()
}

fn param<'a>(url: &'a Url, name: &str) -> Option<&'a str> {
    url.query()?.split('&').filter_map(|p| p.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
}

fn number(url: &Url) -> u64 {
    xxh3_64(url.as_str().as_bytes()) >> 20
}

#[test]
fn session_ids_in_the_query() {
    // Thirty honest pages; every link carries a session id of its own.
    let site = |url: &Url| {
        let links = (0..6).map(|i| {
            let to = (number(url) + i) % 30;
            format!("http://a.test/page{to}?sid={}", number(url) ^ i)
        });
        (prose(url.path(), 8), links.collect())
    };
    let done = crawl("http://a.test/page0", 2_000, &site);
    assert!(done.kinds().contains(&Kind::Param), "{:?}", done.traps.rules());
    let honest: BTreeSet<&str> = done.fetched.iter().map(|u| u.split('?').next().unwrap_or_default()).collect();
    assert_eq!(honest.len(), 30, "every honest page is fetched");
    assert!(done.fetched.len() < 150, "{} fetched, {} held", done.fetched.len(), done.held);
}

#[test]
fn session_ids_in_the_path() {
    let site = |url: &Url| {
        let links = (0..6).map(|i| {
            let to = (number(url) + i) % 30;
            format!("http://a.test/s/{:x}/page{to}", number(url) ^ i | 1 << 50)
        });
        (prose(url.path().rsplit('/').next().unwrap_or_default(), 8), links.collect())
    };
    let done = crawl("http://a.test/s/0/page0", 2_000, &site);
    assert!(done.kinds().contains(&Kind::Segment), "{:?}", done.traps.rules());
    let honest: BTreeSet<&str> = done.fetched.iter().filter_map(|u| u.rsplit('/').next()).collect();
    assert_eq!(honest.len(), 30, "every honest page is fetched");
    assert!(done.fetched.len() < 200, "{} fetched, {} held", done.fetched.len(), done.held);
}

#[test]
fn an_endless_calendar() {
    let site = |url: &Url| {
        let get = |name| param(url, name).and_then(|v| v.parse::<i64>().ok()).unwrap_or(0);
        let (year, month) = (get("year"), get("month"));
        let months = ["January", "February", "March", "April", "May", "June", "July", "August"];
        let events = if (0..2).contains(&year) { prose(&format!("{year} {month}"), 4) } else { "No events\n".into() };
        let text = format!("Calendar of the village\n{} {year}\n{events}Sunday\nMonday", months[month as usize % 8]);
        let links = [(0, 1), (0, -1), (1, 0), (-1, 0)].map(|(y, m): (i64, i64)| {
            format!("http://a.test/cal?year={}&month={}", year + y, (month + m).rem_euclid(12))
        });
        (text, links.to_vec())
    };
    let done = crawl("http://a.test/cal?year=0&month=0", 5_000, &site);
    assert!(!done.kinds().is_empty());
    assert!(done.fetched.len() < 150, "{} fetched, {} held: {:?}", done.fetched.len(), done.held, done.kinds());
}

#[test]
fn soft_errors_on_any_url() {
    let site = |url: &Url| {
        let page: Option<u64> = url.path().strip_prefix("/real").and_then(|n| n.parse().ok()).filter(|n| *n < 20);
        let mut links: Vec<String> = (0..20).map(|n| format!("http://a.test/real{n}")).collect();
        links.extend(
            (0..4).map(|i| format!("http://a.test/docs/{}", prose(&format!("{}{i}", url.as_str()), 1)[..6].trim())),
        );
        match page {
            Some(n) => (prose(&n.to_string(), 6), links),
            None => (format!("We are sorry\nNothing is at {} any more\nTry the start page", url.path()), links),
        }
    };
    let done = crawl("http://a.test/real0", 3_000, &site);
    assert!(done.fetched.len() < 120, "{} fetched, {} held: {:?}", done.fetched.len(), done.held, done.kinds());
    assert!((0..20).all(|n| done.fetched.contains(&format!("http://a.test/real{n}"))));
}

#[test]
fn facets_in_any_order() {
    let site = |url: &Url| {
        let mut chosen: Vec<&str> = url.query().into_iter().flat_map(|q| q.split('&')).collect();
        let links = ["color=red", "size=xl", "brand=acme", "price=low", "new=yes", "sort=up"].into_iter();
        let links = links.filter(|f| !chosen.contains(f)).map(|f| match url.query() {
            Some(q) => format!("http://a.test/shop?{q}&{f}"),
            None => format!("http://a.test/shop?{f}"),
        });
        let links: Vec<String> = links.collect();
        chosen.sort_unstable();
        (prose(&chosen.join("&"), 6), links)
    };
    let done = crawl("http://a.test/shop", 5_000, &site);
    // 64 sets of facets in 1,957 orders.
    assert!(done.kinds().contains(&Kind::Order), "{:?}", done.traps.rules());
    assert!((64..300).contains(&done.fetched.len()), "{} fetched, {} held", done.fetched.len(), done.held);
}

#[test]
fn sub_domains_without_end() {
    let site = |url: &Url| {
        let links = (0..5).map(|i| format!("http://w{:x}.a.test/page{}", number(url) ^ i, (number(url) + i) % 10));
        (prose(url.path(), 6), links.collect())
    };
    let done = crawl("http://w.a.test/page0", 3_000, &site);
    assert!(done.kinds().contains(&Kind::Subdomain), "{:?}", done.traps.rules());
    assert!(done.fetched.len() < 150, "{} fetched, {} held", done.fetched.len(), done.held);
}

#[test]
fn paths_that_repeat() {
    let site = |url: &Url| {
        let directory = &url.as_str()[..=url.as_str().rfind('/').unwrap_or(0)];
        let last = url.path().rsplit('/').next().unwrap_or_default();
        let links = ["a", "b"].into_iter().flat_map(|d| (0..4).map(move |n| format!("{directory}{d}/page{n}")));
        (prose(last, 6), links.collect())
    };
    let done = crawl("http://a.test/page0", 3_000, &site);
    assert!(done.fetched.len() < 150, "{} fetched, {} held: {:?}", done.fetched.len(), done.held, done.kinds());
}

#[test]
fn spellings_of_one_page() {
    let site = |url: &Url| {
        let page = url.path().to_ascii_lowercase();
        let page = page.trim_matches('/');
        let variants = |name: &str| {
            let upper: String = name
                .char_indices()
                .map(|(i, c)| if number(url) >> i & 1 == 1 { c.to_ascii_uppercase() } else { c })
                .collect();
            [format!("http://a.test/{name}"), format!("http://a.test/{upper}"), format!("http://a.test/{upper}/")]
        };
        let names = ["introduction", "installation", "configuration", "troubleshooting"];
        (prose(page, 6), names.into_iter().flat_map(variants).collect())
    };
    let done = crawl("http://a.test/introduction", 3_000, &site);
    assert!(done.kinds().contains(&Kind::Spelling), "{:?}", done.traps.rules());
    assert!(done.fetched.len() < 100, "{} fetched, {} held", done.fetched.len(), done.held);
}

/// Sites that look repetitive and are not: all of them is fetched, no rule is learned.
#[test]
fn honest_sites_are_left_alone() {
    fn check(name: &str, pages: u64, site: &Site) {
        let done = crawl("http://a.test/", 10_000, site);
        assert_eq!((done.fetched.len() as u64, done.kinds()), (pages + 1, vec![]), "{name}");
    }
    const TEMPLATE: &str =
        "Home News Products Contact\nWelcome to our shop, the best in town\nAll rights reserved, imprint\n";
    fn list(n: u64, to: fn(u64) -> String) -> Vec<String> {
        (0..n).map(|i| format!("http://a.test{}", to(i))).collect()
    }
    check("products that differ by a few words", 500, &|url| {
        let own = prose(url.path_and_query(), 1);
        (format!("{}{own}", TEMPLATE.repeat(6)), list(500, |i| format!("/product?id={i}")))
    });
    check("pages in directories of numbers", 400, &|url| {
        (
            format!("{TEMPLATE}{}", prose(url.path(), 3)),
            list(400, |i| format!("/{}/{}/{i}.html", 2000 + i % 20, 1 + i % 12)),
        )
    });
}

/// Pages that are there twice are fetched once, in the end.
#[test]
fn print_versions() {
    let site = |url: &Url| {
        let page = url.path_and_query().replace("&print=1", "");
        let print = |i: u64| if i % 2 == 1 { "&print=1" } else { "" };
        (prose(&page, 5), (0..600).map(|i| format!("http://a.test/article?id={}{}", i / 2, print(i))).collect())
    };
    let done = crawl("http://a.test/", 10_000, &site);
    let prints = done.fetched.iter().filter(|u| u.contains("print")).count();
    assert_eq!(done.fetched.len() - prints, 301, "every article is fetched");
    assert!(prints < 60 && done.held > 240, "{prints} fetched, {} held: {:?}", done.held, done.kinds());
}

#[test]
fn a_rule_that_is_wrong_is_retracted_and_its_urls_come_back() {
    // Nothing but empty months at first; behind them are real ones.
    let mut traps = Traps::new(TrapsConfig::default());
    let visit = |traps: &mut Traps, n: u64, text: &str| {
        let url = Url::parse(&format!("http://a.test/archive/{n}")).expect("parses");
        if matches!(traps.judge(&url), Verdict::Hold(_)) {
            return false;
        }
        let gist = Gist::of(text, &url);
        let useful = traps.is_news(&url, &gist);
        if let Some(change) = traps.observe(&url, &gist, useful) {
            traps.apply(&change, Timestamp(1));
        }
        true
    };
    (0..100).for_each(|n| {
        visit(&mut traps, n, "Nothing was published in this month");
    });
    assert!(!traps.active.is_empty());
    let fetched = (100..1_000).filter(|&n| visit(&mut traps, n, &prose(&n.to_string(), 5))).count();
    assert!(traps.take_released() && !traps.take_released());
    assert!(traps.rules().iter().any(|r| r.state == State::Retracted), "{:?}", traps.rules());
    assert!(fetched > 700, "{fetched}");
}

#[test]
fn one_domain_says_nothing_about_another() {
    let mut traps = Traps::new(TrapsConfig::default());
    let (mine, other) = (Url::parse("http://a.test/").expect("parses"), Url::parse("http://b.test/").expect("parses"));
    let gist = Gist::of(&prose("x", 5), &mine);
    assert!(traps.is_news(&mine, &gist));
    assert!(!traps.is_news(&mine, &gist));
    assert!(traps.is_news(&other, &gist), "who was copied is not to suffer for it");
}

#[test]
fn rules_come_back_from_their_bytes_and_can_be_undone() {
    let site = |url: &Url| {
        let links = (0..6).map(|i| format!("http://a.test/page{}?sid={}", (number(url) + i) % 30, number(url) ^ i));
        (prose(url.path(), 8), links.collect())
    };
    let mut traps = crawl("http://a.test/page0", 500, &site).traps;
    let mut bytes = Vec::new();
    traps.save(&mut bytes);
    let mut again = Traps::new(TrapsConfig::default());
    again.load(&mut Take::new(&bytes)).expect("reads back");
    assert_eq!(again.rules(), traps.rules());
    let rule = traps.rules()[0].clone();
    let mut change = Vec::new();
    RuleChange::Learned(rule.pattern.clone(), rule.evidence.clone()).put(&mut change);
    let read = RuleChange::take(&mut Take::new(&change)).expect("reads back");
    assert_eq!(read, RuleChange::Learned(rule.pattern.clone(), rule.evidence));
    let url = Url::parse("http://a.test/page1?sid=99").expect("parses");
    assert_eq!(again.speaks_of(&url), Some(1));
    again.apply(&RuleChange::Undone(1), Timestamp(9));
    assert_eq!(again.speaks_of(&url), None);
    assert!(again.take_released());
    assert_eq!(again.judge(&url), Verdict::Visit);
    traps.apply(&RuleChange::Undone(77), Timestamp(9));
}

#[test]
fn memory_is_bounded_whatever_is_made_up() {
    let mut traps = Traps::new(TrapsConfig { bytes_max: 1 << 20, ..TrapsConfig::default() });
    for n in 0..30_000u64 {
        let text = format!("http://d{}.test/{:x}/{:x}?p{:x}={n}&q{}=1", n % 300, n * 77, n % 7, n * 31, n % 11);
        let url = Url::parse(&text).expect("parses");
        let gist = Gist::of("the same everywhere and always", &url);
        if let Some(change) = traps.observe(&url, &gist, false) {
            traps.apply(&change, Timestamp(n));
        }
    }
    assert!(traps.suspects.len() <= traps.suspects_max);
    assert!(traps.active.values().all(|rules| rules.len() <= RULES_PER_DOMAIN_MAX));
}
