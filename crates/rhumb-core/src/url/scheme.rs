//! Schemes as data: what must be known of `http`, `file` or a scheme from elsewhere to plan visits to its URLs.
//!
//! `http`, `https` and `file` are always there. Whoever brings another protocol registers its schemes once, before the first URL is
//! read ([`Scheme::register`]); from then on such URLs are parsed, judged, scheduled, logged and read back like all others. Nothing
//! outside this file asks for a scheme by name to decide what to do; it asks for the property.
//!
//! Invariant: a link leads from one scheme to another only if the other is [`Scheme::open`]. So no page of the web names a file.

use std::sync::RwLock;

/// What holds for all URLs of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name, in lower case.
    pub name: &'static str,
    /// The port that goes without saying; 0 if ports have no meaning.
    pub default_port: u16,
    /// Whether a host follows the `//`. Without one all URLs of the scheme belong to one host, `name://`.
    pub has_authority: bool,
    /// Whether the host is a name that must be resolved before a visit, to addresses that are judged.
    pub needs_dns: bool,
    /// Whether a host has a robots.txt that must allow a visit.
    pub needs_robots: bool,
    /// Whether hosts are other people's machines: pauses between visits, budgets, rules about endless URLs.
    pub polite: bool,
    /// Whether pages of other schemes may lead there. Otherwise only seeds and pages of the same scheme do.
    pub open: bool,
}

/// The web without TLS.
pub static HTTP: Scheme = Scheme {
    name: "http",
    default_port: 80,
    has_authority: true,
    needs_dns: true,
    needs_robots: true,
    polite: true,
    open: true,
};

/// The web.
pub static HTTPS: Scheme = Scheme { name: "https", default_port: 443, ..HTTP };

/// Files of this machine. Such a URL has neither host nor query.
pub static FILE: Scheme = Scheme {
    name: "file",
    default_port: 0,
    has_authority: false,
    needs_dns: false,
    needs_robots: false,
    polite: false,
    open: false,
};

/// A scheme that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemeError {
    /// Not letters, digits, `+`, `-` and `.`, beginning with a letter, in lower case, 32 at the most.
    #[error("{0:?} is not the name of a scheme")]
    Name(&'static str),
    /// There is one of this name, with other properties.
    #[error("the scheme {0:?} is known already, as something else")]
    Taken(&'static str),
}

/// Schemes from elsewhere. Asked only for names that are none of the three above.
static MORE: RwLock<Vec<&'static Scheme>> = RwLock::new(Vec::new());

impl Scheme {
    /// Makes a scheme known in this process. To be called before there are URLs of it; a second time does no harm.
    pub fn register(scheme: &'static Scheme) -> Result<(), SchemeError> {
        let name = scheme.name;
        let valid = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.');
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.bytes().all(valid) || name.len() > 32 {
            return Err(SchemeError::Name(name));
        }
        let mut more = MORE.write().expect("nobody panics while adding a scheme");
        let known = [&HTTP, &HTTPS, &FILE].into_iter().chain(more.iter().copied()).find(|s| s.name == name);
        match known {
            Some(known) if known == scheme => Ok(()),
            Some(_) => Err(SchemeError::Taken(name)),
            None => {
                more.push(scheme);
                Ok(())
            }
        }
    }

    /// The scheme of this name, in lower case.
    pub fn of(name: &str) -> Option<&'static Scheme> {
        match name {
            "http" => Some(&HTTP),
            "https" => Some(&HTTPS),
            "file" => Some(&FILE),
            _ => {
                let more = MORE.read().expect("nobody panics while adding a scheme");
                more.iter().copied().find(|scheme| scheme.name == name)
            }
        }
    }

    /// Whether it is `http` or `https`.
    pub fn is_web(&self) -> bool {
        matches!(self.name, "http" | "https")
    }

    /// Whether a page of the scheme `from` may lead to a URL of this one.
    pub fn may_be_reached_from(&self, from: &Scheme) -> bool {
        self.open || self.name == from.name
    }
}

/// The scheme and what follows the `://`, of a text that was made canonical before.
pub(super) fn split(text: &str) -> Option<(&'static Scheme, &str)> {
    if let Some(rest) = text.strip_prefix("http") {
        if let Some(rest) = rest.strip_prefix("s://") {
            return Some((&HTTPS, rest));
        }
        if let Some(rest) = rest.strip_prefix("://") {
            return Some((&HTTP, rest));
        }
    }
    let (name, rest) = text.split_once("://")?;
    Some((Scheme::of(name)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    static TOY: Scheme = Scheme { name: "toy-scheme", needs_robots: false, open: false, ..HTTP };
    static OTHER_TOY: Scheme = Scheme { polite: false, ..TOY };
    static SHOUTED: Scheme = Scheme { name: "TOY", ..HTTP };
    static OTHER_FILE: Scheme = Scheme { open: true, ..FILE };

    #[test]
    fn schemes_are_registered_once() {
        assert_eq!(Scheme::of("toy-scheme"), None);
        let check = |scheme, expected| assert_eq!(Scheme::register(scheme), expected);
        check(&TOY, Ok(()));
        check(&TOY, Ok(()));
        check(&OTHER_TOY, Err(SchemeError::Taken("toy-scheme")));
        check(&SHOUTED, Err(SchemeError::Name("TOY")));
        check(&OTHER_FILE, Err(SchemeError::Taken("file")));
        assert_eq!(Scheme::of("toy-scheme"), Some(&TOY));
        assert_eq!(split("toy-scheme://h/p"), Some((&TOY, "h/p")));
    }

    #[test]
    fn who_leads_where() {
        let check = |from: &Scheme, to: &Scheme, expected| {
            assert_eq!(to.may_be_reached_from(from), expected, "{} to {}", from.name, to.name);
        };
        check(&HTTP, &HTTPS, true);
        check(&HTTP, &FILE, false);
        check(&HTTPS, &TOY, false);
        check(&TOY, &FILE, false);
        check(&TOY, &HTTP, true);
        check(&FILE, &HTTP, true);
        check(&FILE, &FILE, true);
    }
}
