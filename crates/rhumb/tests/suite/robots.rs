//! Every way a site speaks to robots beside robots.txt: what each does to fetching, following and archiving, and that
//! `rhumb explain` names the channel that decided. docs/robots.md is the policy.

use std::collections::BTreeSet;

use rhumb_sim::{Reply, Server, WebConfig};
use serde_json::{Value, json};

use crate::common::{Place, crawl, crawl_with_sitemaps, json, rhumb, run, serve, visits};

fn html(body: &str) -> Reply {
    Reply::new(200, "text/html", body)
}

fn url(server: &Server, path: &str) -> String {
    format!("{}{path}", server.web().origin(0))
}

fn explain(server: &Server, place: &Place, path: &str) -> Value {
    json(&run(rhumb().args(["explain", "--json"]).arg(&place.dir).arg(url(server, path))), 0)
}

/// What was asked for, robots.txt left out.
fn asked(server: &Server) -> BTreeSet<String> {
    server.log().into_iter().map(|e| e.path).filter(|p| p != "/robots.txt").collect()
}

/// A site with one page for each channel, each with one link of its own: `/a` leads to `/a-link`.
fn site(pages: &[(&str, Reply)]) -> Server {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let links: String = pages.iter().map(|(path, _)| format!("<a href='{path}'>x</a>")).collect();
    web.set_document(0, "/", html(&links));
    for (path, reply) in pages {
        web.set_document(0, path, reply.clone());
        web.set_document(0, &format!("{path}-link"), html(&format!("<p>the page behind {path}")));
    }
    server
}

fn page(path: &str, head: &str) -> Reply {
    html(&format!("<html lang=en-GB><head>{head}</head><p>This is {path}.<a href='{path}-link'>link</a>"))
}

#[test]
fn each_channel_is_heard_and_named() {
    let tagged = |path: &str, value: &str| page(path, "").with_header("X-Robots-Tag", value);
    let server = site(&[
        ("/meta", page("/meta", "<meta name=robots content='nofollow, noindex'>")),
        ("/meta-agent", page("/meta-agent", "<meta name=Rhumb content=none>")),
        ("/meta-other", page("/meta-other", "<meta name=otherbot content=none>")),
        ("/header", tagged("/header", "nofollow")),
        ("/header-agent", tagged("/header-agent", "rhumb: nofollow, noarchive")),
        ("/header-other", tagged("/header-other", "otherbot: none")),
        ("/two-headers", tagged("/two-headers", "otherbot: none").with_header("X-Robots-Tag", "nofollow")),
        ("/expires", tagged("/expires", "unavailable_after: 25 Jun 2010 15:00:00 GMT")),
        ("/noarchive", page("/noarchive", "<meta name=robots content=noarchive>")),
    ]);
    let place = Place::new();
    json(&run(&mut crawl(&server, &place.dir, &[&url(&server, "/"), "--delay", "1ms"])), 0);
    let asked = asked(&server);
    let followed = |path: &str| asked.contains(&format!("{path}-link"));
    for path in ["/meta", "/meta-agent", "/header", "/header-agent", "/two-headers"] {
        assert!(asked.contains(path) && !followed(path), "{path}: {asked:?}");
    }
    for path in ["/meta-other", "/header-other", "/expires", "/noarchive"] {
        assert!(followed(path), "{path}: {asked:?}");
    }
    let check = |path: &str, expected: Value| {
        let event = &explain(&server, &place, path)["events"][0];
        assert_eq!(event["robots"], expected, "{path}");
        let noarchive = event["robots"].as_array().is_some_and(|all| all.iter().any(|d| d["directive"] == "noarchive"));
        assert_eq!(event["archived_at"].is_null(), noarchive, "{path}: a copy is kept unless it may not");
    };
    let said = |directive: &str, channel: &str| json!({"directive": directive, "channel": channel});
    check("/meta", json!([said("noindex", "meta robots"), said("nofollow", "meta robots")]));
    let agent = "meta element for this agent";
    check("/meta-agent", json!([said("noindex", agent), said("nofollow", agent)]));
    check("/meta-other", json!([]));
    check("/header", json!([said("nofollow", "X-Robots-Tag")]));
    let agent = "X-Robots-Tag for this agent";
    check("/header-agent", json!([said("nofollow", agent), said("noarchive", agent)]));
    check("/header-other", json!([]));
    check("/two-headers", json!([said("nofollow", "X-Robots-Tag")]));
    let mut expires = said("unavailable_after", "X-Robots-Tag");
    expires["after"] = "2010-06-25T15:00:00Z".into();
    check("/expires", json!([expires]));
    check("/noarchive", json!([said("noarchive", "meta robots")]));
    let link = explain(&server, &place, "/header-agent-link");
    assert_eq!(
        (&link["state"], &link["found_on"][0]["because"]),
        (&"not wanted".into(), &format!("nofollow ({agent})").into())
    );
    // What may not be archived is still to be found: its text is in the log, unless it may not be found either.
    let visits = visits(&place.dir);
    let text = |path: &str| {
        let page = visits.iter().find(|v| v.is_page() && v.entry.url.path() == path).expect(path);
        page.page_text().expect("what was written is read").map(|said| said.text)
    };
    for path in ["/noarchive", "/header-agent", "/two-headers"] {
        assert!(text(path).is_some_and(|text| text.contains(&format!("This is {path}."))), "{path}");
    }
    assert!(visits.iter().any(|v| v.directives.noarchive.is_some() && v.archived.is_none() && v.said.is_some()));
    for hidden in visits.iter().filter(|v| v.directives.hides_at(v.ended).is_some()) {
        assert_eq!((&hidden.said, &hidden.text_kept), (&None, &None), "{}", hidden.entry.url.as_str());
    }
    // Without an index, what may not be archived is in the log all the same.
    let place = Place::new();
    json(&run(&mut crawl(&server, &place.dir, &[&url(&server, "/"), "--delay", "1ms", "--no-index"])), 0);
    let kept: Vec<_> = self::visits(&place.dir).into_iter().filter_map(|v| v.text_kept).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept.iter().any(|text| text.contains("This is /noarchive.")), "{kept:?}");
}

