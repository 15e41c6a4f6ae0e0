//! What queries mean, and what holds of every one.

use proptest::prelude::*;

use super::*;

/// 2026-03-31T12:30:00Z.
const NOW: i64 = 1_774_960_200_000;

fn parse(text: &str) -> Query {
    Query::parse_at(text, NOW)
}

/// The query reads as this one, and what each clause was read from.
fn check(text: &str, expected: &str) {
    let query = parse(text);
    assert_eq!(query.display(), expected, "{text}");
    assert!(parse(&query.display()).asks_same(&query), "{text} again");
}

fn check_spans(text: &str, expected: &[&str]) {
    let query = parse(text);
    let spans = query.clauses.iter().map(|c| &query.text[c.span.clone()]).collect::<Vec<_>>();
    assert_eq!(spans, expected, "{text}");
}

fn check_notes(text: &str, expected: &[&str]) {
    let notes = parse(text).notes;
    assert_eq!(notes.len(), expected.len(), "{text}: {notes:?}");
    for (note, expected) in notes.iter().zip(expected) {
        assert!(note.contains(expected), "{text}: {notes:?}");
    }
}

#[test]
fn words_and_signs() {
    check("", "");
    check(" \t\n　", "");
    check("one  two", "one two");
    check("+one -two three", "+one -two three");
    check("e-mail C++ C# AT&T don't", "e-mail C++ C# AT&T don't");
    check("–dash −minus －wide ＋plus", "-dash -minus -wide +plus");
    check("- one – two + three", "one two three");
    check("--verbose +-x -+y ---", "verbose x y");
    check("-.net", "-.net");
    check("& | && ? ... …", "");
    check("wor* +wor* **", "wor* +wor*");
    check("wor*** w*rd", "wor* w*rd");
    check("http://example.org/a?b=c foo:bar 12:30", "http://example.org/a?b=c foo:bar 12:30");
    check("東京\u{3000}大阪 مرحبا", "東京 大阪 مرحبا");
    check("one\u{200e}\u{feff} two\u{0}three", "one two three");
}

#[test]
fn words_between_words() {
    check("one AND two", "+one +two");
    check("one AND two AND three four", "+one +two +three four");
    check("one and two or not three", "one and two or not three");
    check("one OR two", "one two");
    check("NOT one two", "-one two");
    check("one AND NOT two", "+one -two");
    check("-one AND two", "-one +two");
    check("AND one AND", "one");
    check("NOT NOT one NOT", "-one");
    check("NOT OR one", "-one");
    check("NOT +one", "-one");
    check("--NOT one +AND -OR", "-one +AND -OR");
    check("one AND site: two", "one two");
    check("\"AND\" one", "\"AND\" one");
}

#[test]
fn phrases() {
    check("\"one two\"", "\"one two\"");
    check("\"one two", "\"one two\"");
    check("\"\" \" \" \"", "");
    check("-\"one  two\" +\"three\"", "-\"one two\" +\"three\"");
    check("“one two” „three four“ «five six» »seven«", "\"one two\" \"three four\" \"five six\" \"seven\"");
    check("'one two' ‘three’", "'one two' ‘three’");
    check("5\" pipe 3\"", "5 pipe 3");
    check("one\"two three\"four", "one \"two three\" four");
    check("\"one - two AND -three site:x\"", "\"one two AND -three site:x\"");
    check("intitle:\"one two\" inurl:one -intitle:\"three", "intitle:\"one two\" inurl:one -intitle:three");
    check("intitle:-x intitle:one*", "intitle:-x intitle:one*");
}

#[test]
fn operators() {
    check("Site:Example.org SITE：example.com", "site:example.org site:example.com");
    check("site:https://example.org/docs", "site:example.org/docs");
    check("-site:www.example.org +intitle:x", "-site:www.example.org +intitle:x");
    check("site:\"example.org/a b\"", "site:example.org/a%20b");
    check("lang:german language:pt-BR lang:xyz", "lang:de lang:pt lang:xyz");
    check("type:htm filetype:.TXT type:rss type:application/pdf", "type:html type:text type:feed type:pdf");
    check("after:2024 before:2024-05-17T10:00:00+02:00", "after:2024-01-01 before:2024-05-17T08:00:00Z");
    check("after:7d -before:1m", "after:2026-03-24T12:30:00Z -before:2026-02-28T12:30:00Z");
    check("link:HTTPS://Example.org/A?b=c:d", "link:HTTPS://Example.org/A?b=c:d");
    check("dup: one dup:https://example.org/", "dup: one dup:https://example.org/");
    check("site: intitle:\"\" link:\" \" one", "one");
    check("site:a,b lang:klingon after:noon type:? one", "one");
    check("sites:x site", "sites:x site");
}

