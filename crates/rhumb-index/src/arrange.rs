//! Puts every page where it belongs: links are looked at, pages are sorted into bands by how good they are, and what links say of them is
//! written beside them. SPEC I4's tiers are these bands: all but the last are the first tier.
//!
//! It is a merge of everything, so it is not done for every page: while a crawl runs, when the log has grown by half ([`Writer::is_due`]);
//! and when it rests.
//!
//! Invariant: which band a page is in, and what is known of it there, follows from the pages and links alone.

use std::sync::Arc;

use rhumb_store::disk::Disk;
use tantivy::{BitSet, DocId};

use crate::Result;
use crate::analysis::language::Lang;
use crate::late::{Gathering, LateWriter, LinkSource, PAGE_BYTES, PAGE_TEXT_BYTES};
use crate::manifest::{Listed, PartNumber};
use crate::part::{self, Part};
use crate::schema::Fields;
use crate::store::{Writer, carried_duplicates};

/// How pages are arranged.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrangement {
    /// The share of the pages that is in the first band, in the first two, and so on; the rest is the last band.
    pub shares: Vec<f64>,
    /// Fewer pages than this are one band.
    pub pages_min: u64,
    /// Memory for what links say.
    pub memory_bytes: usize,
}

impl Default for Arrangement {
    fn default() -> Arrangement {
        Arrangement { shares: vec![0.02, 0.1, 0.4], pages_min: 4_096, memory_bytes: 64 << 20 }
    }
}

/// A page on its way into a band.
struct Placed {
    part: u32,
    doc: DocId,
    id: u64,
    quality: f32,
    links: u32,
}

/// The work of arranging, which may be done on another thread while pages go on being added.
pub struct Job {
    disk: Arc<dyn Disk>,
    fields: Arc<Fields>,
    /// The parts there were, as the list had them.
    old: Vec<(Arc<Part>, Listed)>,
    numbers: Vec<PartNumber>,
    memory_bytes: usize,
    how: Arrangement,
    log_bytes: u64,
}

/// What a job made.
pub struct Arranged {
    old: Vec<(Arc<Part>, Listed)>,
    made: Vec<Listed>,
    numbers: Vec<PartNumber>,
    log_bytes: u64,
}

impl Writer {
    /// Whether so much was added since links were looked at last that they are worth another look.
    pub fn is_due(&self, log_bytes: u64) -> bool {
        let before = self.list.arranged_bytes;
        log_bytes >= (before + before / 2).max(before + (1 << 20))
    }

    /// Arranges all pages; then everything up to where the log was read is where it belongs.
    pub fn settle(&mut self, source: &mut dyn LinkSource, how: &Arrangement, log_bytes: u64) -> Result<()> {
        let arranged = self.begin_arranging(how, log_bytes)?.run(source)?;
        self.finish_arranging(arranged)?;
        self.list.is_settled = true;
        self.save()
    }

    /// Writes what is in memory and begins to arrange the pages there are. `log_bytes` is how long the log was.
    pub fn begin_arranging(&mut self, how: &Arrangement, log_bytes: u64) -> Result<Job> {
        self.flush()?;
        let numbers: Vec<PartNumber> = (0..=how.shares.len()).map(|_| self.next_number()).collect();
        self.reserved.clone_from(&numbers);
        let old = self.parts.iter().cloned().zip(self.list.parts.iter().cloned()).collect();
        let (disk, fields) = (self.disk.clone(), self.fields.clone());
        Ok(Job { disk, fields, old, numbers, memory_bytes: self.memory_bytes, how: how.clone(), log_bytes })
    }

    /// Puts what was arranged in the place of what it was made of. What happened to those pages meanwhile happens to them again.
    pub fn finish_arranging(&mut self, arranged: Arranged) -> Result<()> {
        let Arranged { old, made, numbers, log_bytes } = arranged;
        let mut parts = Vec::new();
        for listed in &made {
            parts.push(Arc::new(Part::open(self.disk.clone(), self.fields.clone(), listed)?));
        }
        let (mut dead, mut duplicates) = (Vec::new(), Vec::new());
        for (part, before) in &old {
            let Some(at) = self.list.parts.iter().position(|listed| listed.number == before.number) else { continue };
            let now = self.list.parts.remove(at);
            self.parts.remove(at);
            let id = |doc: DocId| part.columns.id.get_val(doc);
            dead.extend(now.dead.iter().filter(|doc| before.dead.binary_search(doc).is_err()).map(|doc| id(*doc)));
            let is_new = |entry: &&(DocId, u64)| before.duplicates.binary_search(entry).is_err();
            duplicates.extend(now.duplicates.iter().filter(is_new).map(|(doc, of)| (id(*doc), *of)));
        }
        for (listed, part) in made.into_iter().zip(parts) {
            let at = self.list.parts.partition_point(|known| known.number < listed.number);
            self.list.parts.insert(at, listed);
            self.parts.insert(at, part);
        }
        for (part, listed) in
            self.parts.iter().zip(&mut self.list.parts).filter(|(part, _)| numbers.contains(&part.number))
        {
            for doc in dead.iter().flat_map(|id| part.find(*id)) {
                listed.kill(doc);
            }
            for (id, of) in &duplicates {
                part.find(*id).for_each(|doc| listed.note_duplicate(doc, *of));
            }
        }
        self.reserved.clear();
        self.list.arranged_bytes = log_bytes;
        self.save()
    }
}

