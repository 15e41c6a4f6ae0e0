//! The parts of a URL that a trap may vary, and what is left of a URL when some of them do not matter.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::rule::{Kind, Pattern};
use crate::url::Url;

/// Parameters and segments looked at; a URL with more is told by its budget.
const PARTS_MAX: usize = 24;
/// Parameters of which each is tried by itself.
const PARAMS_TRIED_MAX: usize = 8;
/// Segments of which each is tried by itself.
const SEGMENTS_TRIED_MAX: usize = 4;

/// A URL taken apart.
#[derive(Clone, Debug)]
pub(super) struct Form<'a> {
    /// Scheme, host and port; or only the registrable domain, when the sub-domain does not matter.
    site: &'a str,
    domain: &'a str,
    segments: Vec<Cow<'a, str>>,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Form<'a> {
    pub fn of(url: &'a Url) -> Form<'a> {
        let segments = url.path().split('/').skip(1).take(PARTS_MAX).map(Cow::Borrowed).collect();
        let params = url.query().into_iter().flat_map(|q| q.split('&')).take(PARTS_MAX);
        let params = params.map(|p| p.split_once('=').unwrap_or((p, ""))).collect();
        Form { site: url.origin(), domain: url.registrable_domain(), segments, params }
    }

    /// What is left, as a number.
    pub fn class(&self) -> u64 {
        let mut text = String::with_capacity(128);
        text.push_str(self.site);
        for segment in &self.segments {
            text.push('/');
            text.push_str(segment);
        }
        for (name, value) in &self.params {
            text.extend(["\u{1}", name, "\u{2}", value]);
        }
        xxh3_64(text.as_bytes())
    }

    /// Takes away what does not matter according to a pattern. False if it says nothing of this URL, or there is nothing
    /// to take away.
    pub fn apply(&mut self, pattern: &Pattern) -> bool {
        if !self.is_in_scope(pattern) {
            return false;
        }
        match pattern.kind {
            Kind::Param => {
                let before = self.params.len();
                self.params.retain(|(name, _)| *name != &*pattern.name);
                before != self.params.len()
            }
            Kind::PathParam => {
                let mut changed = false;
                for segment in &mut self.segments {
                    if let Some(rest) = without_path_param(segment, &pattern.name) {
                        *segment = Cow::Owned(rest);
                        changed = true;
                    }
                }
                changed
            }
            Kind::Query => !std::mem::take(&mut self.params).is_empty(),
            Kind::Order => {
                let sorted = self.params.is_sorted();
                self.params.sort_unstable();
                !sorted
            }
            Kind::PathOrder => {
                let sorted = self.segments.is_sorted();
                self.segments.sort_unstable();
                !sorted
            }
            Kind::Segment => {
                let at = pattern.path.matches('/').count() - 1;
                match self.segments.get_mut(at) {
                    Some(segment) if looks_made_up(segment) => {
                        *segment = Cow::Borrowed("*");
                        true
                    }
                    _ => false,
                }
            }
            Kind::Spelling => self.fold_spelling(),
            Kind::Repeats => self.fold_repeats(),
            Kind::Subdomain => {
                let changed = self.site != self.domain;
                self.site = self.domain;
                changed
            }
            Kind::Shape | Kind::Queries | Kind::Siblings | Kind::Subtree => false,
        }
    }

    /// What a pattern says does not matter, in this URL, as a number: two URLs are worth comparing if it differs.
    pub fn value_of(&self, pattern: &Pattern) -> u64 {
        let mut text = String::new();
        match pattern.kind {
            Kind::Param => {
                let values = self.params.iter().filter(|(name, _)| *name == &*pattern.name);
                values.for_each(|(_, value)| text.extend(["=", value]));
            }
            Kind::Segment => {
                text.extend(self.segments.get(pattern.path.matches('/').count() - 1).map(|s| &**s));
            }
            Kind::Query => {
                let mut params = self.params.clone();
                params.sort_unstable();
                params.iter().for_each(|(name, value)| text.extend(["&", name, "=", value]));
            }
            _ => return self.class(),
        }
        xxh3_64(text.as_bytes())
    }

    /// Whether a pattern of pages that bring nothing new speaks of this URL.
    pub fn is_one_of(&self, pattern: &Pattern) -> bool {
        if self.site != &*pattern.site {
            return false;
        }
        match pattern.kind {
            Kind::Shape => self.shape() == *pattern.path,
            Kind::Queries => !self.params.is_empty() && self.path_template() == *pattern.path,
            Kind::Siblings => self.directory().as_deref() == Some(&*pattern.path),
            Kind::Subtree => self.first_directory().as_deref() == Some(&*pattern.path),
            _ => false,
        }
    }

    fn is_in_scope(&self, pattern: &Pattern) -> bool {
        match pattern.kind {
            Kind::Subdomain => self.domain == &*pattern.site,
            Kind::Segment => {
                self.site == &*pattern.site
                    && self.template(pattern.path.matches('/').count() - 1).is_some_and(|t| t == *pattern.path)
            }
            _ => self.site == &*pattern.site && (pattern.path.is_empty() || self.path_template() == *pattern.path),
        }
    }

    /// Everything about this URL that may turn out not to matter.
    pub fn suspicions(&self) -> Vec<Pattern> {
        let mut found = Vec::new();
        let pattern = |kind, path: &str, name: &str| Pattern::new(kind, self.site, path, name);
        let whole = self.path_template();
        for (name, _) in self.params.iter().take(PARAMS_TRIED_MAX) {
            found.push(pattern(Kind::Param, "", name));
            found.push(pattern(Kind::Param, &whole, name));
        }
        for name in self.segments.iter().flat_map(|s| s.split(';').skip(1)).take(2) {
            found.push(pattern(Kind::PathParam, "", name.split('=').next().unwrap_or_default()));
        }
        if self.params.len() >= 2 {
            found.push(pattern(Kind::Order, &whole, ""));
            found.push(pattern(Kind::Query, &whole, ""));
        }
        for at in (0..self.segments.len()).filter(|&at| looks_made_up(&self.segments[at])).take(SEGMENTS_TRIED_MAX) {
            if let Some(before) = self.template(at) {
                found.push(pattern(Kind::Segment, &before, ""));
            }
        }
        if self.segments.len() >= 3 {
            found.push(pattern(Kind::PathOrder, "", ""));
        }
        if self.clone().fold_repeats() {
            found.push(pattern(Kind::Repeats, "", ""));
        }
        found.push(pattern(Kind::Spelling, "", ""));
        found.push(Pattern::new(Kind::Subdomain, self.domain, "", ""));
        found
    }

    /// The sets of pages it belongs to, the narrowest first.
    pub fn sets(&self) -> Vec<Pattern> {
        let pattern = |kind, path: &str| Pattern::new(kind, self.site, path, "");
        let mut sets = vec![pattern(Kind::Shape, &self.shape())];
        sets.extend((!self.params.is_empty()).then(|| pattern(Kind::Queries, &self.path_template())));
        sets.extend(self.directory().map(|d| pattern(Kind::Siblings, &d)));
        sets.extend(self.first_directory().map(|d| pattern(Kind::Subtree, &d)));
        sets
    }

    /// The path with numbers and made-up names left out, and the names of the parameters.
    fn shape(&self) -> String {
        let mut names: Vec<&str> = self.params.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        let mut shape = self.path_template();
        for (i, name) in names.into_iter().enumerate() {
            shape.push(if i == 0 { '?' } else { '&' });
            shape.push_str(name);
        }
        shape
    }

    /// Where on the site it is, as a number: the path's template.
    pub fn place(&self) -> u64 {
        xxh3_64(self.path_template().as_bytes())
    }

    fn path_template(&self) -> String {
        self.template(self.segments.len()).unwrap_or_default()
    }

    /// The first `count` segments, each with a slash before it and, if they are not all, one behind them.
    fn template(&self, count: usize) -> Option<String> {
        let mut text = String::new();
        for segment in self.segments.get(..count)? {
            text.push('/');
            put_template(segment, &mut text);
        }
        if count < self.segments.len() {
            text.push('/');
        }
        Some(text)
    }

    /// The directory the page is in. Pages with a query are a set of their own by their shape.
    fn directory(&self) -> Option<String> {
        let (_, before) = self.segments.split_last().filter(|_| self.params.is_empty())?;
        let mut text: String = before.iter().flat_map(|s| ["/", s]).collect();
        text.push('/');
        Some(text)
    }

    fn first_directory(&self) -> Option<String> {
        (self.segments.len() >= 2).then(|| format!("/{}/", self.segments[0]))
    }

    /// Small letters, no empty segments, no name of a start page.
    fn fold_spelling(&mut self) -> bool {
        let before = self.clone();
        for segment in &mut self.segments {
            if segment.bytes().any(|b| b.is_ascii_uppercase() || b == b'%') {
                *segment = Cow::Owned(percent_decoded(segment).to_ascii_lowercase());
            }
        }
        self.segments.retain(|s| !s.is_empty() && **s != *".");
        if self.segments.last().is_some_and(|s| matches!(s.split_once('.'), Some(("index" | "default" | "home", _)))) {
            self.segments.pop();
        }
        self.segments != before.segments
    }

    /// Of segments that recur, only the first of each stays; the last segment, the page, stays in any case.
    fn fold_repeats(&mut self) -> bool {
        let before = self.segments.len();
        let last = self.segments.pop();
        let mut met: Vec<Cow<'a, str>> = Vec::with_capacity(before);
        for segment in self.segments.drain(..) {
            if !met.contains(&segment) {
                met.push(segment);
            }
        }
        met.extend(last);
        self.segments = met;
        self.segments.len() != before
    }
}

/// Whether a segment looks like an id rather than a name.
fn looks_made_up(segment: &str) -> bool {
    segment.bytes().any(|b| b.is_ascii_digit()) || segment.len() >= 16 && !segment.contains(['-', '_', '.'])
}

/// `page17.html` becomes `page{n}.html`, `9f3c2a77d0e1` becomes `{id}`.
fn put_template(segment: &str, into: &mut String) {
    let letters = segment.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    if digits >= 2 && letters >= 2 && segment.len() >= 8 && letters + digits == segment.len() {
        into.push_str("{id}");
        return;
    }
    let mut in_number = false;
    for c in segment.chars() {
        if !c.is_ascii_digit() {
            into.push(c);
        } else if !in_number {
            into.push_str("{n}");
        }
        in_number = c.is_ascii_digit();
    }
}

fn without_path_param(segment: &str, name: &str) -> Option<String> {
    let is_it = |part: &&str| part.split('=').next() == Some(name);
    segment.split(';').skip(1).any(|p| is_it(&p)).then(|| {
        let kept = segment.split(';').enumerate().filter(|(i, part)| *i == 0 || !is_it(part));
        kept.map(|(_, part)| part).collect::<Vec<_>>().join(";")
    })
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left() {
        fn check(kind: Kind, path: &str, name: &str, a: &str, b: &str, same: bool) {
            let (a, b) = (Url::parse(a).expect(a), Url::parse(b).expect(b));
            let site = if kind == Kind::Subdomain { a.registrable_domain() } else { a.origin() };
            let pattern = Pattern::new(kind, site, path, name);
            let class = |url| {
                let mut form = Form::of(url);
                form.apply(&pattern);
                form.class()
            };
            assert_eq!(class(&a) == class(&b), same, "{kind:?} {a:?} {b:?}");
        }
        check(Kind::Param, "", "sid", "http://a.test/x?sid=1&p=2", "http://a.test/x?p=2&sid=77", true);
        check(Kind::Param, "", "sid", "http://a.test/x?sid=1&p=2", "http://a.test/x?sid=1&p=3", false);
        check(Kind::Param, "", "sid", "http://a.test/x?sid=1", "http://a.test/x", true);
        check(Kind::Param, "/x{n}", "m", "http://a.test/x1?m=1", "http://a.test/x1?m=2", true);
        check(Kind::Param, "/x{n}", "m", "http://a.test/y1?m=1", "http://a.test/y1?m=2", false);
        check(Kind::PathParam, "", "jsessionid", "http://a.test/x;jsessionid=1", "http://a.test/x", true);
        check(Kind::PathParam, "", "jsessionid", "http://a.test/x;v=1;jsessionid=1", "http://a.test/x;v=2", false);
        check(Kind::Query, "/cal", "", "http://a.test/cal?y=1&m=2", "http://a.test/cal?m=7&y=3", true);
        check(Kind::Order, "/s", "", "http://a.test/s?a=1&b=2", "http://a.test/s?b=2&a=1", true);
        check(Kind::Order, "/s", "", "http://a.test/s?a=1&b=2", "http://a.test/s?b=2&a=2", false);
        check(Kind::PathOrder, "", "", "http://a.test/red/big/x", "http://a.test/big/x/red", true);
        check(Kind::Segment, "/s/", "", "http://a.test/s/9f3/page", "http://a.test/s/77a/page", true);
        check(Kind::Segment, "/s/", "", "http://a.test/s/9f3/page", "http://a.test/t/77a/page", false);
        check(Kind::Segment, "/s/", "", "http://a.test/s/about/page", "http://a.test/s/help/page", false);
        check(Kind::Spelling, "", "", "http://a.test/A/B/", "http://a.test/a//b/index.html", true);
        check(Kind::Spelling, "", "", "http://a.test/%7Ea", "http://a.test/~a", true);
        check(Kind::Repeats, "", "", "http://a.test/a/b/a/b/c", "http://a.test/a/b/c", true);
        check(Kind::Repeats, "", "", "http://a.test/a/b/c", "http://a.test/a/d/c", false);
        check(Kind::Subdomain, "", "", "http://x1.a.test/p", "http://x2.y.a.test/p", true);
        check(Kind::Subdomain, "", "", "http://x1.a.test/p", "http://x2.b.test/p", false);
    }

    #[test]
    fn sets() {
        fn check(url: &str, expected: &[(Kind, &str)]) {
            let url = Url::parse(url).expect(url);
            let sets = Form::of(&url).sets();
            let found: Vec<(Kind, &str)> = sets.iter().map(|p| (p.kind, &*p.path)).collect();
            assert_eq!(found, expected, "{url:?}");
            assert!(sets.iter().all(|p| Form::of(&url).is_one_of(p)));
        }
        check("http://a.test/", &[(Kind::Shape, "/"), (Kind::Siblings, "/")]);
        check("http://a.test/cal?y=1&m=2", &[(Kind::Shape, "/cal?m&y"), (Kind::Queries, "/cal")]);
        check(
            "http://a.test/cal/2031/05.html",
            &[(Kind::Shape, "/cal/{n}/{n}.html"), (Kind::Siblings, "/cal/2031/"), (Kind::Subtree, "/cal/")],
        );
        check(
            "http://a.test/s/9f3c2a77d0/x",
            &[(Kind::Shape, "/s/{id}/x"), (Kind::Siblings, "/s/9f3c2a77d0/"), (Kind::Subtree, "/s/")],
        );
    }
}