#[test]
fn notes_say_what_was_left_out() {
    check_notes("one - two & \"\"", &[]);
    check_notes("one OR two OR three", &["OR is not needed"]);
    check_notes("intitle: one", &["nothing behind intitle:"]);
    check_notes("one NOT", &["nothing behind NOT"]);
    check_notes("one NOT (site:", &[]);
    check_notes("after:noon", &["“noon” is no date that is known; after: was left out."]);
    check_notes("lang:klingon site:* ", &["no language", "no host"]);
    check_notes("w*rd ☃", &["only at the end", "“☃” has neither"]);
    check_notes(&format!("{} one", "a".repeat(513)), &["longer than 512 bytes"]);
    check_notes(&format!("link:{}", "a".repeat(2049)), &["longer than 2048 bytes"]);
    check_notes(&"word ".repeat(65), &["first 64 parts"]);
    check_notes(&"word ".repeat(64), &[]);
    check_notes(&format!("\"{}\"", "word ".repeat(33)), &["first 32 words"]);
    assert_eq!(parse(&(0..99).map(|n| format!("after:x{n} ")).collect::<String>()).notes.len(), NOTES_MAX);
}

#[test]
fn spans_lead_to_what_was_typed() {
    check_spans("one -two \"three  four\" five*", &["one", "two", "three  four", "five"]);
    check_spans("intitle:six -inurl:\"seven eight\" dup: “nine", &["six", "seven eight", "", "nine"]);
    let query = parse("-kittne AND “big kittne” intitle:kittne*");
    assert_eq!(
        query.with_replaced(query.clauses[0].span.clone(), "kitten"),
        "-kitten AND “big kittne” intitle:kittne*"
    );
    let all = query.clauses.iter().map(|c| (c.span.clone(), "x")).collect::<Vec<_>>();
    assert_eq!(query.with_all_replaced(&all), "-x AND “x” intitle:x");
    let odd = [(0..1, "+"), (0..3, "x"), (12..14, "x"), (900..901, "x")];
    assert_eq!(query.with_all_replaced(&odd), "+kittne AND “big kittne” intitle:kittne*");
}

/// Texts with more of what means something than chance would bring.
fn typed() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(vec![
            " ", " ", " ", "-", "+", "–", "\"", "“", "»", "*", ":", "：", "/", "@", "#", ".", "AND", "OR", "NOT", "one",
            "TWO", "七", "☃", "site:", "intitle:", "inurl:", "lang:", "type:", "after:", "Before:", "link:", "dup:",
            "http://", "example.org", "german", "de", "pdf", "2024", "-05", "7d", "T10:00Z", "\u{301}", "İ", "Σ",
        ])
        .prop_map(str::to_string),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn bounds_hold(query: &Query) -> bool {
    let word = |w: &String| !w.is_empty() && w.len() <= WORD_BYTES_MAX;
    let url = |u: &String| !u.is_empty() && u.len() <= URL_BYTES_MAX;
    let words = |ws: &Vec<String>| (1..=PHRASE_WORDS_MAX).contains(&ws.len()) && ws.iter().all(word);
    query.notes.len() <= NOTES_MAX
        && query.notes.iter().all(|n| n.chars().count() < 200)
        && query.clauses.len() <= CLAUSES_MAX
        && query.clauses.iter().all(|clause| match &clause.what {
            What::Word(w) | What::Prefix(w) => word(w),
            What::Phrase(ws) | What::InTitle(ws) | What::InUrl(ws) => words(ws),
            What::Site(host) | What::Lang(host) | What::Type(host) => word(host),
            What::SitePath { host, path } => word(host) && url(path) && path.starts_with('/'),
            What::After(ms) | What::Before(ms) => *ms >= 0,
            What::Link(u) => url(u),
            What::Duplicate(u) => u.as_ref().is_none_or(url),
        })
}

fn holds_of_every_query(text: &str) -> Result<(), TestCaseError> {
    let query = parse(text);
    prop_assert!(bounds_hold(&query), "{:?}", query);
    let again = parse(&query.display());
    prop_assert!(again.asks_same(&query), "{:?} and {:?}", query, again);
    prop_assert_eq!(again.display(), query.display());
    let mut done = 0;
    for clause in &query.clauses {
        prop_assert!(done <= clause.span.start && text.get(clause.span.clone()).is_some(), "{:?}", query);
        done = clause.span.end;
        if let What::Word(word) | What::Prefix(word) = &clause.what {
            prop_assert_eq!(&text[clause.span.clone()], word.as_str());
            // A better spelling is asked for in the same way.
            let better = parse(&query.with_replaced(clause.span.clone(), "better"));
            prop_assert_eq!(better.clauses.len(), query.clauses.len());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_text_is_a_query(text in any::<String>()) {
        holds_of_every_query(&text)?;
    }

    #[test]
    fn what_people_type_is_a_query(text in typed()) {
        holds_of_every_query(&text)?;
    }

    #[test]
    fn long_texts_are_bounded(piece in typed(), times in 1usize..200) {
        holds_of_every_query(&piece.repeat(times))?;
        holds_of_every_query(&piece.replace(' ', "").repeat(times))?;
    }
}
