// Each command in a store that lacks a tree.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
import { DAEMON, READS, WRITES } from '../support/face-lines.ts'
import { Scratch } from '../support/scratch.ts'
import { removeObject } from '../support/store-surgery.ts'

function prepared(): Scratch {
  const scratch = new Scratch().init()
  scratch.git('config', 'user.name', 'A U Thor')
  scratch.git('config', 'user.email', 'author@example.com')
  scratch.turn('write a plan', () => scratch.write({ 'plan.md': 'a plan\n' }))
  scratch.turn('change a', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('tidy up', () => scratch.remove('plan.md'))
  removeObject(scratch, 'refs/ckpt/@main/s/live^{tree}')
  return scratch
}

test('damaged store: what reads', () => {
  const scratch = prepared()
  expect(faces(scratch, READS)).toMatchInlineSnapshot(`
    "
    $ ckpt status
    Worktree  <root>
    Git       main, uncommitted changes
    Store     6 checkpoints, <size>, survives git gc
    Sessions  s (3 turns, idle)
    Daemon    not running

    $ ckpt list
    Session s
      3  <time>  damaged       tidy up
      2  <time>  1 file +1 -1  change a
      1  <time>  1 file +1 -0  write a plan
    ! ckpt: The store lacks some of what is to be told here: ckpt doctor

    $ ckpt list --sessions
    s    3 turns  idle

    $ ckpt list --all-sessions
    s    3  <time>  damaged       tidy up
    s    2  <time>  1 file +1 -1  change a
    s    1  <time>  1 file +1 -0  write a plan
    ! ckpt: The store lacks some of what is to be told here: ckpt doctor

    $ ckpt log
    Session s
      3  <time>  damaged       tidy up
      2  <time>  1 file +1 -1  change a
      1  <time>  1 file +1 -0  write a plan
    ! ckpt: The store lacks some of what is to be told here: ckpt doctor

    $ ckpt log --graph
    Session s
    *   3  <time>  damaged       tidy up
    *   2  <time>  1 file +1 -1  change a
    *   1  <time>  1 file +1 -0  write a plan
    ! ckpt: The store lacks some of what is to be told here: ckpt doctor

    $ ckpt show 2
    Turn 2 of session s
      <time> to <time>, 1 file +1 -1
      > change a
      modified  a.txt  +1 -1

    $ ckpt show worktree
    ! ckpt: \`show\` wants a turn or a checkpoint, not the worktree. Nothing was changed.
    !   → ckpt diff worktree
    exit 2

    $ ckpt diff
    ! ckpt: git diff-tree failed (exit 128): fatal: bad object <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt diff 9
    ! ckpt: There is no turn 9 in session s. Nothing was changed.
    !   → ckpt list --hidden --abandoned
    exit 3

    $ ckpt diff --stat
    ! ckpt: git diff-tree failed (exit 128): fatal: bad object <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt verify
    ok   unfinished  no operation was cut short
    bad  objects     <id> is missing (the list of all files after turn 3 of session s)
    ok   loose       <n> loose objects whole
    ok   packs       0 packs whole
    ok   timeline    6 checkpoints, every chain whole
    ok   boundary    none is pending
    ok   refs        3 are where they were last moved to
    ok   durable     no object is borrowed
    ! ckpt: objects: <id> is missing (the list of all files after turn 3 of session s)
    !   → ckpt doctor   (what can be mended, and how)
    exit 7

    $ ckpt doctor
    ok   git         git <version>
    ok   lock        not held
    ok   packs       each is whole
    ok   refs        each names what is there
    ok   journal     no operation was cut short
    ok   boundary    the git hooks read what is pending
    ok   history     each chain of checkpoints is whole
    bad  objects     the list of all files after turn 3 of session s is missing  → ckpt doctor --fix
    ok   store       writable
    bad  checkpoint  The store lacks tree <id>. Nothing was changed.  → ckpt doctor --fix
    ok   coverage    no left-out file looks like a secret or a database
    ok   durable     no object is borrowed
    ok   hooks       the git hooks are not installed (ckpt hooks install)
    ! ckpt: objects: the list of all files after turn 3 of session s is missing; checkpoint: The store lacks tree <id>. Nothing was changed.
    exit 7

    $ ckpt hooks status
    Git runs the hooks in <root>/.git/hooks:
      pre-commit          not installed
      pre-merge-commit    not installed
      pre-rebase          not installed
      pre-applypatch      not installed
      prepare-commit-msg  not installed
      commit-msg          not installed

    $ ckpt daemon status
    Not running. Every command works without it; start it: ckpt daemon start

    $ ckpt daemon logs
    ! No log yet.

    $ ckpt blame a.txt
    $ ckpt blame nowhere.txt
    ! ckpt: The store lacks tree <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt capabilities
    yes  supportsUndo
    yes  supportsRedo
    yes  supportsStepUndo
    yes  supportsSelectiveUndo
    yes  supportsDiff
    yes  supportsFork
    yes  supportsReconnect
    yes  supportsCommands
    no   supportsPermissionRequests
    no   supportsQuestionPrompts
    no   supportsModelSelection
    no   supportsPartialStreaming

    $ ckpt completion
    _ckpt() {
      local IFS=$'\\n' line word quote=\${COMP_WORDS[COMP_CWORD]:0:1} typed=()
      COMPREPLY=()
      for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
        case $word in
          [\\'\\"]*) word=\${word:1} && typed+=("\${word%[\\'\\"]}") ;;
          *) typed+=("\${word//\\\\/}") ;;
        esac
      done
      while IFS= read -r line; do
        word=\${line%%$'\\t'*}
        case $quote in
          \\') [[ $word == *\\'* ]] && continue ;;
          \\") [[ $word == *[\\$\\\`\\"\\\\!]* ]] && continue ;;
          *) printf -v word %q "$word" ;;
        esac
        COMPREPLY+=("$word")
      done < <(ckpt completion --words -- "\${typed[@]}" 2>/dev/null)
    }
    complete -o default -F _ckpt ckpt

    $ ckpt completion fish
    function __ckpt_words
      set -l typed (commandline -ct)
      set -l word (string unescape -- $typed; or string trim -l -c "'\\"" -- $typed)
      set -l found (ckpt completion --words -- (commandline -opc)[2..] "$word" 2>/dev/null)
      if test -n "$found"
        printf '%s\\n' $found
      else
        complete -C "'' "(commandline -ct)
      end
    end
    complete -c ckpt -f -a '(__ckpt_words)'

    $ ckpt completion --words -- show
    3	tidy up
    2	change a
    1	write a plan

    $ ckpt agent status
    Not installed: claude, codex, opencode, gemini, cursor. Install: ckpt agent install NAME
    "
  `)
})

test('damaged store: what writes', () => {
  const scratch = prepared()
  expect(facesEach(scratch, WRITES)).toMatchInlineSnapshot(`
    "
    $ ckpt init
    Already initialized: <root>/.git/ckpt

    $ ckpt mark prompt --session s --text more
    Turn 4 starts: checkpoint <id>.
    ! ckpt: The store lacks objects of the newest checkpoint: all files were read again. What that lacks: ckpt verify

    $ ckpt mark step --session s --tool Edit
    Late step after turn 3: checkpoint <id>.
    ! ckpt: The store lacks objects of the newest checkpoint: all files were read again. What that lacks: ckpt verify

    $ ckpt mark stop --session s
    Late stop after turn 3: checkpoint <id>.
    ! ckpt: The store lacks objects of the newest checkpoint: all files were read again. What that lacks: ckpt verify

    $ ckpt run -- true
    ! ckpt: The store lacks objects of the newest checkpoint: all files were read again. What that lacks: ckpt verify
    ! ckpt: There were uncommitted changes before this session: they are not its work, and no undo of its turns takes them.

    $ ckpt snapshot -m here
    Snapshot: checkpoint <id>.
    ! ckpt: The store lacks objects of the newest checkpoint: all files were read again. What that lacks: ckpt verify

    $ ckpt undo
    Undid turn 3: 1 file.
      write  plan.md
    Back again: ckpt redo   Keep it this way: ckpt accept
    As it was before: ckpt restore <id> --exact

    $ ckpt undo --dry-run
    Would undo turn 3: 1 file. Nothing was changed.
      write  plan.md
    Do exactly this: ckpt apply TOKEN   The token:
    <token>

    $ ckpt undo --only 1
    Nothing of turn 1 is left to take back: nothing was recorded.

    $ ckpt redo
    ! ckpt: Session s has nothing undone. Nothing was changed.
    !   → ckpt list --sessions
    exit 3

    $ ckpt accept
    Nothing is undone here.

    $ ckpt restore 1
    Restored from turn 1: 2 files.
      write  a.txt
      write  plan.md
    As it was before: ckpt restore <id> --exact

    $ ckpt switch 1
    Switched to turn 1: 2 files.
      write  a.txt
      write  plan.md
    As it was before: ckpt restore <id> --exact

    $ ckpt rewind
    ! ckpt: \`ckpt rewind\` asks, and there is no terminal to ask on. Nothing was changed.
    !   → ckpt list
    !   → ckpt undo --to TURN --dry-run
    !   → ckpt restore TURN --dry-run
    exit 2

    $ ckpt apply nonsense
    ! ckpt: That is not a token of a dry run. Nothing was changed.
    !   → ckpt undo --dry-run
    exit 2

    $ ckpt commit -m done
    ! ckpt: The store lacks tree <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt prune
    ! ckpt: git repack failed (exit 128): fatal: bad tree object <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt prune --dry-run --keep 1
    Would remove 2 turns, <size>; 1 kept.
      turn 1 of s
      turn 2 of s

    $ ckpt forget a.txt
    $ ckpt forget nowhere.txt
    ! ckpt: The store lacks tree <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt hooks install
    While something is undone, commits in this repository are refused now.
      pre-commit          installed  fires
      pre-merge-commit    installed  fires
      pre-rebase          installed  fires
      pre-applypatch      installed  fires
      prepare-commit-msg  installed  fires
      commit-msg          installed  fires

    $ ckpt hooks uninstall
    The gate is gone; other hooks are as they were.

    $ ckpt daemon stop
    No daemon is running here.

    $ ckpt hook claude

    $ ckpt import-transcript claude nowhere.jsonl
    ! ckpt: There is no file <root>/nowhere.jsonl. Nothing was recorded.
    !   → ckpt import-transcript --help
    exit 3

    $ ckpt agent install claude
    Installed the hooks for Claude Code: <base>/home/.claude/settings.json
    Seen: prompts, tool calls that may write, shell edits, subagents, API errors; an interrupt is inferred at the next prompt.
    Out again: ckpt agent uninstall claude

    $ ckpt agent uninstall claude
    Claude Code has no hooks of ckpt in <base>/home/.claude/settings.json

    $ ckpt agent install nobody
    ! ckpt: There is no agent "nobody": claude, codex, opencode, gemini, cursor are known. Nothing was changed.
    !   → ckpt agent --help
    exit 2

    $ ckpt bisect -- true
    ! ckpt: The command does not fail after turn 3 of session s. Your files were not touched.
    !   → ckpt list
    exit 3

    $ ckpt bisect -- grep -q one a.txt
    Turn 2 of session s is the first after which it fails (4 runs): change a
    What it did: ckpt diff 2   Take it back alone: ckpt undo --only 2

    $ ckpt export ../out.bundle
    ! ckpt: The store lacks tree <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt import ../out.bundle
    ! ckpt: There is no file <base>/out.bundle. Nothing was changed.
    !   → ckpt export FILE   (on the machine it comes from)
    exit 3

    $ ckpt import nowhere.bundle
    ! ckpt: There is no file <root>/nowhere.bundle. Nothing was changed.
    !   → ckpt export FILE   (on the machine it comes from)
    exit 3

    $ ckpt push nowhere
    ! ckpt: There is no remote "nowhere". Nothing was changed.
    !   → git remote -v
    exit 3

    $ ckpt push ../remote.git
    ! ckpt: The store lacks tree <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt pull ../remote.git
    Nothing new.

    $ ckpt pull nowhere
    ! ckpt: There is no remote "nowhere". Nothing was changed.
    !   → git remote -v
    exit 3
    "
  `)
})

test('damaged store: the daemon', () => {
  const scratch = prepared()
  expect(faces(scratch, DAEMON)).toMatchInlineSnapshot(`
    "
    $ ckpt daemon start
    The daemon watches <root> (process <pid>).

    $ ckpt daemon status
    Running (process <pid>), watching 1 directory; snapshots are fast.

    $ ckpt daemon start
    A daemon is at work here already (process <pid>).

    $ ckpt daemon stop
    The daemon has stopped.

    $ ckpt watch
    watching <root>
    "
  `)
})
