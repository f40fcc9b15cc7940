// Prune and forget after random sessions: what stays is what it was, under the same ids; what goes is really gone.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Writable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { realEnv } from '../../src/env.ts'
import { type FaultMode, Place } from '../support/fault.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** Each is a session of many turns: a tenth of what was asked for. */
const RUNS = process.env.CKPT_PROPERTY_RUNS ? Math.ceil(Number(process.env.CKPT_PROPERTY_RUNS) / 10) : 2
const DAY = 86_400_000
/** Milliseconds; a run takes seconds on a busy machine. */
const TIMEOUT = 120_000 + RUNS * 20_000

/** Commands in this process, at a time that the test moves on. */
class Timed extends Place {
  ahead = 0
  readonly #scratch: Scratch
  constructor(scratch: Scratch, root = scratch.root) {
    super(scratch, root)
    this.#scratch = scratch
  }

  override async try(...argv: string[]) {
    const chunks: Buffer[] = []
    const sink = () =>
      new Writable({
        write(chunk: Buffer, _, done) {
          chunks.push(chunk)
          done()
        },
      })
    const { home, vars } = this.#scratch
    const now = () => Date.now() + this.ahead
    const env = { ...realEnv(), now, cwd: this.root, home, vars, stdout: sink(), stderr: sink() }
    const code = await main([...argv, '--json'], env)
    return { code, document: JSON.parse(Buffer.concat(chunks).toString()) }
  }
}

type Act =
  | { kind: 'turn'; session: string; file: string; size: number }
  | { kind: 'undo'; session: string; turns: number }
  | { kind: 'fork'; session: string; turns: number }
  | { kind: 'accept'; session: string }
  | { kind: 'switch'; session: string; turn: number }
  | { kind: 'back'; session: string; turn: number }
  | { kind: 'wait'; days: number }

const session = fc.constantFrom('s', 's', 'other')
const aTurn = fc.record({
  kind: fc.constant('turn' as const),
  session,
  file: fc.constantFrom('a.txt', 'dir/b', 'c'),
  size: fc.constantFrom(10, 20_000),
})
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: aTurn },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('undo' as const), session, turns: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('fork' as const), session, turns: fc.integer({ min: 1, max: 2 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('accept' as const), session }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('switch' as const), session, turn: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('back' as const), session, turn: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 12 }) }) },
)

/** Something is recorded in each; in every other one by one session alone. */
const story = (lengths: { minLength: number; maxLength: number }) =>
  fc.tuple(aTurn, fc.array(act, lengths), fc.boolean()).map(([first, rest, alone]): Act[] => {
    const acts = [first, ...rest]
    return alone ? acts.map((one) => (one.kind === 'wait' ? one : { ...one, session: 's' })) : acts
  })

const limits = fc.oneof(
  { weight: 2, arbitrary: fc.constant([]) },
  fc.integer({ min: 1, max: 3 }).map((n) => ['--keep', String(n)]),
  fc.integer({ min: 1, max: 10 }).map((n) => ['--older-than', `${n}d`]),
  fc.constantFrom('1B', '60KiB', '150KiB').map((size) => ['--max-bytes', size]),
)

/** Content that does not compress, the same for the same number. */
function content(seed: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let i = 0, x = seed * 2654435761 + 1; i < size; i++) {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0
    bytes[i] = x >>> 16
  }
  return bytes
}

/** A fork is an undo, and a turn that goes on from there. */
const inSteps = (one: Act): Act[] =>
  one.kind === 'fork'
    ? [
        { ...one, kind: 'undo' },
        { kind: 'turn', session: one.session, file: 'a.txt', size: 10 },
      ]
    : [one]

