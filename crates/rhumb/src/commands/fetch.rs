//! `rhumb fetch` and `rhumb dns`: the crawler's own fetcher and resolver, once, by hand.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use rhumb_core::page::coding;
use rhumb_core::visit::Validators;
use rhumb_crawl::dns::{DnsConfig, Resolver};
use rhumb_crawl::fetch::{Fetched, Fetcher, Request, tls};
use serde_json::json;

use super::crawl::seed;
use crate::cli::FetchArgs;
use crate::config::Config;
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
    let authorities = tls::client_config(settings.authorities.as_deref()).context("read certificate authorities")?;
    let fetcher = Fetcher::new(settings.fetch.clone(), &settings.agent, Arc::new(settings.guard.clone()), authorities);
    let host = url.host();
    let validators = Validators {
        etag: args.if_none_match.as_deref().map(Into::into),
        last_modified: args.if_modified_since.as_deref().map(Into::into),
        ..Validators::default()
    };
    let fetched: Result<Fetched, String> = runtime()?.block_on(async {
        let addresses = match host.ip_literal() {
            Some(address) => Arc::from([address]),
            None => {
                let resolver = Resolver::new(settings.dns.clone()).map_err(|e| e.to_string())?;
                resolver.lookup(host.name()).await.map_err(|e| e.name().to_string())?.addresses
            }
        };
        let request = Request { url: &url, addresses: &addresses, validators: &validators, body_bytes_max: usize::MAX };
        Ok(fetcher.fetch(&host, request).await)
    });
    let fetched = match fetched {
        Ok(fetched) => fetched,
        Err(why) => {
            if as_json {
                out::json(
                    &json!({"url": url.as_str(), "status": 0, "outcome": "dns_failed", "detail": why, "headers": [], "body_bytes": 0, "truncated": false}),
                )?;
            } else {
                out::line(&format!("{url}: the name could not be resolved: {why}"))?;
            }
            return Ok(Exit::Look);
        }
    };
    show(&url, &fetched, args, &settings.decode, as_json)
}

fn show(
    url: &rhumb_core::url::Url,
    fetched: &Fetched,
    args: &FetchArgs,
    limits: &coding::DecodeLimits,
    as_json: bool,
) -> Result<Exit> {
    let codings = fetched.header("content-encoding").unwrap_or_default();
    let decoded = coding::decode(codings, &fetched.body, limits);
    let problem = decoded.problem.as_ref().map(ToString::to_string);
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
        let headers: Vec<_> = fetched.headers.iter().map(|(n, v)| json!([n, String::from_utf8_lossy(v)])).collect();
        out::json(&json!({
            "url": url.as_str(), "status": fetched.status, "outcome": fetched.outcome.name(), "detail": fetched.detail,
            "headers": headers, "body_bytes": decoded.body.len(), "wire_bytes": fetched.body.len(), "truncated": fetched.cut.is_some(),
            "coding_problem": problem, "address": fetched.address, "protocol": if fetched.http2 { "h2" } else { "http/1.1" },
            "milliseconds": milliseconds,
        }))?;
    } else if !to_stdout {
        out::line(&format!(
            "{url}  {} {}  {} bytes in {milliseconds} ms  {}",
            fetched.outcome.name(),
            fetched.status,
            decoded.body.len(),
            fetched.detail
        ))?;
        out::line(&String::from_utf8_lossy(&fetched.head))?;
        if let Some(problem) = problem {
            out::line(&format!("decoding: {problem}"))?;
        }
    }
    Ok(if fetched.outcome.is_trouble() { Exit::Look } else { Exit::Done })
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
