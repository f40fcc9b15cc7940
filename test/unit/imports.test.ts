// Imports point down: a file imports only from its own layer or from a lower one.
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

/** The rooms of `ops`, from the lowest up; over them are the operations of one file each. */
const OPS = [
  'worktree',
  'hook',
  'store',
  'record',
  'committed',
  'recovery',
  'history',
  'prune',
  'change',
  'commit',
  'transport',
  'verify',
  'doctor',
  '',
]
const source = path.resolve(import.meta.dirname, '../../src')

const layerOf = (file: string) => {
  const first = path.relative(source, file).split(path.sep)[0]!
  return first.endsWith('.ts') ? first.slice(0, -3) : first
}

const files = fs
  .readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => path.join(source, name))

const importsOf = (file: string) =>
  [...fs.readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map((match) =>
    path.resolve(path.dirname(file), match[1]!),
  )

/** core imports nothing outside itself; config speaks to git to read committed files; the rest points down. */
const allowed: Record<string, readonly string[]> = {
  'own-process': [],
  env: ['env', 'own-process'],
  programs: ['env'],
  'package-file': ['package-file', 'core', 'env'],
  core: ['core'],
  git: ['git', 'core', 'env'],
  config: ['config', 'git', 'core', 'env'],
  snapshot: ['snapshot', 'git', 'core', 'env'],
  ops: ['ops', 'snapshot', 'git', 'config', 'core', 'env', 'programs'],
  backends: ['backends', 'ops', 'git', 'core', 'env'],
  results: ['results', 'ops', 'git', 'core', 'env'],
  calls: ['calls', 'results', 'backends', 'ops', 'core', 'env'],
  library: ['library', 'calls', 'results', 'backends', 'daemon', 'ops', 'core', 'env', 'programs'],
  githooks: ['githooks', 'ops', 'git', 'config', 'core', 'env', 'package-file'],
  daemon: ['daemon', 'calls', 'results', 'backends', 'ops', 'snapshot', 'git', 'config', 'core', 'env', 'programs'],
  agents: ['agents', 'ops', 'git', 'config', 'core', 'env', 'package-file', 'programs'],
  cli: [
    'cli',
    'agents',
    'daemon',
    'githooks',
    'backends',
    'results',
    'calls',
    'library',
    'ops',
    'git',
    'config',
    'core',
    'env',
  ],
  wrappers: ['wrappers', 'library', 'agents', 'daemon', 'results', 'backends', 'ops', 'git', 'core', 'env'],
  'claude-agent-sdk': ['wrappers', 'backends'],
  opencode: ['wrappers', 'backends'],
  index: ['library', 'daemon', 'calls', 'results', 'backends', 'core'],
}

test('every import points down', () => {
  const wrong: string[] = []
  for (const file of files) {
    for (const target of importsOf(file)) {
      if (!(allowed[layerOf(file)] ?? []).includes(layerOf(target)))
        wrong.push(`${path.relative(source, file)} → ${path.relative(source, target)}`)
    }
  }
  expect(wrong).toEqual([])
  expect(files.length).toBeGreaterThan(30)
})

test('in ops too: a room imports only from itself and from lower ones', () => {
  const ops = path.join(source, 'ops')
  const floorOf = (file: string) => OPS.indexOf(path.dirname(path.relative(ops, file)).replace(/^\.$/, ''))
  const within = files.filter((file) => layerOf(file) === 'ops')
  const wrong = within.flatMap((file) =>
    importsOf(file)
      .filter((target) => layerOf(target) === 'ops' && floorOf(target) > floorOf(file))
      .map((target) => `${path.relative(ops, file)} → ${path.relative(ops, target)}`),
  )
  expect(wrong).toEqual([])
  expect(within.filter((file) => floorOf(file) < 0)).toEqual([])
})

test('no file needs itself: imports make no circle, types included, but for what is imported when it runs', () => {
  const direct = (file: string) =>
    [...fs.readFileSync(file, 'utf8').matchAll(/^(?:import|export) [^;]*?from '(\.[^']+)'/gm)].map((match) =>
      path.resolve(path.dirname(file), match[1]!),
    )
  const circles: string[] = []
  const done = new Set<string>()
  const enter = (file: string, above: readonly string[]) => {
    if (above.includes(file))
      circles.push([...above.slice(above.indexOf(file)), file].map((name) => path.relative(source, name)).join(' → '))
    else if (!done.has(file)) for (const target of direct(file)) enter(target, [...above, file])
    done.add(file)
  }
  for (const file of files) enter(file, [])
  expect(circles).toEqual([])
})

test('core reaches for nothing: no file system, no process, no clock', () => {
  const reaching = files
    .filter((file) => layerOf(file) === 'core')
    .filter((file) =>
      /from 'node:(fs|child_process|process|os)|process\.|Date\.now|new Date\(\)/.test(fs.readFileSync(file, 'utf8')),
    )
  expect(reaching.map((file) => path.relative(source, file))).toEqual([])
})

test('only git/ starts git, and only env.ts reaches the outside world', () => {
  const reaching = files
    .filter((file) => layerOf(file) !== 'env')
    .filter((file) => /from 'node:child_process'/.test(fs.readFileSync(file, 'utf8').replace(/import type .*\n/g, '')))
  expect(reaching.map((file) => path.relative(source, file))).toEqual([])
})

test('zod is bundled in parts: as an object it brings all of its languages, a third of the program', () => {
  const whole = files.filter((file) =>
    /import (type )?\{ z \} from 'zod|\bz\.(core|locales)\b/.test(fs.readFileSync(file, 'utf8')),
  )
  expect(whole.map((file) => path.relative(source, file))).toEqual([])
})

/** Files that a file loads with itself: not types, nor what is imported when it is needed. */
function loadedWith(start: string): string[] {
  const found = new Set([start])
  for (const file of found)
    for (const [, name] of fs
      .readFileSync(file, 'utf8')
      .matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+)'/gm))
      found.add(path.resolve(path.dirname(file), name!))
  return [...found]
}

test('what most commands need loads no library of schemas: that takes longer than most of them run', () => {
  const commands = [
    'program.ts',
    ...['list', 'status', 'mark', 'snapshot', 'undo', 'redo', 'diff', 'show'].map((name) => `commands/${name}.ts`),
  ]
  for (const command of commands)
    for (const file of loadedWith(path.join(source, 'cli', command)))
      expect([command, file, /^import (?!type ).*from 'zod/m.test(fs.readFileSync(file, 'utf8'))]).toEqual([
        command,
        file,
        false,
      ])
})
