//! `file:`: a tree of documents on this machine, read as a web server would serve it.
//!
//! A directory is its `index.html`, or a list of what is in it (names that begin with a dot are left out); one named without a slash
//! at its end redirects to itself with one. A symbolic link redirects to what it leads to, so that every file is visited once and
//! no link leads round in circles. What cannot be had gets the status that a web server would give.
//!
//! Invariant: nothing is read that does not lie in a directory that the user named, in the moment it is opened. The path is resolved
//! first and compared with the directory; then it is opened once more, step by step from the directory's own descriptor and
//! following no link at all, so that a link put in its way meanwhile leads nowhere. Only regular files and directories are
//! read: a FIFO would block, a device might do something. The crawl's own directory is left out.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::{Instant, SystemTime};

use rhumb_core::outcome::Outcome;
use rhumb_core::url::{Host, Scheme, Url, scheme};
use rhumb_core::visit::Validators;
use rhumb_store::warc::Truncated;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::{Bounds, Fetching, Protocol};
use crate::fetch::budget::FREE_BYTES;
use crate::fetch::{Fetched, Request};

static SCHEMES: [&Scheme; 1] = [&scheme::FILE];

/// A directory with more entries is listed in part.
const ENTRIES_MAX: usize = 100_000;
const NO_HEADERS: &[(&str, &str)] = &[];
/// What stands for a directory, in this order.
const INDEX_NAMES: [&str; 2] = ["index.html", "index.htm"];

/// The files of this machine, as far as the user named them.
#[derive(Default)]
pub struct Files {
    trees: RwLock<Vec<Arc<Tree>>>,
}

/// A directory that the user named.
struct Tree {
    /// As named.
    named: PathBuf,
    /// The crawl's own directory, if there is one.
    crawl_dir: Option<PathBuf>,
}

impl Protocol for Files {
    fn schemes(&self) -> &'static [&'static Scheme] {
        &SCHEMES
    }

    fn allow(&self, seed: &Url, crawl_dir: &Path) {
        let path = seed.path();
        let Some(named) = path_of(&path[..path.rfind('/').map_or(0, |at| at + 1)]) else { return };
        let crawl_dir = crawl_dir.canonicalize().ok();
        let mut trees = self.trees.write().expect("nobody panics while adding a tree");
        if !trees.iter().any(|tree| tree.named == named) {
            trees.push(Arc::new(Tree { named, crawl_dir }));
        }
    }

    fn fetch<'a>(&'a self, _: &'a Host, request: Request<'a>, bounds: &'a Bounds) -> Fetching<'a> {
        Box::pin(self.read(request, bounds))
    }
}

/// What a path turned out to be.
enum Found {
    /// A file, open; its first bytes, if it is small.
    File { file: File, facts: Facts, body: Option<Vec<u8>> },
    /// A directory's list, and whether it is complete.
    List { html: Vec<u8>, facts: Facts, whole: bool },
    /// It is to be had under this URL.
    Elsewhere(String),
}

/// What is said of a file in the head of the answer.
struct Facts {
    media_type: Option<&'static str>,
    modified: Option<SystemTime>,
    etag: String,
}

/// It cannot be had: a status, and why.
struct Refusal(u16, String);

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        let status = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => 404,
            io::ErrorKind::PermissionDenied => 403,
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => 404,
            _ => 500,
        };
        Refusal(status, error.to_string())
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(error: rustix::io::Errno) -> Refusal {
        io::Error::from(error).into()
    }
}

