//! What the pages of each site have in common, for the sites that were visited last.
//!
//! A host is visited by one thread, one page at a time, so its template is taken out for the visit and put back behind it. Nothing of it
//! survives a restart: a site's first pages are then judged alone once more, and sketches of main texts hardly differ.

use std::collections::{BTreeMap, HashMap};

use rhumb_core::page::SiteTemplate;
use rhumb_core::url::Host;

/// Templates of at most so many sites; the one that was not used for longest is forgotten.
#[derive(Debug, Default)]
pub struct Templates {
    by_host: HashMap<u64, (u64, SiteTemplate)>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    sites_max: usize,
}

impl Templates {
    /// Room for `sites_max` sites.
    pub fn new(sites_max: usize) -> Templates {
        Templates { sites_max, ..Templates::default() }
    }

    /// The template of a host, empty if the host is new.
    pub fn take(&mut self, host: &Host) -> SiteTemplate {
        let known = self.by_host.remove(&host.fingerprint().0);
        known.map_or_else(SiteTemplate::new, |(used, template)| {
            self.by_use.remove(&used);
            template
        })
    }

    /// Keeps what was learned.
    pub fn put(&mut self, host: &Host, template: SiteTemplate) {
        if self.sites_max == 0 {
            return;
        }
        let key = host.fingerprint().0;
        self.uses += 1;
        if let Some((used, _)) = self.by_host.insert(key, (self.uses, template)) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.uses, key);
        if self.by_host.len() > self.sites_max
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_host.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use rhumb_core::page::{ExtractOptions, Extractor};
    use rhumb_core::url::Url;

    use super::*;

    #[test]
    fn the_site_that_was_not_visited_for_longest_is_forgotten() {
        let host = |n: u32| Url::parse(&format!("http://h{n}.example/")).expect("a URL").host();
        let learned = |pages: usize| {
            let mut extractor = Extractor::new();
            extractor.use_template(SiteTemplate::new());
            let options = ExtractOptions { main_text: true, ..ExtractOptions::default() };
            for word in ["one", "another", "third"].iter().take(pages) {
                extractor.extract(&format!("<p>This {word} page says something. And {word} more.</p>"), &options);
            }
            extractor.take_template().expect("it was given one")
        };
        let mut templates = Templates::new(2);
        templates.put(&host(1), learned(1));
        templates.put(&host(2), learned(2));
        let first = templates.take(&host(1));
        assert_eq!(first.pages_learned(), 1);
        templates.put(&host(1), first);
        templates.put(&host(3), learned(3));
        let pages = [1, 2, 3].map(|n| templates.take(&host(n)).pages_learned());
        assert_eq!(pages, [1, 0, 3], "the second was used longest ago");
        assert!(templates.by_host.is_empty() && templates.by_use.is_empty());
    }
}
