"""Serves one accelerator and the machine's CPU cores as two kinds of machine under several systems, sends each the same
load, and replays what was sent in the simulator.

Writes, into --out: live.csv (a row for each system: violations, accuracy, p99, goodput; live, simulated, and whether
they agree) and, for each system, what `sluice` printed. With --backend fake nothing is run: workers sleep.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
#: How far live and simulated may be apart: violations and accuracy by a point, p99 by a tenth.
POINT, TENTH = 0.01, 0.10
SYSTEMS = "sluice,ramsis,proteus,scrooge,kairos"
#: What a user of a framework does by hand: one queue, dynamic batching with a fixed delay, one variant.
BY_HAND = "by-hand"


def free_ports(n: int) -> List[int]:
    """Ports of this machine that nothing listens on."""
    sockets = [socket.socket() for _ in range(n)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def configuration(args: argparse.Namespace, ports: List[int], system: str, only: Optional[str]) -> str:
    """A sluice.yaml, as JSON, which is YAML, too."""
    accelerator: Dict[str, Any] = {"name": "accelerator", "price_per_hour": args.prices[0], "cores": 1}
    cpu = {"name": "cpu", "price_per_hour": args.prices[1], "cores": 1}
    if args.backend == "python":
        accelerator["accelerators"] = 1 if args.accelerator else 0
        backends: List[Dict[str, Any]] = [{"kind": "python", "interpreter": sys.executable}] * 2
    else:
        backends = [{"kind": "fake", "latency": "4ms", "latency_per_item": "500us"},
                    {"kind": "fake", "latency": "5ms", "latency_per_item": "5ms"}]
    variants = []
    for name, accuracy in args.variants.items():
        v: Dict[str, Any] = {"name": name, "accuracy": accuracy, "max_batch": args.max_batch}
        if args.backend == "python":
            v["python"] = os.path.join(HERE, "serving.py") + ":Pictures"
            v["options"] = {"network": name}
        if only in (None, name):
            variants.append(v)
    app: Dict[str, Any] = {"name": "pictures", "slo": {"latency": f"{args.slo}ms"}, "demand": args.rate,
                           "variants": variants}
    app["inputs"] = [{"name": "picture", "datatype": "UINT8", "shape": [-1, 3, args.size, args.size]}]
    chosen: Dict[str, Any] = {"name": system}
    if system == BY_HAND:
        chosen = {"name": "triton-like", "timeout": f"{args.delay}ms"}
    out: Dict[str, Any] = {
        "version": 1, "device_types": [accelerator, cpu],
        "workers": [{"name": "gpu", "device_type": "accelerator", "backend": backends[0]},
                    {"name": "core", "device_type": "cpu", "count": args.cores, "backend": backends[1]}],
        "apps": [app], "system": chosen,
        "server": {"http": f"127.0.0.1:{ports[0]}", "grpc": f"127.0.0.1:{ports[1]}", "admin": "off",
                   "not_ready": "0s"},
    }
    if args.backend == "python":
        out["profiles"] = [os.path.abspath(os.path.join(args.out, "live.profile.json"))]
    return json.dumps(out, indent=2)


def call(args: argparse.Namespace, log: str, *words: str, timeout: float = 300) -> str:
    """Runs sluice and returns what it prints. Its complaints go to a file."""
    with open(os.path.join(args.out, log), "a", encoding="utf-8") as f:
        f.write("$ sluice " + " ".join(words) + "\n")
        f.flush()
        done = subprocess.run([args.sluice, *words], stdout=subprocess.PIPE, stderr=f, text=True, timeout=timeout)
    if done.returncode not in (0, 5):
        raise RuntimeError(f"sluice {words[0]} ended with status {done.returncode}; see {log}")
    return done.stdout


def await_ready(server: "subprocess.Popen[str]", port: int, seconds: float) -> None:
    """Waits until a server says that it is ready."""
    until = time.time() + seconds
    while time.time() < until:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with status {server.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=1) as r:
                if r.status == 200:
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError(f"the server was not ready after {seconds:.0f} s")


def run(args: argparse.Namespace, system: str, only: Optional[str]) -> Dict[str, Any]:
    """Serves, loads and replays under one system. Returns its row."""
    ports = free_ports(2)
    name = system
    path = os.path.join(args.out, f"{name}.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(configuration(args, ports, system, only))
    log = f"{name}.log"
    record = os.path.join(args.out, f"{name}.jsonl")
    with open(os.path.join(args.out, log), "a", encoding="utf-8") as f:
        server = subprocess.Popen([args.sluice, "serve", "-f", path], stdout=f, stderr=f, text=True)
    try:
        await_ready(server, ports[0], args.start)
        call(args, log, "load", "-f", path, "-u", f"grpc://127.0.0.1:{ports[1]}", "--request-rate-range",
             str(args.rate), "--duration", f"{args.seconds}s", "--warmup", f"{args.seconds / 5}s", "--record", record,
             "--json", "--seed", "1", timeout=60 + 3 * args.seconds)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
    both = json.loads(call(args, log, "simulate", "-f", path, "--replay", record, "--no-bound", "--json"))
    row: Dict[str, Any] = {"system": system, "rate": args.rate}
    for side in ("live", "simulated"):
        whole = both[side]["overall"]
        row[side + "_violations"] = whole["violation_ratio"]
        row[side + "_accuracy"] = whole["effective_accuracy"]
        row[side + "_p99_ms"] = whole["latency"]["p99_ms"]
        row[side + "_goodput"] = whole["goodput"]
    row["agree"] = (
        abs(row["live_violations"] - row["simulated_violations"]) <= POINT
        and abs(row["live_accuracy"] - row["simulated_accuracy"]) <= POINT
        and abs(row["live_p99_ms"] - row["simulated_p99_ms"]) <= TENTH * max(row["simulated_p99_ms"], 1e-9)
    )
    return row


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sluice", required=True, help="the program")
    p.add_argument("--out", required=True, help="folder to write to")
    p.add_argument("--backend", choices=("python", "fake"), default="python")
    p.add_argument("--accelerator", action="store_true", help="there is one; else the first worker has a core")
    p.add_argument("--systems", default=SYSTEMS)
    p.add_argument("--networks", default="resnet18,resnet50,resnet152", help="variants, from the measured networks")
    p.add_argument("--hand", default="", help="the variant that is served by hand; the middle one unless given")
    p.add_argument("--rate", type=float, default=100, help="queries/s")
    p.add_argument("--seconds", type=float, default=15, help="of load for each system")
    p.add_argument("--slo", type=float, default=100, help="milliseconds")
    p.add_argument("--delay", type=float, default=5, help="milliseconds, of dynamic batching by hand")
    p.add_argument("--cores", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="CPU workers of one core")
    p.add_argument("--size", type=int, default=224, help="of a picture")
    p.add_argument("--max-batch", type=int, default=32)
    p.add_argument("--start", type=float, default=120, help="seconds that a server may take to be ready")
    p.add_argument("--until", type=float, default=0, help="time, in seconds since 1970, from which nothing is begun")
    p.add_argument("--prices", type=lambda s: [float(x) for x in s.split(",")], default=[3.06, 0.83],
                   help="$/h of an accelerator and of a core: Scrooge's V100 and CPU machine")
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    if args.backend == "fake":
        args.variants = {"small": 0.7, "large": 0.8}
    else:
        import serving

        args.variants = {n: serving.ALL[n].accuracy for n in args.networks.split(",")}
        path = os.path.join(args.out, "profile.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(configuration(args, free_ports(2), "triton-like", None))
        call(args, "profile.log", "profile", "-f", path, "-o", os.path.join(args.out, "live.profile.json"),
             "--max-time", "400ms", "--precision", "0.1")
    names = list(args.variants)
    todo = [(s, None) for s in args.systems.split(",")] + [(BY_HAND, args.hand or names[len(names) // 2])]
    rows: List[Dict[str, Any]] = []
    for system, only in todo:
        if args.until and time.time() > args.until:
            print(f"{system}: no time is left", flush=True)
            continue
        try:
            rows.append(run(args, system, only))
        except (RuntimeError, OSError, subprocess.SubprocessError, TimeoutError) as e:
            print(f"{system}: {e}", flush=True)
            continue
        print(json.dumps(rows[-1]), flush=True)
    if not rows:
        sys.exit("no system was measured")
    with open(os.path.join(args.out, "live.csv"), "w", newline="", encoding="utf-8") as f:
        table = csv.DictWriter(f, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
