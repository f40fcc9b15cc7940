// With the watcher on, flooded or starved, each snapshot equals a full scan.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Oid } from '../../src/core/ids.ts'
import { Held } from '../../src/daemon/held.ts'
import { realEnv } from '../../src/env.ts'
import { takeSnapshot } from '../../src/ops/record/record.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { readRefs } from '../../src/ops/worktree/sessions.ts'
import { capture } from '../../src/snapshot/capture.ts'
import { startDaemon } from '../support/daemon.ts'
import { treeByGit } from '../support/judge.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'
import { RUNS, runsWith } from '../support/seed.ts'

/** Bytes, one character each: some are no text, and some mean something to a watcher. */
const directory = fc.constantFrom('d', 'd/e', 'd/e/f', 'g', 'out', 'l\xff', 'l\xff/m', 'd\\e', 'd/\xc3\xa9')
const spot = fc
  .tuple(fc.oneof(fc.constant('.'), directory), fc.constantFrom('a', 'b', '\xc3\xa9', 'n\xfe', '.gitignore'))
  .map(([at, name]) => path.posix.join(at, name))
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(
      fc.constant('write'),
      spot,
      fc.constantFrom('1', '2', 'out/\n', 'a\n', '*\n!a\n!.gitignore\n', 'e\n'),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('remove'), fc.oneof(spot, directory), fc.constant('')) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('rename'), directory, directory) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('link'), spot, fc.constantFrom('a', 'd')) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('swap'), directory, directory) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('burst'), directory, fc.constant('')) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('away'), directory, fc.constant('')) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('nest'), directory, fc.constant('')) },
)

