// What must hold of the pure core for any input. The counterparts outside are git itself (mktree) and plain definitions.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseRecord } from '../../src/core/boundary.ts'
import {
  type Checkpoint,
  type CheckpointMeta,
  formatMessage,
  isOutside,
  parseCheckpoint,
} from '../../src/core/checkpoint.ts'
import { claimOf, joinTransitions, type Segment, type Window, windowsAlong } from '../../src/core/claims.ts'
import { CkptError } from '../../src/core/errors.ts'
import { encodeSession, type Oid, parseSessionId, parseTarget, type SessionId } from '../../src/core/ids.ts'
import { isWithin } from '../../src/core/paths.ts'
import { type ConflictMode, planChanges } from '../../src/core/plan.ts'
import { type PathState, sameState, type Transition } from '../../src/core/state.ts'
import { formatTree, parseTree, type TreeEntry } from '../../src/core/tree-object.ts'
import { Scratch } from '../support/scratch.ts'

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
const oid = hex(40).map((text) => text as Oid)

/** One part of a path, latin1 bytes: names that sort around `/`, control characters, bytes that are not UTF-8. */
const name = fc
  .oneof(
    fc.constantFrom('a', 'a-', 'a.', 'a0', 'a/'.slice(0, 1), 'A', '\xff', '\xc3\xa9', '\n', '-', '*'),
    fc.string({ unit: fc.integer({ min: 1, max: 255 }).map((code) => String.fromCharCode(code)), minLength: 1 }),
  )
  .filter((text) => !text.includes('/') && text !== '.' && text !== '..' && text.toLowerCase() !== '.git')
const treeEntries = fc.uniqueArray(
  fc.record({ mode: fc.constantFrom<TreeEntry['mode']>('100644', '100755', '120000', '40000', '160000'), name, oid }),
  { selector: (entry) => entry.name, maxLength: 20 },
)

test('a tree object comes back from its own bytes, whatever order its entries came in', () => {
  fc.assert(
    fc.property(treeEntries, (entries) => {
      const bytes = formatTree(entries)
      const parsed = parseTree(bytes, 20)
      expect(new Set(parsed.map(({ at: _at, ...entry }) => JSON.stringify(entry)))).toEqual(
        new Set(entries.map((entry) => JSON.stringify(entry))),
      )
      expect(formatTree([...parsed].reverse())).toEqual(bytes)
      for (const { at, oid } of parsed) expect(bytes.toString('hex', at, at + 20)).toBe(oid)
    }),
  )
})

test('a tree object is what git mktree makes of the same entries', () => {
  const scratch = new Scratch()
  scratch.git('init', '-q', '--bare', '.')
  const type = { '100644': 'blob', '100755': 'blob', '120000': 'blob', '40000': 'tree', '160000': 'commit' } as const
  fc.assert(
    fc.property(treeEntries, (entries) => {
      const rows = entries.map((entry) => `${entry.mode} ${type[entry.mode]} ${entry.oid}\t${entry.name}\0`).join('')
      const run = (args: string[], input: Buffer) =>
        execFileSync('git', args, { cwd: scratch.root, input, env: scratch.vars }).toString('latin1').trim()
      const made = run(['mktree', '-z', '--missing'], Buffer.from(rows, 'latin1'))
      expect(run(['hash-object', '-t', 'tree', '--stdin', '--literally'], formatTree(entries))).toBe(made)
    }),
    { numRuns: 30 },
  )
})

test('no bytes but a whole tree parse: damage is said, never guessed', () => {
  fc.assert(
    fc.property(treeEntries, fc.nat(), (entries, cut) => {
      const bytes = formatTree(entries)
      if (bytes.length === 0) return
      const short = bytes.subarray(0, cut % bytes.length)
      try {
        expect(formatTree(parseTree(short, 20))).toEqual(short)
      } catch (error) {
        expect(error).toBeInstanceOf(CkptError)
      }
    }),
  )
})

test('a record that we would not have written is damage', () => {
  const file = { kind: 'present', type: 'file', oid: '1'.repeat(40), mode: 0o644 }
  const record = (units: object[]) =>
    Buffer.from(
      JSON.stringify({ version: 1, session: 's', turn: 1, step: null, messageId: null, baseline: file.oid, units }),
    )
  const changing = (to: object) => [{ turn: 1, step: null, changes: [['a.txt', { kind: 'absent' }, to]] }]
  const parses = (units: object[]) => {
    try {
      return parseRecord(record(units)).units.length > 0
    } catch (error) {
      expect(error).toMatchObject({ code: 'DAMAGED' })
      return false
    }
  }
  for (const mode of [0, 0o644, 0o7777]) expect([mode, parses(changing({ ...file, mode }))]).toEqual([mode, true])
  for (const mode of [-1, 0o10000, 0o7777777, 2 ** 53, 1.5, '420', null])
    expect([mode, parses(changing({ ...file, mode })), parses(changing({ kind: 'directory', mode }))]).toEqual([
      mode,
      false,
      false,
    ])
  expect(parses([])).toBe(false)
})

