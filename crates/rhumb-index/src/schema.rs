//! The fields of a part.
//!
//! One field has all the words of a page, weighted by where they stand; those of title and address are there a second time, for
//! queries that want them there. What links say lies in an index of its own beside it ([`crate::late`]), as it comes later.

use tantivy::schema::{FAST, Field, IndexRecordOption, NumericOptions, STORED, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};

use crate::analysis::encode::{NAME, TermsTokenizer};

/// The fields of pages.
#[derive(Clone, Debug)]
pub struct Fields {
    /// The schema that has them.
    pub schema: Schema,
    /// All words, weighted, with positions.
    pub text: Field,
    /// Words of the title.
    pub title: Field,
    /// Words of the address.
    pub address: Field,
    /// The host and the domains above it.
    pub site: Field,
    /// Language, by its code.
    pub lang: Field,
    /// What it is.
    pub kind: Field,
    /// What is shown.
    pub shown_url: Field,
    /// What is shown.
    pub shown_title: Field,
    /// What snippets are made from.
    pub shown_text: Field,
    /// Fingerprint of the address.
    pub id: Field,
    /// Where its visit lies in the log.
    pub visit: Field,
    /// Fingerprint of the host.
    pub host: Field,
    /// When it was changed, in milliseconds.
    pub date: Field,
    /// When it was fetched, in milliseconds.
    pub fetched: Field,
    /// 1 if a copy can be shown.
    pub flags: Field,
}

impl Default for Fields {
    fn default() -> Fields {
        let mut schema = Schema::builder();
        let words = |option: IndexRecordOption, norms: bool| {
            let indexing =
                TextFieldIndexing::default().set_tokenizer(NAME).set_index_option(option).set_fieldnorms(norms);
            TextOptions::default().set_indexing_options(indexing)
        };
        let name = words(IndexRecordOption::Basic, false).set_fast("raw");
        let number = NumericOptions::default() | FAST;
        let text = schema.add_text_field("text", words(IndexRecordOption::WithFreqsAndPositions, true));
        let title = schema.add_text_field("title", words(IndexRecordOption::WithFreqsAndPositions, false));
        let address = schema.add_text_field("address", words(IndexRecordOption::WithFreqsAndPositions, false));
        let site = schema.add_text_field("site", words(IndexRecordOption::Basic, false));
        let lang = schema.add_text_field("lang", name.clone());
        let kind = schema.add_text_field("kind", name);
        let shown = |schema: &mut tantivy::schema::SchemaBuilder, name| schema.add_text_field(name, STORED);
        let shown_url = shown(&mut schema, "shown_url");
        let shown_title = shown(&mut schema, "shown_title");
        let shown_text = shown(&mut schema, "shown_text");
        let id = schema.add_u64_field("id", number.clone());
        let visit = schema.add_u64_field("visit", number.clone());
        let host = schema.add_u64_field("host", number.clone());
        let date = schema.add_i64_field("date", number.clone());
        let fetched = schema.add_i64_field("fetched", number.clone());
        let flags = schema.add_u64_field("flags", number);
        Fields {
            schema: schema.build(),
            text,
            title,
            address,
            site,
            lang,
            kind,
            shown_url,
            shown_title,
            shown_text,
            id,
            visit,
            host,
            date,
            fetched,
            flags,
        }
    }
}

/// The field of what links say.
#[derive(Clone, Debug)]
pub struct AnchorFields {
    /// The schema that has it.
    pub schema: Schema,
    /// Words of links that lead to the page, weighted by how many say them.
    pub anchor: Field,
}

impl Default for AnchorFields {
    fn default() -> AnchorFields {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default().set_tokenizer(NAME).set_index_option(IndexRecordOption::WithFreqs);
        let anchor = schema.add_text_field("anchor", TextOptions::default().set_indexing_options(indexing));
        AnchorFields { schema: schema.build(), anchor }
    }
}

/// The one tokenizer that there is: the work was done before.
pub fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(NAME, TextAnalyzer::builder(TermsTokenizer::default()).build());
    manager
}
