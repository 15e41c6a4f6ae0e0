//! `rhumb config`: the settings in force.

use anyhow::Result;

use super::crawl_directory;
use crate::cli::ConfigArgs;
use crate::config::Config;
use crate::memory::Shares;
use crate::{Exit, out, usage};

/// Prints them as TOML, or as JSON.
pub fn run(args: &ConfigArgs, as_json: bool) -> Result<Exit> {
    // `config` and `config show` are the same.
    let _ = &args.command;
    let config = match (&args.config, &args.dir) {
        (Some(file), _) => Config::read(file).map_err(|e| usage(format!("{e:#}")))?,
        (None, Some(dir)) => crawl_directory(dir)?,
        (None, None) => Config::default(),
    };
    config.settings().map_err(|e| usage(format!("{e:#}")))?;
    if as_json {
        out::json(&config)?;
    } else {
        out::line(config.to_toml()?.trim_end())?;
        out::line(&format!("\n# crawl.memory is divided: {}", Shares::of(config.crawl.memory).describe()))?;
    }
    Ok(Exit::Done)
}