/** Text that wants to be a trailer, a second paragraph, a header. */
const hostile = fc.oneof(
  fc.constantFrom('x\nCkpt-Kind: safety', '\n\nCkpt-Seq: 0\n', '%0A', '%', 'ü\u202e', '\r\n', ' ', '\0', 'tree 0'),
  fc.string({ unit: 'binary', minLength: 1 }),
)
const filled = hostile.filter((text) => text !== '')
const some = fc.record(
  {
    kind: fc.constantFrom<CheckpointMeta['kind']>('before', 'step', 'after', 'manual', 'safety'),
    session: filled.map((text) => text as SessionId),
    seq: fc.integer({ min: 1 }),
    beside: oid,
    time: fc.constant('2026-01-02T03:04:05.678Z'),
    turn: fc.integer({ min: 1, max: 1e6 }).map((turn) => turn as NonNullable<CheckpointMeta['turn']>),
    step: fc.integer({ min: 1, max: 1e6 }),
    start: fc.constant(true),
    late: fc.constant(true),
    messageId: filled,
    marker: filled,
    agent: filled,
    tool: filled,
    callId: filled,
    branch: filled,
    parentSession: filled,
    paths: fc.array(name, { minLength: 1, maxLength: 3 }),
    head: oid,
    record: oid,
  },
  { requiredKeys: ['kind', 'session', 'seq', 'beside', 'time'] },
)
/** What is of a turn says so. */
const meta: fc.Arbitrary<CheckpointMeta> = some.map((one) => ({
  ...(['manual', 'safety'].includes(one.kind) || isOutside(one)
    ? {}
    : { turn: 1 as NonNullable<CheckpointMeta['turn']>, step: 1 }),
  ...one,
}))

test('a checkpoint comes back from its message, whatever text an agent put into it', () => {
  fc.assert(
    fc.property(meta, oid, oid, (one, id, tree) => {
      const message = formatMessage(one)
      // A subject, an empty line, one paragraph of trailers: nothing that an agent sent makes a line of its own.
      expect(message).toMatch(/^[ -~]+\n\n(?:Ckpt-[A-Za-z-]+: [ -~]+\n)+$/)
      const { id: _, tree: own, parents, ...back }: Checkpoint = parseCheckpoint(id, `tree ${tree}\n\n${message}`)
      expect([own, parents]).toEqual([tree, []])
      // A lone surrogate is no text: it is stored as git would show it.
      const text = (value: unknown) =>
        typeof value === 'string' && one.paths?.includes(value) !== true
          ? Buffer.from(value, 'utf8').toString('utf8')
          : value
      expect(back).toEqual(Object.fromEntries(Object.entries(one).map(([key, value]) => [key, text(value)])))
    }),
  )
})

