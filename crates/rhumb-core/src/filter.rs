//! The URL filter: may we want it?
//!
//! Invariant: the answer depends on the URL, its depth and the configuration alone, so a URL refused once would be
//! refused again, and every refusal has a [`DropReason`]. Cheap tests come first; expressions, which cost most, last.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::url::{ShapeLimits, ShapeProblem, Url, UrlError, shape_problem};

/// Bytes that one compiled expression may take; what needs more is a mistake or an attack.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// How far from the seeds a crawl may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The seeds' host names, whatever scheme and port.
    #[default]
    Host,
    /// The seeds' registrable domains.
    Domain,
    /// The seeds' directories, whatever scheme.
    Prefix,
    /// Anywhere.
    Any,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilterConfig {
    /// How far from the seeds.
    pub scope: Scope,
    /// If there are any, a URL must match one of them; seeds need not.
    pub include: Vec<String>,
    /// A URL must match none of them.
    pub exclude: Vec<String>,
    /// Links away from a seed.
    pub depth_max: Option<u32>,
    /// Bounds on the shape of URLs.
    pub shape: ShapeLimits,
    /// Schemes that are fetched.
    pub schemes: Vec<String>,
    /// File name extensions that are not worth a request, without dot.
    pub extensions_excluded: Vec<String>,
    /// Media types that are not wanted, such as `video/*`; judged when the response's head is here.
    pub media_types_excluded: Vec<String>,
}

impl Default for FilterConfig {
    fn default() -> FilterConfig {
        FilterConfig {
            scope: Scope::default(),
            include: Vec::new(),
            exclude: Vec::new(),
            depth_max: None,
            shape: ShapeLimits::default(),
            schemes: vec!["http".into(), "https".into()],
            extensions_excluded: Vec::new(),
            media_types_excluded: Vec::new(),
        }
    }
}

/// Why a URL left the pipeline. The codes are written to disk: new reasons get new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum DropReason {
    /// Too far from the seeds.
    OutOfScope = 1,
    /// An exclude expression matches.
    Excluded = 2,
    /// There are include expressions and none matches.
    NotIncluded = 3,
    /// More links away from a seed than allowed.
    TooDeep = 4,
    /// More bytes than allowed.
    UrlTooLong = 5,
    /// More path segments than allowed.
    PathTooDeep = 6,
    /// One path segment comes again and again.
    RepeatingPath = 7,
    /// A scheme that is not fetched.
    Scheme = 8,
    /// A kind of file that is not wanted.
    MediaType = 9,
    /// Not a URL.
    Unparsable = 10,
}

impl DropReason {
    /// All of them.
    pub const ALL: [DropReason; 10] = [
        DropReason::OutOfScope,
        DropReason::Excluded,
        DropReason::NotIncluded,
        DropReason::TooDeep,
        DropReason::UrlTooLong,
        DropReason::PathTooDeep,
        DropReason::RepeatingPath,
        DropReason::Scheme,
        DropReason::MediaType,
        DropReason::Unparsable,
    ];

    /// A stable name for JSON, counters and messages.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::OutOfScope => "out_of_scope",
            DropReason::Excluded => "excluded",
            DropReason::NotIncluded => "not_included",
            DropReason::TooDeep => "too_deep",
            DropReason::UrlTooLong => "url_too_long",
            DropReason::PathTooDeep => "path_too_deep",
            DropReason::RepeatingPath => "repeating_path",
            DropReason::Scheme => "scheme",
            DropReason::MediaType => "media_type",
            DropReason::Unparsable => "unparsable",
        }
    }

    /// The number that stands for it on disk.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reason that a number stands for.
    pub fn from_code(code: u8) -> Option<DropReason> {
        DropReason::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

impl From<&UrlError> for DropReason {
    fn from(error: &UrlError) -> DropReason {
        match error {
            UrlError::Scheme(_) | UrlError::Closed(_) => DropReason::Scheme,
            UrlError::TooLong { .. } => DropReason::UrlTooLong,
            _ => DropReason::Unparsable,
        }
    }
}

/// A filter that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// An expression does not compile or takes too much memory.
    #[error("{list} expression {expression:?}: {reason}")]
    Expression {
        /// `include` or `exclude`.
        list: &'static str,
        /// The expression as given.
        expression: String,
        /// What is wrong with it, in one line.
        reason: String,
    },
    /// A scheme that nobody here can fetch.
    #[error("scheme {0:?}: only http and https can be fetched")]
    Scheme(String),
}

