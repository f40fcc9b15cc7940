// An operation that was cut short in a linked worktree which was removed since: nobody finishes it there, and it is in nobody's way.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { killedAt } from '../support/amid.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** A turn, recorded in a linked worktree, whose undo was killed once its journal was written. */
function cutShort(name = 'linked'): { scratch: Scratch; linked: string; own: string } {
  const scratch = new Scratch().init({ 'a.txt': 'a\n' })
  scratch.turn('here', () => scratch.write({ 'b.txt': 'b\n' }))
  const linked = `${scratch.base}/${name}`
  scratch.git('worktree', 'add', '-q', linked)
  const there = (...args: string[]) => scratch.ckpt(...args, '--cwd', linked)
  there('mark', 'prompt', '--session', 's', '--text', 'there')
  fs.writeFileSync(`${linked}/c.txt`, 'c\n')
  there('mark', 'stop', '--session', 's')
  killedAt(scratch, ['renameSync', 'journal.json'], 'undo', '--cwd', linked)
  const worktrees = scratch.at('.git/ckpt/worktrees')
  const id = fs.readdirSync(worktrees).find((one) => one.startsWith(`${name}-`))!
  return { scratch, linked, own: `${worktrees}/${id}` }
}

const states = (scratch: Scratch) =>
  scratch
    .ckpt('list', '--all-worktrees', '--all-sessions', '--hidden')
    .turns.map((turn: Json) => [turn.prompt, turn.hidden])

test('while the worktree is there, its operation is finished there, also where its directory cannot be reached', () => {
  const { scratch, linked } = cutShort()
  fs.renameSync(linked, `${linked}.unplugged`)
  const ways = [
    'git worktree prune   (if it was deleted; then this again)',
    'git worktree repair PATH   (if it was moved there; then: ckpt status --cwd PATH)',
  ]
  expect(scratch.tryCkpt('prune').document.error).toMatchObject({ code: 'LOCKED', hints: ways })
  const journal = () => scratch.ckpt('doctor').findings.filter((one: Json) => one.name === 'journal')
  expect(journal()).toMatchObject([{ ok: false, advice: true, mend: ways.join(', or: ') }])
  expect(scratch.ckpt('doctor').ok).toBe(true)
  expect(scratch.tryCkpt('verify').code).toBe(7)
  fs.renameSync(`${linked}.unplugged`, linked)
  expect(journal()).toMatchObject([{ ok: false, advice: true, mend: `ckpt status --cwd ${linked}   (finishes it)` }])
  expect(scratch.tryCkpt('prune').document.error.hints).toEqual([`ckpt status --cwd ${linked}   (finishes it)`])
  scratch.ckpt('accept', '--cwd', linked)
  expect(fs.existsSync(`${linked}/c.txt`)).toBe(false)
  scratch.ckpt('prune')
})

test('where it was deleted or moved, what is told to run helps', () => {
  const deleted = cutShort()
  fs.rmSync(deleted.linked, { recursive: true })
  expect(deleted.scratch.tryCkpt('forget', 'b.txt').code).toBe(8)
  deleted.scratch.git('worktree', 'prune')
  deleted.scratch.ckpt('forget', 'b.txt')
  deleted.scratch.ckpt('verify')
  const locked = cutShort('locked')
  locked.scratch.git('worktree', 'lock', locked.linked)
  fs.rmSync(locked.linked, { recursive: true })
  const [way] = locked.scratch.tryCkpt('prune').document.error.hints
  expect(way).toMatch(/^git worktree unlock \S+locked && git worktree prune {3}\(if it was deleted; then this again\)$/)
  execFileSync('sh', ['-c', way.replace(/ {3}.*/, '')], { cwd: locked.scratch.root, env: locked.scratch.vars })
  locked.scratch.ckpt('prune')
  const { scratch, linked } = cutShort()
  fs.renameSync(linked, `${linked}.moved`)
  expect(scratch.tryCkpt('prune').code).toBe(8)
  scratch.git('worktree', 'repair', `${linked}.moved`)
  scratch.ckpt('status', '--cwd', `${linked}.moved`)
  expect(fs.existsSync(`${linked}.moved/c.txt`)).toBe(false)
  scratch.ckpt('prune')
  scratch.ckpt('verify')
})

