//! Vocabularies against a map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Model = BTreeMap<String, u64>;

fn words(model: &Model) -> Words {
    let mut builder = WordsBuilder::new();
    for (word, count) in model.iter().rev() {
        builder.add(word, *count as u32);
    }
    assert_eq!(builder.len(), model.len());
    Words::open(builder.finish()).expect("words")
}

fn model(list: &[(&str, u64)]) -> Model {
    list.iter().map(|(word, count)| (word.to_string(), *count)).collect()
}

fn all(words: &Words) -> Model {
    words.iter().collect()
}

fn merged(parts: &[&Words], words_max: usize) -> Words {
    let mut bytes = Vec::new();
    merge(parts, words_max, |part| bytes.extend_from_slice(part));
    Words::open(bytes).expect("merged words")
}

#[test]
fn words_are_counted() {
    let mut builder = WordsBuilder::new();
    for (word, count) in [("fox", 2), ("", 9), ("fox", 3), ("föx", 1), ("zero", 0), (&"x".repeat(65), 1)] {
        builder.add(word, count);
    }
    builder.add(&"y".repeat(64), u32::MAX);
    assert!(builder.memory_bytes() > 0);
    let words = Words::open(builder.finish()).expect("words");
    assert_eq!((words.len(), words.total()), (3, 6 + u64::from(u32::MAX)));
    let check = |word: &str, expected: u64| assert_eq!(words.count(word), expected, "{word}");
    check("fox", 5);
    check("föx", 1);
    check(&"y".repeat(64), u64::from(u32::MAX));
    check("", 0);
    check("fo", 0);
    check("foxy", 0);
    check("zzz", 0);
    let none = Words::open(WordsBuilder::new().finish()).expect("no words");
    assert!(none.is_empty() && none.count("fox") == 0 && none.iter().next().is_none());
    assert_eq!(none.starting_with("", 9), []);
    assert_eq!(suggest(&[&none], "foxes", &SuggestOptions::default()), None);
    assert_eq!(suggest(&[], "foxes", &SuggestOptions::default()), None);
}

#[test]
fn beginnings_are_completed() {
    let one = words(&model(&[("car", 5), ("card", 9), ("care", 9), ("cat", 50), ("cow", 1), ("dog", 99)]));
    let two = words(&model(&[("care", 30), ("carp", 1)]));
    let check = |prefix: &str, max: usize, expected: &[(&str, u64)]| {
        let found = starting_with(&[&one, &two], prefix, max);
        assert_eq!(found.iter().map(|(w, n)| (w.as_str(), *n)).collect::<Vec<_>>(), expected, "{prefix}");
    };
    check("ca", 3, &[("cat", 50), ("care", 39), ("card", 9)]);
    check("car", 9, &[("care", 39), ("card", 9), ("car", 5), ("carp", 1)]);
    check("x", 9, &[]);
    check("", 1, &[("dog", 99)]);
    check("ca", 0, &[]);
}

#[test]
fn slips_are_seen_through() {
    let common =
        [("kitten", 5000), ("kitchen", 900), ("the", 100_000), ("receive", 90_000), ("recieve", 40), ("form", 800)];
    let rare = [
        ("from", 100_000),
        ("mitten", 400),
        ("kittens", 2),
        ("mp3", 900),
        ("東京", 900),
        ("größe", 300),
        ("sitten", 1),
    ];
    let words = words(&model(&[&common[..], &rare[..]].concat()));
    let check = |word: &str, expected: Option<(&str, u8)>| {
        let found = suggest(&[&words], word, &SuggestOptions::default());
        assert_eq!(found.as_ref().map(|s| (s.word.as_str(), s.distance)), expected, "{word}");
        if let Some(found) = found {
            assert_eq!(words.count(&found.word), found.count);
        }
    };
    check("kittne", Some(("kitten", 1)));
    check("Kiten", Some(("kitten", 1)));
    check("kittens", Some(("kitten", 1)));
    check("sitten", Some(("kitten", 1)));
    check("kttne", Some(("kitten", 2)));
    check("grösse", Some(("größe", 2)));
    check("teh", Some(("the", 1)));
    check("tze", Some(("the", 1)));
    check("kitten", None);
    // Rare, but not rare enough in so few words.
    check("recieve", None);
    check("form", None);
    // Two errors are too many for four letters, and so are two where the other word is hardly more frequent.
    check("ofrn", None);
    check("mittneq", Some(("mitten", 2)));
    for as_it_is in ["", "th", "te", "mp4", "東亰", "kitt3n", "zzzzzzzz", &"kitten".repeat(9)] {
        check(as_it_is, None);
    }
    assert!(words.memory_bytes() > 0);

    let many = super::tests::words(&model(&[("receive", 90_000), ("recieve", 40), ("and", 60_000_000)]));
    let found = suggest(&[&many], "recieve", &SuggestOptions::default());
    assert_eq!(found.map(|s| s.word).as_deref(), Some("receive"), "one in a million, and two thousand times as rare");
}

