//! The tokenizer against html5gum, which follows the standard state by state.

use html5gum::{DefaultEmitter, Token as GumToken, Tokenizer as Gum};
use proptest::prelude::*;

use super::super::charref::{Place, push_decoded};
use super::*;

/// One token in a form that both tokenizers can be brought into. Neighbouring text is one piece.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Start(String, Vec<(String, String)>, bool),
    End(String),
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(t)) => t.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

fn theirs(html: &str) -> Vec<Piece> {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    let mut pieces = Vec::new();
    for token in Gum::new_with_emitter(html, emitter) {
        match token.expect("reading a string does not fail") {
            GumToken::String(s) => push_text(&mut pieces, &text(&s)),
            GumToken::StartTag(t) => {
                let mut attributes: Vec<_> = t.attributes.iter().map(|(k, v)| (text(k), text(v))).collect();
                attributes.sort();
                pieces.push(Piece::Start(text(&t.name), attributes, t.self_closing));
            }
            GumToken::EndTag(t) => pieces.push(Piece::End(text(&t.name))),
            _ => {}
        }
    }
    pieces
}

fn ours(html: &str) -> Vec<Piece> {
    let mut room = Vec::new();
    let mut tokenizer = Tokenizer::new(html, Keep::All, &mut room);
    let mut pieces = Vec::new();
    let name = |s: &str| s.to_ascii_lowercase().replace('\0', "\u{fffd}");
    while let Some(token) = tokenizer.next() {
        match token {
            Token::Text(raw) => {
                let mut text = String::new();
                push_decoded(raw, Place::Text, "\0", &mut text);
                push_text(&mut pieces, &text);
            }
            Token::Cdata(_) => panic!("CDATA outside foreign content"),
            Token::Start { tag, self_closing } => {
                let mut attributes: Vec<(String, String)> = Vec::new();
                for a in tokenizer.attributes.iter() {
                    let key = name(&html[a.name.0..a.name.1]);
                    if attributes.iter().all(|(k, _)| *k != key) {
                        let mut value = String::new();
                        push_decoded(&html[a.value.0..a.value.1], Place::Attribute, "\u{fffd}", &mut value);
                        attributes.push((key, value));
                    }
                }
                attributes.sort();
                pieces.push(Piece::Start(name(&html[tokenizer.name.0..tokenizer.name.1]), attributes, self_closing));
                // html5gum treats noscript as a browser with scripting does.
                let content = if tag == Tag::Noscript { Content::Raw } else { tag.content() };
                let raw = tokenizer.contents(content);
                let mut text = String::new();
                match content {
                    Content::Rcdata => push_decoded(raw, Place::Text, "\u{fffd}", &mut text),
                    _ => text = raw.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{fffd}"),
                }
                push_text(&mut pieces, &text);
            }
            Token::End { .. } => pieces.push(Piece::End(name(&html[tokenizer.name.0..tokenizer.name.1]))),
        }
    }
    pieces
}

fn agree(html: &str) {
    assert_eq!(ours(html), theirs(html), "{html:?}");
}

#[test]
fn agrees_with_the_standard_on_odd_markup() {
    for html in [
        "",
        "<",
        "</",
        "<a",
        "<a ",
        "<a href",
        "<a href=",
        "<a href='",
        "</a",
        "</ a>",
        "</>",
        "<>",
        "< a>",
        "a<b",
        "a<1",
        "<a/>",
        "<a / >",
        "<a /b>",
        "<a b=c/>",
        "<a b = 'c' d=\"e\"f=g>",
        "<a =b>",
        "<a ==b>",
        "<a b=>",
        "<a b='x'/>",
        "<a B=1 b=2>",
        "<a<b>",
        "<a\0b c\0d=e\0>x",
        "<a \"'<=1>",
        "<a b=\"&amp;&copy=&lt\" c=&quot;>",
        "<!-->x",
        "<!--->x",
        "<!---->x",
        "<!--a--!>x",
        "<!--a--!-->x",
        "<!--a-->x-->",
        "<!--a--",
        "<!---!>x-->",
        "<!--!>x-->",
        "<!----!>x",
        "<!-->-->",
        "<!doctype html>x",
        "<!doctype html PUBLIC \"a>b\">",
        "<!x>y",
        "<?php a>b",
        "<![CDATA[a]]>b",
        "<title>a<b>&amp;</titles></title>x",
        "<TITLE>a</tItLe x=y>b",
        "<title>a</title",
        "<title>a</title ",
        "<title/>a</title>",
        "<style>a</style<b></style>",
        "<textarea>&lt;</textarea/>x",
        "<plaintext>a</plaintext>",
        "<xmp><b></xmp>",
        "<script>a</script>b",
        "<script><!--<script>a</script>b</script>c",
        "<script><!-->a</script>b",
        "<script><!--<script>--></script>x",
        "<script><!--</script>x",
        "<script><!-<script></script>x",
        "<script><!--<script></script>-->a</script>b",
        "<script><!--<scriptx></script>",
        "<script><!--a--->b</script>c",
        "<script><!--<script/</script></script>x",
        "<iframe>a<b></iframe>",
        "a\r\nb\rc",
        "<p\r\na\r=\rb\r>",
        "<title>\r\n\0</title>",
        "&",
        "&#",
        "&#x",
        "&a",
        "&amp",
        "a&amp;b&lt",
        "\0a\0",
    ] {
        agree(html);
    }
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "<", ">", "</", "/>", "<!--", "-->", "--!>", "-", "!", "<!", "<?", "<a", "<A href=", "</a>", "<b>", "<p class='", "'",
            "\"", "=", " ", "\n", "\r\n", "\r", "\t", "\x0c", "/", "<script>", "</script>", "<script", "</script", "<style>",
            "</style", "<title>", "</title>", "<textarea>", "</textarea ", "<xmp>", "</xmp>", "<iframe src=x>", "</iframe>", "<plaintext",
            "&amp;", "&amp", "&copy", "&notin;", "&not", "&#x41;", "&#65", "&#", "&#x", "&;", "&", ";", "x", "é", "日本", "\0", "a=b", "<![CDATA[",
            "]]>", "<!doctype html>", "<svg>", "<noscript>", "</noscript>", "<img src=\"a b\" alt='&lt;'>",
        ]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9&;#<>/='\" !-]{0,8}",
        1 => any::<char>().prop_filter("html5gum replaces a leading BOM", |c| *c != '\u{feff}').prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn agrees_with_the_standard_on_anything(parts in prop::collection::vec(fragment(), 0..40)) {
        agree(&parts.concat());
    }
}

#[test]
fn agrees_with_the_standard_on_mutated_pages() {
    let page = super::super::samples::messy(7);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |n: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % n
    };
    let marks = ["<", ">", "\"", "'", "&", "--", "</", "=", "<!--", "<script>", "\0", " "];
    for _ in 0..200 {
        let mut html = page.clone();
        for _ in 0..6 {
            let at = (0..=next(html.len())).rev().find(|&i| html.is_char_boundary(i)).unwrap_or(0);
            if next(2) == 0 {
                html.insert_str(at, marks[next(marks.len())]);
            } else if at < html.len() {
                html.remove(at);
            }
        }
        agree(&html);
    }
}
