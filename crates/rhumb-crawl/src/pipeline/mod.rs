//! One visit, step by step: fetch → record → redirect or robots or page (decode, parse, route) → archive.
//!
//! The frontier has resolved the name and judged robots.txt before a visit is issued; what happens here touches only
//! this visit. The result goes back to the engine, which commits it. `read.rs` is about what an answer says, `keep.rs` about what is archived of it.

mod keep;
mod read;

use std::sync::{Arc, Mutex, RwLock};

use rhumb_core::filter::Filter;
use rhumb_core::outcome::Outcome;
use rhumb_core::page::coding::{self, CodingProblem, DecodeLimits, Decoded};
use rhumb_core::page::{Body, Extractor, Format, Formats, Gist, Obedience, Page, PageText, ParseOptions};
use rhumb_core::robots::ROBOTS_BYTES_MAX;
use rhumb_core::seen::{Archived, Sketcher};
use rhumb_core::url::{Host, Normalizer};
use rhumb_core::visit::{Purpose, Validators, Visit, VisitRecord};
use rhumb_store::warc::{RecordIds, RecordWriter, Truncated};
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::fetch::budget::Held;
use crate::fetch::{Fetched, Request};
use crate::protocol::Protocols;
use crate::settings::Stages;
use crate::templates::Templates;

use keep::{may_be_kept, write_records};
use read::{add_detail, follow_redirect, name_sitemaps, read_page, read_sitemap};

/// Larger bodies are handled on the pool of blocking threads, so that they hold nobody up.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// So are those that become larger than this when decoded.
const INLINE_DECODED_MAX: usize = 2 << 20;

/// Buffers that have seen a larger body are not kept.
const USUAL_BYTES_MAX: usize = 256 << 10;

/// Pages of slow formats that are read at once; a format may have a narrower bound of its own.
pub(crate) const SLOW_AT_ONCE: usize = 4;

/// Everything a visit needs, shared by the visits of one thread.
pub struct Tools {
    /// Fetches.
    pub protocols: Protocols,
    /// Tells the time.
    pub clock: Clock,
    /// Makes URLs canonical.
    pub normalizer: Normalizer,
    /// Says which links are wanted; replaced when a seed's redirect opens the scope.
    pub filter: Arc<RwLock<Arc<Filter>>>,
    /// Says which bodies are archived already.
    pub seen: Arc<Mutex<Archived>>,
    /// Caps of decoding.
    pub decode: DecodeLimits,
    /// What is taken out of a page.
    pub parse: ParseOptions,
    /// What kinds of documents are read.
    pub formats: Formats,
    /// Whether the gist of each page is taken, for what is learned of traps.
    pub gists: bool,
    /// Redirects in a row that are followed.
    pub redirects_max: u8,
    /// Whether sitemaps are followed: those that a robots.txt names, otherwise the one in the usual place.
    pub sitemaps: bool,
    /// Which of the directives of pages are obeyed.
    pub obey: Obedience,
    /// Whether pages are archived.
    pub archive: bool,
    /// Whether the log holds what pages say.
    pub said: bool,
    /// What the pages of each site have in common.
    pub templates: Mutex<Templates>,
    /// Buffers in use again and again.
    pub scratch: Mutex<Vec<Scratch>>,
    /// Where record ids come from.
    pub ids: Mutex<RecordIds>,
    /// Leave to handle a large body, of which there are few: each may need several times its size meanwhile.
    pub large: Arc<Semaphore>,
    /// Leave to read a page of a format that takes its time.
    pub slow: Arc<Semaphore>,
    /// What is done at all.
    pub stages: Stages,
}

/// Memory that a visit borrows.
pub struct Scratch {
    extractor: Extractor,
    page: Page,
    sketcher: Sketcher,
    said: PageText,
    packed: Vec<u8>,
    writer: RecordWriter,
}

