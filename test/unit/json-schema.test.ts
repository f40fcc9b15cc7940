// The JSON Schema that editors use, the program's own check, the example and the docs say the same.
import fs from 'node:fs'
import path from 'node:path'
import { Ajv } from 'ajv'
import { defaultLoadersSync } from 'cosmiconfig'
import { expect, test } from 'vitest'
import { schemaKeys } from '../../scripts/reference.ts'
import { checkConfig } from '../../src/config/schema.ts'

const root = path.resolve(import.meta.dirname, '../..')
const read = (name: string) => fs.readFileSync(path.join(root, name), 'utf8')
const published = JSON.parse(read('schema/checkpointrc.schema.json'))
const fits = new Ajv({ strict: true, allErrors: true }).compile(published)

function isTaken(value: unknown): boolean {
  try {
    checkConfig(value, 'file')
    return true
  } catch {
    return false
  }
}

test('the package has it, under the name that the docs give', () => {
  const { files, exports } = JSON.parse(read('package.json'))
  expect(files).toContain('schema')
  expect(exports['./schema/checkpointrc.schema.json']).toBe('./schema/checkpointrc.schema.json')
})

test('.checkpointrc.example fits it, and its defaults are those of the example', () => {
  const example = defaultLoadersSync['.yaml']('.checkpointrc.example', read('.checkpointrc.example'))
  expect(fits(example), JSON.stringify(fits.errors)).toBe(true)
  const told = (key: string) =>
    key.split('.').reduce<any>((at, name, i) => (i === 0 ? at : at.properties)?.[name], published.properties)
  const given = (key: string) => key.split('.').reduce<any>((at, name) => at?.[name], example)
  for (const key of schemaKeys()) expect({ key, default: told(key)?.default }).toEqual({ key, default: given(key) })
})

test('docs/config.md has each of its keys', () => {
  const keys = Object.entries<any>(published.properties).flatMap(([name, field]) =>
    field.properties ? Object.keys(field.properties).map((inner) => `${name}.${inner}`) : [name],
  )
  const page = read('docs/config.md')
  for (const key of keys) expect(page).toContain(`\`${key}\``)
})

test.each([
  [{}, true],
  [{ $schema: './node_modules/ckpt/schema/checkpointrc.schema.json' }, true],
  [{ $schema: 1 }, false],
  [[], false],
  ['text', false],
  [{ enableFileCheckpointing: false }, true],
  [{ enableFileCheckpointing: 'no' }, false],
  [{ checkpointKeepCount: 10 }, true],
  [{ checkpointKeepCount: -1 }, false],
  [{ checkpointKeepCount: 1.5 }, false],
  [{ checkpointCount: 1 }, false],
  [{ snapshot: { include: ['.env'], exclude: ['*.log'] } }, true],
  [{ snapshot: { include: '.env' } }, false],
  [{ snapshot: { include: [''] } }, false],
  [{ snapshot: { include: ['a\nb'] } }, true],
  [{ snapshot: { include: ['a\0b'] } }, false],
  [{ store: { location: '/a\0b' } }, false],
  [{ snapshot: { maxFileSize: 0, maxBytes: '1.5 GiB' } }, true],
  [{ snapshot: { maxFileSize: '10 apples' } }, false],
  [{ snapshot: { maxFileSize: '10i' } }, false],
  [{ snapshot: { maxFileSize: -1 } }, false],
  [{ snapshot: { deadline: '500ms' } }, true],
  [{ snapshot: { deadline: '20S' } }, false],
  [{ snapshot: { deadline: 0 } }, false],
  [{ snapshot: { deadlines: '20s' } }, false],
  [{ store: { location: '/srv/stores', maxBytes: '500kb' } }, true],
  [{ store: { location: '' } }, false],
  [{ prune: { olderThan: 'never', grace: '7d' } }, true],
  [{ prune: { olderThan: '30d' } }, true],
  [{ prune: { olderThan: 'always' } }, false],
  [{ prune: { grace: 'never' } }, false],
  [{ prune: { olderThan: '1d', grace: 0 } }, true],
  [{ prune: { grace: -1 } }, false],
  [{ watch: { idleStop: 1000 } }, true],
])('the program and the schema agree on %j', (value, taken) => {
  expect({ program: isTaken(value), schema: fits(value) }).toEqual({ program: taken, schema: taken })
})

test('and on how long a pattern may be, and how many there may be', () => {
  const both = (exclude: string[]) => [isTaken({ snapshot: { exclude } }), fits({ snapshot: { exclude } })]
  expect([both(['x'.repeat(4096)]), both(['x'.repeat(4097)])]).toEqual([Array(2).fill(true), Array(2).fill(false)])
  expect([both(Array(1000).fill('x')), both(Array(1001).fill('x'))]).toEqual([
    Array(2).fill(true),
    Array(2).fill(false),
  ])
})

test('`$schema` says nothing to the program, and is not among the keys it names', () => {
  expect(checkConfig({ $schema: 'x', checkpointKeepCount: 3 }, 'file')).toEqual({ checkpointKeepCount: 3 })
  expect(() => checkConfig({ keep: 3 }, 'file')).toThrow(/allowed are enableFileCheckpointing, /)
})
