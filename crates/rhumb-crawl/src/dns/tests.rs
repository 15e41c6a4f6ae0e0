//! The resolver against a name server on loopback that misbehaves in every way: each outcome, the schedule, joining,
//! remembering, forgetting, prefetching.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;

use super::test_server::{Asked, Script, TestServer};
use super::{Answer, DnsConfig, DnsError, Resolver};

/// For tests of the schedule itself. The others wait so long that a busy machine makes no difference.
const SCHEDULE_MS: [u64; 5] = [100, 200, 300, 400, 500];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn config(servers: &[&TestServer]) -> DnsConfig {
    let mut config = DnsConfig::with_servers(servers.iter().map(|server| server.address).collect());
    config.schedule = vec![ms(5_000); 5];
    config.hosts_file = None;
    config
}

fn quick(servers: &[&TestServer]) -> DnsConfig {
    let mut config = config(servers);
    config.schedule = SCHEDULE_MS.map(ms).to_vec();
    config
}

async fn start(script: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> (TestServer, Arc<Resolver>) {
    let server = TestServer::start(script).await;
    let resolver = Resolver::new(config(&[&server])).expect("a resolver");
    (server, resolver)
}

async fn start_quick(script: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> (TestServer, Arc<Resolver>) {
    let server = TestServer::start(script).await;
    let resolver = Resolver::new(quick(&[&server])).expect("a resolver");
    (server, resolver)
}

fn show(result: &Result<Answer, DnsError>) -> String {
    match result {
        Ok(answer) => answer.addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" "),
        Err(error) => error.name().to_owned(),
    }
}

async fn look(resolver: &Resolver, name: &str) -> String {
    show(&resolver.lookup(name).await)
}

/// Seconds that an answer is believed, rounded.
fn lasts_s(answer: &Answer) -> u64 {
    (answer.expires.saturating_duration_since(Instant::now()) + ms(500)).as_secs()
}

#[tokio::test]
async fn every_answer_has_its_outcome() {
    let (server, resolver) = start(|asked| match asked.name.as_str() {
        "good.example" => asked.reply().address("192.0.2.1", 300).now(),
        "none.example" => asked.reply().code(ResponseCode::NXDomain).soa(900, 300).now(),
        "bare.example" => asked.reply().soa(900, 300).now(),
        "sick.example" => asked.reply().code(ResponseCode::ServFail).now(),
        "shut.example" => asked.reply().code(ResponseCode::Refused).now(),
        "loop.example" => {
            asked.reply().alias("loop.example", "b.example", 9).alias("b.example", "loop.example", 9).now()
        }
        "bits.example" => {
            let mut bytes = asked.reply().address("192.0.2.1", 300).bytes();
            bytes.truncate(bytes.len() - 2);
            vec![(ms(0), bytes)]
        }
        _ => Script::new(),
    })
    .await;
    for (name, expected, permanent) in [
        ("good.example", "192.0.2.1", false),
        ("none.example", "nxdomain", true),
        ("bare.example", "no_data", true),
        ("sick.example", "servfail", false),
        ("shut.example", "refused", false),
        ("loop.example", "cname_loop", true),
        ("bits.example", "malformed", false),
        ("a..example", "bad_name", true),
    ] {
        assert_eq!(resolver.lookup_cached(name).is_some(), expected == "bad_name", "{name} before");
        let result = resolver.lookup(name).await;
        assert_eq!(show(&result), expected, "{name}");
        assert_eq!(result.is_err_and(DnsError::is_permanent), permanent, "{name}");
        // All of them are remembered.
        assert_eq!(resolver.lookup_cached(name).as_ref().map(show).as_deref(), Some(expected), "{name} after");
        assert_eq!(look(&resolver, &name.to_uppercase()).await, expected, "{name} again");
        assert_eq!(server.count(name), usize::from(expected != "bad_name"), "{name} is asked for once");
    }
}

#[tokio::test]
async fn the_schedule_is_kept_and_then_the_name_is_given_up() {
    let (server, resolver) = start_quick(|_| Script::new()).await;
    let began = Instant::now();
    assert_eq!(look(&resolver, "dead.example").await, "timeout");
    let whole = began.elapsed();
    let log = server.log();
    assert_eq!(log.len(), SCHEDULE_MS.len());
    for (pair, wait_ms) in log.windows(2).zip(SCHEDULE_MS) {
        let gap = pair[1].at - pair[0].at;
        assert!(gap >= ms(wait_ms - 5) && gap < ms(wait_ms + 300), "{gap:?} for {wait_ms} ms");
        assert_eq!(pair[0].from_port, pair[1].from_port, "a repetition is the same datagram");
    }
    let sum_ms: u64 = SCHEDULE_MS.iter().sum();
    assert!(whole >= ms(sum_ms - 5) && whole < ms(sum_ms + 600), "{whole:?}");
    let stats = resolver.stats();
    assert_eq!((stats.queries, stats.timeouts, stats.answers), (5, 5, 0));
    assert_eq!(look(&resolver, "dead.example").await, "timeout");
    assert_eq!(server.log().len(), 5, "the failure is remembered");
}

#[test]
fn the_default_schedule_is_mercators() {
    let schedule = DnsConfig::with_servers(Vec::new()).schedule;
    let whole: Duration = schedule.iter().sum();
    assert_eq!((schedule.len(), schedule[0]), (5, Duration::from_secs(1)));
    assert!((85..=95).contains(&whole.as_secs()), "{whole:?}");
    for pair in schedule.windows(2) {
        let factor = pair[1].as_secs_f64() / pair[0].as_secs_f64();
        assert!((2.7..2.8).contains(&factor), "{factor}");
    }
}

#[tokio::test]
async fn lost_datagrams_and_slow_names_are_waited_for() {
    let (server, resolver) = start_quick(|asked| match asked.name.as_str() {
        "lost.example" if asked.nth < 3 => Script::new(),
        "slow.example" if asked.nth == 0 => asked.reply().address("192.0.2.2", 300).after(200),
        "slow.example" => Script::new(),
        _ => asked.reply().address("192.0.2.1", 300).now(),
    })
    .await;
    assert_eq!(look(&resolver, "lost.example").await, "192.0.2.1");
    assert_eq!(server.count("lost.example"), 4);
    // The answer to the first attempt comes during the second.
    assert_eq!(look(&resolver, "slow.example").await, "192.0.2.2");
    assert_eq!(server.count("slow.example"), 2);
}

#[tokio::test]
async fn forged_answers_are_passed_over() {
    let (server, resolver) = start(|asked| {
        let forged = asked.reply().address("198.51.100.66", 300);
        let right = asked.reply().address("192.0.2.1", 300).after(40);
        match asked.name.as_str() {
            "id.example" => [forged.wrong_id().now(), right].concat(),
            "name.example" => [forged.wrong_name().now(), right].concat(),
            "type.example" => [forged.wrong_type().now(), right].concat(),
            "noise.example" => [vec![(ms(0), vec![1, 2, 3]), (ms(0), Vec::new())], right].concat(),
            _ => Script::new(),
        }
    })
    .await;
    for name in ["id.example", "name.example", "type.example", "noise.example"] {
        assert_eq!(look(&resolver, name).await, "192.0.2.1", "{name}");
        assert_eq!(server.count(name), 1, "{name}");
    }
    assert_eq!(resolver.stats().strays, 5);
}

#[tokio::test]
async fn a_forger_from_another_address_is_not_heard() {
    let (server, resolver) = start(|asked| asked.reply().address("192.0.2.1", 300).after(50)).await;
    let look_up = tokio::spawn(async move { look(&resolver, "a.example").await });
    while server.log().is_empty() {
        tokio::time::sleep(ms(1)).await;
    }
    // The forger knows everything, the id and the port included, but speaks from a port of its own.
    let asked = server.log()[0].clone();
    let forger = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("bind");
    let port = SocketAddr::from(([127, 0, 0, 1], asked.from_port));
    forger.send_to(&asked.reply().address("198.51.100.66", 300).bytes(), port).await.expect("send");
    assert_eq!(look_up.await.expect("look-up"), "192.0.2.1");
}

#[tokio::test]
async fn truncation_leads_to_tcp() {
    let server = TestServer::start(|asked| match (asked.name.as_str(), asked.tcp) {
        ("big.example", true) => {
            (0..300).fold(asked.reply(), |reply, i| reply.address(&format!("192.0.{}.{}", i / 256, i % 256), 300)).now()
        }
        ("still.example", true) => asked.reply().truncated().now(),
        ("mute.example", true) if asked.nth < 3 => Script::new(),
        ("forged.example", true) => asked.reply().wrong_id().address("198.51.100.66", 300).now(),
        (_, true) => asked.reply().address("192.0.2.9", 300).now(),
        (_, false) => asked.reply().truncated().now(),
    })
    .await;
    let mut config = config(&[&server]);
    config.tcp_wait = ms(300);
    let resolver = Resolver::new(config).expect("a resolver");
    let answer = resolver.lookup("big.example").await.expect("addresses");
    assert_eq!(answer.addresses.len(), 16, "of 300 addresses a few are kept");
    assert_eq!(answer.addresses[15], IpAddr::from([192, 0, 0, 15]));
    assert_eq!(look(&resolver, "still.example").await, "malformed");
    assert_eq!(look(&resolver, "forged.example").await, "malformed");
    // A connection that stays silent ends at its deadline, and the next attempt begins.
    let began = Instant::now();
    assert_eq!(look(&resolver, "mute.example").await, "192.0.2.9");
    assert!(began.elapsed() >= ms(295) && began.elapsed() < ms(1_500), "{:?}", began.elapsed());
    assert_eq!(server.log().iter().filter(|asked| asked.tcp).count() as u64, resolver.stats().tcp);
}

#[tokio::test]
async fn open_aliases_are_asked_for_in_turn() {
    let (server, resolver) = start(|asked| match asked.name.as_str() {
        "www.example" => asked.reply().alias("www.example", "cdn.example", 700).now(),
        "cdn.example" => asked.reply().alias("cdn.example", "edge.example", 200).now(),
        "edge.example" => asked.reply().address("192.0.2.1", 300).now(),
        "whole.example" => {
            asked.reply().alias("whole.example", "x.example", 90).address_of("x.example", "192.0.2.2", 80).now()
        }
        name => {
            // An endless chain, one link per answer.
            let number: u32 = name.trim_start_matches('n').split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            asked.reply().alias(name, &format!("n{}.example", number + 1), 300).now()
        }
    })
    .await;
    let answer = resolver.lookup("www.example").await.expect("addresses");
    assert_eq!((&*answer.addresses, lasts_s(&answer)), (&[IpAddr::from([192, 0, 2, 1])][..], 200));
    assert_eq!(look(&resolver, "whole.example").await, "192.0.2.2");
    assert_eq!(server.log().len(), 4);
    assert_eq!(look(&resolver, "n0.example").await, "cname_loop");
    assert_eq!(server.log().len(), 4 + 11);
}

#[tokio::test]
async fn times_are_clamped() {
    let (_server, resolver) = start(|asked| match asked.name.as_str() {
        "zero.example" => asked.reply().address("192.0.2.1", 0).now(),
        "huge.example" => asked.reply().address("192.0.2.1", i32::MAX as u32).now(),
        _ => asked.reply().address("192.0.2.1", 777).now(),
    })
    .await;
    for (name, expected_s) in [("zero.example", 60), ("huge.example", 86_400), ("fair.example", 777)] {
        assert_eq!(lasts_s(&resolver.lookup(name).await.expect("addresses")), expected_s, "{name}");
    }
}

#[tokio::test]
async fn what_is_remembered_is_forgotten_in_time() {
    let server = TestServer::start(|asked| match asked.name.as_str() {
        "none.example" => asked.reply().code(ResponseCode::NXDomain).soa(1, 1).now(),
        "sick.example" => asked.reply().code(ResponseCode::ServFail).now(),
        _ => asked.reply().address(&format!("192.0.2.{}", asked.nth + 1), 0).now(),
    })
    .await;
    let mut config = config(&[&server]);
    (config.ttl_min, config.negative_ttl_min, config.negative_ttl_max) = (ms(500), ms(500), ms(550));
    (config.failure_ttl_min, config.failure_ttl_max) = (ms(500), ms(2_000));
    let resolver = Resolver::new(config).expect("a resolver");
    for name in ["a.example", "none.example", "sick.example"] {
        let first = look(&resolver, name).await;
        assert_eq!(look(&resolver, name).await, first);
        assert_eq!(server.count(name), 1, "{name}");
    }
    tokio::time::sleep(ms(650)).await;
    assert!(resolver.lookup_cached("a.example").is_none());
    assert_eq!(look(&resolver, "a.example").await, "192.0.2.2");
    assert_eq!(look(&resolver, "none.example").await, "nxdomain");
    assert_eq!(look(&resolver, "sick.example").await, "servfail");
    for name in ["a.example", "none.example", "sick.example"] {
        assert_eq!(server.count(name), 2, "{name}");
    }
    // A failure in a row lasts twice as long.
    tokio::time::sleep(ms(650)).await;
    assert!(resolver.lookup_cached("sick.example").is_some());
    assert!(resolver.lookup_cached("a.example").is_none());
}

#[tokio::test]
async fn look_ups_of_one_name_are_joined() {
    let (server, resolver) = start(|asked| asked.reply().address("192.0.2.1", 300).after(30)).await;
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let resolver = Arc::clone(&resolver);
            tokio::spawn(async move { look(&resolver, "a.example").await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("a look-up"), "192.0.2.1");
    }
    assert_eq!(server.log().len(), 1);
    assert_eq!(resolver.stats().coalesced, 99);
}

#[tokio::test]
async fn several_servers_take_turns() {
    let mute = TestServer::start(|_| Script::new()).await;
    let sick = TestServer::start(|asked| asked.reply().code(ResponseCode::ServFail).now()).await;
    let shut = TestServer::start(|asked| asked.reply().code(ResponseCode::Refused).now()).await;
    let good = TestServer::start(|asked| asked.reply().address("192.0.2.1", 300).now()).await;
    let resolver = Resolver::new(config(&[&sick, &shut, &good])).expect("a resolver");
    let began = Instant::now();
    assert_eq!(look(&resolver, "a.example").await, "192.0.2.1");
    assert!(began.elapsed() < ms(4_000), "a failure is not waited for");
    assert_eq!([sick.log().len(), shut.log().len(), good.log().len()], [1, 1, 1]);

    let resolver = Resolver::new(quick(&[&mute, &good])).expect("a resolver");
    assert_eq!(look(&resolver, "b.example").await, "192.0.2.1");
    assert_eq!(look(&resolver, "c.example").await, "192.0.2.1");
    assert_eq!(mute.log().len(), 1, "the server that answers is asked first from then on");

    let resolver = Resolver::new(config(&[&sick, &shut])).expect("a resolver");
    assert_eq!(look(&resolver, "d.example").await, "refused");
    let resolver = Resolver::new(quick(&[&sick, &mute])).expect("a resolver");
    assert_eq!(look(&resolver, "e.example").await, "servfail");
    assert_eq!((sick.count("e.example"), mute.count("e.example")), (1, 5));
}

#[tokio::test]
async fn old_servers_are_asked_without_edns() {
    let (server, resolver) = start(|asked| match asked.edns {
        true => asked.reply().code(ResponseCode::FormErr).now(),
        false => asked.reply().address("192.0.2.1", 300).now(),
    })
    .await;
    assert_eq!(look(&resolver, "a.example").await, "192.0.2.1");
    assert_eq!(server.log().len(), 2);
}

#[tokio::test]
async fn both_families_are_asked_at_once() {
    let server = TestServer::start(|asked| match (asked.name.as_str(), asked.is_v6()) {
        ("both.example", false) => asked.reply().address("192.0.2.1", 300).after(20),
        ("both.example" | "six.example", true) => asked.reply().address("2001:db8::1", 100).now(),
        ("six.example", false) => asked.reply().soa(60, 60).now(),
        ("half.example", false) => asked.reply().address("192.0.2.2", 300).now(),
        // A denial of the whole name where only its IPv6 address is missing.
        ("four.example", false) => asked.reply().address("192.0.2.3", 300).after(20),
        ("four.example", true) => asked.reply().code(ResponseCode::NXDomain).soa(60, 60).now(),
        _ => Script::new(),
    })
    .await;
    let mut config = quick(&[&server]);
    config.ipv6 = true;
    let resolver = Resolver::new(config).expect("a resolver");
    let answer = resolver.lookup("both.example").await.expect("addresses");
    assert_eq!(show(&Ok(answer.clone())), "192.0.2.1 2001:db8::1");
    assert_eq!(lasts_s(&answer), 100);
    assert_eq!(look(&resolver, "six.example").await, "2001:db8::1");
    assert_eq!(look(&resolver, "four.example").await, "192.0.2.3");
    // The silence of one family holds the other up for one wait only.
    let began = Instant::now();
    assert_eq!(look(&resolver, "half.example").await, "192.0.2.2");
    assert!(began.elapsed() < ms(SCHEDULE_MS[0] + 200), "{:?}", began.elapsed());
}

#[tokio::test]
async fn prefetched_names_are_there_when_needed() {
    let server = TestServer::start(|asked| asked.reply().address("192.0.2.1", 300).now()).await;
    let mut config = config(&[&server]);
    config.prefetch_max = 10;
    let resolver = Resolver::new(config).expect("a resolver");
    // The driver does not run in between, so the queue fills.
    let accepted = (0..30).filter(|i| resolver.prefetch(&format!("h{i}.example"))).count();
    assert_eq!((accepted, resolver.stats().prefetch_dropped), (10, 20));
    while resolver.stats().answers < 10 {
        tokio::time::sleep(ms(1)).await;
    }
    assert_eq!(resolver.stats().prefetched, 10);
    for i in 0..10 {
        let name = format!("h{i}.example");
        assert_eq!(resolver.lookup_cached(&name).as_ref().map(show).as_deref(), Some("192.0.2.1"));
        assert!(resolver.prefetch(&name));
    }
    assert_eq!(server.log().len(), 10);
}

#[tokio::test]
async fn the_window_bounds_first_attempts_and_dead_names_do_not_clog_it() {
    let server = TestServer::start(|asked| match asked.name.starts_with("dead") {
        true => Script::new(),
        false => asked.reply().address("192.0.2.1", 300).now(),
    })
    .await;
    let mut config = quick(&[&server]);
    config.in_flight_max = 10;
    let resolver = Resolver::new(config).expect("a resolver");
    let ask = |name: String| {
        let resolver = Arc::clone(&resolver);
        tokio::spawn(async move { look(&resolver, &name).await })
    };
    let dead: Vec<_> = (0..30).map(|i| ask(format!("dead{i}.example"))).collect();
    tokio::time::sleep(ms(30)).await;
    assert_eq!(server.log().len(), 10);
    // Three windows of dead names are passed in three first waits, long before the first of them is given up.
    let began = Instant::now();
    assert_eq!(ask("live.example".into()).await.expect("a look-up"), "192.0.2.1");
    assert!(began.elapsed() < ms(3 * SCHEDULE_MS[0] + 500), "{:?}", began.elapsed());
    for task in dead {
        assert_eq!(task.await.expect("a look-up"), "timeout");
    }
    assert_eq!(resolver.stats().timeouts, 150);
}

#[tokio::test]
async fn some_names_are_never_asked_for() {
    let hosts = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(hosts.path(), "192.0.2.7 fixed.example\n").expect("write");
    let server = TestServer::start(|_| Script::new()).await;
    let mut config = config(&[&server]);
    config.hosts_file = Some(hosts.path().to_owned());
    let resolver = Resolver::new(config).expect("a resolver");
    for (name, expected) in [
        ("fixed.example", "192.0.2.7"),
        ("FIXED.example.", "192.0.2.7"),
        ("localhost", "127.0.0.1"),
        ("a.localhost", "127.0.0.1"),
        ("a.invalid", "nxdomain"),
        ("192.0.2.8", "192.0.2.8"),
        ("[2001:db8::8]", "2001:db8::8"),
    ] {
        assert_eq!(look(&resolver, name).await, expected, "{name}");
        assert!(resolver.lookup_cached(name).is_some());
    }
    assert!(server.log().is_empty());
}

#[tokio::test]
async fn ports_and_ids_vary() {
    let (server, resolver) = start(|asked| asked.reply().address("192.0.2.1", 300).now()).await;
    for i in 0..200 {
        assert_eq!(look(&resolver, &format!("h{i}.example")).await, "192.0.2.1");
    }
    let log = server.log();
    let distinct = |of: &dyn Fn(&Asked) -> u16| log.iter().map(of).collect::<std::collections::HashSet<u16>>().len();
    assert_eq!(distinct(&|asked| asked.from_port), 8);
    // Of 200 random ids of 16 bits hardly two are alike, and no step from one to the next is usual.
    assert!(distinct(&Asked::id) > 190, "{}", distinct(&Asked::id));
    let steps: std::collections::HashSet<u16> =
        log.windows(2).map(|pair| pair[1].id().wrapping_sub(pair[0].id())).collect();
    assert!(steps.len() > 190, "{}", steps.len());
}

/// Who can answer for a name, but says more: addresses of other names, in every section, are not remembered.
#[tokio::test]
async fn an_answer_speaks_for_its_own_name_alone() {
    let (server, resolver) = start(|asked| match asked.name.as_str() {
        "bank.example" => asked.reply().address("192.0.2.2", 300).now(),
        _ => asked
            .reply()
            .address_of("bank.example", "198.51.100.66", 300)
            .alias(&asked.name, "bank.example", 300)
            .address_of("bank.example", "198.51.100.66", 300)
            .now(),
    })
    .await;
    // An alias may lead anywhere, as that name's owner says; but what is remembered is remembered of the name asked for.
    assert_eq!(look(&resolver, "evil.example").await, "198.51.100.66");
    assert_eq!(look(&resolver, "bank.example").await, "192.0.2.2");
    assert_eq!(server.count("bank.example"), 1);
}

/// A server that answers every datagram over and over, or with what nobody asked for, costs a look at each and no more.
#[tokio::test]
async fn strays_are_counted_and_forgotten() {
    let (server, resolver) = start(|asked| {
        let flood = asked.reply().address("198.51.100.66", 300).wrong_id();
        let strays = (0..200).flat_map(|_| flood.now());
        strays.chain(asked.reply().address("192.0.2.1", 300).after(60)).collect()
    })
    .await;
    assert_eq!(look(&resolver, "a.example").await, "192.0.2.1");
    assert_eq!(server.count("a.example"), 1);
    let stats = resolver.stats();
    assert!(stats.strays > 0 && stats.answers == 1 && stats.cache_entries == 1, "{stats:?}");
}

#[tokio::test]
async fn memory_is_bounded_and_the_resolver_ends_cleanly() {
    let server = TestServer::start(|asked| asked.reply().address("192.0.2.1", 300).now()).await;
    let mut config = config(&[&server]);
    config.cache_entries_max = 100;
    let resolver = Resolver::new(config.clone()).expect("a resolver");
    for i in 0..500 {
        assert_eq!(look(&resolver, &format!("h{i}.example")).await, "192.0.2.1");
    }
    assert!((30..=100).contains(&resolver.stats().cache_entries), "{:?}", resolver.stats());
    config.servers.clear();
    assert!(Resolver::new(config).is_err());
}

#[test]
fn look_ups_cross_threads_and_outlive_the_driver() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let home = runtime();
    let (server, resolver) = home.block_on(start(|asked| asked.reply().address("192.0.2.1", 300).now()));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let driving = std::thread::spawn(move || {
        let _ = home.block_on(stopped);
    });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (resolver, runtime) = (&resolver, runtime());
            scope.spawn(move || {
                for i in 0..50 {
                    let name = format!("h{i}.t{thread}.example");
                    assert_eq!(runtime.block_on(look(resolver, &name)), "192.0.2.1");
                }
            });
        }
    });
    assert_eq!(server.log().len(), 200);
    drop(stop);
    driving.join().expect("the driver's thread");
    assert_eq!(runtime().block_on(look(&resolver, "late.example")), "closed");
    assert_eq!(runtime().block_on(look(&resolver, "h1.t1.example")), "192.0.2.1");
}