#[test]
fn rare_words_make_room() {
    let one = words(&model(&[("a", 1), ("b", 1), ("c", 2), ("d", 9)]));
    let two = words(&model(&[("a", 1), ("e", 1), ("f", 100)]));
    let check = |words_max: usize, expected: &[(&str, u64)]| {
        let merged = merged(&[&one, &two], words_max);
        assert_eq!(all(&merged), model(expected), "{words_max}");
        assert_eq!(merged.total(), expected.iter().map(|(_, n)| n).sum::<u64>());
    };
    check(100, &[("a", 2), ("b", 1), ("c", 2), ("d", 9), ("e", 1), ("f", 100)]);
    check(6, &[("a", 2), ("b", 1), ("c", 2), ("d", 9), ("e", 1), ("f", 100)]);
    check(5, &[("a", 2), ("c", 2), ("d", 9), ("f", 100)]);
    check(3, &[("d", 9), ("f", 100)]);
    check(0, &[("f", 100)]);
}

/// What [`suggest`] should find, for a word that is too rare to be counted by its share.
fn every_word_looked_at(sums: &Model, typed: &str) -> Option<Suggestion> {
    let chars = |word: &str| word.chars().collect::<Vec<_>>();
    let own = sums.get(typed).copied().unwrap_or(0);
    let near = |word: &str| suggest::tests::slow(&chars(word), &chars(typed)) as u8;
    let distance_max = [0, 0, 0, 1, 1].get(typed.len()).copied().unwrap_or(2);
    sums.iter()
        .filter(|(word, _)| own <= 2 && word.chars().all(|c| c.is_alphabetic() && c != '東'))
        .map(|(word, count)| Suggestion { word: word.clone(), count: *count, distance: near(word) })
        .filter(|s| (1..=distance_max).contains(&s.distance) && s.count >= 10u64.pow(s.distance.into()) * (own + 1))
        .min_by_key(|s| (s.distance, Reverse(s.count), s.word.chars().next() != typed.chars().next(), s.word.clone()))
}

fn models() -> impl Strategy<Value = Model> {
    let word = prop_oneof!["[ab]{1,4}", "[a-e]{3,7}", "[a-zäж東0-9]{1,12}", "(pre|prefix|präfix)[a-c]{0,5}"];
    prop::collection::btree_map(word, prop_oneof![1u64..4, 1u64..3000], 0..120)
}

proptest! {
    #[test]
    fn a_vocabulary_is_a_map(model in models(), asked in "[a-eäp]{0,5}", max in 0usize..9) {
        let words = words(&model);
        prop_assert_eq!(all(&words), model.clone());
        prop_assert_eq!(words.total(), model.values().sum::<u64>());
        for (word, count) in &model {
            prop_assert_eq!(words.count(word), *count);
        }
        prop_assert_eq!(words.count(&asked), model.get(&asked).copied().unwrap_or(0));
        let mut expected = model.into_iter().filter(|(w, _)| w.starts_with(&asked)).collect::<Vec<_>>();
        expected.sort_by_key(|(w, n)| (Reverse(*n), w.clone()));
        expected.truncate(max);
        prop_assert_eq!(words.starting_with(&asked, max), expected);
    }

    #[test]
    fn vocabularies_are_added_up(models in prop::collection::vec(models(), 0..5), words_max in 1usize..300, typed in "[a-e]{2,7}") {
        let parts = models.iter().map(words).collect::<Vec<_>>();
        let parts = parts.iter().collect::<Vec<_>>();
        let mut sums = Model::new();
        models.iter().flatten().for_each(|(word, count)| *sums.entry(word.clone()).or_default() += count);
        let whole = merged(&parts, usize::MAX);
        prop_assert_eq!(all(&whole), sums.clone());
        let fewer = merged(&parts, words_max);
        let least = fewer.iter().map(|(_, n)| n).min().unwrap_or(0);
        prop_assert!(fewer.iter().all(|(w, n)| sums[&w] == n));
        prop_assert!(fewer.len() <= words_max || least >= 64);

        // What is suggested does not depend on how words are spread, and is what a look at every word would find.
        let options = SuggestOptions::default();
        let found = suggest(&parts, &typed, &options);
        prop_assert_eq!(&suggest(&[&whole], &typed, &options), &found);
        prop_assert_eq!(found, every_word_looked_at(&sums, &typed));
    }

    #[test]
    fn damaged_bytes_do_no_harm(model in models(), at in any::<prop::sample::Index>(), with: u8, cut in any::<prop::sample::Index>()) {
        let mut builder = WordsBuilder::new();
        model.iter().for_each(|(word, count)| builder.add(word, *count as u32));
        let whole = builder.finish();
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        bytes[at] = with;
        for bytes in [bytes, whole[..cut.index(whole.len())].to_vec()] {
            holds_of_any_bytes(bytes);
        }
    }

    #[test]
    fn any_bytes_do_no_harm(before: Vec<u8>, total: u64, words in 0u32..40) {
        let blocks = before.len() as u32;
        let starts = vec![0; words.div_ceil(16) as usize * 4];
        let foot = [&total.to_le_bytes()[..], &words.to_le_bytes(), &blocks.to_le_bytes(), MAGIC].concat();
        holds_of_any_bytes([before, starts, foot].concat());
    }
}

/// They are refused, or everything that can be asked has an answer.
fn holds_of_any_bytes(bytes: Vec<u8>) {
    if let Ok(words) = Words::open(bytes) {
        assert!(words.iter().count() <= words.len());
        words.count("prefix");
        assert!(words.starting_with("p", 5).len() <= 5);
        suggest(&[&words, &words], "prefab", &SuggestOptions::default());
        assert!(merged(&[&words, &words], 10).len() <= words.len());
    }
}
