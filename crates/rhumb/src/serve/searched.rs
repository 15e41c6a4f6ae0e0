//! What the server asks of a text index, as [`super::asked`] has it for links, and how a query that is being typed is completed.

use anyhow::Result;

use crate::search::answer::{Cached, SearchAnswer, SearchAsk};

/// A text index that can be asked. An error that is a [`crate::Usage`] is the asker's fault, such as a query without a word.
pub trait Searched: Send + Sync + 'static {
    /// The results of a query.
    fn search(&self, ask: &SearchAsk) -> Result<SearchAnswer>;
    /// The archived copy of a page; `None` if there is none, or none may be shown.
    fn cached(&self, url: &str) -> Result<Option<Cached>>;
    /// Words of the index that begin so, likeliest first, for completing a query.
    fn complete(&self, prefix: &str, limit: usize) -> Result<Vec<String>>;

    /// Takes in what is new.
    fn keep_up(&self) -> Result<()> {
        Ok(())
    }

    /// Pages that can be found. Every answer tells, whatever was asked.
    fn pages(&self) -> Result<u64> {
        Ok(self.search(&SearchAsk::new("a", 1))?.pages)
    }
}

/// What of a query in the making is the beginning of a word: where it begins. Nothing, if its last part is none, such as a host.
fn word_at(typed: &str) -> Option<usize> {
    let begin =
        typed.rfind(char::is_whitespace).map_or(0, |at| at + typed[at..].chars().next().map_or(0, char::len_utf8));
    let mut at = begin;
    loop {
        let rest = &typed[at..];
        let sign =
            rest.chars().next().filter(|c| matches!(c, '+' | '-' | '−' | '"' | '“' | '(')).map_or(0, char::len_utf8);
        let field =
            ["intitle:", "inurl:"].iter().find(|f| rest.get(..f.len()).is_some_and(|r| r.eq_ignore_ascii_case(f)));
        match (sign, field) {
            (0, None) => break,
            (0, Some(field)) => at += field.len(),
            (sign, _) => at += sign,
        }
    }
    let word = &typed[at..];
    let is_word = word.chars().next().is_some_and(char::is_alphanumeric) && !word.contains([':', '*', '"', '”', '/']);
    is_word.then_some(at)
}

/// Queries that begin as `typed` does, with its last word completed.
pub fn completed(searched: &dyn Searched, typed: &str, limit: usize) -> Result<Vec<String>> {
    let Some(at) = word_at(typed) else { return Ok(Vec::new()) };
    let (before, prefix) = typed.split_at(at);
    let words = searched.complete(prefix, limit)?;
    Ok(words.into_iter().take(limit).map(|word| format!("{before}{word}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_completed_and_nothing_else() {
        let check = |typed: &str, expected: Option<&str>| {
            assert_eq!(word_at(typed).map(|at| &typed[at..]), expected, "{typed:?}");
        };
        check("char", Some("char"));
        check("sea char", Some("char"));
        check("sea\u{3000}char", Some("char"));
        check("+sea -char", Some("char"));
        check("\"sea char", Some("char"));
        check("-\"char", Some("char"));
        check("InTitle:char", Some("char"));
        check("e-mail", Some("e-mail"));
        check("überf", Some("überf"));
        for other in
            ["", " ", "sea ", "site:char", "char*", "\"sea chart\"", "-", "intitle:", "http://a", "link:a.example"]
        {
            check(other, None);
        }
    }
}
