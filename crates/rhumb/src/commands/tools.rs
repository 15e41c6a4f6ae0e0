//! The small commands that answer one question: robots check, url parse and normalize, parse, sitemap, net check.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::Path;

use anyhow::Result;
use rhumb_core::net::{self, Cidr, Guard};
use rhumb_core::page::{Body, ExtractOptions, Extractor, Page, ParseOptions, ParseReport};
use rhumb_core::robots::{ROBOTS_BYTES_MAX, RobotsTxt};
use rhumb_core::sitemap::{Sitemap, SitemapLimits};
use rhumb_core::url::{Normalizer, Url, UrlError, whatwg_parse};
use serde_json::json;

use super::read_input;
use crate::cli::{NetCommand, RobotsCommand, UrlCommand};
use crate::config::Config;
use crate::{Exit, out, usage};

/// `rhumb robots check`.
pub fn robots(command: &RobotsCommand, as_json: bool) -> Result<Exit> {
    let RobotsCommand::Check { agent, url, file } = command;
    let rules = RobotsTxt::parse(&read_input(file)?, ROBOTS_BYTES_MAX).for_agent(agent);
    // A URL is judged by its path and query as a browser would send them; a bare path is taken as one.
    let parsed = match url {
        path if path.starts_with('/') || path.is_empty() => None,
        url if url.contains("://") => Some(url::Url::parse(url)),
        bare => Some(url::Url::parse(&format!("http://{bare}"))),
    };
    let parsed = parsed.transpose().map_err(|e| usage(format!("--url {url:?}: {e}")))?;
    let path = parsed.as_ref().map_or(url.as_str(), |url| &url[url::Position::BeforePath..url::Position::AfterQuery]);
    let verdict = rules.verdict(path);
    if as_json {
        out::json(&json!({"allowed": verdict.allowed, "rule": verdict.rule, "line": verdict.line}))?;
    } else {
        let word = if verdict.allowed { "allowed" } else { "disallowed" };
        match (verdict.rule, verdict.line) {
            (Some(rule), Some(line)) => out::line(&format!("{word} by line {line}: {rule}"))?,
            _ => out::line(&format!("{word}: no rule matches"))?,
        }
    }
    Ok(Exit::Done)
}

/// `rhumb url parse` and `rhumb url normalize`.
pub fn url(command: &UrlCommand, as_json: bool) -> Result<Exit> {
    let (key, answer) = match command {
        UrlCommand::Parse { url, base } => ("href", whatwg_parse(url, base.as_deref())),
        UrlCommand::Normalize { url, base } => {
            let normalizer = Normalizer::default();
            let base = base.as_deref().map(|b| normalizer.base(b, None)).transpose();
            let done = base.and_then(|base| normalizer.normalize(url, base.as_ref()));
            ("url", done.map(String::from).map_err(|e| e.to_string()))
        }
    };
    match answer {
        Ok(text) if as_json => out::json(&json!({key: text}))?,
        Ok(text) => out::line(&text)?,
        Err(why) => {
            if as_json {
                out::json(&json!({"error": why}))?;
            } else {
                out::note(&format!("rhumb: {why}"));
            }
            return Ok(Exit::Look);
        }
    }
    Ok(Exit::Done)
}

/// `rhumb parse`.
pub fn parse(file: &Path, base: &str, content_type: Option<&str>, markdown: bool, as_json: bool) -> Result<Exit> {
    let own = url::Url::parse(base).map_err(|e| usage(format!("--base {base:?}: {e}")))?;
    let bytes = read_input(file)?;
    let tld = own.host_str().and_then(|h| h.rsplit('.').next()).map(String::from);
    let extract = ExtractOptions { main_text: true, markdown, ..ExtractOptions::default() };
    let options = ParseOptions { extract, detect_language: true, tld, ..ParseOptions::default() };
    let body = Body { url: Some(own.as_str()), ..Body::new(&bytes, content_type, options.nosniff) };
    let mut parsed = Page::default();
    Config::default().formats.in_force().read_into(&body, &mut Extractor::new(), &options, &mut parsed);
    let report = ParseReport::new(&parsed, &own);
    if as_json {
        out::json(&report)?;
        return Ok(Exit::Done);
    }
    if let Some(markdown) = &report.markdown {
        out::line(markdown)?;
        return Ok(Exit::Done);
    }
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_string());
    let format = if report.format.is_empty() { String::new() } else { format!(", read as {}", report.format) };
    out::line(&format!("kind       {}{format}", report.kind.name()))?;
    if let Some(trouble) = &report.trouble {
        out::line(&format!("trouble    {trouble}"))?;
    }
    out::line(&format!("title      {}", said(&report.title)))?;
    out::line(&format!("charset    {}", said(&report.charset)))?;
    out::line(&format!("language   {}", said(&report.language)))?;
    out::line(&format!("base       {}", report.base))?;
    for (label, value) in [("canonical", &report.canonical), ("described", &report.description)] {
        if let Some(value) = value {
            out::line(&format!("{label}  {value}"))?;
        }
    }
    if !report.meta_robots.is_empty() {
        out::line(&format!("robots     {}", report.meta_robots.join("; ")))?;
    }
    out::line(&format!("links      {}", report.links.len()))?;
    for link in &report.links {
        let rel = if link.rel.is_empty() { String::new() } else { format!("  rel={}", link.rel) };
        out::line(&format!("  {:<7}  {}  {:?}{rel}", link.tag, link.url, link.text))?;
    }
    if !report.text.is_empty() {
        out::line(&format!("\n{}", report.text))?;
    }
    Ok(Exit::Done)
}

