"""The parts at size: a hundred million URLs in bounded memory.

    make bench-scale                          all of it (half an hour); exit 1 if a bar is missed
    make bench-scale ARGS='sieve frontier'    some of it
    make bench-scale ARGS=--json              also keeps the figures under bench/runs/
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

from common import Web, build, free_port, keep, machine, measure, say, scratch, version

MB = 1e6


def sieve(rhumb):
    """100 M known URLs, four of five checks repeats; 10 M is a part of the same run."""
    urls = 100_000_000
    found = run([rhumb, "bench", "sieve", "--urls", str(urls), "--memory", "192MiB", "--json"])
    first, last = found["marks"][0]["ns_per_check"], found["marks"][-1]["ns_per_check"]
    return found, [
        ("checks per CPU-second", found["checks_per_cpu_second"], ">=", 3e6),
        ("RSS without the oracle, MB", (found["peak_rss_bytes"] - found["oracle_bytes"]) / MB, "<=", 256),
        ("bytes of disk a URL", found["disk_bytes_per_url"], "<=", 6),
        ("cost of a check at 100 M to that at 10 M", last / first, "<=", 2),
        ("URLs lost", found["lost"], "<=", 0),
        ("URLs let through twice", found["twice"], "<=", 0),
        ("longest pause, ms", found["longest_pause_ms"], "<=", 50),
    ]


def frontier(rhumb):
    """50 M URLs on 1 M hosts, visited while they are admitted."""
    found = run([rhumb, "bench", "frontier", "--urls", "50000000", "--hosts", "1000000", "--json"])
    rss = [mark["rss_bytes"] / MB for mark in found["marks"][1:]]
    return found, [
        ("operations per CPU-second", found["operations_per_cpu_second"], ">=", 150e3),
        ("peak RSS, MB", found["peak_rss_bytes"] / MB, "<=", 512),
        ("RSS at 50 M URLs to that at 10 M", rss[-1] / rss[0], "<=", 1.2),
        ("share of CPU in checkpoints", found["checkpoint_cpu_share"], "<=", 0.1),
        ("restart, s", found["restart_seconds"], "<=", 10),
    ]


def waiting(rhumb):
    """100 M URLs waiting on 10 M hosts."""
    command = [rhumb, "bench", "frontier", "--urls", "110000000", "--hosts", "10000000", "--visit-every", "11", "--json"]
    found = run(command)
    return found, [
        ("URLs waiting", found["urls_waiting"], ">=", 100e6),
        ("hosts met", found["hosts_known"], ">=", 6e6),
        ("operations per CPU-second", found["operations_per_cpu_second"], ">=", 150e3),
        ("peak RSS, MB", found["peak_rss_bytes"] / MB, "<=", 512),
        ("restart, s", found["restart_seconds"], "<=", 10),
    ]


def memory(rhumb):
    """A crawl with --memory 256MiB that finds two million URLs."""
    with scratch() as folder:
        web = Web(rhumb, 50_000, 200, f"{folder}/requests.jsonl")
        with web:
            crawl_dir = str(Path(folder) / "crawl")
            crawl = [rhumb, "crawl", web.seed, "--json", "--quiet", "--dir", crawl_dir, "--scope", "any", "--delay", "0s", "--per-ip", "0",
                     "--allow-net", "127.0.0.0/8", "--memory", "256MiB", "--max-time", "30m", "--no-index"]

            def enough():
                done = subprocess.run([rhumb, "status", crawl_dir, "--json"], capture_output=True, text=True)
                return done.returncode == 0 and json.loads(done.stdout)["urls_seen"] > 2_000_000

            result, text = measure(crawl, codes=(0, 4), interrupt_when=enough)
    status = json.loads(text)
    found = {**result, "status": status}
    return found, [
        ("URLs found", status["urls_seen"], ">=", 2e6),
        ("peak RSS to the setting", result["rss_bytes"] / (256 << 20), "<=", 1.5),
    ]


def dns(rhumb):
    """Names resolved against a server on loopback."""
    port = free_port()
    serve = [rhumb, "sim", "serve", "--plain", "--hosts", "200000", "--pages", "1", "--listen", f"127.0.0.1:{free_port()}",
             "--dns", f"127.0.0.1:{port}", "--json"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as web:
        try:
            web.stdout.readline()
            found = run([rhumb, "bench", "dns", "--server", f"127.0.0.1:{port}", "--json"])
        finally:
            web.terminate()
    return found, [
        ("uncached names per CPU-second", found["uncached_per_cpu_second"], ">=", 50e3),
        ("cached names per CPU-second", found["cached_per_cpu_second"], ">=", 500e3),
        ("names that failed", found["failed"], "<=", 0),
    ]


def stages(rhumb):
    """What each stage of a page costs."""
    return crawl(rhumb, "--stages")


def windows(rhumb):
    """A page around page 10,000 and around page 500,000 of a crawl."""
    return crawl(rhumb, "--windows")


def https(rhumb):
    """Pages of 100 KB over HTTPS, a new connection for each."""
    return crawl(rhumb, "--https")


def slow_names(rhumb):
    """Fetch slots idle because of DNS where names take 100 ms."""
    return crawl(rhumb, "--dns-ms", "100")


def crawl(rhumb, *options):
    found = run([rhumb, "bench", "crawl", *options, "--json"], codes=(0, 1))
    return found, [(bar["bar"], bar["figure"], "<=", bar["most"]) for bar in found["bars"]]


PARTS = {f.__name__: f for f in (sieve, frontier, waiting, memory, dns, stages, windows, https, slow_names)}


def run(command, codes=(0,)):
    result, text = measure(command, codes=codes, timeout=3600)
    return {**json.loads(text), "command": " ".join(["rhumb", *command[1:]]), "process": result}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="|".join(PARTS), help="all of them if none is named")
    parser.add_argument("--json", action="store_true", help="keep the results under bench/runs/")
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    rhumb, failed = build(), 0
    for name in args.parts or PARTS:
        say(f"{name}: {PARTS[name].__doc__}")
        found, bars = PARTS[name](rhumb)
        lines = []
        for what, value, relation, bar in bars:
            holds = value >= bar if relation == ">=" else value <= bar
            failed += not holds
            lines.append({"what": what, "value": value, "bar": f"{relation} {bar:g}", "holds": holds})
            say(f"  {'pass' if holds else 'FAIL'}  {what}: {value:,.6g} ({relation} {bar:g})")
        if args.json:
            keep(name, {"command": f"make bench-scale ARGS={name}", "date": datetime.date.today().isoformat(), "machine": machine(),
                        "versions": {"rhumb": version([rhumb, "--version"])}, "bars": lines, "figures": found})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
