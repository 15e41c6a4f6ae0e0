//! A site under suspicion: many of its pages brought nothing new, and the question is what they have in common.
//!
//! The last pages are kept with their gists. For everything about a URL that may not matter, pages that differ in that alone are
//! compared: the same gist speaks for it, another against it. And for each set of pages that has become large, the run of
//! pages without anything new is counted. Both are bounded, however many URLs the site makes up.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::form::Form;
use super::rule::{Evidence, Kind, Pattern, Rule};
use crate::page::Gist;
use crate::sieve::AsIs;
use crate::url::Url;

/// Pages remembered of a site.
const PAGES_MAX: usize = 96;
/// Properties of URLs weighed at the same time.
const DOUBTS_MAX: usize = 96;
/// Sets of pages counted at the same time.
const SETS_MAX: usize = 48;
/// Pages named as evidence.
const SAMPLES_MAX: usize = 3;
/// Different pages, and different classes of them, that a property must show itself on.
const DISTINCT_MIN: usize = 3;
/// Rules of one kind that are learned of a site.
const SAME_KIND_MAX: usize = 4;
/// What a site under suspicion takes of the memory at the most, about.
pub(super) const BYTES: usize = 64 << 10;

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Suspect {
    pages: VecDeque<Page>,
    /// The last page of each class, by its number.
    classes: Map<u32>,
    doubts: Map<Doubt>,
    sets: Map<Set>,
    next_number: u32,
    /// Counts observations; the least recently seen suspect makes room for others.
    pub seen: u64,
}

type Map<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

#[derive(Debug)]
struct Page {
    number: u32,
    url: Url,
    gist: Gist,
    classes: Vec<u64>,
}

/// Something about URLs that may not matter.
#[derive(Debug)]
struct Doubt {
    pattern: Pattern,
    evidence: Evidence,
    /// Fingerprints of pages that bore it out, and of the classes they were in.
    pages: Vec<u64>,
    classes: Vec<u64>,
    /// Path templates it was seen on: a parameter is said not to matter anywhere only after it did not matter in two places.
    places: Vec<u64>,
}

/// A set of pages that bring nothing new, it seems.
#[derive(Debug, Default)]
struct Set {
    /// Pages in a row without anything new.
    run: u32,
    samples: Vec<Box<str>>,
}

impl Suspect {
    /// Takes a page in. Returns what is believed from now on.
    pub fn learn(
        &mut self,
        url: &Url,
        gist: &Gist,
        useful: bool,
        known: &[&Rule],
        learn_after: u32,
    ) -> Option<(Pattern, Evidence)> {
        let form = form_of(url, known);
        let learned = self.weigh(url, &form, gist, known, learn_after / 4);
        if learned.is_some() {
            // A good part of the runs was made of these pages, which have found their explanation.
            self.sets.values_mut().for_each(|set| set.run /= 2);
            return learned;
        }
        self.count(url, &form, useful, learn_after)
    }

    /// Counts the pages of this set from now on.
    pub fn track(&mut self, pattern: &Pattern) {
        if self.sets.len() >= SETS_MAX {
            let least = self.sets.iter().min_by_key(|(key, set)| (set.run, **key)).map(|(key, _)| *key);
            least.and_then(|key| self.sets.remove(&key));
        }
        self.sets.entry(pattern.key()).or_default();
    }

    /// The URLs of the last pages.
    pub fn urls(&self) -> impl Iterator<Item = &Url> {
        self.pages.iter().map(|page| &page.url)
    }

    /// Compares the page with earlier ones that differ from it in one property.
    fn weigh(
        &mut self,
        url: &Url,
        form: &Form<'_>,
        gist: &Gist,
        known: &[&Rule],
        agree_min: u32,
    ) -> Option<(Pattern, Evidence)> {
        let place = form.place();
        let mut page = Page { number: self.next_number, url: url.clone(), gist: *gist, classes: Vec::new() };
        let mut patterns = form.suspicions();
        // A URL without a parameter belongs to the class of those with it.
        patterns.extend(self.doubts.values().filter(|d| d.pattern.kind == Kind::Param).map(|d| d.pattern.clone()));
        patterns.sort_unstable();
        patterns.dedup();
        let mut learned = None;
        for pattern in patterns {
            let mut left = form.clone();
            left.apply(&pattern);
            let key = pattern.key();
            let class = left.class() ^ key;
            let before = self.classes.insert(class, page.number).and_then(|number| self.page(number));
            page.classes.push(class);
            // Pages that differ in something else alone say nothing about this.
            let differs = |p: &&Page| form_of(&p.url, known).value_of(&pattern) != form.value_of(&pattern);
            let Some(before) = before.filter(differs) else { continue };
            let same = before.gist.says_the_same_as(gist);
            let (sample, fingerprint) = (before.url.as_str().into(), before.url.fingerprint().0);
            let doubt = match self.doubts.get_mut(&key) {
                Some(doubt) => doubt,
                None => {
                    make_room(&mut self.doubts);
                    self.doubts.entry(key).or_insert(Doubt::new(pattern.clone()))
                }
            };
            doubt.weigh(same, [url.fingerprint().0, fingerprint], class, place, [url.as_str().into(), sample]);
            // Where one rule of a kind follows the other, none of them is the whole truth; a set of pages may be.
            let covered = known.iter().any(|rule| rule.pattern == pattern)
                || known.iter().filter(|rule| rule.pattern.kind == pattern.kind).count() >= SAME_KIND_MAX;
            if learned.is_none() && !covered && doubt.is_settled(agree_min) {
                learned = Some((pattern, std::mem::take(&mut doubt.evidence)));
                self.doubts.remove(&key);
            }
        }
        self.next_number += 1;
        self.pages.push_back(page);
        if self.pages.len() > PAGES_MAX
            && let Some(old) = self.pages.pop_front()
        {
            for class in old.classes {
                if self.classes.get(&class) == Some(&old.number) {
                    self.classes.remove(&class);
                }
            }
        }
        learned
    }

