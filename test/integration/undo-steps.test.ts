// Steps of one turn that go over the same file, and changes that no step claims.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { undo } from '../../src/ops/change/undo.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { killedAt } from '../support/amid.ts'
import { answer, envOf } from '../support/in-process.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const S = ['--session', 's']

test('two steps changed the same file: undo --step takes the second alone, redo brings it back', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('mark', 'step', ...S)
  scratch.write({ 'a.txt': 'three\n' })
  scratch.ckpt('mark', 'step', ...S)
  scratch.ckpt('mark', 'stop', ...S)
  scratch.ckpt('undo', '--step')
  expect(scratch.read('a.txt')).toBe('two\n')
  scratch.ckpt('undo', '--step')
  expect(scratch.read('a.txt')).toBe('one\n')
  scratch.ckpt('redo', '--all')
  expect(scratch.read('a.txt')).toBe('three\n')
})

test('undo --step goes over turns that nothing is left of to the last step that changed something', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  for (const text of ['two\n', 'three\n']) {
    scratch.ckpt('mark', 'prompt', ...S)
    scratch.write({ 'a.txt': text })
    scratch.ckpt('mark', 'step', ...S)
    scratch.ckpt('mark', 'stop', ...S)
    scratch.turn('a question', () => {})
  }
  expect(scratch.ckpt('undo', '--step').turns).toEqual([3, 4])
  expect(scratch.read('a.txt')).toBe('two\n')
  expect(scratch.ckpt('undo', '--step').boundary).toMatchObject({ turn: 1 })
  expect(scratch.read('a.txt')).toBe('one\n')
  expect(scratch.tryCkpt('undo', '--step')).toMatchObject({ code: 3, document: { error: { code: 'NOTHING_TO_UNDO' } } })
  scratch.ckpt('redo', '--all')
  expect(scratch.read('a.txt')).toBe('three\n')
  scratch.turn('without steps', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.turn('another question', () => {})
  expect(scratch.tryCkpt('undo', '--step').document.error.message).toContain(
    '`ckpt undo --to 5 --session s` takes the whole turn',
  )
})

test('what a turn only left out by a sparse checkout holds up no undo, of turns one by one as of all at once', () => {
  const scratch = new Scratch().init({ 'q/q': 'q\n', f: 'one\n' })
  scratch.turn('narrower', () => {
    scratch.git('sparse-checkout', 'set', 'other')
    scratch.write({ f: 'two\n' })
  })
  scratch.turn('wider', () => {
    scratch.git('sparse-checkout', 'disable')
    scratch.write({ 'q/q': 'q2\n' })
  })
  for (const turns of [['1', '1'], ['2']]) {
    for (const count of turns) scratch.ckpt('undo', '--turns', count)
    expect([scratch.read('f'), scratch.read('q/q')]).toEqual(['one\n', 'q2\n'])
    scratch.ckpt('redo', '--all')
    expect([scratch.read('f'), scratch.read('q/q')]).toEqual(['two\n', 'q2\n'])
  }
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a change before any step window, then a step on the same file: undo --unclaimed goes all the way back', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('mark', 'step', '--start', ...S)
  scratch.write({ 'a.txt': 'three\n' })
  scratch.ckpt('mark', 'step', ...S)
  scratch.ckpt('mark', 'stop', ...S)
  scratch.ckpt('undo', '--unclaimed')
  expect(scratch.read('a.txt')).toBe('one\n')
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('three\n')
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('two\n')
})

test('the words on what is unclaimed take it back where they are followed: before an undo, and after one of each kind', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  for (const name of ['first', 'second', 'third']) {
    scratch.ckpt('mark', 'prompt', ...S)
    scratch.write({ [`${name}.txt`]: 'by hand\n' })
    scratch.ckpt('mark', 'step', '--start', ...S)
    scratch.write({ 'a.txt': `${name}\n` })
    scratch.ckpt('mark', 'step', ...S)
    scratch.ckpt('mark', 'stop', ...S)
  }
  const there = () => ['first.txt', 'second.txt', 'third.txt'].filter((name) => scratch.exists(name))
  const told = (...args: string[]) =>
    scratch.ckpt('undo', ...args).warnings.map((one: string) => /\((.*unclaimed.*)\)/.exec(one)![1])
  const follow = (lines: string) => {
    for (const line of lines.replace('to take them too: ', '').split(', then '))
      scratch.ckpt(...line.replace('-- PATH', '-- first.txt').split(' ').slice(1))
  }
  expect(told('--dry-run')).toEqual(['--unclaimed takes them too'])
  const [all] = new Set(told('--turns', '2'))
  expect(all).toBe('to take them too: ckpt redo --turns 2 --session s, then ckpt undo --to 2 --unclaimed --session s')
  follow(all as string)
  expect([scratch.read('a.txt'), there()]).toEqual(['first\n', ['first.txt']])
  scratch.ckpt('redo', '--all')
  // What was undone before stays so.
  scratch.ckpt('undo', '--unclaimed')
  const [one] = told()
  expect(one).toBe('to take them too: ckpt redo --turns 1 --session s, then ckpt undo --to 2 --unclaimed --session s')
  follow(one)
  expect([scratch.read('a.txt'), there()]).toEqual(['first\n', ['first.txt']])
  scratch.ckpt('redo', '--all')
  const [only] = told('--only', '3')
  expect(only).toBe('to take them too: ckpt undo --only 3 --unclaimed --session s')
  follow(only)
  expect([scratch.read('a.txt'), there()]).toEqual(['second\n', ['first.txt', 'second.txt']])
  scratch.write({ 'a.txt': 'first\n' })
  const paths = told('--only', '1', '--', 'first.txt', 'a.txt')
  expect(paths).toEqual(['to take them too: ckpt undo --only 1 --unclaimed --session s -- PATH'])
  follow(paths[0])
  expect(there()).toEqual(['second.txt'])
})

