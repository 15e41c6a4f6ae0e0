//! Manners: each host's robots.txt, as rules and as text.
//!
//! The rules are the truth and the text is written from them, in the various spellings found in the wild. A host whose
//! robots.txt a test has replaced is read the other way round. The reader and matcher here are deliberately small and
//! independent of the crawler's own, because tests use them to judge it; they follow RFC 9309 for the plain ASCII,
//! unescaped paths that this web has.

use super::Web;
use super::respond::Reply;
use crate::hash::{Dice, Purpose};

/// A host's robots.txt as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Robots {
    /// The status that `/robots.txt` answers with.
    pub status: u16,
    /// Its groups; empty unless the status is 2xx.
    pub groups: Vec<Group>,
}

/// What a host's robots.txt comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Manners {
    pub(crate) status: u16,
    /// `/private/` and print versions are closed to everybody.
    pub(crate) closed: bool,
    pub(crate) crawl_delay_ms: Option<u64>,
}

/// Rules for some user agents.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Group {
    /// Product tokens in lower case, or `*`.
    pub agents: Vec<String>,
    /// The rules in order.
    pub rules: Vec<Rule>,
    /// The `Crawl-delay`, if the group has one.
    pub crawl_delay_ms: Option<u64>,
}

/// One `Allow` or `Disallow` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Whether it allows.
    pub allow: bool,
    /// The pattern: a prefix with `*` and a final `$`.
    pub pattern: String,
}

impl Robots {
    /// Whether this agent may fetch this path (with query).
    pub fn allows(&self, agent: &str, path: &str) -> bool {
        match self.status {
            200..300 => {}
            429 | 500.. => return false,
            _ => return true,
        }
        let best = self
            .groups_for(agent)
            .flat_map(|group| &group.rules)
            .filter(|rule| matches(rule.pattern.as_bytes(), path.as_bytes()))
            .max_by_key(|rule| (rule.pattern.len(), rule.allow));
        best.is_none_or(|rule| rule.allow)
    }

    /// The wait that this agent is asked to keep.
    pub fn crawl_delay_ms(&self, agent: &str) -> Option<u64> {
        self.groups_for(agent).filter_map(|group| group.crawl_delay_ms).max()
    }

    /// The prefixes closed to everybody else's agents, as written.
    pub fn disallowed(&self) -> Vec<&str> {
        let rules = self.groups_for("*").flat_map(|group| &group.rules);
        rules.filter(|rule| !rule.allow).map(|rule| rule.pattern.as_str()).collect()
    }

    fn groups_for(&self, agent: &str) -> impl Iterator<Item = &Group> {
        let agent = agent.to_ascii_lowercase();
        let named = |group: &Group, name: &str| group.agents.iter().any(|a| a == name);
        let agent = if self.groups.iter().any(|g| named(g, &agent)) { agent } else { "*".to_owned() };
        self.groups.iter().filter(move |group| named(group, &agent))
    }

    /// Reads a robots.txt.
    pub fn parse(text: &str) -> Robots {
        let mut groups: Vec<Group> = Vec::new();
        let mut in_agents = false;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            if key == "user-agent" {
                if !in_agents {
                    groups.push(Group::default());
                }
                in_agents = true;
                if let Some(group) = groups.last_mut() {
                    group.agents.push(value.to_ascii_lowercase());
                }
                continue;
            }
            let Some(group) = groups.last_mut() else { continue };
            match key.as_str() {
                "allow" | "disallow" => {
                    in_agents = false;
                    if !value.is_empty() {
                        group.rules.push(Rule { allow: key == "allow", pattern: value.to_owned() });
                    }
                }
                "crawl-delay" => {
                    in_agents = false;
                    let seconds = value.parse::<f64>().ok().filter(|s| (0.0..1e9).contains(s));
                    group.crawl_delay_ms = seconds.map(|s| (s * 1000.0).round() as u64);
                }
                _ => {}
            }
        }
        Robots { status: 200, groups }
    }
}

impl Web {
    /// The host's rules at this moment.
    pub fn robots(&self, host: u64) -> Robots {
        if let Some(reply) = self.robots_override(host) {
            let text = String::from_utf8_lossy(&reply.body);
            let groups = if reply.status / 100 == 2 { Robots::parse(&text).groups } else { Vec::new() };
            return Robots { status: reply.status, groups };
        }
        let mut dice = self.robots_dice(host);
        let Manners { status, closed, crawl_delay_ms } = self.manners_from(&mut dice);
        if status != 200 {
            return Robots { status, groups: Vec::new() };
        }
        let rule = |allow, pattern: &str| Rule { allow, pattern: pattern.to_owned() };
        let mut everybody = Group { agents: vec!["*".to_owned()], ..Group::default() };
        if closed {
            everybody.rules = vec![rule(false, "/private/"), rule(true, "/private/open/"), rule(false, "/*?print=")];
        }
        everybody.crawl_delay_ms = crawl_delay_ms;
        let mut groups = vec![everybody];
        if dice.chance(0.4) {
            let agents = vec!["badbot".to_owned(), "greedybot".to_owned()];
            let barred = Group { agents, rules: vec![rule(false, "/")], crawl_delay_ms: None };
            groups.insert(dice.below(2) as usize, barred);
        }
        Robots { status: 200, groups }
    }

    /// The gist of what the seed gives the host, without the patterns.
    pub(crate) fn manners(&self, host: u64) -> Manners {
        self.manners_from(&mut self.robots_dice(host))
    }

