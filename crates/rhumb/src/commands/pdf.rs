//! `rhumb pdf-text`: the child that reads one PDF, for the crawler and for nobody else. See `rhumb_crawl::pdf` for its other end.
//!
//! Before a byte is looked at, memory, processor time and files are bounded for good. Pages are read one by one and told at once, so that
//! what breaks the library (it panics on much that it does not expect) costs the page it happens on. What the bounds end is named by
//! whoever waits for us.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context, Result};
use pdf_extract::{
    Dictionary, Document, Error, Object, ObjectId, PlainTextOutput, decode_text_string, output_doc_page,
};
use rhumb_crawl::pdf::PdfPart;
use rlimit::Resource;

use crate::Exit;

/// Pages read of one document.
const PAGES_MAX: usize = 5_000;
/// Links told of one page.
const LINKS_MAX: usize = 5_000;
/// Longest address.
const HREF_BYTES_MAX: usize = 8 << 10;
/// Longest title.
const TITLE_BYTES_MAX: usize = 4 << 10;

/// Reads standard input, tells standard output.
pub fn run(memory_bytes_max: u64, time_s: u64) -> Result<Exit> {
    bound(Resource::CORE, 0)?;
    bound(Resource::FSIZE, 0)?;
    bound(Resource::CPU, time_s)?;
    bound(Resource::AS, memory_bytes_max)?;
    // A panic is nothing that anybody should read; its page is told as skipped.
    std::panic::set_hook(Box::new(|_| {}));
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("read standard input")?;
    let mut stdout = std::io::stdout().lock();
    let mut tell = |part: &PdfPart| -> Result<()> {
        serde_json::to_writer(&mut stdout, part)?;
        stdout.write_all(b"\n")?;
        stdout.flush()?;
        Ok(())
    };
    let document = match catch_unwind(|| open(&bytes)) {
        Ok(Ok(document)) => document,
        Ok(Err(why)) => {
            tell(&PdfPart { error: Some(why), ..PdfPart::default() })?;
            return Ok(Exit::Done);
        }
        Err(_) => {
            tell(&PdfPart { error: Some("damaged".to_owned()), ..PdfPart::default() })?;
            return Ok(Exit::Done);
        }
    };
    drop(bytes);
    tell(&catch_unwind(AssertUnwindSafe(|| about(&document))).unwrap_or_default())?;
    let pages = catch_unwind(AssertUnwindSafe(|| document.get_pages())).unwrap_or_default();
    for (number, id) in pages.into_iter().take(PAGES_MAX) {
        let read = AssertUnwindSafe(|| page(&document, number, id));
        let part = catch_unwind(read).unwrap_or_else(|_| PdfPart { skipped: true, ..PdfPart::default() });
        tell(&part)?;
    }
    tell(&PdfPart { end: true, ..PdfPart::default() })?;
    Ok(Exit::Done)
}

fn bound(resource: Resource, most: u64) -> Result<()> {
    // What others set may be narrower already.
    let (_, hard) = resource.get().context("read a limit")?;
    let most = most.min(hard);
    resource.set(most, most).context("set a limit")
}

fn open(bytes: &[u8]) -> Result<Document, String> {
    let mut document = Document::load_mem(bytes).map_err(|e| match e {
        Error::InvalidPassword => "encrypted".to_owned(),
        other => format!("damaged: {}", first_line(&other.to_string())),
    })?;
    // Most documents that are encrypted open without a password.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err("encrypted".to_owned());
    }
    if document.catalog().is_err() {
        return Err("damaged: no catalog".to_owned());
    }
    Ok(document)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(120).collect()
}

/// What the document says of itself.
fn about(document: &Document) -> PdfPart {
    let text = |dictionary: Option<&Dictionary>, key: &[u8]| {
        let object = dictionary?.get(key).ok()?;
        let text = decode_text_string(document.dereference(object).ok()?.1).ok()?;
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty() && text.len() <= TITLE_BYTES_MAX).then_some(text)
    };
    let info = document.trailer.get(b"Info").ok().and_then(|info| dictionary(document, info));
    PdfPart {
        title: text(info, b"Title"),
        language: text(document.catalog().ok(), b"Lang").filter(|tag| tag.len() <= 35),
        ..PdfPart::default()
    }
}

fn page(document: &Document, number: u32, id: ObjectId) -> PdfPart {
    let mut text = String::new();
    // What was told before the trouble is worth keeping, so the writer is ours and not the library's to lose.
    let outcome =
        catch_unwind(AssertUnwindSafe(|| output_doc_page(document, &mut PlainTextOutput::new(&mut text), number)));
    let skipped = !matches!(outcome, Ok(Ok(())));
    PdfPart { text, links: links(document, id), skipped, ..PdfPart::default() }
}

/// The addresses of a page's annotations.
fn links(document: &Document, page: ObjectId) -> Vec<String> {
    let annotations = document.get_dictionary(page).ok().and_then(|page| page.get(b"Annots").ok());
    let Some(Ok((_, Object::Array(annotations)))) = annotations.map(|a| document.dereference(a)) else {
        return Vec::new();
    };
    let address = |annotation: &Object| {
        let action = dictionary(document, dictionary(document, annotation)?.get(b"A").ok()?)?;
        let uri = document.dereference(action.get(b"URI").ok()?).ok()?.1.as_str().ok()?;
        let uri = String::from_utf8_lossy(uri).trim().to_owned();
        (!uri.is_empty() && uri.len() <= HREF_BYTES_MAX).then_some(uri)
    };
    annotations.iter().filter_map(address).take(LINKS_MAX).collect()
}

/// A dictionary, directly or by reference.
fn dictionary<'a>(document: &'a Document, object: &'a Object) -> Option<&'a Dictionary> {
    document.dereference(object).ok()?.1.as_dict().ok()
}
