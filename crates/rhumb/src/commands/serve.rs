//! `rhumb serve`: text and links of a directory over HTTP, until interrupted.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rhumb_core::url::Normalizer;

use super::crawl::stop_on_signal;
use crate::cli::ServeArgs;
use crate::config::{Config, FILE};
use crate::links::Links;
use crate::search::Search;
use crate::serve::{self, App, Handle, Hosts, Searched};
use crate::{Exit, out, usage};

/// Serves until Ctrl-C or SIGTERM.
pub fn run(args: &ServeArgs, json: bool) -> Result<Exit> {
    let server = start(&args.dir, args.listen, &args.allow_host)?;
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

/// Begins to serve a directory, text and links, to whoever can reach `listen` and names loopback or one of `allow_host`.
pub fn start(dir: &Path, listen: SocketAddr, allow_host: &[String]) -> Result<Handle> {
    let normalizer = normalizer_of(dir)?;
    let links = Links::open(dir)?;
    let search = searched_of(dir)?;
    let listener = TcpListener::bind(listen).map_err(|e| match e.kind() {
        ErrorKind::AddrInUse => {
            usage(format!("{listen} is taken; --listen names another address, port 0 any free one"))
        }
        ErrorKind::AddrNotAvailable => usage(format!("{listen} is no address of this machine")),
        ErrorKind::PermissionDenied => usage(format!("{listen} may not be listened on; ports from 1024 on may be")),
        _ => anyhow::Error::from(e).context(format!("listen on {listen}")),
    })?;
    let hosts = Hosts::new(listener.local_addr().context("listen")?, allow_host);
    serve::start(App::new(Arc::new(links), normalizer, hosts).searching(search), listener)
}

/// The text index of a directory, if it has one.
fn searched_of(dir: &Path) -> Result<Option<Arc<dyn Searched>>> {
    if !dir.join(FILE).exists() {
        return Ok(None);
    }
    Ok(Search::open(dir)?.map(|search| Arc::new(search) as Arc<dyn Searched>))
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
