//! `rhumb bench`: figures of parts of the program, in processor time.

use anyhow::{Context, Result};
use rhumb_crawl::dns;
use serde_json::json;

use crate::cli::BenchCommand;
use crate::{Exit, out};

/// Runs one bench and prints its figures.
pub fn run(command: &BenchCommand, as_json: bool) -> Result<Exit> {
    let BenchCommand::Dns { server, names, in_flight } = command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the runtime")?;
    let figures = runtime.block_on(dns::bench(*server, *names, *in_flight)).context("resolve names")?;
    if as_json {
        out::json(&json!({
            "names": figures.names, "failed": figures.failed,
            "uncached_per_cpu_second": figures.uncached_per_cpu_second, "cached_per_cpu_second": figures.cached_per_cpu_second,
        }))?;
    } else {
        out::line(&format!(
            "{} names, {} failed: {:.0} uncached and {:.0} cached per second of processor time",
            figures.names, figures.failed, figures.uncached_per_cpu_second, figures.cached_per_cpu_second
        ))?;
    }
    Ok(Exit::Done)
}
