/**
 * Promise 8, for the commands that kill.test.ts has no loop of its own for: killed at any call, the worktree is as it was or
 * as it was to be once anything else has run, the store is whole, and the same command again ends what it began.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test, vi } from 'vitest'
import { exportFar, type FaultMode, faultLoop, MODES, Place } from '../support/fault.ts'
import { type Json, Scratch } from '../support/scratch.ts'

interface Command {
  argv: readonly string[]
  /** A file beside the worktree is named by its path: `<base>/<name>`. */
  beside?: string
  setUp?: (scratch: Scratch) => void
  /** What it may say when it ended before: there is nothing left to do. */
  again?: number
  /** What it leaves beside the files of the worktree. */
  left?: (root: string) => unknown
  /** About as many calls as it makes. */
  calls: number
}

const hooksOf = (root: string) => fs.readdirSync(`${root}/.git/hooks`).filter((name) => !/\.(sample|tmp)$/.test(name))
const ownHook = (scratch: Scratch) => scratch.write({ '.git/hooks/pre-commit': '#!/bin/sh\nexit 0\n' })
const inStore = (root: string, ...args: string[]) =>
  execFileSync('git', args, { cwd: `${root}/.git/ckpt/store.git` }).toString()

const commands: Record<string, Command> = {
  restore: { argv: ['restore', '1:before', '--exact', '--force'], calls: 207 },
  switch: {
    setUp: (scratch) => {
      scratch.ckpt('undo', '--turns', '2')
      scratch.turn('another way', () => scratch.write({ 'edit.txt': 'other\n', 'other/way': 'o\n' }))
    },
    argv: ['switch', '3'],
    calls: 142,
  },
  accept: { setUp: (scratch) => scratch.ckpt('undo', '--turns', '2'), argv: ['accept'], again: 3, calls: 33 },
  'undo --only': { argv: ['undo', '--only', '2', '--force'], again: 3, calls: 171 },
  prune: { argv: ['prune', '--keep', '1'], calls: 66 },
  forget: {
    setUp: (scratch) => {
      scratch.remove('secret.txt')
      scratch.ckpt('undo')
    },
    argv: ['forget', 'secret.txt'],
    again: 3,
    left: (root) => inStore(root, 'cat-file', '--batch-all-objects', '--batch').includes('SECRET'),
    calls: 125,
  },
  init: { setUp: (scratch) => scratch.remove('.git/ckpt'), argv: ['init'], calls: 27 },
  'hooks install': { setUp: ownHook, argv: ['hooks', 'install'], left: hooksOf, calls: 12 },
  'hooks uninstall': {
    setUp: (scratch) => {
      ownHook(scratch)
      scratch.ckpt('hooks', 'install')
    },
    argv: ['hooks', 'uninstall'],
    left: hooksOf,
    calls: 12,
  },
  'agent install': {
    setUp: (scratch) => scratch.write({ '.claude/settings.json': '{ "a": 1 }\n' }),
    argv: ['agent', 'install', 'claude', '--scope', 'project'],
    calls: 9,
  },
  import: {
    setUp: exportFar,
    argv: ['import'],
    beside: 'far.bundle',
    left: (root) => inStore(root, 'for-each-ref', '--format=%(refname)').replaceAll(/[0-9a-f]{12}/g, '*'),
    calls: 86,
  },
}

function threeTurns(): Scratch {
  const files = {
    'edit.txt': 'one\n',
    'gone.txt': 'gone\n',
    swap: 'a file\n',
    'tree/in/a': 'A\n',
    'secret.txt': 'no\n',
  }
  const scratch = new Scratch().init(files)
  scratch.turn('first', () => {
    scratch.remove('gone.txt', 'swap', 'tree')
    scratch.write({ 'edit.txt': 'two\n', 'swap/in': 'a directory\n', tree: 'a file\n', 'secret.txt': 'SECRET\n' })
  })
  scratch.turn('second', () => scratch.write({ 'edit.txt': 'three\n', 'more/x': 'x\n' }))
  scratch.turn('third', () => scratch.write({ 'edit.txt': 'four\n' }))
  return scratch
}

const turnsOf = async (place: Place): Promise<string[]> =>
  (await place.ckpt('list', '--hidden', '--abandoned')).turns.map(
    (turn: Json) => `${turn.n} ${turn.prompt} ${turn.status} ${turn.hidden} ${turn.abandoned}`,
  )

async function whole(place: Place): Promise<void> {
  if (!fs.existsSync(`${place.root}/.git/ckpt/store.git`)) return
  const { code, document } = await place.try('verify')
  expect([code, document.problems]).toEqual([0, []])
}

/** One of the four ways for each command, in turn; all of them where a stride is given (`npm run test:fault`). */
const modesOf = (name: string): readonly FaultMode[] =>
  process.env.CKPT_FAULT_STRIDE ? MODES : [MODES[Object.keys(commands).indexOf(name) % MODES.length]!]

/** Much like others: only where a stride is given (`npm run test:fault`). */
const LIKE_OTHERS = ['undo --only', 'hooks uninstall']

test.each(Object.entries(commands).filter(([name]) => process.env.CKPT_FAULT_STRIDE || !LIKE_OTHERS.includes(name)))(
  'promise 8: %s',
  async (name, { argv: words, beside, setUp, again = 0, left, calls }) => {
    const scratch = threeTurns()
    setUp?.(scratch)
    const argv = beside ? [...words, `${scratch.base}/${beside}`] : words
    const start = new Place(scratch, scratch.root)
    const before = start.withoutDrafts
    const ended = start.copy('ended')
    await ended.ckpt(...argv)
    const after = ended.withoutDrafts
    const result = [after, await turnsOf(ended), left?.(ended.root)]
    const check = async (place: Place) => {
      // A git that lives on may be at work for a moment longer.
      await vi.waitFor(
        async () => {
          await place.ckpt('status')
          await whole(place)
          expect([before, after]).toContainEqual(place.withoutDrafts)
          expect([0, again]).toContain((await place.try(...argv)).code)
          expect([place.withoutDrafts, await turnsOf(place), left?.(place.root)]).toEqual(result)
          await whole(place)
        },
        { timeout: 20_000, interval: 100 },
      )
      const own = `${place.root}/.git/ckpt/worktrees/@main`
      expect(fs.existsSync(`${own}/journal.json`)).toBe(false)
      if (fs.existsSync(`${own}/tmp`)) expect(fs.readdirSync(`${own}/tmp`)).toEqual([])
    }
    for (const mode of modesOf(name))
      await faultLoop({
        scratch,
        start,
        mode,
        check,
        argv,
        stride: mode === 'amid' ? 9 : Math.ceil(calls / 2),
      })
  },
)
