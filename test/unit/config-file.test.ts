import { expect, test } from 'vitest'
import { holdsConfig } from '../../src/core/config-file.ts'

test.each<[string, boolean]>([
  ['{"checkpoint":{}}', true],
  ['\uFEFF{ "a": ["{", "\\"}"], "b": {"c": 1},\n  "checkpoint" :\n {} }', true],
  ['{"scripts":{"checkpoint":"x"}}', false],
  ['{"name":"checkpoint","files":["checkpoint"]}', false],
  ['{"name":"x"}', false],
  ['["checkpoint"]', false],
  ['"checkpoint"', false],
  ['{"scripts":{"checkpoint":"x"}}\n<<<<<<< HEAD', false],
  ['{"a":1,\n<<<<<<< HEAD\n"b":2,\n=======\n"b":3,\n>>>>>>> x\n"checkpoint":{"enableFileCheckpointing":false}', true],
])('a package.json %j has our key: %s', (text, holds) => {
  expect(holdsConfig('package.json', text)).toBe(holds)
  expect(holdsConfig('.checkpointrc', text)).toBe(true)
})
