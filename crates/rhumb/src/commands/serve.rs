//! `rhumb serve`: the link graph of a directory over HTTP, until interrupted.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rhumb_core::url::Normalizer;

use super::crawl::stop_on_signal;
use crate::cli::ServeArgs;
use crate::config::{Config, FILE};
use crate::links::Links;
use crate::serve::{self, App, Hosts};
use crate::{Exit, out, usage};

/// Serves until Ctrl-C or SIGTERM.
pub fn run(args: &ServeArgs, json: bool) -> Result<Exit> {
    let normalizer = normalizer_of(&args.dir)?;
    let links = Links::open(&args.dir)?;
    let listener = TcpListener::bind(args.listen).map_err(|e| match e.kind() {
        ErrorKind::AddrInUse => {
            usage(format!("{} is taken; --listen names another address, port 0 any free one", args.listen))
        }
        ErrorKind::AddrNotAvailable => usage(format!("{} is no address of this machine", args.listen)),
        ErrorKind::PermissionDenied => {
            usage(format!("{} may not be listened on; ports from 1024 on may be", args.listen))
        }
        _ => anyhow::Error::from(e).context(format!("listen on {}", args.listen)),
    })?;
    let address = listener.local_addr().context("listen")?;
    let app = App::new(Arc::new(links), normalizer, Hosts::new(address, &args.allow_host));
    let server = serve::start(app, listener)?;
    stop_on_signal(server.stopper())?;
    let url = format!("http://{}/", server.address);
    // Whoever started this may have stopped reading; it serves all the same.
    let _ = if json {
        out::json(&serde_json::json!({ "url": url }))
    } else {
        out::line(&format!("Serving {url} (Ctrl-C ends it)"))
    };
    if !server.address.ip().is_loopback() {
        out::note("rhumb: this address can be reached from other machines, and everyone there can ask");
    }
    server.wait();
    Ok(Exit::Done)
}

/// URLs are brought into the form that this crawl had them in; other graphs have the usual one.
pub fn normalizer_of(dir: &Path) -> Result<Normalizer> {
    if !dir.is_dir() {
        return Err(usage(format!("there is no directory {}", dir.display())));
    }
    if !dir.join(FILE).exists() {
        return Ok(Normalizer::default());
    }
    let config: Config = super::crawl_directory(dir)?;
    let settings = config.settings().map_err(|e| usage(format!("{e:#}")))?;
    Ok(Normalizer::new(&settings.normalize))
}
