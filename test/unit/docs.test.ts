// What the docs say and what the program is, compared.
import fs from 'node:fs'
import path from 'node:path'
import { defaultLoadersSync } from 'cosmiconfig'
import { expect, test } from 'vitest'
import { capture, draw } from '../../scripts/picture.ts'
import { KEYS, pages, schemaKeys } from '../../scripts/reference.ts'
import { commands } from '../../src/cli/commands.ts'
import { DEFAULTS, mergeConfig } from '../../src/config/defaults.ts'
import { checkConfig } from '../../src/config/schema.ts'
import { VERSION } from '../../src/core/version.ts'

const root = path.resolve(import.meta.dirname, '../..')
const read = (name: string) => fs.readFileSync(path.join(root, name), 'utf8')
const hint = 'out of date: npm run docs'

test('generated pages are what the source says', async () => {
  for (const [name, text] of await pages()) expect(read(name), `${name} is ${hint}`).toBe(text)
})

test('the picture shows what the built program prints', async () => {
  expect(read('docs/terminal.svg'), `docs/terminal.svg is ${hint}`).toBe(draw(await capture()))
})

test('every configuration key has a default and a word in the docs, and none is too many', () => {
  const defaults = Object.entries(DEFAULTS).flatMap(([key, value]) =>
    typeof value === 'object' ? Object.keys(value).map((inner) => `${key}.${inner}`) : [key],
  )
  expect(schemaKeys().toSorted()).toEqual(defaults.toSorted())
  expect(schemaKeys().toSorted()).toEqual(Object.keys(KEYS).toSorted())
})

test('.checkpointrc.example is valid, and says exactly the defaults', () => {
  const value = defaultLoadersSync['.yaml']('.checkpointrc.example', read('.checkpointrc.example'))
  const part = checkConfig(value, '.checkpointrc.example')
  expect(mergeConfig(DEFAULTS, part)).toEqual(DEFAULTS)
  const given = schemaKeys().filter((key) => key.split('.').reduce<any>((at, name) => at?.[name], value) === undefined)
  expect(given).toEqual([])
})

test('the version is that of package.json', () => {
  expect(VERSION).toBe(JSON.parse(read('package.json')).version)
})

const pagesByHand = [
  'README.md',
  'CONTRIBUTING.md',
  'docs/architecture.md',
  'docs/promises.md',
  'docs/known-limitations.md',
]

test('links between the docs lead somewhere', () => {
  const broken: string[] = []
  const generated = fs.readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'))
  for (const page of new Set([...pagesByHand, ...generated.map((name) => `docs/${name}`)])) {
    for (const [, target] of read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue
      if (!fs.existsSync(path.resolve(root, path.dirname(page), target!))) broken.push(`${page} → ${target}`)
    }
  }
  expect(broken).toEqual([])
})

test('tests, source files and npm scripts that the docs name are there', () => {
  const scripts = JSON.parse(read('package.json')).scripts as Record<string, string>
  const missing: string[] = []
  for (const page of pagesByHand) {
    for (const [, name] of read(page).matchAll(/`((?:test|src|scripts)\/[\w./-]+\.ts)`/g))
      if (!fs.existsSync(path.join(root, name!))) missing.push(`${page}: ${name}`)
    for (const [, script] of read(page).matchAll(/npm run (?:-s )?([\w:]+)/g))
      if (!(script! in scripts)) missing.push(`${page}: npm run ${script}`)
  }
  expect(missing).toEqual([])
})

test('promises.md has every promise and every row, in order', () => {
  const numbers = (part: string) => [...part.matchAll(/^\| (\d+) \|/gm)].map((match) => Number(match[1]))
  const [promises, rows] = read('docs/promises.md').split('\n## What others lost')
  const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
  expect(numbers(promises!)).toEqual(upTo(15))
  expect(numbers(rows!)).toEqual(upTo(32))
})

/** What the pages say of commands that are meant to come: it has to go when they are there. */
const DENIED: [string, RegExp][] = [
  ['daemon', /no daemon|no watcher|daemon or watcher/i],
  ['agent', /Adapters that install/],
  ['commit', /nothing commits anyway/],
]

test('the docs do not deny what is there', () => {
  const there = new Set(commands.map(({ usage }) => usage.split(' ')[0]))
  const wrong: string[] = []
  for (const page of pagesByHand) {
    for (const [command, denial] of DENIED) {
      const found = there.has(command) ? denial.exec(read(page)) : null
      if (found) wrong.push(`${page}: ${found[0]}`)
    }
  }
  expect(wrong).toEqual([])
})
