//! The real program against a loopback web, judged from the server's side.
//!
//! - `life_of_a_url`: one URL's walk through the whole program, step by step.
//! - `polite`: connections, gaps, robots.txt, per-address limits, no idle workers; from the server's log.
//! - `crash`: SIGKILL at random instants, failing and torn writes, damaged files; nothing lost, nothing twice.
//! - `duplicates`: pages that say what others say, and hosts that have the pages of others.
//! - `held`: hosts that do not answer or bring nothing new, with their URLs: shown, and tried again.
//! - `secrets`: credentials and cookies stay with their origin; every crawl has a key of its own.
//! - `traps`: sites that make up URLs without end: what is learned of them, shown, undone.
//! - `web`: TLS, HTTP/2, redirects, conditional requests, decoding, odd servers.
//! - `hostile`: every mistake and attack of the hostile web at once, beside hosts that behave.
//! - `wire`: the hostile web below HTTP: TLS, HTTP/2 and DNS, kind by kind.
//! - `robots`: every way a site speaks to robots beside robots.txt, and which of them `explain` names.
//! - `formats`: documents of all kinds, one of them added from outside.
//! - `protocols`: local trees and other people's archives instead of the web; what no page can lead to.
//! - `sitemaps`: what robots.txt names is fetched, read and followed, within bounds.
//! - `cli`: the command line as a contract: output, JSON, exit codes, bad input.
//! - `export`: what other people's tools read out of an export; interrupted at any instant, refused in one line.
//! - `links`: the link graph: right both ways, while the crawl runs, after a crash; graphs of others in and out.
//! - `search`: the text index: the right page first, what may not be found is not, as new as the crawl; the query language.
//! - `browser`: the search page as a person with a browser has it.
//! - `serve`: the link graph over HTTP: what was crawled is answered, the program begins and ends as it should.
//! - `bench`: the measurements of a crawl run to their end.
//! - `conformance`: robots.txt, URLs and pages by the standards, through the command line.

mod bench;
mod browser;
mod cli;
mod common;
mod conformance;
mod crash;
mod duplicates;
mod export;
mod formats;
mod held;
mod hostile;
mod life_of_a_url;
mod links;
mod polite;
mod protocols;
mod robots;
mod search;
mod secrets;
mod serve;
mod sitemaps;
mod traps;
mod web;
mod wire;
