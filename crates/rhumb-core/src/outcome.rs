//! What became of a URL: one closed list for the log, the statistics and the retry policy.

use serde::Serialize;

/// How a visit, or a URL that was never visited, ended. The web being the web is one of these; our
/// machinery failing is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Outcome {
    /// 2xx: a page.
    Ok = 1,
    /// 304 to a conditional request.
    NotModified = 2,
    /// 3xx with a target.
    Redirect = 3,
    /// 404 or 410.
    NotFound = 4,
    /// Another 4xx.
    ClientError = 5,
    /// 5xx except 503.
    ServerError = 6,
    /// 429 or 503: the host asks for less.
    RateLimited = 7,
    /// A status outside 200–599, or one that makes no sense here.
    OddStatus = 8,
    /// The name does not exist or has no address.
    NoHost = 10,
    /// The name could not be resolved now.
    DnsFailed = 11,
    /// No address of the host may be dialled.
    BlockedAddress = 12,
    /// The connection was refused or there is no route.
    Refused = 13,
    /// No connection in time.
    ConnectTimeout = 14,
    /// TLS did not come about: certificate, protocol, handshake in time.
    TlsFailed = 15,
    /// No whole response head in time.
    HeadTimeout = 16,
    /// The body took longer than the whole fetch may.
    BodyTimeout = 17,
    /// The body came slower than the minimum rate.
    TooSlow = 18,
    /// The connection broke before the response was whole.
    Reset = 19,
    /// What came back is not HTTP.
    BadHttp = 20,
    /// The response head is larger than allowed.
    HeadTooLarge = 21,
    /// A redirect without a usable target.
    BadRedirect = 22,
    /// The chain of redirects is longer than allowed.
    TooManyRedirects = 23,
    /// The body is in a content coding that cannot be undone.
    BadCoding = 24,
    /// robots.txt forbids it.
    RobotsDisallowed = 30,
    /// robots.txt could not be had, so nothing may be fetched.
    RobotsUnreachable = 31,
    /// The host did not answer several times in a row.
    HostDown = 32,
    /// The filter no longer wants it.
    Filtered = 33,
}

use Outcome::*;

/// All outcomes, in the order of their codes.
pub const ALL: [Outcome; 27] = [
    Ok,
    NotModified,
    Redirect,
    NotFound,
    ClientError,
    ServerError,
    RateLimited,
    OddStatus,
    NoHost,
    DnsFailed,
    BlockedAddress,
    Refused,
    ConnectTimeout,
    TlsFailed,
    HeadTimeout,
    BodyTimeout,
    TooSlow,
    Reset,
    BadHttp,
    HeadTooLarge,
    BadRedirect,
    TooManyRedirects,
    BadCoding,
    RobotsDisallowed,
    RobotsUnreachable,
    HostDown,
    Filtered,
];

impl Outcome {
    /// The outcome of a response by its status alone.
    pub fn of_status(status: u16) -> Outcome {
        match status {
            200..=299 => Ok,
            304 => NotModified,
            300..=399 => Redirect,
            404 | 410 => NotFound,
            429 | 503 => RateLimited,
            400..=499 => ClientError,
            500..=599 => ServerError,
            _ => OddStatus,
        }
    }

    /// The name used in JSON, statistics and messages.
    pub fn name(self) -> &'static str {
        match self {
            Ok => "ok",
            NotModified => "not_modified",
            Redirect => "redirect",
            NotFound => "not_found",
            ClientError => "client_error",
            ServerError => "server_error",
            RateLimited => "rate_limited",
            OddStatus => "odd_status",
            NoHost => "no_host",
            DnsFailed => "dns_failed",
            BlockedAddress => "blocked_address",
            Refused => "refused",
            ConnectTimeout => "connect_timeout",
            TlsFailed => "tls_failed",
            HeadTimeout => "head_timeout",
            BodyTimeout => "body_timeout",
            TooSlow => "too_slow",
            Reset => "reset",
            BadHttp => "bad_http",
            HeadTooLarge => "head_too_large",
            BadRedirect => "bad_redirect",
            TooManyRedirects => "too_many_redirects",
            BadCoding => "bad_coding",
            RobotsDisallowed => "robots_disallowed",
            RobotsUnreachable => "robots_unreachable",
            HostDown => "host_down",
            Filtered => "filtered",
        }
    }

    /// The byte that stands for it on disk.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The outcome for a byte on disk.
    pub fn from_code(code: u8) -> Option<Outcome> {
        ALL.into_iter().find(|o| o.code() == code)
    }

    /// Whether the host itself did not answer properly, as opposed to the one URL.
    pub fn is_host_trouble(self) -> bool {
        matches!(self, Refused | ConnectTimeout | TlsFailed | HeadTimeout | Reset)
    }

    /// Whether trying the same URL again later may help.
    pub fn is_transient(self) -> bool {
        self.is_host_trouble() || matches!(self, ServerError | RateLimited | BodyTimeout | TooSlow)
    }

    /// Whether people should look at it: not a page, not a redirect, not a plain "no".
    pub fn is_trouble(self) -> bool {
        !matches!(self, Ok | NotModified | Redirect | NotFound | RobotsDisallowed | Filtered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_distinct() {
        let codes: std::collections::BTreeSet<u8> = ALL.iter().map(|o| o.code()).collect();
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|o| o.name()).collect();
        assert_eq!((codes.len(), names.len()), (ALL.len(), ALL.len()));
        assert!(ALL.iter().all(|o| Outcome::from_code(o.code()) == Some(*o)));
        assert_eq!(Outcome::from_code(0), None);
    }

    #[test]
    fn statuses() {
        let check = |status, expected| assert_eq!(Outcome::of_status(status), expected, "{status}");
        check(200, Ok);
        check(206, Ok);
        check(304, NotModified);
        check(308, Redirect);
        check(410, NotFound);
        check(418, ClientError);
        check(429, RateLimited);
        check(503, RateLimited);
        check(500, ServerError);
        check(99, OddStatus);
        check(999, OddStatus);
    }
}