/// `rhumb sitemap`. Absent fields are null in JSON; exit code 1 says that something is wrong with the file.
pub fn sitemap(file: &Path, base: Option<&str>, as_json: bool) -> Result<Exit> {
    if let Some(base) = base {
        url::Url::parse(base).map_err(|e| usage(format!("--base {base:?}: {e}")))?;
    }
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else if file.is_dir() {
        return Err(usage(format!("cannot read {}: it is a directory", file.display())));
    } else {
        Box::new(std::fs::File::open(file).map_err(|e| usage(format!("cannot read {}: {e}", file.display())))?)
    };
    let sitemap = Sitemap::read_at(input, base, &SitemapLimits::default());
    let exit = if sitemap.errors.is_empty() { Exit::Done } else { Exit::Look };
    if as_json {
        out::json(&sitemap)?;
        return Ok(exit);
    }
    let Some(kind) = sitemap.kind else {
        let why = sitemap.errors.last().map_or_else(String::new, |e| e.to_string());
        out::note(&format!("rhumb: {} is no sitemap: {why}", file.display()));
        return Ok(exit);
    };
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(stdout, "{}, {} URLs", kind.name(), sitemap.urls.len())?;
    for url in &sitemap.urls {
        let priority = url.priority.map(|p| p.to_string());
        let said = [url.lastmod.as_deref(), url.changefreq.as_deref(), priority.as_deref()];
        let said: String = said.into_iter().flatten().map(|word| format!("  {word}")).collect();
        writeln!(stdout, "  {}{}", out::escape(&url.loc), out::escape(&said))?;
    }
    for problem in &sitemap.errors {
        writeln!(stdout, "{}", out::escape(&problem.to_string()))?;
    }
    if sitemap.errors_untold > 0 {
        writeln!(stdout, "and {} more problems", sitemap.errors_untold)?;
    }
    stdout.flush()?;
    Ok(exit)
}

/// `rhumb net check`.
pub fn net(command: &NetCommand, as_json: bool) -> Result<Exit> {
    let NetCommand::Check { target, allow_net } = command;
    let allow = allow_net.iter().map(|n| n.parse::<Cidr>().map_err(|e| usage(format!("--allow-net {n}: {e}"))));
    let guard = Guard { allow: allow.collect::<Result<_>>()?, ..Guard::default() };
    let bare = target.trim_start_matches('[').trim_end_matches(']');
    let (host, port, address) = match (bare.parse::<IpAddr>(), Url::parse(target)) {
        (Ok(address), _) => (target.clone(), 80, Some(address)),
        (_, Ok(url)) if url.is_web() => (url.host_str().to_string(), url.port(), url.ip_literal()),
        (_, Ok(url)) => {
            return refuse(&UrlError::Scheme(url.scheme().to_string()), as_json);
        }
        (_, Err(e)) => match as_host(target).ok_or(()).and_then(|url| Url::parse(&url).map_err(drop)) {
            Ok(url) => (url.host_str().to_string(), url.port(), url.ip_literal()),
            Err(_) => {
                return refuse(&e, as_json);
            }
        },
    };
    let (allowed, class) = match address {
        Some(address) => (guard.judge(&host, port, address).is_ok(), net::classify(address).name()),
        None if host == "localhost" || host.ends_with(".localhost") => {
            (guard.judge(&host, port, IpAddr::from([127, 0, 0, 1])).is_ok(), "loopback")
        }
        None => (true, "name"),
    };
    if as_json {
        out::json(&json!({"allowed": allowed, "class": class, "host": host, "address": address}))?;
    } else {
        let word = if allowed { "allowed" } else { "refused" };
        let note = if class == "name" { " (its addresses are judged when it is dialled)" } else { "" };
        out::line(&format!("{word}: {class}{note}"))?;
    }
    Ok(Exit::Done)
}

/// A URL that no address is dialled for is not allowed, whatever its address would be.
fn refuse(why: &UrlError, as_json: bool) -> Result<Exit> {
    if as_json {
        out::json(&json!({"allowed": false, "class": why.name(), "error": why.to_string()}))?;
    } else {
        out::line(&format!("refused: {why}"))?;
    }
    Ok(Exit::Done)
}

/// A URL for what has no scheme: a host, perhaps with a port and a path. Nothing if it has a scheme already, which `name:`
/// is unless a port follows.
fn as_host(target: &str) -> Option<String> {
    let authority = target.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let is_host = match authority.rsplit_once(':') {
        Some((name, port)) => name.ends_with(']') || port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty(),
        None => true,
    };
    is_host.then(|| format!("http://{target}"))
}
