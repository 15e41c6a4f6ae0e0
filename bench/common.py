"""What the measurements share: the program, a served synthetic web, the cost of a child process, keeping a result."""

import contextlib
import datetime
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def say(text=""):
    print(text, flush=True)


def build():
    """The release binary, or the one that RHUMB names."""
    if os.environ.get("RHUMB"):
        return os.environ["RHUMB"]
    say("building the release program (cargo build --release)")
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "rhumb"], cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    return str(Path(target) / "release" / "rhumb")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Web:
    """A synthetic web in its own process; `count()` after the block tells what it was asked."""

    def __init__(self, rhumb, hosts, pages, log, *more):
        self.port, self.log = free_port(), Path(log)
        self.command = [rhumb, "sim", "serve", "--plain", "--loopback", "--exact", "--hosts", str(hosts), "--pages", str(pages),
                        "--listen", f"127.0.0.1:{self.port}", "--log", str(log), "--json", *more]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.seed = json.loads(self.process.stdout.readline())["seed_url"]
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def count(self):
        """Requests for pages (robots.txt aside), the distinct pages among them that were served, requests by status."""
        requests, pages, by_status = 0, set(), {}
        for line in self.log.open():
            entry = json.loads(line)
            if "status" not in entry or entry["path"] == "/robots.txt":
                continue
            requests += 1
            by_status[entry["status"]] = by_status.get(entry["status"], 0) + 1
            if entry["status"] == 200:
                pages.add((entry["host"], entry["path"]))
        return requests, len(pages), by_status


def high_water(pid):
    """Peak memory of a running process. Not `ru_maxrss`: that begins with the size of whoever started the process."""
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


def measure(command, cwd=None, codes=(0,), interrupt_when=None, timeout=1800):
    """Runs a command to its end: processor time of it and its children, peak memory, wall time, what it printed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd)
        sent, rss = False, 0
        while True:
            rss = max(rss, high_water(child.pid))
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if interrupt_when and not sent and interrupt_when():
                child.send_signal(signal.SIGINT)
                sent = True
            if time.monotonic() - began > timeout:
                child.kill()
            time.sleep(0.005)
        wall = time.monotonic() - began
        code = child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        result = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "user_seconds": usage.ru_utime, "system_seconds": usage.ru_stime,
                  "wall_seconds": wall, "rss_bytes": rss or usage.ru_maxrss * 1024, "exit": code, "interrupted": sent}
        text, errors = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if code not in codes:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {code}\n{errors[-2000:]}")
    return result, text


def machine():
    """The machine, without its name."""
    model = platform.machine()
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        model = found.group(1) if found else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cores": os.cpu_count(), "memory_gib": round(memory / 2**30), "system": platform.system(),
            "kernel": platform.release().split("-")[0], "load_average": [round(x, 2) for x in os.getloadavg()]}


def keep(name, document):
    """Writes bench/runs/<date>-<machine>/<name>.json."""
    about = document["machine"]
    words = re.sub(r"\(.*?\)|@.*$|CPU|Processor", "", about["cpu"])
    slug = "-".join(re.findall(r"[a-z0-9.]+", words.lower()))[:40].strip("-")
    folder = ROOT / "bench" / "runs" / f"{datetime.date.today().isoformat()}-{slug}-{about['cores']}-cores"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(document, indent=1) + "\n")
    say(f"kept as {file.relative_to(ROOT)}")


def version(command):
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout or done.stderr).strip().splitlines()[0]


def scratch():
    """A directory for one run, removed afterwards."""
    return tempfile.TemporaryDirectory(prefix="rhumb-bench-")
