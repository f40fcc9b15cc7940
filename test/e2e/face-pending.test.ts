// Each command while turns are undone.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
import { DAEMON, READS, WRITES } from '../support/face-lines.ts'
import { Scratch } from '../support/scratch.ts'

function prepared(): Scratch {
  const scratch = new Scratch().init()
  scratch.git('config', 'user.name', 'A U Thor')
  scratch.git('config', 'user.email', 'author@example.com')
  scratch.turn('write a plan', () => scratch.write({ 'plan.md': 'a plan\n' }))
  scratch.turn('change a', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('tidy up', () => scratch.remove('plan.md'))
  scratch.ckpt('undo', '--turns', '2')
  return scratch
}

test('pending boundary: what reads', () => {
  const scratch = prepared()
  expect(faces(scratch, READS)).toMatchInlineSnapshot(`
    "
    $ ckpt status
    Worktree  <root>
    Git       main, uncommitted changes
    Store     8 checkpoints, <size>, survives git gc
    Sessions  s (1 turn, idle)
    Daemon    not running
    Undone    from turn 2 of s
    Bring it back: ckpt redo --all   Keep it this way: ckpt accept

    $ ckpt list
    Session s
      1  <time>  1 file +1 -0  write a plan
    Undone from turn 2 on. Bring it back: ckpt redo --all   Keep it: ckpt accept

    $ ckpt list --sessions
    s    1 turn  idle  undone from turn 2

    $ ckpt list --all-sessions
    s    1  <time>  1 file +1 -0  write a plan

    $ ckpt log
    Session s
      3  <time>  1 file +0 -1  tidy up       undone
      2  <time>  1 file +1 -1  change a      undone
      1  <time>  1 file +1 -0  write a plan

    $ ckpt log --graph
    Session s
    o   3  <time>  1 file +0 -1  tidy up       undone
    o   2  <time>  1 file +1 -1  change a      undone
    *   1  <time>  1 file +1 -0  write a plan

    $ ckpt show 2
    Turn 2 of session s  undone
      <time> to <time>, 1 file +1 -1
      > change a
      modified  a.txt  +1 -1

    $ ckpt show worktree
    ! ckpt: \`show\` wants a turn or a checkpoint, not the worktree. Nothing was changed.
    !   → ckpt diff worktree
    exit 2

    $ ckpt diff
    diff --git a/plan.md b/plan.md
    new file mode 100644
    index <id>..<id>
    --- /dev/null
    +++ b/plan.md
    @@ -0,0 +1 @@
    +a plan

    $ ckpt diff 9
    ! ckpt: There is no turn 9 in session s. Nothing was changed.
    !   → ckpt list --hidden --abandoned
    exit 3

    $ ckpt diff --stat
      added  plan.md  +1 -0

    $ ckpt verify
    ok  unfinished  no operation was cut short
    ok  objects     <n> objects read and hashed
    ok  loose       <n> loose objects whole
    ok  packs       0 packs whole
    ok  timeline    8 checkpoints, every chain whole
    ok  boundary    1 pending, each in its live chain
    ok  refs        5 are where they were last moved to
    ok  durable     no object is borrowed

    $ ckpt doctor
    ok  git         git <version>
    ok  lock        not held
    ok  packs       each is whole
    ok  refs        each names what is there
    ok  journal     no operation was cut short
    ok  boundary    the git hooks read what is pending
    ok  history     each chain of checkpoints is whole
    ok  objects     each that a checkpoint needs is whole
    ok  store       writable
    ok  checkpoint  the newest names 2 files
    ok  coverage    no left-out file looks like a secret or a database
    ok  durable     no object is borrowed
    ok  hooks       the git hooks are not installed (ckpt hooks install)

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
    -    1  one

    $ ckpt blame nowhere.txt
    ! ckpt: The newest checkpoint of session s has no file nowhere.txt. Nothing was changed.
    !   → ckpt status   (what is not covered)
    !   → ckpt list --sessions
    exit 3

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

test('pending boundary: what writes', () => {
  const scratch = prepared()
  expect(facesEach(scratch, WRITES)).toMatchInlineSnapshot(`
    "
    $ ckpt init
    Already initialized: <root>/.git/ckpt

    $ ckpt mark prompt --session s --text more
    Turn 4 starts: checkpoint <id>. Abandoned now: turn 2, 3.

    $ ckpt mark step --session s --tool Edit
    Late step after turn 3: checkpoint <id>.

    $ ckpt mark stop --session s
    Late stop after turn 3: checkpoint <id>.

    $ ckpt run -- true
    ! ckpt: There were uncommitted changes before this session: they are not its work, and no undo of its turns takes them.

    $ ckpt snapshot -m here
    Snapshot: checkpoint <id>.

    $ ckpt undo
    Undid turn 1: 1 file.
      delete  plan.md
    Back again: ckpt redo   Keep it this way: ckpt accept
    As it was before: ckpt restore <id> --exact

    $ ckpt undo --dry-run
    Would undo turn 1: 1 file. Nothing was changed.
      delete  plan.md
    Do exactly this: ckpt apply TOKEN   The token:
    <token>

    $ ckpt undo --only 1
    ! ckpt: Session s has undone turns pending (from turn 2). Nothing was changed.
    !   → ckpt redo --all --session s
    !   → ckpt accept --session s
    exit 5

    $ ckpt redo
    Redid turn 2: 1 file.
      write  a.txt
    Still undone: from turn 3. More: ckpt redo
    As it was before: ckpt restore <id> --exact

    $ ckpt accept
    Kept. Turns 2, 3 are abandoned now; the files can still be brought back: ckpt restore 3

    $ ckpt restore 1
    Restored from turn 1: no files to change.
    As it was before: ckpt restore <id> --exact

    $ ckpt switch 1
    ! ckpt: Session s has undone turns pending (from turn 2). Nothing was changed.
    !   → ckpt redo --all --session s
    !   → ckpt accept --session s
    exit 5

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
    ! ckpt: Session s has undone turns pending (from turn 2). Nothing was changed.
    !   → ckpt redo --all --session s
    !   → ckpt accept --session s
    exit 5

    $ ckpt prune
    $ ckpt prune --dry-run --keep 1
    No turn is past its time; 3 kept, <size> freed.

    $ ckpt forget a.txt
    Forgot a.txt: 8 checkpoints rewritten, 2 contents gone from the store. Old ids keep resolving.
      <id> → <id>
      <id> → <id>
      <id> → <id>
      <id> → <id>
      <id> → <id>
      <id> → <id>
      <id> → <id>
      <id> → <id>
    ! ckpt: It is on disk still: the next snapshot takes it again, unless snapshot.exclude names it.

    $ ckpt forget nowhere.txt
    ! ckpt: No checkpoint holds nowhere.txt. Contents that no checkpoint holds are gone from the store; no checkpoint was changed.
    !   → ckpt list
    exit 3

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
    $ ckpt bisect -- grep -q one a.txt
    ! ckpt: The command does not fail after turn 1 of session s. Your files were not touched.
    !   → ckpt list
    exit 3

    $ ckpt export ../out.bundle
    Exported 8 checkpoints of 1 session to <base>/out.bundle.
    ! ckpt: Exports 8 checkpoints of 1 session to <base>/out.bundle: every file they hold, names of ignored files, session ids, branches, times. Prompts stay here.

    $ ckpt import ../out.bundle
    @main  1 session  nothing new

    $ ckpt import nowhere.bundle
    ! ckpt: There is no file <root>/nowhere.bundle. Nothing was changed.
    !   → ckpt export FILE   (on the machine it comes from)
    exit 3

    $ ckpt push nowhere
    ! ckpt: There is no remote "nowhere". Nothing was changed.
    !   → git remote -v
    exit 3

    $ ckpt push ../remote.git
    Sent 8 checkpoints of 1 session to ../remote.git.
    ! ckpt: Sends 8 checkpoints of 1 session to ../remote.git: every file they hold, names of ignored files, session ids, branches, times. Prompts stay here.

    $ ckpt pull ../remote.git
    @main  1 session  nothing new

    $ ckpt pull nowhere
    ! ckpt: There is no remote "nowhere". Nothing was changed.
    !   → git remote -v
    exit 3
    "
  `)
})

test('pending boundary: the daemon', () => {
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
