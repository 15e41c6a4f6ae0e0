"""A large crawl: 2,000 hosts × 50 pages, interrupted in the middle, resumed, then looked into.

    make bench-sizes               prints the figures; exit 1 if something is missing or slow
    make bench-sizes ARGS=--json   also keeps them under bench/runs/
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

from common import Web, build, keep, machine, measure, say, scratch, version

# What "quick" means, in processor seconds on the whole crawl. Reading every archived byte is bound by inflating it.
QUICK = {"status": 1.0, "explain (visited)": 1.0, "explain (unknown)": 1.0, "warc ls": 30.0, "warc check": 60.0, "warc cdxj": 60.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="keep the result under bench/runs/")
    args = parser.parse_args()
    rhumb, whole = build(), args.hosts * args.pages
    steps, failed = {}, []

    def step(name, command, codes=(0,), **more):
        result, text = measure(command, codes=codes, **more)
        result["printed_bytes"] = len(text)
        steps[name] = result
        slow = result["cpu_seconds"] > QUICK.get(name, float("inf"))
        if slow:
            failed.append(f"{name} took {result['cpu_seconds']:.2f} CPU-s, more than {QUICK[name]:g}")
        say(f"{name:18} {result['cpu_seconds']:8.2f} CPU-s {result['wall_seconds']:8.2f} s {result['rss_bytes'] / 1e6:6.0f} MB"
            f"  exit {result['exit']}{'  SLOW' if slow else ''}")
        return text

    def expect(holds, what):
        if not holds:
            failed.append(what)

    with scratch() as folder:
        crawl_dir = Path(folder) / "crawl"
        web = Web(rhumb, args.hosts, args.pages, f"{folder}/requests.jsonl")
        with web:
            crawl = [rhumb, "crawl", web.seed, "--json", "--quiet", "--dir", str(crawl_dir), "--scope", "any", "--delay", "0s",
                     "--per-ip", "0", "--allow-net", "127.0.0.0/8", "--no-index"]

            def half():
                done = subprocess.run([rhumb, "status", str(crawl_dir), "--json"], capture_output=True, text=True)
                return done.returncode == 0 and json.loads(done.stdout)["pages"] > whole * 0.4

            first = json.loads(step("crawl", crawl, codes=(0, 4), interrupt_when=half))
            expect(steps["crawl"]["exit"] == 4, f"the first part ended with exit {steps['crawl']['exit']}, not 4")
            at_interrupt = first["pages"]
            say(f"interrupted at {at_interrupt} pages, {first['urls_waiting']} URLs waiting")
            step("status (stopped)", [rhumb, "status", str(crawl_dir), "--json"])
            second = json.loads(step("resume", crawl))
        requests, pages, by_status = web.count()
        log_bytes, archive_bytes, state_bytes = (
            sum(f.stat().st_size for f in (crawl_dir / part).rglob("*") if f.is_file()) for part in ("log", "archive", "state"))
        say(f"{second['pages']} pages; the server answered {requests} requests for {pages} pages; log {log_bytes / 1e6:.0f} MB, "
            f"archive {archive_bytes / 1e6:.0f} MB, state {state_bytes / 1e6:.0f} MB")
        expect(second["pages"] == pages == whole, f"{second['pages']} pages recorded, {pages} served, {whole} there")
        # A visit that the interrupt cut off may be made again.
        expect(requests - pages <= 2000, f"{requests - pages} pages were asked for twice")

        status = json.loads(step("status", [rhumb, "status", str(crawl_dir), "--json"]))
        expect(status["pages"] == whole and status["urls_waiting"] == 0, f"status: {status['pages']} pages, {status['urls_waiting']} waiting")
        archive = str(crawl_dir)
        ls = step("warc ls", [rhumb, "warc", "ls", archive, "--json"])
        url = some_url(ls, web.seed)
        told = step("explain (visited)", [rhumb, "explain", str(crawl_dir), url, "--json"], codes=(0, 1))
        expect(steps["explain (visited)"]["exit"] == 0 and url in told, f"explain does not know {url}")
        step("explain (unknown)", [rhumb, "explain", str(crawl_dir), web.seed + "no-such-page", "--json"], codes=(0, 1))
        checked = step("warc check", [rhumb, "warc", "check", archive, "--json"], codes=(0, 1))
        expect(steps["warc check"]["exit"] == 0, f"warc check: {checked[:300]}")
        step("warc cdxj", [rhumb, "warc", "cdxj", archive])

    for line in failed:
        say(f"FAIL  {line}")
    if not failed:
        say("pass  all pages once, interrupted and resumed, all look-ups quick")
    if args.json:
        keep("sizes", {"command": "make bench-sizes ARGS='" + " ".join(sys.argv[1:]) + "'", "date": datetime.date.today().isoformat(), "machine": machine(),
                       "web": {"hosts": args.hosts, "pages": args.pages}, "versions": {"rhumb": version([rhumb, "--version"])},
                       "pages": second["pages"], "interrupted_at": at_interrupt, "requests": requests, "by_status": by_status,
                       "log_bytes": log_bytes, "archive_bytes": archive_bytes, "state_bytes": state_bytes, "steps": steps,
                       "failed": failed})
    return 1 if failed else 0


def some_url(ls, seed):
    """A page in the last part of the archive, so that a look-up has the whole crawl before it."""
    found = [w.strip('",') for line in ls.splitlines()[-400:] for w in line.replace('":"', '" "').split('"') if w.startswith("http://127.")]
    return found[-1] if found else seed


if __name__ == "__main__":
    sys.exit(main())
