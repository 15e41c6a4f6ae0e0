//! `rhumb.toml`: read, understood, written and read again.
//!
//! Input: the text of the file.

use crate::config::Config;

/// Whatever is read is written so that it reads back the same, and means the same; an error is one line.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let config = match Config::from_text(text) {
        Ok(config) => config,
        Err(why) => return assert!(!why.contains('\n') && !why.is_empty(), "{why:?}"),
    };
    let written = config.to_toml().expect("what was read can be written");
    let again = Config::from_text(&written).unwrap_or_else(|e| panic!("{e}: {written}"));
    assert_eq!(again, config, "{written}");
    match (config.settings(), again.settings()) {
        (Ok(a), Ok(b)) => assert_eq!(format!("{a:?}"), format!("{b:?}")),
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        (a, b) => panic!("{:?} once, {:?} then", a.is_ok(), b.is_ok()),
    }
}
