"""Writes report.md of what measure.py and live.py have left in a folder: tables, with published numbers beside them."""

from __future__ import annotations

import csv
import json
import os
import sys
from typing import Any, Dict, List

#: Scrooge, Table 2 and section 3.2: items/s on Azure's P100 and V100, $/h.
TABLE2 = {"ssd300-vgg16": ("SSD-Inception", 14.69, 16.31), "yolov3-416": ("YOLO", 22.17, 26.72)}
PRICES = (2.07, 3.06)
#: Scrooge, section 3.2: SSD-Inception on a P100, items/s by batch and concurrency.
FIGURE5 = {(1, 1): 40.98, (8, 1): 67.52, (8, 4): 77.51}
#: Scrooge, Table 1: the largest over the smallest price and TFLOP/s of one provider's machines (Azure).
TABLE1 = (6.46, 2.41)


def table(rows: List[List[Any]]) -> List[str]:
    """Rows as a table of Markdown; the first is the head."""
    out = ["| " + " | ".join(str(c) for c in rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    return out + ["| " + " | ".join(str(c) for c in r) + " |" for r in rows[1:]]


def read(path: str) -> List[Dict[str, str]]:
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def load(path: str) -> Dict[str, Any]:
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        return dict(json.load(f))


def short(x: float) -> str:
    """A number with three digits or more."""
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def rate(r: Dict[str, str]) -> float:
    return float(r["items_per_s"])


def main(folder: str) -> None:
    devices = [d for d in ("accelerator", "cpu") if os.path.exists(os.path.join(folder, d, "machine.json"))]
    machine = {d: load(os.path.join(folder, d, "machine.json")) for d in devices}
    rows = {d: read(os.path.join(folder, d, "rows.csv")) for d in devices}
    out = ["# Measured on " + " and ".join(machine[d]["device"] for d in devices), ""]
    if "accelerator" not in devices:
        out += ["No accelerator: what follows is of one core of a processor.", ""]
    for d in devices:
        m = machine[d]
        out.append(f"`{d}`: {m['device']}, PyTorch {m['torch']}, {m['numbers']}, measured in {m['seconds']} s.")
        for a in load(os.path.join(folder, d, "profile.json")).get("accelerators", []):
            held = ", ".join(a["throttled"]) or "nothing"
            out.append(f"Clocks {a['mean_clock_mhz']:.0f} MHz in the mean, {a['least_clock_mhz']:.0f} at least, of "
                       f"{a['most_clock_mhz']:.0f}; held down by {held}; {a['mean_watts']:.0f} W in the mean.")
    out += ["", "## Networks", "", "Accuracies are published ones of trained weights; the weights here are random.", ""]
    head = ["network", "accuracy", "of"]
    for d in devices:
        head += [f"{d}: batch 1, ms", "most items/s", "at batch", "at once"]
    lines: List[List[Any]] = [head]
    for n in dict.fromkeys(r["variant"] for d in devices for r in rows[d]):
        source = next(m["networks"][n] for m in machine.values() if n in m["networks"])
        line: List[Any] = [n, source["accuracy"], source["source"]]
        for d in devices:
            own = [r for r in rows[d] if r["variant"] == n and r["how"] == "streams"]
            if not own:
                line += ["", "", "", ""]
                continue
            best = max(own, key=rate)
            one = [r for r in own if r["batch"] == "1" and r["concurrency"] == "1"]
            line += [f"{float(one[0]['mean_us']) / 1e3:.2f}" if one else "", f"{short(rate(best))}", best["batch"],
                     best["concurrency"]]
        lines.append(line)
    out += table(lines) + ["", "## Scrooge, Figure 5 and Table 2", ""]
    out.append("Published: SSD-Inception and YOLO on Azure's P100 and V100. Here: other networks of the same kind.")
    head = ["batch", "at once", "published (P100), items/s"] + [f"ssd300-vgg16 on {d}" for d in devices]
    out += ["", *table([head] + [
        [b, c, want] + [next((f"{short(rate(r))}" for r in rows[d] if r["variant"] == "ssd300-vgg16"
                              and r["how"] == "streams" and r["batch"] == str(b) and r["concurrency"] == str(c)), "")
                        for d in devices] for (b, c), want in FIGURE5.items()])]
    lines = [["", "P100", "V100", "ratio", *devices, "ratio here"], ["$/h", *PRICES, f"{PRICES[1] / PRICES[0]:.2f}",
             *([""] * len(devices)), ""]]
    for n, (name, p100, v100) in TABLE2.items():
        here = [max((rate(r) for r in rows[d] if r["variant"] == n), default=0.0) for d in devices]
        ratio = f"{here[0] / here[1]:.1f}" if len(here) == 2 and here[1] > 0 else ""
        lines.append([f"{name}; here {n}, most items/s", p100, v100, f"{v100 / p100:.2f}",
                      *[f"{short(x)}" if x else "" for x in here], ratio])
    out += ["", *table(lines), "", "## Scrooge, Table 1", ""]
    out.append(f"Published for Azure: the dearest machine costs {TABLE1[0]} times the cheapest, and has {TABLE1[1]} "
               "times its TFLOP/s. Prices cannot be measured; here is what the kinds of machine do at most.")
    out += ["", *table([["", "TFLOP/s", "copies, GB/s"]] + [
        [d, f"{machine[d]['teraflops']:.2f}", f"{machine[d]['copy_gb_per_s']:.0f}"] for d in devices])]
    out += ["", "## Streams of one process beside processes", ""]
    lines = [["device", "network", "batch", "at once", "streams, items/s", "processes, items/s", "ratio"]]
    for d in devices:
        by = {(r["how"], r["variant"], r["batch"], r["concurrency"]): r for r in rows[d]}
        for (how, *key), r in by.items():
            other = by.get(("processes", *key))
            if how == "streams" and other:
                lines.append([d, *key, f"{short(rate(r))}", f"{short(rate(other))}", f"{rate(other) / rate(r):.2f}"])
    out += table(lines) + ["", "## Systems, live beside simulated", ""]
    live = read(os.path.join(folder, "live", "live.csv"))
    if live:
        lines = [["system", "violations live", "simulated", "accuracy live", "simulated", "p99 ms live", "simulated",
                  "goodput", "over by hand", "agree"]]
        hand = next((float(r["live_goodput"]) for r in live if r["system"] == "by-hand"), 0.0)
        for r in live:
            x = {k: float(v) for k, v in r.items() if k not in ("system", "agree")}
            lines.append([r["system"], f"{100 * x['live_violations']:.2f} %",
                          f"{100 * x['simulated_violations']:.2f} %", f"{100 * x['live_accuracy']:.2f} %",
                          f"{100 * x['simulated_accuracy']:.2f} %",
                          f"{x['live_p99_ms']:.1f}", f"{x['simulated_p99_ms']:.1f}", f"{x['live_goodput']:.1f}",
                          f"{x['live_goodput'] / hand:.2f}" if hand else "", r["agree"]])
        out += table(lines)
        out += ["", "Agree: violations and accuracy within one point, p99 within a tenth of the simulated one."]
    else:
        out.append("Not measured.")
    with open(os.path.join(folder, "report.md"), "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
