//! PDF: a format whose work is done in another process, because no reader of PDF can be trusted with our memory and our time.
//!
//! [`Pdf`] starts a child for each document, by default the program itself with a command that people do not see. The child bounds
//! its own memory and processor time before it looks at a byte; here the clock is kept and the child is ended when its time is over. What
//! it says comes in parts, one line of JSON each ([`PdfPart`]), so that the pages read before trouble count.
//!
//! Invariant: whatever a document does to its reader, reading ends within the bound and a little, the child is waited for, and the page
//! has a [`Page::trouble`] that names what happened. No more children run at once than [`PdfConfig::children_max`].
//!
//! This format is added from outside the core, as anybody's could be.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use rhumb_core::page::format::Reader;
use rhumb_core::page::{Body, Format, LinkTag, MediaKind, Page};
use serde::{Deserialize, Serialize};

/// How PDFs are read.
#[derive(Clone, Debug)]
pub struct PdfConfig {
    /// The program that reads one from its standard input.
    pub program: PathBuf,
    /// What it is started with, before the bounds: `--memory BYTES --time SECONDS`.
    pub arguments: Vec<OsString>,
    /// How long reading one may take.
    pub time: Duration,
    /// Memory that a child may have.
    pub memory_bytes_max: u64,
    /// Children at once.
    pub children_max: usize,
}

impl PdfConfig {
    /// The program that is running, as its own child.
    pub fn own(time: Duration, memory_bytes_max: u64, children_max: usize) -> PdfConfig {
        // By this name the program is found even if its file was replaced since it was started.
        let itself = PathBuf::from("/proc/self/exe");
        let program = if itself.exists() { itself } else { std::env::current_exe().unwrap_or_else(|_| "rhumb".into()) };
        PdfConfig { program, arguments: vec!["pdf-text".into()], time, memory_bytes_max, children_max }
    }
}

/// A part of what the child says: one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PdfPart {
    /// The title, in the first part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The language, in the first part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Text of a page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Addresses that the page links to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Whether the page could not be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Why the document cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether this is the last part.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
}

/// What a child says at the most; far more than what is kept of it.
const SAID_BYTES_MAX: u64 = 64 << 20;
/// What is looked at of its complaints.
const COMPLAINT_BYTES_MAX: u64 = 8 << 10;
/// A child that has said everything is gone soon.
const LEAVING: Duration = Duration::from_millis(500);

/// See the module's header.
pub struct Pdf {
    config: PdfConfig,
    running: Mutex<usize>,
    ended: Condvar,
}

impl Pdf {
    /// A reader of PDFs.
    pub fn new(config: PdfConfig) -> Pdf {
        Pdf { config, running: Mutex::new(0), ended: Condvar::new() }
    }
}

impl Format for Pdf {
    fn name(&self) -> &'static str {
        "pdf"
    }

    fn claims(&self, body: &Body<'_>) -> bool {
        body.kind == MediaKind::Pdf
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn read(&self, body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page) {
        let turn = Turn::take(self);
        let extract = &reader.options.extract;
        let (text_bytes_max, links_max) = (extract.text_bytes_max, extract.links_max);
        let mut sink = Sink { page, text_bytes_max, links_max, parts: 0, skipped: 0, ended: false, error: None };
        let fate = run(&self.config, body.bytes, &mut sink);
        drop(turn);
        let Sink { page, ended, error, skipped, parts, .. } = sink;
        let why = match (fate, error) {
            (Fate::Ended, Some(error)) => error,
            (Fate::Ended, None) if ended && skipped == 0 => return,
            (Fate::Ended, None) if ended => {
                page.trouble = Some(format!("PDF: {skipped} pages could not be read"));
                return;
            }
            (Fate::Ended, None) => "its reader failed".to_owned(),
            (Fate::Named(why), _) => why,
        };
        page.trouble = Some(match parts {
            0 => format!("PDF not read: {why}"),
            _ => format!("PDF not read to its end: {why}"),
        });
    }
}

/// Leave to run a child.
struct Turn<'a>(&'a Pdf);

impl Turn<'_> {
    fn take(pdf: &Pdf) -> Turn<'_> {
        let mut running = pdf.running.lock().expect("nobody panics while counting");
        while *running >= pdf.config.children_max.max(1) {
            running = pdf.ended.wait(running).expect("nobody panics while counting");
        }
        *running += 1;
        Turn(pdf)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.running.lock().expect("nobody panics while counting") -= 1;
        self.0.ended.notify_one();
    }
}

