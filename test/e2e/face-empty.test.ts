// Each command where nothing was recorded yet.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
import { DAEMON, READS, WRITES } from '../support/face-lines.ts'
import { Scratch } from '../support/scratch.ts'

const prepared = () => new Scratch().init()

test('empty repository: what reads', () => {
  const scratch = prepared()
  expect(faces(scratch, READS)).toMatchInlineSnapshot(`
    "
    $ ckpt status
    Worktree  <root>
    Git       main
    Store     nothing recorded yet
    Sessions  none yet   (first: ckpt agent install NAME)
    Daemon    not running

    $ ckpt list
    ! No turns yet. What makes some:
    !   ckpt agent install NAME   (an agent tells of its turns)
    !   ckpt run -- COMMAND   (one command as a turn)

    $ ckpt list --sessions
    ! No sessions yet.

    $ ckpt list --all-sessions
    $ ckpt log
    $ ckpt log --graph
    ! No turns yet. What makes some:
    !   ckpt agent install NAME   (an agent tells of its turns)
    !   ckpt run -- COMMAND   (one command as a turn)

    $ ckpt show 2
    ! ckpt: There is no turn 2: this worktree has no turns yet. Nothing was changed.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt show worktree
    ! ckpt: \`show\` wants a turn or a checkpoint, not the worktree. Nothing was changed.
    !   → ckpt diff worktree
    exit 2

    $ ckpt diff
    ! ckpt: There is no turn yet. Nothing to show.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt diff 9
    ! ckpt: There is no turn 9: this worktree has no turns yet. Nothing was changed.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt diff --stat
    ! ckpt: There is no turn yet. Nothing to show.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt verify
    ok  store  nothing was recorded here yet

    $ ckpt doctor
    ok  git    git <version>
    ok  store  nothing was recorded here yet
    ok  hooks  the git hooks are not installed (ckpt hooks install)

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
    ! ckpt: There is no turn yet to ask about a.txt. Nothing was changed.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt blame nowhere.txt
    ! ckpt: There is no turn yet to ask about nowhere.txt. Nothing was changed.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
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

    $ ckpt agent status
    Not installed: claude, codex, opencode, gemini, cursor. Install: ckpt agent install NAME
    "
  `)
})

test('empty repository: what writes', () => {
  const scratch = prepared()
  expect(facesEach(scratch, WRITES)).toMatchInlineSnapshot(`
    "
    $ ckpt init
    Initialized: <root>/.git/ckpt
    What records turns:
      ckpt agent install NAME   (an agent tells of its turns)
      ckpt run -- COMMAND   (one command as a turn)

    $ ckpt mark prompt --session s --text more
    Turn 1 starts: checkpoint <id>.

    $ ckpt mark step --session s --tool Edit
    $ ckpt mark stop --session s
    ! ckpt: Session "s" has no turn yet. Nothing was recorded.
    !   → ckpt mark prompt --session s
    exit 3

    $ ckpt run -- true

    $ ckpt snapshot -m here
    Snapshot: checkpoint <id>.

    $ ckpt undo
    $ ckpt undo --dry-run
    $ ckpt undo --only 1
    $ ckpt redo
    ! ckpt: There is no turn in this worktree yet. Nothing was changed.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt accept
    Nothing is undone here.

    $ ckpt restore 1
    $ ckpt switch 1
    ! ckpt: There is no turn 1: this worktree has no turns yet. Nothing was changed.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

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
    ! ckpt: There is no turn in this worktree yet. Nothing was committed.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt prune
    $ ckpt prune --dry-run --keep 1
    Nothing was recorded here yet.

    $ ckpt forget a.txt
    ! ckpt: No checkpoint holds a.txt. Contents that no checkpoint holds are gone from the store; no checkpoint was changed.
    !   → ckpt list
    exit 3

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
    ! ckpt: There is no finished turn to look at.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt export ../out.bundle
    ! ckpt: Nothing was recorded here yet: there is nothing to send.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

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
    ! ckpt: Nothing was recorded here yet: there is nothing to send.
    !   → ckpt agent install NAME   (an agent tells of its turns)
    !   → ckpt run -- COMMAND   (one command as a turn)
    exit 3

    $ ckpt pull ../remote.git
    Nothing new.

    $ ckpt pull nowhere
    ! ckpt: There is no remote "nowhere". Nothing was changed.
    !   → git remote -v
    exit 3
    "
  `)
})

test('empty repository: the daemon', () => {
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
