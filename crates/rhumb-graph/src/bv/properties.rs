//! What a `.properties` file says: how large the graph is and which codes its bits are in.
//!
//! The Java program has a flag for the number of blocks of its own (`BLOCK_COUNT_…`); for the Rust one `BLOCKS_…` is for both.
//! Only the latter writes the key `endianness`, which is how they are told apart.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::codes::{Code, ZETA_MAX};
use crate::{GraphError, Node, Result};

/// Real ones have some thousand bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Seven is usual; a row of every node of the window is kept.
const WINDOW_MAX: u32 = 1024;

/// What the bits of a graph mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    pub nodes: Node,
    pub arcs: u64,
    pub window: u32,
    /// The shortest interval; none are written if it is 0.
    pub interval_min: u32,
    pub little: bool,
    pub outdegrees: Code,
    pub references: Code,
    pub block_count: Code,
    pub blocks: Code,
    pub intervals: Code,
    pub residuals: Code,
}

impl Properties {
    pub fn read(path: &Path) -> Result<Properties> {
        let wrong = |what: String| GraphError::input(format!("{}: {what}", path.display()));
        let mut text = Vec::new();
        let file = File::open(path).map_err(|e| wrong(format!("cannot be opened: {e}")))?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(wrong(format!("has more than {FILE_BYTES_MAX} bytes, so it is no properties file")));
        }
        Properties::parse(&String::from_utf8_lossy(&text)).map_err(wrong)
    }

    pub fn parse(text: &str) -> Result<Properties, String> {
        let map: BTreeMap<&str, &str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with(['#', '!']))
            .filter_map(|line| line.split_once(['=', ':']))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let number = |key: &str| match map.get(key) {
            None => Ok(None),
            Some(value) => value.parse::<u64>().map(Some).map_err(|_| format!("{key}={} is no number", shown(value))),
        };
        let needed = |key: &str| number(key)?.ok_or_else(|| format!("the property {key} is missing"));
        let within = |key: &str, value: u64, least: u32, most: u32| match u32::try_from(value) {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => Err(format!("{key}={value} is not between {least} and {most}")),
        };

        if let Some(class) = map.get("graphclass").filter(|c| !c.ends_with(".BVGraph") && **c != "BVGraph") {
            return Err(format!("holds a graph of the class {}, not a BVGraph", shown(class)));
        }
        let version = number("version")?.unwrap_or(0);
        if version > 1 {
            return Err(format!("version={version}; versions 0 and 1 can be read"));
        }
        let little = match map.get("endianness") {
            None => false,
            Some(&"big") => false,
            Some(&"little") => true,
            Some(other) => return Err(format!("endianness={} is neither big nor little", shown(other))),
        };
        let nodes = needed("nodes")?;
        let nodes =
            u32::try_from(nodes).map_err(|_| format!("nodes={nodes}; a graph here has at most {}", u32::MAX))?;
        let arcs = needed("arcs")?;
        if arcs > u64::from(nodes) * u64::from(nodes) {
            return Err(format!("arcs={arcs} are more than {nodes} nodes can have"));
        }
        let k = within("zetak", number("zetak")?.unwrap_or(3), 1, ZETA_MAX)?;
        let mut properties = Properties {
            nodes,
            arcs,
            window: within("windowsize", needed("windowsize")?, 0, WINDOW_MAX)?,
            interval_min: within("minintervallength", needed("minintervallength")?, 0, u32::MAX)?,
            little,
            outdegrees: Code::Gamma,
            references: Code::Unary,
            block_count: Code::Gamma,
            blocks: Code::Gamma,
            intervals: Code::Gamma,
            residuals: Code::Zeta(k),
        };
        let one_flag_for_blocks = map.contains_key("endianness");
        for flag in map.get("compressionflags").unwrap_or(&"").split('|').map(str::trim).filter(|f| !f.is_empty()) {
            let known = flag.rsplit_once('_').and_then(|(what, code)| Some((what, Code::named(code, k)?)));
            let (what, code) = known.ok_or_else(|| format!("the compression flag {} is not known", shown(flag)))?;
            match what {
                "OUTDEGREES" => properties.outdegrees = code,
                "REFERENCES" => properties.references = code,
                "BLOCK_COUNT" => properties.block_count = code,
                "BLOCKS" => {
                    properties.blocks = code;
                    if one_flag_for_blocks {
                        properties.block_count = code;
                    }
                }
                "INTERVALS" => properties.intervals = code,
                "RESIDUALS" => properties.residuals = code,
                // The offsets are not read.
                "OFFSETS" => {}
                _ => return Err(format!("the compression flag {} is not known", shown(flag))),
            }
        }
        Ok(properties)
    }
}

