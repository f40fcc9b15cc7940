// "The same once more" as a line that can be run.
import { expect, test } from 'vitest'
import { again, ITS_HELP } from '../../src/cli/again.ts'

test.each([
  [['undo'], 'ckpt undo --merge   (why)'],
  [['undo', '--to', '3', '--json'], 'ckpt undo --to 3 --merge   (why)'],
  [['undo', '--force', '--', 'a b.txt', "it's"], "ckpt undo --merge -- 'a b.txt' 'it'\\''s'   (why)"],
  [['undo', '--no-daemon', '--to', '3'], 'ckpt undo --to 3 --merge   (why)'], // the daemon's own word
  [['rewind'], 'ckpt undo … --merge   (why)'],
  [[], 'ckpt undo … --merge   (why)'],
])('after %j', (argv, line) => {
  expect(again('ckpt undo … --merge   (why)', argv)).toBe(line)
})

test('other hints stay as they are', () => {
  expect(again(ITS_HELP, ['list', '-n', 'x'])).toBe('ckpt list --help')
  expect(again(ITS_HELP, ['--json', 'list'])).toBe('ckpt --help')
  expect(again('ckpt list --hidden', ['list'])).toBe('ckpt list --hidden')
})
