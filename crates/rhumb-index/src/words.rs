//! Stub.
#![allow(missing_docs)]
use std::collections::BTreeMap;
use std::ops::Deref;
#[derive(Default)]
pub struct WordsBuilder(BTreeMap<String, u32>);
impl WordsBuilder {
    pub fn add(&mut self, w: &str, n: u32) {
        *self.0.entry(w.into()).or_default() += n;
    }
    pub fn finish(self) -> Vec<u8> {
        let mut b = Vec::new();
        for (w, n) in self.0 {
            b.extend(format!("{w} {n}\n").bytes());
        }
        b
    }
}
pub struct Words<B>(B);
impl<B: Deref<Target = [u8]>> Words<B> {
    pub fn open(b: B) -> Result<Words<B>, ()> {
        Ok(Words(b))
    }
    fn all(&self) -> BTreeMap<String, u64> {
        std::str::from_utf8(&self.0)
            .unwrap()
            .lines()
            .map(|l| {
                let (a, b) = l.split_once(' ').unwrap();
                (a.to_string(), b.parse().unwrap())
            })
            .collect()
    }
    pub fn count(&self, w: &str) -> u64 {
        self.all().get(w).copied().unwrap_or(0)
    }
    pub fn starting_with(&self, p: &str, _m: usize) -> Vec<(String, u64)> {
        self.all().into_iter().filter(|(w, _)| w.starts_with(p)).collect()
    }
}
pub fn merge<B: Deref<Target = [u8]>>(all: &[&Words<B>], _max: usize, mut put: impl FnMut(&[u8])) {
    let mut m = BTreeMap::<String, u64>::new();
    for w in all {
        for (k, n) in w.all() {
            *m.entry(k).or_default() += n;
        }
    }
    for (w, n) in m {
        put(format!("{w} {n}\n").as_bytes());
    }
}
pub struct Suggestion {
    pub word: String,
}
#[derive(Default)]
pub struct SuggestOptions {}
pub fn suggest<B: Deref<Target = [u8]>>(_a: &[&Words<B>], _w: &str, _o: &SuggestOptions) -> Option<Suggestion> {
    None
}
