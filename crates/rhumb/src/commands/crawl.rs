//! `rhumb crawl`: from what was typed to a crawl that runs, and back to an exit code.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rhumb_core::url::{Normalizer, Url, UrlError};
use rhumb_crawl::protocol::{Registry, file};
use rhumb_crawl::status::Status;
use rhumb_crawl::{CrawlError, End, Engine, Settings};
use rhumb_store::StoreError;
use rhumb_store::disk::{DirLock, Disk, RealDisk};
use tokio::sync::watch;

use super::open_crawl;
use crate::cli::CrawlArgs;
use crate::config::{Config, FILE, FORMAT, Key};
use crate::display::{self, Display, Figures};
use crate::links::keeper::Keeper;
use crate::links::whole::known_ranks;
use crate::memory::Shares;
use crate::search::keeper::Keeper as IndexKeeper;
use crate::search::{self, fold};
use crate::{Exit, files, out, usage};

/// Crawls, and tells people or machines how it went.
pub fn run(args: &CrawlArgs, json: bool) -> Result<Exit> {
    let plan = Plan::make(args)?;
    let quiet = args.quiet || json;
    let dir = plan.dir.clone();
    let (end, status) = plan.carry_out(!quiet)?;
    if json {
        out::json(&status)?;
    } else {
        tell(end, &status, &dir)?;
    }
    Ok(match end {
        End::Interrupted => Exit::Interrupted,
        _ if status.sources.iter().any(|s| s.troubles > 0) => Exit::Look,
        End::Finished | End::Limit if status.pages == 0 => Exit::Look,
        End::Finished | End::Limit => Exit::Done,
    })
}

fn tell(end: End, status: &Status, dir: &Path) -> Result<()> {
    let shown = out::shell(dir);
    let figures = Figures::of(status)?;
    let headline = match end {
        End::Finished => match display::held(&figures) {
            Some(held) => format!("Finished; {held}. To try them: rhumb crawl --dir {shown}"),
            None => "Finished: nothing is left to visit.".to_string(),
        },
        End::Limit => format!("Stopped at the limit. To go on with a higher one: rhumb crawl --dir {shown} --limit N"),
        End::Interrupted => format!("Interrupted. To go on: rhumb crawl --dir {shown}"),
    };
    out::line(&headline)?;
    out::line(&display::summary(&figures))?;
    let troubles: u64 = status.sources.iter().map(|s| s.troubles).sum();
    if troubles > 0 {
        out::line(&format!(
            "{} of the archives could not be used.",
            if troubles == 1 { "1 record".to_string() } else { format!("{} records", display::thousands(troubles)) }
        ))?;
    }
    if status.pages == 0 && !status.sources.is_empty() {
        out::line("No page was found in the archives.")?;
    } else if status.pages == 0 {
        let saw = |names: &[&str]| {
            names.iter().any(|name| status.outcomes.contains_key(name) || status.held.contains_key(name))
        };
        let hint = if saw(&["blocked_address"]) {
            "No page was fetched: the address is not globally routable. If it is yours, allow it with --allow-net."
        } else if saw(&["robots_disallowed"]) {
            "No page was fetched: robots.txt forbids it."
        } else if saw(&["no_host", "dns_failed"]) {
            "No page was fetched: the name could not be resolved. `rhumb dns NAME` tries it again."
        } else if saw(&["robots_unreachable", "no_answer", "refused", "connect_timeout"]) {
            "No page was fetched: the host did not answer. `rhumb fetch URL` tries it again."
        } else {
            "No page was fetched. `rhumb explain DIR URL` tells what happened to a URL."
        };
        out::line(hint)?;
    }
    out::line(&format!("Everything is in {shown}. Look at it with:"))?;
    out::line(&format!("  rhumb status {shown}"))?;
    if dir.join("index").is_dir() {
        out::line(&format!("  rhumb search {shown} WORDS"))?;
        out::line(&format!("  rhumb serve {shown}"))?;
    }
    if dir.join("archive").is_dir() {
        out::line(&format!("  rhumb warc ls {shown}"))?;
    }
    out::line(&format!("  rhumb explain {shown} URL"))
}

/// Everything that was typed, checked; nothing is touched yet.
pub struct Plan {
    pub dir: PathBuf,
    config: Config,
    seeds: Vec<Url>,
    /// Archives of others, to be read instead of fetching.
    sources: Vec<String>,
    resumed: bool,
    /// Whether people are told what begins.
    announced: bool,
}

