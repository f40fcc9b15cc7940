// What a diff says of files that have no lines in it.
import { expect, test } from 'vitest'
import { actionsBetween, changedIn, countsIn } from '../../src/wrappers/patch.ts'

const added = (name: string, object: string) =>
  `diff --git a/${name} b/${name}\nnew file mode 100644\nindex 0000000..${object}\n`
const deleted = (name: string, object: string) =>
  `diff --git a/${name} b/${name}\ndeleted file mode 100644\nindex ${object}..0000000\n`
const binary = (name: string) => `Binary files a/${name} and b/${name} differ\n`
const text =
  'diff --git a/t b/t\nindex 1111111..2222222 100644\n--- a/t\n+++ b/t\n@@ -1 +1 @@\n-diff --git a/x b/x\n+b\n'
const mode = 'diff --git a/run b/run\nold mode 100644\nnew mode 100755\n'
const told = (before: string, after: string) =>
  actionsBetween(before, after).map(({ action, path }) => `${action} ${path}`)

test('empty and binary files are made and deleted, without a hunk that says so', () => {
  const one = added('new', 'e69de29') + deleted('gone', 'e69de29') + text + mode
  const two = `${added('new.bin', '1234567')}${binary('new.bin')}${deleted('gone.bin', '1234567')}${binary('gone.bin')}`
  expect(changedIn(one + two).map(({ path, status, isBinary }) => [path, status, isBinary])).toEqual([
    ['new', 'added', false],
    ['gone', 'deleted', false],
    ['t', 'modified', false],
    ['run', 'modified', false],
    ['new.bin', 'added', true],
    ['gone.bin', 'deleted', true],
  ])
  expect(countsIn(one + two)).toEqual({ files: 6, insertions: 1, deletions: 1 })
  expect(told('', one + two)).toEqual([
    'delete gone',
    'delete gone.bin',
    'write new',
    'write new.bin',
    'write run',
    'write t',
  ])
  expect(told(one + two, one)).toEqual(['write gone.bin', 'delete new.bin'])
})

test('of two that have no lines it is told whether they are the same', () => {
  const at = (object: string) => `diff --git a/b b/b\nindex 1111111..${object} 100644\n${binary('b')}`
  expect(told(at('2222222'), at('2222222'))).toEqual([])
  expect(told(at('2222222'), at('3333333'))).toEqual(['write b'])
  expect(told(added('e', 'e69de29'), deleted('e', 'e69de29'))).toEqual(['delete e'])
})
