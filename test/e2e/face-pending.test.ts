// Each command while turns are undone.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
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
    ok  objects     31 objects read and hashed
    ok  loose       36 loose objects whole
    ok  packs       0 packs whole
    ok  timeline    8 checkpoints, every chain whole
    ok  boundary    1 pending, each in its live chain
    ok  refs        5 are where they were last moved to
    ok  durable     no object is borrowed

    $ ckpt doctor
    ok  git         git <version>
    ok  lock        not held
    ok  refs        each names what is there
    ok  journal     no operation was cut short
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

    $ ckpt daemon status
    Not running. Every command works without it; start it: ckpt daemon start
    "
  `)
})

test('pending boundary: what writes', () => {
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
    Turn 4 starts: checkpoint <id>. Abandoned now: turn 2, 3.

    $ ckpt mark step --session s --tool Edit
    Late step after turn 3: checkpoint <id>.

    $ ckpt mark stop --session s
    Late stop after turn 3: checkpoint <id>.

    $ ckpt run -- true
    ! ckpt: uncommitted changes from before this session

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
    !   → ckpt redo --all
    !   → ckpt accept
    exit 5

    $ ckpt redo
    Redid turn 2: 1 file.
      write  a.txt
    Still undone: from turn 3. More: ckpt redo
    As it was before: ckpt restore <id> --exact

    $ ckpt accept
    Kept. Turns 2, 3 are abandoned now; the files can still be brought back: ckpt restore 3

    $ ckpt restore 1
    Restored from turn 1: no files differ.
    As it was before: ckpt restore <id> --exact

    $ ckpt switch 1
    ! ckpt: Session s has undone turns pending (from turn 2). Nothing was changed.
    !   → ckpt redo --all
    !   → ckpt accept
    exit 5

    $ ckpt apply nonsense
    ! ckpt: That is not a token of a dry run. Nothing was changed.
    !   → ckpt undo --dry-run
    exit 2

    $ ckpt commit -m done
    ! ckpt: Session s has undone turns pending (from turn 2). Nothing was changed.
    !   → ckpt redo --all
    !   → ckpt accept
    exit 5

    $ ckpt prune
    No turn is past its time; 3 kept, <size> freed.

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
