#!/bin/sh
# Measures what a newcomer waits for. See: bench/first_minute.sh --help
set -eu

usage() {
  cat <<'TEXT'
Usage: bench/first_minute.sh [--cached] [--libraries]

Clones this repository's last commit into a temporary folder, runs the README's first command there,
and prints a table of the steps with their seconds and those of the processors. Nothing is taken
from earlier builds; Elixir, Rust and a C compiler must be installed.

  --cached     take cargo's downloads from its cache, instead of downloading them again
  --libraries  build the libraries too that other commands need, each alone

Other programs make it slower: the table ends with the number of processors and the load while it
ran. A step's seconds of the processors over its seconds are those that it kept busy.

Exit status: 0 measured, 1 a step failed, 2 wrong usage.
TEXT
}

cached=
libraries=
for argument; do
  case $argument in
    --cached) cached=1 ;;
    --libraries) libraries=1 ;;
    -h | --help | help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done

root=$(dirname "$(dirname "$(readlink -f "$0")")")
folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-first-minute.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP

# As on a machine that has never seen Skillbook.
for name in $(env | sed -n 's/^\(SKILLBOOK_[A-Z_]*\|CARGO_PROFILE_[A-Z_]*\)=.*/\1/p'); do
  unset "$name"
done
unset CARGO_TARGET_DIR CARGO_INCREMENTAL MIX_ENV MIX_BUILD_PATH ERL_COMPILER_OPTIONS
if [ -z "$cached" ]; then
  # With the settings of the registry, if there are any.
  mkdir "$folder/cargo"
  [ ! -e "${CARGO_HOME:-$HOME/.cargo}/config.toml" ] ||
    cp "${CARGO_HOME:-$HOME/.cargo}/config.toml" "$folder/cargo"
  PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
  RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
  CARGO_HOME="$folder/cargo"
  export PATH RUSTUP_HOME CARGO_HOME
fi

# The time in milliseconds; in whole seconds where `date` has no fractions.
now() { date +%s%N | sed 's/N$/000000000/; s/......$//'; }

# The milliseconds of the processors that ended children have used, from the output of `times`.
used() {
  tail -n 1 "$1" | tr 'ms' '  ' | awk '{ printf "%d\n", ($1 * 60 + $2 + $3 * 60 + $4) * 1000 }'
}

# measure TITLE COMMAND...: runs the command in the clone and prints a row.
measure() {
  title=$1
  shift
  began=$(now)
  # Not in a pipe: a subshell has children of its own.
  times >"$folder/before"
  if ! "$@" >"$folder/output" 2>&1 </dev/null; then
    cat "$folder/output" >&2
    printf 'failed: %s\n' "$title" >&2
    exit 1
  fi
  times >"$folder/after"
  printf '  %-34s %7s s %7s s\n' "$title" "$(seconds $(($(now) - began)))" \
    "$(seconds $(($(used "$folder/after") - $(used "$folder/before"))))"
}

seconds() { awk -v milliseconds="$1" 'BEGIN { printf "%.1f", milliseconds / 1000 }'; }

printf '  %-34s %9s %9s\n' step time processors
measure "clone" git clone --quiet --depth 1 "file://$root" "$folder/clone"
cd "$folder/clone"
[ -n "$cached" ] || measure "download of crates" cargo fetch --locked
measure "connect --help" bin/skillbook connect --help
measure "run examples/monday.md, first" bin/skillbook run examples/monday.md
measure "run examples/monday.md, again" bin/skillbook run examples/monday.md
# What the first command wrote into its database would need Elixir.
rm -rf .skillbook
measure "list, first" bin/skillbook list
measure "list, again" bin/skillbook list
if [ -n "$libraries" ]; then
  for name in http postgres embed connect; do
    measure "the library skillbook_$name" bin/build "skillbook_$name"
  done
fi
printf '  %s processors, load %s\n' "$(getconf _NPROCESSORS_ONLN)" \
  "$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || sysctl -n vm.loadavg)"