#[test]
fn links_that_nobody_vouches_for() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let link = |rel: &str| format!("<a rel='{rel}' href='/{}'>x</a>", rel.replace(' ', "-"));
    let rels = ["nofollow", "ugc", "sponsored", "ugc nofollow", "noopener"];
    web.set_document(0, "/", html(&rels.map(link).concat()));
    rels.iter().for_each(|rel| web.set_document(0, &format!("/{}", rel.replace(' ', "-")), html("<p>page")));
    let place = Place::new();
    let seed = url(&server, "/");
    json(&run(&mut crawl(&server, &place.dir, &[&seed, "--delay", "1ms"])), 0);
    assert_eq!(asked(&server), ["/", "/noopener", "/sponsored", "/ugc"].map(String::from).into());
    assert_eq!(explain(&server, &place, "/nofollow")["found_on"][0]["because"], "rel=nofollow");
    // Whoever wants them anyway can have them.
    let place = Place::new();
    let settings = place.file("settings.toml", "[robots]\nrel_nofollow = false\n");
    json(&run(crawl(&server, &place.dir, &[&seed, "--delay", "1ms"]).arg("--config").arg(settings)), 0);
    assert_eq!(asked(&server).len(), 1 + rels.len());
}

#[test]
fn the_line_of_robots_txt_is_named() {
    let server = serve(WebConfig::plain(1, 1));
    server.web().set_document(0, "/robots.txt", Reply::new(200, "text/plain", "User-agent: *\n# no\nDisallow: /in\n"));
    server.web().set_document(0, "/", html("<a href=/inside>x</a>"));
    let place = Place::new();
    json(&run(&mut crawl(&server, &place.dir, &[&url(&server, "/"), "--delay", "1ms"])), 0);
    let event = &explain(&server, &place, "/inside")["events"][0];
    assert_eq!(event["outcome"], "robots_disallowed");
    assert_eq!(event["detail"], "robots.txt, line 3: Disallow: /in");
}

#[test]
fn a_page_names_its_preferred_address() {
    let by_header = page("/h", "").with_header("Link", "</style.css>; rel=preload, </chosen>; rel=\"canonical\"");
    let server = site(&[
        ("/c", page("/c", "<link rel=canonical href='/chosen#part'>")),
        ("/h", by_header),
        ("/self", page("/self", "<link rel=canonical href=/self>")),
    ]);
    server.web().set_document(0, "/chosen", html("<p>the page itself"));
    let place = Place::new();
    json(&run(&mut crawl(&server, &place.dir, &[&url(&server, "/"), "--delay", "1ms"])), 0);
    for path in ["/c", "/h"] {
        let event = &explain(&server, &place, path)["events"][0];
        assert_eq!(
            (&event["canonical"], &event["language"]),
            (&url(&server, "/chosen").into(), &"en".into()),
            "{path}"
        );
    }
    assert!(explain(&server, &place, "/self")["events"][0]["canonical"].is_null());
    assert!(asked(&server).contains("/chosen"), "it is followed as a link is");
}

#[test]
fn a_sitemap_in_the_usual_place_is_found_and_its_word_is_kept() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    web.set_document(0, "/start", html("<p>no links"));
    web.set_document(0, "/orphan", html("<p>nobody links to this page"));
    let entry = "<lastmod>2026-01-02</lastmod><changefreq>daily</changefreq><priority>0.9</priority>";
    let listed = format!("<urlset><url><loc>{}</loc>{entry}</url></urlset>", url(&server, "/orphan"));
    web.set_document(0, "/sitemap.xml", Reply::new(200, "application/xml", &listed));
    let place = Place::new();
    let seed = url(&server, "/start");
    let status = json(&run(&mut crawl_with_sitemaps(&server, &place.dir, &[&seed, "--delay", "1ms"])), 0);
    assert_eq!(asked(&server), ["/start", "/orphan", "/sitemap.xml"].map(String::from).into());
    assert_eq!(status["pages"], 2, "a sitemap is no page");
    let story = explain(&server, &place, "/orphan");
    let expected = json!({"lastmod": "2026-01-02T00:00:00Z", "changefreq": "daily", "priority": 0.9});
    let said = &story["events"][0]["sitemap"];
    assert_eq!((&said["lastmod"], &said["changefreq"]), (&expected["lastmod"], &expected["changefreq"]));
    assert!((said["priority"].as_f64().unwrap_or(0.0) - 0.9).abs() < 1e-6);
    // Where robots.txt names one, that is the one, and nothing is guessed.
    server.clear_log();
    let robots = format!("User-agent: *\nSitemap: {}\n", url(&server, "/other.xml"));
    web.set_document(0, "/robots.txt", Reply::new(200, "text/plain", &robots));
    web.set_document(0, "/other.xml", Reply::new(200, "application/xml", "<urlset/>"));
    let place = Place::new();
    json(&run(&mut crawl_with_sitemaps(&server, &place.dir, &[&seed, "--delay", "1ms"])), 0);
    assert_eq!(asked(&server), ["/start", "/other.xml"].map(String::from).into());
}