test('a part of a turn is taken back with what came outside its steps since, where it is asked for, and else that is named', () => {
  const scratch = new Scratch().init()
  scratch.write({ '.gitignore': '*.log\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  for (const name of ['1', '2']) {
    scratch.write({ [`before-${name}`]: '', [`${name}.log`]: name })
    scratch.ckpt('mark', 'step', '--start', ...S)
    scratch.write({ [`step-${name}`]: '' })
    scratch.ckpt('mark', 'step', ...S)
  }
  scratch.write({ after: '' })
  scratch.ckpt('mark', 'stop', ...S)
  const whole = scratch.manifest()
  const undone = (...args: string[]) => {
    const { files, warnings } = scratch.ckpt('undo', ...args)
    return [files.map(({ path }: { path: string }) => path).sort(), warnings]
  }
  const left = (paths: string, how: string) =>
    `Left as they are, changed during turn 1 outside its steps: ${paths} (${how}).`
  const again = (id: string) =>
    `to take them too: ckpt redo --turns 1 --session s, then ckpt undo --to ${id} --unclaimed --session s`
  const uncovered = (names: string) =>
    `Turn 1 also changed what checkpoints do not cover, and that cannot be undone: ${names}.`
  expect(undone('--step', '--dry-run')).toEqual([
    ['step-2'],
    [left('after', '--unclaimed takes them too'), uncovered('2.log')],
  ])
  expect(undone('--step')).toEqual([['step-2'], [left('after', again('1.2')), uncovered('2.log')]])
  scratch.ckpt('redo', '--turns', '1')
  expect(undone('--to', '1.2', '--unclaimed')).toEqual([['after', 'step-2'], [uncovered('2.log')]])
  // What is back already is no conflict.
  expect(undone('--unclaimed')[0]).toEqual(['before-1', 'before-2', 'step-1'])
  scratch.ckpt('redo', '--all')
  expect(scratch.manifest()).toEqual(whole)
  expect(undone('--to', '1.1')).toEqual([
    ['step-1', 'step-2'],
    [left('before-2, after', again('1.1')), uncovered('1.log, 2.log')],
  ])
  scratch.ckpt('redo')
  expect(scratch.tryCkpt('undo', '--to', '1.2', '--', 'step-1').document.error).toMatchObject({
    code: 'NOTHING_TO_UNDO',
    message: 'Turn 1 from 1.2 on changed none of these paths. Nothing was changed.',
  })
  expect(undone('--to', '1.2', '--', 'after')).toEqual([
    [],
    [left('after', 'to take them too: ckpt undo --to 1.2 --unclaimed --session s -- PATH')],
  ])
  expect(undone('--step', '--unclaimed')[0]).toEqual(['after', 'step-2'])
  scratch.ckpt('accept')
  expect(scratch.ckpt('show', '1').turn.unclaimed).toEqual(['before-1'])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('what came outside the steps and went with a part of a turn is undone: no later undo plans it again, or names it', () => {
  const scratch = new Scratch().init({ f: 'a\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  for (const content of ['b\n', 'c\n']) {
    scratch.ckpt('mark', 'step', '--start', ...S)
    scratch.write({ f: content, [`step-${content[0]}`]: '' })
    scratch.ckpt('mark', 'step', ...S)
  }
  scratch.write({ f: 'd\n', u: '' })
  scratch.ckpt('mark', 'stop', ...S)
  const paths = (...args: string[]) => {
    const { files, warnings } = scratch.ckpt('undo', ...args)
    expect(warnings).toEqual([])
    return files.map(({ path }: { path: string }) => path)
  }
  expect([paths('--step', '--unclaimed'), scratch.read('f')]).toEqual([['f', 'step-c', 'u'], 'b\n'])
  for (const args of [['--dry-run'], ['--dry-run', '--unclaimed'], ['--step', '--unclaimed']])
    expect([args, paths(...args)]).toEqual([args, ['f', 'step-b']])
  expect(scratch.read('f')).toBe('a\n')
  scratch.ckpt('redo', '--all')
  expect([scratch.read('f'), scratch.exists('u'), scratch.exists('step-b')]).toEqual(['d\n', true, true])
})

test('of calls that overlapped, what the later one changed and is not covered is named, where it alone is undone', () => {
  const scratch = new Scratch().init({ '.gitignore': '*.log\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  for (const id of ['A', 'B']) scratch.ckpt('mark', 'step', '--start', '--call-id', id, ...S)
  scratch.write({ 'x.log': 'x\n', b: 'b\n' })
  for (const id of ['B', 'A']) scratch.ckpt('mark', 'step', '--call-id', id, ...S)
  scratch.ckpt('mark', 'stop', ...S)
  expect(scratch.ckpt('undo', '--step').warnings).toEqual([expect.stringContaining('cannot be undone: x.log')])
})

test('a dry run of undo --interrupt shows the plan and leaves the turn running; its token does exactly that', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'a.txt': '2\n', 'n.txt': 'n\n' })
  const refs = () => scratch.git('--git-dir=.git/ckpt/store.git', 'for-each-ref')
  const before = refs()
  const plan = () => scratch.ckpt('undo', '--interrupt', '--dry-run')
  const { files, warnings, token } = plan()
  expect(files.map(({ path, action }: { path: string; action: string }) => `${action} ${path}`)).toEqual([
    'write a.txt',
    'delete n.txt',
  ])
  expect(warnings).toContain('Turn 1 is still running: it would be closed as interrupted; its agent may go on writing.')
  expect([refs(), scratch.read('a.txt')]).toEqual([before, '2\n'])
  scratch.write({ 'n.txt': 'more\n' })
  expect(scratch.tryCkpt('apply', token).document.error.message).toContain('Something changed since that dry run')
  expect([refs(), scratch.read('a.txt')]).toEqual([before, '2\n'])
})

test('the token of such a dry run closes the turn and undoes it', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'a.txt': '2\n' })
  const { token } = scratch.ckpt('undo', '--interrupt', '--dry-run')
  const { warnings } = scratch.ckpt('apply', token)
  expect(warnings).toContain('Turn 1 was closed as interrupted; its agent may go on writing.')
  expect(scratch.read('a.txt')).toBe('1\n')
  expect(scratch.ckpt('list', '--hidden').turns[0].status).toBe('interrupted')
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('2\n')
})

test('undo --interrupt that is killed once it is written down is finished by the next command: closed, and undone', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'a.txt': '2\n' })
  killedAt(scratch, ['renameSync', 'journal.json'], 'undo', '--interrupt')
  expect(scratch.ckpt('status').boundary).toMatchObject({ turn: 1 })
  expect(scratch.read('a.txt')).toBe('1\n')
  expect(scratch.ckpt('list', '--hidden').turns[0].status).toBe('interrupted')
  scratch.ckpt('redo')
  expect(scratch.read('a.txt')).toBe('2\n')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('undo --interrupt that is refused leaves the turn running', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'a.txt': '2\n' })
  scratch.ckpt('mark', 'step', ...S)
  scratch.write({ 'a.txt': '3\n' })
  const { document } = scratch.tryCkpt('undo', '--interrupt')
  expect([document.error.code, document.warnings]).toEqual(['CONFLICT', undefined])
  expect(scratch.ckpt('list').turns[0].status).toBe('running')
})

test('undo --interrupt of one turn alone, or of some paths, closes the turn that runs', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'b.txt': '2\n' })
  scratch.ckpt('undo', '--interrupt', '--only', '1')
  const turns = () => scratch.ckpt('list').turns.map(({ n, status }: { n: number; status: string }) => `${n} ${status}`)
  expect(turns()).toEqual(['3 completed', '2 interrupted', '1 completed'])
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['1\n', '2\n'])
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.ckpt('undo', '--interrupt', '--only', '1') // taken back already: nothing is left of it
  expect(turns()).toEqual(['4 interrupted', '3 completed', '2 interrupted', '1 completed'])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a file that is saved by a rename while undo is about to replace it stays, and undo is taken back', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'two\n' }))
  const env = envOf(scratch)
  const linkSync: typeof fs.linkSync = (from, to) => {
    fs.linkSync(from, to)
    if (!String(from).endsWith('/b.txt')) return
    scratch.write({ '../saved': 'mine\n' })
    fs.renameSync(scratch.at('../saved'), from)
  }
  const context = await openContext({ ...env, files: { ...env.files, linkSync } }, scratch.root)
  try {
    await expect(undo(context, { mode: 'refuse' }, { arrived: 0 })).rejects.toMatchObject({ code: 'CONFLICT' })
  } finally {
    closeContext(context)
  }
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['two\n', 'mine\n'])
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual([])
})

