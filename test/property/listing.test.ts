// However little of the worktree is looked at, the snapshot is the one a full scan makes.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import * as fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { DEFAULTS } from '../../src/config/defaults.ts'
import { ancestorsOf } from '../../src/core/paths.ts'
import { type Env, realEnv } from '../../src/env.ts'
import { KeptProcess } from '../../src/git/line-process.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import type { SnapshotCache } from '../../src/snapshot/cache.ts'
import { type Captured, capture } from '../../src/snapshot/capture.ts'
import type { Hint } from '../../src/snapshot/scan.ts'
import { Scratch } from '../support/scratch.ts'
import { RUNS, runsWith } from '../support/seed.ts'

/** Bytes, one character each: some are no text, and some mean something to a watcher. */
const NAMES = ['a', 'b.log', 'c d', '\xc3\xa9', 'n\xfe', '.gitignore', 'x'] as const
const directory = fc.constantFrom<string>('', 'd', 'd/e', 'd/e/f', 'g', 'out', 'g/out', 'l\xff', 'l\xff/m', 'd\\e')
const spot = fc.tuple(directory, fc.constantFrom(...NAMES)).map(([at, name]) => path.posix.join(at, name))

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('write' as const),
      at: spot,
      text: fc.constantFrom<string>('1', '22', 'out/\n', '*.log\n', '!x\n', '*\n', '*\n!.gitignore\n!x\n'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('remove' as const), at: fc.oneof(spot, directory) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('rename' as const),
      at: fc.oneof(spot, directory),
      to: fc.oneof(spot, directory),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('link' as const), at: spot, to: fc.constantFrom('a', 'nowhere', 'd') }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('mkdir' as const), at: directory }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('swap' as const), at: directory, to: directory }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('chmod' as const),
      at: fc.oneof(spot, directory),
      mode: fc.constantFrom(0o600, 0o755, 0o700),
    }),
  },
)
const nest = fc.record({ op: fc.constant('nest' as const), at: directory })
const away = fc.record({ op: fc.constant('away' as const), at: directory })
type StepOf<A> = A extends fc.Arbitrary<infer T> ? T : never
type Step = StepOf<typeof step> | StepOf<typeof nest> | StepOf<typeof away>

function carryOut(root: string, one: Step): void {
  const bytes = (name: string) => Buffer.from(`${root}/${name}`, 'latin1')
  if (one.at === '') return
  const at = bytes(one.at)
  const above = (name: string) => fs.mkdirSync(bytes(path.posix.dirname(name)), { recursive: true })
  // A step that makes no sense here does nothing: `mkdir` below a file, a rename onto itself.
  try {
    if (one.op === 'write') {
      above(one.at)
      fs.writeFileSync(at, one.text)
    } else if (one.op === 'remove') fs.rmSync(at, { recursive: true, force: true })
    else if (one.op === 'rename') {
      if (one.to === '') return
      above(one.to)
      fs.renameSync(at, bytes(one.to))
    } else if (one.op === 'swap') {
      if (one.to === '') return
      const aside = bytes('swapped')
      fs.renameSync(at, aside)
      fs.renameSync(bytes(one.to), at)
      fs.renameSync(aside, bytes(one.to))
    } else if (one.op === 'link') {
      fs.rmSync(at, { recursive: true, force: true })
      fs.symlinkSync(one.to, at)
    } else if (one.op === 'mkdir') fs.mkdirSync(at, { recursive: true })
    else if (one.op === 'away') {
      // Out of the worktree, and back with the next one: nothing about the files in it changes.
      const away = `${root}-away-${one.at.replaceAll('/', '-')}`
      const [from, to] = fs.existsSync(away) ? [away, at] : [at, away]
      fs.renameSync(from, to)
    } else if (one.op === 'chmod') {
      if (!fs.lstatSync(at).isSymbolicLink()) fs.chmodSync(at, one.mode)
    } else {
      for (const name of ['objects', 'refs']) fs.mkdirSync(bytes(`${one.at}/.git/${name}`), { recursive: true })
      fs.writeFileSync(bytes(`${one.at}/.git/HEAD`), 'ref: refs/heads/main\n')
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
  }
}

/** What cannot be looked at from here is not seen: a step may have closed a directory. */
function ifOpen<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EACCES') return undefined
    throw error
  }
}

interface Row {
  text: string
  /** Of a directory. */
  ino: number | null
}