impl Scratch {
    fn new(stages: Stages) -> Scratch {
        Scratch {
            extractor: Extractor::default(),
            page: Page::default(),
            sketcher: Sketcher::default(),
            said: PageText::default(),
            packed: Vec::new(),
            writer: RecordWriter::new(i32::from(stages.gzip)),
        }
    }
}

/// A visit that is over and waits to be committed.
pub struct Finished {
    /// What the log will hold.
    pub record: Box<VisitRecord>,
    /// What the archive will hold.
    pub archive: Vec<u8>,
    /// Bytes of its first record, the response.
    pub archive_first: u32,
    /// What the page says, in a few phrases; nothing if it is no page.
    pub gist: Option<Gist>,
    /// Who was visited.
    pub host: Host,
    /// Whether the connection is still open.
    pub kept: bool,
    /// The memory that this waits in; given back when it is committed and dropped.
    pub held: Held,
}

/// Carries out one visit.
pub async fn visit(visit: Box<Visit>, tools: &Arc<Tools>) -> Finished {
    let body_bytes_max = if visit.purpose.is_page() { usize::MAX } else { ROBOTS_BYTES_MAX };
    let entry = &visit.entry;
    let request =
        Request { url: &entry.url, addresses: &visit.addresses, validators: &entry.validators, body_bytes_max };
    let fetched = tools.protocols.fetch(&visit.host, request).await;
    finish(visit, fetched, tools).await
}

/// What follows a fetch, or stands in for it when somebody else fetched.
pub(crate) async fn finish(visit: Box<Visit>, fetched: Fetched, tools: &Arc<Tools>) -> Finished {
    let host = visit.host.clone();
    let kept = fetched.kept;
    let small = fetched.body.len() <= INLINE_BYTES_MAX;
    let mut work = Work { visit, fetched, page: None };
    let mut understood = match small {
        true => understand(&mut work, tools, INLINE_DECODED_MAX),
        false if is_slow(&work, &work.fetched.body, tools) => Err(Elsewhere::Slow),
        false => Err(Elsewhere::Large),
    };
    if let Err(Elsewhere::Slow) = understood {
        let leave = tools.slow.clone().acquire_owned().await.expect("nobody closes it");
        let shared = tools.clone();
        work = on_pool(move || {
            let work = read_slowly(work, &shared);
            drop(leave);
            work
        })
        .await;
        understood = if small { understand(&mut work, tools, INLINE_DECODED_MAX) } else { Err(Elsewhere::Large) };
    }
    let (understood, mut held) = match understood {
        Ok(understood) => (understood, work.fetched.held),
        Err(_) => {
            let leave = tools.large.clone().acquire_owned().await.expect("nobody closes it");
            let tools = tools.clone();
            on_pool(move || {
                let understood = understand(&mut work, &tools, usize::MAX);
                drop(leave);
                (understood.unwrap_or_else(|_| panic!("there is no bound to exceed")), work.fetched.held)
            })
            .await
        }
    };
    let Understood { record, archive, archive_first, gist } = understood;
    held.shrink_to(archive.capacity() + record.memory_bytes());
    Finished { record, archive, archive_first, gist, host, kept, held }
}

/// Does something that takes long where nobody waits for it.
async fn on_pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| panic!("{e}"))
}

/// A visit whose answer is here.
struct Work {
    visit: Box<Visit>,
    fetched: Fetched,
    /// What is on the page, if that was read already.
    page: Option<Box<Page>>,
}

/// Why an answer cannot be understood where it is.
enum Elsewhere {
    /// Its body is large, or becomes large.
    Large,
    /// Its format takes its time.
    Slow,
}

struct Understood {
    record: Box<VisitRecord>,
    archive: Vec<u8>,
    archive_first: u32,
    gist: Option<Gist>,
}

