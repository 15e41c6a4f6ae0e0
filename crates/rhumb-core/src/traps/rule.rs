//! What can be learned about the URLs of a site, the evidence for it, and the bytes of both.

use rhumb_store::Timestamp;
use rhumb_store::codec::{Malformed, Put, Take};

/// What does not matter about a URL, or what pages bring nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The value of one query parameter.
    Param = 1,
    /// The value of one parameter in the path, such as `;jsessionid=`.
    PathParam = 2,
    /// The whole query.
    Query = 3,
    /// The order of the query parameters.
    Order = 4,
    /// The order of the path's segments.
    PathOrder = 5,
    /// One segment of the path, such as a session id.
    Segment = 6,
    /// Capital letters, empty segments, the name of the start page, percent-encoding.
    Spelling = 7,
    /// Segments that the path repeats.
    Repeats = 8,
    /// The sub-domain.
    Subdomain = 9,
    /// All pages whose URLs differ in numbers and values only.
    Shape = 20,
    /// All pages of one path, whatever the query.
    Queries = 21,
    /// All pages of one directory.
    Siblings = 22,
    /// All pages below a first directory.
    Subtree = 23,
}

impl Kind {
    const ALL: [Kind; 13] = [
        Kind::Param,
        Kind::PathParam,
        Kind::Query,
        Kind::Order,
        Kind::PathOrder,
        Kind::Segment,
        Kind::Spelling,
        Kind::Repeats,
        Kind::Subdomain,
        Kind::Shape,
        Kind::Queries,
        Kind::Siblings,
        Kind::Subtree,
    ];

    /// A stable name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Param => "parameter",
            Kind::PathParam => "path_parameter",
            Kind::Query => "query",
            Kind::Order => "parameter_order",
            Kind::PathOrder => "path_order",
            Kind::Segment => "path_segment",
            Kind::Spelling => "spelling",
            Kind::Repeats => "repeating_path",
            Kind::Subdomain => "subdomain",
            Kind::Shape => "pattern",
            Kind::Queries => "path",
            Kind::Siblings => "directory",
            Kind::Subtree => "subtree",
        }
    }

    /// How much more evidence it takes to believe that a wider set of pages brings nothing new, in halves.
    pub(super) fn doubt(self) -> u32 {
        match self {
            Kind::Subtree => 4,
            Kind::Queries | Kind::Siblings => 3,
            _ => 2,
        }
    }

    /// Whether it says that URLs name the same page, as opposed to: that pages bring nothing new.
    pub fn is_equivalence(self) -> bool {
        self < Kind::Shape
    }
}

/// What a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// What does not matter.
    pub kind: Kind,
    /// The origin it holds for; the registrable domain for [`Kind::Subdomain`].
    pub site: Box<str>,
    /// The path or directory it holds for, numbers written as `{n}`; empty for the whole site.
    pub path: Box<str>,
    /// The parameter.
    pub name: Box<str>,
}

impl Pattern {
    /// A pattern of these parts.
    pub fn new(kind: Kind, site: &str, path: &str, name: &str) -> Pattern {
        Pattern { kind, site: site.into(), path: path.into(), name: name.into() }
    }

    /// The pattern as a number.
    pub(super) fn key(&self) -> u64 {
        let mut bytes = Vec::with_capacity(64);
        self.put(&mut bytes);
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }

    /// The rule in one line.
    pub fn sentence(&self) -> String {
        let Pattern { site, path, name, .. } = self;
        match self.kind {
            Kind::Param => format!("{site}{path}: the parameter {name:?} does not matter"),
            Kind::PathParam => format!("{site}: the parameter \";{name}=\" in a path does not matter"),
            Kind::Query => format!("{site}{path}: the query does not matter"),
            Kind::Order => format!("{site}{path}: the order of the parameters does not matter"),
            Kind::PathOrder => format!("{site}: the order of the path's segments does not matter"),
            Kind::Segment => format!("{site}{path}*: this segment does not matter"),
            Kind::Spelling => format!("{site}: spelling (capitals, slashes, start page) does not matter"),
            Kind::Repeats => format!("{site}: paths repeat for ever; repeated segments do not matter"),
            Kind::Subdomain => format!("*.{site}: the sub-domain does not matter"),
            Kind::Shape => format!("{site}{path}: these pages bring nothing new"),
            Kind::Queries => format!("{site}{path}?*: these pages bring nothing new"),
            Kind::Siblings => format!("{site}{path}*: these pages bring nothing new"),
            Kind::Subtree => format!("{site}{path}**: these pages bring nothing new"),
        }
    }