function carryOut(root: string, [op, at, more]: readonly [string, string, string]): void {
  const bytes = (name: string) => Buffer.from(`${root}/${name}`, 'latin1')
  const file = bytes(at)
  const above = (name: string) => fs.mkdirSync(bytes(path.posix.dirname(name)), { recursive: true })
  try {
    if (op === 'write') {
      above(at)
      fs.writeFileSync(file, more)
    } else if (op === 'remove') fs.rmSync(file, { recursive: true, force: true })
    else if (op === 'rename') {
      above(more)
      fs.renameSync(file, bytes(more))
    } else if (op === 'swap') {
      if (`${more}/`.startsWith(`${at}/`) || `${at}/`.startsWith(`${more}/`)) return
      if (!fs.existsSync(file) || !fs.existsSync(bytes(more))) return
      fs.renameSync(file, bytes('between'))
      fs.renameSync(bytes(more), file)
      fs.renameSync(bytes('between'), bytes(more))
    } else if (op === 'link') {
      fs.rmSync(file, { recursive: true, force: true })
      fs.symlinkSync(more, file)
    } else if (op === 'away') {
      // Out of the worktree, and back with the next one.
      const away = `${root}-away-${at.replaceAll('/', '-')}`
      const [from, to] = fs.existsSync(away) ? [away, file] : [file, away]
      fs.renameSync(from, to)
    } else if (op === 'nest') {
      // A repository of its own, and none any more with the next one.
      const own = bytes(`${at}/.git`)
      if (fs.existsSync(own)) fs.rmSync(own, { recursive: true })
      else {
        for (const name of ['objects', 'refs']) fs.mkdirSync(bytes(`${at}/.git/${name}`), { recursive: true })
        fs.writeFileSync(bytes(`${at}/.git/HEAD`), 'ref: refs/heads/main\n')
      }
    } else {
      fs.mkdirSync(file, { recursive: true })
      for (let i = 0; i < 200; i++) fs.writeFileSync(bytes(`${at}/n${i}`), String(i))
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error // a step that makes no sense here does nothing
  }
}

/** More events than the watcher believes in, one after the other: the kernel folds equal ones that follow each other. */
function flood(root: string): void {
  for (let i = 0; i < 6000; i++) fs.utimesSync(path.join(root, i % 2 === 0 ? 'kept' : '.'), i, i)
}

/** Work in a worktree that is watched; it goes after that. */
async function whileHeld(scratch: Scratch, root: string, work: (held: Held) => Promise<void>): Promise<void> {
  const env = { ...realEnv(), vars: scratch.vars, home: scratch.home, cwd: root }
  const context = await openContext(env, root, { create: true })
  const held = new Held(context)
  try {
    await held.start()
    await work(held)
  } finally {
    await held.stop()
    closeContext(context)
    fs.rmSync(root, { recursive: true, force: true })
  }
}

/** `remembered`: the full scan knows what was known before. What was covered once may be so for that reason alone. */
async function compare(
  held: Held,
  scratch: Scratch,
  {
    root = scratch.root,
    lastTree = null,
    remembered = false,
  }: { root?: string; lastTree?: Oid | null; remembered?: boolean },
) {
  const env = { ...realEnv(), vars: scratch.vars, home: scratch.home, cwd: root }
  const live = (await held.context(env))!
  const cache = remembered ? held.cache() : null
  const quick = await takeSnapshot(live, readRefs(live))
  const { worktree, store } = live
  const full = await capture(env, {
    worktree,
    store,
    limits: live.config.snapshot,
    cache,
    lastTree,
    headTree: null,
  })
  return { quick: quick.tree, full: full.tree, mode: quick.mode }
}

/** What long runs found. */
const FOUND: [[string, string, string][][], number | null][] = [
  [
    [
      [['write', 'd/a', '1']],
      [
        ['write', '.gitignore', '1'],
        ['rename', 'd', 'g'],
        ['remove', '.gitignore', ''],
      ],
    ],
    null,
  ],
  [[[['write', 'l\xff/m/a', '1']], [['write', 'l\xff/m/a', '2']]], null],
  [[[['write', 'n\xfe', '1']], [['remove', 'n\xfe', '']]], null],
  [[[['burst', 'd', '']], [['rename', 'd', 'l\xff']]], null],
  [
    [
      [['write', 'l\xff/a', '1']],
      [['nest', 'l\xff', '']],
      [['write', '.gitignore', 'x\n']],
      [['write', 'g/a', '1']],
      [['write', 'l\xff/a', '2']],
    ],
    null,
  ],
  [
    [
      [
        ['write', 'd/.gitignore', 'b\n'],
        ['write', 'd/b', '1'],
        ['write', 'g/.gitignore', 'e\n'],
        ['write', 'g/b', '1'],
      ],
      [['write', 'd/a', '1']],
      [['swap', 'd', 'g']],
    ],
    null,
  ],
]

test('promise 13: random work between markers, the watcher on: every tree is what a full scan, or git, makes of it', {
  timeout: 60_000 + RUNS * 5000,
}, async () => {
  const scratch = new Scratch()
  let run = 0
  const modes = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 }),
      fc.option(fc.nat(3), { freq: 3 }),
      async (rounds, flooded) => {
        const root = path.join(scratch.base, `run${run++}`)
        fs.mkdirSync(root)
        scratch.git('init', '-q', root)
        fs.writeFileSync(path.join(root, 'kept'), 'kept\n')
        await whileHeld(scratch, root, async (held) => {
          let gitDiffers = false
          let last: Oid = (await compare(held, scratch, { root })).quick
          for (const [number, steps] of rounds.entries()) {
            for (const one of steps) carryOut(root, one)
            gitDiffers ||= steps.some(([op, at]) => op === 'nest' || at.endsWith('.gitignore'))
            if (number === flooded) flood(root)
            const { quick, full, mode } = await compare(held, scratch, { root, lastTree: last })
            last = quick
            modes.add(mode)
            expect(quick).toBe(full)
            // What was captured before a rule ignored it stays captured, and a repository inside is left alone: not so with git.
            if (!gitDiffers) expect(quick).toBe(treeByGit(scratch, { root }))
          }
        })
      },
    ),
    runsWith(FOUND),
  )
  expect(modes.has('fast')).toBe(true)
})

