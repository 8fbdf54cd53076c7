#!/bin/sh
# Installs or removes tui-agent @VERSION@ for @PLATFORM@, which comes with a Python of its own. Nothing is downloaded.
#   sh FILE [--prefix DIR]            install below DIR, by default ~/.local; nothing is written outside of it
#   sh FILE --remove [--prefix DIR]   remove it again; settings and sessions stay
set -eu
main() {
    prefix=
    remove=
    while [ $# -gt 0 ]; do
        case $1 in
            --prefix) prefix=${2:?--prefix needs a directory}; shift ;;
            --remove) remove=yes ;;
            -h|--help) sed -n '2,4s/^# *//p' "$0"; exit 0 ;;
            *) fail "There is no option $1. See: sh $0 --help" ;;
        esac
        shift
    done
    here=$(cd "$(dirname "$0")" && pwd)
    # The copy that an installation keeps knows where it is.
    case $here in */lib/tui-agent) prefix=${prefix:-${here%/lib/tui-agent}} ;; esac
    prefix=${prefix:-${HOME:?}/.local}
    case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
    place=$prefix/lib/tui-agent
    command=$prefix/bin/tui-agent
    manual=$prefix/share/man/man1/tui-agent.1
    if [ "$remove" ]; then remove_all; else install_new; fi
}

fail() {
    echo "$1" >&2
    exit 1
}

is_ours() {
    # Whatever name the directory above has: a home may be reached through a link.
    case $(readlink "$1" 2>/dev/null) in
        */lib/tui-agent/*/bin/tui-agent | */lib/tui-agent/*/man1/tui-agent.1) true ;;
        *) false ;;
    esac
}

install_new() {
    [ "$(uname -s)-$(uname -m)" = "@SYSTEM@" ] \
        || fail "This file is for @PLATFORM@, and this machine is $(uname -s) on $(uname -m). Take the file for it."
    if [ -e "$command" ] || [ -L "$command" ]; then
        is_ours "$command" || fail "$command is another installation: remove it first, or use --prefix."
    fi
    before=$(readlink "$command" 2>/dev/null || true)
    before=${before%/bin/tui-agent}
    before=${before##*/}
    fresh=$place/.new.$$
    trap 'rm -rf "$fresh"' EXIT
    trap 'exit 1' HUP INT TERM
    mkdir -p "$fresh"
    tail -n +@LINES@ "$0" | tar -xzf - -C "$fresh" || fail "This file is not complete: get it again."
    "$fresh/bin/tui-agent" --version >/dev/null \
        || fail "The Python in this file does not run here: install with uv, pipx or pip instead."
    if [ ! -d "$place/@NAME@" ]; then mv "$fresh" "$place/@NAME@"; fi
    head -n $((@LINES@ - 1)) "$0" >"$place/.installer.$$"
    mv -f "$place/.installer.$$" "$place/installer.sh"
    link "$place/@NAME@/bin/tui-agent" "$command"
    link "$place/@NAME@/share/man/man1/tui-agent.1" "$manual"
    # A program that still runs loads modules of its version; those before are not needed any more.
    for old in "$place"/*/; do
        old=$(basename "$old")
        case $old in "@NAME@"|"$before") ;; *) rm -rf "${place:?}/$old" ;; esac
    done
    echo "tui-agent @VERSION@ is installed: $command"
    case :$PATH: in
        *":$prefix/bin:"*) ;;
        *) echo "Your PATH lacks its directory: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
    echo "To remove it: sh $place/installer.sh --remove"
}

link() {
    mkdir -p "$(dirname "$2")"
    ln -s "$1" "$2.$$"
    mv -f "$2.$$" "$2"
}

remove_all() {
    [ -d "$place" ] || fail "There is no tui-agent in $place. Use --prefix if it is elsewhere."
    kept=
    if [ -x "$command" ] && is_ours "$command"; then
        python=$(dirname "$(readlink "$command")")/python3
        kept=$("$python" -E -P -c 'from tui_agent.paths import kept; print(*kept(), sep="\n")' || true)
    fi
    for linked in "$command" "$manual"; do
        if is_ours "$linked"; then rm -f "$linked"; fi
    done
    rm -rf "$place"
    # Directories that hold nothing else.
    for left in /bin /lib /share/man/man1 /share/man /share ""; do
        rmdir "$prefix$left" 2>/dev/null || true
    done
    echo "tui-agent was removed from $prefix."
    if [ "$kept" ]; then
        echo "Your settings and sessions stay. To delete them too:"
        echo "$kept" | while read -r directory; do echo "  rm -r '$directory'"; done
    fi
}

main "$@"
exit 0
