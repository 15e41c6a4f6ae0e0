//! The capricious world: when hosts answer, how, and from where.
//!
//! The synthetic web says what there is; this says how it behaves. Like the web it is a pure function of (seed, host,
//! time): a host's temper never changes, and what it does in a given millisecond follows from that millisecond. Nothing
//! here is remembered, so a simulated crawl can be played again from any point and meets the same world.
//!
//! One promise is kept for the sake of the ground truth: what a host's own robots.txt closes stays closed. Rules become
//! stricter and milder again, but never open `/private/`, behind which the web has no end.

use std::net::{IpAddr, Ipv4Addr};

use rhumb_core::outcome::Outcome;

use crate::hash::{Dice, Purpose, mix, pareto};
use crate::web::path::SECTIONS;
use crate::{Robots, Rule, Target, Web};

/// How capricious the world is. Every share is a probability in `[0, 1]`.
#[derive(Clone, Debug)]
pub struct Whims {
    /// Mean time a host takes to answer; single hosts follow a power law.
    pub latency_ms: f64,
    /// Visits that end in a reset, whoever the host is.
    pub reset_share: f64,
    /// Hosts of which one visit in five goes wrong: resets, silence, slow bodies, 500.
    pub flaky_share: f64,
    /// Hosts that answer one visit in six with 429 or 503.
    pub limited_share: f64,
    /// Hosts that go down for hours and come back.
    pub mortal_share: f64,
    /// Hosts whose name does not exist.
    pub absent_share: f64,
    /// Hosts that never answer.
    pub dead_share: f64,
    /// Crawls whose hosts and domains may cost little, so that some are stopped for bringing nothing new.
    pub tight_budgets_share: f64,
    /// Hosts whose robots.txt changes every few hours.
    pub robots_changing_share: f64,
    /// Hosts whose robots.txt is a redirect: to another host, or in a circle.
    pub robots_redirected_share: f64,
    /// Hosts whose robots.txt is a 500 for hours.
    pub robots_failing_share: f64,
    /// Hosts that ask for a longer Crawl-delay than anybody would keep.
    pub robots_parking_share: f64,
    /// Names that take seconds to resolve.
    pub slow_name_share: f64,
    /// Look-ups that fail for now.
    pub dns_failure_share: f64,
    /// Hosts whose address changes every few hours.
    pub moving_share: f64,
    /// Hosts whose name gives another address with every look-up, for seconds. None by default: a known fault makes a crawl
    /// of such hosts hang (`an_address_that_changes_is_given_back` in the tests).
    pub round_robin_share: f64,
    /// Hosts that share one of a few crowded addresses.
    pub crowded_share: f64,
    /// Batches of URLs that the bus delivers twice.
    pub doubled_share: f64,
    /// Batches of URLs that the bus delivers up to half a minute late.
    pub late_share: f64,
}

impl Default for Whims {
    fn default() -> Self {
        Whims {
            latency_ms: 400.0,
            reset_share: 0.004,
            flaky_share: 0.03,
            limited_share: 0.03,
            mortal_share: 0.03,
            absent_share: 0.005,
            dead_share: 0.02,
            tight_budgets_share: 0.2,
            robots_changing_share: 0.05,
            robots_redirected_share: 0.03,
            robots_failing_share: 0.01,
            robots_parking_share: 0.002,
            slow_name_share: 0.02,
            dns_failure_share: 0.002,
            moving_share: 0.05,
            round_robin_share: 0.05,
            crowded_share: 0.1,
            doubled_share: 0.01,
            late_share: 0.01,
        }
    }
}

