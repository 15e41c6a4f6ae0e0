//! Farms and other signs that are planted, and innocent graphs in which nothing may be found.

use proptest::prelude::*;

use super::*;
use crate::algo::{Chance, model};

fn clique(members: std::ops::Range<Node>) -> Vec<(Node, Node)> {
    members.clone().flat_map(|a| members.clone().filter(move |&b| b != a).map(move |b| (a, b))).collect()
}

fn farms_of(hosts: Node, arcs: Vec<(Node, Node)>, domain_of: &[Node]) -> Vec<Vec<Node>> {
    let graph = Csr::from_arcs(hosts, arcs);
    let found = farms(&graph, &graph.transposed(), domain_of).expect("farms");
    found.into_iter().map(|farm| farm.members).collect()
}

#[test]
fn farms_are_found_and_friends_are_not() {
    let each: Vec<Node> = (0..40).collect();
    let check = |arcs: Vec<(Node, Node)>, domain_of: &[Node], expected: &[Vec<Node>]| {
        assert_eq!(farms_of(40, arcs.clone(), domain_of), expected, "{arcs:?}");
    };
    check(clique(0..4), &each, &[]);
    check(clique(3..8), &each, &[(3..8).collect()]);
    // The same hosts under one domain are a site.
    check(clique(3..8), &[7; 40], &[]);
    // One way only is a list of recommendations.
    check(clique(0..10).into_iter().filter(|(a, b)| a < b).collect(), &each, &[]);
    // Two farms that know each other by one pair of links stay two; the larger comes first.
    let mut two = clique(0..6);
    two.extend(clique(10..20));
    two.extend([(0, 10), (10, 0)]);
    check(two, &each, &[(10..20).collect(), (0..6).collect()]);
    // Nor does it make one of them if a host of the smaller is a guest of the larger.
    let mut guest_of_other = clique(0..6);
    guest_of_other.extend(clique(10..20));
    guest_of_other.extend([(0, 10), (10, 0), (0, 11), (11, 0)]);
    check(guest_of_other, &each, &[(10..20).collect(), (0..6).collect()]);
    let mut alike = clique(0..6);
    alike.extend(clique(10..16));
    alike.extend([(0, 10), (10, 0)]);
    check(alike, &each, &[(0..6).collect(), (10..16).collect()]);
    // A farm to which an outsider returns one link does not thereby grow.
    let mut guest = clique(0..9);
    guest.extend([(0, 30), (30, 0), (1, 30), (30, 1)]);
    check(guest, &each, &[(0..9).collect()]);
    // A ring of friends has returned links, but is not dense.
    check((0..20).flat_map(|n| [(n, (n + 1) % 20), ((n + 1) % 20, n)]).collect(), &each, &[]);
    // Members that link mostly elsewhere, unreturned, are hubs that happen to know each other.
    let mut hubs = clique(0..6);
    hubs.extend((0..6).flat_map(|hub| (6..40).map(move |to| (hub, to))));
    check(hubs, &each, &[]);
}

#[test]
fn a_farm_in_a_web_of_chance() {
    let hosts = 3_000;
    let mut chance = Chance(11);
    let mut arcs: Vec<(Node, Node)> =
        (0..20_000).map(|_| (chance.below(hosts) as Node, chance.below(hosts) as Node)).collect();
    let domains: Vec<Node> = (0..hosts as Node).collect();
    assert_eq!(farms_of(hosts as Node, arcs.clone(), &domains), Vec::<Vec<Node>>::new());
    arcs.extend(clique(1000..1030));
    assert_eq!(farms_of(hosts as Node, arcs, &domains), [(1000..1030).collect::<Vec<Node>>()]);
}

#[test]
fn in_links_from_one_domain() {
    // Pages 0..999 are of domain 0 or others, page 1000 is linked to.
    let check = |domain_of_page: &dyn Fn(Node) -> Node, linking: Node, expected: Option<(u64, u32)>| {
        let graph = Csr::from_arcs(1001, (0..linking).map(|page| (page, 1000)).collect());
        let mut domains: Vec<Node> = (0..1000).map(domain_of_page).collect();
        domains.push(5000);
        let found = one_sided_pages(&graph.transposed(), &domains).expect("findings");
        let figures = found.first().map(|finding| match finding.sign {
            Sign::OneSided { links, domains, .. } => (links, domains),
            _ => (0, 0),
        });
        assert_eq!(figures, expected);
        // The same from a host graph in which each domain is one host.
        let (hosts, groups) = (6000, domains.clone());
        let quotient = Quotient::of(&graph, &groups, hosts, 10_000).expect("a quotient");
        let same: Vec<Node> = (0..hosts).collect();
        let by_host = one_sided_hosts(&quotient.transposed(), &same).expect("findings");
        assert_eq!(
            by_host.iter().map(|f| f.sign).collect::<Vec<_>>(),
            found.iter().map(|f| f.sign).collect::<Vec<_>>()
        );
    };
    check(&|_| 0, 1000, Some((1000, 1)));
    check(&|_| 0, 99, None);
    check(&|page| page, 1000, None);
    check(&|page| u32::from(page >= 950), 1000, Some((1000, 2)));
    check(&|page| page % 2, 1000, Some((1000, 2)));
    check(&|page| page % 10, 1000, None);
    // Links from the own domain say nothing.
    check(&|_| 5000, 1000, None);
}

