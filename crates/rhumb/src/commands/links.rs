//! `rhumb links`: which pages link to this one, and which does it link to.

use anyhow::Result;

use crate::cli::LinksArgs;
use crate::display::thousands;
use crate::links::Links;
use crate::links::answer::{Direction, Link};
use crate::{Exit, out, usage};

/// Lists links of a page.
pub fn run(args: &LinksArgs, json: bool) -> Result<Exit> {
    let (direction, typed) = match (&args.to, &args.from) {
        (Some(to), _) => (Direction::To, to),
        (None, Some(from)) => (Direction::From, from),
        (None, None) => return Err(usage("name a page: --to URL or --from URL")),
    };
    let links = Links::open(&args.dir)?;
    let url = links.canonical(typed)?;
    let answer = links.links(&url, direction, args.anchors, args.limit as usize, args.cursor.as_deref())?;
    let Some(answer) = answer else { return Err(super::unknown_page(&url)) };
    if json {
        out::json(&answer)?;
        return Ok(Exit::Done);
    }
    let (one, many) = match direction {
        Direction::To => ("page links", "pages link"),
        Direction::From => ("link leads", "links lead"),
    };
    let preposition = if direction == Direction::To { "to" } else { "from" };
    let count = if answer.total == 1 { format!("1 {one}") } else { format!("{} {many}", thousands(answer.total)) };
    out::line(&format!("{count} {preposition} {url}"))?;
    answer.links.iter().try_for_each(tell)?;
    if let Some(next) = &answer.next {
        let again = format!("--cursor {}", out::shell(std::path::Path::new(next)));
        out::line(&format!("There are more: the same command with {again}"))?;
    }
    Ok(Exit::Done)
}

fn tell(link: &Link) -> Result<()> {
    let note = if link.fetched { "" } else { "  (not fetched)" };
    out::line(&format!("  {}{note}", link.url))?;
    for anchor in link.anchors.iter().flatten() {
        let mut marks = vec![anchor.kind];
        marks.extend(&anchor.rel);
        marks.retain(|m| *m != "a");
        let marks = if marks.is_empty() { String::new() } else { format!("  [{}]", marks.join(", ")) };
        let text = anchor.text.split_whitespace().collect::<Vec<_>>().join(" ");
        out::line(&format!(
            "      {}{marks}",
            if text.is_empty() { "(no text)".to_string() } else { format!("“{text}”") }
        ))?;
    }
    Ok(())
}
