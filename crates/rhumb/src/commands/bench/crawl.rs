//! `rhumb bench crawl`: what a page costs, in processor time of the crawler alone.
//!
//! The synthetic web is served by one child process, which nobody counts. Every measured run is a child of its own (`rhumb bench
//! crawl-one`, which this file holds too), so that none inherits the memory of another; all kinds of runs take turns, and
//! the lowest figures are compared. In the children the clock starts when the crawl does.
//!
//! `--stages` takes the stages off one after the other, from the end of the pipeline to its beginning; what a stage
//! costs is the difference between two neighbours. All pages are seeds in these runs, so that every run visits the same
//! pages whether or not it reads their links.

use std::io::BufRead;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rhumb_core::filter::Scope;
use rhumb_core::url::Url;
use rhumb_crawl::fetch::bare::Bare;
use rhumb_crawl::fetch::tls;
use rhumb_crawl::settings::Stages;
use rhumb_crawl::{Engine, status};
use rhumb_sim::{Naming, Web, WebConfig};
use rhumb_store::StoreError;
use rhumb_store::disk::{Disk, DiskFile, RealDisk};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cli::BenchCrawlArgs;
use crate::config::Config;
use crate::units::Span;
use crate::{Exit, out, usage};

/// Runs what was asked for, prints the figures, and fails if a bar is missed.
pub fn run(args: &BenchCrawlArgs, as_json: bool) -> Result<Exit> {
    let chosen = [args.stages, args.windows, args.https, args.dns_ms.is_some()];
    if chosen.into_iter().filter(|&c| c).count() > 1 {
        return Err(usage("--stages, --windows, --https and --dns-ms are measurements of their own: name one"));
    }
    super::with_directory(args.dir.as_deref(), |dir| {
        if args.stages {
            stages(args, dir, as_json)
        } else if args.windows {
            windows(args, dir)
        } else if args.https {
            https(args, dir)
        } else if let Some(ms) = args.dns_ms {
            names(args, ms, dir)
        } else {
            plain(args, dir)
        }
    })
    .and_then(|report| report.print(as_json))
}