/// What a response means: the record for the log and the bytes for the archive; or that this is not the place for it, if
/// `decoded_bytes_max` bounds what is handled here.
fn understand(work: &mut Work, tools: &Tools, decoded_bytes_max: usize) -> Result<Understood, Elsewhere> {
    let read = work.page.take();
    let (visit, fetched) = (&*work.visit, &work.fetched);
    let mut record = Box::new(begin_record(visit, fetched, tools.clock));
    let body = match (record.outcome, &visit.purpose) {
        (Outcome::Ok, Purpose::Robots { .. }) => Some(decoded(fetched, tools, decoded_bytes_max)),
        (Outcome::Ok, Purpose::Page) if tools.stages.extract => Some(decoded(fetched, tools, decoded_bytes_max)),
        _ => None,
    };
    let body = match body {
        Some(None) => {
            work.page = read;
            return Err(Elsewhere::Large);
        }
        body => body.flatten(),
    };
    if let Some(body) = &body {
        note_coding(&mut record, body);
    }
    let body = body.map(|decoded| decoded.body);
    let page = body.as_deref().filter(|_| visit.purpose.is_page() && visit.entry.sitemap.is_none());
    let page = page.map(|bytes| as_body(visit, fetched, bytes, tools));
    let is_inline = decoded_bytes_max <= INLINE_DECODED_MAX;
    if is_inline && read.is_none() && page.as_ref().and_then(|page| tools.formats.of(page)).is_some_and(Format::is_slow)
    {
        return Err(Elsewhere::Slow);
    }
    let scratch = tools.scratch.lock().expect("nobody panics while borrowing buffers").pop();
    let mut scratch = scratch.unwrap_or_else(|| Scratch::new(tools.stages));
    let mut gist = None;
    match (record.outcome, &visit.purpose) {
        (Outcome::Redirect, _) => follow_redirect(&mut record, fetched, tools),
        // Half a file may lack the half that forbids: it is as if there was no answer.
        (Outcome::Ok, Purpose::Robots { .. }) if fetched.cut == Some(Truncated::Disconnect) => {
            record.outcome = Outcome::Reset;
        }
        (Outcome::Ok, Purpose::Robots { .. }) if fetched.cut == Some(Truncated::Time) => {
            record.outcome = Outcome::BodyTimeout;
        }
        (Outcome::Ok, Purpose::Robots { .. }) => {
            record.robots = body.as_deref().map(Into::into);
            if tools.sitemaps {
                name_sitemaps(&mut record, body.as_deref().unwrap_or_default(), tools);
            }
        }
        (Outcome::Ok, Purpose::Page) => {
            if let (Some(body), Some(level)) = (&body, record.entry.sitemap) {
                read_sitemap(&mut record, body, level, tools);
            } else if let Some(page) = &page {
                gist = Some(read_page(&mut record, page, read, fetched, tools, &mut scratch));
            }
        }
        _ => {}
    }
    let is_usual = body.as_ref().is_none_or(|body| body.len() <= USUAL_BYTES_MAX);
    drop(body);
    let mut archive = Vec::new();
    let mut archive_first = 0;
    // What is no machine of others sets no traps.
    let gist = gist.filter(|_| record.entry.url.rules().polite);
    let is_archived = if record.entry.url.is_web() { !fetched.head.is_empty() } else { record.outcome == Outcome::Ok };
    if tools.archive && fetched.status != 0 && is_archived && may_be_kept(&record, tools) {
        archive_first = write_records(&mut record, fetched, tools, &mut scratch.writer, &mut archive);
    }
    // What a huge page made of the buffers is given back.
    if is_usual {
        tools.scratch.lock().expect("nobody panics while borrowing buffers").push(scratch);
    }
    Ok(Understood { record, archive, archive_first, gist })
}

fn as_body<'a>(visit: &'a Visit, fetched: &'a Fetched, bytes: &'a [u8], tools: &Tools) -> Body<'a> {
    let body = Body::new(bytes, fetched.header("content-type"), tools.parse.nosniff);
    Body { url: Some(visit.entry.url.as_str()), ..body }
}

/// Whether these bytes are a page in a format that takes its time.
fn is_slow(work: &Work, bytes: &[u8], tools: &Tools) -> bool {
    let is_page =
        work.fetched.outcome == Outcome::Ok && work.visit.purpose.is_page() && work.visit.entry.sitemap.is_none();
    let body = as_body(&work.visit, &work.fetched, bytes, tools);
    is_page && tools.stages.extract && tools.formats.of(&body).is_some_and(Format::is_slow)
}