const GIT = [
  ...['add -A', 'add -f out/x', 'add -N b', 'rm -q --cached a', 'rm -rq --cached d', 'rm -rqf .', 'mv d/a g', 'mv a b'],
  ...['commit -qm x', 'commit -qam x', 'reset -q', 'reset -q --hard', 'reset -q --soft HEAD~1', 'read-tree HEAD'],
  ...['checkout -qb other', 'checkout -qf main', 'checkout -qf other', 'merge -q other', 'rebase -q other'],
  ...['stash -q', 'stash -qu', 'stash pop -q', 'restore .', 'restore --staged .', 'clean -fdq', 'clean -fdqx', 'gc -q'],
  ...['update-index --assume-unchanged a', 'update-index --no-assume-unchanged a', 'update-index --split-index'],
  ...['update-index --index-version 4', 'config core.untrackedCache true', 'config core.autocrlf true'],
  ...['config core.excludesFile rules', 'config --unset core.excludesFile', 'config core.filemode false'],
  ...['worktree add -q out/tree', 'worktree add -q d/tree', 'worktree remove --force d/tree', 'init -q d'],
]
const file = fc.constantFrom(
  'a',
  'b',
  'd/a',
  'd/b',
  'd/e/c',
  'out/x',
  '.gitignore',
  'd/.gitignore',
  '.git/info/exclude',
  'rules',
)
const content = fc.constantFrom('1', '2', 'out/\n', 'a\n', '*\n', 'c\n', '')
const place = fc.constantFrom('d', 'd/e', 'out', 'g')
const gitStep = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('write'), file, content) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('remove'), fc.oneof(file, place), fc.constant('')) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('rename'), place, place) },
  { weight: 10, arbitrary: fc.tuple(fc.constant('git'), fc.constantFrom(...GIT), fc.constant('')) },
)

/** What long runs found. */
const FOUND_WITH_GIT: [[string, string, string][][]][] = [
  [
    [
      [['remove', 'd', '']],
      [
        ['write', 'd/.gitignore', '*\n'],
        ['write', 'd/e/c', '1'],
      ],
    ],
  ],
]

test("promise 13: with git's commands between markers, too, every tree is what a scan makes of it", {
  timeout: 60_000 + RUNS * 5000,
}, async () => {
  const scratch = new Scratch()
  let run = 0
  const modes = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(gitStep, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 }),
      async (rounds) => {
        const root = path.join(scratch.base, `run${run++}`)
        scratch.git('init', '-q', '-b', 'main', root)
        const act = (one: readonly [string, string, string]) => {
          if (one[0] !== 'git') carryOut(root, one)
          else {
            try {
              scratch.git('-C', root, ...one[1].split(' '))
            } catch (error) {
              if (!(error instanceof Error && 'status' in error)) throw error // a command that makes no sense here
            }
          }
        }
        for (const name of ['a', 'd/a', 'd/e/c', 'out/x']) act(['write', name, '0'])
        for (const line of ['add -A', 'commit -qm first']) act(['git', line, ''])
        await whileHeld(scratch, root, async (held) => {
          let last: Oid = (await compare(held, scratch, { root })).quick
          for (const steps of rounds) {
            for (const one of steps) act(one)
            const { quick, full, mode } = await compare(held, scratch, { root, lastTree: last, remembered: true })
            last = quick
            modes.add(mode)
            expect(quick).toBe(full)
          }
        })
      },
    ),
    runsWith(FOUND_WITH_GIT),
  )
  expect(modes.has('fast')).toBe(true)
})

test('promise 13: where the kernel keeps few events, few of them at once are doubted', async () => {
  const scratch = new Scratch().init({ kept: 'kept\n' })
  const readFileSync = ((file: string, ...more: []) =>
    file === '/proc/sys/fs/inotify/max_queued_events'
      ? '64\n'
      : fs.readFileSync(file, ...more)) as typeof fs.readFileSync
  const env = { ...realEnv(), vars: scratch.vars, home: scratch.home, cwd: scratch.root }
  const context = await openContext({ ...env, files: { ...env.files, readFileSync } }, scratch.root, { create: true })
  const held = new Held(context)
  try {
    await held.start()
    let made = 0
    const modeAfter = async (files: number) => {
      for (const end = made + files; made < end; made++) fs.writeFileSync(scratch.at(`f${made}`), '')
      return (await compare(held, scratch, {})).mode
    }
    // Each file makes some events, and a busy machine takes them all at once, or lets the barrier wait too long.
    await expect.poll(() => modeAfter(2)).toBe('fast')
    expect(await modeAfter(38)).toBe('scan')
    await expect.poll(() => modeAfter(2)).toBe('fast')
  } finally {
    await held.stop()
    closeContext(context)
  }
})

