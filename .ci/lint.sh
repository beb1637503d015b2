#!/usr/bin/env bash
# usage: lint.sh [--format]
# Checks the form of src/, tests/ and the scripts; --format puts in order what a program can. Needs build/venv.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=build/venv/bin
ruff=(--isolated --line-length 120 --target-version py39)
rules=E,F,W,I,B
mapfile -t c_files < <(find src tests -name '*.[ch]' | sort)
bad=0

if [ "${1:-}" = --format ]; then
    "$bin/clang-format" -i "${c_files[@]}"
    "$bin/ruff" check --fix-only --quiet "${ruff[@]}" --select $rules tests
    "$bin/ruff" format "${ruff[@]}" tests
    exit
fi

complain() {
    echo "$1" >&2
    bad=1
}

# A file includes only its own layer and those below, and names it: "algo/quota.h".
layers() {
    local allowed=$1 dir=$2 file line
    while IFS=: read -r file line; do
        [[ $line =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*\"($allowed)/ ]] ||
            complain "$file: may include only $allowed, by that name: $line"
    done < <(grep -rsHE '^\s*#\s*include\s*"' --include='*.[ch]' "src/$dir" | grep -v '"redismodule.h"')
}
layers 'algo' algo
layers 'algo|types' types
layers 'algo|types|server' server
layers 'algo|types|server|commands' commands

while read -r file; do
    complain "$file: src/algo knows no server"
done < <(grep -rsl 'redismodule.h' src/algo)

while read -r count file; do
    [ "$count" -le 450 ] || complain "$file: $count lines, it is asking to be two"
done < <(find src -name '*.c' -exec wc -l {} + | grep -v ' total$')

"$bin/clang-format" --dry-run -Werror "${c_files[@]}" || bad=1
shellcheck .ci/run .ci/*.sh || bad=1
"$bin/ruff" check "${ruff[@]}" --select $rules tests || bad=1
"$bin/ruff" format --check "${ruff[@]}" tests || bad=1

[ "$bad" = 0 ] || { echo "lint: see above; 'make format' mends the form" >&2 && exit 1; }
