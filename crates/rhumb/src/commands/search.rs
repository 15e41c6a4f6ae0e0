//! `rhumb search`: the pages of a crawl that answer a query best.

use anyhow::Result;

use crate::cli::SearchArgs;
use crate::display::thousands;
use crate::search::Search;
use crate::search::answer::{SearchAnswer, SearchAsk, SearchResult};
use crate::{Exit, out, usage};

/// Searches, and shows what was found.
pub fn run(args: &SearchArgs, json: bool) -> Result<Exit> {
    let Some(search) = Search::open(&args.dir)? else {
        return Err(usage(format!("{} has no text index: it was crawled with --no-index", args.dir.display())));
    };
    let ask = SearchAsk {
        limit: args.limit as usize,
        offset: args.offset as usize,
        fresh: args.fresh,
        ungrouped: args.ungrouped,
        explain: args.explain,
        ..SearchAsk::new(&args.query.join(" "), 0)
    };
    let answer = search.search(&ask)?;
    if json {
        out::json(&answer)?;
    } else {
        tell(&answer)?;
    }
    Ok(if answer.results.is_empty() { Exit::Look } else { Exit::Done })
}

fn tell(answer: &SearchAnswer) -> Result<()> {
    for note in &answer.notes {
        out::note(&format!("rhumb: {note}"));
    }
    if let Some(meant) = &answer.suggestion {
        out::line(&format!("Did you mean: {meant}"))?;
    }
    if answer.results.is_empty() {
        let of = thousands(answer.pages);
        return out::line(&format!("Nothing was found among {of} pages."));
    }
    let about = if answer.total_exact { "" } else { "about " };
    let pages = if answer.total == 1 { "page" } else { "pages" };
    out::line(&format!("{about}{} {pages} of {}", thousands(answer.total), thousands(answer.pages)))?;
    for (at, result) in answer.results.iter().enumerate() {
        tell_result(answer.offset + at + 1, result)?;
    }
    if answer.more {
        let next = answer.offset + answer.results.len();
        out::line(&format!("\nThere is more: the same command with --offset {next}"))?;
    }
    Ok(())
}

fn tell_result(number: usize, result: &SearchResult) -> Result<()> {
    out::line(&format!("\n{number:>3}. {}", result.title))?;
    out::line(&format!("     {}", result.url))?;
    if !result.snippet.is_empty() {
        out::line(&format!("     {}", result.snippet))?;
    }
    let mut facts = vec![result.date.get(..10).unwrap_or_default().to_string()];
    if result.kind != "html" {
        facts.push(result.kind.clone());
    }
    if result.links_in > 0 {
        let links = if result.links_in == 1 { "link" } else { "links" };
        facts.push(format!("{} {links} to it", thousands(result.links_in)));
    }
    if let Some(of) = &result.duplicate_of {
        facts.push(format!("a duplicate of {of}"));
    }
    if result.more_from_host {
        facts.push(format!("more with site:{}", result.host));
    }
    out::line(&format!("     {}", facts.join(" · ")))?;
    if let Some(parts) = &result.explanation {
        out::line(&format!("     score {:.4}", result.score))?;
        for part in parts {
            out::line(&format!("       {:>9.4}  {:<20} {}", part.score, part.what, part.how))?;
        }
    }
    Ok(())
}
