//! Redirects to nowhere, to everywhere, and to where nobody may go.

use rhumb_core::outcome::Outcome::{
    BadHttp, BadRedirect, BlockedAddress, NotFound, Ok as Fine, Redirect, TooManyRedirects,
};

use super::server::put_reply;
use super::{Asked, End, Group, Kind, SUFFIX, Serve, Task, Wire, page};
use crate::web::respond::Reply;

const HONEST: u32 = 3;
/// robots.txt and the honest pages.
const REST: u64 = 1 + HONEST as u64;

const REDIRECT: Kind = Kind { group: Group::Redirects, honest: HONEST, ..Kind::BARE };

/// The redirects.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "redirect-loop",
        about: "three redirects in a circle",
        ends: &[End::of("/", Redirect), End::of("/a", Redirect), End::of("/b", Redirect)],
        requests_max: REST + 3,
        serve: Serve::Reply(circle),
        ..REDIRECT
    },
    Kind {
        name: "redirect-self",
        about: "redirects to its own address",
        ends: &[End::of("/", Redirect)],
        requests_max: REST + 1,
        serve: Serve::Reply(|_| Reply::redirect(302, "/")),
        ..REDIRECT
    },
    Kind {
        name: "redirect-endless",
        about: "every redirect leads to one more",
        ends: &[End::of("/", Redirect), End::of("/hop/10", TooManyRedirects).detail("more than 10")],
        requests_max: REST + 11,
        serve: Serve::Reply(chain),
        ..REDIRECT
    },
    Kind {
        name: "redirect-scheme",
        about: "redirects to file:, ftp:, gopher:, javascript:, data: and others",
        ends: &[
            End::of("/to/file", BadRedirect).detail("file"),
            End::of("/to/ftp", BadRedirect).detail("ftp"),
            End::of("/to/gopher", BadRedirect).detail("gopher"),
            End::of("/to/javascript", BadRedirect).detail("javascript"),
            End::of("/to/data", BadRedirect).detail("data"),
            End::of("/to/mailto", BadRedirect).detail("mailto"),
            End::of("/to/unknown", BadRedirect).detail("x-app"),
        ],
        requests_max: REST + 1 + SCHEMES.len() as u64,
        serve: Serve::Reply(|asked| to(asked, &SCHEMES)),
        ..REDIRECT
    },
    Kind {
        name: "redirect-private",
        about: "redirects to this machine and to private networks, in every spelling of an address",
        ends: &[
            End::of("/to/decimal", Redirect),
            End::of("http://127.9.9.9:{port}/plain", BlockedAddress),
            End::of("http://127.9.9.9:{port}/decimal", BlockedAddress),
            End::of("http://127.9.9.9:{port}/octal", BlockedAddress),
            End::of("http://127.9.9.9:{port}/hex", BlockedAddress),
            End::of("http://127.9.9.9:{port}/hex-parts", BlockedAddress),
            End::of("http://127.9.9.9:{port}/short", BlockedAddress),
            End::of("http://127.9.9.9:{port}/user", BlockedAddress),
            End::of("http://127.9.9.9:{port}/wide", BlockedAddress),
            End::of("http://127.9.9.9:{port}/escaped", BlockedAddress),
            End::of("http://[::1]:{port}/six", BlockedAddress),
            End::of("http://[::ffff:7f09:909]:{port}/mapped", BlockedAddress),
            End::of("http://[::7f09:909]:{port}/compatible", BlockedAddress),
            End::of("http://[64:ff9b::7f09:909]:{port}/nat64", BlockedAddress),
            End::of("http://[2002:7f09:909::]:{port}/6to4", BlockedAddress),
            End::of("http://[fe80::1]:{port}/link-local", BlockedAddress),
            End::of("http://[fd00::1]:{port}/unique-local", BlockedAddress),
            End::of("http://0.0.0.0:{port}/zero", BlockedAddress),
            End::of("http://10.0.0.1:{port}/ten", BlockedAddress),
            End::of("http://172.16.0.1:{port}/seventeen", BlockedAddress),
            End::of("http://192.168.1.1:{port}/home", BlockedAddress),
            End::of("http://169.254.169.254/latest/meta-data/", BlockedAddress),
            End::of("http://100.64.0.1:{port}/carrier", BlockedAddress),
            End::of("http://localhost:{port}/localhost", BlockedAddress),
            End::of("http://inside-hostile.example:{port}/name", BlockedAddress),
        ],
        requests_max: REST + 1 + PRIVATE.len() as u64,
        serve: Serve::Reply(|asked| to(asked, &PRIVATE)),
        ..REDIRECT
    },
    Kind {
        name: "redirect-seed-private",
        about: "the address that the user named redirects to this machine",
        ends: &[End::of("/", Redirect), End::of("http://127.9.9.9:{port}/seed", BlockedAddress)],
        requests_max: REST + 1,
        serve: Serve::Reply(|asked| Reply::redirect(302, &format!("http://127.9.9.9:{}/seed", asked.place.port))),
        ..REDIRECT
    },
    Kind {
        name: "redirect-broken",
        about: "Location missing, empty, binary, with line breaks, or 100 KB long",
        ends: &[
            End::of("/to/missing", BadRedirect).detail("no Location"),
            End::of("/to/empty", BadRedirect).detail("empty"),
            End::of("/to/binary", BadHttp).detail("header"),
            End::of("/to/bare-cr", BadHttp).detail("header"),
            End::of("/to/huge", BadRedirect).detail("Location"),
            End::of("/to/nonsense", BadRedirect).detail("Location"),
            End::of("/to/line-break", Redirect),
            End::of("/injected%0D%0ASet-Cookie:%20a=b", NotFound),
        ],
        requests_max: REST + 1 + BROKEN.len() as u64 + 1,
        serve: Serve::Wire(broken),
        ..REDIRECT
    },
    Kind {
        name: "refresh-endless",
        about: "every page asks for the next one by a meta refresh after no time at all",
        ends: &[End::of("/", Fine), End::of("/next/1", Fine), End::of("/next/10", Fine).detail("refresh")],
        requests_max: REST + 11,
        serve: Serve::Reply(refresh),
        ..REDIRECT
    },
    Kind {
        name: "redirect-cookie",
        about: "sets cookies for everybody and redirects to another host, which looks for them",
        ends: &[End::of("/", Redirect), End::of("http://other.redirect-cookie-hostile.example:{port}/caught", Fine)],
        requests_max: 2 * REST + 2,
        serve: Serve::Reply(cookie),
        ..REDIRECT
    },
];

