//! What snippets look like, and what holds of every one.

use proptest::prelude::*;

use super::*;

/// The words of a query, of which each is a term.
fn terms_of(query: &str) -> impl Fn(&str) -> Option<u32> + '_ {
    move |word| query.split(' ').position(|q| !q.is_empty() && q == word.to_lowercase()).map(|n| n as u32)
}

/// A snippet with its highlights in brackets.
fn marked(snippet: &Snippet) -> String {
    let chars = snippet.text.chars().collect::<Vec<_>>();
    let (mut text, mut done) = (String::new(), 0);
    for &(start, end) in &snippet.highlights {
        text.extend(&chars[done..start]);
        text.push('[');
        text.extend(&chars[start..end]);
        text.push(']');
        done = end;
    }
    text.extend(&chars[done..]);
    text
}

fn check(text: &str, query: &str, chars_max: usize, expected: &str) {
    let options = SnippetOptions { chars_max, ..SnippetOptions::default() };
    let snippet = make(text, &terms_of(query), &options);
    assert_eq!(marked(&snippet), expected, "{query} in {text}");
    assert!(snippet.text.chars().count() <= chars_max, "{}", snippet.text);
}

const FABLE: &str = "A fox saw some grapes hanging from a vine. They were ripe, and his mouth watered.\n\
    He jumped, and jumped again, but he could not reach them!  At last he gave up. \
    “They are sour,” said the fox, and went away.\nIt is easy to despise what you cannot get.";

#[test]
fn the_best_passage_is_shown() {
    check("", "fox", 80, "");
    check(" \n\u{0} ", "fox", 80, "");
    check("One fox.", "fox", 80, "One [fox].");
    check(FABLE, "wolf", 60, "A fox saw some grapes hanging from a vine. They were …");
    check(FABLE, "fox grapes", 60, "A [fox] saw some [grapes] hanging from a vine. They were …");
    check(FABLE, "fox sour", 60, "… “They are [sour],” said the [fox], and went away. It is easy …");
    check(FABLE, "reach", 40, "… could not [reach] them! At last he …");
    check(FABLE, "get", 40, "… easy to despise what you cannot [get].");
    check(FABLE, "jumped", 80, "… He [jumped], and [jumped] again, but he could not reach them! At last he gave …");
    check(FABLE, "grapes despise", 80, "A fox saw some [grapes] hanging from a … It is easy to [despise] what you …");
    check("a b c d", "b d", 16, "a [b] c [d]");
}

#[test]
fn weights_tell_what_matters() {
    let text = format!("the the the end {} the rare {} of the end", "x ".repeat(40), "y ".repeat(40));
    let with = |weights| {
        let options = SnippetOptions { weights, chars_max: 40, two_passages: false, ..SnippetOptions::default() };
        make(&text, &terms_of("the of rare"), &options).text
    };
    assert!(with(&[0.1, 0.1, 5.0]).contains("rare"));
    assert!(!with(&[1.0, 1.0, 0.1]).contains("rare"));
    assert!(!with(&[f32::NAN, f32::INFINITY, -1.0]).contains("rare"));
}

#[test]
fn text_of_all_kinds() {
    check("東京都に住んでいます。大阪は遠い。", "東京 京都 大阪", 40, "[東京都]に住んでいます。[大阪]は遠い。");
    check("私は東京に住んでいて、毎日電車で会社に行きます。", "電車", 20, "… いて、毎日[電車]で会社に行きます。");
    check("iPhone手机abc", "手机 abc", 40, "iPhone[手机abc]");
    check("서울에 삽니다", "서울", 40, "[서울]에 삽니다");
    check("שלום עולם, זה טקסט", "עולם", 40, "שלום [עולם], זה טקסט");
    check("Größe Straße", "größe straße", 40, "[Größe] [Straße]");
    check("cafe\u{301} noir", "cafe", 40, "[cafe\u{301}] noir");
    check("👩‍👩‍👧 family 🇩🇪🇫🇷", "family", 40, "👩‍👩‍👧 [family] 🇩🇪🇫🇷");
    check("<b>fox</b> &amp; <script>fox()", "fox", 40, "<b>[fox]</b> &amp; <script>[fox]()");
    check("a\u{202e}b\u{7}c\t\r\n d\u{200f} e", "c", 40, "ab [c] d e");
    check(&format!("z{}", "\u{301}".repeat(500)), "z", 40, &format!("[z{}]", "\u{301}".repeat(8)));
    check("\u{301}\u{301} x", "x", 40, "[x]");
    check(&"🇩🇪".repeat(50), "x", 21, &format!("{}…", "🇩🇪".repeat(8)).replace('…', " …"));
    check(&"a".repeat(1000), "x", 20, &format!("{}…", "a".repeat(16)));
    check(&"a".repeat(1000), &"a".repeat(1000), 20, &format!("[{}]…", "a".repeat(16)));
    check(&format!("https://example.org/{} fox", "a/".repeat(500)), "fox", 20, "… [fox]");
}