test('the store on another mount of the same file system: temporary files lie beside their targets, and none is left', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'gone.txt': 'one\n', 'd/b.txt': 'one\n' })
  const before = scratch.manifest()
  scratch.turn('work', () => {
    scratch.write({ 'a.txt': 'two\n', 'd/b.txt': 'two\n', 'new.txt': 'two\n' })
    scratch.remove('gone.txt')
    fs.symlinkSync('a.txt', scratch.at('link'))
  })
  const env = envOf(scratch)
  const isOwn = (at: fs.PathLike) => String(at).startsWith(scratch.at('.git/'))
  let crossed = 0
  const within =
    <T>(call: (from: fs.PathLike, to: fs.PathLike) => T) =>
    (from: fs.PathLike, to: fs.PathLike): T => {
      if (isOwn(from) === isOwn(to)) return call(from, to)
      crossed++
      throw Object.assign(new Error('cross-device link'), { code: 'EXDEV' })
    }
  const files = { ...env.files, linkSync: within(fs.linkSync), renameSync: within(fs.renameSync) }
  const context = await openContext({ ...env, files }, scratch.root)
  try {
    await undo(context, { mode: 'refuse' }, { arrived: 0 })
  } finally {
    closeContext(context)
  }
  expect(crossed).toBe(1)
  expect(scratch.manifest()).toEqual(before)
  expect(fs.readdirSync(scratch.at('.git/ckpt/worktrees/@main/tmp'))).toEqual([])
})

test('a file comes back where only an emptied directory is left in its place', () => {
  const scratch = new Scratch().init({ swap: 'a file\n' })
  scratch.turn('swap', () => {
    scratch.remove('swap')
    scratch.write({ 'swap/inside': 'x\n' })
  })
  scratch.remove('swap/inside')
  const before = scratch.manifest()
  scratch.ckpt('undo')
  expect(scratch.read('swap')).toBe('a file\n')
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(before)
})

test('an empty directory does not come back where a file is now: it is skipped, and all else is done', () => {
  const scratch = new Scratch().init({ 'b.txt': 'one\n' })
  fs.mkdirSync(scratch.at('empty/deep'), { recursive: true })
  scratch.turn('remove', () => {
    scratch.remove('empty')
    scratch.write({ 'b.txt': 'two\n' })
  })
  scratch.write({ empty: 'mine\n' })
  const { files } = scratch.ckpt('undo')
  expect(files.map(({ path, action }: { path: string; action: string }) => `${action} ${path}`)).toEqual([
    'write b.txt',
    'skip empty/deep/',
  ])
  expect([scratch.read('empty'), scratch.read('b.txt')]).toEqual(['mine\n', 'one\n'])
})

/** Where force would not help it is named only to those who asked for it. */
const waysOutButForce = (flags: string[]) => [
  `${['ckpt undo', ...flags, '--dry-run'].join(' ')}   (the whole plan)`,
  'ckpt undo --skip-conflicts   (leaves these paths as they are)',
  `${['ckpt undo', ...flags].join(' ')}   (again, once what is in the way was moved aside)`,
]

