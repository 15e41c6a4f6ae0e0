//! rhumb: a polite, crash-safe web crawler with an archive, in one program.
//!
//! This crate is the program: the command line ([`cli`]), the configuration ([`config`]), what people see
//! ([`display`], [`out`]), and one file per command ([`commands`]). It chooses the concrete types; the work is done by
//! the other crates.

mod cli;
mod commands;
mod config;
mod credentials;
mod display;
mod files;
mod links;
mod memory;
mod out;
mod search;
mod serve;
mod units;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command ended, as the exit code tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Finished, with something the user should see.
    Look,
    /// Interrupted; can be resumed.
    Interrupted,
}

/// The user asked for something that cannot be: exit code 2. Everything else that fails is our machinery: 3.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A usage error with a message.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse_from(cli::options_first(std::env::args_os())) {
        Ok(cli) => cli,
        Err(e) => {
            return cli::explain(&e);
        }
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("RHUMB_LOG");
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    match commands::run(cli) {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::Look) => ExitCode::from(1),
        Ok(Exit::Interrupted) => ExitCode::from(4),
        Err(e) if is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            // One line, whatever the cause holds.
            let text = format!("{e:#}").replace('\n', " ");
            out::note(&format!("rhumb: {text}"));
            ExitCode::from(if e.downcast_ref::<Usage>().is_some() { 2 } else { 3 })
        }
    }
}

/// `rhumb … | head` is no failure.
fn is_closed_pipe(e: &anyhow::Error) -> bool {
    e.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