impl Plan {
    /// Checks everything before anything is written.
    pub fn make(args: &CrawlArgs) -> Result<Plan> {
        let (mut seeds, mut sources) = (Vec::new(), Vec::new());
        for text in &args.seeds {
            match Registry::default().sources(text) {
                None => seeds.push(seed(text)?),
                Some(Ok(found)) => sources.extend(found),
                Some(Err(e)) => return Err(usage(format!("{text:?} cannot be read: {e}"))),
            }
        }
        if !seeds.is_empty() && !sources.is_empty() {
            return Err(usage("a crawl either fetches or reads archives: name URLs or warc:PATH, not both"));
        }
        let dir = match (&args.dir, seeds.first(), sources.first()) {
            (Some(dir), ..) => dir.clone(),
            (None, Some(first), _) => PathBuf::from(directory_name(first)),
            (None, None, Some(first)) => PathBuf::from(archive_directory_name(first)),
            (None, None, None) => {
                return Err(usage(
                    "name at least one seed, or a crawl directory to resume: rhumb crawl SEED… [--dir DIR]",
                ));
            }
        };
        if dir.exists() && !dir.is_dir() {
            return Err(usage(format!("{} is a file, not a directory", dir.display())));
        }
        let existing = Config::of_directory(&dir)?;
        let resumed = existing.is_some();
        if !resumed && seeds.is_empty() && sources.is_empty() {
            return Err(usage(format!("{} is not a crawl directory; to start one, name a seed", dir.display())));
        }
        if !resumed && dir.is_dir() && !is_as_good_as_empty(&dir) {
            return Err(usage(format!(
                "{} is not empty and not a crawl directory; name another one with --dir",
                dir.display()
            )));
        }
        // A directory keeps the key it was made with, whatever the settings; one that was made without goes on without.
        let key = existing.as_ref().map_or_else(|| Some(Key::random()), |config| config.key);
        let mut config = existing.unwrap_or_default();
        if let Some(file) = &args.config {
            config = Config::read(file).map_err(|e| usage(format!("{e:#}")))?;
        }
        config.key = key;
        apply(args, &mut config);
        config.format = Some(FORMAT);
        config.settings().map_err(|e| usage(format!("{e:#}")))?;
        Ok(Plan { dir, config, seeds, sources, resumed, announced: true })
    }

    /// A plan made by the program itself.
    pub fn new(dir: PathBuf, mut config: Config, seeds: Vec<Url>) -> Plan {
        config.format = Some(FORMAT);
        config.key = Some(Key::random());
        Plan { dir, config, seeds, sources: Vec::new(), resumed: false, announced: false }
    }

    fn announce(&self) {
        let verb = if self.resumed { "Resuming" } else { "Crawling into" };
        out::note(&format!("{verb} {}; Ctrl-C stops it, the same command goes on.", self.dir.display()));
        let delay = self.config.politeness.delay;
        if delay.ms() == 0 {
            out::note("Waiting between requests is off (--delay 0s): only for servers of your own.");
        }
    }

    /// Runs the crawl to its end.
    pub fn carry_out(self, live: bool) -> Result<(End, Status)> {
        let settings = self.config.settings().map_err(|e| usage(format!("{e:#}")))?;
        if files::limit() < files::MIN {
            bail!("only {} files may be open at once, {} are needed: raise it (ulimit -n)", files::limit(), files::MIN);
        }
        std::fs::create_dir_all(&self.dir).with_context(|| format!("cannot make {}", self.dir.display()))?;
        let _lock = DirLock::take(&self.dir)?;
        // Before the log is replayed, which may take its time.
        let (stop, stopped) = watch::channel(false);
        stop_on_signal(move || {
            // Nobody listens any more when the crawl is over and the program is not.
            if stop.send(true).is_ok() {
                display::stopping();
            }
        })?;
        self.config.use_key();
        let text = self.config.to_file()?;
        let disk = RealDisk::new(&self.dir);
        if disk.read(FILE).ok().as_deref() != Some(text.as_bytes()) {
            disk.replace(FILE, text.as_bytes())?;
        }
        let fewer = (settings.workers < self.config.crawl.workers).then_some(settings.workers);
        if let Some(workers) = fewer {
            let (limit, wanted) = (files::limit(), self.config.crawl.workers);
            out::note(&format!(
                "rhumb: {workers} workers instead of {wanted}: only {limit} files may be open (ulimit -n)"
            ));
        }
        if self.config.changed {
            out::note(&format!("rhumb: {}", Config::changed_note()));
        }
        let mut mended = false;
        loop {
            match self.go(live, disk.clone(), settings.clone(), stopped.clone())? {
                // Found while it was being read. All of it can be made anew, so nobody need come and start it again.
                Err(CrawlError::Store(e)) if e.is_in_derived_state() && !mended => {
                    out::note(&format!("rhumb: {e}; the state is made anew from the log"));
                    mended = true;
                }
                Err(CrawlError::Store(e)) => {
                    return Err(anyhow::anyhow!(
                        "{e}; nothing was lost: free the cause and run the same command again"
                    ));
                }
                ended => return Ok(ended?),
            }
        }
    }

