//! Hosts that do not answer, or bring nothing new: held with a reason, shown, tried again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use rhumb_sim::{Reply, WebConfig};

use crate::common::{Place, crawl, json, rhumb, run, serve};

const IMPATIENT: &str = "[politeness]\ndelay = \"5ms\"\nfailure_pause = \"10ms\"\nhost_failures = 2\n";

/// Answers every request with a small page, and robots.txt with "not found".
fn answer_all(address: SocketAddr) {
    let listener = TcpListener::bind(address).expect("bind");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let n = stream.read(&mut request).unwrap_or(0);
            let robots = request[..n].starts_with(b"GET /robots.txt ");
            let status = if robots { "404 Not Found" } else { "200 OK" };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(format!("{head}hello").as_bytes());
        }
    });
}

#[test]
fn a_dead_host_is_held_and_tried_again_when_the_crawl_is() {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let place = Place::new();
    let url = format!("http://{address}/page");
    let config = place.file("config.toml", IMPATIENT);
    let mut command = rhumb();
    command.args(["crawl", "--json", "--no-sitemaps", &url, "--config"]).arg(&config).arg("--dir").arg(&place.dir);
    let status = json(&run(&mut command), 1);
    assert_eq!(
        (&status["state"], &status["urls_waiting"], &status["urls_held"]),
        (&"finished".into(), &0.into(), &1.into())
    );
    assert_eq!(status["held"]["no_answer"], serde_json::json!({ "hosts": 1, "urls": 1 }));
    assert_eq!(status["requests"], 2);

    let explain = |json: bool| {
        let mut command = rhumb();
        command.arg("explain").arg(&place.dir).arg(&url);
        run(if json { command.arg("--json") } else { &mut command })
    };
    let story = json(&explain(true), 0);
    assert_eq!(story["state"], "held", "{story}");
    let held = &story["held"];
    assert_eq!(
        (&held["reason"], &held["outcome"], &held["attempts"]),
        (&"no_answer".into(), &"refused".into(), &2.into())
    );
    assert!(held["next_try"].as_str() > held["since"].as_str(), "{held}");
    let told = String::from_utf8(explain(false).stdout).expect("text");
    for line in ["  state      held, a seed", "  because    the host did not answer (refused)", "  next try   2"] {
        assert!(told.contains(line), "{line:?} in {told}");
    }
    let looked = run(rhumb().arg("status").arg(&place.dir));
    let told = String::from_utf8(looked.stdout).expect("text");
    assert!(told.starts_with("Finished; 1 URL of 1 host is held: 1 did not answer."), "{told}");
    assert_eq!(json(&run(rhumb().args(["status", "--json"]).arg(&place.dir)), 0)["held"], status["held"]);

    // Started again it asks once, although the next probe is minutes away.
    let again = || {
        let mut command = rhumb();
        command.args(["crawl", "--json", "--dir"]).arg(&place.dir);
        run(&mut command)
    };
    let status = json(&again(), 1);
    assert_eq!((&status["urls_held"], &status["requests"]), (&1.into(), &3.into()));
    answer_all(address);
    let status = json(&again(), 0);
    assert_eq!((&status["urls_held"], &status["pages"], &status["requests"]), (&0.into(), &1.into(), &5.into()));
    assert_eq!(json(&explain(true), 0)["state"], "done");
}

#[test]
fn a_host_that_brings_nothing_new_is_held_over_budget() {
    let server = serve(WebConfig::plain(1, 1));
    let web = server.web();
    let page = |body: String| Reply::new(200, "text/html", &body);
    web.set_document(0, "/", page((0..60).map(|i| format!("<a href=/{i}>x</a>")).collect()));
    (0..60).for_each(|i| web.set_document(0, &format!("/{i}"), page("the same for ever. ".repeat(20))));
    let place = Place::new();
    let config = place.file("config.toml", "[traps]\nhost_credit = 5\nlearn = false\n");
    let mut command = crawl(&server, &place.dir, &["--delay", "2ms", &web.url(0, 0), "--config"]);
    let status = json(&run(command.arg(config)), 0);
    // Five to begin with, four for each of two that were new.
    let held = status["held"]["over_budget"]["urls"].as_u64().expect("held");
    assert_eq!((status["pages"].as_u64(), held), (Some(2 + 13), 61 - 15), "{status}");
    let mut last = rhumb();
    last.args(["explain", "--json"]).arg(&place.dir).arg(format!("{}/59", web.origin(0)));
    let story = json(&run(&mut last), 0);
    assert_eq!((&story["state"], &story["held"]["reason"]), (&"held".into(), &"over_budget".into()), "{story}");
}
