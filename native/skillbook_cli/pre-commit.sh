#!/bin/sh
# Runs the program skillbook for the hook of .pre-commit-hooks.yaml, in the folder of the commit.
# pre-commit keeps this checkout, so the program is built once for each version. Its own way to
# build Rust needs a package at the root of the project, where this one has a workspace.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
target=$root/target/pre-commit
if [ ! -x "$target/release/skillbook" ]; then
  command -v cargo >/dev/null || {
    echo "skillbook lint needs cargo, of Rust 1.91 or later, to build the program the first time" >&2
    exit 3
  }
  cargo build --release --locked --quiet --manifest-path "$root/Cargo.toml" -p skillbook_cli \
    --target-dir "$target" >&2
fi
exec "$target/release/skillbook" "$@"