test.each([
  ['prune', (scratch: Scratch) => scratch.ckpt('prune').warnings.join()],
  ['forget', (scratch: Scratch) => scratch.ckpt('forget', 'b.txt').warnings.join()],
  ['doctor --fix', (scratch: Scratch) => JSON.stringify(scratch.ckpt('doctor', '--fix').findings)],
])('once it is removed, %s finishes what it recorded', (_, finish) => {
  const { scratch, linked, own } = cutShort()
  scratch.git('worktree', 'remove', '--force', linked)
  expect(scratch.tryCkpt('doctor').document.findings).toContainEqual({
    name: 'journal',
    ok: false,
    detail: expect.stringContaining('removed since: linked-'),
    mend: 'ckpt doctor --fix',
  })
  expect(scratch.ckpt('prune', '--dry-run').dryRun).toBe(true)
  expect(fs.existsSync(`${own}/journal.json`)).toBe(true)
  expect(finish(scratch)).toContain('removed since')
  expect(fs.existsSync(`${own}/journal.json`)).toBe(false)
  expect(states(scratch)).toEqual([
    ['there', true],
    ['here', false],
  ])
  scratch.ckpt('verify')
})

test('a worktree whose name begins like those that came from elsewhere is one of its own', () => {
  const { scratch, linked, own } = cutShort('from-main')
  expect(scratch.ckpt('export', scratch.at('../all.bundle')).sessions).toBe(2)
  scratch.git('worktree', 'remove', '--force', linked)
  scratch.ckpt('prune')
  expect(fs.existsSync(`${own}/journal.json`)).toBe(false)
})

test('what says which worktree it is cannot be read: nothing is taken for removed', () => {
  const { scratch, own } = cutShort()
  fs.writeFileSync(scratch.at('.git/worktrees/.DS_Store'), 'x')
  fs.writeFileSync(scratch.at('.git/worktrees/linked/ckpt-worktree-id'), '')
  expect(scratch.tryCkpt('prune').document.error).toMatchObject({ code: 'LOCKED' })
  scratch.ckpt('doctor', '--fix')
  expect(fs.existsSync(`${own}/journal.json`)).toBe(true)
})

test('doctor --fix finishes what was cut short here and in a removed worktree at once', () => {
  const { scratch, linked } = cutShort()
  scratch.git('worktree', 'remove', '--force', linked)
  killedAt(scratch, ['renameSync', 'journal.json'], 'undo')
  const found = scratch.ckpt('doctor', '--fix').findings.filter((one: Json) => one.name === 'journal')
  expect(found.map((one: Json) => one.fixed)).toEqual([true, true])
  scratch.ckpt('verify')
})

test('a pack is damaged: nothing is decided on what is left, until it is back', () => {
  const { scratch, linked, own } = cutShort()
  const store = scratch.at('.git/ckpt/store.git')
  scratch.git('--git-dir', store, 'repack', '-adkq')
  scratch.git('worktree', 'remove', '--force', linked)
  const pack = fs.readdirSync(`${store}/objects/pack`).find((name) => name.endsWith('.pack'))!
  const bytes = fs.readFileSync(`${store}/objects/pack/${pack}`)
  fs.chmodSync(`${store}/objects/pack/${pack}`, 0o600)
  fs.writeFileSync(
    `${store}/objects/pack/${pack}`,
    bytes.map((byte, i) => (i < 12 ? byte : byte ^ 0xff)),
  )
  expect(scratch.tryCkpt('doctor', '--fix').code).toBe(7)
  expect(fs.existsSync(`${own}/journal.json`)).toBe(true)
  fs.writeFileSync(`${store}/objects/pack/${pack}`, bytes)
  scratch.ckpt('doctor', '--fix')
  expect(states(scratch)[0]).toEqual(['there', true])
  scratch.ckpt('verify')
})

test('its journal is damaged: doctor sets it aside, with the state before it kept', () => {
  const { scratch, linked, own } = cutShort()
  fs.writeFileSync(`${linked}/mine.txt`, 'mine\n')
  fs.appendFileSync(`${own}/journal.json`, 'x')
  scratch.git('worktree', 'remove', '--force', linked)
  expect(scratch.tryCkpt('prune').document.error).toMatchObject({ code: 'DAMAGED' })
  scratch.ckpt('doctor', '--fix')
  expect(fs.readdirSync(own).filter((name) => name.startsWith('journal'))).toEqual([
    expect.stringContaining('journal.damaged-'),
  ])
  const safety = scratch.git('--git-dir', scratch.at('.git/ckpt/store.git'), 'for-each-ref', '--format=%(refname)')
  expect(safety).toContain('/safety/')
  scratch.ckpt('prune')
  scratch.ckpt('verify')
})
