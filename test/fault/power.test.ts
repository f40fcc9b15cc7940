/**
 * Promise 8, where the power fails amid a command, or right after it: no command is held up, what was recorded before and
 * what is recorded next comes back byte for byte, and doctor mends what is left. What a command said it had done is there.
 */
import fs from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { buildHarness, Place, STRIDE } from '../support/fault.ts'
import { type Json, Scratch } from '../support/scratch.ts'

let harness = ''
beforeAll(async () => {
  const directory = fs.mkdtempSync(`${fs.realpathSync('/tmp')}/ckpt-fault-`)
  harness = await buildHarness(directory)
  return () => fs.rmSync(directory, { recursive: true })
})

const S = ['--session', 's']

interface Command {
  argv: readonly string[]
  setUp?: (scratch: Scratch) => void
  /** About as many calls as it makes. */
  calls: number
}

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
  forget: { setUp: (scratch) => scratch.remove('secret.txt'), argv: ['forget', 'secret.txt'], calls: 140 },
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
}

test.each(Object.entries(commands))('promise 8: %s, and the power fails', async (name, { argv, setUp, calls }) => {
  const scratch = twoTurns()
  setUp?.(scratch)
  const start = new Place(scratch, scratch.root)
  const before = [start.manifest, await turnsOf(start)]
  const ended = start.copy('ended')
  await ended.ckpt(...argv)
  const after = [ended.manifest, await turnsOf(ended)]
  const stride = Math.min(STRIDE, Math.ceil(calls / 4))
  let isOver = false
  for (let at = 1 + (name.length % stride); !isOver; at += stride) {
    const place = start.copy(`power-${at}`)
    isOver = (await place.powerCut(harness, at, argv)) !== null
    const mended = place.copy(`mended-${at}`)
    try {
      await place.ckpt('status')
      expect(isOver ? [after] : [before, after]).toContainEqual([place.manifest, await turnsOf(place)])
      await goOn(place)
      if (name === 'forget') await mended.try(...argv) // as doctor says
      await mended.ckpt('doctor', '--fix')
      expect(await mended.try('verify')).toMatchObject({ code: 0, document: { problems: [] } })
    } catch (error) {
      throw new Error(`the power failed at call ${at}: ${error instanceof Error ? error.message : error}`, {
        cause: error,
      })
    }
    place.remove()
    mended.remove()
  }
})