    fn page(&self, number: u32) -> Option<&Page> {
        let first = self.pages.front()?.number;
        self.pages.get(number.checked_sub(first)? as usize)
    }

    /// Counts pages without anything new, in each set that the page belongs to.
    fn count(&mut self, url: &Url, form: &Form<'_>, useful: bool, learn_after: u32) -> Option<(Pattern, Evidence)> {
        let mut learned: Option<(Pattern, Evidence)> = None;
        for pattern in form.sets() {
            let Some(set) = self.sets.get_mut(&pattern.key()) else { continue };
            set.run = if useful { 0 } else { set.run + 1 };
            if set.run > 0 && set.samples.len() < SAMPLES_MAX {
                set.samples.push(url.as_str().into());
            }
            if let Some((_, narrower)) = &learned {
                // What a narrower set explains says nothing of a wider one.
                set.run = set.run.saturating_sub(narrower.pages);
            } else if set.run >= learn_after * pattern.kind.doubt() / 2 {
                let evidence = Evidence { pages: set.run, against: 0, samples: std::mem::take(&mut set.samples) };
                self.sets.remove(&pattern.key());
                learned = Some((pattern, evidence));
            }
        }
        learned
    }
}

impl Doubt {
    fn new(pattern: Pattern) -> Doubt {
        Doubt { pattern, evidence: Evidence::default(), pages: Vec::new(), classes: Vec::new(), places: Vec::new() }
    }

    fn weigh(&mut self, same: bool, pages: [u64; 2], class: u64, place: u64, samples: [Box<str>; 2]) {
        if !same {
            self.evidence.against += 1;
            return;
        }
        self.evidence.pages += 1;
        let note = |list: &mut Vec<u64>, key: u64| {
            if list.len() < 2 * DISTINCT_MIN && !list.contains(&key) {
                list.push(key);
            }
        };
        pages.into_iter().for_each(|page| note(&mut self.pages, page));
        note(&mut self.classes, class);
        note(&mut self.places, place);
        for sample in samples {
            if self.evidence.samples.len() < SAMPLES_MAX && !self.evidence.samples.contains(&sample) {
                self.evidence.samples.push(sample);
            }
        }
    }

    /// Whether so much speaks for it, and so little against it, that it can be acted upon.
    fn is_settled(&self, agree_min: u32) -> bool {
        let Evidence { pages, against, .. } = self.evidence;
        let enough = pages >= agree_min && self.pages.len() > DISTINCT_MIN;
        let undisputed = against * 20 <= pages;
        let wide = match self.pattern.kind {
            // What holds for a whole site is not believed from one corner of it.
            Kind::Param if self.pattern.path.is_empty() => self.places.len() >= 2,
            Kind::PathParam | Kind::PathOrder | Kind::Spelling | Kind::Repeats => self.classes.len() >= 2,
            Kind::Subdomain => self.classes.len() >= DISTINCT_MIN,
            Kind::Query => pages >= 2 * agree_min,
            _ => true,
        };
        enough && undisputed && wide
    }
}

/// A URL without what is known not to matter, so that the next thing can be found behind it.
fn form_of<'a>(url: &'a Url, known: &[&Rule]) -> Form<'a> {
    let mut form = Form::of(url);
    known.iter().for_each(|rule| {
        form.apply(&rule.pattern);
    });
    form
}

fn make_room(doubts: &mut Map<Doubt>) {
    if doubts.len() >= DOUBTS_MAX {
        let worth = |d: &Doubt| (d.evidence.pages, d.evidence.against);
        let least = doubts.iter().min_by_key(|(key, d)| (worth(d), **key)).map(|(key, _)| *key);
        least.and_then(|key| doubts.remove(&key));
    }
}
