//! Traps: sites that make up URLs without end. What they have in common is learned from what comes back, and shown.
//!
//! Every page has a [`Gist`]; [`Traps::is_news`] says whether it holds anything that its site had not said before. A site that
//! keeps saying nothing new comes under suspicion (`suspect.rs`), and there two kinds of rules are learned: *this part of a URL
//! does not matter*, after which one URL of each class is fetched, and *these pages bring nothing new*, after which none is.
//! Rules hold URLs back, they do not drop them: [`Traps::judge`] says so when a URL's turn comes. A few, fewer and fewer, are
//! fetched all the same, and a rule that they contradict is retracted. The user can undo a rule. Learning, retracting and undoing
//! are records of the log, so the rules are a fold over it like everything else; what suspicion is based on is not kept over a
//! restart, and only costs the time to see it again.
//!
//! Invariants: memory is bounded by the configuration, whatever a site makes up; what one registrable domain does has no
//! influence on how another is judged; a seed is never held back.
//!
//! Read `rule.rs` next, then `form.rs` (URLs taken apart) and `suspect.rs`.

mod form;
mod rule;
mod suspect;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use rhumb_store::Timestamp;
use rhumb_store::codec::{Malformed, Put, Take};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::page::Gist;
use crate::sieve::AsIs;
use crate::sketch::{Estimate, Recent, Spectral};
use crate::url::{Fingerprint, Url};
pub use rule::{Evidence, Kind, Pattern, Rule, RuleChange, State};

use form::Form;
use suspect::Suspect;

/// Pages without anything new after which a site, or a set of pages, is looked at.
const SUSPECT_AFTER: u32 = 8;
/// Rules of one registrable domain.
const RULES_PER_DOMAIN_MAX: usize = 32;
/// Rules of all sites together.
const RULES_MAX: usize = 50_000;
/// The first URL that is fetched although a rule speaks against it; the next ones are each half as far again.
const EXPLORE_FIRST: u64 = 8;

/// URLs that explore at the same time; of what is beyond it the answer is not waited for.
const EXPLORING_MAX: usize = 4_096;

/// How much is learned, and in how much memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapsConfig {
    /// Whether rules are learned and applied at all.
    pub learn: bool,
    /// Pages in a row without anything new after which a pattern is believed to bring nothing; a quarter of it is enough
    /// for "this part of a URL does not matter".
    pub learn_after: u32,
    /// Memory of the whole.
    pub bytes_max: usize,
}

impl Default for TrapsConfig {
    fn default() -> TrapsConfig {
        TrapsConfig { learn: true, learn_after: 32, bytes_max: 16 << 20 }
    }
}

/// What is to be done with a URL whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Fetch it.
    Visit,
    /// Hold it back, because of the rule of this number.
    Hold(u32),
}

/// See the module's header.
#[derive(Debug)]
pub struct Traps {
    config: TrapsConfig,
    /// Rules by number, less one.
    rules: Vec<Rule>,
    /// The active ones of each registrable domain.
    active: Map<Vec<u32>>,
    /// Patterns that are not learned again.
    settled: Map<()>,
    /// Something was released; whoever holds URLs back asks for it.
    released: bool,
    // What follows is not kept over a restart.
    /// Phrases that sites said.
    phrases: Recent,
    /// Classes of URLs of which one was let through.
    represented: Recent,
    /// How often each site, and each set of pages, brought nothing new.
    useless: Spectral,
    useless_counted: u64,
    useless_max: u64,
    /// URLs on their way although a rule speaks against them, and the rule.
    exploring: Map<u32>,
    suspects: Map<Suspect>,
    suspects_max: usize,
    observed: u64,
}

type Map<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

impl Traps {
    /// No rules, no suspicion.
    pub fn new(config: TrapsConfig) -> Traps {
        let bytes = config.bytes_max;
        let useless_bytes = (bytes / 8).max(4 << 10);
        // Eight counters for a key; when there are more keys than that, the counts are halved.
        let useless_max = useless_bytes as u64 / 32;
        Traps {
            rules: Vec::new(),
            active: Map::default(),
            settled: Map::default(),
            released: false,
            phrases: Recent::new(bytes / 2),
            represented: Recent::new(bytes / 8),
            useless: Spectral::new(useless_bytes, useless_max, Estimate::Minimum),
            useless_counted: 0,
            useless_max,
            exploring: Map::default(),
            suspects: Map::default(),
            suspects_max: (bytes / 4 / suspect::BYTES).max(4),
            observed: 0,
            config,
        }
    }