/// Reads a page of a slow format, in memory of its own: what others share is not kept from them meanwhile.
fn read_slowly(mut work: Work, tools: &Tools) -> Work {
    if let Some(decoded) = decoded(&work.fetched, tools, usize::MAX) {
        let mut extractor = Extractor::new();
        if tools.gists {
            extractor.want_gist(&work.visit.entry.url);
        }
        let mut page = Box::<Page>::default();
        let body = as_body(&work.visit, &work.fetched, &decoded.body, tools);
        tools.formats.read_into(&body, &mut extractor, &tools.parse, &mut page);
        work.page = Some(page);
    }
    work
}

fn begin_record(visit: &Visit, fetched: &Fetched, clock: Clock) -> VisitRecord {
    let (started, ended) = match fetched.at {
        Some(at) => (at, at),
        None => (clock.at(fetched.started), clock.at(fetched.ended)),
    };
    let mut record = VisitRecord::bare(visit.entry.clone(), visit.purpose.clone(), started, ended, fetched.outcome);
    record.address = fetched.address;
    record.detail = fetched.detail.as_str().into();
    record.status = fetched.status;
    record.wire_bytes = fetched.body.len() as u64;
    record.truncated = fetched.cut.is_some();
    record.media_type = fetched.header("content-type").unwrap_or_default().into();
    if matches!(fetched.outcome, Outcome::Ok | Outcome::NotModified) {
        let text = |name| fetched.header(name).filter(|v| v.len() <= 1024).map(Into::into);
        record.validators = Validators { etag: text("etag"), last_modified: text("last-modified"), fetched: started };
    }
    if fetched.outcome == Outcome::RateLimited {
        record.retry_after_ms = fetched.header("retry-after").and_then(|v| retry_after_ms(v, ended));
    }
    record
}

/// `Retry-After` as seconds or as a date; nonsense is as if it was not there.
pub(crate) fn retry_after_ms(value: &str, now: rhumb_core::Timestamp) -> Option<u64> {
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // A number beyond all bounds is meant to be long.
        return Some(value.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    let at_ms = at.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as u64;
    at_ms.checked_sub(now.0)
}

/// The body without its codings; `None` if it is larger than `bytes_max` and may be.
fn decoded<'a>(fetched: &'a Fetched, tools: &Tools, bytes_max: usize) -> Option<Decoded<'a>> {
    let codings = fetched.header("content-encoding").unwrap_or_default();
    let decoded_bytes_max = tools.decode.decoded_bytes_max.min(bytes_max);
    let decoded = coding::decode(codings, &fetched.body, &DecodeLimits { decoded_bytes_max, ..tools.decode });
    let too_large = matches!(decoded.problem, Some(CodingProblem::Cut { .. }));
    if too_large && decoded_bytes_max < tools.decode.decoded_bytes_max { None } else { Some(decoded) }
}

/// What was wrong with a body's codings, for the log. A body of which nothing can be read is no page.
fn note_coding(record: &mut VisitRecord, decoded: &Decoded<'_>) {
    let Some(problem) = &decoded.problem else { return };
    add_detail(record, &problem.to_string());
    if decoded.is_unreadable() {
        record.outcome = Outcome::BadCoding;
    } else {
        record.truncated |= problem.is_loss();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::Timestamp;

    #[test]
    fn retry_after() {
        let now = Timestamp(1_000_000_000_000);
        let check = |value, expected| assert_eq!(retry_after_ms(value, now), expected, "{value}");
        check("120", Some(120_000));
        check("0", Some(0));
        check("soon", None);
        check("-5", None);
        check("99999999999999999999", Some(u64::MAX));
        check("Sun, 09 Sep 2001 01:47:40 GMT", Some(60_000));
        check("Sun, 09 Sep 2001 01:40:40 GMT", None);
    }
}
