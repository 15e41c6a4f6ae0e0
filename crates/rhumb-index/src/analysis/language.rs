//! Languages: which there are stemmers for, which words say nothing, and which language a text is in.
//!
//! What a page declares is mostly right, and templates that declare English for everything are common. So the words that every sentence
//! needs are counted in the first lines: if they clearly speak another language, they are believed. This costs a microsecond or two,
//! where a detector by letter groups costs more than everything else that is done with a page.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use frostem::Algorithm;

use super::split::split;

/// A language that a page or query can be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lang(u8);

/// Code, stemmer, and the words that are in every text of the language.
struct Language {
    code: &'static str,
    algorithm: Option<Algorithm>,
    common: &'static str,
}

const fn language(code: &'static str, algorithm: Algorithm, common: &'static str) -> Language {
    Language { code, algorithm: Some(algorithm), common }
}

const fn without_stemmer(code: &'static str, common: &'static str) -> Language {
    Language { code, algorithm: None, common }
}

#[rustfmt::skip]
static LANGUAGES: &[Language] = &[
    without_stemmer("", ""),
    language("en", Algorithm::English, "the of and to in is that it for was on are as with his they at be this have from or had by but not what all were we when your can said there an which she do how their if will other about out many then them these so some her would like him into has more no could my than been who its now did get only may such any also after most over those between should upon under where while because being both each does through during before against here off again further once same few too very just nor own yours ours theirs am i you he me us our"),
    language("de", Algorithm::German, "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde ich wir ihr mich dir uns wenn was wer wo kann einer eines"),
    language("fr", Algorithm::French, "le la les de des et à un une du en est que qui dans pour pas sur au plus par avec ce il sont ne se ou mais comme nous vous elle cette son leur aux été ces être fait ses ont même sans je tu ils on y où si donc dont l d qu"),
    language("es", Algorithm::Spanish, "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante es son fue ha"),
    language("it", Algorithm::Italian, "di e il la che in un a per è non una sono con si le da come anche del della dei lo gli al nel alla più ma o ha questo delle ed nella su se cui stato essere suo dal i l"),
    language("pt", Algorithm::Portuguese, "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso"),
    language("nl", Algorithm::Dutch, "de het een en van ik te dat die in is op niet zijn met voor hij als er maar om aan ook nog bij uit wel naar door over kan werd dan wat deze heeft hebben of meer wordt tot je zich"),
    language("sv", Algorithm::Swedish, "och i att det som en på är av för med till den har de inte om ett han men var jag sig från vi så kan när år hon under också efter eller nu sin där vid mot ska"),
    language("da", Algorithm::Danish, "og i at det er en til af på for med den der ikke de som har et om jeg var fra men han vi så kan blev eller efter også sig ved nu skal når være"),
    language("nb", Algorithm::Norwegian, "og i å det er en til på for med av som ikke den de har et om jeg fra men han vi så kan ble eller etter også seg ved nå skal når være hun dette"),
    language("fi", Algorithm::Finnish, "ja on ei se että oli hän mutta ovat kun niin myös joka tai kuin ole mukaan sekä sen jos vain vuonna olla ollut jo nyt siitä tämä hänen joita"),
    language("hu", Algorithm::Hungarian, "a az és hogy nem is egy de van ez meg csak volt már el még vagy mint ha én kell lehet ki mert azt minden ezt neki után között"),
    language("ro", Algorithm::Romanian, "de și în la a cu pe nu o că din care este mai un pentru sunt ce să se au fost prin sau dar după ca el lor acest fi"),
    language("tr", Algorithm::Turkish, "ve bir bu da de için ile çok olarak daha gibi olan en ne kadar sonra var değil ancak o ki her veya ya ama göre"),
    language("ru", Algorithm::Russian, "и в не на я что он с как это а по но из у за от так же для было его все они к о то бы мы вы или если уже её при до"),
    language("el", Algorithm::Greek, "και το να η του την της με ο που για τα των από στο σε στην οι τον είναι δεν θα ότι μια ένα αλλά"),
    language("ar", Algorithm::Arabic, "في من على أن إلى التي الذي هذا عن مع كان هذه ما لا هو أو ذلك بين كل بعد"),
    language("ta", Algorithm::Tamil, "ஒரு என்று இந்த அந்த மற்றும் என்ற ஆகும் உள்ள இது அவர்"),
    language("ca", Algorithm::Catalan, "de la i el que a en els per un les amb una del és no al com més va dels són seva també però"),
    language("cs", Algorithm::Czech, "a v se na je že s z do o to i za by jsem ale jako pro od po tak už jeho jsou nebo který která které byl při"),
    language("id", Algorithm::Indonesian, "yang dan di dari untuk dengan ini itu pada tidak dalam adalah ke oleh akan juga atau sebagai karena"),
    language("pl", Algorithm::Polish, "i w na z się nie do to że jest o jak od po a za przez dla są co oraz czy był być tym jego ale"),
    language("hi", Algorithm::Hindi, "के में की है से को का और पर यह एक हैं ने कि भी"),
    without_stemmer("uk", "і в на не що з до у та як це за є від для він по але або його які вони ми"),
    without_stemmer("bg", "на и в да от се за с е не по че са като до това които при"),
    without_stemmer("vi", "và của là có cho các được trong với một không này đã những người để khi"),
    without_stemmer("zh", ""), without_stemmer("ja", ""), without_stemmer("ko", ""), without_stemmer("th", ""),
    without_stemmer("he", ""), without_stemmer("fa", ""), without_stemmer("bn", ""), without_stemmer("ka", ""), without_stemmer("hy", ""),
];

