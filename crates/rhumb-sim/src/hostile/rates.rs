//! Answers that ask for less, in every way to say when to come again, and a host that is out of order.

use std::time::{Duration, SystemTime};

use rhumb_core::frontier::Reason;
use rhumb_core::outcome::Outcome::{RateLimited, RobotsUnreachable, ServerError};

use super::{End, Group, Kind, Serve};
use crate::web::respond::Reply;

/// Visits of a URL that the host answers with "too many requests", in the settings of the test.
const ATTEMPTS_LIMITED: u64 = 4;
/// Visits of a URL that may do better next time.
const ATTEMPTS: u64 = 3;

const RATE: Kind =
    Kind { group: Group::Rates, ends: &[End::of("/", RateLimited)], requests_max: 1 + ATTEMPTS_LIMITED, ..Kind::BARE };

/// The rates.
pub(super) const KINDS: &[Kind] = &[
    Kind { name: "retry-seconds", about: "429 with Retry-After: 1", serve: Serve::Reply(|_| busy(429, "1")), ..RATE },
    Kind {
        name: "retry-date",
        about: "503 with a Retry-After date one second ahead",
        serve: Serve::Reply(|_| busy(503, &httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(1)))),
        ..RATE
    },
    Kind {
        name: "retry-date-past",
        about: "503 with a Retry-After date in 1994",
        serve: Serve::Reply(|_| busy(503, "Sun, 06 Nov 1994 08:49:37 GMT")),
        ..RATE
    },
    Kind {
        name: "retry-zero",
        about: "429 with Retry-After: 0, which must not mean \"at once, again and again\"",
        serve: Serve::Reply(|_| busy(429, "0")),
        ..RATE
    },
    Kind {
        name: "retry-nonsense",
        about: "503 with Retry-After: soon, perhaps -7",
        serve: Serve::Reply(|_| busy(503, "soon, perhaps -7")),
        ..RATE
    },
    Kind {
        name: "retry-enormous",
        about: "429 with a Retry-After of more seconds than the universe has lasted",
        serve: Serve::Reply(|_| busy(429, "99999999999999999999999999")),
        ..RATE
    },
    Kind {
        name: "retry-years",
        about: "429 with a Retry-After of a hundred years",
        serve: Serve::Reply(|_| busy(429, "3153600000")),
        ..RATE
    },
    Kind {
        name: "retry-none",
        about: "503 without a Retry-After",
        serve: Serve::Reply(|_| Reply::new(503, "text/plain", "busy")),
        ..RATE
    },
    Kind {
        name: "always-500",
        about: "500 for everything, robots.txt included",
        ends: &[End::of("/", RobotsUnreachable).held(Reason::RobotsUnreachable)],
        requests_max: 4,
        own_robots: true,
        serve: Serve::Reply(|_| Reply::new(500, "text/plain", "out of order")),
        ..RATE
    },
    Kind {
        name: "pages-500",
        about: "500 for every page",
        ends: &[End::of("/", ServerError)],
        requests_max: 1 + ATTEMPTS,
        serve: Serve::Reply(|_| Reply::new(500, "text/plain", "out of order")),
        ..RATE
    },
];

fn busy(status: u16, retry_after: &str) -> Reply {
    Reply::new(status, "text/plain", "busy").with_header("Retry-After", retry_after)
}
