//! The neighbourhood of a page as a picture: pages that link here on the left, pages linked from here on the right, those that do
//! both on the emptier side. The colour tells the host, the size how many links lead to a page.
//!
//! It is an SVG made here, so it needs no script; the script only lights up what hangs together. Each side is a column bent
//! like a parenthesis, one line for each page with its label outside, so that labels cannot cover each other: one page and
//! sixty are read the same way. Pages of a host stand together.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::parts::{counted, host_name, listed, page_of, split};
use crate::display::thousands;
use crate::links::answer::{Neighbour, NeighbourhoodAnswer};

const WIDTH: f64 = 1_080.0;
/// Where the columns stand at their middle, from the centre.
const REACH: f64 = 190.0;
/// How much nearer their ends are.
const BEND: f64 = 70.0;
/// The height of a page's line, and that of one of many.
const LINE: f64 = 23.0;
const LINE_MIN: f64 = 17.0;
/// Lines beyond which they move closer.
const LINES: usize = 34;
const MARGIN: f64 = 26.0;
const HEIGHT_MIN: f64 = 210.0;
/// Characters of a label.
const LABEL_MAX: usize = 44;
/// Hosts with a colour of their own; the others share one.
const COLOURS: usize = 7;
/// Links between neighbours that are drawn; more would be a blot.
const ARCS_MAX: usize = 300;

/// A page in its place.
struct Placed<'a> {
    node: &'a Neighbour,
    at: usize,
    x: f64,
    y: f64,
    radius: f64,
    /// -1 left, 1 right, 0 in the middle.
    side: f64,
    colour: usize,
}

/// Everything in its place, and the height it takes.
fn place(around: &NeighbourhoodAnswer) -> (Vec<Placed<'_>>, f64) {
    let colours = colours(around);
    let mut sides: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    let of = |side: &str| (1..around.nodes.len()).filter(move |at| around.nodes[*at].side == side).collect::<Vec<_>>();
    sides[0].extend(of("in"));
    sides[1].extend((1..around.nodes.len()).filter(|at| !matches!(around.nodes[*at].side, "in" | "both")));
    for at in of("both") {
        let emptier = usize::from(sides[1].len() < sides[0].len());
        sides[emptier].push(at);
    }
    let key = |at: &usize| (colours[*at], &around.nodes[*at].host, &around.nodes[*at].url);
    sides.iter_mut().for_each(|side| side.sort_by(|a, b| key(a).cmp(&key(b))));
    let lines = sides.iter().map(Vec::len).max().unwrap_or(0);
    let line_height = if lines > LINES { LINE_MIN } else { LINE };
    let height = (lines as f64 * line_height + 2.0 * MARGIN).max(HEIGHT_MIN);
    let (middle_x, middle_y) = (WIDTH / 2.0, height / 2.0);
    let mut placed = Vec::with_capacity(around.nodes.len());
    if let Some(node) = around.nodes.first() {
        placed.push(Placed { node, at: 0, x: middle_x, y: middle_y, radius: 13.0, side: 0.0, colour: 0 });
    }
    for (side, direction) in sides.iter().zip([-1.0, 1.0]) {
        let top = middle_y - (side.len() as f64 - 1.0) / 2.0 * line_height;
        for (line, at) in side.iter().enumerate() {
            let y = top + line as f64 * line_height;
            // From -1 at the top of the picture to 1 at its foot.
            let bent = (y - middle_y) / (height / 2.0);
            let x = middle_x + direction * (REACH - BEND * bent * bent);
            let node = &around.nodes[*at];
            let radius = (3.5 + (node.links_in as f64 + 1.0).log2() * 0.6).min(9.5);
            placed.push(Placed { node, at: *at, x, y, radius, side: direction, colour: colours[*at] });
        }
    }
    (placed, height)
}

/// A colour for each node: the first is the centre's host, then the hosts with the most pages here.
fn colours(around: &NeighbourhoodAnswer) -> Vec<usize> {
    let mut pages: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &around.nodes {
        *pages.entry(&node.host).or_default() += 1;
    }
    let own = around.nodes.first().map_or("", |node| &node.host);
    let mut hosts: Vec<(&str, usize)> = pages.into_iter().collect();
    hosts.sort_by_key(|(host, pages)| (*host != own, std::cmp::Reverse(*pages), *host));
    let place = |host: &str| hosts.iter().position(|(h, _)| *h == host).unwrap_or(0).min(COLOURS);
    around.nodes.iter().map(|node| place(&node.host)).collect()
}

