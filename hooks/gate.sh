#!/bin/sh
# The gate of ckpt: while a revert boundary is pending in this worktree, or an undo or a `ckpt commit` is half done, a commit
# is refused.
#
#   sh gate.sh HOOK [ARGUMENT...]     or sourced by a hook that has set ckpt_hook and ckpt_file (where this file is)
#
# It looks for marker files and starts no process (but to keep what pre-push and post-rewrite are told); only when one is
# there does gate-refuse.sh beside it decide and speak (githooks(5), gitrepository-layout(5)).
# Nothing here may wait or ask, and standard input is there for the hooks that run after it.

# Where the store is when it is not in the repository's own directory; written here by `ckpt hooks install`.
ckpt_store=''

# What a push is refused for: pending or uncovered; written here likewise.
ckpt_push='pending'

# Sets ckpt_git (this worktree's git directory) and ckpt_dir (its directory in the store; empty: nothing was recorded).
ckpt_find() {
  ckpt_dir='' ckpt_common='' ckpt_random=''
  if [ -n "${GIT_DIR-}" ]; then
    ckpt_git=$GIT_DIR
  elif [ -d .git ]; then
    ckpt_git=.git
  else
    ckpt_git=''
    # A linked worktree, a submodule: `.git` is a file that names the directory.
    if [ -f .git ]; then IFS= read -r ckpt_git <.git || [ -n "$ckpt_git" ] || return 0; fi
    case $ckpt_git in
      'gitdir: '*) ckpt_git=${ckpt_git#gitdir: } ;;
      *) ckpt_git=$(git rev-parse --git-dir 2>/dev/null) || return 0 ;;
    esac
  fi
  ckpt_id=@main
  ckpt_common=$ckpt_git
  if [ -f "$ckpt_git/commondir" ]; then
    IFS= read -r ckpt_common <"$ckpt_git/commondir" || [ -n "$ckpt_common" ] || return 0
    case $ckpt_common in /*) ;; *) ckpt_common=$ckpt_git/$ckpt_common ;; esac
    [ -f "$ckpt_git/ckpt-worktree-id" ] || return 0
    IFS= read -r ckpt_random <"$ckpt_git/ckpt-worktree-id" || [ -n "$ckpt_random" ] || return 0
    case $ckpt_random in '' | *[!0-9a-f]*) return 0 ;; esac
    ckpt_id=''
  fi
  if [ -n "$ckpt_store" ] && ckpt_in "$ckpt_store"; then return 0; fi
  ckpt_in "$ckpt_common/ckpt" || ckpt_dir=''
}

# `<name>-<random>` for a linked worktree: the random part alone names it.
ckpt_in() {
  if [ -n "$ckpt_id" ]; then
    ckpt_dir=$1/worktrees/$ckpt_id
    [ -d "$ckpt_dir" ]
    return
  fi
  for ckpt_dir in "$1/worktrees/"*"-$ckpt_random"; do
    [ ! -d "$ckpt_dir" ] || return 0
  done
  ckpt_dir=''
  return 1
}

# A store apart from the repository that was there and is not: src/ops/worktree/by-path.ts keeps a link to it, and gone.ts a note
# in one that was begun in its place. Once a commit.
ckpt_gone() {
  [ -n "$ckpt_store" ] || return 0
  case $ckpt_hook in pre-commit | pre-merge-commit) ;; *) return 0 ;; esac
  if [ -f "$ckpt_store/begun-anew" ]; then
    echo 'ckpt: the store of this worktree was begun in the place of one that was away (store.location): whether something is undone there is not known, and nothing is refused for it. See: ckpt status' >&2
  fi
  if [ -d "$ckpt_store" ]; then return 0; fi
  case ${HOME-} in /*) ckpt_link=$HOME/.local/state/ckpt ;; *) ckpt_link=/nowhere ;; esac
  case ${XDG_STATE_HOME-} in /*) ckpt_link=$XDG_STATE_HOME/ckpt ;; esac
  case ${CKPT_STATE_DIR-} in /*) ckpt_link=$CKPT_STATE_DIR ;; esac
  ckpt_link=$ckpt_link/by-path$(pwd -P)/.ckpt-worktree
  if [ ! -h "$ckpt_link" ] || [ -e "$ckpt_link" ]; then return 0; fi
  echo 'ckpt: the store of this worktree is not where it was (store.location): whether something is undone is not known, and nothing is refused. See: ckpt doctor' >&2
}

# Some programs start git with next to nothing in PATH.
ckpt_tools() {
  command -v tr >/dev/null 2>&1 || PATH=${PATH:+$PATH:}/usr/bin:/bin
}

ckpt_gate() {
  if [ -z "${CKPT_GATE_PROBE-}" ]; then
    case $ckpt_hook in
      post-commit | post-rewrite | pre-push)
        [ "${CKPT_DISABLED-}" != 1 ] || return 0
        ckpt_find
        [ -n "$ckpt_dir" ] || return 0
        ckpt_tools
        . "${ckpt_file%/*}/gate-more.sh"
        ckpt_more "$@"
        return
        ;;
    esac
    if [ "${CKPT_ALLOW_PENDING-}" = 1 ] || [ "${CKPT_DISABLED-}" = 1 ]; then return 0; fi
    ckpt_find
    ckpt_gone
    [ -n "$ckpt_dir" ] || return 0
    if [ ! -f "$ckpt_dir/boundary" ] && [ ! -f "$ckpt_dir/journal.json" ] && [ ! -f "$ckpt_dir/commit.json" ]; then return 0; fi
    ckpt_tools
    . "${ckpt_file%/*}/gate-refuse.sh"
    ckpt_refuses "$@" || return 0
    # Session names come from elsewhere: no control characters reach a terminal.
    ckpt_say | LC_ALL=C tr -d '\000-\010\013-\037\177' >&2
    return 5 # as ckpt itself exits; git makes it 1
  fi
  # The dry run of `ckpt hooks status`: it says which worktree it would look at, and refuses, so that nothing runs after it.
  ckpt_find
  [ -z "$ckpt_dir" ] || ckpt_dir=$(cd "$ckpt_dir" 2>/dev/null && pwd -P)
  printf 'ckpt-gate %s %s %s\n' "$CKPT_GATE_PROBE" "$ckpt_hook" "$ckpt_dir" >&2
  return 1
}

if [ -z "${ckpt_hook-}" ]; then
  ckpt_hook=${1-} ckpt_file=$0
  [ "$#" -eq 0 ] || shift
fi
case $ckpt_hook in
  pre-push | post-rewrite)
    # They are told on standard input, which the hook that runs next reads again. Where there is no place for temporary
    # files, our own directory is one.
    if [ "${CKPT_DISABLED-}" != 1 ]; then
      ckpt_input=$(mktemp 2>/dev/null || TMPDIR=${ckpt_file%/*} mktemp) && cat >"$ckpt_input" || exit 1
      ckpt_gate "$@" <"$ckpt_input" || { ckpt_code=$?; rm -f "$ckpt_input"; exit "$ckpt_code"; }
      exec <"$ckpt_input"
      rm -f "$ckpt_input"
    fi
    ;;
  *) ckpt_gate "$@" </dev/null || exit "$?" ;;
esac
