// Spellings of a name, and plans on a file system that takes several for one: pure.
import { expect, test } from 'vitest'
import { findClashes, type Surroundings } from '../../src/core/clashes.ts'
import { composedName, foldedPath, pathFromText } from '../../src/core/paths.ts'
import type { FileAction } from '../../src/core/plan.ts'
import { ABSENT, type PathState } from '../../src/core/state.ts'

const nfc = pathFromText('caf\u00e9')
const nfd = pathFromText('cafe\u0301')
const broken = 'a\xff' // no UTF-8

test.each([
  ['README.md', 'readme.md', true],
  ['Dir/a', 'dir/A', true],
  [nfc, nfd, true],
  [pathFromText('CAF\u00c9'), nfd, true],
  ['a', 'b', false],
  [broken, 'A\xff', false],
])('%j and %j are the same to a file system that folds: %j', (one, two, same) => {
  expect(foldedPath(one) === foldedPath(two)).toBe(same)
})

test('a name is composed as git does on macOS; what is no text stays as it is', () => {
  expect([nfc, nfd, broken, 'README'].map(composedName)).toEqual([nfc, nfc, broken, 'README'])
})

const file: PathState = { kind: 'present', type: 'file', oid: 'f'.repeat(40) as never, mode: 0o644 }
const comes = (path: string): FileAction => ({ path, action: 'write', pre: ABSENT, post: file })
const goes = (path: string): FileAction => ({ path, action: 'delete', pre: file, post: ABSENT })
const around = (others: Record<string, string[]>, folds = true): Surroundings => ({
  filesBelow: () => [],
  uncoveredBelow: () => false,
  isFileOnDisk: () => false,
  isCovered: () => false,
  isForeign: () => false,
  isMadeForRoot: () => false,
  closedBy: () => null,
  isMountPoint: () => false,
  folded: folds ? foldedPath : null,
  spelledOtherwise: (path) => others[path] ?? [],
})
const outcome = (actions: FileAction[], surroundings: Surroundings) =>
  Object.fromEntries(findClashes(actions, surroundings, 'refuse').map(({ path, action }) => [path, action]))

test('a new spelling comes where the old one goes', () => {
  const plan = [goes('file'), comes('File'), goes('dir/a'), comes('Dir/a')]
  expect(outcome(plan, around({ File: ['file'], Dir: ['dir/a'] }))).toEqual({
    file: 'delete',
    File: 'write',
    'dir/a': 'delete',
    'Dir/a': 'write',
  })
})

test('where the old one stays nothing comes, and nothing goes for it', () => {
  const plan = [goes('dir/a'), comes('Dir/a'), comes('other')]
  expect(outcome(plan, around({ Dir: ['dir/a', 'dir/mine'] }))).toEqual({
    'dir/a': 'conflict',
    'Dir/a': 'conflict',
    other: 'write',
  })
})

test('what cannot go for another reason says that one', () => {
  const closed = {
    ...around({ File: ['file'] }),
    closedBy: (path: string) => (path === 'file' ? ('permission' as const) : null),
  }
  const [gone] = findClashes([goes('file'), comes('File')], closed, 'refuse')
  expect(gone).toMatchObject({
    path: 'file',
    action: 'conflict',
    reason: 'it cannot be changed here: permission denied',
  })
})

test('two paths of one plan that would be one: the second is a conflict, where the file system folds', () => {
  const plan = [comes('README'), comes('readme'), comes('Dir/a'), comes('dir/b')]
  const folded = { README: 'write', readme: 'conflict', 'Dir/a': 'write', 'dir/b': 'conflict' }
  expect(outcome(plan, around({}))).toEqual(folded)
  expect(outcome(plan, around({}, false))).toEqual({
    README: 'write',
    readme: 'write',
    'Dir/a': 'write',
    'dir/b': 'write',
  })
})