/// Takes what the child says, within the bounds of a page.
struct Sink<'a> {
    page: &'a mut Page,
    text_bytes_max: usize,
    links_max: usize,
    /// Pages, and what comes before them.
    parts: usize,
    skipped: usize,
    ended: bool,
    error: Option<String>,
}

impl Sink<'_> {
    fn take(&mut self, part: PdfPart) {
        self.parts += usize::from(part.error.is_none() && !part.end);
        self.skipped += usize::from(part.skipped);
        self.ended |= part.end;
        self.error = self.error.take().or(part.error);
        self.page.title = self.page.title.take().or(part.title);
        self.page.html_lang = self.page.html_lang.take().or(part.language);
        for href in part.links {
            if self.page.links.len() < self.links_max {
                self.page.links.add(&href, "", "", LinkTag::A);
            } else {
                self.page.links_dropped += 1;
                self.page.truncated = true;
            }
        }
        // Where words stand on the paper is not what they say: lines stay, the rest is collapsed.
        for line in part.text.lines() {
            if self.page.text.len() >= self.text_bytes_max {
                self.page.truncated = true;
                return;
            }
            let before = self.page.text.len();
            for word in line.split_whitespace() {
                let gap = if self.page.text.len() == before { "\n" } else { " " };
                if !self.page.text.is_empty() {
                    self.page.text.push_str(gap);
                }
                self.page.text.push_str(word);
            }
        }
    }
}

/// How a child ended.
enum Fate {
    /// By itself.
    Ended,
    /// In a way that has a name.
    Named(String),
}

fn run(config: &PdfConfig, bytes: &[u8], sink: &mut Sink<'_>) -> Fate {
    let deadline = Instant::now() + config.time;
    let mut child = match start(config) {
        Ok(child) => child,
        Err(e) => return Fate::Named(format!("its reader could not be started: {e}")),
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (lines, heard) = mpsc::sync_channel(1);
    std::thread::scope(|threads| {
        // Each end of the child has its thread: a pipe that is full on one side must not stop the other.
        threads.spawn(move || {
            // A child that does not want to read on is free to go.
            let _ = stdin.map(|mut stdin| stdin.write_all(bytes));
        });
        let complaint = threads.spawn(move || {
            let mut complaint = Vec::new();
            let _ = stderr.map(|stderr| stderr.take(COMPLAINT_BYTES_MAX).read_to_end(&mut complaint));
            complaint
        });
        threads.spawn(move || {
            let Some(stdout) = stdout else { return };
            let mut stdout = BufReader::new(stdout.take(SAID_BYTES_MAX));
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                // What is no part is something that a library had to say.
                if let Ok(part) = serde_json::from_slice::<PdfPart>(&line)
                    && lines.send(part).is_err()
                {
                    return;
                }
                line.clear();
            }
        });
        let mut late = false;
        loop {
            match heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(part) => sink.take(part),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    late = true;
                    break;
                }
            }
        }
        let status = if late { end(&mut child, Duration::ZERO) } else { end(&mut child, LEAVING) };
        // Whoever still waits for the child's pipes is woken by its end; parts that are on their way are dropped.
        drop(heard);
        let complaint = complaint.join().unwrap_or_default();
        if late { Fate::Named("time limit".to_owned()) } else { judge(status, &complaint) }
    })
}