test('row 29: 30,000 files made while the event loop is busy are all in the snapshot', async () => {
  const scratch = new Scratch().init({ kept: 'kept\n' })
  const env = { ...realEnv(), vars: scratch.vars, home: scratch.home, cwd: scratch.root }
  const context = await openContext(env, scratch.root, { create: true })
  const held = new Held(context)
  try {
    await held.start()
    for (let i = 0; i < 30; i++) {
      fs.mkdirSync(scratch.at(`burst/d${i}`), { recursive: true })
      for (let j = 0; j < 1000; j++) fs.writeFileSync(scratch.at(`burst/d${i}/f${j}`), '')
    }
    const live = (await held.context(env))!
    const snapshot = await takeSnapshot(live, readRefs(live))
    expect((await context.store.trees.files(snapshot.tree)).size).toBe(30_001)
  } finally {
    await held.stop()
    closeContext(context)
  }
})

test('row 27: what ckpt writes itself makes no work for the watcher', async () => {
  const scratch = new Scratch().init()
  const env = { ...realEnv(), vars: scratch.vars, home: scratch.home, cwd: scratch.root }
  const context = await openContext(env, scratch.root, { create: true })
  const held = new Held(context)
  const seen: string[] = []
  held.onChange = (one) => seen.push(one)
  try {
    await held.start()
    const live = (await held.context(env))!
    for (let i = 0; i < 3; i++) await takeSnapshot(live, readRefs(live))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(seen).toEqual([])
  } finally {
    await held.stop()
    closeContext(context)
  }
})

test.each([
  ['is removed', 'echo two >>a; rm a'],
  ['gives way to another file', 'echo two >>a; echo x >../t; mv ../t a'],
  ['leaves the worktree', 'echo two >>a; mv a ../out'],
])('a file of two names that changes by one, which then %s, is changed by the other, too', (_, change) => {
  const scratch = new Scratch().init({ a: 'one\n' })
  fs.linkSync(scratch.at('a'), scratch.at('b'))
  startDaemon(scratch)
  scratch.turn('one', () => execFileSync('sh', ['-c', change], { cwd: scratch.root }))
  scratch.ckpt('undo')
  expect([scratch.read('a'), scratch.read('b')]).toEqual(['one\n', 'one\n'])
})

test.each([
  ['a name that comes and goes', '', 'ln a t; echo two >>t; sleep 0.3; rm t'],
  ['a name in a new directory', '', 'mkdir d; ln a d/l; echo two >>d/l'],
  ['a name in an ignored directory', 'ln a ignored/l', 'echo two >>ignored/l'],
  [
    'a name that was moved into one',
    'ln a l; "$CKPT" snapshot >/dev/null; mv l ignored/l; "$CKPT" snapshot >/dev/null',
    'echo two >>ignored/l',
  ],
  ['a name in a repository of its own', 'git init -q nest; ln a nest/l', 'echo two >>nest/l'],
])('a file that is written by %s is changed by its own, too', (_, before, change) => {
  const scratch = new Scratch().init({ a: 'one\n', '.gitignore': 'ignored/\n' })
  const ckpt = `${scratch.base}/ckpt`
  fs.writeFileSync(ckpt, `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`, { mode: 0o755 })
  const run = (script: string) =>
    execFileSync('sh', ['-c', script], { cwd: scratch.root, env: { ...scratch.vars, CKPT: ckpt } })
  fs.mkdirSync(scratch.at('ignored'))
  scratch.ckpt('snapshot')
  run(before)
  startDaemon(scratch)
  scratch.ckpt('snapshot')
  scratch.turn('one', () => run(change))
  scratch.ckpt('undo')
  expect(scratch.read('a')).toBe('one\n')
})

test('what no rule covered in a directory that is moved away is told to be gone', () => {
  const scratch = new Scratch().init({ '.gitignore': '*.log\nbuild/\n', 'd/e/b': 'b\n', 'd/a': 'a\n' })
  scratch.write({ 'd/e/x.log': 'x\n', 'd/e/build/y': 'y\n' })
  startDaemon(scratch)
  scratch.turn('one', () => undefined)
  scratch.turn('two', () => fs.renameSync(scratch.at('d/e'), `${scratch.base}/gone`))
  const { mode, checkpoint } = scratch.ckpt('snapshot')
  expect([mode, checkpoint.ignoredCount]).toEqual(['fast', 0])
  expect(scratch.ckpt('undo').warnings.join()).toMatch(
    /also changed what checkpoints do not cover.*: d\/e\/build\/, d\/e\/x\.log\./,
  )
})
