//! Lists and tables: an arc to a line, separated by a tab; or as CSV (RFC 4180) with a first line that names the columns.
//!
//! What is written of arcs can be read again by [`crate::edges`].

use std::io::{self, Write};

use super::{ExportNode, Line, Name, Url};

/// Writes arcs, one to a line, separated by a tab.
pub fn edge_list<'a>(out: &mut dyn Write, arcs: impl IntoIterator<Item = (Name<'a>, Name<'a>)>) -> io::Result<()> {
    for (from, to) in arcs {
        writeln!(out, "{from}\t{to}")?;
    }
    Ok(())
}

/// Writes arcs as a table of `source,target`.
pub fn arcs_csv<'a>(out: &mut dyn Write, arcs: impl IntoIterator<Item = (Name<'a>, Name<'a>)>) -> io::Result<()> {
    out.write_all(b"source,target\r\n")?;
    for (from, to) in arcs {
        put_field(out, &from.to_string())?;
        out.write_all(b",")?;
        put_field(out, &to.to_string())?;
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

/// Writes nodes as a table of `id,url,label,rank`; what is not known is empty.
pub fn nodes_csv<'a>(out: &mut dyn Write, nodes: impl IntoIterator<Item = ExportNode<'a>>) -> io::Result<()> {
    out.write_all(b"id,url,label,rank\r\n")?;
    for node in nodes {
        write!(out, "{},", node.id)?;
        put_field(out, &node.url.map(|url| Url(&url).to_string()).unwrap_or_default())?;
        out.write_all(b",")?;
        put_field(out, &node.label.map(|label| harmless(&label)).unwrap_or_default())?;
        out.write_all(b",")?;
        if let Some(rank) = node.rank.filter(|rank| rank.is_finite()) {
            write!(out, "{rank:e}")?;
        }
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

/// Spreadsheets take a cell that begins so for a formula, and some let formulas start programs. They are shown the mark that says
/// that it is text.
fn harmless(label: &str) -> String {
    let mark = if label.trim_start().starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    format!("{mark}{}", Line(label))
}

fn put_field(out: &mut dyn Write, field: &str) -> io::Result<()> {
    if !field.contains([',', '"', '\r', '\n']) {
        return out.write_all(field.as_bytes());
    }
    write!(out, "\"{}\"", field.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use rhumb_store::disk::RealDisk;

    use super::*;
    use crate::edges::{EdgeOptions, GraphSink, build_from};
    use crate::{Node, Result, key};

    /// Keeps URLs and arcs.
    #[derive(Default)]
    struct Kept(Vec<String>, Vec<Vec<Node>>);

    impl GraphSink for Kept {
        fn key(&mut self, key: &[u8]) -> Result<()> {
            self.0.push(key::url_of(key).unwrap());
            Ok(())
        }

        fn row(&mut self, row: &[Node]) -> Result<()> {
            self.1.push(row.to_vec());
            Ok(())
        }

        fn transposed_row(&mut self, _: &[Node]) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let options = EdgeOptions { disk: RealDisk::new(dir.path()), prefix: "tmp-".into(), memory_bytes: 0 };
        let urls = ["http://a/", "http://a/,http://b/", "http://a/x,y", "http://b/%22q%22"];
        let arcs: [(Node, Node); 5] = [(0, 1), (1, 3), (2, 0), (2, 2), (3, 1)];
        let rows: [&[Node]; 4] = [&[1], &[3], &[0, 2], &[1]];
        for table in [false, true] {
            for named in [false, true] {
                let name = |node: Node| if named { url(urls[node as usize]) } else { Name::Id(node) };
                let arcs = arcs.iter().map(|&(from, to)| (name(from), name(to)));
                let mut out = Vec::new();
                if table {
                    arcs_csv(&mut out, arcs).unwrap()
                } else {
                    edge_list(&mut out, arcs).unwrap()
                }
                let mut kept = Kept::default();
                let source = Box::new(io::Cursor::new(out));
                build_from("list", source, &|url| Ok(url.to_string()), &options, &mut kept).unwrap();
                assert_eq!(kept.1, rows);
                assert_eq!(kept.0, if named { &urls[..] } else { &[] });
            }
        }
    }

    fn url(text: &str) -> Name<'_> {
        Name::Url(text.into())
    }

    #[test]
    fn arcs_are_written_as_lines() {
        let mut out = Vec::new();
        edge_list(&mut out, [(Name::Id(1), Name::Id(2)), (Name::Id(0), Name::Id(7))]).unwrap();
        edge_list(&mut out, [(url("http://a/x,y"), url("http://b/\n c"))]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "1\t2\n0\t7\nhttp://a/x,y\thttp://b/%0A%20c\n");
    }

    #[test]
    fn tables_are_quoted_where_they_must() {
        let mut out = Vec::new();
        arcs_csv(&mut out, [(Name::Id(1), Name::Id(2)), (url("http://a/x,y"), url("http://b/\"q\""))]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "source,target\r\n1,2\r\n\"http://a/x,y\",http://b/%22q%22\r\n");
        let mut out = Vec::new();
        let node = |id, label: &'static str, rank| ExportNode {
            id,
            url: Some("http://a/".into()),
            label: Some(label.into()),
            rank,
        };
        let nodes = [
            node(1, "Title, with \"all\"\r\nof it", Some(0.0177719)),
            node(2, "=cmd|' /C calc'!A1", Some(f64::NAN)),
            ExportNode { id: 3, ..ExportNode::default() },
        ];
        nodes_csv(&mut out, nodes).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "id,url,label,rank\r\n1,http://a/,\"Title, with \"\"all\"\"  of it\",1.77719e-2\r\n\
             2,http://a/,'=cmd|' /C calc'!A1,\r\n3,,,\r\n"
        );
    }
}
