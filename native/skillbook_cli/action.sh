#!/bin/sh
# The step of action.yml: builds the program skillbook if it is not in the cache, writes the
# findings as SARIF into the file SKILLBOOK_SARIF, and prints them as text. The exit status is that
# of `skillbook lint`. SKILLBOOK_PATHS and SKILLBOOK_OPTIONS are words for it.
set -eu

folder=$RUNNER_TEMP/skillbook
[ -x "$folder/bin/skillbook" ] ||
  cargo install --locked --quiet --path "$(dirname "$0")" --root "$folder"

# Words, so they are not quoted.
# shellcheck disable=SC2086
set -- $SKILLBOOK_OPTIONS lint $SKILLBOOK_PATHS
if [ "${SKILLBOOK_STRICT:-false}" = true ]; then
  set -- "$@" --strict
fi
status=0
"$folder/bin/skillbook" "$@" --format sarif >"$SKILLBOOK_SARIF" || status=$?
"$folder/bin/skillbook" "$@" || true
exit "$status"
