"""Measures the latency of networks by batch and by how many run at once, on one device, with PyTorch.

Writes, into --out: profile.json (a profile as `sluice profile` writes it: rows of all points, memory, and how the
accelerator was meanwhile), rows.csv (the same points, and those of several processes), and machine.json.

A run is what a worker does for a batch: inputs from the processor's memory (pinned) to the device, the network, outputs
back. `streams` has so many threads of one process, each with its own stream; `processes` so many processes.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import networks  # noqa: E402
import tiny  # noqa: E402

ALL = {**networks.NETWORKS, **tiny.NETWORKS}
LONGEST = 2.0  # seconds of a batch from which larger ones are not tried
WARM = 2  # runs that do not count
AFTER = 45  # seconds from which no more is begun in several processes


def is_out_of_memory(error: BaseException) -> bool:
    """Reports whether a run failed because the device lacks memory."""
    return "out of memory" in str(error).lower()


class Runner:
    """One network on one device, as one worker has it."""

    def __init__(self, name: str, device: str, half: bool) -> None:
        self.network, self.device = ALL[name], device
        torch.manual_seed(1)
        self.module = self.network.build().eval().to(device)
        if half:
            self.module = self.module.half()
        self.half = half

    def inputs(self, batch: int) -> torch.Tensor:
        x = self.network.sample(batch)
        if self.half and x.is_floating_point():
            x = x.half()
        return x.pin_memory() if self.device == "cuda" else x

    def run(self, x: torch.Tensor, stream: Optional[Any] = None) -> None:
        """Runs a batch and waits for its outputs in the processor's memory."""
        with torch.inference_mode():
            if self.device != "cuda":
                self.module(x)
                return
            with torch.cuda.stream(stream):
                self.module(x.to("cuda", non_blocking=True)).to("cpu", non_blocking=True)
                stream.synchronize()

    def new_stream(self) -> Optional[Any]:
        return torch.cuda.Stream() if self.device == "cuda" else None


def at_once(one: Callable[[int, threading.Barrier, float], List[float]], level: int, seconds: float) -> List[float]:
    """Runs so many threads that begin together, for so long, and returns the times of all of their runs."""
    barrier, out, failed = threading.Barrier(level), [], []

    def work(n: int) -> None:
        try:
            out.extend(one(n, barrier, seconds))
        except BaseException as e:  # noqa: BLE001: reported to the caller
            failed.append(e)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(level)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    real = [e for e in failed if not isinstance(e, threading.BrokenBarrierError)]
    if real:
        raise real[0]
    return out


def times(runner: Runner, batch: int, level: int, seconds: float) -> List[float]:
    """The times in seconds of runs of a batch, level of which are under way at once in this process."""

    def one(_: int, barrier: threading.Barrier, seconds: float) -> List[float]:
        x, stream = runner.inputs(batch), runner.new_stream()
        for _ in range(WARM):
            runner.run(x, stream)
        barrier.wait()
        took, end = [], time.perf_counter() + seconds
        while True:
            begun = time.perf_counter()
            runner.run(x, stream)
            now = time.perf_counter()
            took.append(now - begun)
            if now >= end:
                return took

    return at_once(one, level, seconds)


def point(variant: str, device_type: str, batch: int, level: int, took: List[float]) -> Dict[str, Any]:
    """A point of a profile file, in microseconds."""
    us = sorted(1e6 * t for t in took)

    def rank(p: float) -> float:
        return us[min(len(us) - 1, int(p * len(us)))]

    return {
        "variant": variant, "device_type": device_type, "batch": batch, "concurrency": level, "samples": len(us),
        "mean_us": statistics.fmean(us), "stddev_us": statistics.pstdev(us), "p50_us": rank(0.50),
        "p90_us": rank(0.90), "p95_us": rank(0.95), "p99_us": rank(0.99), "interpolated": False,
    }