    /// Whether a page has something to say that was not heard from its registrable domain before, and remembers what it says.
    /// News is a new phrase in eight.
    pub fn is_news(&mut self, url: &Url, gist: &Gist) -> bool {
        let domain = domain_key(url.registrable_domain());
        let phrases = gist.phrases();
        let new = phrases.iter().filter(|p| self.phrases.insert(xxh3_64_with_seed(&p.to_le_bytes(), domain))).count();
        new > 0 && new * 8 >= phrases.len()
    }

    /// Thinks about a page that was fetched. What is learned, or no longer believed, is to be written to the log and then applied.
    pub fn observe(&mut self, url: &Url, gist: &Gist, useful: bool) -> Option<RuleChange> {
        if !self.config.learn {
            return None;
        }
        let domain = domain_key(url.registrable_domain());
        if let Some(rule) = self.exploring.remove(&url.fingerprint().0) {
            return self.explored(rule, useful);
        }
        if self.set_of(url, domain).is_some() {
            // It was on its way when the rule was learned.
            return None;
        }
        if !useful {
            self.count_useless(url, domain);
        }
        let known = active_of(&self.active, &self.rules, domain).filter(|r| r.pattern.kind.is_equivalence());
        let known: Vec<&Rule> = known.collect();
        let suspect = self.suspects.get_mut(&domain)?;
        self.observed += 1;
        suspect.seen = self.observed;
        let (pattern, evidence) = suspect.learn(url, gist, useful, &known, self.config.learn_after)?;
        let room = self.active.get(&domain).map_or(0, Vec::len) < RULES_PER_DOMAIN_MAX && self.rules.len() < RULES_MAX;
        (room && !self.settled.contains_key(&pattern.key())).then_some(RuleChange::Learned(pattern, evidence))
    }

    /// Counts a page without anything new. Sites and sets of pages that are counted often enough come under suspicion.
    fn count_useless(&mut self, url: &Url, domain: u64) {
        let sets = Form::of(url).sets();
        self.useless_counted += 1 + sets.len() as u64;
        if self.useless_counted > 4 * self.useless_max {
            self.useless.fade();
            self.useless_counted /= 2;
        }
        if self.useless.insert(domain) >= SUSPECT_AFTER && !self.suspects.contains_key(&domain) {
            if self.suspects.len() >= self.suspects_max {
                let oldest = self.suspects.iter().min_by_key(|(_, s)| s.seen).map(|(key, _)| *key);
                oldest.and_then(|key| self.suspects.remove(&key));
            }
            self.suspects.insert(domain, Suspect::default());
        }
        for set in sets {
            let key = set.key() ^ domain;
            if self.useless.insert(key) >= SUSPECT_AFTER
                && let Some(suspect) = self.suspects.get_mut(&domain)
            {
                // The suspect counts by itself from now on.
                self.useless.take(key, SUSPECT_AFTER / 2);
                suspect.track(&set);
            }
        }
    }

    /// A URL that a rule speaks of was fetched to see whether the rule holds.
    fn explored(&mut self, number: u32, useful: bool) -> Option<RuleChange> {
        let rule = &mut self.rules[number as usize - 1];
        rule.explored += 1;
        if !useful {
            rule.streak = 0;
            return None;
        }
        rule.surprises += 1;
        rule.streak += 1;
        // The next one is looked at as well: a page with news may be chance, or have come before the one that it repeats; three in
        // a row, or three and every second, are not.
        rule.explore_at = rule.held + rule.explored;
        let wrong = rule.streak >= 3 || rule.surprises >= 3 && rule.surprises * 2 >= rule.explored;
        wrong.then_some(RuleChange::Retracted(number))
    }

    /// Applies a change that the log holds.
    pub fn apply(&mut self, change: &RuleChange, at: Timestamp) {
        match change {
            RuleChange::Learned(pattern, evidence) => self.add(Rule {
                number: self.rules.len() as u32 + 1,
                pattern: pattern.clone(),
                evidence: evidence.clone(),
                learned: at,
                state: State::Active,
                held: 0,
                explored: 0,
                surprises: 0,
                streak: 0,
                explore_at: EXPLORE_FIRST,
            }),
            RuleChange::Retracted(number) => self.end(*number, State::Retracted),
            RuleChange::Undone(number) => self.end(*number, State::Undone),
        }
    }

