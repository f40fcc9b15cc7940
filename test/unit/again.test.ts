// "The same once more" as a line that can be run.
import { expect, test } from 'vitest'
import { again, ITS_HELP } from '../../src/cli/again.ts'

test.each([
  [['undo'], 'ckpt undo --merge   (why)'],
  [['undo', '--to', '3', '--json'], 'ckpt undo --to 3 --merge   (why)'],
  [['undo', '--force', '--', 'a b.txt', "it's"], "ckpt undo --merge -- 'a b.txt' 'it'\\''s'   (why)"],
  [['undo', '--no-daemon', '--to', '3'], 'ckpt undo --to 3 --merge   (why)'], // the daemon's own word
  [['undo', '--merge', '--step'], 'ckpt undo --step --merge   (why)'],
  [['undo', '--skip-conflicts=true', '--quiet=true', '--step'], 'ckpt undo --step --merge   (why)'],
  [['undo', '--dry-run', '--force'], 'ckpt undo --dry-run --merge   (why)'],
  [['undo', '--cwd', 'a b'], "ckpt undo --cwd 'a b' --merge   (why)"],
  [['rewind'], 'ckpt undo … --merge   (why)'],
  [[], 'ckpt undo … --merge   (why)'],
])('after %j', (argv, line) => {
  expect(again('ckpt undo … --merge   (why)', argv)).toBe(line)
})

test.each([
  ['--interrupt', ['undo', '--dry-run'], 'ckpt undo --dry-run --interrupt'],
  ['--interrupt', ['undo', '--merge', '--to', '1', '--json'], 'ckpt undo --merge --to 1 --interrupt'],
  ['--interrupt', ['undo', '--skip-conflicts', '--', 'a'], 'ckpt undo --skip-conflicts --interrupt -- a'],
  ['--dry-run', ['undo', '--to', '1', '--merge'], 'ckpt undo --to 1 --merge --dry-run'],
  ['--dry-run', ['undo', '--dry-run=false', '--force'], 'ckpt undo --force --dry-run'],
])('with %s after %j it does no more than was asked for, and in the same way', (option, argv, line) => {
  expect(again(`ckpt undo … ${option}`, argv)).toBe(line)
})

test('the same once more without another option', () => {
  expect(again('ckpt restore …   (again, once it is away)', ['restore', '3', '--json'])).toBe(
    'ckpt restore 3   (again, once it is away)',
  )
})

test('other hints stay as they are', () => {
  expect(again(ITS_HELP, ['list', '-n', 'x'])).toBe('ckpt list --help')
  expect(again(ITS_HELP, ['--json', 'list'])).toBe('ckpt --help')
  expect(again('ckpt list --hidden', ['list'])).toBe('ckpt list --hidden')
})

test.each([
  ['ckpt redo --all', 'ckpt redo --all --session s1'],
  ['ckpt accept', 'ckpt accept --session s1'],
  ['ckpt restore 3 --exact   (why)', 'ckpt restore 3 --exact --session s1   (why)'],
  ['ckpt restore 3 -- a.txt', 'ckpt restore 3 --session s1 -- a.txt'],
  ['ckpt redo --session s2', 'ckpt redo --session s2'],
  ['ckpt list --sessions', 'ckpt list --sessions'],
  ['ckpt doctor', 'ckpt doctor'],
  ['ckpt show --help', 'ckpt show --help'],
])('where a session was named, %j means it too', (hint, line) => {
  expect(again(hint, ['undo', '--session', 's1', '--only', '2'])).toBe(line)
  expect(again(hint, ['undo', '--session=s1'])).toBe(line)
  expect(again(hint, ['undo', '--', '--session', 's1'])).toBe(hint)
})

test.each([
  ['ckpt accept', "ckpt accept --cwd '../other tree'"],
  ['ckpt restore 3 -- a.txt', "ckpt restore 3 --cwd '../other tree' -- a.txt"],
  ['ckpt status   (why)', "ckpt status --cwd '../other tree'   (why)"],
  ['ckpt agent install NAME', "ckpt agent install NAME --cwd '../other tree'"],
  ['ckpt undo --help', 'ckpt undo --help'],
  ['git init', 'git init'],
])('where another place was named, %j means it too', (hint, line) => {
  expect(again(hint, ['undo', '--cwd', '../other tree'])).toBe(line)
  expect(again(hint, ['undo', '--cwd=../other tree', '--json'])).toBe(line)
  expect(again(hint, ['undo', '--', '--cwd', '../other tree'])).toBe(hint)
})