/// What is written beside a page: its path on the centre's own host, else host and path, cut in the middle.
fn label(node: &Neighbour, own: &str) -> String {
    let (_, host, rest) = split(&node.url);
    let text = match (host == own, rest) {
        (true, rest) => rest.to_string(),
        (false, "/" | "") => host.to_string(),
        (false, rest) => format!("{host}{rest}"),
    };
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= LABEL_MAX {
        return text;
    }
    let (head, tail) = (LABEL_MAX * 3 / 5, LABEL_MAX * 2 / 5 - 1);
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// A curve between two places; those on one side bulge towards the middle. It ends at the rims, with room for the tip.
fn curve(a: &Placed<'_>, b: &Placed<'_>) -> String {
    let middle = WIDTH / 2.0;
    let lean = |p: &Placed<'_>, q: &Placed<'_>| match (p.side == 0.0, p.side == q.side) {
        (true, _) => middle + (q.x - middle) * 0.45,
        (false, true) => p.x - p.side * (34.0 + (p.y - q.y).abs() * 0.18).min(120.0),
        (false, false) => p.x - p.side * (p.x - middle).abs() * 0.5,
    };
    let (ax, bx) = (lean(a, b), lean(b, a));
    let rim = |p: &Placed<'_>, towards: f64, gap: f64| p.x + (towards - p.x).signum() * (p.radius + gap);
    format!(
        "M{:.1} {:.1}C{ax:.1} {:.1} {bx:.1} {:.1} {:.1} {:.1}",
        rim(a, ax, 1.0),
        a.y,
        a.y,
        b.y,
        rim(b, bx, 3.0),
        b.y,
    )
}

/// The picture, what it means, and the same as a list.
pub fn render(around: &NeighbourhoodAnswer) -> Markup {
    let (placed, height) = place(around);
    // Host and port, as labels leave them out.
    let own = around.nodes.first().map_or("", |node| split(&node.url).1);
    let by_node: BTreeMap<usize, &Placed<'_>> = placed.iter().map(|p| (p.at, p)).collect();
    let ends = |arc: &(u32, u32)| Some((*by_node.get(&(arc.0 as usize))?, *by_node.get(&(arc.1 as usize))?));
    let arcs: Vec<_> = around.arcs.iter().filter_map(ends).filter(|(a, b)| a.at != b.at).collect();
    let (main, between): (Vec<_>, Vec<_>) = arcs.into_iter().partition(|(a, b)| a.at == 0 || b.at == 0);
    let side =
        |wanted: &'static str| around.nodes.iter().skip(1).filter(move |n| n.side == wanted).map(|n| n.url.as_str());
    let others = around.nodes.len().saturating_sub(1);
    let hosts: BTreeMap<usize, &str> =
        placed.iter().filter(|p| p.colour < COLOURS).map(|p| (p.colour, p.node.host.as_str())).collect();
    html! {
        section class="around" {
            h2 { "Neighbourhood" small { (counted(others as u64, "page", "pages")) @if around.partial { "; there are more" } } }
            @if others == 0 { p class="empty" { "No links lead here or from here." } }
            @else {
                figure {
                    div class="scroll" tabindex="0" role="region" aria-label="Picture of the neighbourhood" data-picture {
                        svg viewBox={ "0 0 " (WIDTH) " " (height.round()) } role="group" aria-label="Pages that link here are on the left, pages linked from here on the right" {
                            defs {
                                marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto" markerUnits="userSpaceOnUse" {
                                    path class="tip" d="M0 0.8L7 4L0 7.2z" {}
                                }
                            }
                            g class="arcs faint" aria-hidden="true" {
                                @for (a, b) in between.iter().take(ARCS_MAX) {
                                    path d=(curve(a, b)) data-a=(a.at) data-b=(b.at) {}
                                }
                            }
                            g class="arcs" aria-hidden="true" {
                                @for (a, b) in &main {
                                    path d=(curve(a, b)) class={ "c" (if a.at == 0 { b.colour } else { a.colour }) } marker-end="url(#tip)" data-a=(a.at) data-b=(b.at) {}
                                }
                            }
                            @for p in &placed { (node(p, own)) }
                        }
                    }
                    figcaption {
                        ul class="key" {
                            @for (colour, host) in &hosts { li class={ "c" (colour) } { bdi dir="ltr" { (host_name(host)) } } }
                            @if placed.iter().any(|p| p.colour >= COLOURS) { li class={ "c" (COLOURS) } { "other hosts" } }
                        }
                        p class="dim" {
                            "Left: pages that link here. Right: pages linked from here; those that do both are on either side. "
                            "Larger: more links lead there. Hollow: not fetched."
                        }
                        details {
                            summary { "The same as a list" }
                            @for (name, which) in [("Link here", "in"), ("Link here and are linked from here", "both"), ("Are linked from here", "out")] {
                                @if side(which).next().is_some() { h3 { (name) } (listed(side(which))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn node(p: &Placed<'_>, own: &str) -> Markup {
    let Neighbour { url, links_in, fetched, side, .. } = p.node;
    let relation = match *side {
        "in" => "links here",
        "both" => "links here and is linked from here",
        "centre" => "this page",
        _ => "is linked from here",
    };
    let class = format!(
        "node c{}{}{}",
        p.colour,
        if *fetched { "" } else { " hollow" },
        if p.side == 0.0 { " centre" } else { "" }
    );
    let tip = format!("{url}\n{relation}; {} in", counted(*links_in, "link", "links"));
    let (x, anchor) = match p.side {
        s if s < 0.0 => (p.x - p.radius - 6.0, "end"),
        s if s > 0.0 => (p.x + p.radius + 6.0, "start"),
        _ => (p.x, "middle"),
    };
    let y = if p.side == 0.0 { p.y + p.radius + 19.0 } else { p.y + 4.0 };
    html! {
        a class=(class) href=(page_of(url)) data-n=(p.at) aria-label={ (url) ", " (relation) ", " (thousands(*links_in)) " links in" } {
            title { (tip) }
            @if p.side != 0.0 {
                // Easier to hit than a small circle.
                rect class="hit" x=(if p.side < 0.0 { format!("{:.0}", 0.0) } else { format!("{:.0}", p.x - 10.0) }) y=(format!("{:.1}", p.y - LINE_MIN / 2.0))
                    width=(format!("{:.0}", if p.side < 0.0 { p.x + 10.0 } else { WIDTH - p.x + 10.0 })) height=(LINE_MIN) {}
            }
            circle cx=(format!("{:.1}", p.x)) cy=(format!("{:.1}", p.y)) r=(format!("{:.1}", p.radius)) {}
            @if p.side == 0.0 { text x=(x) y=(format!("{y:.1}")) text-anchor=(anchor) { "this page" } }
            @else { text x=(format!("{x:.1}")) y=(format!("{y:.1}")) text-anchor=(anchor) direction="ltr" { (label(p.node, own)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(sides: &[&'static str]) -> NeighbourhoodAnswer {
        let node = |(i, side): (usize, &&'static str)| Neighbour {
            url: format!("https://h{}.example/{i}", i % 11),
            host: format!("h{}.example", i % 11),
            fetched: i % 2 == 0,
            links_in: 1 << (i % 30),
            side,
        };
        let nodes: Vec<Neighbour> = std::iter::once(&"centre").chain(sides).enumerate().map(node).collect();
        let arcs = (1..nodes.len() as u32).map(|i| (i, 0)).collect();
        NeighbourhoodAnswer { url: nodes[0].url.clone(), nodes, arcs, partial: false }
    }

    #[test]
    fn every_page_has_a_line_of_its_own() {
        let check = |sides: &[&'static str], left: usize, right: usize| {
            let around = around(sides);
            let (placed, height) = place(&around);
            assert_eq!(placed.len(), sides.len() + 1);
            for (side, expected) in [(-1.0, left), (1.0, right)] {
                let mut ys: Vec<f64> = placed.iter().filter(|p| p.side == side).map(|p| p.y).collect();
                assert_eq!(ys.len(), expected);
                ys.sort_by(f64::total_cmp);
                assert!(ys.windows(2).all(|two| two[1] - two[0] >= LINE_MIN - 0.001), "lines are apart");
                assert!(ys.iter().all(|y| (0.0..=height).contains(y)), "inside the picture");
            }
            assert!(placed.iter().all(|p| (0.0..=WIDTH).contains(&p.x)));
        };
        check(&[], 0, 0);
        check(&["in"], 1, 0);
        check(&["out", "both"], 1, 1);
        check(&["both"; 59], 30, 29);
        check(&["in"; 59], 59, 0);
        check(&["both", "in", "in", "in", "unheard of"], 3, 2);
    }

    #[test]
    fn labels_are_short_and_say_what_differs() {
        let check = |url: &str, expected: &str| {
            let node = Neighbour { url: url.to_string(), ..Neighbour::default() };
            assert_eq!(label(&node, "own.example"), expected);
        };
        check("https://own.example/a/b", "/a/b");
        check("https://other.example/", "other.example");
        check("https://other.example/a", "other.example/a");
        check("javascript:alert(1)", "javascript:alert(1)");
        check(
            &format!("https://own.example/{}/end", "é".repeat(300)),
            &format!("/{}…{}/end", "é".repeat(25), "é".repeat(12)),
        );
    }
}
