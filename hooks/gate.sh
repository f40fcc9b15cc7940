#!/bin/sh
# The gate of ckpt: while a revert boundary is pending in this worktree, or an undo is half done, a commit is refused.
#
#   sh gate.sh HOOK [ARGUMENT...]     or sourced by a hook that has set ckpt_hook
#
# It reads one marker file and starts no process until it has something to say (githooks(5), gitrepository-layout(5)).
# Nothing here may wait, ask, or read standard input: that belongs to the hooks that run after it.

# Where the store is when it is not in the repository's own directory; written here by `ckpt hooks install`.
ckpt_store=''

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
  ckpt_in "$ckpt_common/ckpt" || return 0
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

# The words of a process's command line, one a line.
ckpt_words() {
  if [ -r "/proc/$1/cmdline" ]; then
    tr '\n\000' ' \n' <"/proc/$1/cmdline"
  else
    ps -o args= -p "$1" 2>/dev/null | tr ' ' '\n'
  fi
}

# From those words: git's subcommand and whether it was told --no-verify. `-` when it is not git.
ckpt_subcommand() {
  IFS= read -r ckpt_word || return 0
  case ${ckpt_word##*/} in
    git) ;;
    *) echo - && return 0 ;;
  esac
  ckpt_sub='' ckpt_skip='' ckpt_flag=verify
  while IFS= read -r ckpt_word; do
    if [ -n "$ckpt_skip" ]; then
      ckpt_skip=''
    elif [ -z "$ckpt_sub" ]; then
      case $ckpt_word in
        -c | -C | --git-dir | --work-tree | --namespace | --super-prefix | --config-env | --attr-source) ckpt_skip=1 ;;
        -*) ;;
        *) ckpt_sub=$ckpt_word ;;
      esac
    else
      case $ckpt_word in
        --) break ;;
        --no-veri | --no-verif | --no-verify) ckpt_flag=no-verify ;;
        --verify) ckpt_flag=verify ;;
      esac
    fi
  done
  echo "${ckpt_sub:-git} $ckpt_flag"
}

# Which git command runs this hook, from the processes above: the sequencer's commands start `git commit -n` themselves,
# and a hook is not told what the person asked for. Sets ckpt_op (empty: cannot be seen) and ckpt_verify.
ckpt_caller() {
  ckpt_op='' ckpt_verify=verify ckpt_pid=$PPID ckpt_depth=0 ckpt_inside=''
  while [ "$ckpt_depth" -lt 24 ] && [ "${ckpt_pid:-0}" -gt 1 ]; do
    ckpt_found=$(ckpt_words "$ckpt_pid" | ckpt_subcommand)
    case $ckpt_found in
      '' | -) [ -z "$ckpt_inside" ] || break ;;
      *)
        ckpt_inside=1
        case ${ckpt_found% *} in
          rebase | cherry-pick | revert | am | merge) ckpt_op=${ckpt_found% *} ;;
          pull) ckpt_op=${ckpt_op:-merge} ;;
          commit) ckpt_op=${ckpt_op:-commit} ;;
        esac
        [ "${ckpt_found#* }" = verify ] || ckpt_verify=no-verify
        ;;
    esac
    ckpt_pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$ckpt_pid/status" 2>/dev/null || ps -o ppid= -p "$ckpt_pid" 2>/dev/null)
    ckpt_pid=${ckpt_pid##*[!0-9]}
    ckpt_depth=$((ckpt_depth + 1))
  done
}

# What git is in the middle of.
ckpt_busy() {
  if [ -d "$ckpt_git/rebase-merge" ]; then echo rebase
  elif [ -f "$ckpt_git/rebase-apply/applying" ]; then echo am
  elif [ -d "$ckpt_git/rebase-apply" ]; then echo rebase
  elif [ -f "$ckpt_git/MERGE_HEAD" ]; then echo merge
  elif [ -f "$ckpt_git/CHERRY_PICK_HEAD" ]; then echo cherry-pick
  elif [ -f "$ckpt_git/REVERT_HEAD" ]; then echo revert
  elif grep -q '^revert' "$ckpt_git/sequencer/todo" 2>/dev/null; then echo revert
  elif [ -d "$ckpt_git/sequencer" ]; then echo cherry-pick
  fi
}

# Whether this hook is one that has to refuse. The others have seen to it already, or --no-verify passed them by.
# $1: the message file, in prepare-commit-msg.
ckpt_refuses() {
  ckpt_during=$(ckpt_busy)
  case $ckpt_hook in
    prepare-commit-msg | pre-applypatch)
      ckpt_caller
      [ "$ckpt_verify" = verify ] || return 1
      [ "$ckpt_hook" = prepare-commit-msg ] || ckpt_op=${ckpt_op:-am}
      ;;
    pre-merge-commit) ckpt_op=merge ;;
    pre-rebase) ckpt_op=rebase ;;
    *) ckpt_op=commit ;;
  esac
  [ "$ckpt_hook" = prepare-commit-msg ] || return 0
  case $ckpt_op in
    commit) return 1 ;; # pre-commit had its say: who comes here said --no-verify
    '')
      # Not to be seen from here: the state tells. A clean single revert leaves none, but for its message.
      if [ -n "$ckpt_during" ]; then ckpt_op=$ckpt_during
      elif grep -q 'This reverts commit' "${1-}" 2>/dev/null; then ckpt_op=revert
      else return 1
      fi
      ;;
  esac
  return 0
}

