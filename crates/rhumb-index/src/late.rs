//! What becomes known of pages after they were indexed: what links to them say, and how many there are.
//!
//! It lies beside a part and is written anew when links are looked at again ([`crate::arrange`]), while the part stays as it is: `late` has a
//! quality and a number of links for each page, and a small tantivy segment of its own has the words of the links. The pages of that segment
//! are those of the part, in the same order, so that one search goes over both.

use std::collections::HashMap;
use std::sync::Arc;

use rhumb_store::disk::Disk;
use rhumb_store::sealed::{Kind, Sealed, SealedWriter};
use tantivy::indexer::SingleSegmentIndexWriter;
use tantivy::{DocId, Index, IndexReader, ReloadPolicy, Searcher, SegmentReader, TantivyDocument};

use crate::Result;
use crate::analysis::Analyzer;
use crate::analysis::encode::Terms;
use crate::analysis::language::Lang;
use crate::directory::{self, PartDirectory};
use crate::manifest::PartNumber;
use crate::part::base;
use crate::schema::{AnchorFields, tokenizers};
use crate::search::ceilings::Ceilings;

const LATE: Kind = Kind { magic: *b"rhumblat", version: 1 };
/// Different texts kept of the links to one page, and bytes of them.
const TEXTS_MAX: usize = 24;
const TEXTS_BYTES_MAX: usize = 1 << 10;
/// Longer texts are cut: they are no names of a page.
const TEXT_BYTES_MAX: usize = 128;

/// A link from one page to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link<'a> {
    /// The page that has it.
    pub source: u64,
    /// That page's host.
    pub source_host: u64,
    /// Where it leads.
    pub target: u64,
    /// What it says.
    pub text: &'a str,
}

/// Who knows the links between pages.
pub trait LinkSource {
    /// Calls `each` with every link of every page as it was visited last; all links of a page in a row.
    fn each_link(&mut self, each: &mut dyn FnMut(&Link<'_>)) -> Result<()>;
    /// How good a page is by its rank among all, from 0 to 1, if ranks were computed. Otherwise links are counted.
    fn quality(&mut self, url: &str) -> Option<f32>;
    /// Whether ranks were computed.
    fn has_ranks(&self) -> bool;
}

/// What links say of one page.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Pages that link to it.
    pub links: u32,
    last_source: u64,
    texts: Vec<(Box<str>, Hosts)>,
}

/// About how many hosts say the same: a bit each, of 64.
#[derive(Clone, Copy, Debug, Default)]
struct Hosts(u64);

impl Said {
    fn add(&mut self, link: &Link<'_>) {
        if link.source == link.target {
            return;
        }
        if self.links == 0 || self.last_source != link.source {
            self.links = self.links.saturating_add(1);
            self.last_source = link.source;
        }
        let text = crate::cut(link.text.trim(), TEXT_BYTES_MAX);
        if text.is_empty() {
            return;
        }
        let host = Hosts(1 << (link.source_host % 64));
        if let Some((_, hosts)) = self.texts.iter_mut().find(|(known, _)| **known == *text) {
            hosts.0 |= host.0;
        } else if self.texts.len() < TEXTS_MAX
            && self.texts.iter().map(|(known, _)| known.len()).sum::<usize>() + text.len() <= TEXTS_BYTES_MAX
        {
            self.texts.push((text.into(), host));
        }
    }

    fn memory_bytes(&self) -> usize {
        self.texts.iter().map(|(text, _)| text.len() + 40).sum()
    }
}

/// Gathers what links say of some pages.
#[derive(Default)]
pub struct Gathering {
    places: HashMap<u64, u32>,
    said: Vec<Said>,
    /// Memory of the texts.
    bytes: usize,
}

/// Memory of a page about which nothing is known yet.
pub(crate) const PAGE_BYTES: usize = 24 + size_of::<Said>();
/// Memory of a page with the texts of its links, mostly.
pub(crate) const PAGE_TEXT_BYTES: usize = PAGE_BYTES + 160;

impl Gathering {
    /// About the pages with these fingerprints.
    pub fn about(ids: impl Iterator<Item = u64>) -> Gathering {
        let places: HashMap<u64, u32> = ids.zip(0..).collect();
        let said = vec![Said::default(); places.len()];
        Gathering { places, said, bytes: 0 }
    }

    /// Takes in all links. Without `texts`, they are only counted.
    pub fn gather(&mut self, source: &mut dyn LinkSource, texts: bool) -> Result<()> {
        let Gathering { places, said, bytes } = self;
        source.each_link(&mut |link| {
            if let Some(said) = places.get(&link.target).and_then(|at| said.get_mut(*at as usize)) {
                let before = said.memory_bytes();
                said.add(&if texts { *link } else { Link { text: "", ..*link } });
                *bytes += said.memory_bytes() - before;
            }
        })
    }

