//! GraphML (graphml.graphdrawing.org), for Gephi, yEd and networkx; and DOT, for Graphviz.
//!
//! Nodes come first. An arc between nodes of which one was not among them is the caller's mistake: programs differ in what they
//! make of it.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use super::{ExportArc, ExportNode, Line, Url};

const GRAPHML_HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
<key id="url" for="node" attr.name="url" attr.type="string"/>
<key id="label" for="node" attr.name="label" attr.type="string"/>
<key id="rank" for="node" attr.name="rank" attr.type="double"/>
<key id="weight" for="edge" attr.name="weight" attr.type="long"/>
<key id="anchor" for="edge" attr.name="anchor" attr.type="string"/>
<graph id="G" edgedefault="directed">
"#;

/// Writes a graph as GraphML: nodes with `url`, `label` and `rank`, arcs with `weight` and `anchor`, each where it is known.
pub fn graphml<'a>(
    out: &mut dyn Write,
    nodes: impl IntoIterator<Item = ExportNode<'a>>,
    arcs: impl IntoIterator<Item = ExportArc<'a>>,
) -> io::Result<()> {
    out.write_all(GRAPHML_HEAD.as_bytes())?;
    for node in nodes {
        write!(out, r#"<node id="n{}">"#, node.id)?;
        if let Some(url) = &node.url {
            put_data(out, "url", Xml(Url(url)))?;
        }
        if let Some(label) = &node.label {
            put_data(out, "label", Xml(Line(label)))?;
        }
        if let Some(rank) = node.rank.filter(|rank| rank.is_finite()) {
            put_data(out, "rank", format_args!("{rank:e}"))?;
        }
        out.write_all(b"</node>\n")?;
    }
    for arc in arcs {
        write!(out, r#"<edge source="n{}" target="n{}">"#, arc.from, arc.to)?;
        if let Some(weight) = arc.weight {
            put_data(out, "weight", weight)?;
        }
        if let Some(anchor) = &arc.anchor {
            put_data(out, "anchor", Xml(Line(anchor)))?;
        }
        out.write_all(b"</edge>\n")?;
    }
    out.write_all(b"</graph>\n</graphml>\n")
}

fn put_data(out: &mut dyn Write, key: &str, value: impl Display) -> io::Result<()> {
    write!(out, r#"<data key="{key}">{value}</data>"#)
}

/// Writes a graph as DOT. A node is shown by its label, or by its URL, or by its number.
pub fn dot<'a>(
    out: &mut dyn Write,
    nodes: impl IntoIterator<Item = ExportNode<'a>>,
    arcs: impl IntoIterator<Item = ExportArc<'a>>,
) -> io::Result<()> {
    out.write_all(b"digraph G {\n")?;
    for node in nodes {
        match (&node.label, &node.url) {
            (Some(label), _) => writeln!(out, "n{} [label=\"{}\"];", node.id, Quoted(Line(label)))?,
            (None, Some(url)) => writeln!(out, "n{} [label=\"{}\"];", node.id, Quoted(Url(url)))?,
            (None, None) => writeln!(out, "n{} [label=\"{}\"];", node.id, node.id)?,
        }
    }
    for arc in arcs {
        match arc.weight {
            Some(weight) => writeln!(out, "n{} -> n{} [weight={weight}];", arc.from, arc.to)?,
            None => writeln!(out, "n{} -> n{};", arc.from, arc.to)?,
        }
    }
    out.write_all(b"}\n")
}

/// Text within an XML element.
struct Xml<T>(T);

impl<T: Display> Display for Xml<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replaced = |c| match c {
            '&' => Some("&amp;"),
            '<' => Some("&lt;"),
            '>' => Some("&gt;"),
            _ => None,
        };
        write!(Escaping { to: f, replaced }, "{}", self.0)
    }
}

/// Text between double quotes in DOT.
struct Quoted<T>(T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replaced = |c| match c {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            _ => None,
        };
        write!(Escaping { to: f, replaced }, "{}", self.0)
    }
}

struct Escaping<'a, 'b, F> {
    to: &'a mut fmt::Formatter<'b>,
    replaced: F,
}

impl<F: Fn(char) -> Option<&'static str>> fmt::Write for Escaping<'_, '_, F> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        while let Some(at) = text.find(|c| (self.replaced)(c).is_some()) {
            self.to.write_str(&text[..at])?;
            let mut rest = text[at..].chars();
            if let Some(replacement) = rest.next().and_then(|c| (self.replaced)(c)) {
                self.to.write_str(replacement)?;
            }
            text = rest.as_str();
        }
        self.to.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ([ExportNode<'static>; 3], [ExportArc<'static>; 2]) {
        let nodes = [
            ExportNode {
                id: 5,
                url: Some("http://a/?x=1&y=<\u{b}>".into()),
                label: Some("Fish & \"Chips\" <\u{1b}[2J\\]]>\n".into()),
                rank: Some(0.25),
            },
            ExportNode { id: 7, url: Some("http://b/".into()), rank: Some(f64::INFINITY), ..ExportNode::default() },
            ExportNode { id: 9, ..ExportNode::default() },
        ];
        let arcs = [
            ExportArc { from: 5, to: 7, weight: Some(3), anchor: Some("a </data> b".into()) },
            ExportArc { from: 7, to: 5, ..ExportArc::default() },
        ];
        (nodes, arcs)
    }

    #[test]
    fn graphml_is_escaped() {
        let (nodes, arcs) = sample();
        let mut out = Vec::new();
        graphml(&mut out, nodes, arcs).unwrap();
        let text = String::from_utf8(out).unwrap();
        let body = text.strip_prefix(GRAPHML_HEAD).unwrap();
        let expected = r#"<node id="n5"><data key="url">http://a/?x=1&amp;y=&lt;%0B&gt;</data><data key="label">Fish &amp; "Chips" &lt;�[2J\]]&gt; </data><data key="rank">2.5e-1</data></node>
<node id="n7"><data key="url">http://b/</data></node>
<node id="n9"></node>
<edge source="n5" target="n7"><data key="weight">3</data><data key="anchor">a &lt;/data&gt; b</data></edge>
<edge source="n7" target="n5"></edge>
</graph>
</graphml>
"#;
        assert_eq!(body, expected);
    }

    #[test]
    fn dot_is_quoted() {
        let (nodes, arcs) = sample();
        let mut out = Vec::new();
        dot(&mut out, nodes, arcs).unwrap();
        let expected = r#"digraph G {
n5 [label="Fish & \"Chips\" <�[2J\\]]> "];
n7 [label="http://b/"];
n9 [label="9"];
n5 -> n7 [weight=3];
n7 -> n5;
}
"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