test('a checkpoint that we would not have written is damage, whatever git would make of it', () => {
  const [id, tree, other] = ['1', '2', '3'].map((digit) => digit.repeat(40) as Oid) as [Oid, Oid, Oid]
  const message = formatMessage({
    kind: 'after',
    session: 's' as SessionId,
    seq: 7,
    turn: 2 as NonNullable<CheckpointMeta['turn']>,
    step: 1,
    beside: other,
    time: '2026-01-02T03:04:05.678Z',
    status: 'completed',
    head: other,
    hidden: '2,3',
  })
  const header = `tree ${tree}\nparent ${other}\nauthor ckpt <c@l> 1 +0000\ncommitter ckpt <c@l> 1 +0000`
  const good = `${header}\n\n${message}`
  expect(parseCheckpoint(id, good)).toMatchObject({ seq: 7, turn: 2, parents: [other] })
  const late = good.replace('Ckpt-Seq', 'Ckpt-Late: yes\nCkpt-Seq')
  for (const kind of ['after', 'step'])
    parseCheckpoint(id, late.replace('Kind: after', `Kind: ${kind}`).replace(/Ckpt-(Turn|Step): .*\n/g, ''))
  const trailers: [key: string, values: string[]][] = [
    ['Seq', ['0', '-1', '1.5', '1e3', '0x10', ' 7', '', 'foo', '9007199254740992', '1e308']],
    ['Turn', ['0', '-1', 'foo', '', 'NaN', 'Infinity', '9007199254740993']],
    ['Step', ['0', '1.5', 'foo']],
    ['Time', ['foo', '', '2026-01-02', '2026-13-02T03:04:05.678Z', '+012026-01-02T03:04:05.678Z']],
    ['Head', ['foo', '', '3'.repeat(39)]],
    ['Beside', ['foo']],
    ['Kind', ['foo', '']],
    ['Status', ['running', 'foo']],
    ['Hidden', ['2%0As\t9', 'x']],
  ]
  const forged: [what: string, commit: string][] = [
    ...trailers.flatMap(([key, values]) =>
      values.map((value): [string, string] => [
        `${key}: ${value}`,
        good.replace(new RegExp(`Ckpt-${key}: .*`), `Ckpt-${key}: ${value}`),
      ]),
    ),
    ['a seq twice', good.replace(/Ckpt-Seq: .*/, '$&\nCkpt-Seq: 8')],
    ['a time less', good.replace(/Ckpt-Time: .*\n/, '')],
    ['where git stops reading', good.replace(/Ckpt-Seq/, 'x\0\nCkpt-Seq')],
    ['two trees', good.replace('parent', `tree ${other}\nparent`)],
    ['two parents', good.replace('author', `parent ${id}\nauthor`)],
    ['a parent of another hash', good.replace(/parent .*/, `parent ${'3'.repeat(64)}`)],
    ['a tree that is none', good.replace(/tree .*/, 'tree foo')],
    ['no tree', good.replace(/tree .*\n/, '')],
    ['words that git would decode', good.replace('\n\n', '\nencoding UTF-7\n\n')],
    ['the end of no turn', good.replace(/Ckpt-Turn: .*\n/, '')],
    ['the beginning of no turn', late.replace('Kind: after', 'Kind: before').replace(/Ckpt-Turn: .*\n/, '')],
    ['a step without its place', good.replace('Kind: after', 'Kind: step').replace(/Ckpt-Step: .*\n/, '')],
  ]
  for (const [what, commit] of forged) {
    let code: string | undefined
    try {
      parseCheckpoint(id, commit)
    } catch (error) {
      code = (error as CkptError).code
    }
    expect([what, code]).toEqual([what, 'DAMAGED'])
  }
})

test('every session has a ref name of its own, and git takes it', () => {
  const sessionId = fc
    .oneof(
      fc.string({
        unit: fc.constantFrom('a', 'A', '=', '6', '1', '_', '/', '.', '-', 'ü', ' ', '@{', '~'),
        minLength: 1,
      }),
      fc.string({ unit: 'grapheme', minLength: 1 }),
      fc.constantFrom('x'.repeat(121), 'x'.repeat(122), `${'x'.repeat(120)}=_`, 'A', '=41', 'a.lock', '..', '@'),
    )
    .filter((text) => Buffer.from(text).toString() === text && !/[\x00-\x1f\x7f]/.test(text))
  const digest = (text: string) => createHash('sha256').update(text).digest('hex')
  fc.assert(
    fc.property(sessionId, sessionId, (a, b) => {
      const [one, two] = [encodeSession(parseSessionId(a), digest), encodeSession(parseSessionId(b), digest)]
      expect(one === two).toBe(a === b)
      expect(one).toMatch(/^[a-z0-9_=-]{1,121}$/)
    }),
  )
})

test('an id is read as what it is, and nothing else is an id', () => {
  const number = fc.integer({ min: 0, max: 999_999_999 })
  fc.assert(
    fc.property(number, number, hex(8), (turn, step, prefix) => {
      expect(parseTarget(String(turn))).toEqual({ kind: 'turn', turn })
      expect(parseTarget(`${turn}.${step}`)).toEqual({ kind: 'step', turn, step })
      expect(parseTarget(`${turn}:before`)).toEqual({ kind: 'edge', turn, edge: 'before' })
      expect(parseTarget(`${turn}:after`)).toEqual({ kind: 'edge', turn, edge: 'after' })
      const kind = /^\d+$/.test(prefix) ? 'turn' : 'checkpoint'
      expect(parseTarget(prefix).kind).toBe(kind)
    }),
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      if (/^(?:worktree|\d{1,9}(?:\.\d{1,9}|:before|:after)?|t?[0-9a-f]+)$/.test(text)) return
      expect(() => parseTarget(text)).toThrow(CkptError)
    }),
  )
})