/// The configuration, ready for use, and the scope that the seeds have drawn.
#[derive(Clone, Debug)]
pub struct Filter {
    config: FilterConfig,
    http: bool,
    https: bool,
    /// Schemes beside these, each opened by a seed.
    others: Vec<&'static str>,
    /// Host names, registrable domains or directories, as the scope asks.
    territory: HashSet<Box<str>, BuildHasherDefault<TextHasher>>,
    /// Include expressions, then exclude expressions.
    expressions: RegexSet,
}

impl Filter {
    /// Compiles the expressions.
    pub fn new(mut config: FilterConfig) -> Result<Filter, FilterError> {
        for (list, expressions) in [("include", &config.include), ("exclude", &config.exclude)] {
            for expression in expressions {
                check_expression(list, expression)?;
            }
        }
        let all = config.include.iter().chain(&config.exclude);
        let size = EXPRESSION_BYTES_MAX * (config.include.len() + config.exclude.len()).max(1);
        let expressions = RegexSetBuilder::new(all).size_limit(size).build();
        let expressions = expressions.map_err(|error| FilterError::Expression {
            list: "include or exclude",
            expression: "all together".into(),
            reason: one_line(&error),
        })?;
        if let Some(other) = config.schemes.iter().find(|scheme| !matches!(&scheme[..], "http" | "https")) {
            return Err(FilterError::Scheme(other.clone()));
        }
        let [http, https] = ["http", "https"].map(|known| config.schemes.iter().any(|scheme| scheme == known));
        for extension in &mut config.extensions_excluded {
            *extension = extension.trim_start_matches('.').to_ascii_lowercase();
        }
        Ok(Filter { config, http, https, others: Vec::new(), territory: HashSet::default(), expressions })
    }

    /// Extends the scope by a seed. One of a scheme without hosts (a file) opens its directory and nothing else, whatever the scope.
    pub fn add_seed(&mut self, seed: &Url) {
        let rules = seed.rules();
        if !rules.is_web() && !self.others.contains(&rules.name) {
            self.others.push(rules.name);
        }
        let scope = if rules.has_authority { self.config.scope } else { Scope::Prefix };
        let part = match scope {
            Scope::Host => seed.host_str(),
            Scope::Domain => seed.registrable_domain(),
            Scope::Prefix => {
                let path = after_scheme(seed);
                let path = &path[..path.len() - seed.query().map_or(0, |query| query.len() + 1)];
                &path[..path.rfind('/').map_or(path.len(), |at| at + 1)]
            }
            Scope::Any => return,
        };
        self.territory.insert(part.into());
    }

    /// Whether a URL, so many links away from a seed, is wanted.
    pub fn judge(&self, url: &Url, depth: u32) -> Result<(), DropReason> {
        let fetched = match url.is_web() {
            true if url.is_https() => self.https,
            true => self.http,
            false => self.others.contains(&url.scheme()),
        };
        if !fetched {
            return Err(DropReason::Scheme);
        }
        if self.config.depth_max.is_some_and(|max| depth > max) {
            return Err(DropReason::TooDeep);
        }
        if !self.in_scope(url) {
            return Err(DropReason::OutOfScope);
        }
        match shape_problem(url, &self.config.shape) {
            Some(ShapeProblem::TooLong) => return Err(DropReason::UrlTooLong),
            // What lies on a disk has an end, however deep it goes.
            Some(_) if !url.is_web() && !url.rules().polite => {}
            Some(ShapeProblem::TooDeep) => return Err(DropReason::PathTooDeep),
            Some(ShapeProblem::Repeating) => return Err(DropReason::RepeatingPath),
            None => {}
        }
        if !self.config.extensions_excluded.is_empty()
            && let Some(extension) = extension(url.path())
            && self.config.extensions_excluded.iter().any(|known| extension.eq_ignore_ascii_case(known))
        {
            return Err(DropReason::MediaType);
        }
        self.judge_expressions(url, depth)
    }

    /// Whether a response of this media type is wanted; parameters such as `charset` do not count.
    pub fn judge_media_type(&self, media_type: &str) -> Result<(), DropReason> {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let excluded = self.config.media_types_excluded.iter().any(|pattern| match pattern.strip_suffix("/*") {
            Some(kind) => essence.split('/').next().is_some_and(|found| found.eq_ignore_ascii_case(kind)),
            None => essence.eq_ignore_ascii_case(pattern),
        });
        if excluded { Err(DropReason::MediaType) } else { Ok(()) }
    }

    /// Whether a URL lies within the scope that the seeds have drawn.
    pub fn in_scope(&self, url: &Url) -> bool {
        let scope = if url.is_web() || url.rules().has_authority { self.config.scope } else { Scope::Prefix };
        match scope {
            Scope::Any => true,
            Scope::Host => self.territory.contains(url.host_str()),
            Scope::Domain => self.territory.contains(url.registrable_domain()),
            // Every directory above the URL is looked up, so that many seeds cost no more than few.
            Scope::Prefix => {
                let text = after_scheme(url);
                let path_end = text.len() - url.query().map_or(0, |query| query.len() + 1);
                memchr::memchr_iter(b'/', &text.as_bytes()[..path_end]).any(|at| self.territory.contains(&text[..=at]))
            }
        }
    }