fn start(config: &PdfConfig) -> std::io::Result<Child> {
    let mut command = Command::new(&config.program);
    command
        .args(&config.arguments)
        .args(["--memory", &config.memory_bytes_max.to_string()])
        .args(["--time", &config.time.as_secs().saturating_add(1).to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // An allocator that reserves a gigabyte at once would be bounded by that and not by its limit.
        .env_clear()
        .env("MIMALLOC_ARENA_RESERVE", "16M");
    // The user's Ctrl-C is for us: what is under way is finished or ended by us.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Waits for a child that has `grace` to leave by itself. It is gone afterwards, and nothing is left of it.
fn end(child: &mut Child, grace: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    child.wait().ok()
}

/// What a child died of, by its status and by what the runtime says before it gives up.
fn judge(status: Option<ExitStatus>, complaint: &[u8]) -> Fate {
    let complaint = String::from_utf8_lossy(complaint);
    let named = |why: &str| Fate::Named(why.to_owned());
    if status.is_some_and(|status| status.success()) {
        return Fate::Ended;
    }
    if complaint.contains("memory allocation") {
        return named("memory limit");
    }
    if complaint.contains("overflowed its stack") {
        return named("nested too deeply");
    }
    #[cfg(unix)]
    if let Some(signal) = status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)) {
        // SIGXCPU, or SIGKILL behind it: the child's own bound was met before ours.
        const SIGKILL: i32 = 9;
        const SIGXCPU: i32 = 24;
        return match signal {
            SIGXCPU | SIGKILL => named("time limit"),
            other => Fate::Named(format!("its reader died of signal {other}")),
        };
    }
    named("its reader failed")
}

#[cfg(test)]
mod tests {
    use rhumb_core::page::{Extractor, Formats, ParseOptions};

    use super::*;

    /// Reads a document with a shell script for a child.
    fn read(script: &str, bytes: &[u8]) -> Page {
        let config = PdfConfig {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            time: Duration::from_millis(700),
            memory_bytes_max: 1 << 30,
            children_max: 1,
        };
        let mut page = Page::default();
        let body = Body::new(bytes, Some("application/pdf"), false);
        Formats::default().with(Pdf::new(config)).read_into(
            &body,
            &mut Extractor::new(),
            &ParseOptions::default(),
            &mut page,
        );
        page
    }

    #[test]
    fn whatever_the_child_does_has_a_name() {
        let check = |script: &str, text: &str, trouble: Option<&str>| {
            let began = Instant::now();
            let page = read(script, &vec![b'x'; 1 << 20]);
            assert_eq!((page.text.as_str(), page.trouble.as_deref()), (text, trouble), "{script}");
            assert!(began.elapsed() < Duration::from_secs(5), "{script}");
            assert_eq!(page.format, "pdf");
        };
        let said = r#"cat >/dev/null; echo '{"title":"T","links":["http://a.test/"]}'; echo '{"text":" a  b"}'; echo '{"text":" c"}';"#;
        check(&format!("{said} echo '{{\"end\":true}}'"), "a b\nc", None);
        check(
            &format!("{said} echo '{{\"skipped\":true}}'; echo '{{\"end\":true}}'"),
            "a b\nc",
            Some("PDF: 1 pages could not be read"),
        );
        check(said, "a b\nc", Some("PDF not read to its end: its reader failed"));
        check(&format!("{said} exec sleep 60"), "a b\nc", Some("PDF not read to its end: time limit"));
        check(
            &format!("{said} echo '{{\"end\":true}}'; exec 1>&- 2>&-; exec sleep 60"),
            "a b\nc",
            Some("PDF not read to its end: time limit"),
        );
        check("exec sleep 60", "", Some("PDF not read: time limit"));
        check("exit 3", "", Some("PDF not read: its reader failed"));
        check("cat", "", Some("PDF not read: its reader failed"));
        check("echo 'memory allocation of 5 bytes failed' >&2; kill -ABRT $$", "", Some("PDF not read: memory limit"));
        check("kill -SEGV $$", "", Some("PDF not read: its reader died of signal 11"));
        check("kill -XCPU $$", "", Some("PDF not read: time limit"));
        check("cat >/dev/null; echo '{\"error\":\"encrypted\"}'", "", Some("PDF not read: encrypted"));
        check("yes '{\"text\":\"\",\"links\":[]}'", "", Some("PDF not read to its end: time limit"));
    }

    #[test]
    fn children_take_turns() {
        let pdf = Pdf::new(PdfConfig { children_max: 2, ..PdfConfig::own(Duration::from_secs(1), 1, 2) });
        let most = Mutex::new((0, 0));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    let turn = Turn::take(&pdf);
                    let mut now = most.lock().expect("count");
                    now.0 += 1;
                    now.1 = now.0.max(now.1);
                    drop(now);
                    std::thread::sleep(Duration::from_millis(5));
                    most.lock().expect("count").0 -= 1;
                    drop(turn);
                });
            }
        });
        assert_eq!(*most.lock().expect("count"), (0, 2));
    }
}