/** What a perfect watcher looks at. */
function stats(root: string): Map<string, Row> {
  const rows = new Map<string, Row>()
  const bytes = (at: string) => Buffer.from(at === '' ? root : `${root}/${at}`, 'latin1')
  const walk = (at: string) => {
    for (const name of ifOpen(() => fs.readdirSync(bytes(at), { encoding: 'latin1' })) ?? []) {
      if (name === '.git') continue
      const one = at === '' ? name : `${at}/${name}`
      const found = ifOpen(() => fs.lstatSync(bytes(one)))
      if (!found) continue
      const isDirectory = found.isDirectory()
      rows.set(one, {
        text: `${found.mode} ${found.ino} ${found.ctimeMs} ${found.mtimeMs} ${found.size} ${isDirectory}`,
        ino: isDirectory ? found.ino : null,
      })
      if (isDirectory) walk(one)
    }
  }
  walk('')
  return rows
}

/** Every entry that differs, new and gone ones; of a directory that is another one, as the watcher does, only that it is. */
function hintFrom(before: Map<string, Row>, after: Map<string, Row>): Hint {
  const paths = new Set<string>()
  const subtrees = new Set<string>()
  for (const [one, { text, ino }] of after) {
    if (ancestorsOf(one).some((above) => subtrees.has(above))) continue
    const was = before.get(one)
    if (was?.text !== text) paths.add(one)
    if (ino !== null && was?.ino !== ino) subtrees.add(one)
  }
  for (const one of before.keys()) if (!after.has(one)) paths.add(one)
  return { paths, subtrees }
}

const shown = ({ tree, beside }: Captured) => ({
  tree,
  modes: [...beside.modes].sort(),
  empty: [...beside.emptyDirectories].sort(),
  uncovered: beside.uncovered.map(({ path: one, reason }) => `${one} ${reason}`).sort(),
})

/** Files that a private index takes over at the first snapshot, for they are tracked and at rest. */
const AT_REST = new Map(
  ['a', 'd/a', 'd/x', 'd/e/b.log', 'd/e/f/c d', 'g/a', 'out/x', 'l\xff/a'].map((name) => [name, `${name}\n`]),
)
AT_REST.set('d/.gitignore', '*.log\n').set('g/.gitignore', 'x\n')
AT_REST.set('l\xff/m/.gitignore', 'n*\n').set('out/m/.gitignore', 'x\n')
/** So many places are made at once, for to come to rest takes them seconds. */
const AT_ONCE = 14

/** Repositories in which nothing is tracked. */
function newPlaces(scratch: Scratch): () => Promise<string> {
  let run = 0
  return async () => {
    const root = path.join(scratch.base, `run${run++}`)
    fs.mkdirSync(root)
    scratch.git('init', '-q', root)
    fs.writeFileSync(path.join(root, 'kept'), 'kept\n')
    return root
  }
}

/** Checkouts that have come to rest. */
function restedPlaces(scratch: Scratch, layout = AT_REST): () => Promise<string> {
  const anew = newPlaces(scratch)
  const made: string[] = []
  return async () => {
    const found = made.shift()
    if (found !== undefined) return found
    for (let i = 0; i < AT_ONCE; i++) {
      const root = await anew()
      for (const [name, text] of layout) {
        const file = Buffer.from(`${root}/${name}`, 'latin1')
        fs.mkdirSync(Buffer.from(path.posix.dirname(file.toString('latin1')), 'latin1'), { recursive: true })
        fs.writeFileSync(file, text)
      }
      scratch.git('-C', root, 'add', '-f', '.')
      const later = new Date(Date.now() + 5000)
      fs.utimesSync(path.join(root, '.git/index'), later, later)
      made.push(root)
    }
    await setTimeout(2100)
    return made.shift()!
  }
}

/** A directory is out of the worktree for one snapshot, or gone and made anew. */
const BACK: Step[][] = [[{ op: 'away', at: 'd' }], [{ op: 'away', at: 'd' }]]
const ANEW: Step[][] = [[{ op: 'remove', at: 'd' }], [{ op: 'write', at: 'd/a', text: '1' }]]
/** Two directories whose own rules differ, or those of a directory in them, have each other's names. */
const both = (at: string, to: string): Step[] => [
  { op: 'write', at, text: '1' },
  { op: 'write', at: to, text: '1' },
]
const SWAPPED: Step[][] = [both('d/b.log', 'g/b.log'), [{ op: 'swap', at: 'd', to: 'g' }]]
const BELOW: Step[][] = [both('l\xff/m/n\xfe', 'out/m/n\xfe'), [{ op: 'swap', at: 'l\xff', to: 'out' }]]

let closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing) close()
  closing = []
})

/** A worktree, and what takes a snapshot of it: with what the last one knew, what a watcher says, and another file system. */
async function opened(scratch: Scratch, root: string) {
  const env = { ...realEnv(), vars: scratch.vars, home: scratch.home, cwd: root }
  const context = await openContext(env, root, { create: true })
  closing.push(() => closeContext(context))
  const { worktree, store } = context
  const rules = new KeptProcess()
  closing.push(() => rules.close())
  const limits = { ...DEFAULTS.snapshot }
  const take = (
    cache: SnapshotCache | null,
    lastTree: Captured['tree'] | null,
    { hint, files = env.files }: { hint?: Hint | undefined; files?: Env['files'] } = {},
  ) => {
    const told = hint ? { hint, rules } : {}
    return capture({ ...env, files }, { worktree, store, limits, cache, lastTree, headTree: null, ...told })
  }
  return { store, files: env.files, take }
}

test.each([
  ['narrow', 'a new place', newPlaces, nest],
  ['hinted', 'a new place', newPlaces, nest],
  ['narrow', 'a checkout at rest', restedPlaces, away],
  ['hinted', 'a checkout at rest', restedPlaces, away],
] as const)(
  'a %s listing of %s makes the snapshot of a full scan',
  { timeout: 60_000 + RUNS * 5000 },
  async (kind, _, places, special) => {
    const scratch = new Scratch()
    const next = places(scratch)
    const any: fc.Arbitrary<Step> = fc.oneof({ weight: 7, arbitrary: step }, { weight: 1, arbitrary: special })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(any, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 5 }),
        async (rounds) => {
          const root = await next()
          const { store, take } = await opened(scratch, root)
          let last = await take(null, null)
          expect(last.cache?.index === null).toBe(places === newPlaces)
          let seen = stats(root)
          for (const steps of rounds) {
            for (const one of steps) carryOut(root, one)
            const now = stats(root)
            const hint = kind === 'hinted' ? hintFrom(seen, now) : undefined
            const full = await take(null, last.tree)
            const quick = await take(last.cache, last.tree, { hint })
            // An ignored directory is not entered by who knows of no tracked file in it, and then says nothing of what
            // is not captured there.
            const has = new Set((await store.trees.directories(full.tree)).map((one) => `${one}/`))
            const captured = ({ tree, modes }: ReturnType<typeof shown>) => ({
              tree,
              modes: modes.filter(([one]) => !one.endsWith('/') || has.has(one)),
            })
            const rows = (one: Captured) => (places === newPlaces ? shown(one) : captured(shown(one)))
            expect(rows(quick)).toEqual(rows(full))
            last = quick
            seen = now
          }
          execFileSync('chmod', ['-R', 'u+rwX', root])
          fs.rmSync(root, { recursive: true, force: true })
        },
      ),
      runsWith(places === newPlaces ? [] : [[BACK], [ANEW], [SWAPPED], [BELOW]]),
    )
  },
)

/** So many at most, with a hint, to the end of the first ones at directories. */
const FIRST_LOOKS = 15

/** The file system, with something done before some of the looks at it. */
function disturbed(files: Env['files'], amid: readonly [look: number, act: () => void][]): Env['files'] {
  let looks = 0
  return new Proxy(files, {
    get: (target, name, receiver) => {
      const own = Reflect.get(target, name, receiver)
      if (name !== 'lstatSync' && name !== 'readdirSync' && name !== 'accessSync') return own
      return (...args: unknown[]) => {
        for (const [look, act] of amid) if (look === looks) act()
        looks++
        return own(...args)
      }
    },
  })
}

/** What the files hold that lie somewhere in it. */
function contents(root: string): Set<string> {
  const names = fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => !name.startsWith('.git'))
  const files = names.map((name) => path.join(root, name)).filter((file) => fs.statSync(file).isFile())
  return new Set(files.map((file) => fs.readFileSync(file, 'utf8')))
}

const LAID_OUT = new Map(
  ['a/in/one', 'a/in/both', 'b/in/two', 'b/in/both', 'b/in/deep/three', 'c/d/four', 'c/d/in/five', 'six'].map(
    (name) => [name, `${name}\n`],
  ),
)

