"""Runs the fuzz targets one after the other and says what came of it.

    make fuzz                            every target for 10 minutes
    make fuzz TARGET='url html' SECONDS=60
    make fuzz ARGS=--json                also keeps the summary under bench/runs/
    make fuzz ARGS=--keep                also takes what reached something new into fuzz/corpus

What libFuzzer makes lies under target/fuzz/: the grown corpora, the findings, one result per target and summary.json, which has
the last result of each. A finding is mended and its input kept: cp it to fuzz/regressions/<target>/<what-it-is>.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
ROOT = FUZZ.parent
WORK = ROOT / "target" / "fuzz"
sys.path.insert(0, str(ROOT / "bench"))
from common import keep, machine, say, version  # noqa: E402

# libdeflate compiles one table into several objects, which is no fault.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_odr_violation=0", "RUST_BACKTRACE": "1"}
# What a corpus in the repository may hold: it is replayed by every test run.
FILES_MAX, FILE_BYTES_MAX, CORPUS_BYTES_MAX = 300, 4096, 160 << 10


def targets():
    return re.findall(r'\[\[bin\]\]\nname = "(\w+)"', (FUZZ / "Cargo.toml").read_text())


def build():
    """The programs of all targets."""
    say("building (cargo +nightly fuzz build)")
    subprocess.run(["cargo", "+nightly", "fuzz", "build"], cwd=ROOT, check=True)
    host = next(l.split()[1] for l in subprocess.run(["rustc", "-vV"], capture_output=True, text=True).stdout.splitlines() if l.startswith("host:"))
    return FUZZ / "target" / host / "release"


def known(target):
    """What is in the repository for a target."""
    return [d for d in (FUZZ / "corpus" / target, FUZZ / "regressions" / target) if d.is_dir()]


def run(program, target, seconds, commit):
    corpus, findings = WORK / "corpus" / target, WORK / "findings" / target
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    command = [str(program), str(corpus), *map(str, known(target)), f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=1024",
               "-malloc_limit_mb=512", f"-max_len={FILE_BYTES_MAX}", "-print_final_stats=1", f"-artifact_prefix={findings}/"]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=WORK, env=ENVIRONMENT)
    (WORK / "results").mkdir(exist_ok=True)
    (WORK / "results" / f"{target}.log").write_text(done.stderr)

    def last(pattern):
        found = re.findall(pattern, done.stderr)
        return int(found[-1]) if found else 0

    found = sorted(p.name for p in set(findings.iterdir()) - before)
    return {
        "seconds": round(time.monotonic() - began), "executions": last(r"stat::number_of_executed_units:\s*(\d+)"),
        "executions_per_second": last(r"stat::average_exec_per_sec:\s*(\d+)"), "coverage_edges": last(r"\bcov: (\d+)"),
        "features": last(r"\bft: (\d+)"), "corpus_files": last(r"\bcorp: (\d+)/"), "peak_rss_mb": last(r"stat::peak_rss_mb:\s*(\d+)"),
        "slowest_input_seconds": last(r"stat::slowest_unit_time_sec:\s*(\d+)"), "findings": found, "exit": done.returncode,
        "commit": commit, "date": datetime.date.today().isoformat(),
    }


def take_in(program, target):
    """The fewest inputs that reach all that was reached, the small ones first, into the repository."""
    chosen = WORK / "chosen" / target
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir(parents=True)
    sources = [str(d) for d in known(target) + [WORK / "corpus" / target]]
    subprocess.run([str(program), "-set_cover_merge=1", f"-max_len={FILE_BYTES_MAX}", str(chosen), *sources], check=True, capture_output=True, env=ENVIRONMENT)
    folder, taken, size = FUZZ / "corpus" / target, 0, 0
    there = {p.read_bytes() for d in known(target) for p in d.iterdir()}
    for path in sorted(chosen.iterdir(), key=lambda p: p.stat().st_size):
        data = path.read_bytes()
        size += len(data)
        if taken >= FILES_MAX or size > CORPUS_BYTES_MAX:
            break
        if data not in there:
            shutil.copy(path, folder / path.name[:12])
            taken += 1
    say(f"{target:9} {taken} inputs taken in")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--json", action="store_true", help="keep the summary under bench/runs/")
    parser.add_argument("--keep", action="store_true", help="take new inputs into fuzz/corpus")
    parser.add_argument("--programs", type=Path, help="where the targets are built already")
    args = parser.parse_args()
    wanted = args.targets or targets()
    if unknown := set(wanted) - set(targets()):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    programs = args.programs or build()
    commit = version(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"])
    failed = []
    for target in wanted if args.seconds else []:
        result = run(programs / target, target, args.seconds, commit)
        (WORK / "results" / f"{target}.json").write_text(json.dumps(result, indent=1) + "\n")
        clean = not result["findings"] and result["exit"] == 0
        say(f"{target:9} {result['executions']:>11,} runs, {result['coverage_edges']:>6} edges, {result['corpus_files']:>5} inputs, "
            f"{result['peak_rss_mb']:>5} MB  {'clean' if clean else 'FOUND ' + (', '.join(result['findings']) or 'something: see the log')}")
        if not clean:
            failed.append(target)
    if args.keep:
        for target in wanted:
            take_in(programs / target, target)
    results = {t: json.loads(p.read_text()) for t in targets() if (p := WORK / "results" / f"{t}.json").exists()}
    summary = {"command": "make fuzz", "date": datetime.date.today().isoformat(), "machine": machine(),
               "versions": {"cargo-fuzz": version(["cargo", "fuzz", "--version"]), "rustc": version(["rustc", "+nightly", "--version"])},
               "limits": {"timeout_seconds": 10, "rss_mb": 1024, "input_bytes": FILE_BYTES_MAX}, "targets": results}
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    say(f"summary in {(WORK / 'summary.json').relative_to(ROOT)}")
    if args.json:
        keep("fuzz", summary)
    if failed:
        raise SystemExit(f"found something: {', '.join(failed)} (target/fuzz/findings, target/fuzz/results/*.log)")


main()
