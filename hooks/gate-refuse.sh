#!/bin/sh
# The gate's second half, sourced by gate.sh where something is pending: whether this hook is the one to refuse, and what
# it says. Uses ckpt_git, ckpt_dir and ckpt_hook.

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
      case "$ckpt_sub $ckpt_word" in
        'commit -m' | 'commit -'[aeinopqsvz]m | 'commit --message' | 'commit -F' | 'commit --file' | 'merge -m' | 'merge -F') ckpt_skip=1 ;; # words come
      esac
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

# Whether a ref of git's own is there: a file but in a reftable repository, where git alone can tell.
ckpt_head() {
  [ -f "$ckpt_git/$1" ] || { [ -d "$ckpt_common/reftable" ] && git rev-parse -q --verify "$1" >/dev/null 2>&1; }
}

# What git is in the middle of.
ckpt_busy() {
  if [ -d "$ckpt_git/rebase-merge" ]; then echo rebase
  elif [ -f "$ckpt_git/rebase-apply/applying" ]; then echo am
  elif [ -d "$ckpt_git/rebase-apply" ]; then echo rebase
  elif [ -f "$ckpt_git/MERGE_HEAD" ]; then echo merge
  elif ckpt_head CHERRY_PICK_HEAD; then echo cherry-pick
  elif ckpt_head REVERT_HEAD; then echo revert
  elif grep -q '^revert' "$ckpt_git/sequencer/todo" 2>/dev/null; then echo revert
  elif [ -d "$ckpt_git/sequencer" ]; then echo cherry-pick
  fi
}

# Whether a `ckpt commit` was killed after git had made its commit: the index is still as before it, and a commit made of it
# takes the other one's files out again. Its note begins with its process (0: none), and says what HEAD was; the commit is the
# first that was made on it, if it has the tree or the message of the note: a hook may have changed one of them. (Of the
# message what comes before the first escape is compared.)
ckpt_cut_short() {
  ckpt_note=$(sed -n 's/^{"pid":\([0-9]*\),.*,"head":"\{0,1\}\([0-9a-z]*\)"\{0,1\},"turns":.*/\1 \2/p' "$ckpt_dir/commit.json" 2>/dev/null)
  ckpt_pid=${ckpt_note%% *} ckpt_was=${ckpt_note#* }
  case $ckpt_pid in '' | *[!0-9]*) return 1 ;; esac
  [ "$ckpt_pid" -eq 0 ] || ! kill -0 "$ckpt_pid" 2>/dev/null || return 1
  ckpt_first=HEAD ckpt_base=$ckpt_was
  if [ "$ckpt_was" = null ]; then ckpt_base=$(git hash-object -t tree /dev/null); else ckpt_first=$ckpt_was..HEAD; fi
  ckpt_first=$(git rev-list --first-parent --reverse "$ckpt_first" 2>/dev/null | sed -n 1p)
  [ -n "$ckpt_first" ] || return 1
  [ "$(git rev-parse -q --verify "$ckpt_first^" || echo null)" = "$ckpt_was" ] || return 1
  ckpt_is_noted && [ -n "$(ckpt_stale)" ]
}

ckpt_is_noted() {
  ckpt_tree=$(sed -n 's/.*,"tree":"\([0-9a-f]*\)",.*/\1/p' "$ckpt_dir/commit.json" 2>/dev/null)
  [ -z "$ckpt_tree" ] || [ "$ckpt_tree" != "$(git rev-parse -q --verify "$ckpt_first^{tree}")" ] || return 0
  ckpt_name=$(sed -n 's/.*,"message":"\([^"\\]*\).*/\1/p' "$ckpt_dir/commit.json" 2>/dev/null)
  [ -n "$ckpt_name" ] || return 1
  case $(git show -s --no-show-signature --format=%B --encoding=UTF-8 "$ckpt_first") in "$ckpt_name"*) ;; *) return 1 ;; esac
}

# A path that the commit changed, and that the index has otherwise than it, than HEAD, and than the disk: one that all four
# name. What the index lacks counts as otherwise than the disk. In what is committed of a part (`git commit -a`, or of
# paths) git names another index, which has none such.
ckpt_stale() {
  {
    git diff-tree -r --no-renames --name-only "$ckpt_base" "$ckpt_first"
    git diff-index --cached --no-renames --name-only "$ckpt_first"
    git diff-index --cached --no-renames --name-only HEAD
    {
      git diff-files --name-only
      git diff-index --cached --no-renames --name-only --diff-filter=D "$ckpt_first"
    } | LC_ALL=C sort -u
  } | LC_ALL=C sort | LC_ALL=C uniq -c | sed -n 's/^ *4 //p' | sed -n 1p
}