impl Files {
    async fn read(&self, request: Request<'_>, bounds: &Bounds) -> Fetched {
        let started = Instant::now();
        let bytes_max = bounds.body_bytes_max(&request);
        let path = request.url.path().to_string();
        let trees = self.trees.read().expect("nobody panics while adding a tree").clone();
        // A disk may be slow, or far away.
        let found = blocking(move || find(&trees, &path, bytes_max)).await;
        let mut held = bounds.budget.hold();
        let (facts, body, cut) = match found {
            Ok(Found::Elsewhere(location)) => {
                return Fetched::answer(started, 301, &[("location", &location)], Vec::new(), held);
            }
            Err(Refusal(status, why)) => {
                let mut fetched = Fetched::answer(started, status, NO_HEADERS, Vec::new(), held);
                fetched.detail = why;
                return fetched;
            }
            Ok(Found::File { facts, .. } | Found::List { facts, .. }) if is_unchanged(request.validators, &facts) => {
                return Fetched::answer(started, 304, &headers(&facts), Vec::new(), held);
            }
            Ok(Found::List { html, facts, whole }) => {
                held.grow_to(html.len()).await;
                (facts, html, (!whole).then_some(Truncated::Length))
            }
            Ok(Found::File { facts, body: Some(body), .. }) => (facts, body, None),
            Ok(Found::File { file, facts, body: None }) => {
                let bytes = file.metadata().map_or(0, |m| m.len()).min(bytes_max as u64) as usize;
                held.grow_to(bytes).await;
                // It may grow while it is read: no further than there is memory for.
                match blocking(move || read_at_most(file, bytes)).await {
                    Ok((body, whole)) => (facts, body, (!whole).then_some(Truncated::Length)),
                    Err(e) => {
                        let mut fetched = Fetched::failed(started, Outcome::ServerError, e.to_string(), held);
                        fetched.status = 500;
                        return fetched;
                    }
                }
            }
        };
        let mut fetched = Fetched::answer(started, 200, &headers(&facts), body, held);
        fetched.cut = cut;
        fetched
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| panic!("{e}"))
}

fn headers(facts: &Facts) -> Vec<(&str, String)> {
    let mut headers = Vec::new();
    headers.extend(facts.media_type.map(|t| ("content-type", t.to_string())));
    headers.extend(facts.modified.map(|m| ("last-modified", httpdate::fmt_http_date(m))));
    headers.push(("etag", facts.etag.clone()));
    headers
}

/// Time and size tell; a date alone tells to the second.
fn is_unchanged(validators: &Validators, facts: &Facts) -> bool {
    match (&validators.etag, &validators.last_modified, facts.modified) {
        (Some(etag), ..) => **etag == *facts.etag,
        (None, Some(date), Some(modified)) => httpdate::fmt_http_date(modified) == **date,
        _ => false,
    }
}

/// The path that a URL's path names, if it can be one.
pub fn path_of(url_path: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(url_path.len());
    let mut rest = url_path.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |at: usize| (*after.get(at)? as char).to_digit(16).map(|d| d as u8);
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                let octet = high << 4 | low;
                if matches!(octet, 0 | b'/') {
                    return None;
                }
                bytes.push(octet);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// The URL of an absolute path; of a directory it ends in a slash.
pub fn url_of(path: &Path, is_dir: bool) -> String {
    let mut url = String::from("file://");
    push_escaped(path.as_os_str().as_bytes(), &mut url);
    if is_dir && !url.ends_with('/') {
        url.push('/');
    }
    url
}

/// Everything but RFC 3986's unreserved characters and the slash is escaped; it stays so when the URL is made canonical.
fn push_escaped(bytes: &[u8], into: &mut String) {
    for &b in bytes {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'/') {
            into.push(b as char);
        } else {
            into.push_str(&format!("%{b:02X}"));
        }
    }
}

/// Looks a path up in the trees, and reads it if it is small.
fn find(trees: &[Arc<Tree>], url_path: &str, bytes_max: usize) -> Result<Found, Refusal> {
    let path = path_of(url_path).ok_or_else(|| Refusal(404, "no file can have this name".to_string()))?;
    let tree = trees.iter().find(|tree| path.starts_with(&tree.named));
    let tree = tree.ok_or_else(|| Refusal(403, "it lies in no directory that was named".to_string()))?;
    let opened = tree.open(&path)?;
    let as_dir = url_path.ends_with('/');
    if opened.is_dir != as_dir || opened.path != without_slash(&path) {
        return if as_dir && !opened.is_dir {
            Err(Refusal(404, "it is a file, not a directory".to_string()))
        } else {
            Ok(Found::Elsewhere(url_of(&opened.path, opened.is_dir)))
        };
    }
    if !opened.is_dir {
        return opened.into_file(bytes_max);
    }
    for name in INDEX_NAMES {
        match tree.open(&path.join(name)) {
            Ok(index) if !index.is_dir => return index.into_file(bytes_max),
            _ => {}
        }
    }
    opened.into_list(tree.crawl_dir.as_deref(), bytes_max)
}

fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A file or directory, open.
struct Opened {
    fd: OwnedFd,
    is_dir: bool,
    /// Where it lies, links resolved, as seen from the tree's name.
    path: PathBuf,
    /// The same, as the file system sees it.
    real: PathBuf,
}

impl Tree {
    fn open(&self, path: &Path) -> Result<Opened, Refusal> {
        let top = self.named.canonicalize()?;
        let real = path.canonicalize()?;
        let outside = || Refusal(403, format!("it leads out of {}", self.named.display()));
        let inside = real.strip_prefix(&top).map_err(|_| outside())?;
        if self.crawl_dir.as_ref().is_some_and(|own| real.starts_with(own)) {
            return Err(Refusal(403, "it is the crawl's own directory".to_string()));
        }
        let step = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut fd = rustix::fs::open(&top, step | OFlags::DIRECTORY, Mode::empty())?;
        let mut components = inside.components().peekable();
        while let Some(component) = components.next() {
            let name = component.as_os_str();
            let last = components.peek().is_none();
            // Opening a device can do something, so it is looked at first; what came in between is seen below.
            if last {
                check_kind(rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)?;
            }
            let flags = if last { step } else { step | OFlags::DIRECTORY };
            fd = rustix::fs::openat(&fd, name, flags, Mode::empty())?;
        }
        let kind = check_kind(rustix::fs::fstat(&fd)?.st_mode)?;
        let path = without_slash(&self.named.join(inside));
        Ok(Opened { fd, is_dir: kind == FileType::Directory, path, real })
    }
}

fn check_kind(mode: rustix::fs::RawMode) -> Result<FileType, Refusal> {
    let what = match FileType::from_raw_mode(mode) {
        kind @ (FileType::RegularFile | FileType::Directory) => return Ok(kind),
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symbolic link that was not there a moment ago",
        _ => "something unknown",
    };
    Err(Refusal(403, format!("it is {what}, not a file")))
}

impl Opened {
    fn into_file(self, bytes_max: usize) -> Result<Found, Refusal> {
        let file = File::from(self.fd);
        let metadata = file.metadata()?;
        let facts = Facts::of(&metadata, media_type(&self.path));
        let small = metadata.len() <= FREE_BYTES.min(bytes_max) as u64;
        if !small {
            return Ok(Found::File { file, facts, body: None });
        }
        // Nothing is known of a file that says it is empty and is not (as in /proc), or that grows: it is cut where it may not go on.
        let (body, _) = read_at_most(file.try_clone()?, FREE_BYTES.min(bytes_max))?;
        Ok(Found::File { file, facts, body: Some(body) })
    }

    fn into_list(self, crawl_dir: Option<&Path>, bytes_max: usize) -> Result<Found, Refusal> {
        let mut facts = Facts::of(&File::from(self.fd.as_fd().try_clone_to_owned()?).metadata()?, None);
        facts.media_type = Some("text/html; charset=utf-8");
        let mut names: Vec<(Vec<u8>, bool)> = Vec::new();
        let mut whole = true;
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let kind = entry.file_type();
            let special =
                matches!(kind, FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice);
            let own = || crawl_dir.is_some_and(|own| self.real.join(std::ffi::OsStr::from_bytes(name)) == own);
            if name.starts_with(b".") || special || own() {
                continue;
            }
            if names.len() == ENTRIES_MAX {
                whole = false;
                break;
            }
            names.push((name.to_vec(), kind == FileType::Directory));
        }
        names.sort();
        let title = escape(&self.path.to_string_lossy());
        let mut html = format!("<!doctype html>\n<title>{title}</title>\n<h1>{title}</h1>\n<ul>\n");
        for (name, is_dir) in names {
            let slash = if is_dir { "/" } else { "" };
            let mut href = String::from("./");
            push_escaped(&name, &mut href);
            let line =
                format!("<li><a href=\"{href}{slash}\">{}{slash}</a>\n", escape(&String::from_utf8_lossy(&name)));
            if html.len() + line.len() + 8 > bytes_max {
                whole = false;
                break;
            }
            html.push_str(&line);
        }
        html.push_str("</ul>\n");
        Ok(Found::List { html: html.into_bytes(), facts, whole })
    }
}