async function play(place: Timed, acts: readonly Act[]): Promise<void> {
  let count = 0
  for (const one of acts.flatMap(inSteps)) {
    place.ahead += 1000
    if (one.kind === 'wait') place.ahead += one.days * DAY
    else if (one.kind === 'turn') {
      await place.ckpt('mark', 'prompt', '--session', one.session, '--text', `turn ${++count}`)
      const at = path.join(place.root, one.file)
      fs.mkdirSync(path.dirname(at), { recursive: true })
      fs.writeFileSync(at, content(count, one.size))
      await place.ckpt('mark', 'stop', '--session', one.session)
    } else if (one.kind === 'undo')
      await place.try('undo', '--session', one.session, '--turns', String(one.turns), '--force')
    else if (one.kind === 'accept') await place.try('accept', '--session', one.session)
    else if (one.kind === 'switch') await place.try('switch', String(one.turn), '--session', one.session)
    else if (one.kind === 'back') {
      // Into the middle of a turn, which goes on from there.
      const { code } = await place.try('switch', `${one.turn}:before`, '--session', one.session)
      if (code !== 0) continue
      fs.writeFileSync(path.join(place.root, 'a.txt'), content(++count, 10))
      fs.writeFileSync(path.join(place.root, `back-${count}`), content(count, 10))
      await place.ckpt('mark', 'stop', '--session', one.session)
    }
  }
}

