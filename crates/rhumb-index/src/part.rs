//! A part of the index: pages that were written together, and never change.
//!
//! Its files are those of one tantivy segment (`index/000012.term` and so on, [`crate::directory`]), and three of our own: `ids` (which
//! pages it has, sorted), `words` (the words they have, [`crate::words`]) and, once links have been looked at, `late` with its own small
//! segment of anchor texts ([`crate::late`]). docs/formats/index.md describes them.

use std::sync::{Arc, OnceLock};

use rhumb_store::StoreError;
use rhumb_store::codec::Malformed;
use rhumb_store::disk::Disk;
use rhumb_store::map::Map;
use rhumb_store::sealed::{Kind, Sealed, SealedWriter};
use tantivy::columnar::ColumnValues;
use tantivy::directory::OwnedBytes;
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::{SingleSegmentIndexWriter, merge_filtered_segments};
use tantivy::{BitSet, DocId, Index, IndexReader, IndexSettings, ReloadPolicy, Searcher, SegmentReader};

use crate::Result;
use crate::directory::{self, PartDirectory};
use crate::late::{Late, LateNames};
use crate::manifest::{Listed, PartNumber};
use crate::page::{Maker, Page, Weights};
use crate::schema::{Fields, tokenizers};
use crate::search::ceilings::Ceilings;
use crate::words::{self, Words, WordsBuilder};

/// The folder of all parts.
pub const DIR: &str = "index";
const IDS: Kind = Kind { magic: *b"rhumbids", version: 1 };
const WORDS: Kind = Kind { magic: *b"rhumbwds", version: 1 };
/// Words that stand once in a part with more words than this are left out of its list: most are no words.
const WORDS_MAX: usize = 2_000_000;

/// What the names of a part's files begin with.
pub(crate) fn base(number: PartNumber) -> String {
    format!("{DIR}/{number:06}")
}

/// A part that is being written.
pub struct PartWriter {
    disk: Arc<dyn Disk>,
    number: PartNumber,
    fields: Arc<Fields>,
    writer: SingleSegmentIndexWriter,
    ids: Vec<(u64, DocId)>,
    languages: Vec<(String, u32)>,
}

impl PartWriter {
    /// Begins part `number`, which is about to take so much memory.
    pub fn new(
        disk: Arc<dyn Disk>,
        number: PartNumber,
        fields: Arc<Fields>,
        memory_bytes: usize,
    ) -> Result<PartWriter> {
        disk.make_dir(DIR)?;
        let directory: Box<dyn tantivy::Directory> = Box::new(PartDirectory::new(disk.clone(), &base(number)));
        let builder = Index::builder().schema(fields.schema.clone()).tokenizers(tokenizers()).settings(settings());
        let writer = builder.single_segment_index_writer(directory, memory_bytes.max(1 << 20))?;
        Ok(PartWriter { disk, number, fields, writer, ids: Vec::new(), languages: Vec::new() })
    }

    /// Adds a page.
    pub fn add(&mut self, page: &Page<'_>, maker: &mut Maker, weights: &Weights) -> Result<DocId> {
        let (document, lang) = maker.make(page, weights, &self.fields);
        self.writer.add_document(document)?;
        let doc = self.ids.len() as DocId;
        self.ids.push((page.id, doc));
        count(&mut self.languages, lang.code(), 1);
        Ok(doc)
    }

    /// How many pages it has.
    pub fn len(&self) -> u32 {
        self.ids.len() as u32
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// About how much memory it takes.
    pub fn memory_bytes(&self) -> usize {
        self.writer.mem_usage() + self.ids.capacity() * size_of::<(u64, DocId)>()
    }

    /// Writes it. `maker` knows the words that its pages have.
    pub fn finish(mut self, maker: &mut Maker) -> Result<Listed> {
        let documents = self.len();
        self.writer.finalize()?;
        write_ids(&*self.disk, self.number, &mut self.ids)?;
        let mut words = WordsBuilder::default();
        maker.analyzer.take_words(&mut words);
        write_words(&*self.disk, self.number, |put| put(&words.finish()))?;
        Ok(Listed { languages: self.languages, ..Listed::new(self.number, documents) })
    }
}

fn settings() -> IndexSettings {
    IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() }
}

pub(crate) fn count(counts: &mut Vec<(String, u32)>, name: &str, more: u32) {
    match counts.iter_mut().find(|(known, _)| known == name) {
        Some((_, n)) => *n += more,
        None => counts.push((name.to_string(), more)),
    }
}

fn write_ids(disk: &dyn Disk, number: PartNumber, ids: &mut [(u64, DocId)]) -> Result<()> {
    ids.sort_unstable();
    let mut file = SealedWriter::create(disk, &format!("{}.ids", base(number)), IDS)?;
    for (id, _) in &*ids {
        file.write(&id.to_le_bytes())?;
    }
    for (_, doc) in &*ids {
        file.write(&doc.to_le_bytes())?;
    }
    file.finish()?;
    Ok(())
}

