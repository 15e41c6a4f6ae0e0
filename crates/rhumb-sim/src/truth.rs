//! Ground truth: what a URL is, and what a perfect crawler would find.
//!
//! The walk here follows links as data, never markup, and judges robots rules with the matcher of this crate, so that
//! it can be held against a crawler that does both by other means.

use std::collections::{BTreeSet, VecDeque};

use crate::web::path::Target;
use crate::web::{Page, Web};

/// What a URL is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// A page that answers 200.
    Page {
        /// Index of the host.
        host: u64,
        /// Index of the page.
        page: u64,
        /// The page whose body it repeats, if it is a duplicate.
        twin: Option<Page>,
    },
    /// A redirect.
    Redirect {
        /// Index of the host.
        host: u64,
        /// 301, 302, 307 or 308.
        status: u16,
        /// Where it leads, absolute.
        to: String,
    },
    /// Nothing is there: 404 or 410.
    Missing {
        /// Index of the host.
        host: u64,
        /// The status.
        status: u16,
    },
    /// The server fails: 500 or 503.
    Error {
        /// Index of the host.
        host: u64,
        /// The status.
        status: u16,
    },
    /// The host's robots.txt forbids it to agents that it does not name.
    Disallowed {
        /// Index of the host.
        host: u64,
    },
    /// The host's robots.txt itself.
    Robots {
        /// Index of the host.
        host: u64,
    },
    /// A document that a test has put there.
    Document {
        /// Index of the host.
        host: u64,
        /// The status it answers with.
        status: u16,
    },
    /// Not a URL of this web.
    Foreign,
}

/// How far a walk may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everywhere.
    Any,
    /// Only the hosts of the seeds.
    Host,
}

/// What a walk found, each kind by URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Pages that answer 200, duplicates included.
    pub pages: BTreeSet<String>,
    /// Redirects, whether or not their target is in scope.
    pub redirects: BTreeSet<String>,
    /// 404 and 410.
    pub missing: BTreeSet<String>,
    /// 500 and 503.
    pub errors: BTreeSet<String>,
    /// Found, but closed by robots.txt.
    pub disallowed: BTreeSet<String>,
    /// Documents put in by a test. Their links are not followed: the walk does not read markup.
    pub documents: BTreeSet<String>,
    /// Hosts of whom at least one URL was found.
    pub hosts: BTreeSet<u64>,
}

impl Web {
    /// What a URL is, with the rules and documents of this moment. Robots rules are those for an agent that no
    /// robots.txt names.
    pub fn classify(&self, url: &str) -> Truth {
        self.classify_for("*", url)
    }

    /// What a URL is for this agent.
    pub fn classify_for(&self, agent: &str, url: &str) -> Truth {
        let Some((host, path)) = self.split(url) else { return Truth::Foreign };
        if path == "/robots.txt" {
            return Truth::Robots { host };
        }
        if !self.robots(host).allows(agent, &path) {
            return Truth::Disallowed { host };
        }
        if let Some(reply) = self.document(host, &path) {
            return Truth::Document { host, status: reply.status };
        }
        let Some(target) = self.target(host, &path) else { return Truth::Missing { host, status: 404 } };
        let status = self.status_of(target);
        match target {
            Target::Page { host, page } | Target::Print { host, page } => {
                Truth::Page { host, page, twin: self.twin(host, page) }
            }
            // Only an override opens it; then it is a page outside the numbering, like a document.
            Target::Private { host, .. } => Truth::Document { host, status },
            Target::Redirect { host, key } => {
                Truth::Redirect { host, status, to: self.target_url(self.redirect_target(host, key)) }
            }
            Target::Missing { host, .. } => Truth::Missing { host, status },
            Target::Error { host, .. } => Truth::Error { host, status },
        }
    }

