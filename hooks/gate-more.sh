#!/bin/sh
# The hooks beside the gate, sourced by gate.sh where they are installed: what a commit came from is written down
# (post-commit, post-rewrite), and a push of commits that were made while something was undone is refused (pre-push).
# Uses ckpt_git, ckpt_dir, ckpt_hook and ckpt_push.
#
# <worktree's directory in the store>/made holds a line for each commit, the newest checkpoints at that time, and a line
# for each commit that became another one:
#
#   commit <id> <time> pending|clean
#   from <checkpoint> <ref>
#   rewrite <old> <new>

# After a commit: never fails, for the commit is made.
ckpt_note_commit() {
  ckpt_commit=$(git rev-parse -q --verify HEAD) || return 0
  ckpt_state=clean
  if [ -f "$ckpt_dir/boundary" ] || [ -f "$ckpt_dir/journal.json" ]; then ckpt_state=pending; fi
  {
    printf 'commit %s %s %s\n' "$ckpt_commit" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$ckpt_state"
    git --git-dir="${ckpt_dir%/worktrees/*}/store.git" for-each-ref --count=8 --sort=-committerdate \
      --format='from %(objectname) %(refname)' "refs/ckpt/${ckpt_dir##*/}/*/live" "refs/ckpt/${ckpt_dir##*/}/*/boundary"
  } >>"$ckpt_dir/made" 2>/dev/null
  return 0
}

# After an amend or a rebase: standard input is `<old> <new>`, a line each.
ckpt_note_rewrite() {
  while read -r ckpt_old ckpt_new ckpt_rest; do
    [ -z "$ckpt_new" ] || printf 'rewrite %s %s\n' "$ckpt_old" "$ckpt_new"
  done >>"$ckpt_dir/made" 2>/dev/null
  return 0
}

# Of the commits on standard input, those that were made while a boundary was pending, whatever became of them since.
ckpt_pending_ones() {
  awk '
    FILENAME != "-" {
      if ($1 == "commit" && $4 == "pending") pending[$2] = 1
      if ($1 == "rewrite" && $2 in pending) pending[$3] = 1
      next
    }
    $1 in pending
  ' "$ckpt_dir/made" -
}

# The commits that one line of pre-push would send: those that this remote does not have yet.
ckpt_sent() {
  if [ -z "$(printf %s "$2" | tr -d 0)" ] || ! git cat-file -e "$2^{commit}" 2>/dev/null; then
    git rev-list "$1" --not --remotes="$ckpt_remote"
  else
    git rev-list "$1" "^$2"
  fi
}

# Before a push: standard input is `<local ref> <local id> <remote ref> <remote id>`, a line each (githooks(5)).
ckpt_check_push() {
  ckpt_remote=$1 ckpt_bad='' ckpt_unproved=''
  while read -r ckpt_ref ckpt_local ckpt_there ckpt_known; do
    [ -n "$(printf %s "$ckpt_local" | tr -d 0)" ] || continue # a deletion sends nothing
    ckpt_new=$(ckpt_sent "$ckpt_local" "$ckpt_known")
    [ -n "$ckpt_new" ] || continue
    if [ -f "$ckpt_dir/made" ]; then
      ckpt_bad="$ckpt_bad$(printf '%s\n' "$ckpt_new" | ckpt_pending_ones | sed 's/$/ /' | tr -d '\n')"
    fi
    [ "$ckpt_push" = uncovered ] || continue
    # Just those, whatever they are: what the remote has already may lie between them.
    printf '%s\n' "$ckpt_new" | ckpt verify --ref - --covered --quiet >/dev/null 2>&1 || ckpt_unproved="$ckpt_unproved $ckpt_local"
  done
  [ -n "$ckpt_bad$ckpt_unproved" ] || return 0
  ckpt_say_push | LC_ALL=C tr -d '\000-\010\013-\037\177' >&2
  return 1
}

ckpt_say_push() {
  if [ -n "$ckpt_bad" ]; then
    printf '%s\n' 'ckpt: git push refused: these commits were made while a revert boundary was pending. Nothing was pushed.'
    # shellcheck disable=SC2086 # one commit, one word
    git log --no-walk --format='  %h %s' $ckpt_bad
  fi
  if [ -n "$ckpt_unproved" ]; then
    printf '%s\n' 'ckpt: git push refused: not every commit of it is covered by recorded turns. Nothing was pushed.'
    for ckpt_local in $ckpt_unproved; do
      printf '%s\n' "  -> git rev-list $ckpt_local --not --remotes=$ckpt_remote | ckpt verify --ref - --covered    says which"
    done
    command -v ckpt >/dev/null 2>&1 || printf '%s\n' '  ckpt is not in PATH here: nothing can be proved without it.'
  fi
  printf '%s\n' '  -> git push --no-verify ...    sends them all the same'
}

ckpt_more() {
  case $ckpt_hook in
    post-commit) ckpt_note_commit ;;
    post-rewrite) ckpt_note_rewrite ;;
    pre-push) ckpt_check_push "$@" ;;
  esac
}
