//! One column of a row group: values and levels gather, become pages, and the pages are packed with zstd.
//!
//! A page ends between two rows once it holds a mebibyte, so that readers need not unpack a whole column at once. Values are in
//! PLAIN encoding, levels in runs.

use super::schema::Kind;
use super::thrift::Thrift;

/// Values of a page end with the row in which they reach this.
const PAGE_BYTES: usize = 1 << 20;
/// Compression level of zstd.
const LEVEL: i32 = 3;

/// A column being filled.
pub(super) struct Column {
    /// Name, and those of the groups around it.
    pub(super) path: Vec<&'static str>,
    pub(super) kind: Kind,
    def_max: u8,
    rep_max: u8,
    values: Vec<u8>,
    /// Bits of booleans, of which eight share a byte.
    bools: usize,
    defs: Runs,
    reps: Runs,
    /// Values and missing values of the current page.
    count: u32,
    /// Pages that are packed.
    pub(super) pages: Vec<u8>,
    pub(super) unpacked_bytes: u64,
    pub(super) values_total: u64,
}

impl Column {
    pub(super) fn new(path: Vec<&'static str>, kind: Kind, def_max: u8, rep_max: u8) -> Column {
        Column {
            path,
            kind,
            def_max,
            rep_max,
            values: Vec::new(),
            bools: 0,
            defs: Runs::default(),
            reps: Runs::default(),
            count: 0,
            pages: Vec::new(),
            unpacked_bytes: 0,
            values_total: 0,
        }
    }

    /// A text that stands in the row itself.
    pub(super) fn text(&mut self, value: Option<&str>) {
        self.level(0, if value.is_some() { self.def_max } else { 0 });
        if let Some(text) = value {
            self.put_text(text);
        }
    }

    pub(super) fn int(&mut self, value: Option<u32>) {
        self.level(0, if value.is_some() { self.def_max } else { 0 });
        if let Some(n) = value {
            self.values.extend_from_slice(&n.to_le_bytes());
        }
    }

    pub(super) fn long(&mut self, value: Option<u64>) {
        self.level(0, if value.is_some() { self.def_max } else { 0 });
        if let Some(n) = value {
            self.values.extend_from_slice(&n.to_le_bytes());
        }
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.level(0, self.def_max);
        self.put_bool(value);
    }

    /// A list of texts, which may be missing.
    pub(super) fn texts<'a>(&mut self, list: Option<impl Iterator<Item = &'a str>>) {
        let Some(list) = list else { return self.no_list(false) };
        let mut first = true;
        for text in list {
            self.element(first, Some(text));
            first = false;
        }
        if first {
            self.no_list(true);
        }
    }

    /// A list that is missing, or is there and empty.
    pub(super) fn no_list(&mut self, is_there: bool) {
        self.level(0, u8::from(is_there));
    }

    /// An element of a list, the first of its row or a further one.
    pub(super) fn element(&mut self, first: bool, value: Option<&str>) {
        self.level(u8::from(!first), if value.is_some() { self.def_max } else { 2 });
        if let Some(text) = value {
            self.put_text(text);
        }
    }

    pub(super) fn bool_element(&mut self, first: bool, value: bool) {
        self.level(u8::from(!first), self.def_max);
        self.put_bool(value);
    }

    fn put_text(&mut self, text: &str) {
        self.values.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.values.extend_from_slice(text.as_bytes());
    }

    fn put_bool(&mut self, value: bool) {
        if self.bools.is_multiple_of(8) {
            self.values.push(0);
        }
        if let Some(last) = self.values.last_mut().filter(|_| value) {
            *last |= 1 << (self.bools % 8);
        }
        self.bools += 1;
    }

    fn level(&mut self, rep: u8, def: u8) {
        self.count += 1;
        self.reps.push(rep);
        self.defs.push(def);
    }

    /// Bytes that wait to be packed, and those that are.
    pub(super) fn bytes(&self) -> (usize, usize) {
        (self.values.len(), self.pages.len())
    }

    /// Ends the page if it is long enough; to be called between rows.
    pub(super) fn end_row(&mut self) {
        if self.values.len() >= PAGE_BYTES {
            self.end_page();
        }
    }

    /// Packs what waits.
    pub(super) fn end_page(&mut self) {
        if self.count == 0 {
            return;
        }
        let mut page = Vec::with_capacity(self.values.len() + 64);
        if self.rep_max > 0 {
            self.reps.write(&mut page);
        }
        if self.def_max > 0 {
            self.defs.write(&mut page);
        }
        page.extend_from_slice(&self.values);
        // Packing bytes in memory fails for lack of memory alone, which ends the process anyway.
        let packed = zstd::bulk::compress(&page, LEVEL).expect("zstd packs any bytes");
        let header = Thrift::of(|t| {
            t.i32(1, 0);
            t.i32(2, page.len() as i32);
            t.i32(3, packed.len() as i32);
            t.structure(5, |t| {
                t.i32(1, self.count as i32);
                t.i32(2, PLAIN);
                t.i32(3, RLE);
                t.i32(4, RLE);
            });
        });
        self.unpacked_bytes += (header.len() + page.len()) as u64;
        self.values_total += u64::from(self.count);
        self.pages.extend_from_slice(&header);
        self.pages.extend_from_slice(&packed);
        self.values.clear();
        (self.defs, self.reps) = (Runs::default(), Runs::default());
        (self.count, self.bools) = (0, 0);
    }

    /// Forgets everything but its name.
    pub(super) fn clear(&mut self) {
        *self = Column::new(std::mem::take(&mut self.path), self.kind, self.def_max, self.rep_max);
    }
}

pub(super) const PLAIN: i32 = 0;
pub(super) const RLE: i32 = 3;

/// Levels, each value with how often it stands in a row.
#[derive(Default)]
struct Runs {
    done: Thrift,
    value: u8,
    length: u64,
}

impl Runs {
    fn push(&mut self, value: u8) {
        if value != self.value {
            self.end();
            self.value = value;
        }
        self.length += 1;
    }

    fn end(&mut self) {
        if self.length > 0 {
            self.done.varint(self.length << 1);
            self.done.bytes.push(self.value);
            self.length = 0;
        }
    }

    /// Appends the runs with their length in front.
    fn write(&mut self, page: &mut Vec<u8>) {
        self.end();
        page.extend_from_slice(&(self.done.bytes.len() as u32).to_le_bytes());
        page.extend_from_slice(&self.done.bytes);
    }
}