    fn manners_from(&self, dice: &mut Dice) -> Manners {
        let config = &self.config;
        if dice.chance(config.no_robots_share) {
            return Manners { status: 404, closed: false, crawl_delay_ms: None };
        }
        let closed = dice.chance(config.disallow_share);
        let delayed = dice.chance(config.crawl_delay_share);
        let delay_ms = (config.crawl_delay_ms_max / [1, 2, 4][dice.below(3) as usize]).max(1);
        Manners { status: 200, closed, crawl_delay_ms: delayed.then_some(delay_ms) }
    }

    /// Whether the seed gives the host something closed. (Replacing its robots.txt does not change where links lead.)
    pub(crate) fn is_closed(&self, host: u64) -> bool {
        let mut dice = self.robots_dice(host);
        !dice.chance(self.config.no_robots_share) && dice.chance(self.config.disallow_share)
    }

    /// What `/robots.txt` of the host answers.
    pub(crate) fn robots_reply(&self, host: u64) -> Reply {
        if let Some(reply) = self.robots_override(host) {
            return reply;
        }
        let robots = self.robots(host);
        if robots.status != 200 {
            return Reply::new(robots.status, "text/html; charset=utf-8", "<!doctype html><title>Not found</title>");
        }
        Reply::new(200, "text/plain; charset=utf-8", &self.robots_text(host, &robots))
    }

    /// Writes the rules down, in one of several spellings.
    pub(crate) fn robots_text(&self, host: u64, robots: &Robots) -> String {
        let style = self.draw(Purpose::Robots, host, 1);
        let end = if style & 1 == 0 { "\n" } else { "\r\n" };
        let spell = |key: &str| match style >> 1 & 3 {
            0 => key.to_ascii_lowercase(),
            1 => key.to_ascii_uppercase(),
            _ => key.to_owned(),
        };
        let mut text = format!("# robots.txt of {}{end}", self.host_name(host));
        for group in &robots.groups {
            text += end;
            for agent in &group.agents {
                text += &format!("{}: {agent}{end}", spell("User-agent"));
            }
            if let Some(ms) = group.crawl_delay_ms {
                text += &format!("{}: {}{end}", spell("Crawl-delay"), ms as f64 / 1000.0);
            }
            for rule in &group.rules {
                let key = spell(if rule.allow { "Allow" } else { "Disallow" });
                let note = if style >> 3 & 1 == 0 { "  # please" } else { "" };
                text += &format!("{key}: {}{note}{end}", rule.pattern);
            }
            if group.rules.is_empty() {
                text += &format!("{}:{end}", spell("Disallow"));
            }
        }
        text
    }

    fn robots_dice(&self, host: u64) -> Dice {
        Dice::new(self.draw(Purpose::Robots, host, 0))
    }
}

/// RFC 9309 matching: a prefix, in which `*` stands for anything and a final `$` for the end.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, anchored) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split(|&b| b == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let pieces: Vec<&[u8]> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return !anchored || rest.is_empty() };
    for piece in middle {
        match memchr::memmem::find(rest, piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    if anchored { rest.ends_with(last) } else { memchr::memmem::find(rest, last).is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WebConfig;

    #[test]
    fn text_agrees_with_data() {
        let web = Web::new(WebConfig { hosts: 500, crawl_delay_share: 0.3, ..WebConfig::default() }).unwrap();
        let (mut absent, mut closed, mut delayed) = (0, 0, 0);
        for host in 0..500 {
            let (data, reply) = (web.robots(host), web.robots_reply(host));
            assert_eq!(data.status, reply.status);
            if data.status == 404 {
                absent += 1;
                continue;
            }
            let read = Robots::parse(std::str::from_utf8(&reply.body).unwrap());
            assert_eq!(read, data);
            assert_eq!(!data.allows("rhumb", "/private/x"), web.is_closed(host));
            assert!(data.allows("rhumb", "/private/open/x") && data.allows("rhumb", "/"));
            closed += u32::from(web.is_closed(host));
            delayed += u32::from(data.crawl_delay_ms("rhumb").is_some());
        }
        assert!(absent > 20 && closed > 150 && delayed > 80, "{absent} {closed} {delayed}");
    }

    #[test]
    fn matching() {
        let check = |pattern: &str, path: &str, expected| {
            assert_eq!(matches(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} on {path}");
        };
        check("/a", "/abc", true);
        check("/a$", "/abc", false);
        check("/a$", "/a", true);
        check("/*?print=", "/x/y?print=1", true);
        check("/*?print=", "/x/y?p=1", false);
        check("/*.pdf$", "/a.pdf/b.pdf", true);
        check("/*.pdf$", "/a.pdf?x", false);
        check("*", "/", true);
        check("/a*b*c", "/a-b-b-c-d", true);
        check("/a*b*c", "/a-c-b", false);
    }

    #[test]
    fn groups_merge_and_the_longest_rule_wins() {
        let robots =
            Robots::parse("User-agent: a\nDisallow: /x\n\nUser-agent: *\nDisallow: /\n\nUser-agent: A\nAllow: /x/y\n");
        assert!(robots.allows("a", "/x/y"));
        assert!(!robots.allows("a", "/x/z"));
        assert!(robots.allows("a", "/"));
        assert!(!robots.allows("b", "/"));
    }

    #[test]
    fn an_override_is_the_truth_while_it_lasts() {
        let web = Web::new(WebConfig::plain(2, 3)).unwrap();
        assert!(web.robots(1).allows("rhumb", "/news/"));
        web.set_robots(1, "User-agent: *\nDisallow: /news/\nCrawl-delay: 0.25");
        assert!(!web.robots(1).allows("rhumb", "/news/"));
        assert_eq!(web.robots(1).crawl_delay_ms("rhumb"), Some(250));
        web.set_robots_reply(1, Reply::new(503, "text/plain", ""));
        assert!(!web.robots(1).allows("rhumb", "/"));
        web.clear_robots(1);
        assert!(web.robots(1).allows("rhumb", "/news/"));
    }
}
