"""What the link graph adds to a crawl, and how soon a link is answered.

    make bench-links               prints the figures; exit 1 if a bar is not reached
    make bench-links ARGS=--json   also keeps them under bench/runs/

Crawls with the graph and without take turns; the lowest of each counts. Then a slow crawl runs beside `rhumb serve`, and
each page is asked for over HTTP from the moment its answer left the web until its links are known.
"""

import argparse
import datetime
import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from common import Web, build, keep, machine, measure, say, scratch, version

SHARE_MAX = 0.10
ANSWERED_SECONDS_MAX = 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--pages", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="512MiB")
    parser.add_argument("--json", action="store_true", help="keep the result under bench/runs/")
    args = parser.parse_args()
    rhumb, failed = build(), []
    with scratch() as folder:
        runs = {"with": [], "without": []}
        status = {}
        with Web(rhumb, args.hosts, args.pages, f"{folder}/requests.jsonl") as web:
            for _ in range(args.rounds):
                for kind, more in (("without", ["--no-graph"]), ("with", [])):
                    crawl_dir = Path(folder) / "crawl"
                    shutil.rmtree(crawl_dir, ignore_errors=True)
                    crawl = [rhumb, "crawl", web.seed, "--json", "--quiet", "--dir", str(crawl_dir), "--scope", "any", "--delay", "0s",
                             "--per-ip", "0", "--allow-net", "127.0.0.0/8", "--no-sitemaps", "--no-index", "--memory", args.memory, *more]
                    result, text = measure(crawl)
                    status = json.loads(text)
                    runs[kind].append(result)
                    say(f"{kind:8} the graph  {result['cpu_seconds'] * 1e3 / status['pages']:.3f} CPU-ms a page, {result['rss_bytes'] / 1e6:.0f} MB")
        stats = json.loads(subprocess.run([rhumb, "graph", "stats", str(crawl_dir), "--json"], capture_output=True, check=True).stdout)
        graph_bytes = sum(f.stat().st_size for f in (crawl_dir / "graph").iterdir())
        low = {kind: min(r["cpu_seconds"] for r in results) for kind, results in runs.items()}
        share = low["with"] / low["without"] - 1
        per_arc = (low["with"] - low["without"]) * 1e6 / stats["arcs"]
        say(f"{status['pages']} pages, {stats['arcs']} links: the graph adds {share:.1%}, {per_arc:.2f} CPU-µs a link; "
            f"{stats['bits_per_link']['forward']:.2f} and {stats['bits_per_link']['transposed']:.2f} bits a link, {stats['url_bytes']:.1f} bytes a URL, "
            f"{graph_bytes / 1e6:.1f} MB in all")
        if share > SHARE_MAX:
            failed.append(f"the graph adds {share:.1%} of processor time to a crawl, more than {SHARE_MAX:.0%}")
        waits = answered(rhumb, folder)
        say(f"{len(waits)} pages: their links were answered after {statistics.median(waits) * 1e3:.0f} ms in the middle, {max(waits) * 1e3:.0f} ms at most")
        if max(waits) > ANSWERED_SECONDS_MAX:
            failed.append(f"a link was answered {max(waits):.2f} s after its page was fetched")
    for line in failed:
        say(f"FAIL  {line}")
    if not failed:
        say("pass  the graph adds little, and is as new as the crawl")
    if args.json:
        keep("links", {"command": "make bench-links ARGS='" + " ".join(sys.argv[1:]) + "'", "date": datetime.date.today().isoformat(),
                       "machine": machine(), "versions": {"rhumb": version([rhumb, "--version"])},
                       "web": {"hosts": args.hosts, "pages": args.pages}, "pages": status["pages"], "stats": stats, "graph_bytes": graph_bytes,
                       "runs": runs, "share": share, "cpu_us_per_link": per_arc,
                       "answered_ms": {"median": statistics.median(waits) * 1e3, "most": max(waits) * 1e3, "pages": len(waits)}, "failed": failed})
    return 1 if failed else 0


def answered(rhumb, folder):
    """How long after the web answered with a page its links were known over HTTP, page by page."""
    log, crawl_dir = Path(folder) / "slow.jsonl", Path(folder) / "slow"
    waits, asked = [], set()
    with Web(rhumb, 20, 20, str(log)) as web:
        crawl = subprocess.Popen([rhumb, "crawl", web.seed, "--json", "--quiet", "--dir", str(crawl_dir), "--scope", "any", "--delay", "300ms",
                                  "--allow-net", "127.0.0.0/8", "--no-sitemaps", "--no-index"], stdout=subprocess.DEVNULL)
        while not (crawl_dir / "log").is_dir():
            time.sleep(0.02)
        serve = subprocess.Popen([rhumb, "serve", str(crawl_dir), "--listen", "127.0.0.1:0", "--json"], stdout=subprocess.PIPE, text=True)
        origin = json.loads(serve.stdout.readline())["url"].rstrip("/")
        port = urllib.parse.urlsplit(web.seed).port
        try:
            until = time.monotonic() + 60
            while len(waits) < 60 and time.monotonic() < until and crawl.poll() is None:
                # The last line may be half written.
                lines = log.read_text().split("\n")[:-1] if log.exists() else []
                fresh = [e for e in map(json.loads, lines[-40:]) if e.get("status") == 200 and e["path"] != "/robots.txt"]
                fresh = [f"http://{e['host'].split(':')[0]}:{port}{e['path']}" for e in fresh]
                fresh = [url for url in fresh if url not in asked]
                asked.update(fresh)
                if not fresh:
                    time.sleep(0.005)
                    continue
                waits.append(wait_for(origin, fresh[-1]))
        finally:
            for process in (serve, crawl):
                process.send_signal(signal.SIGTERM)
                process.wait(30)
    return waits


def wait_for(origin, url):
    began = time.monotonic()
    question = f"{origin}/api/page?" + urllib.parse.urlencode({"url": url})
    while time.monotonic() < began + 30:
        try:
            if json.load(urllib.request.urlopen(question))["fetched"]:
                return time.monotonic() - began
        except urllib.error.HTTPError:
            pass
        time.sleep(0.005)
    return 30.0


if __name__ == "__main__":
    sys.exit(main())