/// Words looked at to find out a language.
const WORDS_MAX: usize = 120;
/// Bytes looked at at most.
const BYTES_MAX: usize = 2 << 10;

impl Lang {
    /// The language with this ISO 639 code, if it is one that we treat in a way of its own; otherwise none in particular.
    pub fn of(code: &str) -> Lang {
        let primary = code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        let primary = match primary.as_str() {
            "no" | "nn" => "nb",
            other => other,
        };
        Lang(LANGUAGES.iter().position(|l| l.code == primary).unwrap_or(0) as u8)
    }

    /// Its code; empty if it is none in particular.
    pub fn code(self) -> &'static str {
        LANGUAGES[usize::from(self.0)].code
    }

    /// A lower-case word without its ending.
    pub fn stem(self, word: &str) -> Cow<'_, str> {
        match LANGUAGES[usize::from(self.0)].algorithm {
            Some(algorithm) => frostem::Stemmer::new(algorithm).stem(word),
            None => Cow::Borrowed(word),
        }
    }

    /// Whether a lower-case word is one that is in every text.
    pub fn is_common(self, word: &str) -> bool {
        common().get(word).is_some_and(|languages| languages & 1 << self.0 != 0)
    }

    /// The language of a text: what its words say if they are clear about it, else what was declared.
    pub fn detect(text: &str, declared: &str) -> Lang {
        let declared_lang = Lang::of(declared);
        let sample = crate::cut(text, BYTES_MAX);
        let mut hits = [0u32; 64];
        let (mut words, mut scripts, mut lower) = (0, [0u32; SCRIPTS], String::new());
        split(sample, |piece| {
            words += 1;
            if words > WORDS_MAX {
                return;
            }
            let word = &sample[piece.start..piece.end];
            if let Some(script) = script_of(word) {
                scripts[script] += 1;
            }
            lower.clear();
            super::push_lower(word, &mut lower);
            let mut languages = common().get(lower.as_str()).copied().unwrap_or(0);
            while languages != 0 {
                hits[languages.trailing_zeros() as usize] += 1;
                languages &= languages - 1;
            }
        });
        // Scripts of one language settle the matter.
        let counted: u32 = (words.min(WORDS_MAX)) as u32;
        if let Some(script) = (0..SCRIPTS).find(|s| scripts[*s] * 3 > counted) {
            let by_script = match script {
                KANA => "ja",
                // Japanese is written with Han and Kana.
                HAN if scripts[KANA] * 10 > scripts[HAN] => "ja",
                HAN => "zh",
                HANGUL => "ko",
                THAI => "th",
                HEBREW => "he",
                _ => "",
            };
            if !by_script.is_empty() {
                return Lang::of(by_script);
            }
        }
        let best = (1..LANGUAGES.len()).max_by_key(|l| (hits[*l], std::cmp::Reverse(*l))).unwrap_or(0);
        let own = hits[usize::from(declared_lang.0)];
        let is_clear = hits[best] >= 4 && hits[best] >= 2 * own + 2;
        match declared_lang.0 {
            0 if hits[best] >= 3 || (hits[best] >= 1 && counted <= 12) => {
                // A language that we have no words of is left as it was declared.
                if declared.is_empty() || is_clear { Lang(best as u8) } else { declared_lang }
            }
            // Of a few words in plain letters English is the best guess; they are found in any case.
            0 if declared.is_empty() && sample.is_ascii() && !sample.is_empty() => Lang::of("en"),
            0 => declared_lang,
            _ if is_clear => Lang(best as u8),
            _ => declared_lang,
        }
    }
}

