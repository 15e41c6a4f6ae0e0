//! `rhumb graph stats`: the graph in figures.

use std::path::Path;

use anyhow::Result;
use rhumb_graph::Rows;
use rhumb_graph::algo::degrees::Degrees;
use rhumb_graph::algo::hyperball::HyperBall;
use rhumb_graph::algo::{components, indegrees, outdegrees};
use serde_json::{Value, json};

use crate::display::thousands;
use crate::links::whole::Whole;
use crate::{Exit, out};

/// Memory for the estimate of distances.
const DISTANCES_BYTES_MAX: u64 = 2 << 30;

/// Prints the figures of the graph in `dir`.
pub fn run(dir: &Path, distances: bool, as_json: bool) -> Result<Exit> {
    let whole = Whole::open(dir)?;
    let level = &whole.level;
    let (out_stats, in_stats) = (level.out.stats(), level.into.stats());
    let (out_degrees, in_degrees) = (outdegrees(&level.out), indegrees(&level.out));
    let (outs, ins) = (Degrees::of(&out_degrees), Degrees::of(&in_degrees));
    let strong = components::strong(&level.out);
    let weak = components::weak(&level.out);
    let bow_tie = components::bow_tie(&level.out, &level.into, &strong, &weak);
    let mut figures = json!({
        "nodes": whole.nodes(),
        "arcs": level.out.arcs(),
        "bits_per_link": {
            "forward": out_stats.bits_per_link(),
            "transposed": in_stats.bits_per_link(),
            "with_offsets": out_stats.bits_per_link_with_offsets(),
            "transposed_with_offsets": in_stats.bits_per_link_with_offsets(),
        },
        "pages": level.nodes.pages(),
        "hosts": level.nodes.hosts(),
        "url_bytes": level.urls.as_ref().map(|u| u.stats().file_bytes as f64 / f64::from(whole.nodes().max(1))),
        "out_degree": of_degrees(&outs),
        "in_degree": of_degrees(&ins),
        "components": {
            "strong": strong.count(), "strong_largest": strong.sizes.first().copied().unwrap_or(0),
            "weak": weak.count(), "weak_largest": weak.sizes.first().copied().unwrap_or(0),
            "bow_tie": {"core": bow_tie.core, "in": bow_tie.input, "out": bow_tie.output, "tendrils": bow_tie.tendrils, "islands": bow_tie.islands},
        },
    });
    if distances {
        let balls = HyperBall::within(DISTANCES_BYTES_MAX, whole.nodes())?;
        let found = balls.compute(&level.into)?;
        figures["distances"] = json!({
            "average": found.average_distance(), "effective_diameter": found.effective_diameter(), "error": balls.error(),
        });
    }
    if as_json {
        out::json(&figures)?;
    } else {
        tell(&figures)?;
    }
    Ok(Exit::Done)
}

fn of_degrees(degrees: &Degrees) -> Value {
    let bins: Vec<Value> =
        degrees.bins().iter().map(|b| json!({"from": b.from, "to": b.to, "nodes": b.nodes})).collect();
    let law = degrees.power_law();
    json!({
        "mean": degrees.mean(), "median": degrees.quantile(0.5), "p99": degrees.quantile(0.99), "max": degrees.max(),
        "power_law": law.map(|l| json!({"exponent": l.exponent, "error": l.error, "from": l.from, "distance": l.distance})),
        "bins": bins,
    })
}

fn tell(figures: &Value) -> Result<()> {
    let count = |value: &Value| thousands(value.as_u64().unwrap_or(0));
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let (nodes, hosts, pages) = (count(&figures["nodes"]), count(&figures["hosts"]), count(&figures["pages"]));
    out::line(&match &figures["url_bytes"] {
        Value::Null => format!("{nodes} nodes"),
        bytes => format!("{nodes} URLs on {hosts} hosts, {pages} of them fetched; {:.1} bytes a URL", number(bytes)),
    })?;
    let bits = &figures["bits_per_link"];
    out::line(&format!(
        "{} links, {:.3} bits each; turned round {:.3}; with what finds a row {:.3} and {:.3}",
        count(&figures["arcs"]),
        number(&bits["forward"]),
        number(&bits["transposed"]),
        number(&bits["with_offsets"]),
        number(&bits["transposed_with_offsets"]),
    ))?;
    for (name, degree) in [("Links from a page", &figures["out_degree"]), ("Links to a URL", &figures["in_degree"])] {
        let law = match &degree["power_law"] {
            Value::Null => String::new(),
            law => format!(", falls with exponent {:.2} from {} on", number(&law["exponent"]), law["from"]),
        };
        let (median, most) = (count(&degree["median"]), count(&degree["max"]));
        out::line(&format!(
            "{name}: {:.1} on average, {median} in the middle, {most} at most{law}",
            number(&degree["mean"])
        ))?;
    }
    let parts = &figures["components"];
    out::line(&format!(
        "Strongly connected: {} parts, the largest of {}; connected at all: {} parts, the largest of {}",
        count(&parts["strong"]),
        count(&parts["strong_largest"]),
        count(&parts["weak"]),
        count(&parts["weak_largest"]),
    ))?;
    let tie = &parts["bow_tie"];
    out::line(&format!(
        "Around the largest: {} lead into it, {} are led to, {} hang on to these, {} stand apart",
        count(&tie["in"]),
        count(&tie["out"]),
        count(&tie["tendrils"]),
        count(&tie["islands"]),
    ))?;
    if let Value::Object(_) = &figures["distances"] {
        let distances = &figures["distances"];
        out::line(&format!(
            "Distance: {:.2} links on average, {:.2} for nine of ten pairs",
            number(&distances["average"]),
            number(&distances["effective_diameter"]),
        ))?;
    }
    Ok(())
}
