"""What a page costs, beside wget2 and Scrapy: processor time of the crawler alone, one run, taking turns.

    make bench-peers               prints the table; exit 1 if a bar is missed
    make bench-peers ARGS=--json   also keeps it under bench/runs/
"""

import argparse
import datetime
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from common import ROOT, Web, build, keep, machine, measure, say, scratch, version

HOSTS, PAGES = 50, 200
# The bars: (what, its figure, at most).
BARS = [
    ("rhumb, no archive: at most 1 × wget2", lambda f: f["rhumb"]["ms"] / f["wget2"]["ms"], 1.0),
    ("rhumb, no archive: at most 1/25 of Scrapy", lambda f: f["rhumb"]["ms"] / f["scrapy"]["ms"], 1 / 25),
    ("rhumb, archive and log: at most 2 × wget2", lambda f: f["rhumb+archive"]["ms"] / f["wget2"]["ms"], 2.0),
    ("rhumb, no archive: peak memory at most 150 MB", lambda f: f["rhumb"]["rss_mb"], 150),
    ("rhumb, archive and log: peak memory at most 150 MB", lambda f: f["rhumb+archive"]["rss_mb"], 150),
]


def install(scrapy):
    if not shutil.which("wget2"):
        say("installing wget2 (apt)")
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "wget2"], check=True)
    if not scrapy:
        return "python3"
    venv = ROOT / ".venv-bench"
    wanted = (ROOT / "bench" / "requirements.txt").read_text()
    if not (venv / "installed").exists() or (venv / "installed").read_text() != wanted:
        say("installing Scrapy into .venv-bench (pip)")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", "-r",
                        str(ROOT / "bench" / "requirements.txt")], check=True)
        (venv / "installed").write_text(wanted)
    return str(venv / "bin" / "python")


def commands(rhumb, python):
    """Each peer with its fastest fair settings: everything followed, nothing kept, no robots.txt, no pause."""
    crawl = [rhumb, "crawl", "--json", "--quiet", "--dir", "crawl", "--scope", "any", "--delay", "0s", "--per-ip", "0",
             "--allow-net", "127.0.0.0/8", "--no-index"]
    return {
        "rhumb": crawl + ["--no-archive", "--no-graph"],
        "rhumb+archive": crawl + ["--no-graph", "--config", "no-text.toml"],
        "rhumb+text": crawl + ["--no-graph"],
        "rhumb+links": crawl,
        "wget2": ["wget2", "-q", "-r", "-l", "inf", "-H", "--robots=off", "--no-local-db", "--no-cookies", "--max-threads=5",
                  "-O", "/dev/null"],
        "scrapy": [python, str(Path(__file__).with_name("peer_scrapy.py"))],
    }


def one(rhumb, name, command):
    with scratch() as folder:
        Path(folder, "no-text.toml").write_text("[page]\ntext = false\n")
        web = Web(rhumb, HOSTS, PAGES, f"{folder}/requests.jsonl")
        with web:
            # wget2 says 8 when an answer was an error: it reads `&amp;` in a link literally and asks for what is not there.
            result, _ = measure(command + [web.seed], cwd=folder, codes=(0, 8) if name == "wget2" else (0,))
        requests, pages, by_status = web.count()
    result.update(requests=requests, pages=pages, by_status=by_status, ms=1000 * result["cpu_seconds"] / max(requests, 1))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scrapy-rounds", type=int, default=3, help="Scrapy takes minutes a round; 0 leaves it and its bar out")
    parser.add_argument("--json", action="store_true", help="keep the result under bench/runs/")
    args = parser.parse_args()
    python, rhumb = install(args.scrapy_rounds > 0), build()
    run = commands(rhumb, python)
    if args.scrapy_rounds == 0:
        del run["scrapy"]
    rounds = {name: [] for name in run}
    for round_ in range(args.rounds):
        for name, command in run.items():
            if name == "scrapy" and round_ >= args.scrapy_rounds:
                continue
            result = one(rhumb, name, command)
            rounds[name].append(result)
            say(f"round {round_ + 1}: {name:14} {result['ms']:7.3f} CPU-ms/page  {result['requests']} requests  "
                f"{result['pages']} pages  {result['rss_bytes'] / 1e6:5.0f} MB  {result['wall_seconds']:5.1f} s")
    figures = {name: {"ms": statistics.median(r["ms"] for r in results), "rss_mb": max(r["rss_bytes"] for r in results) / 1e6}
               for name, results in rounds.items()}

    say(f"\n{HOSTS} hosts × {PAGES} pages of about 10 KB, keep-alive; processor time of the crawler alone, per request answered")
    say(f"{'':14} {'median':>8} {'× wget2':>8} {'MB':>5}  rounds (CPU-ms per page)")
    for name, results in rounds.items():
        say(f"{name:14} {figures[name]['ms']:8.3f} {figures[name]['ms'] / figures['wget2']['ms']:8.2f} {figures[name]['rss_mb']:5.0f}  "
            + " ".join(f"{r['ms']:.3f}" for r in results))
    say()
    whole = HOSTS * PAGES
    # wget2 misses the pages behind `&amp;`; its error answers count as pages, to its advantage.
    bars = [{"bar": f"{name} fetched all {whole} pages", "figure": min(r["pages"] for r in results), "pass":
             all(r["pages"] == whole for r in results)} for name, results in rounds.items() if name != "wget2"]
    bars.append({"bar": f"wget2 made {whole} requests", "figure": min(r["requests"] for r in rounds["wget2"]),
                 "pass": all(r["requests"] == whole for r in rounds["wget2"])})
    for bar, figure, at_most in BARS:
        if "Scrapy" in bar and "scrapy" not in figures:
            continue
        bars.append({"bar": bar, "figure": round(figure(figures), 4), "pass": figure(figures) <= at_most})
    for bar in bars:
        say(f"{'pass' if bar['pass'] else 'FAIL'}  {bar['bar']}: {bar['figure']:g}")
    if args.json:
        peers = {"rhumb": version([rhumb, "--version"]), "wget2": version(["wget2", "--version"]),
                 "scrapy": version([python, "-m", "scrapy", "version"]) if "scrapy" in run else None,
                 "python": version([python, "--version"])}
        shown = {name: " ".join("rhumb" if w == rhumb else "python" if w == python else Path(w).name if w.endswith(".py") else w
                                for w in command) + " SEED" for name, command in run.items()}
        keep("peers", {"command": "make bench-peers ARGS='" + " ".join(sys.argv[1:]) + "'", "date": datetime.date.today().isoformat(), "machine": machine(),
                       "web": {"hosts": HOSTS, "pages": PAGES}, "versions": peers, "commands": shown, "figures": figures,
                       "bars": bars, "rounds": rounds})
    return 0 if all(bar["pass"] for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
