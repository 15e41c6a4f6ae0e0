//! The shape of a URL: too long, too deep, or going round in circles.
//!
//! Traps that generate URLs (calendars, relative links resolved ever deeper, rewritten error pages) give themselves
//! away by shape long before their content does. The heuristic is Heritrix's "pathological path" in its plainest form.

use serde::{Deserialize, Serialize};

use super::Url;

/// Bounds on the shape of a URL; zero switches one off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShapeLimits {
    /// Bytes of the whole URL.
    pub url_bytes_max: usize,
    /// Path segments that are not empty.
    pub path_depth_max: usize,
    /// How often one segment may occur in a path, in a row or not.
    pub segment_repeats_max: usize,
}

impl Default for ShapeLimits {
    fn default() -> ShapeLimits {
        ShapeLimits { url_bytes_max: 4096, path_depth_max: 25, segment_repeats_max: 3 }
    }
}

/// What is wrong with a URL's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeProblem {
    /// More bytes than `url_bytes_max`.
    TooLong,
    /// More segments than `path_depth_max`.
    TooDeep,
    /// One segment more often than `segment_repeats_max`.
    Repeating,
}

/// Tells the first limit that the URL exceeds.
pub fn shape_problem(url: &Url, limits: &ShapeLimits) -> Option<ShapeProblem> {
    let over = |count: usize, max: usize| max > 0 && count > max;
    if over(url.as_str().len(), limits.url_bytes_max) {
        return Some(ShapeProblem::TooLong);
    }
    let path = url.path();
    let slashes = memchr::memchr_iter(b'/', path.as_bytes()).count();
    // A path of few slashes can exceed neither bound, and most paths are such.
    if !over(slashes, limits.path_depth_max) && !over(slashes, limits.segment_repeats_max) {
        return None;
    }
    let segments = || path.split('/').filter(|segment| !segment.is_empty());
    if over(segments().count(), limits.path_depth_max) {
        return Some(ShapeProblem::TooDeep);
    }
    // Quadratic, on at most `path_depth_max` segments; sorting pays only when that bound has been lifted.
    if limits.segment_repeats_max > 0 && slashes <= 64 {
        let repeats = |segment| segments().filter(|&other| other == segment).count();
        return segments().any(|s| repeats(s) > limits.segment_repeats_max).then_some(ShapeProblem::Repeating);
    }
    let mut sorted: Vec<&str> = segments().collect();
    sorted.sort_unstable();
    let longest = sorted.chunk_by(|a, b| a == b).map(<[&str]>::len).max().unwrap_or(0);
    over(longest, limits.segment_repeats_max).then_some(ShapeProblem::Repeating)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        fn check(path: &str, expected: Option<ShapeProblem>) {
            let url = Url::parse(&format!("http://a.test{path}")).expect(path);
            assert_eq!(shape_problem(&url, &ShapeLimits::default()), expected, "{path}");
        }
        check("/", None);
        check("/a/b/a/b/a/b", None);
        check("/a/b/a/b/a/b/a", Some(ShapeProblem::Repeating));
        check("/a/a/a/", None);
        check("/a/a/a/a", Some(ShapeProblem::Repeating));
        check("//////////////////////////////////", None);
        let deep: String = (0..25).map(|i| format!("/{i}")).collect();
        check(&deep, None);
        check(&format!("{deep}/x"), Some(ShapeProblem::TooDeep));
        check(&format!("{deep}?{}", "/x".repeat(40)), None);
        check(&format!("/{}", "x".repeat(4096)), Some(ShapeProblem::TooLong));
    }

    #[test]
    fn lifted_limits() {
        let path: String = (0..100).map(|i| format!("/{i}/r")).collect();
        let url = Url::parse(&format!("http://a.test{path}")).expect("parses");
        let limits = ShapeLimits { url_bytes_max: 0, path_depth_max: 0, segment_repeats_max: 3 };
        assert_eq!(shape_problem(&url, &limits), Some(ShapeProblem::Repeating));
        assert_eq!(shape_problem(&url, &ShapeLimits { segment_repeats_max: 0, ..limits }), None);
    }
}
