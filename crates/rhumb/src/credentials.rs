//! The file that holds what a crawl may log in with. It is named in the settings and not part of them, so that no crawl
//! directory and no `rhumb config` shows a secret.
//!
//! ```toml
//! [[credentials]]
//! origin = "https://intranet.example:8443"
//! user = "crawler"
//! password = "..."            # or: token = "..."
//! ```

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use http::HeaderValue;
use rhumb_core::url::Host;
use rhumb_crawl::fetch::Credential;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    credentials: Vec<Entry>,
}

/// User name and password, or a token, for one origin. No other origin ever gets them.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    origin: String,
    user: String,
    password: String,
    token: String,
}

/// Reads the file, which nobody else may be able to read.
pub fn read(path: &Path) -> Result<Vec<Credential>> {
    let shown = path.display();
    let mode = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("{shown} holds secrets and can be read by others: chmod 600 {shown}");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    // The parser's own message would quote the line, and with it a secret.
    let file: File = toml::from_str(&text).map_err(|e: toml::de::Error| {
        let line = e.span().map_or(0, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        anyhow::anyhow!("{shown}: line {line}: {}", e.message().replace('\n', " "))
    })?;
    file.credentials.iter().map(|entry| entry.credential().with_context(|| shown.to_string())).collect()
}

impl Entry {
    fn credential(&self) -> Result<Credential> {
        let wrong = |what: &str| anyhow::anyhow!("credentials for {:?}: {what}", self.origin);
        let origin = Host::parse(self.origin.trim_end_matches('/'))
            .map_err(|_| wrong("an origin is needed, such as \"https://example.org\""))?;
        let value = match (self.token.is_empty(), self.user.is_empty()) {
            (false, true) => format!("Bearer {}", self.token),
            (true, false) if !self.user.contains(':') => {
                let pair = format!("{}:{}", self.user, self.password);
                format!("Basic {}", data_encoding::BASE64.encode(pair.as_bytes()))
            }
            _ => return Err(wrong("either a user (without a colon) and a password, or a token")),
        };
        let mut authorization =
            HeaderValue::from_str(&value).map_err(|_| wrong("there are characters that a header cannot hold"))?;
        authorization.set_sensitive(true);
        Ok(Credential { origin, authorization })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, mode: u32) -> Result<Vec<Credential>, String> {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("secrets.toml");
        std::fs::write(&path, text).expect("write");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("permissions");
        read(&path).map_err(|e| format!("{e:#}"))
    }

    #[test]
    fn both_kinds() {
        let text = "[[credentials]]\norigin = \"https://a.test/\"\nuser = \"u\"\npassword = \"p\"\n\
                    [[credentials]]\norigin = \"http://b.test:81\"\ntoken = \"t\"\n";
        let read = read_text(text, 0o600).expect("two of them");
        let shown: Vec<(&str, &[u8])> = read.iter().map(|c| (c.origin.as_str(), c.authorization.as_bytes())).collect();
        assert_eq!(shown, [("https://a.test", &b"Basic dTpw"[..]), ("http://b.test:81", &b"Bearer t"[..])]);
    }

    #[test]
    fn mistakes_are_named_without_the_secret() {
        let check = |text: &str, mode: u32, expected: &str| {
            let error = read_text(text, mode).expect_err(text);
            assert!(error.contains(expected) && !error.contains("hush") && !error.contains('\n'), "{error}");
        };
        let entry = |rest: &str| format!("[[credentials]]\norigin = \"https://a.test\"\n{rest}\n");
        check(&entry("token = \"hush\""), 0o644, "chmod 600");
        check(&entry("token = \"hush\"\nuser = \"u\""), 0o600, "either a user");
        check(&entry("token = \"hush\\nx\""), 0o600, "a header cannot hold");
        check(&entry("tokens = \"hush\""), 0o600, "line 3: unknown field `tokens`");
        check("[[credentials]]\norigin = \"a.test\"\ntoken = \"hush\"\n", 0o600, "an origin is needed");
    }
}
