// Each command in a directory that is no repository and was not initialized.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
import { DAEMON, READS, WRITES } from '../support/face-lines.ts'
import { Scratch } from '../support/scratch.ts'

function prepared(): Scratch {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n' })
  return scratch
}

test('plain directory: what reads', () => {
  const scratch = prepared()
  expect(faces(scratch, READS)).toMatchInlineSnapshot(`
    "
    $ ckpt status
    $ ckpt list
    $ ckpt list --sessions
    $ ckpt list --all-sessions
    $ ckpt log
    $ ckpt log --graph
    $ ckpt show 2
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt show worktree
    ! ckpt: \`worktree\` is not a place to go back to. Nothing was changed.
    !   → ckpt list
    exit 2

    $ ckpt diff
    $ ckpt diff 9
    $ ckpt diff --stat
    $ ckpt verify
    $ ckpt doctor
    $ ckpt hooks status
    $ ckpt daemon status
    $ ckpt daemon logs
    $ ckpt blame a.txt
    $ ckpt blame nowhere.txt
    $ ckpt capabilities
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

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

test('plain directory: what writes', () => {
  const scratch = prepared()
  expect(facesEach(scratch, WRITES)).toMatchInlineSnapshot(`
    "
    $ ckpt init
    Initialized: <base>/home/state/ckpt/work-<hash>
    What records turns:
      ckpt agent install NAME   (an agent tells of its turns)
      ckpt run -- COMMAND   (one command as a turn)

    $ ckpt mark prompt --session s --text more
    $ ckpt mark step --session s --tool Edit
    $ ckpt mark stop --session s
    $ ckpt run -- true
    $ ckpt snapshot -m here
    $ ckpt undo
    $ ckpt undo --dry-run
    $ ckpt undo --only 1
    $ ckpt redo
    $ ckpt accept
    $ ckpt restore 1
    $ ckpt switch 1
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

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
    $ ckpt prune
    $ ckpt prune --dry-run --keep 1
    $ ckpt forget a.txt
    $ ckpt forget nowhere.txt
    $ ckpt hooks install
    $ ckpt hooks uninstall
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt daemon stop
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

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
    $ ckpt export ../out.bundle
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt import ../out.bundle
    $ ckpt import nowhere.bundle
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt push nowhere
    $ ckpt push ../remote.git
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt pull ../remote.git
    $ ckpt pull nowhere
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9
    "
  `)
})

test('plain directory: the daemon', () => {
  const scratch = prepared()
  expect(faces(scratch, DAEMON)).toMatchInlineSnapshot(`
    "
    $ ckpt daemon start
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt daemon status
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt daemon start
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt daemon stop
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt watch
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9
    "
  `)
})