    /// A directory holds pages of the network or of archives: what is known of hosts and what is waiting would mean nothing beside the other.
    fn keep_apart(&self, engine: &Engine) -> Result<()> {
        let crawl = engine.crawl();
        let (reads, fetches) = (!crawl.readings.is_empty(), !crawl.seeds.is_empty());
        if reads && !self.seeds.is_empty() || fetches && !self.sources.is_empty() {
            let what = if reads { "was made from archives" } else { "fetches from seeds" };
            return Err(usage(format!("the crawl in {} {what}; name another one with --dir", self.dir.display())));
        }
        Ok(())
    }

    /// Opens the crawl and runs it once. The outer error is one of opening.
    fn go(
        &self,
        live: bool,
        disk: Arc<dyn Disk>,
        settings: Settings,
        stopped: watch::Receiver<bool>,
    ) -> Result<Result<(End, Status), CrawlError>> {
        let mut settings = settings;
        if self.config.storage.graph && self.resumed {
            let prioritizer = std::mem::take(&mut settings.crawl.prioritizer);
            settings.crawl.prioritizer = prioritizer.with_ranks(known_ranks(&disk));
        }
        let mut engine = open_crawl(&self.dir, disk.clone(), settings)?;
        if live && self.announced {
            self.announce();
        }
        for note in &engine.notes {
            out::note(&format!("rhumb: {note}; the state was made anew from the log"));
        }
        if engine.visits_lost > 0 {
            out::note(&format!("rhumb: {}", lost(engine.visits_lost)));
        }
        self.keep_apart(&engine)?;
        if let Err(e) = engine.add_seeds(&self.seeds).and_then(|()| engine.add_sources(&self.sources)) {
            return Ok(Err(e));
        }
        let mut told = 0;
        engine.on_trouble = Some(Box::new(move |what| {
            told += 1;
            if told <= TROUBLES_TOLD {
                out::note(&format!("rhumb: {what}"));
            }
        }));
        let keeper = self.config.storage.graph.then(|| self.keep_graph(disk.clone()));
        let indexer = self.config.storage.index.then(|| self.keep_index(disk.clone()));
        let display = live.then(|| Display::start(engine.status()));
        let ended = engine.run(stopped);
        let finished = matches!(&ended, Ok((End::Finished | End::Limit, _)));
        let mut troubles = Vec::new();
        if let Some(Some(keeper)) = keeper {
            troubles.extend(self.graph_kept(keeper, finished));
        }
        // It takes ranks from the graph, so it comes after it.
        if let Some(Some(indexer)) = indexer {
            troubles.extend(self.index_kept(indexer, &disk, finished));
        }
        // What ends the crawl itself is told alone: it is most likely the same.
        if ended.is_ok() {
            troubles.iter().for_each(|trouble| out::note(trouble));
        }
        if let Some(display) = display {
            display.finish();
        }
        Ok(ended)
    }

    fn keep_index(&self, disk: Arc<dyn Disk>) -> Option<IndexKeeper> {
        match IndexKeeper::start(&self.dir, disk, search::making(&self.config)) {
            Ok(keeper) => Some(keeper),
            Err(e) => {
                out::note(&format!("rhumb: the text index is not kept: {e}"));
                None
            }
        }
    }