fn write_words(disk: &dyn Disk, number: PartNumber, write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Result<()> {
    let mut file = SealedWriter::create(disk, &format!("{}.words", base(number)), WORDS)?;
    let mut failed = None;
    write(&mut |bytes| {
        if failed.is_none() {
            failed = file.write(bytes).err();
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    file.finish()?;
    Ok(())
}

/// A number for each page of a part.
pub type Numbers<T> = Arc<dyn ColumnValues<T>>;

/// A part that is read.
pub struct Part {
    disk: Arc<dyn Disk>,
    /// Its number.
    pub number: PartNumber,
    index: Index,
    _reader: IndexReader,
    searcher: Searcher,
    /// The fields of its pages.
    pub fields: Arc<Fields>,
    ids: Sealed,
    words: OnceLock<Words>,
    /// The columns of its pages.
    pub columns: Columns,
    /// What links say of its pages.
    pub late: Option<Late>,
    /// Words of all its texts, as lengths are kept: the same wherever a page lies, while tantivy's own count is an estimate after a merge.
    pub tokens: u64,
    /// What its terms can bring.
    pub(crate) ceilings: Ceilings,
}

/// What is known of every page of a part.
pub struct Columns {
    /// Fingerprints of addresses.
    pub id: Numbers<u64>,
    /// Places in the log.
    pub visit: Numbers<u64>,
    /// Fingerprints of hosts.
    pub host: Numbers<u64>,
    /// When they were changed.
    pub date: Numbers<i64>,
    /// When they were fetched.
    pub fetched: Numbers<i64>,
    /// 1 if there is a copy.
    pub flags: Numbers<u64>,
}

impl Part {
    /// Opens a part that the list names.
    pub fn open(disk: Arc<dyn Disk>, fields: Arc<Fields>, listed: &Listed) -> Result<Part> {
        directory::look(&*disk, &base(listed.number))?;
        let directory = PartDirectory::new(disk.clone(), &base(listed.number));
        let mut index = Index::open(directory)?;
        index.set_tokenizers(tokenizers());
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(8).try_into()?;
        let reader: IndexReader = reader;
        let searcher = reader.searcher();
        let name = format!("{}.ids", base(listed.number));
        let ids = Sealed::open(&*disk, &name, IDS)?;
        let documents = listed.documents as usize;
        let is_whole = searcher.segment_readers().len() == 1
            && searcher.segment_reader(0).max_doc() == listed.documents
            && ids.len() == documents * 12;
        if !is_whole {
            return Err(ids.damaged(0, "the part has other pages than the list says").into());
        }
        let fast = searcher.segment_reader(0).fast_fields();
        let number = |name: &str| fast.u64(name).map(|column| column.first_or_default_col(0));
        let time = |name: &str| fast.i64(name).map(|column| column.first_or_default_col(0));
        let columns = Columns {
            id: number("id")?,
            visit: number("visit")?,
            host: number("host")?,
            date: time("date")?,
            fetched: time("fetched")?,
            flags: number("flags")?,
        };
        let late = match listed.has_late {
            true => Some(Late::open(&disk, &LateNames::of(listed.number), listed.documents)?),
            false => None,
        };
        let tokens = tokens_of(searcher.segment_reader(0), fields.text)?;
        Ok(Part {
            disk,
            number: listed.number,
            index,
            _reader: reader,
            searcher,
            fields,
            ids,
            words: OnceLock::new(),
            columns,
            late,
            tokens,
            ceilings: Ceilings::default(),
        })
    }

    /// Pages it has, those that are gone included.
    pub fn documents(&self) -> u32 {
        self.segment().max_doc()
    }

    /// Its one segment.
    pub fn segment(&self) -> &SegmentReader {
        self.searcher.segment_reader(0)
    }

    /// For reading pages and making weights.
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    /// The pages with this fingerprint: the one that there is, and those that it replaced while they were written.
    pub fn find(&self, id: u64) -> impl Iterator<Item = DocId> + '_ {
        let (bytes, documents) = (&*self.ids, self.documents() as usize);
        let at = move |i: usize| u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes"));
        let (mut low, mut high) = (0, documents);
        while low < high {
            let middle = low + (high - low) / 2;
            if at(middle) < id { low = middle + 1 } else { high = middle }
        }
        let doc = move |i: usize| {
            let from = documents * 8 + i * 4;
            DocId::from_le_bytes(bytes[from..from + 4].try_into().expect("four bytes"))
        };
        (low..documents).take_while(move |i| at(*i) == id).map(doc).filter(move |doc| (*doc as usize) < documents)
    }

    /// The words of its pages.
    pub fn words(&self) -> Result<&Words> {
        if let Some(words) = self.words.get() {
            return Ok(words);
        }
        let name = format!("{}.words", base(self.number));
        let opened = Words::open(Sealed::open(&*self.disk, &name, WORDS)?);
        let opened = opened.map_err(|Malformed(what)| StoreError::corrupt(&name, 0, what))?;
        Ok(self.words.get_or_init(|| opened))
    }

    /// The languages of its pages by their codes, each with the pages that are in it.
    pub fn languages(&self) -> Result<Vec<(String, Vec<DocId>)>> {
        let Some(column) = self.segment().fast_fields().str("lang")? else { return Ok(Vec::new()) };
        let mut languages = Vec::new();
        for ordinal in 0..column.num_terms() as u64 {
            let mut code = String::new();
            column.ord_to_str(ordinal, &mut code)?;
            languages.push((code, Vec::new()));
        }
        for doc in 0..self.documents() {
            if let Some((_, docs)) = column.term_ords(doc).next().and_then(|ord| languages.get_mut(ord as usize)) {
                docs.push(doc);
            }
        }
        Ok(languages)
    }

    /// The language or kind of a page.
    pub fn name_of(&self, column: &str, doc: DocId) -> Result<String> {
        let mut name = String::new();
        if let Some(column) = self.segment().fast_fields().str(column)?
            && let Some(ordinal) = column.term_ords(doc).next()
        {
            column.ord_to_str(ordinal, &mut name)?;
        }
        Ok(name)
    }

    /// How good a page is said to be by links, from 0 to 1.
    pub fn quality(&self, doc: DocId) -> f32 {
        self.late.as_ref().map_or(0.0, |late| late.quality(doc))
    }
}

/// The lengths of all texts of a field together.
pub(crate) fn tokens_of(segment: &SegmentReader, field: tantivy::schema::Field) -> Result<u64> {
    let lengths = segment.get_fieldnorms_reader(field)?;
    Ok((0..segment.max_doc()).map(|doc| u64::from(lengths.fieldnorm(doc))).sum())
}

/// Reads all files of a part, so that damage is found.
pub fn verify(disk: &Arc<dyn Disk>, fields: &Arc<Fields>, listed: &Listed) -> Result<()> {
    let part = Part::open(disk.clone(), fields.clone(), listed)?;
    Sealed::open(&**disk, &format!("{}.words", base(listed.number)), WORDS)?;
    let mut bases = vec![base(listed.number)];
    if listed.has_late {
        bases.push(LateNames::of(listed.number).anchors);
    }
    drop(part);
    let files = disk.list(DIR)?;
    for name in files.iter().map(|name| format!("{DIR}/{name}")) {
        let Some((start, kind)) = name.rsplit_once('.') else { continue };
        if bases.iter().any(|base| base == start) && !matches!(kind, "ids" | "words" | "late") {
            let (map, checked): (Map, _) = rhumb_store::checked::Checked::open(&**disk, &name)?;
            checked.check_all(&map)?;
        }
    }
    Ok(())
}

/// Writes part `number` from the pages of others for which `keep` says so. Nothing is written if there are none. Pages come in the order of
/// the parts, and in a part in the order they had. Which page a word is of is not known: `with_words` says whether the new part is the one
/// that has those of all parts, so that how often there is a word does not depend on how pages were spread.
pub(crate) fn merge(
    disk: &Arc<dyn Disk>,
    number: PartNumber,
    parts: &[(&Part, BitSet)],
    with_words: bool,
) -> Result<Option<Listed>> {
    let kept: usize = parts.iter().map(|(_, keep)| keep.len()).sum();
    if kept == 0 {
        return Ok(None);
    }
    let vocabularies: Vec<&Words> = match with_words {
        true => parts.iter().map(|(part, _)| part.words()).collect::<Result<_>>()?,
        false => Vec::new(),
    };
    let parts: Vec<&(&Part, BitSet)> = parts.iter().filter(|(_, keep)| keep.len() > 0).collect();
    let mut segments = Vec::new();
    for (part, _) in parts.iter().copied() {
        segments.extend(part.index.searchable_segments()?);
    }
    let mut kept_of = Vec::new();
    for (part, keep) in parts.iter().copied() {
        kept_of.push(match keep.len() == part.documents() as usize {
            true => None,
            false => {
                let mut bytes = Vec::new();
                write_alive_bitset(keep, &mut bytes)?;
                Some(AliveBitSet::open(OwnedBytes::new(bytes)))
            }
        });
    }
    let directory: Box<dyn tantivy::Directory> = Box::new(PartDirectory::new(disk.clone(), &base(number)));
    merge_filtered_segments(&segments, settings(), kept_of, directory)?;
    let mut ids = Vec::with_capacity(kept);
    for (part, keep) in parts.iter().copied() {
        for doc in (0..part.documents()).filter(|doc| keep.contains(*doc)) {
            ids.push((part.columns.id.get_val(doc), ids.len() as DocId));
        }
    }
    write_ids(&**disk, number, &mut ids)?;
    write_words(&**disk, number, |put| words::merge(&vocabularies, WORDS_MAX, |bytes| put(bytes)))?;
    Ok(Some(Listed { languages: merged_languages(&parts)?, ..Listed::new(number, kept as u32) }))
}

/// How many of the pages that are kept are in which language.
fn merged_languages(parts: &[&(&Part, BitSet)]) -> Result<Vec<(String, u32)>> {
    let mut languages = Vec::new();
    for (part, keep) in parts {
        for (code, docs) in part.languages()? {
            let kept = docs.iter().filter(|doc| keep.contains(**doc)).count();
            if kept > 0 {
                count(&mut languages, &code, kept as u32);
            }
        }
    }
    languages.sort_unstable();
    Ok(languages)
}