    fn judge_expressions(&self, url: &Url, depth: u32) -> Result<(), DropReason> {
        let includes = self.config.include.len();
        if self.expressions.is_empty() {
            return Ok(());
        }
        let (included, excluded) = match (includes, self.config.exclude.len()) {
            (0, _) => (true, self.expressions.is_match(url.as_str())),
            (_, 0) => (self.expressions.is_match(url.as_str()), false),
            _ => {
                let matches = self.expressions.matches(url.as_str());
                (matches.iter().any(|at| at < includes), matches.iter().any(|at| at >= includes))
            }
        };
        match (included || depth == 0, excluded) {
            (_, true) => Err(DropReason::Excluded),
            (false, _) => Err(DropReason::NotIncluded),
            _ => Ok(()),
        }
    }
}

/// Hashes short texts. The seed is fixed, which is safe because only the user puts texts into the set.
#[derive(Clone, Copy, Debug, Default)]
struct TextHasher(u64);

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    /// The end mark of a string; texts are never followed by anything.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Compiles one expression alone, so that the message can say which one is wrong.
fn check_expression(list: &'static str, expression: &str) -> Result<(), FilterError> {
    let built = RegexBuilder::new(expression).size_limit(EXPRESSION_BYTES_MAX).build();
    built.map(drop).map_err(|error| FilterError::Expression {
        list,
        expression: expression.to_owned(),
        reason: one_line(&error),
    })
}

/// The last line of the message, which says what; the ones before draw where.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

fn after_scheme(url: &Url) -> &str {
    &url.as_str()[url.scheme().len() + 3..]
}

