// Each command in a directory that is no repository and was not initialized.
import { expect, test } from 'vitest'
import { faces, facesEach } from '../support/face.ts'
import { Scratch } from '../support/scratch.ts'

function prepared(): Scratch {
  const scratch = new Scratch()
  scratch.write({ 'a.txt': 'one\n' })
  return scratch
}

test('plain directory: what reads', () => {
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
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt list
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt list --sessions
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt list --all-sessions
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt log
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt log --graph
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt show 2
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt show worktree
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt diff
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt diff 9
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt diff --stat
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt verify
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt doctor
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt hooks status
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt daemon status
    ! ckpt: <root> is a plain directory without a store. Nothing was read.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9
    "
  `)
})

test('plain directory: what writes', () => {
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
    Initialized: <base>/home/state/ckpt/work-<hash>
    Record a first checkpoint: ckpt snapshot

    $ ckpt mark prompt --session s --text more
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt mark step --session s --tool Edit
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt mark stop --session s
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt run -- true
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt snapshot -m here
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt undo
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt undo --dry-run
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt undo --only 1
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt redo
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt accept
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt restore 1
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt switch 1
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt apply nonsense
    ! ckpt: That is not a token of a dry run. Nothing was changed.
    !   → ckpt undo --dry-run
    exit 2

    $ ckpt commit -m done
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt prune
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt prune --dry-run --keep 1
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt forget a.txt
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt forget nowhere.txt
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

    $ ckpt hooks install
    ! ckpt: <root> is a plain directory without a store. Nothing was recorded.
    !   → ckpt init   (checkpoints for this directory)
    !   → git init
    exit 9

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
    "
  `)
})
