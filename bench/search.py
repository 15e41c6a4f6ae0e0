"""What searching takes from a crawl that runs, and how long answers take meanwhile.

    make bench-search               prints the figures; exit 1 if a bar is not reached
    make bench-search ARGS=--json   also keeps them under bench/runs/

Crawls alone and crawls that are searched take turns; the lowest of each counts. Those that are searched have `rhumb serve` beside them, which is
asked so many times a second over connections that are kept. Only the crawler's processor time counts: not the server's, nor that of
whoever asks. Queries are one to three words of the titles of pages, as the first crawl found them.
"""

import argparse
import datetime
import http.client
import json
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

from common import Web, build, keep, machine, measure, say, scratch, version

SHARE_MAX = 0.05
TAIL_MAX = 5.0
ASKERS = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--pages", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=20.0, help="queries a second")
    parser.add_argument("--memory", default="512MiB")
    parser.add_argument("--json", action="store_true", help="keep the result under bench/runs/")
    args = parser.parse_args()
    rhumb, failed = build(), []
    runs, answers = {"alone": [], "searched": []}, []
    with scratch() as folder:
        crawl_dir, titles = Path(folder) / "crawl", []
        with Web(rhumb, args.hosts, args.pages, f"{folder}/requests.jsonl") as web:
            crawl = [rhumb, "crawl", web.seed, "--json", "--quiet", "--dir", str(crawl_dir), "--scope", "any", "--delay", "0s", "--per-ip", "0",
                     "--allow-net", "127.0.0.0/8", "--no-sitemaps", "--memory", args.memory]
            for turn in range(args.rounds):
                for kind in ("alone", "searched"):
                    shutil.rmtree(crawl_dir, ignore_errors=True)
                    if kind == "alone":
                        result, text = measure(crawl)
                        titles = titles or titles_of(rhumb, crawl_dir)
                    else:
                        with Asking(rhumb, crawl_dir, titles, args.rate, turn) as asking:
                            result, text = measure(crawl)
                        answers += asking.answers
                        result["queries"] = len(asking.answers)
                    result["pages"] = json.loads(text)["pages"]
                    runs[kind].append(result)
                    say(f"{kind:8}  {per_page(result):.3f} CPU-ms a page, {result['wall_seconds']:.1f} s, {result.get('queries', 0)} queries")
    low = {kind: min(map(per_page, results)) for kind, results in runs.items()}
    share = low["searched"] / low["alone"] - 1
    say(f"{runs['alone'][0]['pages']} pages: {args.rate:g} queries a second add {share:+.1%} to the crawler's processor time (at most {SHARE_MAX:.0%})")
    if share > SHARE_MAX:
        failed.append(f"a crawl that is searched costs {share:.1%} more than one that is not, more than {SHARE_MAX:.0%}")
    figures = {}
    if len(answers) < 100:
        failed.append(f"only {len(answers)} queries were answered while a crawl ran: too few to say how long they take")
    else:
        figures = {"server": spread([a["took_us"] for a in answers]), "client": spread([a["measured_us"] for a in answers]),
                   "with_results": sum(a["results"] > 0 for a in answers) / len(answers), "pages_most": max(a["pages"] for a in answers)}
        for who, told in (("server", "as the server tells"), ("client", "as measured, over loopback")):
            f = figures[who]
            say(f"{f['queries']} answers {told}: {f['median_us'] / 1e3:.2f} ms in the middle, {f['p99_us'] / 1e3:.2f} ms in 99 of 100, "
                f"{f['most_us'] / 1e3:.1f} ms at most")
        tail = figures["server"]["p99_us"] / figures["server"]["median_us"]
        say(f"99 of 100 answers take at most {tail:.1f} times the middle (at most {TAIL_MAX:g}); {figures['with_results']:.0%} have results")
        if tail > TAIL_MAX:
            failed.append(f"one answer in a hundred takes {tail:.1f} times the middle, more than {TAIL_MAX:g}")
    for line in failed:
        say(f"FAIL  {line}")
    if not failed:
        say("pass  a crawl hardly notices that it is searched, and answers take about the same time")
    if args.json:
        keep("search-while-crawling", {"command": "make bench-search ARGS='" + " ".join(sys.argv[1:]) + "'", "date": datetime.date.today().isoformat(),
                                       "machine": machine(), "versions": {"rhumb": version([rhumb, "--version"])},
                                       "web": {"hosts": args.hosts, "pages": args.pages}, "rate": args.rate, "runs": runs, "share": share,
                                       "share_max": SHARE_MAX, "latency": figures, "tail_max": TAIL_MAX, "failed": failed})
    return 1 if failed else 0


def per_page(result):
    return result["cpu_seconds"] * 1e3 / result["pages"]


def spread(values):
    ordered = sorted(values)
    return {"queries": len(ordered), "median_us": statistics.median(ordered), "p99_us": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
            "most_us": ordered[-1]}


def titles_of(rhumb, crawl_dir):
    """The words of the titles of pages."""
    rows = subprocess.run([rhumb, "export", str(crawl_dir), "--format", "jsonl", "-"], capture_output=True, text=True, check=True).stdout
    titles = [re.findall(r"\w+", json.loads(row).get("title") or "") for row in rows.splitlines()]
    return [words for words in titles if words]


class Asking:
    """Whoever asks: in its block, a server for the crawl that is about to begin and threads that send it queries at a steady pace."""

    def __init__(self, rhumb, crawl_dir, titles, rate, seed):
        self.rhumb, self.crawl_dir, self.titles, self.rate, self.seed = rhumb, crawl_dir, titles, rate, seed
        self.answers, self.trouble, self.over = [], [], threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        if self.trouble:
            raise SystemExit(f"a query failed: {self.trouble[0]}")

    def run(self):
        serve = None
        # There is nothing to serve before the first pages are on disk.
        while serve is None and not self.over.wait(0.2):
            serve = self.start()
        if serve is None:
            return
        process, port = serve
        askers = [threading.Thread(target=self.ask, args=(port, n)) for n in range(ASKERS)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    def start(self):
        if not (self.crawl_dir / "index" / "parts").exists():
            return None
        process = subprocess.Popen([self.rhumb, "serve", str(self.crawl_dir), "--listen", "127.0.0.1:0", "--json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        line = process.stdout.readline()
        if not line:
            process.wait()
            return None
        return process, urllib.parse.urlsplit(json.loads(line)["url"]).port

    def ask(self, port, number):
        draw, every = random.Random(self.seed * ASKERS + number), ASKERS / self.rate
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        due = time.monotonic() + number * every / ASKERS
        try:
            while not self.over.wait(max(0.0, due - time.monotonic())):
                words = draw.choice(self.titles)
                length = min(draw.choice((1, 2, 2, 3)), len(words))
                first = draw.randrange(len(words) - length + 1)
                query = urllib.parse.urlencode({"q": " ".join(words[first:first + length])})
                began = time.monotonic()
                connection.request("GET", f"/api/search?{query}")
                answer = connection.getresponse()
                body = answer.read()
                took = time.monotonic() - began
                if answer.status != 200:
                    raise RuntimeError(f"{answer.status}: {body[:200]!r}")
                found = json.loads(body)
                # Queries that meet an empty index cost nothing, and would make the middle look good.
                if found["pages"]:
                    self.answers.append({"took_us": found["took_us"], "measured_us": took * 1e6, "results": len(found["results"]), "pages": found["pages"]})
                due += every
        except Exception as error:  # whatever it is, the run must not pass without having asked
            self.trouble.append(error)
        finally:
            connection.close()


if __name__ == "__main__":
    sys.exit(main())
