//! URLs without end: each host has some honest pages, and something that makes new addresses for ever.

use rhumb_core::outcome::Outcome;

use super::{Asked, End, Group, Kind, Serve, page};
use crate::web::respond::Reply;

const HONEST: u32 = 12;

const TRAP: Kind = Kind {
    group: Group::Traps,
    honest: HONEST,
    ends: &[End::of("/", Outcome::Ok)],
    // To be tightened when budgets and learned rules are there: 13 honest requests and what learning costs.
    requests_max: 400,
    ..Kind::BARE
};

/// The traps.
pub(super) const KINDS: &[Kind] =
    &[Kind { name: "calendar", about: "a calendar whose months never end", serve: Serve::Reply(calendar), ..TRAP }];

fn calendar(asked: &Asked<'_>) -> Reply {
    if asked.path == "/" {
        return page::home(asked.host, HONEST, ["/calendar/2026/11".to_string()]);
    }
    page::not_found()
}
