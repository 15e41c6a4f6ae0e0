//! `rhumb traps`: what was learned of sites that make up URLs without end, with its evidence and what it saved.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rhumb_crawl::Engine;
use rhumb_crawl::status::{self, Request, RuleReport};
use rhumb_store::disk::{DirLock, Disk, Overlay, RealDisk};
use serde_json::Value;

use super::{crawl_directory, open_crawl};
use crate::display::thousands;
use crate::{Exit, out, usage};

/// Shows the rules of the crawl in `dir`, or undoes one.
pub fn run(dir: &Path, undo: Option<u32>, json: bool) -> Result<Exit> {
    let rules = match undo {
        None => rules(dir)?,
        Some(number) => {
            let before = rules(dir)?;
            match before.iter().find(|rule| rule["number"] == number) {
                None => return Err(usage(format!("there is no rule {number} in {}", dir.display()))),
                Some(rule) if rule["state"] != "active" => {
                    return Err(usage(format!("rule {number} is not in force: it was {}", text(rule, "state"))));
                }
                Some(_) => undone(dir, number)?,
            }
        }
    };
    if json {
        out::json(&rules)?;
        return Ok(Exit::Done);
    }
    match undo {
        Some(number) => {
            let rule = rules.iter().find(|rule| rule["number"] == number).context("the rule is gone")?;
            out::line(&format!("Undone: {}", text(rule, "rule")))?;
            let held = thousands(rule["saved"].as_u64().unwrap_or(0));
            let when = if DirLock::is_held(dir) { "now" } else { "when the crawl goes on" };
            out::line(&format!("What it held back ({held} URLs) is fetched {when}."))?;
        }
        None if rules.is_empty() => out::line("No rules: no site made up URLs without end, as far as was seen.")?,
        None => rules.iter().try_for_each(tell)?,
    }
    Ok(Exit::Done)
}

/// Asks the process that runs the crawl, or looks at the files without touching them.
fn rules(dir: &Path) -> Result<Vec<Value>> {
    let config = crawl_directory(dir)?;
    if let Some(rules) = ask(dir, Request::Traps)? {
        return Ok(rules);
    }
    let disk: Arc<dyn Disk> = Overlay::new(RealDisk::new(dir));
    let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
    as_values(&open_crawl(dir, disk, settings)?)
}

/// Undoes a rule in the process that runs the crawl, or in the files.
fn undone(dir: &Path, number: u32) -> Result<Vec<Value>> {
    if let Some(rules) = ask(dir, Request::Undo(number))? {
        return Ok(rules);
    }
    let settings = crawl_directory(dir)?.settings().map_err(|e| usage(format!("{e:#}")))?;
    let _lock = DirLock::take(dir)?;
    let mut engine = open_crawl(dir, RealDisk::new(dir), settings)?;
    engine.undo(number)?;
    as_values(&engine)
}

fn ask(dir: &Path, request: Request) -> Result<Option<Vec<Value>>> {
    if !DirLock::is_held(dir) {
        return Ok(None);
    }
    let answer = status::ask(dir, request).context("the crawl that runs in this directory does not answer")?;
    Ok(Some(answer.as_array().cloned().unwrap_or_default()))
}

fn as_values(engine: &Engine) -> Result<Vec<Value>> {
    let rules = RuleReport::all(engine.crawl());
    rules.iter().map(|rule| serde_json::to_value(rule).context("write a rule as JSON")).collect()
}

fn tell(rule: &Value) -> Result<()> {
    let count = |name: &str| thousands(rule[name].as_u64().unwrap_or(0));
    let state = match text(rule, "state") {
        "active" => "",
        "retracted" => "  (retracted: exploring showed that it is wrong)",
        _ => "  (undone)",
    };
    out::line(&format!("{:>3}  {}{state}", count("number"), text(rule, "rule")))?;
    let (pages, against) = (count("pages"), count("against"));
    let because = match rule["against"].as_u64() {
        Some(0) => format!("     because {pages} pages said nothing new, such as"),
        _ => format!("     because {pages} pages said nothing new, and {against} did, such as"),
    };
    out::line(&because)?;
    for sample in rule["samples"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out::line(&format!("       {sample}"))?;
    }
    let (saved, explored, surprises) = (count("saved"), count("explored"), count("surprises"));
    out::line(&format!(
        "     saved {saved} requests; {explored} more were made to explore, {surprises} found something new"
    ))
}

fn text<'a>(rule: &'a Value, name: &str) -> &'a str {
    rule[name].as_str().unwrap_or_default()
}
