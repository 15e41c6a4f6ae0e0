//! The elements that the extractor cares about, recognised from their packed names.
//!
//! Invariant: a name is compared in lower case and as a whole, so `<A>` is an anchor and `<a2>` is nothing.

/// Packs an ASCII name of at most 16 letters into a number that can be matched at once. Longer names pack to nothing
/// we know.
pub(super) const fn pack(name: &[u8]) -> u128 {
    if name.len() > 16 {
        return 0;
    }
    let mut packed = 0u128;
    let mut i = 0;
    while i < name.len() {
        packed = packed << 8 | name[i].to_ascii_lowercase() as u128;
        i += 1;
    }
    packed
}

macro_rules! tags {
    ($($variant:ident $name:literal,)*) => {
        /// An element known to the extractor.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Tag {
            $($variant,)*
            /// Any element without a meaning of its own.
            Other,
        }

        impl Tag {
            /// Recognises a name as written in the page.
            #[allow(non_upper_case_globals)]
            pub(super) fn of(name: &[u8]) -> Tag {
                $(const $variant: u128 = pack($name);)*
                match pack(name) {
                    $($variant => Tag::$variant,)*
                    _ => Tag::Other,
                }
            }
        }
    };
}

tags! {
    A b"a", Address b"address", Area b"area", Article b"article", Aside b"aside", B b"b", Base b"base",
    Blockquote b"blockquote", Body b"body", Br b"br", Caption b"caption", Center b"center", Dd b"dd", Desc b"desc",
    Details b"details", Dialog b"dialog", Dir b"dir", Div b"div", Dl b"dl", Dt b"dt", Em b"em", Embed b"embed",
    Fieldset b"fieldset", Figcaption b"figcaption", Figure b"figure", Footer b"footer", ForeignObject b"foreignobject",
    Form b"form", Frame b"frame", H1 b"h1", H2 b"h2", H3 b"h3", H4 b"h4", H5 b"h5", H6 b"h6", Head b"head",
    Header b"header", Hr b"hr", Html b"html", I b"i", Iframe b"iframe", Img b"img", Legend b"legend", Li b"li",
    Link b"link", Main b"main", Mark b"mark", Math b"math", Menu b"menu", Meta b"meta", Nav b"nav",
    Noembed b"noembed", Noframes b"noframes", Noscript b"noscript", Ol b"ol", Optgroup b"optgroup",
    Option b"option", P b"p", Plaintext b"plaintext", Pre b"pre", Script b"script", Search b"search",
    Section b"section", Source b"source", Strong b"strong", Style b"style", Summary b"summary", Svg b"svg",
    Table b"table", Tbody b"tbody", Td b"td", Template b"template", Textarea b"textarea", Tfoot b"tfoot", Th b"th",
    Thead b"thead", Title b"title", Tr b"tr", Ul b"ul", Xmp b"xmp", Span b"span", Code b"code", S b"s",
    Strike b"strike", Tt b"tt", U b"u", Big b"big", Small b"small", Sub b"sub", Sup b"sup", Var b"var",
    Listing b"listing", Nobr b"nobr", Ruby b"ruby", Button b"button", Select b"select", Input b"input",
}

/// How the text after a start tag is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// Markup.
    Markup,
    /// Text with character references, up to the end tag.
    Rcdata,
    /// Text as it stands, up to the end tag.
    Raw,
    /// A script, with its own rules about comments.
    Script,
    /// Text as it stands, up to the end of the page.
    Plain,
}

impl Tag {
    /// The tokenizer state that a browser without scripting would enter after this start tag.
    pub(super) fn content(self) -> Content {
        match self {
            Tag::Title | Tag::Textarea => Content::Rcdata,
            Tag::Style | Tag::Xmp | Tag::Iframe | Tag::Noembed | Tag::Noframes => Content::Raw,
            Tag::Script => Content::Script,
            Tag::Plaintext => Content::Plain,
            _ => Content::Markup,
        }
    }

    /// Whether the element begins and ends a line of text.
    pub(super) fn is_block(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Address
                | Article
                | Aside
                | Blockquote
                | Body
                | Br
                | Caption
                | Center
                | Dd
                | Details
                | Dialog
                | Dir
                | Div
                | Dl
                | Dt
                | Fieldset
                | Figcaption
                | Figure
                | Footer
                | Form
                | H1
                | H2
                | H3
                | H4
                | H5
                | H6
                | Header
                | Hr
                | Legend
                | Li
                | Listing
                | Main
                | Menu
                | Nav
                | Ol
                | Optgroup
                | Option
                | P
                | Plaintext
                | Pre
                | Search
                | Section
                | Summary
                | Table
                | Tbody
                | Tfoot
                | Thead
                | Tr
                | Ul
                | Xmp
        )
    }

    /// 1 to 6 for a heading.
    pub(super) fn heading_level(self) -> Option<u8> {
        match self {
            Tag::H1 => Some(1),
            Tag::H2 => Some(2),
            Tag::H3 => Some(3),
            Tag::H4 => Some(4),
            Tag::H5 => Some(5),
            Tag::H6 => Some(6),
            _ => None,
        }
    }

    /// Whether the element marks its text as weightier than its surroundings.
    pub(super) fn is_emphasis(self) -> bool {
        matches!(self, Tag::B | Tag::Strong | Tag::Em | Tag::I | Tag::Mark)
    }

    /// Whether a browser leaves SVG or MathML when it meets this start tag there.
    pub(super) fn ends_foreign_content(self) -> bool {
        use Tag::*;
        matches!(
            self,
            B | Big
                | Blockquote
                | Body
                | Br
                | Center
                | Code
                | Dd
                | Div
                | Dl
                | Dt
                | Em
                | Embed
                | H1
                | H2
                | H3
                | H4
                | H5
                | H6
                | Head
                | Hr
                | I
                | Img
                | Li
                | Listing
                | Menu
                | Meta
                | Nobr
                | Ol
                | P
                | Pre
                | Ruby
                | S
                | Small
                | Span
                | Strong
                | Strike
                | Sub
                | Sup
                | Table
                | Tt
                | U
                | Ul
                | Var
        )
    }

    /// Whether the element is a container or a block of the tree that main text is chosen from.
    pub(super) fn is_node(self) -> bool {
        use Tag::*;
        match self {
            Td | Th | Button | Select => true,
            Body | Br | Hr | Plaintext | Xmp => false,
            tag => tag.is_block(),
        }
    }

    /// Whether authors may leave out the end tag.
    pub(super) fn may_lack_end(self) -> bool {
        use Tag::*;
        matches!(self, P | Li | Dd | Dt | Td | Th | Tr | Tbody | Thead | Tfoot | Option | Optgroup)
    }

    /// Whether the extractor reads attributes of this element.
    pub(super) fn wants_attributes(self) -> bool {
        use Tag::*;
        matches!(self, A | Area | Base | Embed | Frame | Html | Iframe | Img | Link | Meta | Script | Source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_whole_and_in_any_case() {
        let check = |name: &str, tag: Tag| assert_eq!(Tag::of(name.as_bytes()), tag, "{name}");
        check("a", Tag::A);
        check("A", Tag::A);
        check("a2", Tag::Other);
        check("BlockQuote", Tag::Blockquote);
        check("foreignObject", Tag::ForeignObject);
        check("", Tag::Other);
        check("h6", Tag::H6);
        check("h7", Tag::Other);
        check("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Tag::Other);
    }
}
