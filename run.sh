#!/usr/bin/env bash
# One command for each thing to do, from nothing but Python 3.11:
#   bash run.sh demo     set all up and crawl a hostile site of its own, without any network
#   bash run.sh test     set all up and run the tests (further words go to pytest)
#   bash run.sh lint     set all up and run the linters
#   bash run.sh bench    set all up and run the benchmarks against stock Scrapy
#   bash run.sh setup    only set up: a virtual environment in .venv
# Debian packages that some tests need (nginx, python3-doc, chromium, promtool, tmux, a Redis with TLS) are installed where this runs as root;
# elsewhere those tests are skipped, with the reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() { # the packages of "$@" that are missing
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    echo "== apt-get install ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    # nginx is started by the tests, with their own configuration; never as a service of the machine.
    local policy=/usr/sbin/policy-rc.d ours=no
    [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"; ours=yes; }
    apt-get -qq install --no-install-recommends "${missing[@]}" >/dev/null || { [ $ours = no ] || rm -f "$policy"; return 1; }
    [ $ours = no ] || rm -f "$policy"
}

find_python() {
    local name
    for name in python3.11 python3.12 python3.13 python3 python; do
        if command -v "$name" >/dev/null &&
            "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "Python 3.11 or later is needed and was not found." >&2
    return 1
}

setup() { # $1: requirements file
    local python stamp
    stamp=".venv/ready-$(cat requirements.txt "$1" | cksum | tr ' ' -)"
    [ -e "$stamp" ] && return
    python=$(find_python)
    echo "== $("$python" --version): installing $1 into .venv"
    if [ ! -x .venv/bin/python ]; then
        "$python" -m venv .venv || { can_apt && apt_install python3-venv && "$python" -m venv --clear .venv; }
    fi
    .venv/bin/python -m pip install --quiet -r "$1"
    .venv/bin/python -m pip install --quiet -r requirements-charts.txt ||
        echo "== no chart library: the status page works without" >&2
    touch "$stamp"
}

setup_tests() {
    if can_apt; then apt_install nginx-light python3-doc chromium prometheus tmux systemd redis-server; fi
    setup requirements-dev.txt
}

what=${1:-help}
shift || true
case $what in
setup) setup requirements-dev.txt ;;
demo)
    setup requirements.txt
    exec .venv/bin/python -m scrapy crawl demo -L ERROR "$@"
    ;;
test)
    setup_tests
    # Most tests wait for real servers, so three at a time; a file's tests stay together. What fails beside the others is
    # tried once more alone: real clocks on a busy machine are no reason to fail, a fault is.
    .venv/bin/python -m pytest -n 3 --dist loadfile "$@" || {
        echo "== once more, alone: what failed"
        .venv/bin/python -m pytest --last-failed --last-failed-no-failures none "$@"
    }
    ;;
lint)
    setup requirements-dev.txt
    .venv/bin/ruff format --check .
    .venv/bin/ruff check .
    .venv/bin/mypy
    .venv/bin/lint-imports
    ;;
bench)
    setup requirements-dev.txt
    exec .venv/bin/python -m benchmarks "$@"
    ;;
*)
    sed -n '2,/^set /s/^# \{0,1\}//p' run.sh
    exit 2
    ;;
esac