/** What may happen while a snapshot is taken; to directories that hold others, above all. */
const meanwhile = fc.constantFrom<Step>(
  { op: 'swap', at: 'a', to: 'b' },
  { op: 'swap', at: 'a/in', to: 'b/in' },
  { op: 'swap', at: 'c/d', to: 'a' },
  { op: 'rename', at: 'c/d', to: 'e' },
  { op: 'rename', at: 'e', to: 'c/d' },
  { op: 'rename', at: 'b/in', to: 'c/d/other' },
  { op: 'away', at: 'b' },
  { op: 'remove', at: 'a/in' },
  { op: 'write', at: 'b/in/new', text: '1' },
  { op: 'write', at: 'e/in/new', text: '22' },
)

const swapped = { op: 'swap', at: 'a', to: 'b' } as const
/** Each of these once lost something. */
const LOST: [{ relisted: boolean; before: Step | undefined; amid: [number, Step][] }][] = [
  [{ relisted: true, before: undefined, amid: [[18, swapped]] }],
  [{ relisted: false, before: swapped, amid: [[21, swapped]] }],
  [
    {
      relisted: false,
      before: undefined,
      amid: [
        [21, swapped],
        [0, swapped],
      ],
    },
  ],
  [
    {
      relisted: false,
      before: swapped,
      amid: [
        [4, swapped],
        [0, { op: 'remove', at: 'a/in' }],
      ],
    },
  ],
]

test.each([
  ['a new place', 'without', newPlaces],
  ['a new place', 'with', newPlaces],
  ['a checkout at rest', 'without', restedPlaces],
  ['a checkout at rest', 'with', restedPlaces],
] as const)(
  'what moves while a snapshot of %s is taken is somewhere in it, and in the next one whole, %s a hint',
  { timeout: 60_000 + RUNS * 10_000 },
  async (_, hinted, places) => {
    const scratch = new Scratch()
    const place = places(scratch, LAID_OUT)
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          // With another rule all of it is listed.
          relisted: fc.boolean(),
          before: fc.option(meanwhile, { nil: undefined }),
          amid: fc.array(fc.tuple(fc.nat(90), meanwhile), { minLength: 1, maxLength: 3 }),
        }),
        async ({ relisted, before, amid }) => {
          const root = await place()
          for (const [at, text] of LAID_OUT) if (places === newPlaces) carryOut(root, { op: 'write', at, text })
          const { store, files, take } = await opened(scratch, root)
          let last = await take(null, null)
          let seen = stats(root)
          const next = (through = files) => {
            const [before, now] = [seen, stats(root)]
            seen = now
            return take(last.cache, last.tree, {
              hint: hinted === 'with' ? hintFrom(before, now) : undefined,
              files: through,
            })
          }
          const rest = () => setTimeout(60) // what changed just now is looked at again anyway
          await rest()
          last = await next()
          if (before) carryOut(root, before)
          if (relisted) carryOut(root, { op: 'write', at: '.gitignore', text: '*.log\n' })
          await rest()
          const throughout = contents(root)
          const acts = amid.map(([look, one]): [number, () => void] => [
            look,
            () => {
              carryOut(root, one)
              const now = contents(root)
              for (const content of throughout) if (!now.has(content)) throughout.delete(content)
            },
          ])
          last = await next(disturbed(files, acts))
          const captured = new Set([...(await store.trees.files(last.tree)).values()].map(({ oid }) => oid))
          const isMissing = (content: string) => !captured.has(store.objects.oidOf('blob', Buffer.from(content)))
          // It looks three times, and what goes before it has looked where a watcher told it to, that one tells the next.
          const isSeen = amid.length < 3 && (hinted === 'without' || amid.every(([look]) => look > FIRST_LOOKS))
          if (isSeen) expect([...throughout].filter(isMissing)).toEqual([])
          const [full, quick] = [await take(null, last.tree), await next()]
          expect(shown(quick)).toEqual(shown(full))
          fs.rmSync(root, { recursive: true, force: true })
        },
      ),
      runsWith(LOST),
    )
  },
)

test('where directories change places all the while a snapshot is taken nevertheless', async () => {
  const scratch = new Scratch()
  const root = await newPlaces(scratch)()
  for (const [at, text] of LAID_OUT) carryOut(root, { op: 'write', at, text })
  const { files, take } = await opened(scratch, root)
  const first = await take(null, null)
  let times = 0
  const acts = Array.from({ length: 500 }, (_, i): [number, () => void] => [
    i * 4,
    () => {
      times++
      carryOut(root, swapped)
    },
  ])
  const amid = await take(first.cache, first.tree, { files: disturbed(files, acts) })
  expect([times > 20, times < 200, amid.degraded]).toEqual([true, true, false])
  expect(shown(await take(amid.cache, amid.tree))).toEqual(shown(await take(null, amid.tree)))
})
