"""Reads what `rhumb export` wrote with other people's tools. The first argument says what to read; what does not agree is an assertion.

rows JSONL PARQUET         the same rows in both, by pyarrow and by DuckDB
wet WET JSONL WARC...      warcio: the texts of the JSON lines, each referring to the record that it was taken from
replay WACZ CDXJ WARC...   pywb: each page of the WACZ is shown, from the WACZ and from archive files with our index
"""

import collections
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def agree(ours, theirs, who):
    assert len(ours) == len(theirs), f"{len(ours)} rows, {who} has {len(theirs)}"
    for a, b in zip(ours, theirs):
        differ = {k: (a.get(k), b.get(k)) for k in set(a) | set(b) if k not in a or k not in b or a[k] != b[k]}
        assert not differ, f"{who}: {differ}"


def time_text(ms):
    at = datetime.datetime.fromtimestamp(ms // 1000, datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S") + ".%03dZ" % (ms % 1000)


def rows(jsonl, parquet):
    import duckdb
    import pyarrow
    import pyarrow.parquet

    ours = read_lines(jsonl)
    table = pyarrow.parquet.read_table(parquet)
    assert table.schema.field("fetched").type == pyarrow.timestamp("ms", tz="UTC")
    assert table.schema.field("links").type.value_type.names == ["url", "text", "rel", "kind", "nofollow"]
    assert table.schema.metadata[b"rhumb.software"].startswith(b"rhumb/")
    read = table.set_column(1, "fetched", table["fetched"].cast(pyarrow.int64())).to_pylist()
    agree(ours, [dict(row, fetched=time_text(row["fetched"])) for row in read], "pyarrow")
    found = duckdb.connect().execute("select * replace (epoch_ms(fetched) as fetched) from read_parquet(?)", [parquet])
    names = [column[0] for column in found.description]
    read = [dict(zip(names, row)) for row in found.fetchall()]
    agree(ours, [dict(row, fetched=time_text(row["fetched"])) for row in read], "DuckDB")
    return {"rows": len(ours), "groups": pyarrow.parquet.read_metadata(parquet).num_row_groups}


def wet(path, jsonl, *archive):
    from warcio.archiveiterator import ArchiveIterator

    ids = {}
    for name in archive:
        with open(name, "rb") as file:
            for record in ArchiveIterator(file):
                ids[record.rec_headers["WARC-Record-ID"]] = record.rec_headers["WARC-Target-URI"]
    texts = {}
    with open(path, "rb") as file:
        for i, record in enumerate(ArchiveIterator(file, check_digests="raise")):
            assert record.rec_type == ("conversion" if i else "warcinfo"), record.rec_type
            if i:
                url = record.rec_headers["WARC-Target-URI"]
                assert ids[record.rec_headers["WARC-Refers-To"]] == url
                assert record.rec_headers["Content-Type"] == "text/plain"
                texts[url] = record.content_stream().read().decode()
    expected = {row["url"]: row["text"] for row in read_lines(jsonl) if (row["text"] or "").strip()}
    assert texts == expected, set(texts.items()) ^ set(expected.items())
    return {"records": len(texts)}


def replay(wacz, cdxj, *archive):
    with zipfile.ZipFile(wacz) as file:
        lists = [name for name in file.namelist() if name.startswith("pages/")]
        lines = [line for name in lists for line in file.read(name).decode().splitlines()[1:]]
    pages = [json.loads(line) for line in lines]
    os.chdir(tempfile.mkdtemp())
    manager = os.path.join(os.path.dirname(sys.executable), "wb-manager")
    for name in ["packed", "indexed"]:
        subprocess.run([manager, "init", name], check=True, capture_output=True)
    subprocess.run([manager, "add", "--unpack-wacz", "packed", wacz], check=True, capture_output=True)
    for name in archive:
        shutil.copy(name, "collections/indexed/archive")
    shutil.copy(cdxj, "collections/indexed/indexes/index.cdxj")

    import surt
    from pywb.apps.frontendapp import FrontEndApp
    from werkzeug.test import Client

    client = Client(FrontEndApp())
    # The keys of an index have no case and no slash at their end: of pages that differ in these the nearest is shown.
    keys = collections.Counter(surt.surt(page["url"]) for page in pages)
    for page in pages:
        for name in ["packed", "indexed"]:
            answer = client.get(f"/{name}/id_/{page['url']}")
            assert answer.status_code == 200, (name, answer.status, page)
            if keys[surt.surt(page["url"])] == 1:
                assert page["title"].encode() in answer.data, (name, page, answer.data[:200])
    return {"pages": len(pages)}


if __name__ == "__main__":
    print(json.dumps({"rows": rows, "wet": wet, "replay": replay}[sys.argv[1]](*sys.argv[2:])))