    /// What was said of a page.
    pub fn of(&self, id: u64) -> Option<&Said> {
        self.places.get(&id).and_then(|at| self.said.get(*at as usize))
    }
}

/// The names of what lies beside a part.
pub(crate) struct LateNames {
    pub file: String,
    pub anchors: String,
}

impl LateNames {
    pub(crate) fn of(number: PartNumber) -> LateNames {
        LateNames { file: format!("{}.late", base(number)), anchors: format!("{}a", base(number)) }
    }
}

/// Writes what links say of the pages of a part, which come in their order.
pub struct LateWriter {
    disk: Arc<dyn Disk>,
    names: LateNames,
    writer: SingleSegmentIndexWriter,
    fields: AnchorFields,
    qualities: Vec<f32>,
    links: Vec<u32>,
    analyzer: Analyzer,
    terms: Terms,
}

impl LateWriter {
    /// Begins.
    pub fn new(disk: Arc<dyn Disk>, number: PartNumber, memory_bytes: usize) -> Result<LateWriter> {
        let names = LateNames::of(number);
        let fields = AnchorFields::default();
        let directory: Box<dyn tantivy::Directory> = Box::new(PartDirectory::new(disk.clone(), &names.anchors));
        let builder = Index::builder().schema(fields.schema.clone()).tokenizers(tokenizers());
        let writer = builder.single_segment_index_writer(directory, memory_bytes.max(1 << 20))?;
        Ok(LateWriter {
            disk,
            names,
            writer,
            fields,
            qualities: Vec::new(),
            links: Vec::new(),
            analyzer: Analyzer::default(),
            terms: Terms::default(),
        })
    }

    /// Adds the next page.
    pub fn add(&mut self, lang: Lang, quality: f32, links: u32, said: Option<&Said>) -> Result<()> {
        self.qualities.push(quality);
        self.links.push(links);
        let mut document = TantivyDocument::default();
        self.terms.clear();
        let LateWriter { analyzer, terms, .. } = self;
        let mut texts: Vec<(&str, u32)> = said.map_or(Vec::new(), |said| {
            said.texts.iter().map(|(text, hosts)| (&**text, hosts.0.count_ones())).collect()
        });
        // In an order that does not depend on the order of the links.
        texts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        for (text, hosts) in texts {
            // Ten hosts that say the same count more than one, not ten times as much.
            let weight = 1 + hosts.ilog2() as u8;
            analyzer.terms(lang, text, |term, _| terms.push(term, weight));
        }
        if !self.terms.as_str().is_empty() {
            document.add_text(self.fields.anchor, self.terms.as_str());
        }
        self.writer.add_document(document)?;
        Ok(())
    }

    /// Makes it durable.
    pub fn finish(self) -> Result<()> {
        self.writer.finalize()?;
        let mut file = SealedWriter::create(&*self.disk, &self.names.file, LATE)?;
        for quality in &self.qualities {
            file.write(&quality.to_le_bytes())?;
        }
        for links in &self.links {
            file.write(&links.to_le_bytes())?;
        }
        file.finish()?;
        Ok(())
    }
}

/// What links say of the pages of a part.
pub struct Late {
    file: Sealed,
    documents: u32,
    /// The highest quality of a page.
    pub quality_max: f32,
    _reader: IndexReader,
    searcher: Searcher,
    /// The field of the words.
    pub fields: AnchorFields,
    /// Words of all links, as lengths are kept.
    pub tokens: u64,
    /// What its terms can bring.
    pub(crate) ceilings: Ceilings,
}

impl Late {
    pub(crate) fn open(disk: &Arc<dyn Disk>, names: &LateNames, documents: u32) -> Result<Late> {
        let file = Sealed::open(&**disk, &names.file, LATE)?;
        directory::look(&**disk, &names.anchors)?;
        let mut index = Index::open(PartDirectory::new(disk.clone(), &names.anchors))?;
        index.set_tokenizers(tokenizers());
        let reader: IndexReader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        let is_whole = file.len() == documents as usize * 8
            && searcher.segment_readers().len() == 1
            && searcher.segment_reader(0).max_doc() == documents;
        if !is_whole {
            return Err(file.damaged(0, "there are other pages than in its part").into());
        }
        let fields = AnchorFields::default();
        let tokens = crate::part::tokens_of(searcher.segment_reader(0), fields.anchor)?;
        let mut late = Late {
            file,
            documents,
            quality_max: 0.0,
            _reader: reader,
            searcher,
            fields,
            tokens,
            ceilings: Ceilings::default(),
        };
        late.quality_max = (0..documents).map(|doc| late.quality(doc)).fold(0.0, f32::max);
        Ok(late)
    }

    /// The segment with the words of links.
    pub fn segment(&self) -> &SegmentReader {
        self.searcher.segment_reader(0)
    }

    /// For making weights.
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    fn word(&self, at: usize) -> [u8; 4] {
        self.file[at..at + 4].try_into().expect("four bytes")
    }

    /// How good a page is, from 0 to 1.
    pub fn quality(&self, doc: DocId) -> f32 {
        f32::from_le_bytes(self.word(doc as usize * 4)).clamp(0.0, 1.0)
    }

    /// Pages that link to a page.
    pub fn links(&self, doc: DocId) -> u32 {
        u32::from_le_bytes(self.word((self.documents as usize + doc as usize) * 4))
    }
}
