/** The user's own repository may be damaged: what ckpt does not need of it stands in nobody's way. */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

test('a repository that lost its commit: turns are recorded and undone, and what git cannot tell is said', () => {
  const scratch = new Scratch().init()
  const head = scratch.git('rev-parse', 'HEAD').trim()
  fs.rmSync(scratch.at(`.git/objects/${head.slice(0, 2)}/${head.slice(2)}`))
  const unknown = [expect.stringMatching(/^Whether there are uncommitted changes is not known: git status failed/)]
  expect(scratch.ckpt('mark', 'prompt', '--session', 's').warnings).toEqual(unknown)
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('mark', 'stop', '--session', 's')
  expect(scratch.ckpt('status')).toMatchObject({ dirty: true, warnings: unknown })
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.tryCkpt('diff', '--uncommitted').document.error.hints).toEqual([expect.stringContaining('git fsck')])
})

test('an index that git cannot read is named by who needs it, and by doctor, with the way out', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  fs.writeFileSync(scratch.at('.git/index'), '')
  const wayOut =
    'rm "$(git rev-parse --git-dir)/index" && git reset   (git makes its index anew: nothing is staged then)'
  expect(scratch.tryCkpt('undo')).toMatchObject({ code: 1, document: { error: { code: 'INTERNAL', hints: [wayOut] } } })
  expect(scratch.tryCkpt('doctor').document.findings).toContainEqual(
    expect.objectContaining({ name: 'index', ok: false, mend: wayOut }),
  )
  fs.rmSync(scratch.at('.git/index'))
  scratch.git('reset', '-q')
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('a commit of a turn that is gone from the repository: undo names it, and no program of the repository’s asks for it', () => {
  const scratch = new Scratch().init()
  scratch.git('commit', '-q', '--allow-empty', '-m', 'before')
  scratch.turn('work', () => {
    scratch.write({ 'new.txt': 'new\n' })
    scratch.git('add', '-A')
    scratch.git('commit', '-qm', 'in the turn')
  })
  const gone = scratch.git('rev-parse', 'HEAD').slice(0, 7)
  scratch.git('reset', '-q', '--soft', 'HEAD~1')
  scratch.git('commit', '-qm', 'another')
  scratch.git('reflog', 'expire', '--expire=now', '--all')
  scratch.git('gc', '-q', '--prune=now')
  for (const [key, value] of Object.entries({
    'core.repositoryformatversion': '1',
    'extensions.partialClone': 'origin',
    'remote.origin.promisor': 'true',
    'remote.origin.url': 'ssh://localhost/x',
    'core.sshCommand': 'touch asked; false',
  }))
    scratch.git('config', key, value)
  const { files, warnings } = scratch.ckpt('undo')
  expect([files.map(({ path }: Json) => path), warnings.join()]).toEqual([
    ['new.txt'],
    expect.stringMatching(new RegExp(`^HEAD moved during these turns \\(\\w{7} → ${gone}\\)`)),
  ])
  expect([scratch.exists('new.txt'), scratch.exists('asked')]).toEqual([false, false])
  expect(scratch.ckpt('redo').files).toHaveLength(1)
})
