/**
 * Promise 8, where the power fails amid a command, or right after it: no command is held up, what was recorded before and
 * what is recorded next comes back byte for byte, and doctor mends what is left. What a command said it had done is there.
 */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { exportFar, Place, STRIDE } from '../support/fault.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const S = ['--session', 's']

interface Command {
  argv: readonly string[]
  /** A file beside the worktree is named by its path: `<base>/<name>`. */
  beside?: string
  setUp?: (scratch: Scratch) => unknown
  /** What it leaves beside the files of the worktree. */
  left?: (root: string) => unknown
  /** About as many calls as it makes. */
  calls: number
}

const hooksOf = (root: string): string[] =>
  fs
    .readdirSync(`${root}/.git/hooks`)
    .filter((name) => !/\.(sample|tmp)$/.test(name))
    .map((name) => `${name} ${fs.readFileSync(`${root}/.git/hooks/${name}`, 'utf8')}`)

const commands: Record<string, Command> = {
  'a prompt': {
    setUp: (scratch) => scratch.write({ 'between.txt': 'by hand\n', 'deep/er/file': 'deep\n' }),
    argv: ['mark', 'prompt', ...S, '--text', 'third'],
    calls: 130,
  },
  'a stop': {
    setUp: (scratch) => {
      scratch.ckpt('mark', 'prompt', ...S, '--text', 'third')
      // More than a few objects make a pack.
      for (let n = 0; n < 12; n++) scratch.write({ [`many/${n}`]: `many ${n}\n` })
    },
    argv: ['mark', 'stop', ...S],
    calls: 110,
  },
  snapshot: {
    setUp: (scratch) => scratch.write({ 'edit.txt': 'by hand\n', 'deep/er/file': 'deep\n' }),
    argv: ['snapshot', '-m', 'by hand'],
    calls: 130,
  },
  undo: { argv: ['undo', '--turns', '2'], calls: 160 },
  redo: { setUp: (scratch) => scratch.ckpt('undo', '--turns', '2'), argv: ['redo'], calls: 190 },
  prune: { argv: ['prune', '--keep', '1'], calls: 90 },
  accept: { setUp: (scratch) => scratch.ckpt('undo'), argv: ['accept'], calls: 50 },
  restore: { argv: ['restore', '1:before', '--exact', '--force'], calls: 230 },
  import: {
    setUp: exportFar,
    argv: ['import'],
    beside: 'far.bundle',
    calls: 110,
  },
  commit: {
    setUp: (scratch) => {
      scratch.git('config', 'user.name', 'somebody')
      scratch.git('config', 'user.email', 'somebody@example.com')
    },
    argv: ['commit', '-m', 'the turns'],
    calls: 60,
  },
  'the first snapshot': { setUp: (scratch) => scratch.remove('.git/ckpt'), argv: ['snapshot'], calls: 80 },
  'agent install': {
    setUp: (scratch) => scratch.write({ '.claude/settings.json': '{ "a": 1 }\n' }),
    argv: ['agent', 'install', 'claude', '--scope', 'project'],
    calls: 12,
  },
  'agent uninstall': {
    setUp: (scratch) => {
      scratch.write({ '.claude/settings.json': '{ "a": 1 }\n' })
      scratch.ckpt('agent', 'install', 'claude', '--scope', 'project')
    },
    argv: ['agent', 'uninstall', 'claude', '--scope', 'project'],
    calls: 12,
  },
  'hooks install': {
    setUp: (scratch) => scratch.write({ '.git/hooks/pre-commit': '#!/bin/sh\necho own\n' }),
    argv: ['hooks', 'install'],
    left: hooksOf,
    calls: 30,
  },
  'hooks uninstall': {
    setUp: (scratch) => {
      scratch.write({ '.git/hooks/pre-commit': '#!/bin/sh\necho own\n' })
      scratch.ckpt('hooks', 'install')
    },
    argv: ['hooks', 'uninstall'],
    left: hooksOf,
    calls: 30,
  },
  forget: { setUp: (scratch) => scratch.remove('secret.txt'), argv: ['forget', 'secret.txt'], calls: 140 },
  push: {
    setUp: (scratch) => scratch.git('init', '-q', '--bare', `${scratch.base}/remote.git`),
    argv: ['push'],
    beside: 'remote.git',
    calls: 100,
  },
}