# Whether this hook is one that has to refuse. The others have seen to it already, or --no-verify passed them by.
# $1: the message file, in prepare-commit-msg. Sets ckpt_marker, the file that is there.
ckpt_refuses() {
  if [ -f "$ckpt_dir/boundary" ]; then ckpt_marker=boundary
  elif [ -f "$ckpt_dir/journal.json" ]; then ckpt_marker=journal.json
  else
    # All others want an index that is as HEAD.
    case $ckpt_hook in pre-commit | commit-msg) ckpt_cut_short || return 1 ;; *) return 1 ;; esac
    ckpt_marker=commit.json
  fi
  ckpt_during=$(ckpt_busy)
  [ "$ckpt_hook" != pre-merge-commit ] || ckpt_during=merge
  case $ckpt_hook in
    prepare-commit-msg | pre-applypatch)
      ckpt_caller
      [ "$ckpt_verify" = verify ] || return 1
      [ "$ckpt_hook" = prepare-commit-msg ] || ckpt_op=${ckpt_op:-am}
      ;;
    commit-msg)
      # Something was undone while the message was written; who said --no-verify does not come here.
      ckpt_caller
      [ "$ckpt_verify" = verify ] || return 1
      ckpt_op=${ckpt_op:-${ckpt_during:-commit}}
      ;;
    pre-merge-commit) ckpt_op=merge ;;
    pre-rebase) ckpt_op=rebase ckpt_during='' ;; # what is there of one is the autostash of this one at most
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

