#!/bin/sh
# Measures what Skillbook adds to an application. See: bench/application.sh --help
set -eu

usage() {
  cat <<'TEXT'
Usage: bench/application.sh [--prebuilt FOLDER]

Makes two applications in a temporary folder: an empty one, and one with Skillbook, as a
dependency on a clone of this repository's last commit and by `mix skillbook.install`. It uses only
folders and commands: SKILLBOOK_SQL=0 and SKILLBOOK_PG=0. Prints a table of both: the seconds of the
first `mix compile` and those of the processors, the size of the native library and of the release,
and, ten seconds after its start, the memory and the processes of the release.

  --prebuilt FOLDER  take libskillbook_nif.so from this folder, instead of building it

cargo's downloads come from its cache, if they are there. Other programs make it slower: the table
ends with the number of processors and the load while it ran.

Exit status: 0 measured, 1 a step failed, 2 wrong usage.
TEXT
}

prebuilt=
case ${1:-}:$# in
  :0) ;;
  --prebuilt:2) prebuilt=$(readlink -f "$2") ;;
  -h:1 | --help:1 | help:1)
    usage
    exit 0
    ;;
  *)
    usage >&2
    exit 2
    ;;
esac

root=$(dirname "$(dirname "$(readlink -f "$0")")")
folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-application.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP

# As on a machine that has never seen Skillbook.
for name in $(env | sed -n 's/^\(SKILLBOOK_[A-Z_]*\|CARGO_PROFILE_[A-Z_]*\)=.*/\1/p'); do
  unset "$name"
done
unset CARGO_TARGET_DIR CARGO_INCREMENTAL MIX_BUILD_PATH ERL_COMPILER_OPTIONS
export MIX_ENV=prod SKILLBOOK_SQL=0 SKILLBOOK_PG=0 ELIXIR_ERL_OPTIONS="+fnu"
[ -z "$prebuilt" ] || export SKILLBOOK_NIF="$prebuilt/libskillbook_nif.so"

# quietly TITLE COMMAND...: runs the command; if it fails, prints its output.
quietly() {
  title=$1
  shift
  "$@" >"$folder/output" 2>&1 </dev/null || {
    cat "$folder/output" >&2
    printf 'failed: %s\n' "$title" >&2
    exit 1
  }
}

# The seconds of a command, and those of the processors, in the variables `took` and `used`.
measure() {
  times >"$folder/before"
  began=$(date +%s)
  quietly "$@"
  took=$(($(date +%s) - began))
  times >"$folder/after"
  used=$(tail -q -n 1 "$folder/before" "$folder/after" | tr 'ms' '  ' |
    awk '{ now = $1 * 60 + $2 + $3 * 60 + $4; spent = now - before; before = now }
      END { printf "%.0f", spent }')
}

mebibytes() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1048576 }'; }

# Bytes of the files in a folder.
size() { find "$1" -type f -exec ls -ln {} + | awk '{ sum += $5 } END { print sum + 0 }'; }

row() { printf '  %-38s %9s %9s\n' "$@"; }

# application NAME: compiles the application, starts its release, and sets the variables of a
# column.
application() {
  cd "$folder/$1"
  measure "mix compile of $1" mix compile
  quietly "mix release of $1" mix release --overwrite
  release=_build/prod/rel/$1
  "$release/bin/$1" start >"$folder/log" 2>&1 </dev/null &
  sleep 10
  processes=$("$release/bin/$1" rpc 'IO.write(length(Process.list()))') || {
    cat "$folder/log" >&2
    exit 1
  }
  heap=$("$release/bin/$1" rpc 'IO.write(:erlang.memory(:total))')
  resident=$(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB$/\1/p' \
    "/proc/$("$release/bin/$1" pid)/status")
  "$release/bin/$1" stop >/dev/null
  released=$(mebibytes "$(size "$release")")
  heap=$(mebibytes "$heap")
  resident=$(mebibytes "$((resident * 1024))")
}

cd "$folder"
quietly "clone" git clone --quiet --depth 1 "file://$root" skillbook
for name in empty shop; do quietly "mix new" mix new --sup "$name"; done
sed -i.old 's/^ *# {:dep_from_hexpm.*/      {:skillbook, path: "..\/skillbook"}/' shop/mix.exs

application empty
empty_took=$took empty_used=$used empty_released=$released
empty_heap=$heap empty_resident=$resident empty_processes=$processes

cd "$folder/shop"
measure "mix deps.compile" mix deps.compile
first_took=$took first_used=$used
quietly "mix skillbook.install" mix skillbook.install
application shop

row "" empty "with Skillbook"
row "first compile, seconds" "$empty_took" "$((first_took + took))"
row "the same, of the processors" "$empty_used" "$((first_used + used))"
row "native library, MiB" - "$(mebibytes "$(size "$folder/skillbook/priv/native")")"
row "release, MiB" "$empty_released" "$released"
row "memory when idle, resident, MiB" "$empty_resident" "$resident"
row "memory of the virtual machine, MiB" "$empty_heap" "$heap"
row "processes when idle" "$empty_processes" "$processes"
printf '  %s processors, load %s\n' "$(getconf _NPROCESSORS_ONLN)" \
  "$(cut -d ' ' -f 1-3 /proc/loadavg)"