test('a directory with files of others where a file has to come: refused, and only ways out that work are named', () => {
  const scratch = new Scratch().init({ swap: 'x\n', '.gitignore': '*.log\n' })
  scratch.turn('swap', () => {
    scratch.remove('swap')
    scratch.write({ 'swap/a': '1\n' })
    fs.chmodSync(scratch.at('swap'), 0o711)
  })
  const after = scratch.manifest()
  scratch.write({ 'swap/mine': 'mine\n' })
  const refused = scratch.tryCkpt('undo')
  expect([refused.code, refused.document.error.paths]).toEqual([4, ['swap']])
  expect(refused.document.error.hints.join()).toContain('--force')
  // Nobody could bring back what is ignored.
  scratch.write({ 'swap/mine.log': 'mine\n' })
  for (const flags of [[], ['--force']]) {
    const { code, document } = scratch.tryCkpt('undo', ...flags)
    expect([code, document.error.paths]).toEqual([4, ['swap']])
    expect(document.error.hints).toEqual(waysOutButForce(flags))
  }
  for (const name of ['mine', 'mine.log']) fs.renameSync(scratch.at(`swap/${name}`), `${scratch.base}/${name}`)
  scratch.ckpt('undo')
  expect(scratch.read('swap')).toBe('x\n')
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

const told = ({ files }: { files: { path: string; action: string }[] }) =>
  files.map(({ path, action }) => `${action} ${path}`)

test('--force takes the target where a directory came into the place of a file; redo brings all in it back', () => {
  const scratch = new Scratch().init({ swap: '1\n', other: '1\n' })
  scratch.turn('write', () => scratch.write({ swap: '2\n', other: '2\n' }))
  scratch.turn('remove', () => scratch.remove('swap'))
  scratch.write({ 'swap/mine': 'mine\n', 'swap/in/deep': 'deep\n' })
  fs.mkdirSync(scratch.at('swap/empty'), { mode: 0o700 })
  fs.chmodSync(scratch.at('swap/in'), 0o711)
  const mine = scratch.manifest()
  const plan = scratch.ckpt('undo', '--turns', '2', '--force', '--dry-run')
  expect(told(plan)).toEqual([
    'write other',
    'write swap',
    'delete swap/empty/',
    'delete swap/in/',
    'delete swap/in/deep',
    'delete swap/mine',
  ])
  expect(scratch.manifest()).toEqual(mine)
  const { files, safety } = scratch.ckpt('apply', plan.token)
  expect(files).toEqual(plan.files)
  expect([scratch.read('swap'), scratch.read('other')]).toEqual(['1\n', '1\n'])
  expect(scratch.ckpt('verify').ok).toBe(true)
  scratch.ckpt('redo')
  expect([scratch.read('swap'), scratch.read('other')]).toEqual(['2\n', '2\n'])
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(mine)
  scratch.ckpt('undo', '--force', '--', 'swap')
  expect(scratch.read('swap')).toBe('2\n')
  scratch.ckpt('undo')
  expect(scratch.manifest()).toEqual(mine)
  scratch.ckpt('undo', '--turns', '2', '--force')
  scratch.ckpt('restore', safety, '--exact', '--force')
  expect(scratch.manifest()).toEqual(mine)
})

test('--force takes the target where a file or a link came into the place of a directory; redo brings it back', () => {
  const scratch = new Scratch().init({ 'in/a': 'a\n', 'in/deep/b': 'b\n', 'to/c': 'c\n', '.gitignore': '*.log\n' })
  scratch.turn('remove', () => {
    for (const directory of ['in', 'to']) scratch.remove(directory)
  })
  scratch.write({ in: 'mine\n' })
  fs.symlinkSync('elsewhere', scratch.at('to'))
  const mine = scratch.manifest()
  expect(scratch.tryCkpt('undo').document.error.paths).toEqual(['in/a', 'in/deep/b', 'to/c'])
  expect(told(scratch.ckpt('undo', '--force'))).toEqual([
    'delete in',
    'write in/a',
    'write in/deep/b',
    'delete to',
    'write to/c',
  ])
  expect(['in/a', 'in/deep/b', 'to/c'].map((path) => scratch.read(path))).toEqual(['a\n', 'b\n', 'c\n'])
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(mine)
})

test('--force leaves an ignored file that came into the place of a directory', () => {
  const scratch = new Scratch().init({ 'in.log/a': 'a\n', '.gitignore': '*.log\n!in.log/\n' })
  scratch.turn('remove', () => scratch.remove('in.log'))
  scratch.write({ 'in.log': 'mine\n' })
  for (const flags of [[], ['--force']]) {
    const { code, document } = scratch.tryCkpt('undo', ...flags)
    expect([code, document.error.paths]).toEqual([4, ['in.log/a']])
    expect(document.error.hints).toEqual(waysOutButForce(flags))
  }
  expect(scratch.read('in.log')).toBe('mine\n')
})

test('restore --force deletes nothing that is in the place of what it brings back', () => {
  const scratch = new Scratch().init({ swap: '1\n' })
  scratch.turn('remove', () => scratch.remove('swap'))
  scratch.write({ 'swap/mine': 'mine\n' })
  const { code, document } = scratch.tryCkpt('restore', '1:before', '--force')
  expect([code, document.error.paths, scratch.read('swap/mine')]).toEqual([4, ['swap'], 'mine\n'])
  scratch.ckpt('restore', '1:before', '--exact', '--force')
  expect(scratch.read('swap')).toBe('1\n')
})

test('a directory in the place of an ignored file, empty and ignored no more when the turn ends, makes room for it', () => {
  const scratch = new Scratch().init({ '.gitignore': '.env\n' })
  scratch.write({ '.env': 'A=1\n' })
  scratch.git('add', '-f', '.env')
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.remove('.env')
  fs.mkdirSync(scratch.at('.env'))
  scratch.ckpt('mark', 'step', ...S)
  scratch.remove('.gitignore')
  scratch.ckpt('mark', 'step', ...S)
  scratch.ckpt('mark', 'stop', ...S)
  const after = scratch.manifest()
  const { files } = scratch.ckpt('undo', '--dry-run')
  expect(scratch.ckpt('undo').files).toEqual(files)
  expect([scratch.read('.env'), scratch.read('.gitignore')]).toEqual(['A=1\n', '.env\n'])
  scratch.ckpt('redo')
  expect(scratch.manifest()).toEqual(after)
})

test('what cannot be saved first: refused, and only ways out that work are named', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.remove('a.txt')
  execFileSync('mkfifo', [scratch.at('a.txt')])
  const aside = 'ckpt undo --force   (only once what is there was moved aside)'
  for (const flags of [[], ['--force'], ['--merge']]) {
    const { code, document } = scratch.tryCkpt('undo', ...flags)
    expect([code, document.error.paths]).toEqual([4, ['a.txt']])
    expect(document.error.hints.slice(1)).toEqual([expect.stringMatching(/^ckpt undo --skip-conflicts /), aside])
  }
  expect(scratch.tryCkpt('restore', '1:before').document.error.hints.slice(1)).toEqual([
    'ckpt restore 1:before --force   (only once what is there was moved aside)',
  ])
  fs.renameSync(scratch.at('a.txt'), `${scratch.base}/aside`)
  scratch.ckpt('undo', '--force')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('a file that grew past what can be read in one piece is a conflict, and the rest of its turn is undone without it', () => {
  const scratch = new Scratch().init({ big: 'small\n', 'b.txt': 'b\n' })
  scratch.turn('grow', () => {
    fs.truncateSync(scratch.at('big'), 3 * 2 ** 30) // a hole
    scratch.remove('b.txt')
  })
  const { code, document } = scratch.tryCkpt('undo')
  expect([code, document.error.paths]).toEqual([4, ['big']])
  scratch.ckpt('undo', '--skip-conflicts')
  expect([scratch.read('b.txt'), fs.statSync(scratch.at('big')).size]).toEqual(['b\n', 3 * 2 ** 30])
  scratch.remove('big')
})

test('promise 8: something else came to where a killed undo was about to write: it stays, and the store goes on', () => {
  const scratch = new Scratch().init({ gone: 'gone\n', 'b.txt': 'one\n' })
  scratch.turn('remove', () => {
    scratch.remove('gone')
    scratch.write({ 'b.txt': 'two\n' })
  })
  const journal = scratch.at('.git/ckpt/worktrees/@main/journal.json')
  // The journal of an undo that was killed before its first write.
  killedAt(scratch, ['renameSync', 'journal.json'], 'undo')
  expect(fs.existsSync(journal)).toBe(true)
  scratch.write({ 'gone/user': 'mine\n' })
  const { warnings } = scratch.ckpt('list')
  expect(warnings.join()).toContain('gone')
  expect([scratch.read('gone/user'), scratch.read('b.txt')]).toEqual(['mine\n', 'one\n'])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('while a turn runs, nothing of its session is undone, redone, restored or switched; another session may be', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('other', () => scratch.write({ 'b.txt': 'b\n' }), 'other')
  scratch.ckpt('mark', 'prompt', '--session', 's')
  const code = (...args: string[]) => scratch.tryCkpt(...args).document.error?.code
  for (const args of [
    ['undo'],
    ['redo'],
    ['restore', '1'],
    ['restore', '1', '--dry-run'],
    ['restore', '99'],
    ['switch', '1'],
    ['switch', '99', '--session', 's'],
  ])
    expect([...args, code(...args)]).toEqual([...args, 'TURN_RUNNING'])
  expect(code('restore', '99', '--session', 'other')).toBe('NOT_FOUND')
  expect(code('restore', '1:before', '--session', 'other', '--exact')).toBe(undefined)
  expect(scratch.exists('b.txt')).toBe(false)
})

test('a turn that went on from one of its steps is what that branch did: nothing of the one that was left', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.git('config', 'user.name', 'n')
  scratch.git('config', 'user.email', 'e')
  scratch.ckpt('mark', 'prompt', ...S)
  scratch.write({ 'b.txt': 'b\n' })
  scratch.ckpt('mark', 'step', ...S)
  scratch.write({ 'a.txt': 'left\n', 'left.txt': 'l\n' })
  scratch.ckpt('mark', 'step', ...S)
  scratch.ckpt('mark', 'stop', ...S)
  scratch.ckpt('switch', '1.1')
  scratch.ckpt('mark', 'step', '--start', ...S)
  scratch.write({ 'a.txt': 'two\n' })
  scratch.ckpt('mark', 'step', ...S)
  scratch.ckpt('mark', 'stop', ...S)
  expect(scratch.ckpt('show', '1').turn.unclaimed).toEqual([])
  expect(scratch.ckpt('commit', '-m', 'done').files).toMatchObject([{ path: 'a.txt' }, { path: 'b.txt' }])
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.exists('b.txt'), scratch.exists('left.txt')]).toEqual(['one\n', false, false])
})

test('switch to a turn that was cut goes to where it ended: it does not run again', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.ckpt('mark', 'prompt', ...S)
  for (const text of ['two\n', 'three\n']) {
    scratch.write({ 'a.txt': text })
    scratch.ckpt('mark', 'step', ...S)
  }
  scratch.ckpt('mark', 'stop', ...S)
  scratch.ckpt('undo', '--step')
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.turn('after the cut', () => scratch.write({ 'b.txt': 'b\n' }), 's')
  for (const [id, there] of [
    ['1', false],
    ['2', true],
    ['1:after', false],
  ] as const) {
    const switched = scratch.run(['switch', id, '--force'])
    expect([id, switched.code, switched.stdout]).toEqual([id, 0, expect.not.stringContaining('runs again')])
    expect([id, scratch.read('a.txt'), scratch.exists('b.txt')]).toEqual([id, 'two\n', there])
    expect(scratch.ckpt('status').sessions).toMatchObject([{ id: 's', state: 'idle' }])
  }
  expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'completed' }])
  scratch.turn('goes on', () => scratch.write({ 'c.txt': 'c\n' }), 's')
  scratch.ckpt('undo')
  scratch.ckpt('undo')
  expect([scratch.read('a.txt'), scratch.exists('c.txt')]).toEqual(['one\n', false])
  scratch.ckpt('redo', '--all')
  expect([scratch.read('a.txt'), scratch.exists('c.txt')]).toEqual(['two\n', true])
})

