//! `rhumb fetch` and `rhumb dns`: the crawler's own fetcher and resolver, once, by hand.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use rhumb_core::outcome::Outcome;
use rhumb_core::page::coding;
use rhumb_core::url::Url;
use rhumb_core::visit::Validators;
use rhumb_crawl::dns::{DnsConfig, Resolver};
use rhumb_crawl::fetch::{Fetched, Fetcher, Request, tls};
use rhumb_crawl::protocol::Protocols;
use serde_json::json;

use super::crawl::seed;
use crate::cli::FetchArgs;
use crate::config::Config;
use crate::display::thousands;
use crate::{Exit, out, usage};

/// `rhumb fetch`.
pub fn run(args: &FetchArgs, as_json: bool) -> Result<Exit> {
    let url = seed(&args.url)?;
    let mut config = match &args.config {
        Some(file) => Config::read(file).map_err(|e| usage(format!("{e:#}")))?,
        None => Config::default(),
    };
    if let Some(agent) = &args.agent {
        config.crawl.agent.clone_from(agent);
    }
    if !args.dns.is_empty() {
        config.dns.servers.clone_from(&args.dns);
    }
    if !args.allow_net.is_empty() {
        config.net.allow.clone_from(&args.allow_net);
    }
    let mut settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
    settings.guard.allow_seed(&url);
    let authorities = tls::client_config(settings.authorities.as_deref(), 0).context("read certificate authorities")?;
    let fetcher = Fetcher::new(settings.fetch.clone(), &settings.agent, Arc::new(settings.guard.clone()), authorities);
    settings.protocols.allow(&url, std::path::Path::new(""));
    let protocols = Protocols::new(fetcher, settings.protocols.clone());
    let host = url.host();
    let validators = Validators {
        etag: args.if_none_match.as_deref().map(Into::into),
        last_modified: args.if_modified_since.as_deref().map(Into::into),
        ..Validators::default()
    };
    let fetched: Result<Fetched, (Outcome, String)> = runtime()?.block_on(async {
        let addresses = match host.ip_literal() {
            Some(address) => Arc::from([address]),
            None if !url.rules().needs_dns => Arc::from([]),
            None => {
                let failed = |e: std::io::Error| (Outcome::DnsFailed, e.to_string());
                let resolver = Resolver::new(settings.dns.clone()).map_err(failed)?;
                let answer = resolver
                    .lookup(host.name())
                    .await
                    .map_err(|e| (if e.is_permanent() { Outcome::NoHost } else { Outcome::DnsFailed }, e.to_string()));
                answer?.addresses
            }
        };
        let request = Request { url: &url, addresses: &addresses, validators: &validators, body_bytes_max: usize::MAX };
        Ok(protocols.fetch(&host, request).await)
    });
    let fetched = match fetched {
        Ok(fetched) => fetched,
        Err((outcome, why)) => {
            if as_json {
                out::json(
                    &json!({"url": url.as_str(), "status": 0, "outcome": outcome.name(), "detail": why, "headers": [], "body_bytes": 0, "truncated": false}),
                )?;
            } else {
                out::line(&format!("{url}\n  outcome   {}\n  because   {why}", outcome.name()))?;
            }
            return Ok(Exit::Look);
        }
    };
    show(&url, &fetched, args, &settings.decode, as_json)
}

