#!/usr/bin/env bash
# usage: fetch-header.sh FILE
# Writes redismodule.h of Redis 7.0.15 to FILE. No binary package of Debian carries it, its source package does.
# The apt tree beside FILE is private: the machine's own apt is only asked for its mirror. Root is not needed.
set -euo pipefail

suite=bookworm
sha256=dcc23952d82cd8f06e4fe6ee32de0b04d437cfe03779963230b3f0dde2c731e0
file=$1
tmp=$(mkdir -p "$(dirname "$file")" && cd "$(dirname "$file")" && pwd)/apt-header

fail() {
    echo "fetch-header: $1" >&2
    echo "fetch-header: give the file yourself: make REDISMODULE_H=/path/to/redismodule.h (src/ of Redis 7.0 or 7.2)" >&2
    exit 1
}

command -v apt-get >/dev/null || fail "no apt-get here, so no Debian source package"

# apt reads its own settings, whether *.sources or sources.list; DEBIAN_MIRROR is for mirrors with an unusual path.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --no-release-info --format "\$(REPO_URI)" 'Created-By: Packages' |
    grep -E -m1 '/debian(\.list)?/?$')} || fail "apt knows no Debian mirror; name one with DEBIAN_MIRROR="
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

rm -rf "$tmp"
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp"/{lists,cache/archives}/partial "$tmp/source"
echo "deb-src [signed-by=$keyring] $mirror $suite main" >"$tmp/sources.list"
: >"$tmp/status"
cat >"$tmp/apt.conf" <<END
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "root";
Acquire::Languages "none";
Debug::NoLocking "1";
Dir::Cache "$tmp/cache";
Dir::Etc::SourceList "$tmp/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State "$tmp";
Dir::State::Status "$tmp/status";
END
apt=(apt-get -qq -c "$tmp/apt.conf")
"${apt[@]}" update || fail "cannot read $suite from the mirror"
(cd "$tmp/source" && "${apt[@]}" source --download-only redis) || fail "no source package redis in $suite"
tar -xOf "$tmp"/source/redis_*.orig.tar.* --wildcards '*/src/redismodule.h' >"$tmp/redismodule.h" ||
    fail "no redismodule.h in the source package"
echo "$sha256  $tmp/redismodule.h" | sha256sum --check --status ||
    fail "the package's redismodule.h is not the one expected ($(sha256sum <"$tmp/redismodule.h" | cut -d" " -f1))"
mv "$tmp/redismodule.h" "$file"
echo "fetch-header: $file"