# A path from any directory; a hook runs at the worktree's root.
ckpt_whole() {
  case $1 in
    /*) printf %s "$1" ;;
    *) printf %s "$(pwd)/$1" ;;
  esac
}

# A way out for each session: $1 the command, $2 what it does.
ckpt_each() {
  while IFS= read -r ckpt_line || [ -n "$ckpt_line" ]; do
    ckpt_session=${ckpt_line%%"$ckpt_tab"*}
    case $ckpt_session in
      -*) ckpt_option='--session=' ;;
      *) ckpt_option='--session ' ;;
    esac
    printf '%s\n' "  -> $1 $ckpt_option$(ckpt_quoted "$ckpt_session")    $2"
  done <"$ckpt_list"
}

ckpt_say() {
  ckpt_tab=$(printf '\t') ckpt_list=$ckpt_dir/boundary
  [ -r "$ckpt_list" ] || ckpt_list=/dev/null # another user's
  case $ckpt_op in am) ckpt_what='git am' ;; *) ckpt_what="git ${ckpt_op:-commit}" ;; esac
  if [ "$ckpt_marker" = boundary ]; then
    printf '%s\n' "ckpt: $ckpt_what refused: a revert boundary is pending in this worktree. Nothing was committed."
    while IFS= read -r ckpt_line || [ -n "$ckpt_line" ]; do
      ckpt_session=${ckpt_line%%"$ckpt_tab"*}
      ckpt_rest=${ckpt_line#*"$ckpt_tab"}
      ckpt_hidden=${ckpt_rest#*"$ckpt_tab"}
      ckpt_turn=${ckpt_rest%%"$ckpt_tab"*}
      # A turn that is not hidden itself is undone from one of its steps on.
      case ",$ckpt_hidden," in *",$ckpt_turn,"*) ckpt_from= ;; *) ckpt_from='a step of ' ;; esac
      printf '%s\n' "  session $ckpt_session: undone from ${ckpt_from}turn $ckpt_turn on; hidden turns: ${ckpt_hidden:-none}"
    done <"$ckpt_list"
    [ "$ckpt_list" != /dev/null ] || printf '%s\n' "  what is undone cannot be read here: ls -l $(ckpt_quoted "$(ckpt_whole "$ckpt_dir/boundary")")"
    printf '%s\n' "Ways out:"
    ckpt_autostash
    if [ -z "$ckpt_during" ]; then
      ckpt_each 'ckpt redo --all' 'brings the hidden turns back'
      ckpt_each 'ckpt accept' 'keeps the undone state'
    else
      # A redo is refused while git is in the middle of something.
      ckpt_each 'ckpt accept' 'keeps the undone state'
      printf '%s\n' "  -> git $ckpt_during --abort    gives the $ckpt_during up; after it:"
      ckpt_each 'ckpt redo --all' 'brings the hidden turns back'
    fi
  elif [ "$ckpt_marker" = commit.json ]; then
    printf '%s\n' "ckpt: $ckpt_what refused: a ckpt commit was cut short, and your index is as it was before it: this would take what it committed out again. Nothing was committed."
    printf '%s\n' "Ways out:"
    ckpt_autostash
    printf '%s\n' "  -> ckpt status    finishes it: your index follows that commit"
  else
    printf '%s\n' "ckpt: $ckpt_what refused: an undo or redo is half done in this worktree. Nothing was committed."
    printf '%s\n' "Ways out:"
    ckpt_autostash
    printf '%s\n' "  -> ckpt doctor --fix    finishes it; then see: ckpt status"
  fi
  # What is under way is gone on with, not begun again.
  ckpt_again="$ckpt_what ..." ckpt_unverified="$ckpt_what --no-verify ..."
  [ "$ckpt_op" != "${ckpt_during:-none}" ] || ckpt_again="$ckpt_what --continue"
  ckpt_before=$(ckpt_unpicked)
  printf '%s\n' "  -> ${ckpt_before:+CKPT_ALLOW_PENDING=1 $ckpt_before}CKPT_ALLOW_PENDING=1 $ckpt_again    lets this one through"
  case $ckpt_op${ckpt_during:+ in it} in
    cherry-pick* | revert* | 'rebase in it') ckpt_unverified='' ;; # they have no such option
    am*) git am -h 2>&1 | grep -q -e '--\[no-\]verify' -e '--no-verify' || ckpt_unverified='' ;; # a newer git has
    'merge in it') ckpt_unverified='git commit --no-verify' ;;
  esac
  [ -z "$ckpt_unverified" ] || printf '%s\n' "  -> $ckpt_unverified    the same, for every hook"
  # What is half done a journal alone can finish: it is not to be removed.
  command -v ckpt >/dev/null 2>&1 || case $ckpt_marker in
    journal.json) printf '%s\n' "  ckpt is not in PATH here. Without it: CKPT_ALLOW_PENDING=1" ;;
    *) printf '%s\n' "  ckpt is not in PATH here. Without it: CKPT_ALLOW_PENDING=1, or remove $(ckpt_quoted "$(ckpt_whole "$ckpt_dir/$ckpt_marker")")" ;;
  esac
  ckpt_left
}

# A rebase puts away what is not committed before it asks this hook, and git before 2.47 leaves it there when that refuses:
# named by a file alone, out of the worktree. Nothing else can be done until that is seen to.
ckpt_autostash() {
  [ "$ckpt_hook" = pre-rebase ] || return 0
  [ -f "$ckpt_git/rebase-merge/autostash" ] || [ -f "$ckpt_git/rebase-apply/autostash" ] || return 0
  printf '%s\n' "  -> git rebase --quit && git stash pop    first, unless git says \"Applied autostash\": your uncommitted changes come back"
}

# Of several commits that are reverted git leaves the one that was refused in the index and the files, and does not know of
# it any more: it goes on with the next one, once that is committed.
ckpt_unpicked() {
  [ "$ckpt_during" = revert ] && ! ckpt_head REVERT_HEAD || return 0
  printf 'git commit --no-edit && '
}

# What git leaves behind when this hook refuses.
ckpt_left() {
  [ "$ckpt_hook" != pre-rebase ] || return 0 # ckpt_autostash has said it
  if [ "$ckpt_hook" = commit-msg ] && [ -z "$ckpt_during" ]; then
    printf '%s\n' "The message that was written is in $(ckpt_quoted "$(ckpt_whole "$ckpt_git/COMMIT_EDITMSG")")"
  fi
  if [ -n "$ckpt_during" ]; then
    case $ckpt_during in am) ckpt_article=an ;; *) ckpt_article=a ;; esac
    printf '%s\n' "git is in the middle of $ckpt_article $ckpt_during. Give it up: git $ckpt_during --abort   Go on later: $(ckpt_unpicked)git $ckpt_during --continue"
  elif [ "$ckpt_op" = revert ]; then
    printf '%s\n' "git revert leaves its changes in the index and the files. Take them out, before it is tried again too: git reset --merge   Or commit them later: git commit"
  fi
}