test('branches that are left in one moment have names of their own', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('two', () => scratch.write({ two: '\n' }))
  const now = Date.now()
  const env = { ...envOf(scratch), now: () => now }
  for (const argv of [['undo'], ['accept'], ['switch', '2'], ['undo', '--turns', '2'], ['accept'], ['switch', '1']])
    expect([argv, (await answer(env, ...argv)).document.error]).toEqual([argv, undefined])
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.turn('three', () => scratch.write({ 'a.txt': 'three\n' }))
  expect(scratch.ckpt('list').turns.map(({ n }: Json) => n)).toEqual([3, 1])
})

test('what another session did between such a step and the switch is its own', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.turn('other', () => scratch.write({ 'a.txt': 'two\n' }), 'other')
  scratch.ckpt('switch', '1:before', ...S)
  scratch.write({ 'a.txt': 'two\n', 'c.txt': 'c\n' })
  scratch.ckpt('mark', 'stop', ...S)
  expect(told(scratch.ckpt('undo', '--session', 'other'))).toEqual(['write a.txt'])
})

test('restore and switch name the turns of other sessions that go back with it, and none that do not', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'shared.txt': 'one\n' })
  const start = scratch.ckpt('snapshot').checkpoint.id
  scratch.turn('early', () => scratch.write({ 'early.txt': 'e\n' }), 'other')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('theirs', () => scratch.write({ 'b.txt': 'b\n', 'shared.txt': 'two\n' }), 'other')
  scratch.turn('two', () => scratch.write({ 'a.txt': 'three\n' }))
  scratch.turn('third', () => scratch.write({ 'c.txt': 'c\n' }), 'third')
  scratch.ckpt('undo', '--session', 'third')
  const words = (...args: string[]): string[] =>
    scratch.ckpt(...args).warnings.filter((one: string) => one.includes('goes back'))
  const theirs = 'With it goes back what session other did since, in turn 2:'
  expect(words('restore', '1', ...S, '--dry-run')).toEqual([`${theirs} shared.txt.`])
  expect(words('restore', '1', ...S, '--exact', '--dry-run')).toEqual([`${theirs} b.txt, shared.txt.`])
  expect(words('restore', '1', ...S, '--dry-run', '--', 'a.txt')).toEqual([])
  expect(words('restore', start, '--exact', '--dry-run').sort()).toEqual([
    'With it goes back what session other did since, in turns 1 to 2: b.txt, early.txt, shared.txt.',
    'With it goes back what session s did since, in turns 1 to 2: a.txt.',
  ])
  expect(words('switch', '2', ...S)).toEqual([])
  expect(words('switch', '1', ...S)).toEqual([`${theirs} b.txt, shared.txt.`])
  expect([scratch.exists('b.txt'), scratch.read('early.txt')]).toEqual([false, 'e\n'])
})

test('a turn of another session that ran at that time is named for what it did since', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  const other = ['--session', 'other']
  const step = (work: () => void) => {
    scratch.ckpt('mark', 'step', '--start', ...other)
    work()
    scratch.ckpt('mark', 'step', ...other)
  }
  scratch.ckpt('mark', 'prompt', ...other)
  step(() => scratch.write({ 'x.txt': 'x\n' }))
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  step(() => scratch.write({ 'y.txt': 'y\n' }))
  const { warnings, files } = scratch.ckpt('restore', '1', ...S, '--exact')
  expect(told({ files })).toEqual(['delete y.txt'])
  expect(warnings).toContain('With it goes back what session other did since, in turn 1: y.txt.')
})

test('an empty directory that one step filled and another removed comes back, and is told; redo takes it away again', () => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  fs.mkdirSync(scratch.at('logs'))
  const step = (work: () => void) => {
    scratch.ckpt('mark', 'step', '--start', ...S)
    work()
    scratch.ckpt('mark', 'step', ...S)
  }
  scratch.ckpt('mark', 'prompt', ...S)
  step(() => scratch.write({ 'logs/x': 'x\n', 'tmp/x': 'x\n', 'kept/x': 'x\n' }))
  step(() => scratch.remove('logs', 'tmp/x'))
  scratch.ckpt('mark', 'stop', ...S)
  const [turn] = scratch.ckpt('list').turns
  expect(turn.stat.files).toBe(3)
  expect(turn.steps.map(({ paths }: { paths: string[] }) => paths)).toEqual([
    ['kept/x', 'logs/x', 'tmp/x'],
    ['logs/x', 'tmp/x'],
  ])
  const told = ({ files }: { files: { action: string; path: string }[] }) =>
    files.map(({ path, action }) => `${action} ${path}`)
  expect(told(scratch.ckpt('undo'))).toEqual(['delete kept/x', 'write logs/', 'delete tmp/'])
  expect(fs.readdirSync(scratch.root).sort()).toEqual(['.git', 'base.txt', 'logs'])
  expect(told(scratch.ckpt('redo'))).toEqual(['write kept/x', 'delete logs/', 'write tmp/'])
  expect(fs.readdirSync(scratch.root).sort()).toEqual(['.git', 'base.txt', 'kept', 'tmp'])
  expect(told(scratch.ckpt('undo'))).toEqual(['delete kept/x', 'write logs/', 'delete tmp/'])
})

