#!/bin/sh
# A limit per user as HTTP status and headers. Needs: redis-cli
set -eu

cli() {
    "${REDIS_CLI:-redis-cli}" -u "${REDIS_URL:-redis://127.0.0.1:6379}" -e --raw "$@"
}

# allow USER: prints status and headers; fails where the user has to wait.
allow() {
    reply=$(cli RL.TOKENBUCKET "user:$1" 3/m) || return 2
    # shellcheck disable=SC2086 # the five integers become $1 to $5: allowed, limit, remaining, wait_ms, reset_ms
    set -- $reply
    if [ "$1" -gt 0 ]; then
        echo "200  RateLimit: \"user\";r=$3;t=$((($5 + 999) / 1000))"
    else
        retry_s=$((($4 + 999) / 1000))
        echo "429  RateLimit: \"user\";r=0;t=$retry_s  Retry-After: $retry_s"
        return 1
    fi
}

cli DEL user:42 >/dev/null
while allow 42; do :; done