impl Facts {
    fn of(metadata: &std::fs::Metadata, media_type: Option<&'static str>) -> Facts {
        let modified = metadata.modified().ok();
        let since = modified.and_then(|m| m.duration_since(SystemTime::UNIX_EPOCH).ok());
        let etag = format!("\"{:x}-{:x}\"", since.map_or(0, |d| d.as_nanos()), metadata.len());
        // Dates before 1970 or beyond the year 9999 cannot be written.
        let modified = modified.filter(|_| since.is_some_and(|d| d.as_secs() < 253_402_300_800));
        Facts { media_type, modified, etag }
    }
}

/// The file up to a bound, and whether that is all of it.
fn read_at_most(file: File, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut body = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut body)?;
    let whole = body.len() <= bytes_max;
    body.truncate(bytes_max);
    Ok((body, whole))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What a file is by its name. Of others the content tells.
fn media_type(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let known = MEDIA_TYPES.iter().find(|(name, _)| *name == extension);
    known.map(|(_, media_type)| *media_type)
}

const MEDIA_TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("htm", "text/html"),
    ("xhtml", "application/xhtml+xml"),
    ("xht", "application/xhtml+xml"),
    ("txt", "text/plain"),
    ("text", "text/plain"),
    ("md", "text/markdown"),
    ("markdown", "text/markdown"),
    ("rst", "text/plain"),
    ("csv", "text/csv"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("xml", "application/xml"),
    ("rss", "application/rss+xml"),
    ("atom", "application/atom+xml"),
    ("pdf", "application/pdf"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("ico", "image/x-icon"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("tar", "application/x-tar"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn paths_and_urls() {
        let check = |url_path: &str, path: Option<&str>| {
            assert_eq!(path_of(url_path), path.map(PathBuf::from), "{url_path}");
        };
        check("/a%20b/%C3%A9", Some("/a b/é"));
        check("/100%/x%zz", Some("/100%/x%zz"));
        check("/a%2Fb", None);
        check("/a%00", None);
        let strange = PathBuf::from(std::ffi::OsString::from_vec(b"/a?#%\xff/\n".to_vec()));
        let url = url_of(&strange, false);
        assert_eq!(url, "file:///a%3F%23%25%FF/%0A");
        let parsed = Url::parse(&url).expect("a URL");
        assert_eq!(path_of(parsed.path()), Some(strange));
    }

    /// While a directory is exchanged for a link to another again and again, nothing of the other is ever read.
    #[test]
    fn a_link_put_in_the_way_leads_nowhere() {
        let place = tempfile::tempdir().expect("temporary directory");
        let place = place.path().canonicalize().expect("it is there");
        let top = place.join("docs");
        std::fs::create_dir_all(top.join("real")).expect("make a directory");
        std::fs::create_dir_all(place.join("outside")).expect("make a directory");
        std::fs::write(top.join("real/page"), "inside").expect("write");
        std::fs::write(place.join("outside/page"), "outside").expect("write");
        symlink(place.join("outside"), place.join("link")).expect("link");
        let tree = Tree { named: top.clone(), crawl_dir: None };
        let stop = AtomicBool::new(false);
        let (mut read, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (real, link, away) = (top.join("real"), place.join("link"), place.join("away"));
                while !stop.load(Ordering::Relaxed) {
                    let _ = std::fs::rename(&real, &away);
                    let _ = std::fs::rename(&link, &real);
                    let _ = std::fs::rename(&real, &link);
                    let _ = std::fs::rename(&away, &real);
                }
            });
            for _ in 0..20_000 {
                match tree.open(&top.join("real/page")) {
                    Ok(opened) => {
                        let (body, _) = read_at_most(File::from(opened.fd), 100).expect("read");
                        assert_eq!(body, b"inside");
                        read += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
    }
}