    /// Ends the keeping of the index; of a crawl that is done, everything is put where it belongs. What went wrong, in words.
    fn index_kept(&self, keeper: IndexKeeper, disk: &Arc<dyn Disk>, finished: bool) -> Option<String> {
        let told = |e: &dyn std::fmt::Display| {
            let again = out::shell(&self.dir);
            Some(format!(
                "rhumb: the text index could not be kept: {e}; it is made from the log by: rhumb search {again} WORD"
            ))
        };
        match keeper.finish() {
            Err(_) => return told(&"it met something unexpected"),
            Ok(Err(e)) => return told(&e),
            Ok(Ok(())) => {}
        }
        if !finished {
            return None;
        }
        let settled = match fold::lock(&self.dir) {
            Ok(_lock) => search::settle(&self.dir, disk, &search::making(&self.config)),
            // Somebody who searches does it, or the next one will.
            Err(StoreError::Locked(_)) => return None,
            Err(e) => Err(e.into()),
        };
        settled.err().and_then(|e| told(&format!("{e:#}")))
    }

    fn keep_graph(&self, disk: Arc<dyn Disk>) -> Option<Keeper> {
        // The other half is for writing them down.
        let memory = Shares::of(self.config.crawl.memory).graph / 2;
        match Keeper::start(&self.dir, disk, memory) {
            Ok(keeper) => Some(keeper),
            Err(e) => {
                out::note(&format!("rhumb: the link graph is not kept: {e}"));
                None
            }
        }
    }

    /// Waits for the graph to be written. That it cannot be is no reason to call the crawl failed, only to say so: the log has everything.
    fn graph_kept(&self, keeper: Keeper, finished: bool) -> Option<String> {
        let trouble = match keeper.finish(finished) {
            Ok(Ok(())) => return None,
            Ok(Err(e)) => e.to_string(),
            Err(_) => "a thread panicked; this is a fault in rhumb, please report it".to_string(),
        };
        let dir = out::shell(&self.dir);
        Some(format!(
            "rhumb: the link graph was not kept: {trouble}; it can be made from the log: rhumb graph build {dir}"
        ))
    }
}

/// So many lines are told about what cannot be used of archives; all are counted.
const TROUBLES_TOLD: usize = 20;

/// What a power loss took, for people.
pub fn lost(visits: u64) -> String {
    format!("the end of the archive never reached the disk; visits made again because of that: {visits}")
}

/// Whether there is nothing in a directory but what a start that was killed at once leaves behind.
fn is_as_good_as_empty(dir: &Path) -> bool {
    let ours = ["lock".to_string(), format!("{FILE}.tmp")];
    dir.read_dir().is_ok_and(|mut entries| {
        entries.all(|e| e.is_ok_and(|e| ours.iter().any(|name| e.file_name() == name.as_str())))
    })
}

/// Calls `stop` on Ctrl-C or SIGTERM. A second one ends the process at once, as a crash would: also harmless.
pub(super) fn stop_on_signal(stop: impl Fn() + Send + 'static) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the runtime")?;
    let (mut interrupt, mut terminate) = {
        use tokio::signal::unix::{SignalKind, signal};
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt()).context("listen for Ctrl-C")?,
            signal(SignalKind::terminate()).context("listen for SIGTERM")?,
        )
    };
    let listen = move || {
        runtime.block_on(async {
            for second in [false, true] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if second {
                    std::process::exit(4);
                }
                stop();
            }
        });
    };
    std::thread::Builder::new().name("signals".to_string()).spawn(listen).context("start a thread")?;
    Ok(())
}

/// What was typed overrides what was written.
fn apply(args: &CrawlArgs, config: &mut Config) {
    fn set<T: Clone>(from: &Option<T>, into: &mut T) {
        if let Some(value) = from {
            *into = value.clone();
        }
    }
    let (c, p) = (&mut config.crawl, &mut config.politeness);
    set(&args.scope, &mut c.scope);
    set(&args.workers, &mut c.workers);
    set(&args.threads, &mut c.threads);
    set(&args.memory, &mut c.memory);
    set(&args.agent, &mut c.agent);
    set(&args.delay, &mut p.delay);
    set(&args.per_ip, &mut p.per_ip);
    c.limit = args.limit.or(c.limit);
    c.depth = args.depth.or(c.depth);
    c.max_time = args.max_time.or(c.max_time);
    for (from, into) in
        [(&args.include, &mut c.include), (&args.exclude, &mut c.exclude), (&args.allow_net, &mut config.net.allow)]
    {
        if !from.is_empty() {
            into.clone_from(from);
        }
    }
    if !args.dns.is_empty() {
        config.dns.servers.clone_from(&args.dns);
    }
    c.continuous |= args.continuous;
    config.storage.archive &= !args.no_archive;
    config.crawl.sitemaps &= !args.no_sitemaps;
    config.storage.index &= !args.no_index;
    config.storage.graph &= !args.no_graph;
}