    fn add(&mut self, rule: Rule) {
        self.settled.insert(rule.pattern.key(), ());
        let domain = rule.domain_key();
        let active = rule.state == State::Active;
        self.rules.push(rule);
        if !active {
            return;
        }
        self.active.entry(domain).or_default().push(self.rules.len() as u32);
        // Of what was fetched lately nothing need be fetched again.
        let urls: Vec<Url> = self.suspects.get(&domain).into_iter().flat_map(Suspect::urls).cloned().collect();
        for url in urls {
            let (form, _) = self.left_of(&url, domain);
            self.represented.insert(form.class());
        }
    }

    fn end(&mut self, number: u32, state: State) {
        let Some(rule) = (number as usize).checked_sub(1).and_then(|at| self.rules.get_mut(at)) else { return };
        rule.state = state;
        let domain = rule.domain_key();
        if let Some(active) = self.active.get_mut(&domain) {
            active.retain(|n| *n != number);
            if active.is_empty() {
                self.active.remove(&domain);
            }
        }
        self.released = true;
    }

    /// Whether rules ended since it was last asked, so that URLs that were held back should be judged again.
    pub fn take_released(&mut self) -> bool {
        std::mem::take(&mut self.released)
    }

    /// What to do with a URL whose turn has come.
    pub fn judge(&mut self, url: &Url) -> Verdict {
        if self.active.is_empty() || !self.config.learn {
            return Verdict::Visit;
        }
        let domain = domain_key(url.registrable_domain());
        if !self.active.contains_key(&domain) {
            return Verdict::Visit;
        }
        let (form, equivalence) = self.left_of(url, domain);
        let class = form.class();
        let known = !self.represented.insert(class);
        let equivalence = equivalence.filter(|_| known);
        let Some(number) = equivalence.or_else(|| self.set_of(url, domain)) else { return Verdict::Visit };
        let rule = &mut self.rules[number as usize - 1];
        if rule.held + rule.explored >= rule.explore_at {
            rule.explore_at = (rule.explore_at * 3 / 2).max(EXPLORE_FIRST);
            if self.exploring.len() < EXPLORING_MAX {
                self.exploring.insert(url.fingerprint().0, number);
            }
            return Verdict::Visit;
        }
        rule.held += 1;
        Verdict::Hold(number)
    }

    /// The rule that speaks of a URL, if there is one.
    pub fn speaks_of(&self, url: &Url) -> Option<u32> {
        if self.active.is_empty() {
            return None;
        }
        let domain = domain_key(url.registrable_domain());
        self.left_of(url, domain).1.or_else(|| self.set_of(url, domain))
    }

    /// What is left of a URL when everything that does not matter is taken away, and the first rule that took something.
    fn left_of<'a>(&self, url: &'a Url, domain: u64) -> (Form<'a>, Option<u32>) {
        let mut form = Form::of(url);
        let mut first = None;
        for rule in active_of(&self.active, &self.rules, domain) {
            if form.apply(&rule.pattern) {
                first = first.or(Some(rule.number));
            }
        }
        (form, first)
    }

    fn set_of(&self, url: &Url, domain: u64) -> Option<u32> {
        let form = Form::of(url);
        active_of(&self.active, &self.rules, domain).find(|rule| form.is_one_of(&rule.pattern)).map(|rule| rule.number)
    }

    /// All rules, in the order they were learned.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Writes the rules into a checkpoint.
    pub fn save(&self, into: &mut Vec<u8>) {
        into.put_u64(self.rules.len() as u64);
        self.rules.iter().for_each(|rule| rule.put(into));
    }

    /// Reads what [`Traps::save`] wrote.
    pub fn load(&mut self, from: &mut Take<'_>) -> Result<(), Malformed> {
        for number in 1..=from.u32()? {
            self.add(Rule::take(number, from)?);
        }
        Ok(())
    }
}

impl Rule {
    fn domain_key(&self) -> u64 {
        let site = &*self.pattern.site;
        if self.pattern.kind == Kind::Subdomain {
            return domain_key(site);
        }
        Url::parse(&format!("{site}/")).map_or_else(|_| domain_key(site), |url| domain_key(url.registrable_domain()))
    }
}

fn active_of<'a>(active: &'a Map<Vec<u32>>, rules: &'a [Rule], domain: u64) -> impl Iterator<Item = &'a Rule> {
    active.get(&domain).into_iter().flatten().map(|n| &rules[*n as usize - 1])
}

fn domain_key(domain: &str) -> u64 {
    Fingerprint::of(domain).0
}
