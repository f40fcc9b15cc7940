// Each command where nothing was recorded yet.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
import { Scratch } from '../support/scratch.ts'

const prepared = () => new Scratch().init()

test('empty repository: what reads', () => {
  const scratch = prepared()
  const lines = [
    'status',
    'list',
    'list --sessions',
    'list --all-sessions',
    'log',
    'log --graph',
    'show 2',
    'show worktree',
    'diff',
    'diff 9',
    'diff --stat',
    'verify',
    'doctor',
    'hooks status',
    'daemon status',
  ]
  expect(faces(scratch, lines)).toMatchInlineSnapshot(`
    "
    $ ckpt status
    Worktree  <root>
    Git       main
    Store     0 checkpoints, <size>, survives git gc
    Sessions  none yet
    Daemon    not running

    $ ckpt list
    No turns yet. An agent's turn is recorded by \`ckpt run -- COMMAND\` or \`ckpt mark prompt --session NAME\`.

    $ ckpt list --sessions
    No sessions yet.

    $ ckpt list --all-sessions
    No turns yet.

    $ ckpt log
    No turns yet.

    $ ckpt log --graph
    No turns yet.

    $ ckpt show 2
    ! ckpt: There is no turn 2: this worktree has no turns yet. Nothing was changed.
    !   → ckpt list --hidden --abandoned
    exit 3

    $ ckpt show worktree
    ! ckpt: \`show\` wants a turn or a checkpoint, not the worktree. Nothing was changed.
    !   → ckpt diff worktree
    exit 2

    $ ckpt diff
    ! ckpt: There is no turn yet. Nothing to show.
    !   → ckpt list --sessions
    exit 3

    $ ckpt diff 9
    ! ckpt: There is no turn 9: this worktree has no turns yet. Nothing was changed.
    !   → ckpt list --hidden --abandoned
    exit 3

    $ ckpt diff --stat
    ! ckpt: There is no turn yet. Nothing to show.
    !   → ckpt list --sessions
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

    $ ckpt daemon status
    Not running. Every command works without it; start it: ckpt daemon start
    "
  `)
})

test('empty repository: what writes', () => {
  const scratch = prepared()
  const lines = [
    'init',
    'mark prompt --session s --text more',
    'mark step --session s --tool Edit',
    'mark stop --session s',
    'run -- true',
    'snapshot -m here',
    'undo',
    'undo --dry-run',
    'undo --only 1',
    'redo',
    'accept',
    'restore 1',
    'switch 1',
    'apply nonsense',
    'commit -m done',
    'prune',
    'prune --dry-run --keep 1',
    'forget a.txt',
    'forget nowhere.txt',
    'hooks install',
    'hooks uninstall',
    'daemon stop',
  ]
  expect(facesEach(scratch, lines)).toMatchInlineSnapshot(`
    "
    $ ckpt init
    Initialized: <root>/.git/ckpt
    Record a first checkpoint: ckpt snapshot

    $ ckpt mark prompt --session s --text more
    Turn 1 starts: checkpoint <id>.

    $ ckpt mark step --session s --tool Edit
    ! ckpt: Session "s" has no turn yet. Nothing was recorded.
    !   → ckpt mark prompt --session s
    exit 3

    $ ckpt mark stop --session s
    ! ckpt: Session "s" has no turn yet. Nothing was recorded.
    !   → ckpt mark prompt --session s
    exit 3

    $ ckpt run -- true

    $ ckpt snapshot -m here
    Snapshot: checkpoint <id>.

    $ ckpt undo
    ! ckpt: There is no turn in this worktree yet. Nothing was changed.
    !   → ckpt list
    !   → ckpt list --sessions
    exit 3

    $ ckpt undo --dry-run
    ! ckpt: There is no turn in this worktree yet. Nothing was changed.
    !   → ckpt list
    !   → ckpt list --sessions
    exit 3

    $ ckpt undo --only 1
    ! ckpt: There is no turn in this worktree yet. Nothing was changed.
    !   → ckpt list
    !   → ckpt list --sessions
    exit 3

    $ ckpt redo
    ! ckpt: There is no turn in this worktree yet. Nothing was changed.
    !   → ckpt list --hidden
    !   → ckpt list --sessions
    exit 3

    $ ckpt accept
    Nothing is undone here.

    $ ckpt restore 1
    ! ckpt: There is no turn 1: this worktree has no turns yet. Nothing was changed.
    !   → ckpt list --hidden --abandoned
    exit 3

    $ ckpt switch 1
    ! ckpt: There is no turn 1: this worktree has no turns yet. Nothing was changed.
    !   → ckpt list --hidden --abandoned
    exit 3

    $ ckpt apply nonsense
    ! ckpt: That is not a token of a dry run. Nothing was changed.
    !   → ckpt undo --dry-run
    exit 2

    $ ckpt commit -m done
    ! ckpt: There is no turn in this worktree yet. Nothing was committed.
    !   → ckpt run -- COMMAND
    exit 3

    $ ckpt prune
    Nothing was recorded here yet.

    $ ckpt prune --dry-run --keep 1
    Nothing was recorded here yet.

    $ ckpt forget a.txt
    ! ckpt: No checkpoint holds a.txt. Nothing was changed.
    !   → ckpt list
    exit 3

    $ ckpt forget nowhere.txt
    ! ckpt: No checkpoint holds nowhere.txt. Nothing was changed.
    !   → ckpt list
    exit 3

    $ ckpt hooks install
    While something is undone, commits in this repository are refused now.
      pre-commit          installed  fires
      pre-merge-commit    installed  fires
      pre-rebase          installed  fires
      pre-applypatch      installed  fires
      prepare-commit-msg  installed  fires

    $ ckpt hooks uninstall
    The gate is gone; other hooks are as they were.

    $ ckpt daemon stop
    No daemon is running here.
    "
  `)
})