def used_bytes(device: str) -> int:
    """Memory of the device that is in use; of a CPU, that of this process."""
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        return total - free
    try:
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Watch:
    """Looks at the accelerator every two seconds: clocks, what holds them down, power."""

    FIELDS = ("name,uuid,driver_version,memory.total,memory.used,clocks.sm,clocks.max.sm,power.draw,power.limit,"
              "temperature.gpu,utilization.gpu,clocks_throttle_reasons.active")
    REASONS = {0x1: "idle", 0x2: "clocks set by applications", 0x4: "power limit", 0x8: "hardware slowdown",
               0x10: "boosts with others", 0x20: "heat (software)", 0x40: "heat (hardware)", 0x80: "power brake"}

    def __init__(self, device: str) -> None:
        self.tool = os.environ.get("SLUICE_NVIDIA_SMI") or shutil.which("nvidia-smi") if device == "cuda" else None
        self.rows: List[List[str]] = []
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        while self.tool:
            try:
                out = subprocess.run([self.tool, "--query-gpu=" + self.FIELDS, "--format=csv,noheader,nounits"],
                                     capture_output=True, text=True, timeout=20, check=True).stdout
                self.rows.append([c.strip() for c in out.splitlines()[0].split(",")])
            except (OSError, subprocess.SubprocessError, IndexError):
                return
            if self.end.wait(2):
                return

    def seen(self, device_type: str) -> List[Dict[str, Any]]:
        """What was seen, as a profile file has it."""
        self.end.set()
        self.thread.join()
        if not self.rows:
            return []

        def numbers(column: int, busy: bool = False) -> List[float]:
            out = []
            for r in self.rows:
                try:
                    if not busy or float(r[10]) >= 5:
                        out.append(float(r[column]))
                except ValueError:
                    pass
            return out or [0.0]

        held: List[str] = []
        for r in self.rows:
            try:
                bits = int(r[11], 16) if float(r[10]) >= 5 else 0
            except ValueError:
                bits = 0
            held += [n for b, n in self.REASONS.items() if bits & b and n not in held]
        first, mib = self.rows[0], 1 << 20
        return [{
            "device_type": device_type, "name": first[0], "uuid": first[1], "driver": first[2],
            "memory_bytes": int(numbers(3)[0]) * mib, "samples": len(self.rows),
            "least_clock_mhz": min(numbers(5, True)), "mean_clock_mhz": statistics.fmean(numbers(5, True)),
            "most_clock_mhz": max(numbers(6)), "throttled": held, "mean_watts": statistics.fmean(numbers(7, True)),
            "most_watts": max(numbers(7)), "power_limit_watts": max(numbers(8)), "most_celsius": max(numbers(9)),
            "most_memory_used_bytes": int(max(numbers(4))) * mib,
        }]


def speed(device: str, half: bool) -> Dict[str, float]:
    """What the device does at most: products of matrices, and copies within its memory."""
    n = 8192 if device == "cuda" else 1024
    kind = torch.float16 if half else torch.float32
    a, b = torch.rand(n, n, dtype=kind, device=device), torch.rand(n, n, dtype=kind, device=device)

    def best(work: Callable[[], Any]) -> float:
        least = float("inf")
        for _ in range(5):
            begun = time.perf_counter()
            work()
            if device == "cuda":
                torch.cuda.synchronize()
            least = min(least, time.perf_counter() - begun)
        return least

    product, copy = best(lambda: a @ b), best(a.clone)
    return {"teraflops": 2 * n**3 / product / 1e12, "copy_gb_per_s": 2 * a.numel() * a.element_size() / copy / 1e9}


def worker(pipe: Any, names: List[str], device: str, half: bool) -> None:
    """One of several processes: runs what it is told, for so long, from a time on."""
    torch.set_num_threads(1)
    have = {n: Runner(n, device, half) for n in names}
    pipe.send("ready")
    while True:
        ask = pipe.recv()
        if ask is None:
            return
        name, batch, begin, seconds = ask
        runner = have[name]
        x, stream = runner.inputs(batch), runner.new_stream()
        for _ in range(WARM):
            runner.run(x, stream)
        time.sleep(max(0.0, begin - time.time()))
        took, end = [], time.time() + seconds
        while time.time() < end or not took:
            begun = time.perf_counter()
            runner.run(x, stream)
            took.append(time.perf_counter() - begun)
        pipe.send(took)


def in_processes(names: List[str], batches: List[int], levels: List[int], device: str, half: bool, seconds: float,
                 until: float) -> List[Tuple[str, int, int, List[float]]]:
    """The times of runs in several processes, each with the networks for itself; none is begun after until."""
    context = multiprocessing.get_context("spawn")
    out, started = [], []
    try:
        for _ in range(max(levels)):
            ours, theirs = context.Pipe()
            p = context.Process(target=worker, args=(theirs, names, device, half), daemon=True)
            p.start()
            started.append((p, ours))
        for _, pipe in started:
            if not pipe.poll(120):
                raise TimeoutError("a process did not start within two minutes")
            pipe.recv()
        for name in names:
            for level in levels:
                for batch in batches:
                    if time.time() > until:
                        return out
                    begin = time.time() + 0.2 + WARM * 0.05
                    for _, pipe in started[:level]:
                        pipe.send((name, batch, begin, seconds))
                    took: List[float] = []
                    for _, pipe in started[:level]:
                        if not pipe.poll(60 + seconds):
                            raise TimeoutError("a process did not answer within a minute")
                        took += pipe.recv()
                    out.append((name, batch, level, took))
    finally:
        for p, pipe in started:
            try:
                pipe.send(None)
            except OSError:
                pass
            p.join(5)
            if p.is_alive():
                p.kill()
    return out


