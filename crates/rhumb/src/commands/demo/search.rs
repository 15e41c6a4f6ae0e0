//! The end of a demonstration: the search page is up for whoever sits there; who does not gets proof that it was.

use std::io::{IsTerminal, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rhumb_crawl::engine::End;
use serde_json::{Value, json};

use crate::Exit;
use crate::cli::DemoArgs;
use crate::commands::crawl::stop_on_signal;
use crate::commands::serve;
use crate::serve::Handle;

/// How long an answer of our own server may take.
const WAIT: Duration = Duration::from_secs(30);

/// Whether the server stays up until Ctrl-C.
pub fn stays(args: &DemoArgs) -> bool {
    args.serve || (!args.no_serve && std::io::stdout().is_terminal())
}

/// Begins to serve, unless that is not wanted or the crawl was interrupted.
pub fn start(args: &DemoArgs, dir: &Path, end: End) -> Result<Option<Handle>> {
    if args.no_serve || end == End::Interrupted {
        return Ok(None);
    }
    serve::start(dir, ([127, 0, 0, 1], 0).into(), &[]).map(Some)
}

/// Asks the server for the front page of the first host by the first word of its title: where it is, what was asked, what came. A search
/// that finds nothing is a demonstration that failed.
pub fn check(server: &Handle, first: &str) -> Result<Value> {
    let page = ask(server, "page", "url", first)?;
    let title = page["title"].as_str().unwrap_or_default();
    let query = title.split(' ').next().unwrap_or_default();
    let found = ask(server, "search", "q", query)?;
    if let Some(error) = found["error"].as_str() {
        bail!("the search page was asked for {query:?} and answered: {error}");
    }
    ensure!(found["results"][0].is_object(), "the search page was asked for {query:?} and found nothing");
    Ok(json!({
        "url": format!("http://{}/", server.address),
        "query": query,
        "total": found["total"],
        "first": found["results"][0],
    }))
}

/// What was found, for people.
pub fn told(found: &Value, stays: bool) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let (url, query) = (text(&found["url"]), text(&found["query"]));
    let first = &found["first"];
    let first = format!("  {query}: {}  {}", text(&first["title"]), text(&first["url"]));
    let end = if stays { " (Ctrl-C ends it)" } else { "" };
    format!("\nSearch it: {url}{end}\n{first}")
}

/// Stays for as long as it is wanted.
pub fn stay(args: &DemoArgs, server: Option<Handle>) -> Result<Exit> {
    if let Some(server) = server
        && stays(args)
    {
        stop_on_signal(server.stopper())?;
        server.wait();
    }
    Ok(Exit::Done)
}

/// One question over HTTP, as any program would ask it.
fn ask(server: &Handle, question: &str, name: &str, value: &str) -> Result<Value> {
    let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let mut stream = TcpStream::connect(server.address).context("ask the server")?;
    stream.set_read_timeout(Some(WAIT)).context("ask the server")?;
    write!(
        stream,
        "GET /api/{question}?{name}={value} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        server.address
    )
    .context("ask the server")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("ask the server")?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).context("read what the server answered")
}
