//! Where pages point.
//!
//! Three kinds of links make up a page's out-degree. Navigation: the host's first pages, on every page. The tree: page
//! `j` points to pages `a·j + 1 … a·j + a`, which makes every page reachable from `/`; page 0 of host `i` points to
//! page 0 of hosts `b·i + 1 … b·i + b`, which makes every host reachable from host 0. Chance: everything else, to
//! targets whose popularity follows a power law, some of them by way of a redirect, missing, failing or closed.
//!
//! The tree's links are always plain: direct, followed, to pages that answer 200 and that robots.txt allows.

use super::path::Target;
use super::{Page, Web};
use crate::hash::{Dice, Purpose, pareto};

/// One link of a page, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads, absolute, without fragment.
    pub url: String,
    /// The value of the `href` attribute (character references decoded).
    pub href: String,
    /// The anchor text.
    pub text: String,
    /// Marked `rel="nofollow"`.
    pub nofollow: bool,
    /// What is there.
    pub target: Target,
}

/// How a link is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// `http://host/path`
    Absolute,
    /// `//host/path`
    SchemeRelative,
    /// `/path`
    Rooted,
    /// `../path`
    Relative,
}

/// Where on the page a link stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Nav,
    Body,
    Footer,
}

/// A link before it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) form: Form,
    pub(crate) place: Place,
    pub(crate) nofollow: bool,
    /// 0 = no fragment.
    pub(crate) fragment: u8,
}

/// Pages in the navigation beside `/`.
const HUBS: u64 = 3;

impl Web {
    /// The links (`<a href>`) of a page, in document order. A duplicate has the links of its original.
    pub fn links(&self, host: u64, page: u64) -> Vec<Link> {
        let Page { host, page } = self.twin(host, page).unwrap_or(Page { host, page });
        let depth = self.depth_of(host, page);
        let mut plans = Vec::new();
        self.plan(host, page, &mut plans);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        plans
            .iter()
            .map(|plan| {
                let (mut href, mut title) = (Vec::new(), Vec::new());
                self.put_href(plan, depth, "&", &mut href);
                self.put_anchor(plan, &mut title);
                let url = self.target_url(plan.target);
                Link { url, href: text(href), text: text(title), nofollow: plan.nofollow, target: plan.target }
            })
            .collect()
    }

    /// Decides all links of a page, in document order.
    pub(crate) fn plan(&self, host: u64, page: u64, plans: &mut Vec<Plan>) {
        plans.clear();
        let config = &self.config;
        let mut dice = Dice::new(self.draw(Purpose::Links, host, page));
        let pages = self.pages_of(host);
        let absolute = self.is_original(host, page);
        let total = pareto(dice.unit(), f64::from(config.links), 3.0, 8.0);
        let foreign = total * config.foreign_share;
        let mut foreign = foreign as u64 + u64::from(dice.chance(foreign.fract()));
        let mut local = (total.round() as u64).saturating_sub(foreign);

        let plain = |target, place, form| {
            let form = if absolute { Form::Absolute } else { form };
            Plan { target, form, place, nofollow: false, fragment: 0 }
        };
        for page in 0..pages.min(HUBS + 1) {
            plans.push(plain(Target::Page { host, page }, Place::Nav, Form::Rooted));
        }
        for page in children(page, self.page_arity(), pages) {
            plans.push(plain(Target::Page { host, page }, Place::Body, local_form(&mut dice)));
        }
        local = local.saturating_sub(plans.len() as u64 + 1);
        if page == 0 {
            for host in children(host, self.host_arity(), self.hosts()) {
                plans.push(plain(Target::Page { host, page: 0 }, Place::Body, foreign_form(&mut dice)));
                foreign = foreign.saturating_sub(1);
            }
        }
        // Chance decides what is left, local and foreign in mixed order.
        while local + foreign > 0 {
            let abroad = self.hosts() > 1 && dice.below(local + foreign) >= local;
            let (target, form) = if abroad {
                foreign -= 1;
                (self.foreign_target(host, &mut dice), foreign_form(&mut dice))
            } else {
                local = local.saturating_sub(1);
                foreign = if self.hosts() > 1 { foreign } else { 0 };
                (self.local_target(host, pages, &mut dice), local_form(&mut dice))
            };
            let mut plan = plain(target, Place::Body, form);
            let draw = dice.next();
            plan.nofollow = crate::hash::unit(draw) < config.nofollow_share;
            plan.fragment = if draw.is_multiple_of(16) { 1 + (draw >> 4) as u8 % 5 } else { 0 };
            plans.push(plan);
        }
        plans.push(plain(Target::Page { host, page: 0 }, Place::Footer, Form::Relative));
    }

    /// A link within the host that chance draws: mostly a page, sometimes trouble.
    fn local_target(&self, host: u64, pages: u64, dice: &mut Dice) -> Target {
        let config = &self.config;
        let mut u = dice.unit();
        let mut falls = |share: f64| {
            u -= share;
            u < 0.0
        };
        // A quarter as many trouble URLs as pages, so that most are met more than once.
        let key = |dice: &mut Dice| dice.below(1 + pages / 4);
        if falls(config.not_found_share) {
            return Target::Missing { host, key: key(dice) };
        }
        if falls(config.error_share) {
            return Target::Error { host, key: key(dice) };
        }
        if falls(config.redirect_share) {
            return Target::Redirect { host, key: key(dice) };
        }
        if falls(config.private_share) && self.is_closed(host) {
            return self.closed_target(host, dice);
        }
        Target::Page { host, page: self.popular_page(dice, pages) }
    }