/// A foreign value in a message: short, and without anything that moves a cursor.
fn shown(value: &str) -> String {
    value.chars().take(60).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "nodes=10\narcs=20\nwindowsize=7\nminintervallength=4\n";

    #[test]
    fn what_programs_write_is_understood() {
        let least = Properties::parse(LEAST).unwrap();
        assert_eq!((least.nodes, least.arcs, least.window, least.interval_min), (10, 20, 7, 4));
        assert_eq!((least.residuals, least.references, least.little), (Code::Zeta(3), Code::Unary, false));

        let java = "#BVGraph properties\n#Wed Nov 17 23:14:11 CET 2010\r\nzetak=5\nversion=0\n\
                    graphclass=it.unimi.dsi.webgraph.BVGraph\nmaxrefcount=-1\n\
                    compressionflags=BLOCKS_DELTA | REFERENCES_GAMMA | BLOCK_COUNT_UNARY | RESIDUALS_NIBBLE | OFFSETS_DELTA\n";
        let java = Properties::parse(&format!("{java}{LEAST}")).unwrap();
        assert_eq!((java.blocks, java.block_count), (Code::Delta, Code::Unary));
        assert_eq!((java.references, java.residuals), (Code::Gamma, Code::Nibble));
        let flags = |text: &str| Properties::parse(&format!("{LEAST}compressionflags={text}\n")).unwrap();
        assert_eq!(flags("BLOCKS_DELTA").block_count, Code::Gamma);

        let rust = "version=1\nendianness=little\ncompressionflags=BLOCKS_ZETA2|RESIDUALS_PI2|OUTDEGREES_OMEGA\n";
        let rust = Properties::parse(&format!("{LEAST}{rust}")).unwrap();
        assert_eq!((rust.blocks, rust.block_count, rust.little), (Code::Zeta(2), Code::Zeta(2), true));
        assert_eq!((rust.residuals, rust.outdegrees), (Code::Pi(2), Code::Omega));
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        for (change, message) in [
            ("nodes=", "nodes= is no number"),
            ("nodes=-1", "nodes=-1 is no number"),
            ("nodes=4294967296", "nodes=4294967296; a graph here has at most 4294967295"),
            ("arcs=101", "arcs=101 are more than 10 nodes can have"),
            ("windowsize=100000", "windowsize=100000 is not between 0 and 1024"),
            ("windowsize=-1", "windowsize=-1 is no number"),
            ("zetak=0", "zetak=0 is not between 1 and 16"),
            ("zetak=99", "zetak=99 is not between 1 and 16"),
            ("version=2", "version=2; versions 0 and 1 can be read"),
            ("endianness=middle", "endianness=middle is neither big nor little"),
            (
                "graphclass=it.unimi.dsi.webgraph.EFGraph",
                "holds a graph of the class it.unimi.dsi.webgraph.EFGraph, not a BVGraph",
            ),
            ("compressionflags=RESIDUALS_\u{1b}[2J", "the compression flag RESIDUALS_\\u{1b}[2J is not known"),
            ("compressionflags=COLOURS_GAMMA", "the compression flag COLOURS_GAMMA is not known"),
            ("compressionflags=BLOCKS_ZETA0", "the compression flag BLOCKS_ZETA0 is not known"),
        ] {
            assert_eq!(Properties::parse(&format!("{LEAST}{change}\n")), Err(message.to_string()), "{change}");
        }
        for key in ["nodes", "arcs", "windowsize", "minintervallength"] {
            let text: String = LEAST.lines().filter(|l| !l.starts_with(key)).map(|l| format!("{l}\n")).collect();
            assert_eq!(Properties::parse(&text), Err(format!("the property {key} is missing")));
        }
    }
}
