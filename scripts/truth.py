#!/usr/bin/python3
"""Serves an app live at parts of what its machines carry, beside the simulation of the same queries.

    scripts/truth.py CONFIG APP [--samples FOLDER] [--parts 0.3,0.6,0.9] [--carried N] [--runs 10] [--seconds 15]
                     [--program bin/sluice]

CONFIG has a profile and a gRPC address that is free. What is carried, in queries/s, is --carried, or the highest rate at
which at most 1 % is late in a simulation, which knows nothing of what the queries hold. A row for each run: live and simulated p50, p95, p99 and violations. A line for each part: in how many runs
p50 and p95 were within 10 %, p99 within 15 %, and violations within a point.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile
import time


def main():
    p = argparse.ArgumentParser()
    p.add_argument("config")
    p.add_argument("app")
    p.add_argument("--samples")
    p.add_argument("--parts", default="0.3,0.6,0.9")
    p.add_argument("--carried", type=float, default=0)
    p.add_argument("--runs", type=int, default=10)
    p.add_argument("--seconds", type=int, default=15)
    p.add_argument("--program", default="bin/sluice")
    o = p.parse_args()

    def run(*args):
        done = subprocess.run([o.program, *args], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(args)}: {done.stderr or done.stdout}")
        return done.stdout

    def late(rate):
        out = run("simulate", "-f", o.config, "--app", o.app, "--request-rate-range", f"{rate:g}", "--duration", "10s",
                  "--json")
        return json.loads(out)[0]["overall"]["violation_ratio"]

    low, high = o.carried, 1.0
    while not o.carried and late(high) <= 0.01:
        low, high = high, 2 * high
    for _ in range(0 if o.carried else 6):
        mid = (low + high) / 2
        low, high = (mid, high) if late(mid) <= 0.01 else (low, mid)
    text = open(o.config, encoding="utf-8").read()
    address = re.search(r'grpc: "([^"]+)"', text).group(1)
    print(f"{o.app}: {low:.3g} queries/s are carried", flush=True)
    print("part | seed | p50 ms | p95 ms | p99 ms | late % | (live, simulated)")
    with tempfile.TemporaryDirectory() as dir:
        for part in map(float, o.parts.split(",")):
            good = {"p50": 0, "p95": 0, "p99": 0, "late": 0}
            for seed in range(1, o.runs + 1):
                server = subprocess.Popen([o.program, "serve", "-f", o.config], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
                time.sleep(4)
                record = os.path.join(dir, "run.jsonl")
                args = ["load", "-u", "grpc://" + address, "-f", o.config, "--app", o.app, "--request-rate-range",
                        f"{part * low:g}", "--duration", f"{o.seconds}s", "--warmup", "2s", "--seed", str(seed),
                        "--stage-timings", "--record", record]
                if o.samples:
                    args += ["--samples", o.samples]
                run(*args)
                server.terminate()
                server.wait()
                both = json.loads(run("simulate", "-f", o.config, "--replay", record, "--json"))
                live, sim = both["live"]["overall"], both["simulated"]["overall"]
                row = [f"{part:g}", str(seed)]
                for q, within in (("p50", 0.10), ("p95", 0.10), ("p99", 0.15)):
                    a, b = live["latency"][q + "_ms"], sim["latency"][q + "_ms"]
                    good[q] += abs(a - b) <= within * a
                    row.append(f"{a:.3g}, {b:.3g}")
                a, b = 100 * live["violation_ratio"], 100 * sim["violation_ratio"]
                good["late"] += abs(a - b) <= 1
                row.append(f"{a:.2f}, {b:.2f}")
                print(" | ".join(row), flush=True)
            print(f"{part:g}: of {o.runs} runs within the bounds: " +
                  ", ".join(f"{k} {v}" for k, v in good.items()), flush=True)


if __name__ == "__main__":
    main()
