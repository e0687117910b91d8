#!/usr/bin/env bash
# Measures the accelerator of this machine: latency by batch and by how many run at once, for the networks of
# scripts/accelerator/networks.py; streams beside processes; then systems live on it and on CPU cores, beside their
# simulation. Ends within ten minutes. Without an accelerator it measures a smaller set on a core.
#
#   scripts/measure-accelerator.sh [--out FOLDER] [--minutes 9] [--tiny] [--no-live]
#
# --tiny tries all steps in seconds, with two networks that compute next to nothing and servers that sleep.
# PYTHON names an interpreter with PyTorch, SLUICE the program (bin/sluice unless given). Without the program nothing
# is served and no charts are drawn; `sluice profile --charts FOLDER -o profile.json` draws them anywhere later.
# Exit status 4: PyTorch is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

out=out/accelerator minutes=9 tiny= live=1
while [ $# -gt 0 ]; do
	case "$1" in
	--out) out=$2; shift ;;
	--minutes) minutes=$2; shift ;;
	--tiny) tiny=1 ;;
	--no-live) live= ;;
	*) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
	shift
done
mkdir -p "$out"
begun=$(date +%s)
until=$((begun + minutes * 60))

# The first interpreter that has PyTorch; Debian's python3-torch is in /usr/bin/python3.
python=
for p in "${PYTHON:-python3}" python3 /usr/bin/python3; do
	if "$p" -c 'import torch' 2>/dev/null; then
		python=$p
		break
	fi
done
if [ -z "$python" ]; then
	echo "no interpreter has PyTorch: install python3-torch, or name one that has it in PYTHON" >&2
	exit 4
fi
sluice=${SLUICE:-}
if [ -z "$sluice" ] && [ -x bin/sluice ]; then
	sluice=$PWD/bin/sluice
fi
device=$("$python" -c 'import torch; print("cuda" if torch.cuda.is_available() else "cpu")')

echo "==> devices"
if [ -n "$sluice" ]; then
	"$sluice" devices | tee "$out/devices.txt"
	"$sluice" devices --json >"$out/devices.json"
fi

measure() { "$python" scripts/accelerator/measure.py "$@"; }
if [ -n "$tiny" ]; then
	echo "==> two small networks"
	measure --out "$out/cpu" --device cpu --networks small-picture,small-text --batches 1,2 --levels 1,2 --budget 2 \
		--least 0.02 --most 0.05 --processes 2 --several small-picture
else
	if [ "$device" = cuda ]; then
		echo "==> the accelerator"
		measure --out "$out/accelerator" --device cuda --budget $((minutes * 60 * 45 / 100))
	fi
	echo "==> one core"
	share=$((minutes * 60 * 15 / 100))
	networks=resnet18,resnet50,efficientnet-b0,bert-tiny,bert-mini,bert-base,ssd300-vgg16,yolov3-416
	[ "$device" = cuda ] || share=$((minutes * 60 * 50 / 100))
	measure --out "$out/cpu" --device cpu --networks "$networks" --batches 1,2,4,8 --levels 1,2 --budget "$share" \
		--processes 2 --several resnet50,bert-base
fi

if [ -n "$sluice" ]; then
	echo "==> charts"
	for d in accelerator cpu; do
		[ ! -e "$out/$d/profile.json" ] || "$sluice" profile --charts "$out/$d" -o "$out/$d/profile.json"
	done
	if [ -n "$live" ]; then
		echo "==> systems, live and simulated"
		serve() {
			"$python" scripts/accelerator/live.py --sluice "$sluice" --out "$out/live" --until $((until - 30)) "$@" ||
				echo "the live part failed; see $out/live" >&2
		}
		if [ -n "$tiny" ]; then
			serve --backend fake --seconds 1 --rate 60 --cores 2 --size 4 --systems sluice,proteus
		elif [ "$device" = cuda ]; then
			serve --accelerator --rate 400 --seconds 12
		else
			serve --networks resnet18,resnet34 --slo 1500 --rate 3 --seconds 15 --cores 1 --max-batch 4
		fi
	fi
fi
"$python" scripts/accelerator/report.py "$out"
echo "==> $out/report.md, after $(($(date +%s) - begun)) s"
