#!/usr/bin/python3
"""Serves the encoders of encoder.py live under texts of many lengths, beside their simulation and another program.

    scripts/lengths/live.py MODELS LENGTHS [--other PROGRAM] [--rates 20,40] [--seconds 20]

MODELS is what encoder.py has written, LENGTHS a file with one length a line. The models run on one core; clients and
front end have the other. A row for each program and rate: answers in time (objective 200 ms), mean accuracy, 95th
percentile, and what the simulator says of the same queries.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time

CONFIGURATION = """version: 1
device_types: [{{name: core, cores: 1}}]
workers: [{{name: here}}]
models: {{repository: {models}}}
server: {{http: "off", grpc: "127.0.0.1:{port}", admin: "off"}}
apps:
  - name: language
    slo: {{latency: 200ms, percentile: 99}}
    variants:
{variants}
"""
PORT = 18461


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(args)}: {done.stderr or done.stdout}")
    return done.stdout


def main():
    p = argparse.ArgumentParser()
    p.add_argument("models")
    p.add_argument("lengths")
    p.add_argument("--program", default="bin/sluice")
    p.add_argument("--other")
    p.add_argument("--rates", default="20,40,60,80,100,120")
    p.add_argument("--seconds", default="20")
    o = p.parse_args()
    variants = ""
    for line in open(os.path.join(o.models, "accuracy"), encoding="utf-8"):
        name, accuracy = line.split()
        variants += f"      - {{name: {name}, accuracy: {accuracy}, max_batch: 32}}\n"
    with tempfile.TemporaryDirectory() as out:
        config = os.path.join(out, "sluice.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIGURATION.format(models=os.path.abspath(o.models), port=PORT, variants=variants))
        print("program | queries/s | in time | accuracy | p50, p95 ms | simulated: in time | accuracy | p50, p95 ms")
        for program in [o.program] + ([o.other] if o.other else []):
            profile = os.path.join(out, os.path.basename(program) + ".json")
            began = time.time()
            run(program, "profile", "-f", config, "-o", profile, "--max-batch", "16")
            print(f"# {program}: measured in {time.time() - began:.0f} s", flush=True)
            for rate in o.rates.split(","):
                show(o, program, config, profile, rate, os.path.join(out, "run.jsonl"))


def show(o, program, config, profile, rate, record):
    server = subprocess.Popen([program, "serve", "-f", config, "--profile", profile], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        time.sleep(4)
        live = json.loads(run(
            o.program, "load", "-f", config, "-u", f"grpc://127.0.0.1:{PORT}", "--request-rate-range", rate,
            "--duration", o.seconds + "s", "--lengths", o.lengths, "--warmup", "2s", "--record", record, "--json"))[0]
    finally:
        server.terminate()
        server.wait()
    row = [os.path.basename(program), rate] + cells(live["report"]["overall"])
    if program == o.program:
        said = json.loads(run(program, "simulate", "-f", config, "--profile", profile, "--replay", record, "--json"))
        row += cells(said["simulated"]["overall"])
    print(" | ".join(row), flush=True)


def cells(x):
    return [f"{100 * (1 - x['violation_ratio']):.2f} %", f"{100 * x.get('effective_accuracy', 0):.2f} %",
            f"{x['latency']['p50_ms']:.0f}, {x['latency']['p95_ms']:.0f}"]


if __name__ == "__main__":
    main()