impl Whims {
    /// A world in which nothing goes wrong, so that a crawl finds exactly what there is.
    pub fn none() -> Self {
        Whims {
            latency_ms: 100.0,
            reset_share: 0.0,
            flaky_share: 0.0,
            limited_share: 0.0,
            mortal_share: 0.0,
            absent_share: 0.0,
            dead_share: 0.0,
            tight_budgets_share: 0.0,
            robots_changing_share: 0.0,
            robots_redirected_share: 0.0,
            robots_failing_share: 0.0,
            robots_parking_share: 0.0,
            slow_name_share: 0.0,
            dns_failure_share: 0.0,
            moving_share: 0.0,
            round_robin_share: 0.0,
            crowded_share: 0.1,
            doubled_share: 0.0,
            late_share: 0.0,
        }
    }
}

/// What a host is like.
#[derive(Clone, Debug)]
struct Temper {
    latency_ms: f64,
    flaky: bool,
    limited: bool,
    absent: bool,
    mortal: Option<Mortal>,
    slow_name: bool,
    moving: bool,
    round_robin: bool,
    crowded: bool,
    robots: RobotsManner,
}

#[derive(Clone, Copy, Debug)]
struct Mortal {
    period_ms: u64,
    phase_ms: u64,
    down_ms: u64,
    how: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RobotsManner {
    AsTheWebSays,
    Changing { period_ms: u64 },
    Redirected { to: u64 },
    Failing { period_ms: u64 },
    Parking,
}

/// How a contact ends, and when.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub outcome: Outcome,
    pub status: u16,
    pub takes_ms: u64,
    pub retry_after_ms: Option<u64>,
    /// Whether the server keeps the connection.
    pub kept: bool,
}

/// What robots.txt is at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RobotsFile {
    /// The rules of this version.
    Rules(u32),
    /// It has moved to the robots.txt of this host.
    At(u64),
    /// It answers with this status.
    Status(u16),
}

/// The answer to a look-up.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub takes_ms: u64,
    /// Which address, and for how long.
    pub answer: Result<(u32, u64), Outcome>,
}

const HOUR_MS: u64 = 3_600_000;
/// The version of rules that nobody would wait for.
const PARKING: u32 = u32::MAX;

/// The web and its whims.
#[derive(Clone)]
pub(crate) struct World {
    pub web: Web,
    pub whims: Whims,
    seed: u64,
}

impl World {
    pub fn new(web: Web, whims: Whims, seed: u64) -> World {
        World { web, whims, seed }
    }

    pub fn dice(&self, purpose: Purpose, a: u64, b: u64) -> Dice {
        Dice::new(mix(self.seed, purpose, a, b))
    }

    fn temper(&self, host: u64) -> Temper {
        let whims = &self.whims;
        let mut dice = self.dice(Purpose::Temper, host, 0);
        let latency_ms = pareto(dice.unit(), whims.latency_ms, 1.8, 15.0);
        let (flaky, limited) = (dice.chance(whims.flaky_share), dice.chance(whims.limited_share));
        let (absent, mortal) = (dice.chance(whims.absent_share), dice.chance(whims.mortal_share));
        let (slow_name, moving) = (dice.chance(whims.slow_name_share), dice.chance(whims.moving_share));
        let crowded = dice.chance(whims.crowded_share);
        let dead = dice.chance(whims.dead_share);
        let mortal = (mortal || dead).then(|| {
            let period_ms = (6 + dice.below(90)) * HOUR_MS;
            use Outcome::*;
            let how = [Refused, ConnectTimeout, HeadTimeout, TlsFailed, DnsFailed, NoHost][dice.below(6) as usize];
            let down_ms = if dead { period_ms } else { period_ms / (2 + dice.below(6)) };
            Mortal { period_ms, phase_ms: dice.below(period_ms), down_ms, how }
        });
        let mut u = dice.unit();
        let mut falls = |share: f64| {
            u -= share;
            u < 0.0
        };
        let robots = if falls(whims.robots_changing_share) {
            RobotsManner::Changing { period_ms: (1 + dice.below(30)) * HOUR_MS }
        } else if falls(whims.robots_redirected_share) && !self.web.is_closed(host) {
            let circle = dice.chance(0.2);
            RobotsManner::Redirected { to: if circle { host } else { dice.below(self.web.hosts()) } }
        } else if falls(whims.robots_failing_share) {
            RobotsManner::Failing { period_ms: (1 + dice.below(10)) * HOUR_MS }
        } else if falls(whims.robots_parking_share) {
            RobotsManner::Parking
        } else {
            RobotsManner::AsTheWebSays
        };
        let round_robin = dice.chance(whims.round_robin_share);
        Temper { latency_ms, flaky, limited, absent, mortal, slow_name, moving, round_robin, crowded, robots }
    }