test('a directory that a turn made and emptied again stays, without a word, for what somebody put into it since', () => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  scratch.turn('first', () => scratch.write({ 'd/x': 'x\n', 'e/x': 'x\n' }))
  scratch.turn('second', () => scratch.remove('d/x', 'e/x'))
  scratch.write({ 'd/mine': 'mine\n' })
  const { files } = scratch.ckpt('undo', '--turns', '2')
  expect(files).toEqual([{ path: 'e/', action: 'delete' }])
  expect(scratch.read('d/mine')).toBe('mine\n')
  scratch.ckpt('redo', '--all')
  expect(fs.readdirSync(scratch.at('e'))).toEqual([])
  expect(scratch.read('d/mine')).toBe('mine\n')
})

test("an undo that is a turn of its own is no other's work, also of a turn that runs meanwhile, and can be taken back", () => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  scratch.turn('a', () => scratch.write({ 'a1.txt': '1\n', 'a2.txt': '2\n' }))
  const session = scratch.ckpt('list').turns[0].session
  const other = ['--session', 'other']
  scratch.ckpt('mark', 'prompt', ...other)
  scratch.write({ 'b.txt': 'b\n' })
  scratch.ckpt('undo', '--session', session, '--', 'a1.txt')
  scratch.ckpt('mark', 'stop', ...other)
  expect(scratch.ckpt('show', '1', ...other).turn.unclaimed).toEqual([])
  const { files } = scratch.ckpt('undo', ...other, '--dry-run')
  expect(files.map(({ path }: { path: string }) => path)).toEqual(['b.txt'])
  scratch.ckpt('undo', '--session', session)
  expect([scratch.read('a1.txt'), scratch.read('a2.txt'), scratch.read('b.txt')]).toEqual(['1\n', '2\n', 'b\n'])
})

test('a directory that somebody made anew or changed since stays as it is, and that is said', () => {
  const modeOf = (scratch: Scratch, name: string) => fs.statSync(scratch.at(name)).mode & 0o777
  const made = (scratch: Scratch, name: string, mode: number) => {
    fs.mkdirSync(scratch.at(name))
    fs.chmodSync(scratch.at(name), mode)
  }
  const kept = { path: 'd/', action: 'skip', reason: 'made again since' }
  // Where the agent's was.
  const first = new Scratch().init()
  first.turn('one', () => first.write({ 'd/x': 'x\n' }))
  first.remove('d')
  made(first, 'd', 0o700)
  first.ckpt('undo')
  expect(modeOf(first, 'd')).toBe(0o700)
  // What the turn removed, and what an undo did.
  const second = new Scratch().init()
  made(second, 'd', 0o755)
  second.turn('one', () => second.remove('d'))
  made(second, 'd', 0o700)
  expect(second.ckpt('undo').files).toEqual([kept])
  expect(modeOf(second, 'd')).toBe(0o700)
  second.ckpt('redo')
  expect(modeOf(second, 'd')).toBe(0o700)
  const third = new Scratch().init()
  third.turn('one', () => made(third, 'd', 0o755))
  third.ckpt('undo')
  made(third, 'd', 0o700)
  expect(third.ckpt('redo').files).toEqual([kept])
  expect(modeOf(third, 'd')).toBe(0o700)
  // Restore refuses, as it does for a file; force takes it away.
  const fourth = new Scratch().init()
  fourth.turn('one', () => fourth.write({ 'a.txt': 'two\n' }))
  made(fourth, 'd', 0o700)
  const { code, document } = fourth.tryCkpt('restore', '1:before', '--exact')
  expect([code, document.error.code, fourth.exists('d')]).toEqual([4, 'CONFLICT', true])
  fourth.ckpt('restore', '1:before', '--exact', '--force')
  expect(fourth.exists('d')).toBe(false)
})

test('a directory that two sessions may have made or changed is taken by neither, unless by force', () => {
  const scratch = new Scratch().init({ 'kept/x': 'x\n' })
  const [a, b] = [
    ['--session', 'a'],
    ['--session', 'b'],
  ] as const
  for (const one of [a, b]) scratch.ckpt('mark', 'prompt', ...one)
  for (const one of [a, b]) scratch.ckpt('mark', 'step', '--start', ...one)
  fs.mkdirSync(scratch.at('made'))
  fs.chmodSync(scratch.at('kept'), 0o700)
  for (const one of [b, a]) scratch.ckpt('mark', 'step', ...one)
  for (const one of [b, a]) scratch.ckpt('mark', 'stop', ...one)
  const reason = 'session b was changing it at the same time'
  expect(scratch.ckpt('undo', ...a).files).toEqual([
    { path: 'kept/', action: 'skip', reason },
    { path: 'made/', action: 'skip', reason },
  ])
  expect(fs.statSync(scratch.at('kept')).mode & 0o777).toBe(0o700)
  scratch.ckpt('redo', ...a)
  scratch.ckpt('undo', ...a, '--force')
  expect([fs.statSync(scratch.at('kept')).mode & 0o777, scratch.exists('made')]).toEqual([0o755, false])
})

test('with --force the directories of a file that two made at the same time go with it', () => {
  const scratch = new Scratch().init()
  const sessions = ['a', 'b'].map((name) => ['--session', name])
  for (const one of sessions) scratch.ckpt('mark', 'prompt', ...one)
  scratch.write({ 'd/e/f.txt': 'x\n' })
  for (const one of sessions) scratch.ckpt('mark', 'stop', ...one)
  const [a] = sessions as [string[]]
  expect(scratch.tryCkpt('undo', ...a).code).toBe(4)
  expect([scratch.ckpt('undo', ...a, '--skip-conflicts').files, scratch.exists('d/e/f.txt')]).toMatchObject([
    [{ path: 'd/e/f.txt', action: 'skip' }],
    true,
  ])
  scratch.ckpt('redo', ...a)
  const before = scratch.manifest()
  scratch.ckpt('undo', ...a, '--force')
  expect(scratch.exists('d')).toBe(false)
  scratch.ckpt('redo', ...a)
  expect(scratch.manifest()).toEqual(before)
})

const lookOf = (scratch: Scratch) =>
  Object.fromEntries(Object.entries(scratch.manifest()).filter(([path]) => !path.startsWith('base.txt')))