const inStore = (place: Place, ...args: string[]) =>
  execFileSync('git', args, {
    cwd: `${place.root}/.git/ckpt/store.git`,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()

const bytesOf = (place: Place) =>
  Number(execFileSync('du', ['-s', '--block-size=1', `${place.root}/.git/ckpt`], { encoding: 'utf8' }).split('\t')[0])

const key = (turn: Json) => `${turn.session} ${turn.n ?? turn.turn}`

/** Every turn there is, by session and number. */
async function turnsOf(place: Place): Promise<Map<string, Json>> {
  const { turns } = await place.ckpt('list', '--all-sessions', '--hidden', '--abandoned')
  return new Map(turns.map((turn: Json) => [key(turn), turn]))
}

/** What a checkpoint holds, as git tells it. */
const treeOf = (place: Place, id: string) => inStore(place, 'ls-tree', '-r', id)

/** What an undo of all turns of each session would do. */
async function undoes(place: Timed, sessions: readonly Json[]): Promise<Json[]> {
  const answers = sessions.map(({ id }) => place.try('undo', '--turns', '99', '--session', id, '--dry-run'))
  return (await Promise.all(answers)).map(({ code, document }) => [code, document.files])
}

async function sound(place: Place): Promise<void> {
  const { code, document } = await place.try('verify')
  expect([code, document.problems]).toEqual([0, []])
}

test(
  'what prune leaves is what it was: ids, contents, redo; the dry run says what goes',
  async () => {
    const stories = story({ minLength: 3, maxLength: 15 })
    const property = fc.asyncProperty(stories, limits, fc.constantFrom(0, 30), async (acts, given, days) => {
      const scratch = new Scratch().init()
      const place = new Timed(scratch)
      await play(place, [...acts, { kind: 'wait', days }])
      if (!fs.existsSync(`${place.root}/.git/ckpt`)) return
      const before = await turnsOf(place)
      const trees = new Map([...before.values()].map((turn) => [key(turn), treeOf(place, turn.after)]))
      const { sessions } = await place.ckpt('list', '--sessions')
      const undoable = await undoes(place, sessions)
      const size = bytesOf(place)
      const dry = await place.ckpt('prune', '--dry-run', ...given)
      expect(await turnsOf(place)).toEqual(before)
      const { removed, kept, bytesFreed } = await place.ckpt('prune', ...given)
      expect(removed).toEqual(dry.removed)
      await sound(place)

      const after = await turnsOf(place)
      const gone = new Set<string>(removed.map(key))
      expect([...after.keys()].sort()).toEqual([...before.keys()].filter((name) => !gone.has(name)).sort())
      expect(kept).toBe(after.size)
      // One that went on from its middle has several ends, and those of abandoned branches go one by one.
      const several = acts.some(({ kind }) => kind === 'back')
      for (const [name, turn] of after) {
        if (several && turn.abandoned) continue
        expect(turn).toEqual(before.get(name))
        expect(treeOf(place, turn.after)).toBe(trees.get(name))
      }
      // What goes by itself takes nothing from the undo of what stays, unless another session was at work meanwhile.
      if (given.length === 0 && sessions.length === 1) expect(await undoes(place, sessions)).toEqual(undoable)
      expect(bytesOf(place)).toBeLessThanOrEqual(size)
      // As much as was promised, but for what git rounds up to whole blocks.
      if (dry.bytesFreed > 0) expect(bytesFreed).toBeGreaterThanOrEqual(Math.min(dry.bytesFreed, size) - 8192)
      expect(bytesFreed).toBeGreaterThanOrEqual(0)
      // What was said to be gone is not said so again.
      if (given[0] !== '--max-bytes') expect((await place.ckpt('prune', ...given)).removed).toEqual([])
      // Nobody's newest turn went, and what is undone can be redone.
      for (const { id, boundary } of sessions) {
        if (!boundary) continue
        expect(boundary.hiddenTurns.filter((n: number) => gone.has(`${id} ${n}`))).toEqual([])
        await place.ckpt('redo', '--all', '--session', id, '--force')
      }
      for (const turn of after.values()) {
        await place.ckpt('restore', turn.after, '--exact', '--force')
        const files = inStore(place, 'ls-tree', '-r', turn.after).split('\n')
        const onDisk = files.map((row) => {
          const [, , oid, name] = row.split(/[ \t]/)
          return inStore(place, 'hash-object', path.join(place.root, name!)) === oid
        })
        expect(onDisk.every(Boolean)).toBe(true)
      }
      await sound(place)
    })
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  },
  TIMEOUT,
)

test(
  'forget: the content is gone, old ids resolve, nothing else changed',
  async () => {
    const property = fc.asyncProperty(story({ minLength: 2, maxLength: 9 }), async (acts) => {
      const scratch = new Scratch().init()
      const place = new Timed(scratch)
      await play(place, acts)
      fs.writeFileSync(path.join(place.root, 'secret.txt'), 'the password\n')
      await place.ckpt('snapshot')
      const secret = inStore(place, 'hash-object', path.join(place.root, 'secret.txt'))
      inStore(place, 'cat-file', '-e', secret)
      const before = await turnsOf(place)
      const trees = new Map([...before.values()].map((turn) => [key(turn), treeOf(place, turn.after)]))
      const { replaced } = await place.ckpt('forget', 'secret.txt')
      expect(() => inStore(place, 'cat-file', '-e', secret)).toThrow()
      await sound(place)
      for (const { from, to } of replaced) expect((await place.ckpt('show', from)).checkpoint.id).toBe(to)
      const after = await turnsOf(place)
      expect([...after.keys()].sort()).toEqual([...before.keys()].sort())
      for (const [name, turn] of after) {
        expect(treeOf(place, turn.after)).toBe(trees.get(name))
        expect((await place.ckpt('show', before.get(name)!.id)).turn.id).toBe(turn.id)
      }
    })
    await fc.assert(property, { numRuns: Math.max(2, Math.floor(RUNS / 3)), endOnFailure: true })
  },
  TIMEOUT,
)

test.each<FaultMode>(['before', 'group', 'amid'])(
  'a prune that is killed (%s): the next command works, verify is clean',
  async (mode) => {
    const scratch = new Scratch().init()
    const place = new Timed(scratch)
    const turn = (n: number): Act => ({ kind: 'turn', session: 's', file: n % 2 ? 'a.txt' : 'dir/b', size: 20_000 })
    await play(place, [turn(1), turn(2), turn(3), { kind: 'undo', session: 's', turns: 1 }, turn(4), turn(5)])
    const argv = ['prune', '--keep', '1']
    const stride = Number(process.env.CKPT_FAULT_STRIDE ?? 47)
    for (let at = 1 + (mode.length % stride); ; at += stride) {
      const copy = place.copy(`${mode}-${at}`)
      const calls = await copy.killed(mode, at, argv)
      const later = new Timed(scratch, copy.root)
      await later.ckpt('status')
      await sound(later)
      const { turns } = await later.ckpt('list')
      expect(turns[0].n).toBe(5)
      expect(bytesOf(copy)).toBeLessThanOrEqual(bytesOf(place) + 65_536)
      await later.ckpt(...argv)
      expect((await later.ckpt('list')).turns.map((one: Json) => one.n)).toEqual([5])
      await sound(later)
      await later.ckpt('undo')
      await later.ckpt('redo')
      copy.remove()
      if (calls !== null) return
    }
  },
)

test('a branch that was left by switching there and back goes with the turns that it ends in', async () => {
  const scratch = new Scratch().init()
  const place = new Timed(scratch)
  const turn: Act = { kind: 'turn', session: 's', file: 'a.txt', size: 10 }
  const to = (n: number): Act => ({ kind: 'switch', session: 's', turn: n })
  await play(place, [turn, turn, turn, to(1), to(3), turn, turn])
  const { removed } = await place.ckpt('prune', '--keep', '1')
  expect(removed.map((one: Json) => one.turn)).toEqual([1, 2, 3, 4])
  await sound(place)
  await play(place, [turn, to(5), to(6), turn])
  expect((await place.ckpt('prune', '--keep', '1')).removed).toHaveLength(2)
  await sound(place)
  expect(inStore(place, 'for-each-ref', '--format=%(refname)', 'refs/ckpt/@main/s/abandoned')).toBe('')
})

test('two abandoned branches, one past its grace: that one goes, the other keeps its prompts', async () => {
  const scratch = new Scratch().init()
  const place = new Timed(scratch)
  const turn: Act = { kind: 'turn', session: 's', file: 'a.txt', size: 10 }
  const fork: Act = { kind: 'fork', session: 's', turns: 1 }
  await play(place, [turn, turn, fork, { kind: 'wait', days: 6 }, fork, { kind: 'wait', days: 2 }])
  const { removed } = await place.ckpt('prune')
  expect(removed).toMatchObject([{ session: 's', turn: 2 }])
  const { turns } = await place.ckpt('list', '--abandoned')
  expect(turns.map((one: Json) => `${one.n} ${one.prompt}`)).toEqual(['4 turn 4', '3 turn 3', '1 turn 1'])
  await sound(place)
  expect((await place.ckpt('prune')).removed).toEqual([])
})

test('a turn that went on from its middle is undone as before when the branch that was left has gone', async () => {
  const scratch = new Scratch().init()
  const place = new Timed(scratch)
  const write = (name: string) => fs.writeFileSync(path.join(place.root, name), `${name}\n`)
  await place.ckpt('mark', 'prompt', '--session', 's')
  write('first')
  const { checkpoint } = await place.ckpt('mark', 'step', '--session', 's')
  write('left')
  await place.ckpt('mark', 'stop', '--session', 's')
  await place.ckpt('switch', checkpoint.id)
  write('second')
  await place.ckpt('mark', 'step', '--session', 's')
  await place.ckpt('mark', 'stop', '--session', 's')
  place.ahead += 30 * DAY
  await place.ckpt('prune')
  await sound(place)
  const { files } = await place.ckpt('undo')
  expect(files.map(({ path, action }: Json) => `${action} ${path}`)).toEqual(['delete first', 'delete second'])
})

test('a checkpoint by hand amid a turn that runs stays too', async () => {
  const place = new Timed(new Scratch().init())
  await place.ckpt('mark', 'prompt', '--session', 's')
  fs.writeFileSync(path.join(place.root, 'mine'), 'mine\n')
  for (const text of ['one', 'two']) await place.ckpt('snapshot', '-m', text)
  expect((await place.ckpt('prune', '--max-bytes', '1B')).byHand).toEqual([])
  await place.ckpt('mark', 'stop', '--session', 's')
  expect((await place.ckpt('undo')).files).toMatchObject([{ path: 'mine', action: 'delete' }])
})
