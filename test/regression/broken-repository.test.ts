/** The user's own repository may be damaged: what ckpt does not need of it stands in nobody's way. */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

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