test.each<[string, (scratch: Scratch) => void, string[]]>([
  [
    'between two steps',
    (scratch) => {
      const step = (files: Record<string, string>) => {
        scratch.ckpt('mark', 'step', '--start', ...S)
        scratch.write(files)
        scratch.ckpt('mark', 'step', ...S)
      }
      scratch.ckpt('mark', 'prompt', ...S)
      step({ 'a.txt': 'a\n' })
      fs.mkdirSync(scratch.at('d'))
      step({ 'd/x': 'x\n' })
      scratch.ckpt('mark', 'stop', ...S)
    },
    [],
  ],
  [
    'between two turns',
    (scratch) => {
      scratch.turn('one', () => scratch.write({ 'a.txt': 'a\n' }))
      fs.mkdirSync(scratch.at('d'))
      scratch.turn('two', () => scratch.write({ 'd/x': 'x\n' }))
    },
    ['--turns', '2'],
  ],
])('a directory that somebody made %s, with what the agent put into it: only that goes', (_, work, more) => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  work(scratch)
  const after = lookOf(scratch)
  const { files } = scratch.ckpt('undo', ...more)
  expect(files.map(({ path }: { path: string }) => path)).toEqual(['a.txt', 'd/x'])
  expect(fs.readdirSync(scratch.at('d'))).toEqual([])
  scratch.ckpt('redo', '--all')
  expect(lookOf(scratch)).toEqual(after)
})

test('a directory that somebody made anew before an undo is there after redo, with its mode', () => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  scratch.write({ 'd/x': 'x\n', 'p/e/x': 'x\n' })
  scratch.turn('one', () => scratch.remove('d', 'p/e'))
  for (const name of ['d', 'p/e']) fs.mkdirSync(scratch.at(name), { mode: 0o700, recursive: true })
  const before = lookOf(scratch)
  scratch.ckpt('undo')
  expect([scratch.read('d/x'), scratch.read('p/e/x')]).toEqual(['x\n', 'x\n'])
  scratch.ckpt('redo')
  expect(lookOf(scratch)).toEqual(before)
})

test('what a person had put into a private directory of the agent comes back into a private one', () => {
  for (const later of [{}, { 'd/y': 'y\n' }]) {
    const scratch = new Scratch().init({ 'base.txt': 'b\n' })
    scratch.turn('one', () => fs.mkdirSync(scratch.at('d'), { mode: 0o700 }))
    scratch.write({ 'd/secret': 's\n' })
    scratch.turn('two', () => {
      scratch.remove('d')
      scratch.write(later)
    })
    const after = lookOf(scratch)
    const { files } = scratch.ckpt('undo', '--turns', '2')
    expect(files.filter(({ action }: { action: string }) => action === 'delete')).toHaveLength(
      Object.keys(later).length,
    )
    expect(fs.statSync(scratch.at('d')).mode & 0o777).toBe(0o700)
    expect(fs.readdirSync(scratch.at('d'))).toEqual(['secret'])
    scratch.ckpt('redo', '--all')
    expect(lookOf(scratch)).toEqual(after)
  }
})

test('a directory has the mode again that it had when the turn removed it, not an older one', () => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  scratch.write({ 'd/x': 'x\n' })
  fs.chmodSync(scratch.at('d'), 0o700)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'a\n' }))
  fs.chmodSync(scratch.at('d'), 0o755)
  scratch.turn('two', () => scratch.remove('d'))
  scratch.ckpt('undo', '--turns', '2')
  expect(fs.statSync(scratch.at('d')).mode & 0o777).toBe(0o755)
})

test('an undo of one path takes the directory along that came with it, if nothing else is left in it', () => {
  const scratch = new Scratch().init({ 'base.txt': 'b\n' })
  scratch.turn('one', () => scratch.write({ 'd/x': 'x\n', 'e/x': 'x\n', 'e/y': 'y\n' }))
  scratch.ckpt('undo', '--', 'd/x', 'e/x')
  expect([scratch.exists('d'), fs.readdirSync(scratch.at('e'))]).toEqual([false, ['y']])
})

test('what a merge could not settle is named for what it is, in an undo and in a redo; turns with a gap are named one by one', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': '2\n' }))
  scratch.turn('two', () => scratch.write({ 'b.txt': '1\n' }))
  scratch.ckpt('undo')
  scratch.turn('three', () => scratch.write({ 'b.txt': '2\n' }))
  scratch.write({ 'a.txt': 'mine\n' })
  const undone = scratch.run(['undo', '--turns', '2', '--merge'])
  expect(undone.stdout).toContain('Undid turns 1, 3: 2 files.')
  expect(scratch.read('a.txt')).toContain('>>>>>>> before the turn')
  scratch.write({ 'a.txt': 'mine again\n' })
  expect(scratch.ckpt('redo', '--all', '--merge').turns).toEqual([1, 3])
  expect(scratch.read('a.txt')).toContain('>>>>>>> after the turn')
})

test('of two calls at once each keeps its declared path to other sessions, also while both are at work', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n', 'b.txt': '1\n' })
  const mark = (session: string, ...more: string[]) => scratch.ckpt('mark', ...more, '--session', session)
  mark('other', 'prompt')
  mark('two-calls', 'prompt')
  for (const name of ['a.txt', 'b.txt']) mark('two-calls', 'step', '--start', '--call-id', name, '--path', name)
  scratch.write({ 'a.txt': '2\n', 'b.txt': '2\n', 'c.txt': 'of the other\n' })
  mark('other', 'stop')
  expect(scratch.ckpt('undo', '--session', 'other').files).toEqual([{ path: 'c.txt', action: 'delete' }])
})

test('what a step declared is its own, though another session marked the end of a step or turn before it', () => {
  const scratch = new Scratch().init({ 'z.txt': '1\n' })
  const mark = (session: string, ...more: string[]) => scratch.ckpt('mark', ...more, '--session', session)
  for (const session of ['a', 'b', 'c']) mark(session, 'prompt')
  scratch.write({ 'a.txt': 'a\n', 'b.txt': 'b\n', 'by-shell.txt': 'of a\n' })
  mark('a', 'step', '--path', 'a.txt')
  mark('b', 'step', '--path', 'b.txt')
  scratch.write({ 'c.txt': 'c\n', 'z.txt': 'b\n' })
  mark('b', 'step', '--path', 'z.txt')
  mark('b', 'stop')
  mark('c', 'step', '--path', 'c.txt')
  mark('a', 'stop')
  mark('c', 'stop')
  const undone = (session: string) => scratch.ckpt('undo', '--session', session)
  expect(undone('c').files).toEqual([{ path: 'c.txt', action: 'delete' }])
  expect(undone('a').files.map((file: { path: string }) => file.path)).toEqual(['a.txt', 'by-shell.txt'])
  expect(undone('b').files.map((file: { path: string }) => file.path)).toEqual(['b.txt', 'z.txt'])
})

test('of two steps that declared the same path each has what came in its own time', () => {
  const scratch = new Scratch().init({ 'shared.txt': '1\n' })
  const mark = (session: string, ...more: string[]) => scratch.ckpt('mark', ...more, '--session', session)
  for (const session of ['a', 'b']) mark(session, 'prompt')
  scratch.write({ 'shared.txt': 'of a\n' })
  mark('a', 'step', '--path', 'shared.txt')
  scratch.write({ 'shared.txt': 'of b\n' })
  mark('b', 'step', '--path', 'shared.txt')
  for (const session of ['a', 'b']) mark(session, 'stop')
  scratch.ckpt('undo', '--session', 'b')
  expect(scratch.read('shared.txt')).toBe('of a\n')
  scratch.ckpt('undo', '--session', 'a')
  expect(scratch.read('shared.txt')).toBe('1\n')
})