fn show(url: &Url, fetched: &Fetched, args: &FetchArgs, limits: &coding::DecodeLimits, as_json: bool) -> Result<Exit> {
    let codings = fetched.header("content-encoding").unwrap_or_default();
    let decoded = coding::decode(codings, &fetched.body, limits);
    let problem = decoded.problem.as_ref().map(ToString::to_string);
    let unreadable = fetched.outcome == Outcome::Ok && decoded.is_unreadable();
    let outcome = if unreadable { Outcome::BadCoding } else { fetched.outcome };
    let to_stdout = args.output.as_deref() == Some(std::path::Path::new("-"));
    if let Some(path) = &args.output {
        if to_stdout {
            std::io::Write::write_all(&mut std::io::stdout().lock(), &decoded.body)?;
        } else {
            std::fs::write(path, &decoded.body).with_context(|| format!("write {}", path.display()))?;
        }
    }
    let milliseconds = fetched.ended.duration_since(fetched.started).as_millis() as u64;
    if as_json {
        let headers: Vec<_> =
            fetched.headers.iter().map(|(n, v)| json!([n.as_str(), String::from_utf8_lossy(v.as_bytes())])).collect();
        out::json(&json!({
            "url": url.as_str(), "status": fetched.status, "outcome": outcome.name(), "detail": fetched.detail,
            "headers": headers, "body_bytes": decoded.body.len(), "wire_bytes": fetched.body.len(), "truncated": fetched.cut.is_some(),
            "coding_problem": problem, "address": fetched.address, "protocol": protocol(url, fetched),
            "milliseconds": milliseconds,
        }))?;
    } else if !to_stdout {
        tell(url, fetched, outcome, decoded.body.len(), milliseconds, problem.as_deref())?;
    }
    Ok(if outcome.is_trouble() { Exit::Look } else { Exit::Done })
}

fn protocol<'a>(url: &'a Url, fetched: &Fetched) -> &'a str {
    match fetched.http2 {
        true => "h2",
        false if url.is_web() => "http/1.1",
        false => url.scheme(),
    }
}

fn tell(
    url: &Url,
    fetched: &Fetched,
    outcome: Outcome,
    body_bytes: usize,
    milliseconds: u64,
    problem: Option<&str>,
) -> Result<()> {
    out::line(url.as_str())?;
    let status = if fetched.status == 0 { String::new() } else { format!(", status {}", fetched.status) };
    let protocol = if fetched.http2 { "HTTP/2" } else { "HTTP/1.1" };
    let how = if fetched.status == 0 { "at".to_string() } else { format!("{protocol} with") };
    let from = fetched.address.map(|a| format!(", {how} {a}")).unwrap_or_default();
    out::line(&format!("  outcome   {}{status}{from}, {milliseconds} ms", outcome.name()))?;
    if !fetched.detail.is_empty() {
        out::line(&format!("  because   {}", fetched.detail))?;
    }
    if fetched.outcome == Outcome::BlockedAddress {
        out::line("  help      if this address is yours, allow it with --allow-net CIDR")?;
    }
    if fetched.status != 0 {
        let (body, wire) = (thousands(body_bytes as u64), thousands(fetched.body.len() as u64));
        let decoded = if body == wire { String::new() } else { format!(", {wire} on the wire") };
        let cut = if fetched.cut.is_some() { ", cut at a bound" } else { "" };
        out::line(&format!("  body      {body} bytes{decoded}{cut}"))?;
    }
    if let Some(problem) = problem {
        out::line(&format!("  decoding  {problem}"))?;
    }
    let head = String::from_utf8_lossy(&fetched.head).replace("\r\n", "\n");
    if !head.trim().is_empty() {
        out::line(&format!("\n{}", head.trim_end()))?;
    }
    Ok(())
}

/// `rhumb dns`.
pub fn dns(name: &str, servers: Vec<SocketAddr>, as_json: bool) -> Result<Exit> {
    let config = if servers.is_empty() { DnsConfig::from_system() } else { DnsConfig::with_servers(servers) };
    let started = std::time::Instant::now();
    let answer = runtime()?
        .block_on(async { Ok::<_, std::io::Error>(Resolver::new(config)?.lookup(name).await) })
        .context("open DNS sockets")?;
    let milliseconds = started.elapsed().as_millis() as u64;
    match answer {
        Ok(answer) => {
            let ttl = answer.expires.saturating_duration_since(std::time::Instant::now()).as_secs();
            if as_json {
                out::json(
                    &json!({"name": name, "addresses": answer.addresses.to_vec(), "ttl": ttl, "milliseconds": milliseconds}),
                )?;
            } else {
                for address in answer.addresses.iter() {
                    out::line(&format!("{address}  for {ttl} s"))?;
                }
            }
            Ok(Exit::Done)
        }
        Err(e) => {
            if as_json {
                out::json(
                    &json!({"name": name, "error": e.name(), "permanent": e.is_permanent(), "milliseconds": milliseconds}),
                )?;
            } else {
                out::line(&format!("{name}: {e}"))?;
            }
            Ok(Exit::Look)
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("start the runtime")
}
