#!/usr/bin/env bash
# usage: fetch-server.sh LABEL [DIR], or fetch-server.sh --list
# Puts a server of Debian's packages into DIR/LABEL (default build/servers), as redis-server and redis-cli whatever
# its own name. It comes with its whole library closure, libc included, from a private apt tree: the machine's own
# apt, dpkg and libc stay as they are. Root is not needed.
set -euo pipefail

label=${1:---list}
case $label in # suites (the last one is preferred), package, its binaries' prefix
    redis-6.0) what='bullseye redis-server redis' ;;
    redis-8.0) what='trixie redis-server redis' ;;
    redis-sid) what='sid redis-server redis' ;;
    redis-experimental) what='sid,experimental redis-server redis' ;;
    valkey-8.0) what='bookworm,bookworm-backports valkey-server valkey' ;;
    valkey-8.1) what='trixie valkey-server valkey' ;;
    valkey-sid) what='sid valkey-server valkey' ;;
    --list) exec sed -n 's/^    \([a-z0-9.-]*\)) what=.*/\1/p' "$0" ;;
    *) echo "fetch-server: no server is called $label; there are: $("$0" --list | paste -sd' ')" >&2 && exit 2 ;;
esac
read -r suites package name <<<"$what"

fail() {
    echo "fetch-server: $1; any server of your own can be tested with REDIS_SERVER=/path/to/redis-server" >&2
    exit 1
}

command -v apt-get >/dev/null || fail "no apt-get here"
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --no-release-info --format "\$(REPO_URI)" 'Created-By: Packages' |
    grep -E -m1 '/debian(\.list)?/?$')} || fail "apt knows no Debian mirror; name one with DEBIAN_MIRROR="
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

mkdir -p "${2:-build/servers}"
root=$(cd "${2:-build/servers}" && pwd)/$label
apt=$root/apt
rm -rf "$root"
mkdir -p "$apt"/{lists,cache/archives}/partial
: >"$apt/status" # nothing is installed, so the closure is whole
for suite in ${suites//,/ }; do echo "deb [signed-by=$keyring] $mirror $suite main"; done >"$apt/sources.list"
cat >"$apt/apt.conf" <<END
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Debug::NoLocking "1";
Dir::Cache "$apt/cache";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State "$apt";
Dir::State::Status "$apt/status";
END
get=(apt-get -qq -c "$apt/apt.conf")
"${get[@]}" update || fail "cannot read $suites from the mirror"
"${get[@]}" -y -d -t "${suites##*,}" install "$package" >/dev/null || fail "no package $package in $suites"
for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
rm -rf "$apt"

# Started through the closure's own loader, by the package's link: the binary tells by its name that it is the server.
loader=$(find "$root" -name 'ld-*.so*' -type f -print -quit)
libs=$(find "$root" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -sd:)
for tool in server cli; do
    printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' \
        "$loader" "$libs" "$root/usr/bin/$name-$tool" >"$root/redis-$tool"
    chmod +x "$root/redis-$tool"
done
"$root/redis-server" --version