ckpt_quoted() {
  case $1 in
    '' | *[!A-Za-z0-9._:@%+=,/-]*) printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf %s "$1" ;;
  esac
}

ckpt_say() {
  ckpt_tab=$(printf '\t')
  case $ckpt_op in am) ckpt_what='git am' ;; *) ckpt_what="git ${ckpt_op:-commit}" ;; esac
  if [ -f "$ckpt_dir/boundary" ]; then
    printf '%s\n' "ckpt: $ckpt_what refused: a revert boundary is pending in this worktree. Nothing was committed."
    while IFS= read -r ckpt_line || [ -n "$ckpt_line" ]; do
      ckpt_session=${ckpt_line%%"$ckpt_tab"*}
      ckpt_rest=${ckpt_line#*"$ckpt_tab"}
      ckpt_hidden=${ckpt_rest#*"$ckpt_tab"}
      printf '%s\n' "  session $ckpt_session: undone from turn ${ckpt_rest%%"$ckpt_tab"*} on; hidden turns: ${ckpt_hidden:-none}"
    done <"$ckpt_dir/boundary"
    printf '%s\n' "Ways out:"
    while IFS= read -r ckpt_line || [ -n "$ckpt_line" ]; do
      ckpt_session=$(ckpt_quoted "${ckpt_line%%"$ckpt_tab"*}")
      printf '%s\n' "  -> ckpt redo --all --session $ckpt_session    brings the hidden turns back"
      printf '%s\n' "  -> ckpt accept --session $ckpt_session    keeps the undone state"
    done <"$ckpt_dir/boundary"
  else
    printf '%s\n' "ckpt: $ckpt_what refused: an undo or redo is half done in this worktree. Nothing was committed."
    printf '%s\n' "Ways out:"
    printf '%s\n' "  -> ckpt doctor --fix    finishes it; then see: ckpt status"
  fi
  printf '%s\n' "  -> CKPT_ALLOW_PENDING=1 $ckpt_what ...    lets this one through"
  case $ckpt_op in
    cherry-pick | revert) ckpt_flag='' ;; # they have no such option
    am) ckpt_flag=$(git am -h 2>&1 | grep -o -e '--\[no-\]verify' -e '--no-verify') ;; # a newer git has
    *) ckpt_flag=1 ;;
  esac
  [ -z "$ckpt_flag" ] || printf '%s\n' "  -> $ckpt_what --no-verify ...    the same, for every hook"
  command -v ckpt >/dev/null 2>&1 ||
    printf '%s\n' "  ckpt is not in PATH here. Without it: CKPT_ALLOW_PENDING=1, or remove $(ckpt_quoted "$ckpt_dir/boundary")"
  ckpt_left
}

# What git leaves behind when this hook refuses.
ckpt_left() {
  case $ckpt_hook in
    pre-rebase) return 0 ;; # nothing was begun
    pre-merge-commit) ckpt_during=merge ;;
  esac
  if [ -n "$ckpt_during" ]; then
    printf '%s\n' "git is in the middle of a $ckpt_during. Give it up: git $ckpt_during --abort   Go on later: git $ckpt_during --continue"
  elif [ "$ckpt_op" = revert ]; then
    printf '%s\n' "git revert leaves its changes in the index and the files. Take them out: git reset --merge   Or commit them later: git commit"
  fi
}

ckpt_gate() {
  if [ -z "${CKPT_GATE_PROBE-}" ]; then
    if [ "${CKPT_ALLOW_PENDING-}" = 1 ] || [ "${CKPT_DISABLED-}" = 1 ]; then return 0; fi
    ckpt_find
    [ -n "$ckpt_dir" ] || return 0
    if [ ! -f "$ckpt_dir/boundary" ] && [ ! -f "$ckpt_dir/journal.json" ]; then return 0; fi
    ckpt_refuses "$@" || return 0
    # Session names come from elsewhere: no control characters reach a terminal.
    ckpt_say | LC_ALL=C tr -d '\000-\010\013-\037\177' >&2
    return 1
  fi
  # The dry run of `ckpt hooks status`: it says which worktree it would look at, and refuses, so that nothing runs after it.
  ckpt_find
  [ -z "$ckpt_dir" ] || ckpt_dir=$(cd "$ckpt_dir" 2>/dev/null && pwd -P)
  printf 'ckpt-gate %s %s %s\n' "$CKPT_GATE_PROBE" "$ckpt_hook" "$ckpt_dir" >&2
  return 1
}

if [ -z "${ckpt_hook-}" ]; then
  ckpt_hook=${1-}
  [ "$#" -eq 0 ] || shift
fi
ckpt_gate "$@" </dev/null || exit 1