def measure(args: argparse.Namespace) -> None:
    device, half = args.device, args.device == "cuda" and not args.full
    if device == "cpu":
        torch.set_num_threads(1)  # each of those at once has one thread, as instances with one core have
    else:
        torch.zeros(1, device=device)  # the first use takes memory that belongs to no network
    names = args.networks.split(",")
    batches = [int(x) for x in args.batches.split(",")]
    levels = [int(x) for x in args.levels.split(",")]
    begun, watch = time.time(), Watch(device)
    points: List[Dict[str, Any]] = []
    rows: List[Dict[str, Any]] = []
    loads, memory = [], []

    def keep(how: str, p: Dict[str, Any]) -> None:
        rows.append({"how": how, **p, "items_per_s": p["batch"] * p["concurrency"] / p["mean_us"] * 1e6})
        if how == "streams":
            points.append(p)

    left = len(names) * len(batches) * len(levels)
    for name in names:
        before, start = used_bytes(device), time.perf_counter()
        runner = Runner(name, device, half)
        runner.run(runner.inputs(1), runner.new_stream())
        loads.append({"variant": name, "device_type": args.device_type, "load_ms": 1e3 * (time.perf_counter() - start)})
        fits = {"variant": name, "device_type": args.device_type, "loaded_bytes": max(0, used_bytes(device) - before)}
        stop, per_item = max(batches) + 1, 0.0
        for level in levels:
            for batch in batches:
                if batch >= stop:
                    left -= 1
                    continue
                rest = args.budget - (time.time() - begun)
                # The batch is believed to take as long for each item as the last. None is begun that takes too much of
                # the time that is left; batches of one are, always.
                if batch > 1 and (WARM + 1) * per_item * batch > max(0.0, rest / 4):
                    left -= 1
                    continue
                seconds = max(args.least, min(args.most, rest / max(left, 1)))
                left -= 1
                try:
                    took = times(runner, batch, level, seconds)
                except RuntimeError as e:
                    if not is_out_of_memory(e) or batch == 1 and level == 1:
                        raise
                    torch.cuda.empty_cache()
                    smaller = [b for b in batches if b < batch]
                    fits["most_batch"], stop = max(smaller, default=1), batch
                    print(f"{name}: no memory for batches of {batch}, {level} at once", flush=True)
                    continue
                p = point(name, args.device_type, batch, level, took)
                keep("streams", p)
                if level == levels[0]:
                    fits["batch"], fits["at_batch_bytes"] = batch, max(0, used_bytes(device) - before)
                per_item = min(took) / batch
                if min(took) > LONGEST:
                    stop = min(stop, batch + 1)
            print(f"{name}: {level} at once measured, {time.time() - begun:.0f} s", flush=True)
        memory.append(fits)
        del runner
        if device == "cuda":
            torch.cuda.empty_cache()
    if args.processes:
        several = [n for n in args.several.split(",") if n in names] or names[:1]
        for name, batch, level, took in in_processes(
            several, [b for b in batches if b in (1, 8)] or batches[:1], [n for n in levels if n <= args.processes],
            device, half, args.least, max(begun + args.budget, time.time()) + AFTER,
        ):
            keep("processes", point(name, args.device_type, batch, level, took))
    os.makedirs(args.out, exist_ok=True)
    host = {"cpu": processor(), "cores": os.cpu_count() or 1, "os": "linux/" + platform.machine()}
    seen = watch.seen(args.device_type)
    if seen:
        host["accelerator"] = f"{seen[0]['name']}, driver {seen[0]['driver']}"
    profile: Dict[str, Any] = {
        "version": 1, "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "host": host, "device_type": args.device_type, "points": points, "loads": loads, "memory": memory,
    }
    if seen:
        profile["accelerators"] = seen
    write(os.path.join(args.out, "profile.json"), profile)
    write(os.path.join(args.out, "machine.json"), {
        "device": torch.cuda.get_device_name() if device == "cuda" else processor(), "device_type": args.device_type,
        "torch": torch.__version__, "numbers": "float16" if half else "float32", **speed(device, half),
        "seconds": round(time.time() - begun, 1),
        "networks": {n: {"accuracy": ALL[n].accuracy, "source": ALL[n].source, "input": ALL[n].size} for n in names},
    })
    with open(os.path.join(args.out, "rows.csv"), "w", newline="", encoding="utf-8") as f:
        table = csv.DictWriter(f, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def processor() -> str:
    """The name of the processor on Linux, elsewhere the architecture."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def write(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, help="folder to write to")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--device-type", default="", help="its name in the profile; accelerator or cpu unless given")
    p.add_argument("--networks", default=",".join(networks.NETWORKS), help="comma-separated names")
    p.add_argument("--batches", default="1,2,4,8,16,32,64,128")
    p.add_argument("--levels", default="1,2,4,8", help="how many run at once")
    p.add_argument("--budget", type=float, default=240, help="seconds for all points")
    p.add_argument("--least", type=float, default=0.15, help="least seconds of a point")
    p.add_argument("--most", type=float, default=1.0, help="most seconds of a point")
    p.add_argument("--processes", type=int, default=4, help="most processes at once; 0 leaves them out")
    p.add_argument("--several", default="resnet50,bert-base,ssd300-vgg16", help="networks measured in processes")
    p.add_argument("--full", action="store_true", help="float32 on an accelerator, too; else float16")
    args = p.parse_args()
    args.device_type = args.device_type or ("accelerator" if args.device == "cuda" else "cpu")
    unknown = [n for n in args.networks.split(",") if n not in ALL]
    if unknown:
        p.error(f"there are no networks {unknown}: choose from {sorted(ALL)}")
    measure(args)


if __name__ == "__main__":
    main()