    /// How a page, redirect or error answers a request that arrives at `at` ms.
    pub fn visit(&self, target: Target, at: u64) -> Answer {
        let temper = self.temper(target.host());
        let mut dice = self.dice(Purpose::Whim, target.host(), at);
        if let Some(trouble) = self.trouble(&temper, &mut dice, at) {
            return trouble;
        }
        let status = self.web.status_of(target);
        let mut answer = well(&temper, &mut dice, status);
        answer.retry_after_ms = (status == 503).then_some(1_000);
        answer
    }

    /// How robots.txt of a host answers, and what it is.
    pub fn robots(&self, host: u64, at: u64) -> (Answer, RobotsFile) {
        let temper = self.temper(host);
        let mut dice = self.dice(Purpose::Whim, host, at);
        if let Some(trouble) = self.trouble(&temper, &mut dice, at) {
            let status = trouble.status;
            return (trouble, RobotsFile::Status(status));
        }
        let manners = self.web.manners(host);
        let file = match temper.robots {
            RobotsManner::Changing { period_ms } => RobotsFile::Rules(1 + (at / period_ms % 1_000_000) as u32),
            RobotsManner::Redirected { to } => RobotsFile::At(to),
            RobotsManner::Failing { period_ms } if (at / period_ms).is_multiple_of(2) => RobotsFile::Status(500),
            RobotsManner::Parking => RobotsFile::Rules(PARKING),
            _ if manners.status == 200 => RobotsFile::Rules(0),
            _ => RobotsFile::Status(manners.status),
        };
        let status = match file {
            RobotsFile::Rules(_) => 200,
            RobotsFile::At(_) => 301,
            RobotsFile::Status(status) => status,
        };
        (well(&temper, &mut dice, status), file)
    }

    /// The rules of a host in one of their versions.
    pub fn rules(&self, host: u64, version: u32) -> Robots {
        let mut robots = self.web.robots(host);
        if version == 0 {
            return robots;
        }
        robots.status = 200;
        if robots.groups.is_empty() {
            robots.groups.push(crate::Group { agents: vec!["*".to_owned()], ..crate::Group::default() });
        }
        let everybody = robots.groups.iter_mut().find(|g| g.agents == ["*"]);
        let everybody = everybody.expect("the web's robots.txt always speaks to everybody");
        if version == PARKING {
            everybody.crawl_delay_ms = Some(400_000);
            return robots;
        }
        let mut dice = self.dice(Purpose::Robot, host, u64::from(version));
        if dice.chance(0.7) {
            let pattern = format!("/{}/", SECTIONS[dice.below(SECTIONS.len() as u64) as usize]);
            everybody.rules.push(Rule { allow: false, pattern });
        }
        everybody.crawl_delay_ms = [None, None, Some(1_000), Some(5_000), Some(20_000)][dice.below(5) as usize];
        robots
    }

    /// The text of those rules.
    pub fn robots_text(&self, host: u64, version: u32) -> String {
        self.web.robots_text(host, &self.rules(host, version))
    }

    /// Whether a version of a host's rules allows a path.
    pub fn allows(&self, host: u64, version: u32, path: &str) -> bool {
        // Nearly all rules are those of the web, and most of these forbid nothing.
        if version == 0 && !self.web.manners(host).closed {
            return true;
        }
        self.rules(host, version).allows("rhumb", path)
    }