/// A seed as people type it. What exists as a file or directory is meant as that.
pub fn seed(text: &str) -> Result<Url> {
    let normalizer = Normalizer::default();
    let path = Path::new(text);
    if let Ok(real) = path.canonicalize() {
        return local(&file::url_of(&real, real.is_dir()), text);
    }
    if path.is_absolute() || text.starts_with("./") || text.starts_with("../") {
        return Err(usage(format!("{text:?} cannot be a seed: there is no such file or directory")));
    }
    if text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:")) {
        return local(text, text);
    }
    let parsed = normalizer.normalize(text, None).or_else(|e| match e {
        // `example.org` and `localhost:8080` are meant as web addresses.
        UrlError::NoBase | UrlError::Scheme(_) if !text.contains("://") && !text.starts_with("mailto:") => {
            normalizer.normalize(&format!("http://{text}"), None)
        }
        other => Err(other),
    });
    parsed.map_err(|e| usage(format!("{text:?} cannot be a seed: {e}")))
}

/// A `file:` URL. A directory is one with a slash at its end, whether it was typed or not: what it opens depends on it.
fn local(url: &str, typed: &str) -> Result<Url> {
    let refused = |e: &dyn std::fmt::Display| usage(format!("{typed:?} cannot be a seed: {e}"));
    let url = Normalizer::default().normalize(url, None).map_err(|e| refused(&e))?;
    let is_dir = file::path_of(url.path()).is_some_and(|path| path.is_dir());
    if is_dir && !url.path().ends_with('/') {
        return Url::parse(&format!("{url}/")).map_err(|e| refused(&e));
    }
    Ok(url)
}

/// The directory for pages of an archive.
fn archive_directory_name(source: &str) -> String {
    let name = source.rsplit('/').next().unwrap_or_default();
    let stem = [".warc.gz", ".warc"].into_iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let plain: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' }).collect();
    let plain = plain.trim_start_matches('.');
    format!("{}.crawl", if plain.is_empty() { "archive" } else { plain })
}

/// The directory for a crawl that was not given one: a plain file name, whatever the host or path.
fn directory_name(seed: &Url) -> String {
    let last = seed.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = if seed.rules().has_authority { seed.host_str() } else { last };
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' }).collect();
    let plain = plain.trim_start_matches('.');
    let plain = if plain.is_empty() { "files" } else { plain };
    let usual = [80, 443, seed.rules().default_port].contains(&seed.port());
    let port = if usual { String::new() } else { format!("_{}", seed.port()) };
    format!("{plain}{port}.crawl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_as_people_type_them() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(seed(text).ok().map(|u| u.as_str().to_string()).as_deref(), expected, "{text}");
        };
        check("https://Example.org", Some("https://example.org/"));
        check("example.org/a?b", Some("http://example.org/a?b"));
        check("localhost:8080", Some("http://localhost:8080/"));
        check("127.0.0.1:99/x", Some("http://127.0.0.1:99/x"));
        check("ftp://example.org/", None);
        check("mailto:a@b.c", None);
        check("http://", None);
        check("", None);
        check("file:///no/such/dir", Some("file:///no/such/dir"));
        check("file://elsewhere/x", None);
        check("/no/such/dir", None);
        check("./no-such-dir", None);
        let here = std::env::current_dir().expect("a directory").canonicalize().expect("it is there");
        check(".", Some(&file::url_of(&here, true)));
        check("Cargo.toml", Some(&file::url_of(&here.join("Cargo.toml"), false)));
        check(&format!("file://{}", here.display()), Some(&file::url_of(&here, true)));
    }

    #[test]
    fn directory_names_are_file_names() {
        let check = |url: &str, expected: &str| assert_eq!(directory_name(&seed(url).expect(url)), expected);
        check("http://a.example/x", "a.example.crawl");
        check("http://[::1]:8080/", "___1__8080.crawl");
        check("file:///a/../..", "files.crawl");
        check("file:///no/d%2e%20x/", "d._20x.crawl");
    }
}