const state: fc.Arbitrary<PathState> = fc.oneof(
  { weight: 2, arbitrary: fc.constant({ kind: 'absent' as const }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('present' as const),
      type: fc.constantFrom('file' as const, 'file' as const, 'link' as const),
      oid: fc.constantFrom(...['1', '2', '3'].map((digit) => digit.repeat(40) as Oid)),
      mode: fc.constantFrom(0o644, 0o755, 0o600),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'unknown' as const, reason: 'ignored' }) },
)
const change = fc.record({ path: fc.constantFrom('a', 'b'), from: state, to: state })

test('promise 1: a plan writes only where the disk is what the turn left, or a merge is clean', () => {
  const disk = fc.record({ a: state, b: state })
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 4 }),
      disk,
      fc.constantFrom<ConflictMode>('refuse', 'skip', 'merge'),
      (changes, now, mode) => {
        const plan = planChanges({
          units: changes.map((one, i) => ({ turn: (9 - i) as never, step: null, changes: [one] })),
          disk: new Map(Object.entries(now)),
          mode,
          merges: new Map(),
          unchangedUncovered: () => false,
        })
        for (const { path, action, pre, post } of plan.actions) {
          const own = changes.filter((one) => one.path === path)
          if (action === 'conflict') expect(post).toEqual(pre)
          if (action === 'conflict' || action === 'skip' || sameState(pre, post)) continue
          // Nothing unknown is ever overwritten, and nothing unknown ever deletes.
          expect(pre.kind).not.toBe('unknown')
          expect(post.kind).not.toBe('unknown')
          // What happens first on this path begins where the disk is, or touches only what the disk left alone.
          const begins = own.some(({ from, to }) => {
            if (sameState(to, pre)) return true
            // What is gone from an ignored directory can lose nothing.
            if (to.kind === 'unknown' && pre.kind === 'absent') return true
            const files = [from, to, pre].every((one) => one.kind === 'present' && one.type === 'file')
            if (!files || from.kind !== 'present' || to.kind !== 'present' || pre.kind !== 'present') return false
            return (
              (from.oid === to.oid || to.oid === pre.oid || from.oid === pre.oid) &&
              (from.mode === to.mode || to.mode === pre.mode || from.mode === pre.mode)
            )
          })
          expect([path, begins]).toEqual([path, true])
        }
      },
    ),
    { numRuns: 2000 },
  )
})

test('a plan where nobody else touched anything goes all the way back, and its record goes all the way forth', () => {
  const known = state.filter((one) => one.kind !== 'unknown')
  fc.assert(
    fc.property(fc.array(known, { minLength: 2, maxLength: 6 }), (states) => {
      const turns = states.slice(1).map((to, i) => ({ path: 'a', from: states[i]!, to }))
      const input = { mode: 'refuse' as const, merges: new Map(), unchangedUncovered: () => false }
      const units = turns.map((one, i) => ({ turn: (i + 1) as never, step: null, changes: [one] })).reverse()
      const undone = planChanges({ ...input, units, disk: new Map([['a', states.at(-1)!]]) })
      expect(undone.actions.filter(({ action }) => action === 'conflict')).toEqual([])
      const [first, last] = [states[0]!, states.at(-1)!]
      const post = undone.actions[0]?.post ?? last
      expect(sameState(post, first)).toBe(true)
      const redone = planChanges({ ...input, units: [...undone.units].reverse(), disk: new Map([['a', post]]) })
      expect(redone.actions.filter(({ action }) => action === 'conflict')).toEqual([])
      expect(sameState(redone.actions[0]?.post ?? post, last)).toBe(true)
    }),
  )
})

test('several turns at once go back as far as one after the other would, and delete nothing for what was unknown', () => {
  fc.assert(
    fc.property(fc.array(state, { minLength: 2, maxLength: 6 }), (states) => {
      const input = { mode: 'refuse' as const, merges: new Map(), unchangedUncovered: () => false }
      const units = states
        .slice(1)
        .map((to, i) => ({ turn: (i + 1) as never, step: null, changes: [{ path: 'a', from: states[i]!, to }] }))
        .reverse()
      const disk = states.at(-1)!
      let one = disk
      let ended = false
      for (const unit of units) {
        const [action] = planChanges({ ...input, units: [unit], disk: new Map([['a', one]]) }).actions
        if (action?.action === 'conflict') return
        ended = action?.action === 'skip'
        if (ended) break
        one = action?.post ?? one
      }
      const [all] = planChanges({ ...input, units, disk: new Map([['a', disk]]) }).actions
      const reached = all === undefined || all.action === 'skip' ? disk : all.post
      const expected = ended && one.kind === 'absent' ? disk : one
      const isSame = reached.kind === 'unknown' ? expected.kind === 'unknown' : sameState(reached, expected)
      expect([reached, expected, isSame]).toEqual([reached, expected, true])
    }),
    { numRuns: 2000 },
  )
})

