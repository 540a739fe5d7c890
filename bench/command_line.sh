#!/bin/sh
# Measures the program skillbook beside ruff, a fast linter, and agentskills, the validator of the
# Agent Skills format in the package skills-ref.
#
#     bench/command_line.sh [FOLDER]
#
# FOLDER has skills, a folder each (default: the assistant pack); they are copied until there are
# 2,400. Ruff lints as many files of Python's standard library. Needs hyperfine, cargo, and Python
# with venv, into which it installs the two peers.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
skills=$(cd "${1:-$root/priv/assistant}" && pwd)
count=2400
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --locked --quiet --manifest-path "$root/Cargo.toml" -p skillbook_cli
target=${CARGO_TARGET_DIR:-$root/target}
cp "$target/release/skillbook" "$work/skillbook"
python3 -m venv "$work/peers"
"$work/peers/bin/pip" install --quiet ruff skills-ref
PATH="$work/peers/bin:$work:$PATH"
export PATH

# The names differ, so the copies are other skills.
number=0
mkdir "$work/many"
while [ "$number" -lt "$count" ]; do
  for skill in "$skills"/*/; do
    [ "$number" -lt "$count" ] || break
    number=$((number + 1))
    name=$(basename "$skill")-$number
    mkdir "$work/many/$name"
    sed "s/^name: .*/name: $name/" "$skill/SKILL.md" >"$work/many/$name/SKILL.md"
  done
done
mkdir "$work/one" "$work/python"
cp -r "$(find "$work/many" -mindepth 1 -maxdepth 1 | sort | head -n 1)" "$work/one/skill"
sed -i 's/^name: .*/name: skill/' "$work/one/skill/SKILL.md"
number=0
find "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" -name '*.py' |
  sort | head -n "$count" | while read -r file; do
  number=$((number + 1))
  cp "$file" "$work/python/file_$number.py"
done
du -sh "$work/many" "$work/python"

cd "$work"
# Each finds something, so no exit status of 1 is an error. The ignored status is that alone.
hyperfine -N --ignore-failure --warmup 3 \
  'skillbook --version' \
  'ruff --version' \
  'skillbook lint one' \
  'agentskills validate one/skill' \
  'skillbook --no-builtins list' \
  'skillbook lint many' \
  'ruff check --isolated --no-cache python' \
  --export-markdown "$work/table.md"
cat "$work/table.md"