    pub(super) fn put(&self, into: &mut Vec<u8>) {
        into.put_u8(self.kind as u8);
        [&self.site, &self.path, &self.name].into_iter().for_each(|text| into.put_str(text));
    }

    pub(super) fn take(from: &mut Take<'_>) -> Result<Pattern, Malformed> {
        let code = from.u8()?;
        let kind = Kind::ALL.into_iter().find(|k| *k as u8 == code).ok_or(Malformed("a rule of unknown kind"))?;
        Ok(Pattern { kind, site: from.str()?.into(), path: from.str()?.into(), name: from.str()?.into() })
    }
}

/// Why a rule is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Pages that bear it out.
    pub pages: u32,
    /// Pages that contradict it.
    pub against: u32,
    /// Pages that said the same, or nothing new.
    pub samples: Vec<Box<str>>,
}

/// What happened to a rule; a record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// The pages bore it out.
    Learned(Pattern, Evidence),
    /// Pages fetched to explore contradicted it.
    Retracted(u32),
    /// The user does not want it.
    Undone(u32),
}

impl RuleChange {
    /// Appends the bytes.
    pub fn put(&self, into: &mut Vec<u8>) {
        match self {
            RuleChange::Learned(pattern, evidence) => {
                into.put_u8(1);
                pattern.put(into);
                evidence.put(into);
            }
            RuleChange::Retracted(number) => {
                into.put_u8(2);
                into.put_u64(u64::from(*number));
            }
            RuleChange::Undone(number) => {
                into.put_u8(3);
                into.put_u64(u64::from(*number));
            }
        }
    }

    /// Reads what [`RuleChange::put`] wrote.
    pub fn take(from: &mut Take<'_>) -> Result<RuleChange, Malformed> {
        Ok(match from.u8()? {
            1 => RuleChange::Learned(Pattern::take(from)?, Evidence::take(from)?),
            2 => RuleChange::Retracted(from.u32()?),
            3 => RuleChange::Undone(from.u32()?),
            _ => return Err(Malformed("an unknown change of a rule")),
        })
    }
}

impl Evidence {
    pub(super) fn put(&self, into: &mut Vec<u8>) {
        into.put_u64(u64::from(self.pages));
        into.put_u64(u64::from(self.against));
        into.put_u64(self.samples.len() as u64);
        self.samples.iter().for_each(|url| into.put_str(url));
    }

    pub(super) fn take(from: &mut Take<'_>) -> Result<Evidence, Malformed> {
        let mut evidence = Evidence { pages: from.u32()?, against: from.u32()?, samples: Vec::new() };
        for _ in 0..from.u64()? {
            evidence.samples.push(from.str()?.into());
        }
        Ok(evidence)
    }
}

/// Whether a rule is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It holds URLs back.
    Active = 1,
    /// It was learned, and exploring showed that it is wrong.
    Retracted = 2,
    /// The user undid it; it is not learned again.
    Undone = 3,
}

impl State {
    /// A stable name.
    pub fn name(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Retracted => "retracted",
            State::Undone => "undone",
        }
    }
}

/// A rule that was learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Counted from 1, in the order they were learned.
    pub number: u32,
    /// What it says.
    pub pattern: Pattern,
    /// Why.
    pub evidence: Evidence,
    /// When it was learned.
    pub learned: Timestamp,
    /// Whether it is in force.
    pub state: State,
    /// URLs held back: requests saved.
    pub held: u64,
    /// URLs fetched all the same, to see whether it still holds.
    pub explored: u64,
    /// Of these, pages that had something new.
    pub surprises: u64,
    /// Of these, the last ones without any other between them; not kept over a restart.
    pub(super) streak: u32,
    /// Of the URLs it speaks of, the number of the next one that is fetched to explore.
    pub(super) explore_at: u64,
}

impl Rule {
    pub(super) fn put(&self, into: &mut Vec<u8>) {
        self.pattern.put(into);
        self.evidence.put(into);
        into.put_u64(self.learned.0);
        into.put_u8(self.state as u8);
        [self.held, self.explored, self.surprises, self.explore_at].into_iter().for_each(|n| into.put_u64(n));
    }

    pub(super) fn take(number: u32, from: &mut Take<'_>) -> Result<Rule, Malformed> {
        Ok(Rule {
            number,
            pattern: Pattern::take(from)?,
            evidence: Evidence::take(from)?,
            learned: Timestamp(from.u64()?),
            state: match from.u8()? {
                1 => State::Active,
                2 => State::Retracted,
                3 => State::Undone,
                _ => return Err(Malformed("a rule in an unknown state")),
            },
            held: from.u64()?,
            explored: from.u64()?,
            surprises: from.u64()?,
            streak: 0,
            explore_at: from.u64()?,
        })
    }
}
