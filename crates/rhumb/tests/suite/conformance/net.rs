//! Addresses by the IANA registries, in every spelling.

use serde_json::json;

use crate::common::{json, rhumb, run};

/// Every spelling of an address that is not for us.
#[test]
fn net_check() {
    let check = |target: &str, expected: bool, class: &str| {
        let value = json(&run(rhumb().args(["net", "check", "--json", target])), 0);
        assert_eq!((&value["allowed"], &value["class"]), (&json!(expected), &json!(class)), "{target}: {value}");
    };
    for loopback in [
        "127.0.0.1",
        "127.255.255.254",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "0177.0x0.0.01",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "http://127.0.0.1",
        "http://127.0.0.1:8080/x",
        "https://127.0.0.1./",
        "http://2130706433/",
        "http://0x7f.1/a",
        "http://0177.1",
        "http://example.com@127.0.0.1/",
        "http://example.com:80@127.0.0.1/",
        "http://127.0.0.1#@example.com/",
        "http://127.0.0.1?@example.com/",
        "http://127.0.0.1\\@example.com/",
        "http:\\\\127.0.0.1\\",
        "http:127.0.0.1",
        "http:/127.0.0.1/",
        "http:///127.0.0.1",
        " http://127.0.0.1/ ",
        "ht\ntp://127.0.\t0.1/",
        "HTTP://127.0.0.1/",
        "http://127.0.0.1:443/",
        "::1",
        "[::1]",
        "0:0:0:0:0:0:0:1",
        "[0000::1]",
        "http://[::1]/",
        "http://[::1]:99/",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "[::ffff:127.0.0.1]",
        "http://[::ffff:127.0.0.1]/",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "http://[2002:7f00:0001::1]/",
        "2001:0:7f00:1::f7f7:f7f7",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "http://localhost:8080/",
        "a.localhost",
        "http://x.localhost./",
    ] {
        check(loopback, false, "loopback");
    }
    for private in [
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.254",
        "192.168.0.1",
        "0xa000001",
        "012.0.0.1",
        "167772161",
        "http://192.168.1.1/",
        "192.168.257",
        "http://0300.0250.0.1/",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:0a00:0001::",
        "2002:c0a8:0101::1",
        "::ffff:0:192.168.0.1",
        "2001:0:808:808::f5ff:fffe",
        "http://good.example:80@10.0.0.1/",
    ] {
        check(private, false, "private");
    }
    for link_local in [
        "169.254.169.254",
        "http://169.254.169.254/latest/meta-data/",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "[::ffff:a9fe:a9fe]",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "169.254.170.2",
        "fe80::1",
        "http://[fe80::a9fe:a9fe]/",
    ] {
        check(link_local, false, "link_local");
    }
    for (target, class) in [
        ("0.0.0.0", "unspecified"),
        ("0", "unspecified"),
        ("http://0/", "unspecified"),
        ("::", "unspecified"),
        ("[::]", "unspecified"),
        ("0.1.2.3", "this_network"),
        ("100.64.0.1", "carrier_nat"),
        ("100.100.100.200", "carrier_nat"),
        ("198.18.0.1", "benchmark"),
        ("192.0.2.1", "documentation"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.9", "documentation"),
        ("192.0.0.192", "ietf"),
        ("224.0.0.1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("fd00:ec2::254", "unique_local"),
        ("fc00::1", "unique_local"),
        ("fec0::1", "site_local"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
        ("64:ff9b:1::1", "nat64_local"),
        ("100::1", "discard"),
    ] {
        check(target, false, class);
    }
    for global in [
        "8.8.8.8",
        "1.1.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.1.1",
        "11.0.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "169.253.0.1",
        "2606:4700::1111",
        "http://[2001:4860:4860::8888]/",
        "http://8.8.8.8:53/",
        "::ffff:8.8.8.8",
        "134744072",
    ] {
        check(global, true, "global");
    }
    for name in [
        "a.example",
        "http://a.example/x",
        "localhost.example",
        "notlocalhost",
        "127.0.0.1.example",
        "http://127.0.0.1@a.example/",
        "a.example:8080",
    ] {
        check(name, true, "name");
    }
    // What will never be fetched is not allowed, whatever it spells.
    for never in [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "ftp://127.0.0.1/",
        "gopher://a.example/",
        "javascript:alert(1)",
        "data:,x",
        "http://",
        "http://[",
        "http://[::1",
        "http://256.256.256.256/",
        "http://[::ffff:127.0.0.1",
        "http://1.2.3.4.5/",
        "",
        " ",
        "http://a b/",
        "http://127.0.0.1:99999/",
        "http://[fe80::1%25eth0]/",
        "::1%lo",
    ] {
        let value = json(&run(rhumb().args(["net", "check", "--json", never])), 0);
        assert_eq!(value["allowed"], false, "{never:?}: {value}");
    }
    let with = |target: &str, network: &str| {
        json(&run(rhumb().args(["net", "check", "--json", target, "--allow-net", network])), 0)["allowed"].clone()
    };
    assert_eq!(with("http://127.0.0.1/", "127.0.0.0/8"), true);
    assert_eq!(with("http://[::ffff:127.0.0.1]/", "127.0.0.0/8"), true);
    assert_eq!(with("localhost", "127.0.0.0/8"), true);
    assert_eq!(with("10.0.0.1", "127.0.0.0/8"), false);
    assert_eq!(with("fd00::1", "fc00::/7"), true);
}