test('an undo of its own is refused while any session of the worktree has undone turns', () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'a1\n' }), 'one')
  scratch.turn('two', () => scratch.write({ 'b.txt': 'b1\n' }), 'two')
  scratch.ckpt('undo', '--session', 'one')
  for (const args of [
    ['--only', '1'],
    ['--', 'b.txt'],
  ]) {
    const { code, document } = scratch.tryCkpt('undo', '--session', 'two', ...args)
    expect([code, document.error.code, document.error.hints.join()]).toEqual([
      5,
      'BOUNDARY_PENDING',
      expect.stringContaining('--session one'),
    ])
  }
  expect(scratch.read('b.txt')).toBe('b1\n')
  scratch.ckpt('accept', '--session', 'one')
  scratch.ckpt('undo', '--session', 'two', '--only', '1')
  expect(scratch.read('b.txt')).toBe('b\n')
})

test.each(['accept', 'a new prompt'])(
  'a turn that was cut ends with the last step it kept: what others did before %s is not its own, nor in its time',
  (going) => {
    const scratch = new Scratch().init()
    scratch.git('config', 'user.name', 'somebody')
    scratch.git('config', 'user.email', 'somebody@example.com')
    const commitAll = (message: string): void => {
      scratch.git('add', '--all')
      scratch.git('commit', '-q', '-m', message)
    }
    const first = scratch.git('rev-parse', 'HEAD').trim()
    scratch.ckpt('mark', 'prompt', ...S)
    for (const [id, text] of [
      ['1', 'kept\n'],
      ['2', 'undone\n'],
    ] as const) {
      scratch.ckpt('mark', 'step', '--start', '--call-id', id, ...S)
      scratch.write({ 'a.txt': text })
      scratch.ckpt('mark', 'step', '--call-id', id, ...S)
    }
    scratch.ckpt('mark', 'stop', ...S)
    scratch.ckpt('undo', '--step')
    commitAll('of the agent')
    scratch.turn('of another', () => scratch.write({ 'b.txt': 'b\n' }), 'other')
    commitAll('of the other')
    scratch.write({ 'mine.txt': 'mine\n' })
    if (going === 'accept') scratch.ckpt('accept', ...S)
    else scratch.turn('the next', () => {})
    commitAll('by hand')
    const { document } = scratch.tryCkpt('verify', '--ref', `${first}..HEAD`, '--covered')
    expect(document.commits.map(({ covered, turn }: Json) => [covered, turn])).toEqual([
      [true, 1],
      [true, 1],
      [false, null],
    ])
    expect(scratch.ckpt('show', '1', ...S).files.map(({ path }: Json) => path)).toEqual(['a.txt'])
    expect(scratch.ckpt('diff', '1:before', '1:after', ...S).files).toHaveLength(1)
    const blame = (path: string): Json => scratch.ckpt('blame', path, ...S).lines[0]
    expect([blame('mine.txt').turn, blame('a.txt').turn]).toEqual([null, 1])
    expect(scratch.ckpt('undo', '--session', 'other')).toMatchObject({ turns: [1] })
    expect([scratch.exists('b.txt'), scratch.read('mine.txt'), scratch.read('a.txt')]).toEqual([
      false,
      'mine\n',
      'kept\n',
    ])
    expect(scratch.ckpt('verify').problems).toEqual([])
  },
)

test.each(['accept', 'a new prompt'])(
  'of a turn with calls at once that was cut, what was undone is neither shown nor committed: %s',
  (going) => {
    const scratch = new Scratch().init({ a: 'a0\n', b: 'b0\n' })
    scratch.git('config', 'user.name', 'somebody')
    scratch.git('config', 'user.email', 'somebody@example.com')
    const step = (id: string, path: string, ...more: string[]) =>
      scratch.ckpt('mark', 'step', ...more, '--call-id', id, '--path', path, ...S)
    scratch.ckpt('mark', 'prompt', ...S)
    step('1', 'a', '--start')
    step('2', 'b', '--start')
    scratch.write({ b: 'b1\n' })
    step('2', 'b')
    scratch.write({ a: 'a1\n' })
    step('1', 'a')
    scratch.ckpt('mark', 'stop', ...S)
    scratch.ckpt('undo', '--to', '1.2')
    expect([scratch.read('a'), scratch.read('b')]).toEqual(['a1\n', 'b0\n'])
    if (going === 'accept') scratch.ckpt('accept')
    else scratch.turn('the next', () => {})
    const { turn, files } = scratch.ckpt('show', '1')
    expect([turn.steps.map(({ n }: Json) => n), files.map(({ path }: Json) => path)]).toEqual([['1.1'], ['a']])
    expect(scratch.ckpt('restore', '1:after', '--dry-run').files).toEqual([])
    expect(scratch.ckpt('commit').files).toEqual([{ path: 'a' }])
    expect(scratch.git('status', '--porcelain')).toBe('')
    expect(scratch.tryCkpt('show', '1.2')).toMatchObject({ code: 3 })
    expect(scratch.ckpt('undo', '--to', '1').files.map(({ path }: Json) => path)).toEqual(['a'])
    scratch.ckpt('redo', '--all')
    expect([scratch.read('a'), scratch.read('b')]).toEqual(['a1\n', 'b0\n'])
    expect(scratch.ckpt('verify').problems).toEqual([])
  },
)

test('a step that was committed and undone since is told of by the next commits, as a whole turn is', () => {
  const scratch = new Scratch().init({ a: 'a0\n', b: 'b0\n' })
  scratch.git('config', 'user.name', 'somebody')
  scratch.git('config', 'user.email', 'somebody@example.com')
  scratch.ckpt('mark', 'prompt', ...S)
  for (const path of ['a', 'b']) {
    scratch.ckpt('mark', 'step', '--start', '--call-id', path, '--path', path, ...S)
    scratch.write({ [path]: `${path}1\n` })
    scratch.ckpt('mark', 'step', '--call-id', path, '--path', path, ...S)
  }
  scratch.ckpt('mark', 'stop', ...S)
  expect(scratch.ckpt('commit').warnings).toEqual([])
  scratch.ckpt('undo', '--step')
  scratch.ckpt('accept')
  const { commit, warnings } = scratch.ckpt('commit')
  expect([commit, warnings]).toEqual([
    null,
    [expect.stringMatching(/^Turn 1 was committed and undone in part since, and HEAD still has what was done: /)],
  ])
  // Which commits by hand what is on disk hears no more of it.
  scratch.git('commit', '-qam', 'by hand')
  expect(scratch.ckpt('commit').warnings).toEqual([])
})