fn circle(asked: &Asked<'_>) -> Reply {
    match asked.path {
        "/" | "/b" => Reply::redirect(301, "/a"),
        "/a" => Reply::redirect(302, "/b"),
        _ => page::not_found(),
    }
}

fn chain(asked: &Asked<'_>) -> Reply {
    let n: u64 = asked.path.strip_prefix("/hop/").and_then(|n| n.parse().ok()).unwrap_or(0);
    Reply::redirect(if n.is_multiple_of(2) { 302 } else { 307 }, &format!("/hop/{}", n.saturating_add(1)))
}

const SCHEMES: [(&str, &str); 7] = [
    ("file", "file:///etc/passwd"),
    ("ftp", "ftp://127.9.9.9/pub/"),
    ("gopher", "gopher://127.9.9.9:6379/_FLUSHALL"),
    ("javascript", "javascript:alert(1)"),
    ("data", "data:text/html,<a href=/data>data</a>"),
    ("mailto", "mailto:root@localhost"),
    ("unknown", "x-app://open"),
];

/// 127.9.9.9 and its like. As the URL standard reads them, many of these are the same address; the paths tell them apart.
const PRIVATE: [(&str, &str); 24] = [
    ("plain", "http://127.9.9.9:{port}/plain"),
    ("decimal", "http://2131298569:{port}/decimal"),
    ("octal", "http://0177.011.011.011:{port}/octal"),
    ("hex", "http://0x7f090909:{port}/hex"),
    ("hex-parts", "http://0x7F.0x9.0x9.0x9:{port}/hex-parts"),
    ("short", "http://127.9.2313:{port}/short"),
    ("user", "http://example.org:80@127.9.9.9:{port}/user"),
    ("wide", "http://%EF%BC%91%EF%BC%92%EF%BC%97.9.9.9:{port}/wide"),
    ("escaped", "http://%31%32%37.9.9.9:{port}/escaped"),
    ("six", "http://[::1]:{port}/six"),
    ("mapped", "http://[::ffff:127.9.9.9]:{port}/mapped"),
    ("compatible", "http://[::127.9.9.9]:{port}/compatible"),
    ("nat64", "http://[64:ff9b::127.9.9.9]:{port}/nat64"),
    ("6to4", "http://[2002:7f09:909::]:{port}/6to4"),
    ("link-local", "http://[fe80::1]:{port}/link-local"),
    ("unique-local", "http://[fd00::1]:{port}/unique-local"),
    ("zero", "http://0:{port}/zero"),
    ("ten", "http://10.0.0.1:{port}/ten"),
    ("seventeen", "http://172.16.0.1:{port}/seventeen"),
    ("home", "http://192.168.1.1:{port}/home"),
    ("metadata", "http://169.254.169.254/latest/meta-data/"),
    ("carrier", "http://100.64.0.1:{port}/carrier"),
    ("localhost", "http://localhost:{port}/localhost"),
    ("name", "http://inside-hostile.example:{port}/name"),
];

