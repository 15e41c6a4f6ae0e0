//! Pages to test and measure with: one as a content management system writes it, one as people do.

fn words(random: &mut u64, count: usize) -> String {
    const WORDS: [&str; 24] = [
        "the", "of", "harbour", "compass", "and", "a", "latitude", "chart", "in", "wind", "to", "sailing", "course",
        "map", "with", "bearing", "meridian", "is", "steady", "on", "voyage", "by", "night", "star",
    ];
    (0..count).map(|_| WORDS[next(random, WORDS.len())]).collect::<Vec<_>>().join(" ")
}

fn next(random: &mut u64, n: usize) -> usize {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) as usize % n
}

/// About 10 KB: navigation, paragraphs, 25 links.
pub(crate) fn tidy(seed: u64) -> String {
    let r = &mut seed.wrapping_add(99);
    let mut html = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n  <meta charset=\"utf-8\">\n  <title>Sailing &amp; charts</title>\n  \
         <meta name=\"viewport\" content=\"width=device-width\">\n  <link rel=\"stylesheet\" href=\"/style.css\">\n  \
         <meta name=\"description\" content=\"About charts\">\n  <script>window.d=[];function t(){d.push(arguments)}</script>\n\
         </head>\n<body class=\"page\">\n<nav class=\"top\">\n  <ul class=\"menu\">\n",
    );
    for i in 0..12 {
        let label = words(r, 2);
        html += &format!("    <li class=\"menu-item\"><a class=\"nav-link\" href=\"/s/{i}.html\">{label}</a></li>\n");
    }
    html += "  </ul>\n</nav>\n<main id=\"content\">\n";
    for i in 0..13 {
        let (title, before, label, after) = (words(r, 4), words(r, 40), words(r, 3), words(r, 45));
        html += &format!(
            "  <h2 id=\"s{i}\">{title}</h2>\n  <p class=\"body-text\">{before} <a href=\"http://host{i}.test/p/{i}?a=1&amp;b=2\" \
             rel=\"noopener\">{label}</a>, {after}. <strong>{title}</strong> &mdash; done.</p>\n"
        );
    }
    html += "</main>\n<!-- end of content -->\n<footer><p>&copy; 2026</p></footer>\n</body>\n</html>\n";
    html
}

/// About as much, but with upper case, missing quotes and ends, inline scripts, comments, entities and odd bytes.
pub(crate) fn messy(seed: u64) -> String {
    let r = &mut seed.wrapping_add(7);
    let mut html = String::from(
        "\r\n<HTML><HEAD><TITLE>old &amp; <b>odd</TITLE><STYLE>a:hover{color:red}</STYLE><BODY BGCOLOR=#FFFFFF>\r\n",
    );
    for i in 0..25 {
        let (a, b, c) = (words(r, 12), words(r, 3), words(r, 20));
        html += &match i % 5 {
            0 => format!(
                "<TABLE border=0 width=\"100%\"><TR><TD><FONT face=arial><A HREF=page{i}.htm>{b}<TD>{a}&nbsp;&nbsp;{c}</TABLE>\r\n"
            ),
            1 => format!(
                "<script>document.write('<a href=\"x\">'+\"{a}\");<!-- {b} --></script><p>{c}<br><a href='?id={i}&copy=1'>{b}\r\n"
            ),
            2 => format!(
                "<div style='x:\"y\"' class=a class=b><a href=\"/a b/{i}\" title='{a}'><img src=i.gif alt=\"{b}\"></a>{c}</div></div>\r\n"
            ),
            3 => format!(
                "<!-- {a} -- > {b} --><P>{a} &lt;{b}&gt; caf\u{e9} &eacute; {c} <a href = \"#x{i}\" >{b}</a </p>\r\n"
            ),
            _ => format!(
                "<li><b><i>{b}</b></i> <a\r\nhref=http://h{i}.test/x?y=z&w=1>{a} <em>{b}</em></a> 1 < 2 && {c}\0\r\n"
            ),
        };
    }
    html
}
