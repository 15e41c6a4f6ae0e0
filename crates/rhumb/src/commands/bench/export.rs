//! What a page costs in each format of `rhumb export`, from the log and the archive to the finished file.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rhumb_export::{FORMATS, Progress, Target, export};
use rhumb_sim::{Server, ServerConfig, Web, WebConfig};
use serde_json::{Map, Value, json};

use super::{cpu_seconds, disk_bytes};
use crate::cli::{Cli, Command as Typed};
use crate::commands::export::options;

/// Crawls a synthetic web once and exports it in all formats, on one thread, in turn.
pub fn run(hosts: u64, pages: u64, page_bytes: usize, rounds: u32, dir: &Path) -> Result<Value> {
    let crawl = dir.join("crawl");
    gather(WebConfig { page_bytes, ..WebConfig::plain(hosts, pages) }, &crawl)?;
    let mut figures = Map::new();
    figures.insert("pages".into(), json!(hosts * pages));
    figures.insert("archive bytes per page".into(), json!(disk_bytes(&crawl.join("archive")) / (hosts * pages)));
    for format in FORMATS {
        let out = dir.join(format!("out.{}", format.name()));
        let typed = ["rhumb", "export", "--threads", "1", "--format", format.name()].map(Into::into);
        let typed = Cli::try_parse_from(typed.into_iter().chain([crawl.clone().into(), out.clone().into_os_string()]))?;
        let Typed::Export(args) = typed.command else { unreachable!("an export was typed") };
        let mut least = f64::MAX;
        let mut bytes = 0;
        for _ in 0..rounds {
            let before = cpu_seconds();
            let target = Target::Path { path: out.clone(), overwrite: true };
            let summary = export(&crawl, &options(&args)?, &target, &Progress::default())?;
            least = least.min(cpu_seconds() - before);
            bytes = summary.bytes;
            ensure!(summary.pages >= hosts * pages, "{} of {} pages: no measurement", summary.pages, hosts * pages);
        }
        let name = format.name();
        figures.insert(format!("{name}: cpu_ms_per_page"), json!(least * 1e3 / (hosts * pages) as f64));
        figures.insert(format!("{name}: bytes per page"), json!(bytes / (hosts * pages)));
    }
    Ok(Value::Object(figures))
}

/// Crawls the web that is served meanwhile.
fn gather(web: WebConfig, dir: &Path) -> Result<()> {
    let any = "127.0.0.1:0".parse().context("an address")?;
    let server = ServerConfig { listen: any, dns: Some(any), ..ServerConfig::default() };
    let server = Server::start(Web::new(web).context("make up a web")?, server).context("serve the synthetic web")?;
    let dns = server.dns_addr().context("the web answers DNS")?.to_string();
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    command.args(["crawl", "--quiet", &server.web().url(0, 0), "--scope", "any", "--delay", "0s", "--per-ip", "0"]);
    command.args(["--dns", &dns, "--allow-net", "127.0.0.0/8", "--dir"]).arg(dir);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("crawl the synthetic web")?;
    ensure!(status.success(), "the crawl ended with {status}");
    Ok(())
}
