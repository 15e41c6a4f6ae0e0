//! How far the sources of a crawl have been read, when its pages come from files that others filled (`warc:`).
//!
//! A source yields its visits in order, always the same ones. A [`Reading`] in the log says where reading may begin and how many visits
//! behind that place are in the log already; every finished visit that follows counts one more. So a visit and the progress it
//! means are one record, and a crash between two of them loses nothing and repeats nothing.

use rhumb_store::codec::{Malformed, Put, Take};

/// The state of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What is read, as the user named it, made absolute.
    pub source: Box<str>,
    /// Where reading may begin.
    pub offset: u64,
    /// Visits behind that place that are in the log.
    pub visits: u64,
    /// Records up to `offset` that are no visits and need not be: requests, descriptions, conversions.
    pub passed: u64,
    /// Records up to `offset` that should have been visits and cannot: damaged, without a usable URL or head, their body elsewhere.
    pub troubles: u64,
    /// Its length when the end was reached, 0 before: one that has grown since is read on.
    pub bytes: u64,
}

impl Reading {
    /// A source of which nothing was read yet.
    pub fn new(source: &str) -> Reading {
        Reading { source: source.into(), ..Reading::default() }
    }

    /// Appends the bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.put_str(&self.source);
        for n in [self.offset, self.visits, self.passed, self.troubles, self.bytes] {
            into.put_u64(n);
        }
    }

    /// Reads what [`Reading::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<Reading, Malformed> {
        let source = from.str()?.into();
        let (offset, visits, passed, troubles) = (from.u64()?, from.u64()?, from.u64()?, from.u64()?);
        Ok(Reading { source, offset, visits, passed, troubles, bytes: from.u64()? })
    }
}

/// All sources of a crawl, in the order they were named, and the one that is being read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// The sources.
    pub list: Vec<Reading>,
    current: usize,
}

impl Readings {
    /// Takes over what the log says of a source, which is the one being read from now on.
    pub fn set(&mut self, reading: &Reading) {
        let known = self.list.iter().position(|known| known.source == reading.source);
        self.current = known.unwrap_or(self.list.len());
        match known {
            Some(at) => self.list[at] = reading.clone(),
            None => self.list.push(reading.clone()),
        }
    }

    /// A visit came from the source being read. False if nothing is read: it came from the network.
    pub fn count_visit(&mut self) -> bool {
        match self.list.get_mut(self.current) {
            Some(reading) => {
                reading.visits += 1;
                true
            }
            None => false,
        }
    }

    /// Whether there are none: the crawl fetches.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Appends the bytes.
    pub fn save(&self, into: &mut Vec<u8>) {
        into.put_u64(self.list.len() as u64);
        into.put_u64(self.current as u64);
        self.list.iter().for_each(|reading| reading.put(into));
    }

    /// Reads what [`Readings::save`] wrote.
    pub fn load(from: &mut Take<'_>) -> Result<Readings, Malformed> {
        let (count, current) = (from.u64()?, from.u64()? as usize);
        let list = (0..count).map(|_| Reading::take(from)).collect::<Result<_, _>>()?;
        Ok(Readings { list, current })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_count_for_the_source_being_read() {
        let mut readings = Readings::default();
        assert!(!readings.count_visit());
        readings.set(&Reading::new("a"));
        readings.set(&Reading::new("b"));
        readings.set(&Reading { offset: 7, ..Reading::new("a") });
        assert!(readings.count_visit() && readings.count_visit());
        let found: Vec<_> = readings.list.iter().map(|r| (&*r.source, r.offset, r.visits)).collect();
        assert_eq!(found, [("a", 7, 2), ("b", 0, 0)]);
        let mut bytes = Vec::new();
        readings.save(&mut bytes);
        assert_eq!(Readings::load(&mut Take::new(&bytes)), Ok(readings));
    }
}