/// What is printed.
struct Report {
    figures: Value,
    /// What, the figure, and the most it may be.
    bars: Vec<(&'static str, f64, f64)>,
}

impl Report {
    fn print(self, as_json: bool) -> Result<Exit> {
        let bars = self
            .bars
            .iter()
            .map(|(bar, figure, most)| json!({"bar": bar, "figure": figure, "most": most, "pass": figure <= most}));
        let bars: Vec<Value> = bars.collect();
        let passed = self.bars.iter().all(|(_, figure, most)| figure <= most);
        if as_json {
            let mut figures = self.figures;
            figures["bars"] = bars.into();
            out::json(&figures)?;
        } else {
            super::print(&self.figures)?;
            for (bar, figure, most) in &self.bars {
                let verdict = if figure <= most { "pass" } else { "FAIL" };
                out::line(&format!("{verdict}  {bar}: {figure:.3} (at most {most})"))?;
            }
        }
        Ok(if passed { Exit::Done } else { Exit::Look })
    }
}

/// A crawl with archive and log, one without archive, and the floor.
fn plain(args: &BenchCrawlArgs, dir: &Path) -> Result<Report> {
    let served = Served::start(args, dir, &[])?;
    let whole = served.spec(args, dir);
    let kinds = [
        ("archive and log", whole.clone()),
        ("no archive", Spec { archive: false, ..whole.clone() }),
        ("bare fetch", Spec { bare: true, ..whole }),
    ];
    let ms = alternate(args.rounds, &kinds)?;
    let mut figures = served.figures(args);
    for ((name, _), ms) in kinds.iter().zip(&ms) {
        figures[format!("cpu_ms_per_page, {name}")] = (*ms).into();
    }
    Ok(Report { figures, bars: Vec::new() })
}

/// What each stage costs.
fn stages(args: &BenchCrawlArgs, dir: &Path, as_json: bool) -> Result<Report> {
    let served = Served::start(args, dir, &[])?;
    let whole = Spec { listed: true, ..served.spec(args, dir) };
    let unwritten = Spec { write: false, ..whole.clone() };
    let stored = Spec { gzip: false, ..unwritten.clone() };
    let unarchived = Spec { archive: false, ..stored.clone() };
    let unlogged = Spec { log: false, ..unarchived.clone() };
    let unsifted = Spec { sieve: false, ..unlogged.clone() };
    let unjudged = Spec { normalize: false, ..unsifted.clone() };
    let unread = Spec { extract: false, ..unjudged.clone() };
    let bare = Spec { bare: true, ..unread.clone() };
    // Each with the stage that the next one goes without.
    let kinds = [
        ("write archive, index and log", whole),
        ("gzip", unwritten),
        ("digest and archive records", stored),
        ("log records", unarchived),
        ("sieve and frontier of links", unlogged),
        ("normalise and filter links", unsifted),
        ("decode and extract", unjudged),
        ("scheduling, bounds, robots", unread),
        ("fetch (bare hyper loop)", bare),
    ];
    let ms = alternate(args.rounds, &kinds)?;
    let costs: Vec<(&str, f64)> =
        (0..kinds.len()).map(|i| (kinds[i].0, ms[i] - ms.get(i + 1).copied().unwrap_or(0.0))).collect();
    let mut figures = served.figures(args);
    figures["cpu_ms_per_page"] = ms[0].into();
    figures["stages"] = costs
        .iter()
        .map(|(stage, cost)| json!({"stage": stage, "cpu_ms_per_page": cost, "share": cost / ms[0]}))
        .collect();
    if !as_json {
        out::line(&format!("{:<32} {:>10} {:>6}", "stage", "CPU-ms/page", "share"))?;
        for (stage, cost) in &costs {
            out::line(&format!("{stage:<32} {cost:>10.4} {:>5.0} %", 100.0 * cost / ms[0]))?;
        }
        out::line(&format!("{:<32} {:>10.4}", "all", ms[0]))?;
        figures.as_object_mut().map(|f| f.remove("stages"));
    }
    Ok(Report { figures, bars: Vec::new() })
}

/// What a page costs early and late in one long crawl.
fn windows(args: &BenchCrawlArgs, dir: &Path) -> Result<Report> {
    let (early, late) = (args.early, args.late);
    // The late window is wider: a checkpoint that happens to fall into it should not count for more than it costs.
    let width = |page: u64| if page == late { (late / 20).max(1) } else { (early / 2).max(1) };
    // Few hosts, so that meeting them is over before the first window; and pages left to visit behind the last.
    let hosts = args.hosts.unwrap_or(100);
    let pages = args.pages.unwrap_or((late + late / 5).div_ceil(hosts));
    let args = BenchCrawlArgs { hosts: Some(hosts), pages: Some(pages), ..args.clone() };
    let limit = late + 2 * width(late);
    ensure!(hosts * pages >= limit, "a web of {} pages ends too soon behind page {late}", hosts * pages);
    let served = Served::start(&args, dir, &[])?;
    let mut figures = served.figures(&args);
    let mut ratios = Vec::new();
    for (name, archive) in [("archive and log", true), ("no archive", false)] {
        let spec = Spec { archive, marks: true, limit: Some(limit), ..served.spec(&args, dir) };
        let mut runs = Vec::new();
        for _ in 0..args.rounds.max(1) {
            runs.push(spec.run()?);
        }
        let per_page = |done: &Done, around: u64| {
            let width = width(around);
            1e3 * (done.cpu_at(around + width) - done.cpu_at(around - width)) / (2 * width) as f64
        };
        let lowest = |around: u64| runs.iter().map(|run| per_page(run, around)).fold(f64::INFINITY, f64::min);
        let (first, last) = (lowest(early), lowest(late));
        let done = &runs[0];
        let at = |page: u64| done.cpu_at(page);
        figures[format!("cpu_ms_per_page_at_{early}, {name}")] = first.into();
        figures[format!("cpu_ms_per_page_at_{late}, {name}")] = last.into();
        figures[format!("growth, {name}")] = (last / first).into();
        figures[format!("peak_rss_bytes, {name}")] = done.peak_rss_bytes.into();
        figures[format!("cpu_ms_per_page_by_tenth, {name}")] = (1..=10)
            .map(|n| (late * (n - 1) / 10, late * n / 10))
            .map(|(from, to)| 1e3 * (at(to) - at(from)) / (to - from) as f64)
            .collect();
        ratios.push(last / first);
    }
    let bars = vec![
        ("archive and log: a late page costs at most 1.1 × an early one", ratios[0], 1.1),
        ("no archive: a late page costs at most 1.1 × an early one", ratios[1], 1.1),
    ];
    Ok(Report { figures, bars })
}

/// HTTPS with a new connection for every page, beside handshake, bare fetch and extraction.
fn https(args: &BenchCrawlArgs, dir: &Path) -> Result<Report> {
    let args =
        BenchCrawlArgs { page_bytes: Some(args.page_bytes.unwrap_or(crate::units::Size(100_000))), ..args.clone() };
    let authority = dir.join("authority.pem");
    let ca = authority.to_str().context("the directory is not UTF-8")?;
    let served = Served::start(&args, dir, &["--tls", "127.0.0.1:0", "--https", "--no-keep-alive", "--ca", ca])?;
    let crawl = Spec { archive: false, ..served.spec(&args, dir) };
    let resumed = |spec: &Spec| Spec { resume: true, ..spec.clone() };
    let bare = Spec { bare: true, listed: true, ..crawl.clone() };
    let archived = Spec { archive: true, ..crawl.clone() };
    let kinds = [
        ("handshake, bare fetch, extraction", bare.clone()),
        ("crawl", crawl.clone()),
        ("crawl, archive", archived.clone()),
        ("resumed: handshake, bare fetch, extraction", resumed(&bare)),
        ("resumed: crawl", resumed(&crawl)),
        ("resumed: crawl, archive", resumed(&archived)),
    ];
    let ms = alternate(args.rounds, &kinds)?;
    let mut figures = served.figures(&args);
    for ((name, _), ms) in kinds.iter().zip(&ms) {
        figures[format!("cpu_ms_per_page, {name}")] = (*ms).into();
    }
    let bars = vec![
        ("crawl at most 1.3 × handshake, bare fetch and extraction", ms[1] / ms[0], 1.3),
        ("the same, sessions resumed", ms[4] / ms[3], 1.3),
    ];
    Ok(Report { figures, bars })
}

/// How much fetching is lost where names take their time.
fn names(args: &BenchCrawlArgs, dns_ms: u64, dir: &Path) -> Result<Report> {
    let args = BenchCrawlArgs {
        hosts: Some(args.hosts.unwrap_or(2_000)),
        pages: Some(args.pages.unwrap_or(10)),
        ..args.clone()
    };
    let (wait, latency) = (dns_ms.to_string(), args.latency_ms.to_string());
    let served = Served::start(&args, dir, &["--dns", "127.0.0.1:0", "--dns-ms", &wait, "--latency-ms", &latency])?;
    let spec = Spec { archive: false, workers: Some(args.workers), ..served.spec(&args, dir) };
    let done = spec.run()?;
    let mut figures = served.figures(&args);
    figures["workers"] = args.workers.into();
    figures["seconds"] = done.seconds.into();
    figures["workers_busy_share_at_most"] =
        (done.requests as f64 * args.latency_ms as f64 / 1e3 / args.workers as f64 / done.seconds).into();
    figures["dns_idle_share"] = done.dns_idle_share.into();
    Ok(Report { figures, bars: vec![("fetch slots idle because of DNS", done.dns_idle_share, 0.01)] })
}

/// CPU-ms per page for each kind of run; all take turns. Neighbours on the machine only ever add to processor time (they
/// share caches and cores), so the lowest of the rounds is nearest to the truth.
fn alternate(rounds: usize, kinds: &[(&str, Spec)]) -> Result<Vec<f64>> {
    let mut ms = vec![Vec::new(); kinds.len()];
    for round in 0..rounds.max(1) {
        for ((name, spec), ms) in kinds.iter().zip(&mut ms) {
            let done = spec.run().with_context(|| format!("measure {name:?}"))?;
            let figure = 1e3 * done.cpu_seconds / done.pages.max(1) as f64;
            out::note(&format!(
                "round {} {name:<44} {figure:.4} CPU-ms/page  {} pages  {:.1} s",
                round + 1,
                done.pages,
                done.seconds
            ));
            ms.push(figure);
        }
    }
    Ok(ms.iter().map(|ms| ms.iter().copied().fold(f64::INFINITY, f64::min)).collect())
}

/// The synthetic web in a process of its own.
struct Served {
    child: Child,
    web: WebConfig,
    seed: String,
    dns: Option<SocketAddr>,
    authority: Option<PathBuf>,
}

impl Served {
    fn start(args: &BenchCrawlArgs, dir: &Path, more: &[&str]) -> Result<Served> {
        let (hosts, pages) = (args.hosts.unwrap_or(50), args.pages.unwrap_or(200));
        let page_bytes = args.page_bytes.map_or(10_000, |s| s.0 as usize);
        let named = more.contains(&"--dns");
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        command.args(["--json", "sim", "serve", "--plain", "--exact", "--listen", "127.0.0.1:0"]);
        command.args(["--hosts", &hosts.to_string(), "--pages", &pages.to_string()]);
        command.args(["--page-size", &page_bytes.to_string()]).args(more);
        if !named {
            command.arg("--loopback");
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("serve the synthetic web")?;
        let web = WebConfig { page_bytes, ..WebConfig::plain(hosts, pages) };
        let mut served = Served { child, web, seed: String::new(), dns: None, authority: None };
        let mut line = String::new();
        let stdout = served.child.stdout.take().context("the web says nothing")?;
        std::io::BufReader::new(stdout).read_line(&mut line).context("hear from the synthetic web")?;
        let ready: Value = serde_json::from_str(&line).context("hear from the synthetic web")?;
        let port = |name: &str| {
            let address = ready[name].as_str().and_then(|a| a.parse::<SocketAddr>().ok());
            address.map_or(0, |a| a.port())
        };
        (served.web.port, served.web.tls_port) = (port("listen"), port("tls"));
        served.web.https = served.web.tls_port != 0;
        served.authority = served.web.https.then(|| dir.join("authority.pem"));
        if !named {
            served.web.naming = Naming::Loopback;
        }
        served.dns = ready["dns"].as_str().and_then(|a| a.parse().ok());
        served.seed = Web::new(served.web.clone())?.url(0, 0);
        Ok(served)
    }

    /// An ordinary crawl of all of it.
    fn spec(&self, args: &BenchCrawlArgs, dir: &Path) -> Spec {
        Spec {
            dir: dir.join("crawl"),
            web: self.web.clone(),
            seed: self.seed.clone(),
            dns: self.dns,
            authority: self.authority.clone(),
            threads: args.threads,
            workers: None,
            limit: None,
            listed: false,
            bare: false,
            marks: false,
            archive: true,
            write: true,
            gzip: true,
            log: true,
            sieve: true,
            normalize: true,
            extract: true,
            resume: false,
        }
    }

    fn figures(&self, args: &BenchCrawlArgs) -> Value {
        json!({"hosts": self.web.hosts, "pages": self.web.pages, "page_bytes": self.web.page_bytes, "rounds": args.rounds})
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One measured run, as its process is told of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spec {
    dir: PathBuf,
    web: WebConfig,
    seed: String,
    dns: Option<SocketAddr>,
    authority: Option<PathBuf>,
    threads: usize,
    workers: Option<usize>,
    limit: Option<u64>,
    /// Every page is a seed.
    listed: bool,
    /// No crawl, but a loop around hyper.
    bare: bool,
    /// How far the crawl was when.
    marks: bool,
    archive: bool,
    /// Archive, index and log reach the disk.
    write: bool,
    gzip: bool,
    log: bool,
    sieve: bool,
    normalize: bool,
    extract: bool,
    /// TLS sessions are resumed.
    resume: bool,
}

/// What a measured run says of itself.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Done {
    pages: u64,
    requests: u64,
    cpu_seconds: f64,
    seconds: f64,
    peak_rss_bytes: u64,
    dns_idle_share: f64,
    /// Pages, and processor time until then.
    marks: Vec<(u64, f64)>,
}

impl Done {
    /// Processor time when this page was fetched, between the two nearest marks.
    fn cpu_at(&self, page: u64) -> f64 {
        let behind = self.marks.partition_point(|(pages, _)| *pages < page).clamp(1, self.marks.len().max(2) - 1);
        let (Some(&(p0, c0)), Some(&(p1, c1))) = (self.marks.get(behind - 1), self.marks.get(behind)) else {
            return 0.0;
        };
        c0 + (c1 - c0) * (page as f64 - p0 as f64) / (p1 as f64 - p0 as f64).max(1.0)
    }
}

impl Spec {
    /// Runs it in a process of its own.
    fn run(&self) -> Result<Done> {
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        command.args(["bench", "crawl-one", &serde_json::to_string(self)?]).stdin(Stdio::null());
        let output = command.stderr(Stdio::inherit()).output().context("start a measured run")?;
        let _ = std::fs::remove_dir_all(&self.dir);
        if !output.status.success() {
            bail!("a measured run ended with {}", output.status);
        }
        let done: Done = serde_json::from_slice(&output.stdout).context("read what a measured run says")?;
        let expected = self.limit.unwrap_or(self.web.hosts * self.web.pages);
        ensure!(done.pages >= expected, "{} of {expected} pages were fetched: no measurement", done.pages);
        Ok(done)
    }

    /// All pages, by host.
    fn pages(&self) -> Result<Vec<Vec<Url>>> {
        let web = Web::new(self.web.clone())?;
        let url = |host, page| Url::parse(&web.url(host, page)).context("a page's URL");
        (0..self.web.hosts).map(|host| (0..self.web.pages).map(|page| url(host, page)).collect()).collect()
    }
}

/// `rhumb bench crawl-one`: carries out one run in this process.
pub fn run_one(spec: &str) -> Result<Exit> {
    let spec: Spec = serde_json::from_str(spec).map_err(|e| usage(e.to_string()))?;
    let done = if spec.bare { fetch_bare(&spec)? } else { crawl(&spec)? };
    out::json(&done)?;
    Ok(Exit::Done)
}

fn fetch_bare(spec: &Spec) -> Result<Done> {
    let pages = spec.pages()?;
    let hosts = if spec.resume { pages.len() } else { 0 };
    let mut tls = tls::client_config(spec.authority.as_deref(), hosts).context("read the authority")?;
    // The reference speaks one version of HTTP.
    Arc::make_mut(&mut tls).alpn_protocols = vec![b"http/1.1".to_vec()];
    let parse = Config::default().settings()?.parse;
    // Without TLS it is the floor of fetching alone.
    let bare = Bare { tls, keep_alive: !spec.web.https, parse: spec.web.https.then_some(parse) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the runtime")?;
    let (began, cpu_before) = (Instant::now(), super::cpu_seconds());
    let (pages, _) = runtime.block_on(bare.fetch(pages)).context("fetch")?;
    Ok(Done {
        pages,
        requests: pages,
        cpu_seconds: super::cpu_seconds() - cpu_before,
        seconds: began.elapsed().as_secs_f64(),
        peak_rss_bytes: status::peak_rss_bytes(),
        ..Done::default()
    })
}

fn crawl(spec: &Spec) -> Result<Done> {
    let mut config = Config::default();
    config.crawl.scope = Scope::Any;
    config.crawl.limit = spec.limit;
    config.crawl.threads = spec.threads;
    config.crawl.workers = spec.workers.unwrap_or(config.crawl.workers);
    config.politeness.delay = Span(Duration::ZERO);
    config.politeness.per_ip = 0;
    config.net.allow = vec!["127.0.0.0/8".to_string()];
    config.net.authorities = spec.authority.clone();
    config.dns.servers = spec.dns.into_iter().collect();
    config.storage.archive = spec.archive;
    config.storage.index = false;
    let mut settings = config.settings()?;
    let Spec { gzip, log, sieve, normalize, extract, .. } = *spec;
    settings.stages = Stages { gzip, log, sieve, normalize, extract };
    if !spec.resume {
        settings.tls_hosts_max = 0;
    }
    if spec.marks {
        settings.tell_every = Duration::from_millis(20);
    }
    let seeds = if spec.listed {
        spec.pages()?.concat()
    } else {
        vec![Url::parse(&spec.seed).context("the first page's URL")?]
    };
    std::fs::create_dir_all(&spec.dir).with_context(|| format!("make {}", spec.dir.display()))?;
    let disk = RealDisk::new(&spec.dir);
    let disk: Arc<dyn Disk> = if spec.write { disk } else { Arc::new(Forgetful(disk)) };
    let mut engine = Engine::open(&spec.dir, disk, settings)?;
    engine.add_seeds(&seeds)?;
    let marks = spec.marks.then(|| watch(&engine));
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let (began, cpu_before) = (Instant::now(), super::cpu_seconds());
    let (_, figures) = engine.run(stopped)?;
    let (seconds, cpu_seconds) = (began.elapsed().as_secs_f64(), super::cpu_seconds() - cpu_before);
    Ok(Done {
        pages: figures.pages,
        requests: figures.requests,
        cpu_seconds,
        seconds,
        peak_rss_bytes: figures.peak_rss_bytes,
        dns_idle_share: figures.dns_idle_share,
        marks: marks.map(|thread| thread.join().unwrap_or_default()).unwrap_or_default(),
    })
}

/// Notes how far the crawl is, until it ends.
fn watch(engine: &Engine) -> std::thread::JoinHandle<Vec<(u64, f64)>> {
    let status = engine.status();
    std::thread::spawn(move || {
        let mut marks: Vec<(u64, f64)> = Vec::new();
        loop {
            let (pages, cpu, state) = {
                let status = status.lock().expect("nobody panics while copying the status");
                (status.pages, status.cpu_seconds, status.state)
            };
            if marks.last().is_none_or(|(last, _)| *last < pages) {
                marks.push((pages, cpu));
            }
            if !["", "running"].contains(&state) {
                return marks;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    })
}

/// A disk that forgets what is appended to archive and log: a run on it goes without the cost of writing them.
struct Forgetful(Arc<dyn Disk>);

struct ForgetfulFile(u64);

impl Disk for Forgetful {
    fn create(&self, name: &str) -> Result<Box<dyn DiskFile>, StoreError> {
        let forgotten = ["log/", "archive/"].iter().any(|dir| name.starts_with(dir));
        if forgotten { Ok(Box::new(ForgetfulFile(0))) } else { self.0.create(name) }
    }
    fn open(&self, name: &str) -> Result<Box<dyn DiskFile>, StoreError> {
        self.0.open(name)
    }
    fn exists(&self, name: &str) -> bool {
        self.0.exists(name)
    }
    fn list(&self, dir: &str) -> Result<Vec<String>, StoreError> {
        self.0.list(dir)
    }
    fn make_dir(&self, dir: &str) -> Result<(), StoreError> {
        self.0.make_dir(dir)
    }
    fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        // A segment is begun under another name; there is nothing to rename then.
        if self.0.exists(from) { self.0.rename(from, to) } else { Ok(()) }
    }
    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.0.remove(name)
    }
    fn truncate(&self, name: &str, len: u64) -> Result<(), StoreError> {
        self.0.truncate(name, len)
    }
    fn sync_dir(&self, dir: &str) -> Result<(), StoreError> {
        self.0.sync_dir(dir)
    }
}

impl DiskFile for ForgetfulFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize, StoreError> {
        Ok(0)
    }
    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
    fn len(&self) -> Result<u64, StoreError> {
        Ok(self.0)
    }
    fn handle(&self) -> Result<Box<dyn DiskFile>, StoreError> {
        Ok(Box::new(ForgetfulFile(self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_between_marks() {
        let done = Done { marks: vec![(0, 0.0), (100, 1.0), (300, 2.0)], ..Done::default() };
        let check = |page, expected: f64| assert!((done.cpu_at(page) - expected).abs() < 1e-9, "{page}");
        check(0, 0.0);
        check(50, 0.5);
        check(100, 1.0);
        check(200, 1.5);
        check(300, 2.0);
    }
}