    /// The Crawl-delay of a version of a host's rules.
    pub fn crawl_delay_ms(&self, host: u64, version: u32) -> u64 {
        let asked = if version == 0 {
            self.web.manners(host).crawl_delay_ms
        } else {
            self.rules(host, version).crawl_delay_ms("rhumb")
        };
        asked.unwrap_or(0)
    }

    /// What a look-up of the host's name at `at` ms gives.
    pub fn resolve(&self, host: u64, at: u64) -> Resolved {
        let temper = self.temper(host);
        let mut dice = self.dice(Purpose::Dns, host, at);
        let takes_ms = if temper.slow_name { 2_000 + dice.below(20_000) } else { 1 + dice.below(200) };
        let down = temper.mortal.filter(|m| m.is_down(at)).map(|m| m.how);
        let answer = match down {
            _ if temper.absent => Err(Outcome::NoHost),
            Some(how @ (Outcome::NoHost | Outcome::DnsFailed)) => Err(how),
            _ if dice.chance(self.whims.dns_failure_share) => Err(Outcome::DnsFailed),
            _ => {
                let ttl_ms = [30_000, 300_000, HOUR_MS, 24 * HOUR_MS][dice.below(4) as usize];
                let ttl_ms = if temper.round_robin { dice.below(20_000) } else { ttl_ms };
                Ok((self.address(host, &temper, at), ttl_ms))
            }
        };
        Resolved { takes_ms, answer }
    }

    fn address(&self, host: u64, temper: &Temper, at: u64) -> u32 {
        let epoch = match (temper.round_robin, temper.moving) {
            (true, _) => at,
            (_, true) => at / (3 * HOUR_MS),
            _ => 0,
        };
        let draw = mix(self.seed, Purpose::Address, host, epoch);
        let crowded = self.addresses_crowded();
        let id = if temper.crowded { draw % crowded } else { crowded + draw % (self.web.hosts() / 2 + 1) };
        id as u32
    }

    fn addresses_crowded(&self) -> u64 {
        self.web.hosts() / 2_000 + 1
    }

    /// How many addresses there are.
    pub fn addresses(&self) -> usize {
        (self.addresses_crowded() + self.web.hosts() / 2 + 1) as usize
    }

    /// What goes wrong before the host says anything of its own.
    fn trouble(&self, temper: &Temper, dice: &mut Dice, at: u64) -> Option<Answer> {
        let broken =
            |outcome, status, takes_ms| Some(Answer { outcome, status, takes_ms, retry_after_ms: None, kept: false });
        if let Some(mortal) = temper.mortal.filter(|m| m.is_down(at)) {
            return match mortal.how {
                Outcome::ConnectTimeout => broken(Outcome::ConnectTimeout, 0, 10_000),
                Outcome::HeadTimeout => broken(Outcome::HeadTimeout, 0, 20_000),
                Outcome::TlsFailed => broken(Outcome::TlsFailed, 0, 50 + dice.below(200)),
                // Whoever still knows the address finds nobody there.
                _ => broken(Outcome::Refused, 0, 1 + dice.below(100)),
            };
        }
        if dice.chance(self.whims.reset_share) {
            return broken(Outcome::Reset, 0, 1 + dice.below(3_000));
        }
        if temper.flaky && dice.chance(0.2) {
            return match dice.below(6) {
                0 => broken(Outcome::HeadTimeout, 0, 20_000),
                1 => broken(Outcome::BodyTimeout, 200, 120_000),
                2 => broken(Outcome::TooSlow, 200, 30_000 + dice.below(10_000)),
                3 => broken(Outcome::ServerError, 500, 20 + dice.below(500)),
                _ => broken(Outcome::Reset, 0, 1 + dice.below(3_000)),
            };
        }
        if temper.limited && dice.chance(0.16) {
            let status = if dice.chance(0.5) { 429 } else { 503 };
            let mut answer = well(temper, dice, status);
            let wait =
                [None, None, Some(0), Some(1_000), Some(30_000), Some(600_000), Some(HOUR_MS), Some(100 * HOUR_MS)];
            // A hundred hours are more than anybody waits; they are rare.
            let most = if dice.chance(0.02) { wait.len() } else { wait.len() - 1 };
            answer.retry_after_ms = wait[dice.below(most as u64) as usize];
            return Some(answer);
        }
        None
    }
}

