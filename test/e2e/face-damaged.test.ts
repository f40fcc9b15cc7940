// Each command in a store that lacks a tree.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
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
    Git       main, uncommitted changes
    Store     6 checkpoints, <size>, survives git gc
    Sessions  s (3 turns, idle)
    Daemon    not running

    $ ckpt list
    Session s
      3  <time>  damaged       tidy up
      2  <time>  1 file +1 -1  change a
      1  <time>  1 file +1 -0  write a plan

    $ ckpt list --sessions
    s    3 turns  idle

    $ ckpt list --all-sessions
    s    3  <time>  damaged       tidy up
    s    2  <time>  1 file +1 -1  change a
    s    1  <time>  1 file +1 -0  write a plan

    $ ckpt log
    Session s
      3  <time>  damaged       tidy up
      2  <time>  1 file +1 -1  change a
      1  <time>  1 file +1 -0  write a plan

    $ ckpt log --graph
    Session s
    *   3  <time>  damaged       tidy up
    *   2  <time>  1 file +1 -1  change a
    *   1  <time>  1 file +1 -0  write a plan

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
    bad  objects     git rev-list failed (exit 128): fatal: bad tree object <id>. Nothing was changed.
    ok   loose       27 loose objects whole
    ok   packs       0 packs whole
    ok   timeline    6 checkpoints, every chain whole
    ok   boundary    none is pending
    ok   refs        3 are where they were last moved to
    ok   durable     no object is borrowed
    ! ckpt: objects: git rev-list failed (exit 128): fatal: bad tree object <id>. Nothing was changed.
    exit 7

    $ ckpt doctor
    ok   git         git <version>
    ok   lock        not held
    ok   refs        each names what is there
    ok   journal     no operation was cut short
    ok   store       writable
    bad  checkpoint  The store lacks tree <id>. Nothing was changed.  → ckpt verify names all that is missing; to begin anew beside it: mv <root>/.git/ckpt <root>/.git/ckpt.damaged
    ok   coverage    no left-out file looks like a secret or a database
    ok   durable     no object is borrowed
    ok   hooks       the git hooks are not installed (ckpt hooks install)
    ! ckpt: checkpoint: The store lacks tree <id>. Nothing was changed.
    exit 7

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

test('damaged store: what writes', () => {
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
    ! ckpt: uncommitted changes from before this session

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
    !   → ckpt list --hidden
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
    ! ckpt: git rev-list failed (exit 128): fatal: bad object <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

    $ ckpt forget a.txt
    ! ckpt: The store lacks tree <id>. Nothing was changed.
    !   → ckpt verify
    exit 7

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

    $ ckpt hooks uninstall
    The gate is gone; other hooks are as they were.

    $ ckpt daemon stop
    No daemon is running here.
    "
  `)
})