    /// Everything that can be reached from the seeds by an agent that honours robots.txt and follows redirects.
    /// Links marked `nofollow` are followed only if asked; no page depends on them.
    pub fn reachable<S: AsRef<str>>(&self, seeds: &[S], scope: Scope, agent: &str, nofollow: bool) -> Reached {
        let mut reached = Reached::default();
        let home: BTreeSet<u64> = seeds.iter().filter_map(|s| self.split(s.as_ref())).map(|(host, _)| host).collect();
        let mut queued: BTreeSet<String> = seeds.iter().map(|s| s.as_ref().to_owned()).collect();
        let mut queue: VecDeque<String> = queued.iter().cloned().collect();
        while let Some(url) = queue.pop_front() {
            let Some((host, path)) = self.split(&url) else { continue };
            if scope == Scope::Host && !home.contains(&host) {
                continue;
            }
            reached.hosts.insert(host);
            let mut found: Vec<String> = Vec::new();
            match self.classify_for(agent, &url) {
                Truth::Page { host, page, .. } => {
                    let links = self.links(host, page).into_iter();
                    found.extend(links.filter(|l| nofollow || !l.nofollow).map(|l| l.url));
                    reached.pages.insert(url);
                }
                Truth::Redirect { to, .. } => {
                    found.push(to);
                    reached.redirects.insert(url);
                }
                Truth::Document { .. } => {
                    if let Some(Target::Private { host, key }) = self.target(host, &path) {
                        found.push(self.target_url(Target::Private { host, key: key + 1 }));
                    }
                    reached.documents.insert(url);
                }
                Truth::Missing { .. } => drop(reached.missing.insert(url)),
                Truth::Error { .. } => drop(reached.errors.insert(url)),
                Truth::Disallowed { .. } => drop(reached.disallowed.insert(url)),
                Truth::Robots { .. } | Truth::Foreign => {}
            }
            for url in found {
                if !queued.contains(&url) {
                    queued.insert(url.clone());
                    queue.push_back(url);
                }
            }
        }
        reached
    }

    /// Host and path (with query, without fragment) of a URL of this web; scheme and port are not looked at.
    fn split(&self, url: &str) -> Option<(u64, String)> {
        let url = url.split('#').next()?;
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let host = self.host_index(&rest[..end])?;
        let path = &rest[end..];
        Some((host, if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reply, WebConfig};

    fn every_page(web: &Web, hosts: std::ops::Range<u64>) -> BTreeSet<String> {
        hosts.flat_map(|h| (0..web.pages_of(h)).map(move |p| (h, p))).map(|(h, p)| web.url(h, p)).collect()
    }

    #[test]
    fn every_page_of_every_host_is_reachable_from_host_0() {
        for seed in 1..4 {
            let web = Web::new(WebConfig { seed, hosts: 60, pages: 12, duplicate_share: 0.2, ..WebConfig::default() });
            let web = web.unwrap();
            let reached = web.reachable(&[web.url(0, 0)], Scope::Any, "rhumb", false);
            let pages = every_page(&web, 0..60);
            assert!(pages.is_subset(&reached.pages), "{:?}", pages.difference(&reached.pages).next());
            assert!(reached.pages == pages, "{:?} is none", reached.pages.difference(&pages).next());
            assert_eq!(reached.hosts.len(), 60);
            for found in [&reached.redirects, &reached.missing, &reached.errors, &reached.disallowed] {
                assert!(!found.is_empty());
            }
        }
    }

    #[test]
    fn a_host_alone_is_reachable_from_its_front_page() {
        let web = Web::new(WebConfig { hosts: 30, duplicate_share: 0.2, ..WebConfig::default() }).unwrap();
        for host in 0..30 {
            let reached = web.reachable(&[web.url(host, 0)], Scope::Host, "rhumb", true);
            assert_eq!(reached.pages, every_page(&web, host..host + 1));
        }
    }

    #[test]
    fn classification_agrees_with_the_answers() {
        let web = Web::new(WebConfig { hosts: 10, ..WebConfig::default() }).unwrap();
        let reached = web.reachable(&[web.url(0, 0)], Scope::Any, "rhumb", true);
        let status = |url: &String| {
            let (host, path) = web.split(url).unwrap();
            web.respond(&crate::Request { host: &web.host_name(host), path: &path, ..Default::default() }).status
        };
        assert!(reached.pages.iter().all(|u| status(u) == 200));
        assert!(reached.redirects.iter().all(|u| (301..309).contains(&status(u))));
        assert!(reached.missing.iter().all(|u| [404, 410].contains(&status(u))));
        assert!(reached.errors.iter().all(|u| [500, 503].contains(&status(u))));
        assert!(reached.disallowed.iter().all(|u| u.contains("/private/") || u.ends_with("?print=1")));
    }

    #[test]
    fn overrides_change_the_truth() {
        let web = Web::new(WebConfig::plain(2, 20)).unwrap();
        assert_eq!(web.classify("http://example.com/"), Truth::Foreign);
        assert_eq!(web.classify("http://h1.sim.test"), web.classify("http://h1.sim.test/#x"));
        web.set_document(1, "/hello", Reply::new(203, "text/plain", "hi"));
        assert_eq!(web.classify("http://h1.sim.test/hello"), Truth::Document { host: 1, status: 203 });
        web.set_robots(1, "User-agent: *\nDisallow: /hello");
        assert_eq!(web.classify("http://h1.sim.test/hello"), Truth::Disallowed { host: 1 });
        web.set_robots(1, "User-agent: *\nDisallow: /");
        let reached = web.reachable(&[web.url(0, 0)], Scope::Any, "rhumb", true);
        assert_eq!(reached.pages, every_page(&web, 0..1));
    }
}
