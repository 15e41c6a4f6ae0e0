//! The archived copies of pages, as they are shown.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use rhumb_core::page::coding::{self, DecodeLimits};
use rhumb_core::page::{self, MediaKind, PageText};
use rhumb_core::record::{Record, SkimmedPage};
use rhumb_core::seen::PageRef;
use rhumb_core::url::Fingerprint;
use rhumb_core::visit::VisitRecord;
use rhumb_crawl::Settings;
use rhumb_export::body::Bodies;
use rhumb_index::search::Snapshot;
use rhumb_store::disk::Disk;
use rhumb_store::log;

use super::answer::Cached;

/// Reads copies from the archive.
pub struct Copies {
    disk: Arc<dyn Disk>,
    bodies: Bodies,
    decode: DecodeLimits,
}

impl Copies {
    pub fn new(dir: &Path, disk: Arc<dyn Disk>, settings: &Settings) -> Copies {
        Copies { bodies: Bodies::new(dir, disk.clone()), disk, decode: settings.decode }
    }

    /// The copy of the page with this fingerprint; nothing if there is none, or none may be shown.
    pub fn of(&self, index: &Snapshot, id: u64) -> Result<Option<Cached>> {
        let Some(visit) = self.visit(index, id)? else { return Ok(None) };
        if visit.directives.noarchive.is_some() {
            return Ok(None);
        }
        let Some(own) = &visit.archived else { return Ok(None) };
        // The same body may lie where another page was archived.
        let original = match visit.duplicate_of.as_deref() {
            None => None,
            Some(url) => self.visit(index, Fingerprint::of(url).0)?.and_then(|visit| visit.archived),
        };
        let Some(capture) = self.bodies.read(own, original.as_ref()) else { return Ok(None) };
        let codings = capture.head.get("Content-Encoding").unwrap_or_default();
        let decoded = coding::decode(codings, &capture.body, &self.decode);
        let media_type = Some(&*visit.media_type).filter(|t| !t.is_empty());
        let body = page::Body::new(&decoded.body, media_type, false);
        let html = (body.kind == MediaKind::Html)
            .then(|| page::encoding::decode_html(&decoded.body, body.charset, None).0.into_owned());
        let said: PageText = visit.page_text().ok().flatten().unwrap_or_default();
        Ok(Some(Cached {
            url: visit.entry.url.as_str().to_string(),
            title: visit.title.to_string(),
            fetched: visit.ended.to_string(),
            media_type: visit.media_type.to_string(),
            text: said.text,
            html,
        }))
    }

    /// The visit that the index has of a page.
    fn visit(&self, index: &Snapshot, id: u64) -> Result<Option<Box<VisitRecord>>> {
        let Some(place) = index.visit_of(id) else { return Ok(None) };
        let Some((kind, payload)) = log::record_at(&*self.disk, PageRef(place).position())? else { return Ok(None) };
        // A log that was cut since has something else there.
        if SkimmedPage::read(&payload).is_err() {
            return Ok(None);
        }
        match Record::take(kind, &payload) {
            Ok(Record::Visited(visit)) => Ok(Some(visit)),
            _ => Ok(None),
        }
    }
}