    /// Something that the host's robots.txt closes.
    pub(crate) fn closed_target(&self, host: u64, dice: &mut Dice) -> Target {
        let pages = self.pages_of(host);
        let page = self.popular_page(dice, pages);
        if dice.chance(0.3) && self.has_print(host, page) {
            return Target::Print { host, page };
        }
        Target::Private { host, key: dice.below(1 + pages / 4) }
    }

    /// A page of another host: more often its front page than any other.
    pub(crate) fn foreign_target(&self, from: u64, dice: &mut Dice) -> Target {
        let hosts = self.hosts();
        let mut host = self.popular_host(dice);
        if host == from {
            host = (host + 1) % hosts;
        }
        let page = if dice.chance(0.6) { 0 } else { self.popular_page(dice, self.pages_of(host)) };
        Target::Page { host, page }
    }

    /// Writes the value of the `href` attribute, on a page so many folders below the root.
    pub(crate) fn put_href(&self, plan: &Plan, depth: usize, ampersand: &str, out: &mut Vec<u8>) {
        match plan.form {
            Form::Absolute => self.put_origin(plan.target.host(), out),
            Form::SchemeRelative => {
                out.extend_from_slice(b"//");
                self.put_authority(plan.target.host(), out);
            }
            Form::Rooted => {}
            Form::Relative => {
                out.extend_from_slice(if depth == 0 { b"." } else { b".." });
                for _ in 1..depth {
                    out.extend_from_slice(b"/..");
                }
            }
        }
        self.put_path(plan.target, ampersand, out);
        if plan.fragment > 0 {
            out.extend_from_slice(b"#part-");
            out.push(b'0' + plan.fragment);
        }
    }

    pub(crate) fn put_anchor(&self, plan: &Plan, out: &mut Vec<u8>) {
        match (plan.place, plan.target) {
            (Place::Nav, Target::Page { page: 0, .. }) => out.extend_from_slice(b"Home"),
            (Place::Footer, _) => out.extend_from_slice(b"Back to the front page"),
            _ => self.put_title(plan.target, out),
        }
    }
}

/// The children of a node in the complete tree of this arity over `0..count`.
fn children(node: u64, arity: u64, count: u64) -> std::ops::Range<u64> {
    if arity == 0 {
        return 0..0;
    }
    let first = node * arity + 1;
    first.min(count)..(first + arity).min(count)
}

fn local_form(dice: &mut Dice) -> Form {
    match dice.below(8) {
        0 => Form::Absolute,
        1 => Form::SchemeRelative,
        2 | 3 => Form::Relative,
        _ => Form::Rooted,
    }
}

fn foreign_form(dice: &mut Dice) -> Form {
    if dice.below(6) == 0 { Form::SchemeRelative } else { Form::Absolute }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WebConfig;
    use std::collections::BTreeMap;

    #[test]
    fn degrees_and_shares_are_as_configured() {
        let web = Web::new(WebConfig { hosts: 400, ..WebConfig::default() }).unwrap();
        let (mut pages, mut links, mut foreign, mut most) = (0u64, 0u64, 0u64, 0);
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for host in 0..400 {
            for page in 0..web.pages_of(host).min(20) {
                let all = web.links(host, page);
                pages += 1;
                links += all.len() as u64;
                most = most.max(all.len());
                foreign += all.iter().filter(|l| l.target.host() != host).count() as u64;
                for link in &all {
                    let kind = match link.target {
                        Target::Page { .. } => "page",
                        Target::Print { .. } | Target::Private { .. } => "closed",
                        Target::Redirect { .. } => "redirect",
                        Target::Missing { .. } => "missing",
                        Target::Error { .. } => "error",
                    };
                    *kinds.entry(kind).or_default() += 1;
                }
            }
        }
        let mean = links as f64 / pages as f64;
        let share = foreign as f64 / links as f64;
        assert!((23.0..28.0).contains(&mean), "{mean} links a page");
        assert!((0.17..0.25).contains(&share), "{share} of them foreign");
        assert!(most > 60, "degrees have a tail, the longest {most}");
        for kind in ["closed", "redirect", "missing", "error"] {
            assert!(kinds[kind] > 100, "{kinds:?}");
        }
    }

    #[test]
    fn popularity_falls_with_the_index() {
        let web = Web::new(WebConfig::plain(300, 30)).unwrap();
        let mut into = vec![0u32; 300];
        for host in 0..300 {
            for link in (1..30).flat_map(|page| web.links(host, page)) {
                if link.target.host() != host {
                    into[link.target.host() as usize] += 1;
                }
            }
        }
        assert!(into[0] > 5 * into[100], "{} {}", into[0], into[100]);
        assert!(into.iter().all(|&n| n > 0));
    }

    #[test]
    fn forms_are_mixed_and_originals_are_absolute() {
        let web = Web::new(WebConfig::default()).unwrap();
        let hrefs: Vec<String> = (0..20).flat_map(|h| web.links(h, 0)).map(|l| l.href).collect();
        for start in ["http://", "//", "./", "/"] {
            assert!(hrefs.iter().any(|h| h.starts_with(start)), "{start}");
        }
        assert!(hrefs.iter().any(|h| h.contains("#part-")));
        for host in 0..20 {
            for page in (0..web.pages_of(host)).filter(|&p| web.is_original(host, p)) {
                assert!(web.links(host, page).iter().all(|l| l.href.starts_with("http://")));
            }
        }
    }
}