impl Mortal {
    fn is_down(&self, at: u64) -> bool {
        (at + self.phase_ms) % self.period_ms < self.down_ms
    }
}

/// A host that answers as it should.
fn well(temper: &Temper, dice: &mut Dice, status: u16) -> Answer {
    let takes_ms = (temper.latency_ms * (0.5 + dice.unit())) as u64 + 1;
    Answer { outcome: Outcome::of_status(status), status, takes_ms, retry_after_ms: None, kept: dice.chance(0.7) }
}

/// The address of this number.
pub(crate) fn ip(address: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0B00_0000 + address))
}

/// The number of this address.
pub(crate) fn address_of(ip: IpAddr) -> Option<u32> {
    match ip {
        IpAddr::V4(v4) => u32::from(v4).checked_sub(0x0B00_0000),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WebConfig;
    use rhumb_core::robots::RobotsTxt;
    use std::collections::BTreeSet;

    fn world() -> World {
        World::new(Web::new(WebConfig { hosts: 2_000, pages: 3, ..WebConfig::default() }).unwrap(), Whims::default(), 7)
    }

    #[test]
    fn everything_that_can_go_wrong_does() {
        let world = world();
        let (mut outcomes, mut files) = (BTreeSet::new(), BTreeSet::new());
        for host in 0..2_000 {
            for at in (0..20).map(|i| i * 7 * HOUR_MS + host) {
                outcomes.insert(world.visit(Target::Page { host, page: 0 }, at).outcome.name());
                files.insert(match world.robots(host, at).1 {
                    RobotsFile::Rules(PARKING) => "parking".to_string(),
                    RobotsFile::Rules(0) => "own".to_string(),
                    RobotsFile::Rules(_) => "changed".to_string(),
                    RobotsFile::At(to) => format!("elsewhere {}", to == host),
                    RobotsFile::Status(status) => status.to_string(),
                });
                if let Err(outcome) = world.resolve(host, at).answer {
                    outcomes.insert(outcome.name());
                }
            }
        }
        for name in ["ok", "rate_limited", "reset", "head_timeout", "body_timeout", "too_slow", "server_error"] {
            assert!(outcomes.contains(name), "{name} in {outcomes:?}");
        }
        for name in ["refused", "connect_timeout", "tls_failed", "no_host", "dns_failed"] {
            assert!(outcomes.contains(name), "{name} in {outcomes:?}");
        }
        for name in ["parking", "own", "changed", "elsewhere true", "elsewhere false", "404", "500", "0"] {
            assert!(files.contains(name), "{name} in {files:?}");
        }
    }

    #[test]
    fn rules_judged_by_the_model_are_those_that_are_served() {
        let world = world();
        for host in 0..300 {
            for version in [0, 1, 2, 3, 4, PARKING] {
                if world.rules(host, version).status != 200 {
                    continue;
                }
                let read = RobotsTxt::parse(world.robots_text(host, version).as_bytes(), usize::MAX).for_agent("rhumb");
                assert_eq!(u64::from(read.crawl_delay_ms().unwrap_or(0)), world.crawl_delay_ms(host, version));
                for path in ["/", "/news/a", "/docs/b", "/private/c", "/private/open/d", "/x?print=1", "/people/e/"] {
                    assert_eq!(read.allows(path), world.allows(host, version, path), "{host} {version} {path}");
                }
                assert_eq!(!world.allows(host, version, "/private/c"), world.web.is_closed(host));
            }
        }
    }

    #[test]
    fn addresses_are_read_back() {
        let world = world();
        for host in 0..100 {
            if let Ok((address, _)) = world.resolve(host, 5).answer {
                assert!((address as usize) < world.addresses());
                assert_eq!(address_of(ip(address)), Some(address));
            }
        }
    }
}