impl Job {
    /// Does the work.
    pub fn run(self, source: &mut dyn LinkSource) -> Result<Arranged> {
        let mut pages = self.all_pages();
        let one_look = pages.len() * PAGE_TEXT_BYTES <= self.how.memory_bytes;
        let mut gathered = Gathering::default();
        for chunk in pages.chunks_mut((self.how.memory_bytes / PAGE_BYTES).max(1)) {
            gathered = Gathering::about(chunk.iter().map(|page| page.id));
            gathered.gather(source, one_look)?;
            for page in chunk {
                page.links = gathered.of(page.id).map_or(0, |said| said.links);
            }
        }
        self.judge(&mut pages, source)?;
        let ends = band_ends(pages.len(), &self.how);
        pages.sort_unstable_by(|a, b| b.quality.total_cmp(&a.quality).then(a.id.cmp(&b.id)));
        let (mut made, mut from) = (Vec::new(), 0);
        for (band, end) in ends.into_iter().enumerate() {
            let pages = &mut pages[from..end];
            from = end;
            // As the new part has them.
            pages.sort_unstable_by_key(|page| (page.part, page.doc));
            if let Some(listed) = self.make_band(pages, band, made.is_empty())? {
                self.write_late(&listed, pages, source, one_look.then_some(&gathered))?;
                made.push(Listed { has_late: true, ..listed });
            }
        }
        Ok(Arranged { old: self.old, made, numbers: self.numbers, log_bytes: self.log_bytes })
    }

    fn all_pages(&self) -> Vec<Placed> {
        let mut pages = Vec::new();
        for (at, (part, listed)) in self.old.iter().enumerate() {
            let alive = listed.alive_set();
            for doc in (0..part.documents()).filter(|doc| alive.contains(*doc)) {
                let id = part.columns.id.get_val(doc);
                pages.push(Placed { part: at as u32, doc, id, quality: 0.0, links: 0 });
            }
        }
        pages
    }

    /// Says how good each page is: by its rank, or by its links as long as there are no ranks.
    fn judge(&self, pages: &mut [Placed], source: &mut dyn LinkSource) -> Result<()> {
        if source.has_ranks() {
            let mut stores = Vec::new();
            for (part, _) in &self.old {
                stores.push(part.segment().get_store_reader(1)?);
            }
            for page in pages {
                let document: tantivy::TantivyDocument = stores[page.part as usize].get(page.doc)?;
                let url = crate::shown(&document, self.fields.shown_url);
                page.quality = source.quality(url).unwrap_or(0.0).clamp(0.0, 1.0);
            }
            return Ok(());
        }
        let most = pages.iter().map(|page| page.links).max().unwrap_or(0).max(15);
        let scale = 1.0 / (1.0 + f64::from(most)).ln();
        for page in pages {
            page.quality = ((1.0 + f64::from(page.links)).ln() * scale) as f32;
        }
        Ok(())
    }

    /// Writes the part with these pages, and the words of all if it is the first.
    fn make_band(&self, pages: &[Placed], band: usize, is_first: bool) -> Result<Option<Listed>> {
        let mut keep: Vec<(&Part, BitSet)> =
            self.old.iter().map(|(part, _)| (&**part, BitSet::with_max_value(part.documents()))).collect();
        for page in pages {
            keep[page.part as usize].1.insert(page.doc);
        }
        let Some(listed) = part::merge(&self.disk, self.numbers[band], &keep, is_first)? else { return Ok(None) };
        let duplicates = carried_duplicates(self.old.iter().map(|(_, listed)| listed), &keep);
        Ok(Some(Listed { band: band as u8 + 1, duplicates, ..listed }))
    }

    /// Writes what links say of the pages of a new part, which has them in this order.
    fn write_late(
        &self,
        listed: &Listed,
        pages: &[Placed],
        source: &mut dyn LinkSource,
        gathered: Option<&Gathering>,
    ) -> Result<()> {
        let mut writer = LateWriter::new(self.disk.clone(), listed.number, self.memory_bytes)?;
        let languages: Vec<Vec<Lang>> = self.old.iter().map(|(part, _)| languages_of(part)).collect::<Result<_>>()?;
        for chunk in pages.chunks((self.how.memory_bytes / PAGE_TEXT_BYTES).max(1)) {
            let own;
            let gathered = match gathered {
                Some(gathered) => gathered,
                None => {
                    let mut about = Gathering::about(chunk.iter().map(|page| page.id));
                    about.gather(source, true)?;
                    own = about;
                    &own
                }
            };
            for page in chunk {
                let lang = languages[page.part as usize][page.doc as usize];
                writer.add(lang, page.quality, page.links, gathered.of(page.id))?;
            }
        }
        writer.finish()
    }
}

/// Where the bands of so many pages end.
fn band_ends(pages: usize, how: &Arrangement) -> Vec<usize> {
    let mut ends: Vec<usize> = match (pages as u64) < how.pages_min {
        true => Vec::new(),
        false => how.shares.iter().map(|share| (pages as f64 * share) as usize).collect(),
    };
    ends.push(pages);
    ends.sort_unstable();
    ends
}

/// The language of each page of a part.
fn languages_of(part: &Part) -> Result<Vec<Lang>> {
    let mut languages = vec![Lang::default(); part.documents() as usize];
    for (code, docs) in part.languages()? {
        for doc in docs {
            languages[doc as usize] = Lang::of(&code);
        }
    }
    Ok(languages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_end_where_their_shares_do() {
        let check = |pages: usize, shares: &[f64], expected: &[usize]| {
            let how = Arrangement { shares: shares.to_vec(), pages_min: 100, ..Arrangement::default() };
            assert_eq!(band_ends(pages, &how), expected, "{pages} pages");
        };
        check(99, &[0.1], &[99]);
        check(100, &[0.1], &[10, 100]);
        check(1_000, &[0.05, 0.3], &[50, 300, 1_000]);
        check(0, &[0.1], &[0]);
        check(200, &[], &[200]);
    }
}