#[test]
fn only_the_beginning_of_a_long_text_is_looked_at() {
    let text = "word ".repeat(100_000) + "fox";
    let calls = std::cell::Cell::new(0);
    let terms = |word: &str| {
        calls.set(calls.get() + 1);
        (word == "fox").then_some(0)
    };
    let snippet = make(&text, &terms, &SnippetOptions::default());
    assert!(snippet.highlights.is_empty() && snippet.text.starts_with("word word") && snippet.text.ends_with("word …"));
    assert_eq!(calls.get(), (64 << 10) / 5);
}

#[test]
fn titles_keep_their_form() {
    let check = |text: &str, query: &str, expected: &[(usize, usize)]| {
        assert_eq!(highlight(text, &terms_of(query)), expected, "{text}");
    };
    check("", "fox", &[]);
    check("The  Fox\n& the Grapes", "fox grapes", &[(5, 8), (15, 21)]);
    check("東京都庁", "東京 京都", &[(0, 3)]);
    check("é fox", "fox", &[(2, 5)]);
    check("fox", "fox", &[(0, 3)]);
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "fox", "Fox", "vine", "grapes", " ", " ", " ", "  ", "\n", ". ", "! ", "…", "“", "”", "-", "<b>", "東", "京", "都", "。",
            "セ", "\u{301}", "\u{200d}", "👩", "🇩", "\u{202e}", "\u{0}", "é", "क", "\u{94d}", "ษ", "\u{e31}", "longerwordsthanusual",
        ])
        .prop_map(str::to_string),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..150).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_snippet_is_sound(text in texts(), chars_max in 16usize..120, two_passages: bool, bytes_max in 0usize..900) {
        let terms = terms_of("fox vine grapes 東京 都");
        let options = SnippetOptions { chars_max, two_passages, bytes_max, weights: &[1.0, 0.5] };
        let snippet = make(&text, &terms, &options);
        let chars = snippet.text.chars().collect::<Vec<_>>();
        prop_assert!(chars.len() <= chars_max, "{:?}", snippet);
        prop_assert!(!chars.iter().any(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(c)), "{:?}", snippet);
        prop_assert!(!snippet.text.contains("  ") && snippet.text.trim() == snippet.text, "{:?}", snippet);
        prop_assert!(!chars.first().is_some_and(|c| scan::is_mark(*c)), "{:?}", snippet);
        let mut done = 0;
        for &(start, end) in &snippet.highlights {
            prop_assert!(done <= start && start < end && end <= chars.len(), "{:?}", snippet);
            let word = chars[start..end].iter().filter(|c| !scan::is_mark(**c)).collect::<String>();
            // Where the snippet ends in the middle of a word, its beginning is shown.
            let is_cut = (chars.get(end) == Some(&'…') || chars.get(end + 1) == Some(&'…'))
                && ["fox", "vine", "grapes"].iter().any(|term| term.starts_with(&word.to_lowercase()));
            prop_assert!(
                is_cut || terms(&word).is_some() || word.chars().all(|c| "東京都".contains(c)) || word.contains(scan::is_cjk),
                "{} in {:?}", word, snippet
            );
            done = end;
        }
        // Where something matches, something is highlighted.
        let looked_at = scan::matches(scan::cut(&text, bytes_max), &terms);
        prop_assert_eq!(looked_at.is_empty(), snippet.highlights.is_empty(), "{:?}", snippet);
        for (start, end) in highlight(&text, &terms) {
            let word = text.chars().skip(start).take(end - start).collect::<String>();
            prop_assert!(start < end && word.chars().next().is_some_and(char::is_alphanumeric), "{}", word);
        }
    }
}