function twoTurns(): Scratch {
  const scratch = new Scratch().init({
    'edit.txt': 'one\n',
    'gone.txt': 'gone\n',
    swap: 'a file\n',
    'secret.txt': 'no\n',
  })
  const turn = (text: string, work: () => void) => {
    scratch.ckpt('mark', 'prompt', ...S, '--text', text)
    work()
    scratch.ckpt('mark', 'stop', ...S)
  }
  turn('first', () => {
    scratch.remove('gone.txt', 'swap')
    scratch.write({ 'edit.txt': 'two\n', 'swap/in': 'a directory\n', 'secret.txt': 'SECRET\n' })
  })
  turn('second', () => scratch.write({ 'edit.txt': 'three\n', 'more/x': 'x\n' }))
  return scratch
}

const turnsOf = async (place: Place): Promise<string[]> =>
  (await place.ckpt('list', '--hidden', '--abandoned')).turns.map(
    (turn: Json) => `${turn.n} ${turn.prompt} ${turn.status} ${turn.hidden}`,
  )

/** Goes on as somebody would who knows of nothing. */
async function goOn(place: Place): Promise<void> {
  const kept: [id: string, manifest: unknown][] = []
  for (const text of [null, 'after it\n']) {
    if (text !== null) fs.writeFileSync(`${place.root}/edit.txt`, text)
    const { checkpoint } = await place.ckpt('snapshot')
    kept.push([checkpoint.id, place.manifest])
  }
  for (const [id, manifest] of kept) {
    await place.try('mark', 'stop', ...S) // a turn that is running is not gone over
    await place.ckpt('restore', id, '--exact', '--force')
    expect(place.manifest).toEqual(manifest)
  }
  await place.ckpt('prune', '--keep', '2')
}

/** Much like others: only where a stride is given (`npm run test:fault`). */
const LIKE_OTHERS = ['a prompt', 'snapshot', 'redo', 'accept', 'agent install', 'agent uninstall', 'hooks uninstall']

test.each(Object.entries(commands).filter(([name]) => process.env.CKPT_FAULT_STRIDE || !LIKE_OTHERS.includes(name)))(
  'promise 8: %s, and the power fails',
  async (name, { argv: words, beside, setUp, left, calls }) => {
    const scratch = twoTurns()
    setUp?.(scratch)
    const argv = beside ? [...words, `${scratch.base}/${beside}`] : words
    const start = new Place(scratch, scratch.root)
    const before = [start.withoutDrafts, await turnsOf(start), left?.(start.root)]
    const ended = start.copy('ended')
    await ended.ckpt(...argv)
    const after = [ended.withoutDrafts, await turnsOf(ended), left?.(ended.root)]
    // Once amid it and once after it; at each call with `npm run test:fault`.
    const stride = Math.min(STRIDE, calls)
    let isOver = false
    for (let at = Math.min(stride, Math.ceil(calls / 2)); !isOver; at += stride) {
      const place = start.copy(`power-${at}`)
      isOver = (await place.powerCut(at, argv)) !== null
      const mended = isOver ? place : place.copy(`mended-${at}`)
      try {
        // The instant in which git writes the store's `shallow` anew, and cannot be told to sync it.
        if ((await place.try('status')).code !== 0) {
          expect(['prune', 'forget']).toContain(name)
          await place.ckpt('doctor', '--fix')
        }
        const now = [place.withoutDrafts, await turnsOf(place), left?.(place.root)]
        // Of several hooks those that come first are there first.
        if (left && !isOver) await place.ckpt(...argv)
        else expect(isOver ? [after] : [before, after]).toContainEqual(now)
        if (left) expect(left(place.root)).toEqual(after[2])
        await goOn(place)
        // Where the command has ended there is nothing to mend.
        if (!isOver && (name === 'forget' || left)) await mended.try(...argv) // as doctor says
        if (!isOver) await mended.ckpt('doctor', '--fix')
        expect(await mended.try('verify')).toMatchObject({ code: 0, document: { problems: [] } })
      } catch (error) {
        throw new Error(`the power failed at call ${at}: ${error instanceof Error ? error.message : error}`, {
          cause: error,
        })
      }
      place.remove()
      if (!isOver) mended.remove()
    }
  },
)
