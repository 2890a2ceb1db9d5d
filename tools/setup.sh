#!/bin/bash
# Installs what Reprise needs and is missing. Run again at will: it does nothing when all is there.
#   tools/setup.sh         compiler, libraries, and Zydis built freestanding into $BUILD/zydis
#   tools/setup.sh tests   the programs that the compatibility tests run (tests/packages, one Debian package a line)
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}

PACKAGES="gcc g++ make binutils libc6-dev linux-libc-dev pkg-config dpkg-dev python3 util-linux file diffutils
          libzycore-dev libzydis-dev libzstd-dev libxxhash-dev libdw-dev zlib1g-dev liblzma-dev libbz2-dev libcmocka-dev gdb"

say() { echo "setup: $*" >&2; }

# Of the packages given, those that are not installed.
missing_of() {
    local have
    have=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p') || true
    printf '%s\n' "$@" | grep -vxF -f <(printf '%s\n' "$have" | sed '/^$/d') || true
}

apt_update_once() {
    [ -n "${updated:-}" ] && return
    updated=1
    $as_root apt-get -o DPkg::Lock::Timeout=300 -qq update || say "apt-get update failed; going on with the lists at hand"
}

# How to become root: as_root is empty for root itself. False where there is no way.
find_root() {
    as_root=
    [ "$(id -u)" = 0 ] && return 0
    command -v sudo >/dev/null && sudo -n true 2>/dev/null && as_root=sudo && return 0
    [ -t 0 ] && command -v sudo >/dev/null && as_root=sudo && return 0
    return 1
}

install_missing() {
    local missing
    missing=$(missing_of "$@" | xargs)
    [ -n "$missing" ] || return 0
    if ! find_root; then
        say "please run:  sudo apt-get install --no-install-recommends $missing"
        exit 1
    fi
    say "installing $missing"
    apt_install $missing || { apt_update_once; apt_install $missing; }
}

# Services that come with a package must not start, nor anything ask.
apt_install() {
    $as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -qq -y --no-install-recommends install "$@" </dev/null >&2
}

# Source entries made from the machine's own package sources; the system's lists stay alone.
write_source_lists() {
    local parts=$1 f
    mkdir -p "$parts"
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$f" ] && sed -nE 's/^deb(-src)?[[:space:]]/deb-src /p' "$f" | sort -u >"$parts/$(basename "$f" .list).list"
    done
    for f in /etc/apt/sources.list.d/*.sources; do
        [ -f "$f" ] && sed -E 's/^Types:.*/Types: deb-src/; /^Architectures:/d' "$f" >"$parts/$(basename "$f")"
    done
    return 0
}

fetch_zydis_source() {
    local dir=$1
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/src"
    write_source_lists "$dir/sources.d"
    local apt=(apt-get -qq -o Dir::Etc::sourcelist=- -o "Dir::Etc::sourceparts=$dir/sources.d"
               -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=)
    "${apt[@]}" update >&2 || say "some package sources could not be read; going on with the others"
    (cd "$dir/src" && "${apt[@]}" source --only-source zydis) >&2
}

# The decoder alone, without libc and without vector registers, as the runtime is built.
build_zydis() {
    local out=$BUILD/zydis
    [ -f "$out/libZydis-rt.a" ] && return 0
    mkdir -p "$out"
    exec 9>"$out/lock" && flock 9
    [ -f "$out/libZydis-rt.a" ] && return 0

    say "building Zydis from its Debian source"
    local src
    tmp=$(mktemp -d) # not local: the trap needs it
    trap 'rm -rf "$tmp"' EXIT
    fetch_zydis_source "$tmp"
    src=$(echo "$tmp"/src/zydis-*/)
    local flags=(-O2 -g -w -ffreestanding -fno-stack-protector -fPIC -fvisibility=hidden -mgeneral-regs-only
                 -fno-asynchronous-unwind-tables -ffunction-sections -fdata-sections
                 -DZYAN_NO_LIBC -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD
                 -DZYDIS_DISABLE_FORMATTER -DZYDIS_DISABLE_ENCODER
                 "-ffile-prefix-map=$src=zydis/" "-I$src/include" "-I$src/src")
    printf '%s\n' "$src"src/*.c | xargs -P "$(nproc)" -I{} sh -c \
        'o=$1/$(basename "$2" .c).o; shift; f=$1; shift; exec ${CC:-gcc} "$@" -c "$f" -o "$o"' \
        sh "$tmp" {} "${flags[@]}"
    rm -rf "$out/include"
    cp -r "$src/include" "$out/include"
    ar rcs "$tmp/libZydis-rt.a" "$tmp"/*.o
    mv "$tmp/libZydis-rt.a" "$out/libZydis-rt.a"
}

install_test_programs() {
    [ -f tests/packages ] || return 0
    local wanted missing known p
    wanted=$(sed 's/#.*//' tests/packages | xargs)
    [ -n "$wanted" ] || return 0
    missing=$(missing_of $wanted | xargs)
    [ -n "$missing" ] || return 0
    find_root || { say "please run:  sudo apt-get install --no-install-recommends $missing"; exit 1; }
    known=
    for p in $missing; do
        apt_knows "$p" || lists_are_fresh || apt_update_once
        if apt_knows "$p"; then known="$known $p"; else say "skipping $p: apt does not know it"; fi
    done
    [ -z "$known" ] || install_missing $known
}

apt_knows() {
    case $(apt-cache policy "$1" 2>/dev/null) in *"Candidate: (none)"*) return 1 ;; *"Candidate: "*) return 0 ;; *) return 1 ;; esac
}

# Lists younger than a day: asking again would not tell more.
lists_are_fresh() { [ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*Packages*' -mtime -1 -print -quit)" ]; }

case ${1:-} in
    '') install_missing $PACKAGES; build_zydis ;;
    tests) install_test_programs ;;
    *) echo "usage: tools/setup.sh [tests]" >&2; exit 2 ;;
esac