fn extension(path: &str) -> Option<&str> {
    let name = &path[path.rfind('/').map_or(0, |at| at + 1)..];
    name.rsplit_once('.').map(|(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(config: FilterConfig, seeds: &[&str]) -> Filter {
        let mut filter = Filter::new(config).expect("a good configuration");
        for seed in seeds {
            filter.add_seed(&Url::parse(seed).expect(seed));
        }
        filter
    }

    fn judge(filter: &Filter, url: &str, depth: u32) -> Result<(), &'static str> {
        filter.judge(&Url::parse(url).expect(url), depth).map_err(DropReason::name)
    }

    #[test]
    fn scopes() {
        fn check(scope: Scope, url: &str, inside: bool) {
            let seeds = ["https://www.a.co.uk:8080/dir/page?x/y", "http://10.0.0.1/"];
            let filter = filter(FilterConfig { scope, ..Default::default() }, &seeds);
            assert_eq!(judge(&filter, url, 1).is_ok(), inside, "{scope:?} {url}");
        }
        check(Scope::Host, "http://www.a.co.uk/x", true);
        check(Scope::Host, "http://a.co.uk/x", false);
        check(Scope::Host, "http://10.0.0.1:81/x", true);
        check(Scope::Domain, "http://b.a.co.uk/x", true);
        check(Scope::Domain, "http://b.co.uk/x", false);
        check(Scope::Domain, "http://11.0.0.1/", false);
        check(Scope::Prefix, "http://www.a.co.uk:8080/dir/", true);
        check(Scope::Prefix, "http://www.a.co.uk:8080/dir/sub/x?y", true);
        check(Scope::Prefix, "http://www.a.co.uk:8080/dirt", false);
        check(Scope::Prefix, "http://www.a.co.uk:8080/?www.a.co.uk:8080/dir/", false);
        check(Scope::Prefix, "http://www.a.co.uk/dir/", false);
        check(Scope::Any, "http://elsewhere.test/", true);
    }

    #[test]
    fn a_file_opens_its_tree_and_no_other() {
        fn check(scope: Scope, url: &str, expected: Result<(), &str>) {
            let filter = filter(FilterConfig { scope, ..Default::default() }, &["file:///srv/docs/", "http://a.test/"]);
            assert_eq!(judge(&filter, url, 1), expected, "{scope:?} {url}");
        }
        for scope in [Scope::Host, Scope::Domain, Scope::Prefix, Scope::Any] {
            check(scope, "file:///srv/docs/a/a/a/a/a/b.html", Ok(()));
            check(scope, "file:///srv/docs", Err("out_of_scope"));
            check(scope, "file:///srv/docs2/x", Err("out_of_scope"));
            check(scope, "file:///etc/passwd", Err("out_of_scope"));
            check(scope, "http://a.test/", Ok(()));
        }
        check(Scope::Any, "http://b.test/", Ok(()));
        // Without a seed of the scheme nothing of it is wanted, also anywhere.
        let web = filter(FilterConfig { scope: Scope::Any, ..Default::default() }, &["http://a.test/"]);
        assert_eq!(judge(&web, "file:///etc/passwd", 1), Err("scheme"));
    }

    #[test]
    fn expressions() {
        fn check(include: &[&str], exclude: &[&str], url: &str, depth: u32, expected: Result<(), &str>) {
            let own = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
            let config =
                FilterConfig { scope: Scope::Any, include: own(include), exclude: own(exclude), ..Default::default() };
            assert_eq!(judge(&filter(config, &[]), url, depth), expected, "{include:?} {exclude:?} {url}");
        }
        check(&[], &[], "http://a.test/x", 1, Ok(()));
        check(&["/x$"], &[], "http://a.test/x", 1, Ok(()));
        check(&["/x$"], &[], "http://a.test/y", 1, Err("not_included"));
        check(&["/x$"], &[], "http://a.test/y", 0, Ok(()));
        check(&[], &["y", "z"], "http://a.test/z", 0, Err("excluded"));
        check(&["x"], &["y"], "http://a.test/xy", 1, Err("excluded"));
        check(&["x", "w"], &["y"], "http://a.test/w", 1, Ok(()));
    }

    #[test]
    fn other_bounds() {
        let config = FilterConfig {
            depth_max: Some(2),
            schemes: vec!["https".into()],
            extensions_excluded: vec![".ZIP".into(), "jpg".into()],
            media_types_excluded: vec!["video/*".into(), "application/zip".into()],
            ..Default::default()
        };
        let filter = filter(config, &["https://a.test/"]);
        let check = |url: &str, depth, expected| assert_eq!(judge(&filter, url, depth), expected, "{url}");
        check("https://a.test/x", 2, Ok(()));
        check("https://a.test/x", 3, Err("too_deep"));
        check("http://a.test/x", 1, Err("scheme"));
        check("https://a.test/x.JPG?y", 1, Err("media_type"));
        check("https://a.test/x.zip/y", 1, Ok(()));
        check("https://a.test/a/a/a/a", 1, Err("repeating_path"));
        check(&format!("https://a.test/{}", "x".repeat(5000)), 1, Err("url_too_long"));
        check(
            &format!("https://a.test{}", (0..26).map(|i| format!("/{i}")).collect::<String>()),
            1,
            Err("path_too_deep"),
        );
        assert_eq!(filter.judge_media_type("Video/MP4; codecs=x"), Err(DropReason::MediaType));
        assert_eq!(filter.judge_media_type("text/html"), Ok(()));
    }

    #[test]
    fn mistakes_are_named_in_one_line() {
        fn check(config: FilterConfig, expected: &str) {
            let message = Filter::new(config).expect_err("a mistake").to_string();
            assert!(message.starts_with(expected) && !message.contains('\n'), "{message}");
        }
        let list = |text: &str| vec!["ok".to_owned(), text.to_owned()];
        check(FilterConfig { include: list("(a"), ..Default::default() }, "include expression \"(a\": unclosed group");
        check(
            FilterConfig { exclude: list("a{9999}{9999}"), ..Default::default() },
            "exclude expression \"a{9999}{9999}\": ",
        );
        check(FilterConfig { schemes: list("ftp"), ..Default::default() }, "scheme \"ok\"");
    }

    #[test]
    fn codes_come_back() {
        for reason in DropReason::ALL {
            assert_eq!(DropReason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(DropReason::from_code(0), None);
    }

    /// `cargo test --release -p rhumb-core judge_cost -- --ignored --nocapture` prints nanoseconds per judgement.
    #[test]
    #[ignore = "a measurement, run by hand"]
    #[allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]
    fn judge_cost() {
        let seeds: Vec<String> = (0..1000).map(|i| format!("http://www{i}.example.test:8080/a/")).collect();
        let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
        let urls: Vec<Url> =
            seeds.iter().map(|s| Url::parse(&format!("{s}b/page.html?x=1")).expect("parses")).collect();
        for scope in [Scope::Host, Scope::Domain, Scope::Prefix, Scope::Any] {
            let filter = filter(FilterConfig { scope, ..Default::default() }, &seeds);
            let start = std::time::Instant::now();
            for _ in 0..1000 {
                for url in &urls {
                    assert!(std::hint::black_box(filter.judge(std::hint::black_box(url), 3)).is_ok());
                }
            }
            println!("{scope:?}: {} ns", start.elapsed().as_nanos() / 1_000_000);
        }
    }
}
