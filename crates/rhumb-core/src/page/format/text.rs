//! Plain text, and what is read as such: JSON, scripts, style sheets. Of XML that nobody else claimed only the gist is taken.

use super::{Body, Format, Reader};
use crate::page::{MediaKind, Page, cut, encoding};

/// See the module's header.
pub(super) struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn claims(&self, body: &Body<'_>) -> bool {
        matches!(body.kind, MediaKind::Text | MediaKind::Json | MediaKind::Xml)
    }

    fn read(&self, body: &Body<'_>, reader: &mut Reader<'_>, page: &mut Page) {
        let (text, charset) = encoding::decode_text(body.bytes, body.charset, reader.options.tld.as_deref());
        let kept = cut(&text, reader.options.extract.text_bytes_max);
        page.charset = charset;
        page.truncated = kept.len() < text.len();
        if body.kind == MediaKind::Xml {
            reader.take_gist(kept, page);
        } else {
            page.text.push_str(kept);
        }
    }
}