#[test]
fn sudden_growth_and_scattering() {
    let check = |links: u32, new: u32, one: u32, expected: bool| {
        let found = sudden(&[links], &[new], &[one]).expect("findings");
        assert_eq!(!found.is_empty(), expected, "{links}, {new}, {one}");
    };
    check(1000, 900, 890, true);
    check(1000, 900, 90, false);
    check(1000, 400, 400, false);
    check(40, 40, 40, false);
    check(0, 0, 0, false);
    check(u32::MAX, u32::MAX, u32::MAX, true);
    assert!(sudden(&[1, 2], &[1], &[1, 2]).is_err());

    // 0..=59 are of domain 0, 60..=69 of their own, 70 and 71 of domain 7; 70 is linked to by all. Even nodes are new.
    let domains: Vec<Node> = (0..72)
        .map(|node| {
            if node < 60 {
                0
            } else if node < 70 {
                node
            } else {
                7
            }
        })
        .collect();
    let graph = Csr::from_arcs(72, (0..72).map(|from| (from, 70)).collect());
    let grown = growth(&graph.transposed(), &domains, &|from, to| from % 2 == 0 && to == 70).expect("growth");
    assert_eq!((grown.in_links[70], grown.new_in_links[70], grown.new_from_one_domain[70]), (70, 35, 30));
    assert_eq!((grown.in_links[71], grown.in_links.len()), (0, 72));
    let all = growth(&graph.transposed(), &domains, &|_, _| true).expect("growth");
    let found = sudden(&all.in_links, &all.new_in_links, &all.new_from_one_domain).expect("findings");
    assert_eq!(found.iter().map(|f| f.members[0]).collect::<Vec<_>>(), [70]);

    let graph = Csr::from_arcs(301, (0..200).flat_map(|to| [(300, to), (299, to / 10)]).collect());
    let domains: Vec<Node> = (0..301).collect();
    let found = scattering_pages(&graph, &domains).expect("findings");
    assert_eq!(found.iter().map(|f| f.members[0]).collect::<Vec<_>>(), [300]);
    let line = found[0].line(&|node| format!("page {node}"), &|domain| format!("domain {domain}"));
    assert_eq!(line, "page 300: 200 links to 200 foreign domains");
    assert!(scattering_pages(&graph, &[0; 301]).expect("findings").is_empty());
    assert!(scattering_pages(&graph, &[0; 3]).is_err());
}

#[test]
fn the_list_does_not_grow_with_the_graph() {
    let many = vec![1000; 5 * FINDINGS_MAX];
    let found = sudden(&many, &many, &many).expect("findings");
    assert_eq!(found.len(), FINDINGS_MAX);
    assert_eq!(found[0].members, [0]);
}

proptest! {
    #[test]
    fn cores_are_what_peeling_leaves(graph in model::graph(20, 80)) {
        let both = crate::algo::order::symmetric(&graph, &graph.transposed());
        let found = cores(&both);
        for k in 0..20 {
            let mut left: Vec<bool> = vec![true; both.nodes() as usize];
            while let Some(node) = (0..both.nodes()).find(|&node| {
                let partners = both.successors(node).iter().filter(|&&other| left[other as usize]).count();
                left[node as usize] && partners < k
            }) {
                left[node as usize] = false;
            }
            for node in 0..both.nodes() as usize {
                prop_assert_eq!(left[node], found[node] as usize >= k, "node {}, k {}", node, k);
            }
        }
    }

    #[test]
    fn farms_are_as_dense_as_they_say(graph in model::graph(12, 100), domains in proptest::collection::vec(0..12u32, 12), returned: bool) {
        // Half of the runs on a graph in which every link is returned: there farms occur.
        let graph = if returned { crate::algo::order::symmetric(&graph, &graph.transposed()) } else { graph };
        let domain_of = &domains[..graph.nodes() as usize];
        for farm in farms(&graph, &graph.transposed(), domain_of).expect("farms") {
            let both = |a: Node, b: Node| {
                graph.successors(a).contains(&b) && graph.successors(b).contains(&a)
                    && domain_of[a as usize] != domain_of[b as usize]
            };
            let pairs: usize =
                farm.members.iter().map(|&a| farm.members.iter().filter(|&&b| both(a, b)).count()).sum();
            let count = farm.members.len();
            let Sign::Farm { density, .. } = farm.sign else { panic!("another sign") };
            prop_assert!((density - pairs as f64 / (count * (count - 1)) as f64).abs() < 1e-9);
            prop_assert!(count >= FARM_MEMBERS_MIN && density >= FARM_PARTNERS_MIN && farm.score <= 1.0);
            prop_assert!(farm.members.is_sorted());
        }
    }
}