/// A page with links to `/to/<name>`, each of which redirects to where the table says.
fn to(asked: &Asked<'_>, table: &[(&str, &str)]) -> Reply {
    if asked.path == "/" {
        return page::home(asked.host, HONEST, table.iter().map(|(name, _)| format!("/to/{name}")));
    }
    let name = asked.path.strip_prefix("/to/").unwrap_or_default();
    match table.iter().find(|(n, _)| *n == name) {
        Some((_, location)) => Reply::redirect(302, &location.replace("{port}", &asked.place.port.to_string())),
        None => page::not_found(),
    }
}

const BROKEN: [(&str, &[u8]); 7] = [
    ("missing", b""),
    ("empty", b"Location:\r\n"),
    ("binary", b"Location: /\x00\x01\x02\xff\xfe\r\n"),
    ("bare-cr", b"Location: /a\rSet-Cookie: a=b\r\n"),
    ("line-break", b"Location: /injected%0d%0aSet-Cookie:%20a=b\r\n"),
    ("nonsense", b"Location: http://[not an address]:99999/\r\n"),
    ("huge", b""),
];

fn broken(mut wire: Wire) -> Task {
    use tokio::io::AsyncWriteExt;
    Box::pin(async move {
        let name = wire.path.strip_prefix("/to/").unwrap_or_default();
        let Some((_, line)) = BROKEN.iter().find(|(n, _)| *n == name) else {
            let links = BROKEN.iter().map(|(name, _)| format!("/to/{name}"));
            let home = page::home(&wire.kind.host(), HONEST, links);
            let reply = if wire.path == "/" { home } else { page::not_found() };
            return wire.stream.write_all(&put_reply(&reply.with_header("Connection", "close"))).await;
        };
        let mut out = b"HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\n".to_vec();
        out.extend_from_slice(line);
        if name == "huge" {
            out.extend_from_slice(format!("Location: /{}\r\n", "x".repeat(100_000)).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        wire.stream.write_all(&out).await
    })
}

fn refresh(asked: &Asked<'_>) -> Reply {
    let n: u64 = asked.path.strip_prefix("/next/").and_then(|n| n.parse().ok()).unwrap_or(0);
    let meta = format!("<meta http-equiv=refresh content=\"0; url=/next/{}\">", n.saturating_add(1));
    let inside = format!("{meta}\n<p>One moment, please.</p>");
    page::html("Moved", &inside, page::links(HONEST))
}

fn cookie(asked: &Asked<'_>) -> Reply {
    if asked.path == "/caught" {
        return page::html(
            "Caught",
            &format!("<p>{}</p>", if asked.cookie.is_some() { "a cookie" } else { "none" }),
            [""; 0],
        );
    }
    let other = format!("http://other.redirect-cookie{SUFFIX}:{}/caught", asked.place.port);
    let mut reply = Reply::redirect(302, &other);
    for domain in [asked.host, "example", "com", ""] {
        reply = reply.with_header("Set-Cookie", &format!("session=secret; Domain={domain}; Path=/"));
    }
    reply
}
