#!/usr/bin/env bash
# Says whether the program still behaves as recorded: journals and reports of simulated runs, plans, and the rows of `sluice reproduce`
# must be byte for byte what scripts/guard/recorded.sha256 was made from. Run it before and after a change that must not change
# behaviour; where a change means to, run it with --rewrite and commit the difference with the reason.
#
#   scripts/guard.sh [--full] [--rewrite] [--keep DIR] [--bin PROGRAM]
#
#   --full     also every figure of every paper, with policies made anew (about 20 minutes on two cores); without it a figure or two of each
#   --rewrite  record what was found, for the cases that were run
#   --keep     leave the outputs in DIR; two such folders, of two commits, can be compared with diff -r
#   --bin      the program to ask; without it the one that is built from this checkout
#
# Floating-point results depend on the architecture: what is recorded is linux/amd64's.
set -euo pipefail
cd "$(dirname "$0")/.."

full= rewrite= keep= bin=
while (($#)); do
  case $1 in
    --full) full=1 ;;
    --rewrite) rewrite=1 ;;
    --keep) keep=$2; shift ;;
    --bin) bin=$(realpath "$2"); shift ;;
    *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
  shift
done

recorded=$PWD/scripts/guard/recorded.sha256
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${keep:-$work/out}
mkdir -p "$out"
out=$(realpath "$out")
# Policies that systems make in advance are kept beside the configurations, from one call to the next.
[[ $full ]] && rm -rf .cache/guard
mkdir -p .cache/guard
cp -r examples scripts/guard .cache/guard/
if [[ -z $bin ]]; then
  bin=$work/sluice
  ${GO:-go} build -o "$bin" ./cmd/sluice
fi
export bin out

# run_case NAME ARGUMENTS... keeps what the program prints, its exit status, and the journal where it writes one.
run_case() {
  local name=$1 status=0
  shift
  (cd .cache/guard && exec "$bin" "${@//@journal@/$out/$name.journal}" ) >"$out/$name.json" 2>"$out/$name.err" || status=$?
  if ((status)); then
    # How a refusal is worded is free, that it is one is not.
    echo "exit status $status" >"$out/$name.json"
    rm -f "$out/$name.journal"
  fi
  rm -f "$out/$name.err"
}
export -f run_case

cases() {
  local system world figure
  local -A load=([fleet]=guard/fleet.yaml [ladder]=guard/ladder.yaml [ranking]=guard/ranking.yaml [pipeline]=guard/pipeline.yaml)
  local -A file=([fleet]=fleet.yaml [ladder]=ladder.yaml [ranking]=ranking.yaml [pipeline]=pipeline/sluice.yaml)
  for world in fleet ladder ranking pipeline; do
    for system in $(<scripts/guard/systems.txt); do
      echo "simulate-$world-$system simulate -f examples/${file[$world]} --system $system --workload ${load[$world]} --journal @journal@ --json"
      echo "plan-$world-$system plan -f examples/${file[$world]} --system $system --json"
    done
  done
  echo "plan-scaled plan -f examples/fleet.yaml --scale 0.5..4 --compare proteus,clipper-ha,infaas-accuracy --json"
  echo "plan-budget plan -f examples/ranking.yaml --budget 2.5 --json"
  echo "plan-pipeline plan -f examples/pipeline/sluice.yaml --compare scrooge,nexus,scrooge-written --json"
  for figure in "proteus 5" "proteus 7" "ramsis 8" "ramsis 10" "kairos 8" "kairos 12" "infless 11" "infless 16" "infless 17" "scrooge 10" "scrooge 12"; do
    [[ $full ]] || echo "reproduce-${figure// /-} reproduce $figure --json"
  done
  if [[ $full ]]; then
    for figure in proteus ramsis kairos infless scrooge; do
      echo "reproduce-$figure reproduce $figure --json"
    done
  fi
}

cases | xargs -P "$(nproc)" -d '\n' -I{} bash -c 'run_case $1' _ {}

found=$work/found
(cd "$out" && sha256sum -- *.json *.journal | sort -k2) >"$found"
if [[ $rewrite ]]; then
  touch "$recorded"
  # Cases that were not run keep their record.
  awk 'NR == FNR { new[$2] = $1; next } !($2 in new)' "$found" "$recorded" | cat - "$found" | sort -k2 >"$work/merged"
  mv "$work/merged" "$recorded"
  echo "recorded: $(wc -l <"$found") outputs of $(grep -c json "$found") cases"
  exit
fi
differs=$(awk 'NR == FNR { want[$2] = $1; next } !($2 in want) { print "not recorded: " $2; next } want[$2] != $1 { print "differs:      " $2 }' "$recorded" "$found")
if [[ $differs ]]; then
  echo "$differs" >&2
  echo "guard: behaviour has changed. If it was meant to, record it with scripts/guard.sh --rewrite; to see how, compare the folders of two" >&2
  echo "commits that were kept with --keep DIR." >&2
  exit 1
fi
echo "guard: $(wc -l <"$found") outputs of $(grep -c json "$found") cases are as recorded"