const drawn = fc.record({
  session: fc.constantFrom('s', 't'),
  turnId: fc.constant('t1'),
  turn: fc.constant(1 as Window['turn']),
  step: fc.option(fc.integer({ min: 1, max: 3 })),
  from: fc.integer({ min: 1, max: 6 }),
  back: fc.integer({ min: 0, max: 3 }),
  to: fc.integer({ min: 2, max: 9 }),
  declared: fc.array(fc.constantFrom('a', 'dir')),
  open: fc.boolean(),
  detours: fc.array(fc.record({ from: fc.integer({ min: 1, max: 5 }), to: fc.integer({ min: 3, max: 8 }) }), {
    maxLength: 1,
  }),
})
const window = drawn.map(({ back, ...one }): Window => ({ ...one, reach: one.from - back }))
const segment = fc
  .integer({ min: 1, max: 8 })
  .map((from) => ({ from: { seq: from }, to: { seq: from + 1 }, cut: false }) as Segment)

test('a claim is fair: what is mine to one side is theirs to the other, and a tie is ambiguous to both', () => {
  const windows = fc.array(window, { maxLength: 3 })
  fc.assert(
    fc.property(fc.constantFrom('a', 'b', 'dir/x'), segment, windows, windows, (path, at, mine, theirs) => {
      const [one, two] = [
        claimOf(path, at, { mine, theirs }).kind,
        claimOf(path, at, { mine: theirs, theirs: mine }).kind,
      ]
      const other = { mine: 'theirs', theirs: 'mine', ambiguous: 'ambiguous', unclaimed: 'unclaimed' } as const
      expect(two).toBe(other[one])
      const within = ({ from, to }: { from: number; to: number }) => from <= at.from.seq && at.to.seq <= to
      const inside = (all: readonly Window[]) =>
        all.some((w) => within({ ...w, from: w.reach }) && !w.detours.some(within))
      if (one !== 'unclaimed' && one !== 'theirs') expect(inside(mine)).toBe(true)
    }),
  )
})

test('whose a change is can be told from the windows that are near it', () => {
  const windows = fc.array(window, { maxLength: 8 })
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 8 }), windows, windows, (drawn, mine, theirs) => {
      const [myNear, theirNear] = [windowsAlong(mine), windowsAlong(theirs)]
      for (const at of drawn.sort((a, b) => a.from.seq - b.from.seq)) {
        const near = { mine: myNear(at), theirs: theirNear(at) }
        const far = [...mine, ...theirs].filter((one) => one.reach > at.from.seq || one.to < at.to.seq)
        expect([...near.mine, ...near.theirs].filter((one) => far.includes(one))).toEqual([])
        for (const path of ['a', 'b', 'dir/x'])
          expect(claimOf(path, at, near)).toEqual(claimOf(path, at, { mine, theirs }))
      }
    }),
  )
})

test("where something was pruned a path is mine only if it was declared, and what was others' stays so", () => {
  const windows = fc.array(window, { maxLength: 3 })
  fc.assert(
    fc.property(fc.constantFrom('a', 'b', 'dir/x'), segment, windows, windows, (path, at, mine, theirs) => {
      const [whole, cut] = [claimOf(path, at, { mine, theirs }), claimOf(path, { ...at, cut: true }, { mine, theirs })]
      if (whole.kind === 'theirs') expect(cut).toEqual(whole)
      if (cut.kind === 'mine') {
        expect(cut).toEqual(whole)
        expect(mine.some(({ declared }) => declared.some((one) => isWithin(path, one)))).toBe(true)
      }
    }),
  )
})

test('joined changes begin and end where the single ones did, and none of them does nothing', () => {
  fc.assert(
    fc.property(
      fc.array(
        state.filter((one) => one.kind !== 'unknown'),
        { minLength: 2, maxLength: 6 },
      ),
      (states) => {
        const changes = states.slice(1).map((to, i) => ({ path: 'a', from: states[i]!, to, step: 1 }))
        const joined: Transition[] = joinTransitions(changes)
        const [first, last] = [states[0]!, states.at(-1)!]
        if (sameState(first, last)) expect(joined).toEqual([])
        else {
          expect(joined).toHaveLength(1)
          expect(sameState(joined[0]!.from, first) && sameState(joined[0]!.to, last)).toBe(true)
        }
      },
    ),
  )
})
