#!/usr/bin/env bash
# usage: install.sh GROUP...    groups: build server test lint fuzz count
# Installs what the groups need and this machine lacks. Costs nothing where all is there.
set -euo pipefail

cc=${CC:-gcc}
missing=()

# need PACKAGE COMMAND...: the package is missing when the command fails.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

has() { command -v "$1"; }

has_redis() { has redis-cli && { has "${REDIS_SERVER:-redis-server}" || has redis-check-rdb; }; }

has_clang_runtime() { [ -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")" ]; }

python_is_new() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'; }

check() {
    case $1 in
        build)
            need make has make
            need "$cc" has "$cc" # Debian names its compilers' packages as it names their commands
            need libc6-dev "$cc" -E -include stdio.h -x c /dev/null
            ;;
        server) # redis-tools carries the server too, under another name; redis-server would start a daemon here
            need redis-tools has_redis
            ;;
        test)
            need python3 python_is_new
            need python3-venv python3 -c 'import venv, ensurepip'
            ;;
        lint)
            need gcc has gcc
            need clang has clang
            need shellcheck has shellcheck
            ;;
        fuzz)
            need clang has clang
            need "libclang-rt-$(clang -dumpversion 2>/dev/null | cut -d. -f1 | grep . || echo 14)-dev" has_clang_runtime
            need llvm has llvm-symbolizer
            ;;
        count)
            need valgrind has callgrind_control
            need binutils has readelf
            ;;
        *)
            echo "install: no group $1" >&2
            exit 2
            ;;
    esac
}

check_all() {
    missing=()
    for group in "$@"; do check "$group"; done
}

check_all "$@"
[ ${#missing[@]} -gt 0 ] || exit 0

sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
if ! has apt-get >/dev/null || { [ -n "$sudo" ] && ! has sudo >/dev/null; }; then
    echo "install: please install, or what your system calls so: ${missing[*]}" >&2
    exit 1
fi
exec 9<"$0"
flock 9 # make -j may ask for two groups at once
echo "install: ${missing[*]}"
$sudo apt-get -qq update
$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${missing[@]}" >/dev/null

check_all "$@"
[ ${#missing[@]} -eq 0 ] || { echo "install: still missing: ${missing[*]}" >&2 && exit 1; }