const SCRIPTS: usize = 5;
const KANA: usize = 0;
const HAN: usize = 1;
const HANGUL: usize = 2;
const THAI: usize = 3;
const HEBREW: usize = 4;

fn script_of(word: &str) -> Option<usize> {
    Some(match word.chars().next()? as u32 {
        0x3041..=0x30ff => KANA,
        0x3400..=0x9fff => HAN,
        0xac00..=0xd7a3 => HANGUL,
        0x0e01..=0x0e4e => THAI,
        0x05d0..=0x05ea => HEBREW,
        _ => return None,
    })
}

/// The common words of all languages, each with a bit for every language that has it.
fn common() -> &'static HashMap<&'static str, u64> {
    static COMMON: OnceLock<HashMap<&'static str, u64>> = OnceLock::new();
    COMMON.get_or_init(|| {
        let mut all = HashMap::new();
        for (i, language) in LANGUAGES.iter().enumerate() {
            for word in language.common.split(' ').filter(|w| !w.is_empty()) {
                *all.entry(word).or_insert(0) |= 1u64 << i;
            }
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_by_their_words() {
        let check = |text: &str, declared: &str, expected: &str| {
            assert_eq!(Lang::detect(text, declared).code(), expected, "{text:?} declared {declared:?}");
        };
        let english =
            "The quick brown fox jumps over the lazy dog and it was not the first time that this had been seen";
        let german = "Der schnelle Fuchs springt über den faulen Hund, und das ist nicht das erste Mal, dass er es auch so macht";
        check(english, "", "en");
        check(english, "en-US", "en");
        // A template that says English.
        check(german, "en", "de");
        check(german, "", "de");
        check(
            "Le renard brun saute par-dessus le chien et il ne le fait pas pour la première fois dans les champs",
            "en",
            "fr",
        );
        check("Быстрая лиса прыгает через собаку и не в первый раз, что он так и для них было", "", "ru");
        check("東京都の天気は晴れです。", "", "ja");
        check("今天天气很好,我们去公园散步。", "en", "zh");
        check("오늘 날씨가 좋습니다", "", "ko");
        // Too little to overrule what was said, or to say anything.
        check("Fuchs Hund Haus", "de", "de");
        check("xyzzy plugh", "", "en");
        check("xyzzy plügh", "", "");
        check("xyzzy plugh", "sw", "");
        check("", "fr", "fr");
    }

    #[test]
    fn every_language_can_be_named_and_stems() {
        assert!(LANGUAGES.len() < 64);
        for (i, language) in LANGUAGES.iter().enumerate() {
            assert_eq!(Lang::of(language.code), Lang(i as u8));
        }
        assert_eq!(Lang::of("EN_us").stem("running"), "run");
        assert_eq!(Lang::of("nn").code(), "nb");
        assert_eq!(Lang::of("tlh").stem("running"), "running");
        assert!(Lang::of("en").is_common("the") && !Lang::of("en").is_common("fox"));
    }
}
