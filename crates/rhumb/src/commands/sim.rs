//! `rhumb sim`: the synthetic web, for people.

use anyhow::{Context, Result};
use rhumb_sim::{Latency, LogConfig, Naming, ServeArgs, WebConfig, serve_blocking};

use crate::cli::{SimArgs, SimCommand};
use crate::{Exit, out, usage};

/// Serves until interrupted.
pub fn run(command: &SimCommand, as_json: bool) -> Result<Exit> {
    let SimCommand::Serve(args) = command;
    let serve = serve_args(args);
    let mut trusted = Ok(());
    serve_blocking(serve, |server| {
        let web = server.web();
        let first = web.url(0, 0);
        if let (Some(file), Some(pem)) = (&args.ca, server.ca_pem()) {
            trusted = std::fs::write(file, pem).with_context(|| format!("write {}", file.display()));
        }
        let ready = serde_json::json!({
            "listen": server.addr(), "dns": server.dns_addr(), "tls": server.tls_addr(), "seed_url": first, "hosts": web.hosts(),
        });
        let dns = server.dns_addr().map(|a| format!(" --dns {a}")).unwrap_or_default();
        let told = if as_json {
            out::json(&ready)
        } else {
            out::line(&format!(
                "Serving {} hosts at {}. Crawl them with:\n  rhumb crawl {first}{dns} --allow-net 127.0.0.0/8 --scope any --delay 0s\nCtrl-C stops it.",
                web.hosts(),
                server.addr()
            ))
        };
        // Whoever started this may have stopped reading; the web is served all the same.
        let _ = told;
    })
    .map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::AddrInUse | std::io::ErrorKind::AddrNotAvailable => usage(e.to_string()),
        _ => e.into(),
    })
    .context("serve the synthetic web")?;
    trusted?;
    Ok(Exit::Done)
}

fn serve_args(args: &SimArgs) -> ServeArgs {
    let mut serve = ServeArgs::new(args.hosts, args.pages, args.seed, args.listen, args.dns);
    if args.plain {
        serve.web = WebConfig { seed: args.seed, ..WebConfig::plain(args.hosts, args.pages) };
    }
    serve.web.pages_exact |= args.exact;
    if let Some(size) = args.page_size {
        serve.web.page_bytes = size.0 as usize;
    }
    if args.loopback {
        serve.web.naming = Naming::Loopback;
        serve.server.all_loopback = true;
    }
    serve.server.listen = args.listen;
    serve.server.tls = args.tls;
    serve.web.https = args.https;
    if let Some(ms) = args.latency_ms {
        serve.web.latency = Latency { min_ms: ms, max_ms: ms, ..Latency::default() };
    }
    serve.server.dns_config.delay_ms = args.dns_ms.unwrap_or(0);
    if args.no_keep_alive {
        (serve.server.keep_alive, serve.server.http2) = (false, false);
    }
    if let Some(file) = &args.log {
        serve.server.log = LogConfig { memory: false, file: Some(file.clone()) };
    }
    serve
}
