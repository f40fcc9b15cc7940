// `ckpt verify --ref`: a commit between turns is covered by what they made, however many steps they took.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { openWorktree } from '../../src/library/worktree.ts'
import { Scratch } from '../support/scratch.ts'

/** A turn of so many steps, each of which does its own work. */
async function longTurn(
  scratch: Scratch,
  step: (n: number) => void,
  { steps, root = scratch.root, session = 's' }: { steps: number; root?: string; session?: string },
): Promise<void> {
  const worktree = await openWorktree(root, { vars: scratch.vars })
  await worktree.mark({ event: 'prompt', session })
  for (let n = 1; n <= steps; n++) {
    step(n)
    await worktree.mark({ event: 'step', session })
  }
  await worktree.mark({ event: 'stop', session })
}

/** Of each commit of a range, oldest first: its subject, whether recorded turns account for it, and how that is known. */
const told = (scratch: Scratch, range: string) =>
  scratch.ckpt('verify', '--ref', range).commits.map((one: any) => [one.subject, one.covered, one.turn, one.why])

const LEFT = 'holds what the turn left'

test('a turn of many steps hides nothing of the one before it', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n', 'mine.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.write({ 'mine.txt': 'by hand\n' })
  await longTurn(scratch, (n) => scratch.write({ 'b.txt': `${n}\n` }), { steps: 61 })
  scratch.git('commit', '-q', '-m', 'of both', 'a.txt', 'b.txt')
  scratch.git('commit', '-q', '-m', 'by hand', 'mine.txt')
  scratch.write({ 'b.txt': '40\n', 'c.txt': 'by hand\n' })
  scratch.git('commit', '-q', '-m', 'a state amid the turn', 'b.txt')
  scratch.git('add', 'c.txt')
  scratch.git('commit', '-q', '-m', 'never seen')
  scratch.write({ 'a.txt': 'one\n', 'b.txt': '20\n' })
  scratch.git('commit', '-q', '-m', 'not at once', 'a.txt', 'b.txt')
  expect(told(scratch, 'HEAD~5..HEAD')).toEqual([
    ['of both', true, 2, LEFT],
    ['by hand', false, null, 'mine.txt is as a turn left it, and none is known to have made it so'],
    ['a state amid the turn', true, 2, LEFT],
    ['never seen', false, null, 'c.txt is not what a turn left'],
    ['not at once', false, null, 'a.txt is not what a turn left'],
  ])
})

test('files that turns left, but none of them at once, are told as that', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.turn('two', () => scratch.write({ 'a.txt': 'three\n', 'b.txt': 'three\n' }))
  scratch.write({ 'a.txt': 'two\n' })
  scratch.git('commit', '-qam', 'of two states')
  expect(told(scratch, 'HEAD')).toEqual([
    ['of two states', false, null, 'no turn left all its files as they are in it'],
  ])
})

test('steps of another worktree meanwhile hide nothing', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.git('worktree', 'add', '-q', '-b', 'other', '../linked')
  const root = scratch.at('../linked')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const step = (n: number) => fs.writeFileSync(path.join(root, 'b.txt'), `${n}\n`)
  await longTurn(scratch, step, { steps: 51, root, session: 'other' })
  scratch.git('commit', '-qam', 'of the turn here')
  expect(told(scratch, 'HEAD')).toEqual([['of the turn here', true, 1, LEFT]])
})

test('what a turn of another worktree found there is not what it made, though its session has a turn of that number here', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'one\n' })
  scratch.git('worktree', 'add', '-q', '-b', 'other', '../linked')
  scratch.write({ 'a.txt': 'by hand\n' })
  scratch.turn('one', () => scratch.write({ 'b.txt': 'two\n' }))
  for (const event of ['prompt', 'stop'])
    scratch.ckpt('mark', event, '--session', 's', '--cwd', scratch.at('../linked'))
  scratch.git('commit', '-q', '-m', 'by hand', 'a.txt')
  expect(told(scratch, 'HEAD')).toEqual([
    ['by hand', false, null, 'a.txt is as a turn left it, and none is known to have made it so'],
  ])
})

test('commits of earlier turns stay covered when they are rebased after a long one', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'dir/b.txt': 'one\n', 'c.txt': 'one\n' })
  scratch.git('checkout', '-q', '-b', 'topic')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  scratch.git('commit', '-qam', 'of turn one')
  scratch.turn('two', () => scratch.remove('dir/b.txt'))
  scratch.git('commit', '-qam', 'of turn two')
  await longTurn(scratch, (n) => scratch.write({ 'c.txt': `${n}\n` }), { steps: 61 })
  scratch.git('commit', '-qam', 'of turn three')
  scratch.git('checkout', '-q', 'main')
  scratch.write({ 'mine.txt': 'by hand\n' })
  scratch.git('add', 'mine.txt')
  scratch.git('commit', '-qm', 'by hand')
  scratch.git('checkout', '-q', 'topic')
  scratch.git('rebase', '-q', 'main')
  expect(told(scratch, 'main~1..HEAD')).toEqual([
    ['by hand', false, null, 'mine.txt is not what a turn left'],
    ['of turn one', true, 3, LEFT],
    ['of turn two', true, 3, LEFT],
    ['of turn three', true, 3, LEFT],
  ])
})

const MERGED = 'merged from its parents without a conflict'
const LINES = Array.from({ length: 30 }, (_, i) => `${i + 1}\n`)

/** A branch on which a turn changed line 20 of a file, and main, where one changed line 28. */
function parted(): { scratch: Scratch; texts: (...changed: number[]) => string } {
  const scratch = new Scratch().init({ f: LINES.join('') })
  const texts = (...changed: number[]) =>
    LINES.map((line, i) => (changed.includes(i + 1) ? `new ${line}` : line)).join('')
  scratch.git('checkout', '-q', '-b', 'p')
  scratch.turn('one', () => scratch.write({ f: texts(20) }))
  scratch.git('commit', '-qam', 'of turn one')
  scratch.git('checkout', '-q', 'main')
  scratch.turn('two', () => scratch.write({ f: texts(28) }))
  scratch.git('commit', '-qam', 'of turn two')
  return { scratch, texts }
}

test('a merge that git made without a conflict is covered, and one that was edited is not', () => {
  const { scratch, texts } = parted()
  scratch.git('merge', '-q', '--no-edit', 'p')
  expect(scratch.read('f')).toBe(texts(20, 28))
  const merge = ["Merge branch 'p'", true, null, MERGED]
  expect(told(scratch, 'HEAD~1..HEAD')).toEqual([['of turn one', true, 1, LEFT], merge])
  expect(scratch.ckpt('verify', '--ref', 'HEAD~2..HEAD', '--covered').problems).toEqual([])
  expect(scratch.run(['verify', '--ref', 'HEAD']).stdout).toMatch(/^covered +\w+ +Merge branch 'p' +merged from/m)
  const amended = (subject: string, change: () => void) => {
    change()
    scratch.git('add', '-A')
    scratch.git('commit', '-q', '--amend', '-m', subject)
    return told(scratch, 'HEAD').flat()
  }
  const not = (subject: string, name: string) => [subject, false, null, `${name} is not what a turn left`]
  expect(amended('edited', () => scratch.write({ f: texts(3, 20, 28) }))).toEqual(not('edited', 'f'))
  expect(
    amended('executable', () => {
      scratch.write({ f: texts(20, 28) })
      fs.chmodSync(scratch.at('f'), 0o755)
    }),
  ).toEqual(not('executable', 'f'))
  expect(amended('deleted', () => scratch.remove('f'))).toEqual(['deleted', false, null, 'f is not what a turn left'])
  expect(amended('a file more', () => scratch.write({ f: texts(20, 28), g: 'by hand\n' }))).toEqual(
    not('a file more', 'g'),
  )
})

test('what a person dropped in a merge is the merge’s own, and no turn’s', () => {
  const { scratch } = parted()
  const merged = (subject: string, settle: () => void, ...how: string[]) => {
    scratch.git('merge', '-q', '--no-commit', ...how, 'p')
    settle()
    scratch.git('commit', '-q', '-m', subject)
    const [row] = told(scratch, 'HEAD')
    scratch.git('reset', '-q', '--hard', 'HEAD^1')
    return row
  }
  const one = ['checkout', 'HEAD', '--', 'f']
  expect(merged('plain', () => undefined)).toEqual(['plain', true, null, MERGED])
  scratch.git('checkout', '-q', '-B', 'other', 'main~1')
  scratch.write({ mine: 'by hand\n' })
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'by hand')
  expect(merged('a plain one', () => undefined)).toEqual(['a plain one', true, null, MERGED])
  const foreign = (subject: string) => [subject, false, null, 'f is not what a turn left']
  expect(merged('without it', () => scratch.git(...one))).toEqual(foreign('without it'))
  expect(merged('of ours', () => undefined, '-s', 'ours')).toEqual(foreign('of ours'))
  expect(merged('removed', () => scratch.git('rm', '-qf', 'f'))).toEqual(foreign('removed'))
})

test('a merge that drops a history it has nothing in common with is the merge’s own', () => {
  const scratch = new Scratch().init({ f: 'one\n' })
  scratch.turn('one', () => scratch.write({ t: 't\n' }))
  scratch.git('checkout', '-q', '--orphan', 'other')
  scratch.git('rm', '-rfq', '--cached', '.')
  scratch.write({ u: 'u\n' })
  scratch.git('add', 'u')
  scratch.git('commit', '-qm', 'unrelated')
  scratch.git('checkout', '-qf', 'main')
  scratch.git('merge', '-q', '--allow-unrelated-histories', '-s', 'ours', '-m', 'of ours', 'other')
  expect(told(scratch, 'HEAD').flat().slice(0, 2)).toEqual(['of ours', false])
})

test('a submodule that git took forward in a merge is from its parents; one that is hidden is a change like any other', () => {
  const scratch = new Scratch().init({ f: 'one\n' })
  scratch.git('init', '-q', 'm')
  for (const name of ['0', '1', '2']) scratch.git('-C', 'm', 'commit', '-q', '--allow-empty', '-m', name)
  const at = (name: string, message: string) => {
    scratch.git('-C', 'm', 'checkout', '-q', `:/^${name}`)
    scratch.git('add', '-f', 'm')
    scratch.git('commit', '-qm', message)
  }
  at('0', 'base')
  scratch.turn('one', () => scratch.write({ t: 't\n' }))
  scratch.git('-C', 'm', 'branch', 'all', ':/^2')
  at('1', 'first')
  scratch.git('checkout', '-q', '-b', 'other', 'HEAD~1')
  scratch.git('-C', 'm', 'checkout', '-q', 'all')
  at('2', 'second')
  scratch.git('merge', '-q', '-m', 'merged', 'main')
  const second = ['second', false, null, 'm is not what a turn left']
  expect(told(scratch, 'HEAD^1^..HEAD')).toEqual([
    ['first', ...second.slice(1)],
    second,
    ['merged', true, null, MERGED],
  ])
  scratch.git('config', 'submodule.m.ignore', 'all')
  expect(told(scratch, 'HEAD^1')).toEqual([second])
})

test('what ckpt commit made stays so with another message, on another commit, and once its turns are pruned', () => {
  const { scratch, texts } = parted()
  scratch.git('config', 'user.name', 'A U Thor')
  scratch.git('config', 'user.email', 'author@example.com')
  scratch.write({ f: texts(3, 28) }) // the person's, and in no commit
  scratch.turn('three', () => scratch.write({ f: texts(3, 12, 28), n: 'n\n' }))
  const id = scratch.ckpt('commit', '-m', 'ours').commit.slice(0, 10)
  const tree = scratch.git('rev-parse', 'HEAD^{tree}')
  scratch.git('checkout', '-q', '--', 'f')
  scratch.git('commit', '-q', '--amend', '-m', 'other words')
  expect(scratch.git('rev-parse', 'HEAD^{tree}')).toBe(tree)
  const as = `made by ckpt commit, as ${id}`
  expect(told(scratch, 'HEAD')).toEqual([['other words', true, 3, as]])
  const amended = scratch.git('rev-parse', 'HEAD').trim()
  const picked = (subject: string, more: () => void) => {
    scratch.git('checkout', '-q', '-B', 'picked', 'p')
    scratch.git('cherry-pick', amended)
    more()
    scratch.git('add', '-A')
    scratch.git('commit', '-q', '--amend', '-m', subject)
    return told(scratch, 'HEAD').flat()
  }
  expect(picked('picked', () => undefined)).toEqual(['picked', true, 3, as])
  expect(picked('edited', () => scratch.write({ f: texts(12, 20, 25) })).slice(0, 2)).toEqual(['edited', false])
  expect(picked('a file more', () => scratch.write({ g: 'mine\n' })).slice(0, 2)).toEqual(['a file more', false])
  scratch.git('checkout', '-q', 'main')
  scratch.turn('four', () => scratch.write({ o: 'o\n' }))
  scratch.ckpt('prune', '--keep', '1')
  expect(told(scratch, 'HEAD')).toEqual([['other words', true, null, `${as}; its turns were pruned since`]])
})

test('a commit that changes no file is of no turn', () => {
  const scratch = new Scratch().init({ f: 'one\n' })
  scratch.turn('one', () => scratch.write({ f: 'two\n' }))
  scratch.git('commit', '-q', '--allow-empty', '-m', 'empty')
  expect(told(scratch, 'HEAD')).toEqual([['empty', true, null, 'changes no file']])
})

test('what a turn’s snapshot did not cover is unknown: who deletes it is not that turn', () => {
  const scratch = new Scratch().init({ f: 'one\n' })
  const config = path.join(scratch.home, '.config/ckpt/.checkpointrc')
  fs.mkdirSync(path.dirname(config), { recursive: true })
  fs.writeFileSync(config, '{"snapshot":{"maxBytes":"20KiB"}}')
  scratch.turn('one', () => scratch.write({ x: 'x\n' }))
  scratch.turn('too large', () => scratch.write({ f: randomBytes(60_000) }))
  expect(scratch.ckpt('show', '2').uncovered).toMatchObject([{ path: 'f', reason: 'budget' }])
  scratch.git('rm', '-qf', 'f')
  scratch.git('commit', '-qm', 'deleted by hand')
  expect(told(scratch, 'HEAD')).toEqual([['deleted by hand', false, null, 'f is not what a turn left']])
})

test('in a clone without trees it is said of each commit that what it changed is not here, and how it gets here', () => {
  const scratch = new Scratch().init({ f: 'one\n', 'd/g': 'one\n' })
  for (const n of [1, 2]) {
    scratch.turn(`${n}`, () => scratch.write({ f: `${n}\n` }))
    scratch.git('commit', '-qam', `${n}`)
  }
  scratch.git('config', 'uploadpack.allowFilter', 'true')
  scratch.git('init', '-q', '--bare', '../hub.git')
  scratch.ckpt('push', '../hub.git')
  const clone = scratch.at('../clone')
  scratch.git('clone', '-q', '--filter=tree:0', `file://${scratch.root}`, clone)
  scratch.ckpt('pull', '../hub.git', '--cwd', clone)
  const { commits } = scratch.ckpt('verify', '--ref', 'HEAD~1..HEAD', '--cwd', clone)
  expect(commits.map((one: any) => [one.subject, one.covered, one.why])).toEqual([
    ['2', false, 'what it changed is not here: git fetch --refetch --no-filter'],
  ])
  scratch.git('-C', clone, 'fetch', '-q', '--refetch', '--no-filter')
  expect(scratch.ckpt('verify', '--ref', 'HEAD~1..HEAD', '--covered', '--cwd', clone).problems).toEqual([])
})

test('a graft says nothing of whose child a commit is', () => {
  const scratch = new Scratch().init({ f: 'one\n' })
  scratch.turn('one', () => scratch.write({ g: 'x\n' }))
  scratch.write({ f: 'by hand\n' })
  scratch.git('commit', '-qm', 'by hand', 'f')
  const [head, root] = [
    scratch.git('rev-parse', 'HEAD').trim(),
    scratch.git('commit-tree', '-m', 'r', 'HEAD^{tree}').trim(),
  ]
  scratch.write({ '.git/info/grafts': `${head} ${root}\n` })
  expect(told(scratch, 'HEAD')).toEqual([['by hand', false, null, 'f is not what a turn left']])
})

test('a merge with more than one merge base, or of more than two parents, is held against turns alone', () => {
  const { scratch, texts } = parted()
  const [one, two] = [scratch.git('rev-parse', 'p').trim(), scratch.git('rev-parse', 'main').trim()]
  scratch.git('merge', '-q', '--no-edit', one)
  scratch.git('checkout', '-q', 'p')
  scratch.git('merge', '-q', '--no-edit', two)
  const change = (...lines: number[]) => {
    scratch.turn('more', () => scratch.write({ f: texts(20, 28, ...lines) }))
    scratch.git('commit', '-qam', 'of a turn')
  }
  change(4)
  scratch.git('checkout', '-q', 'main')
  change(12)
  scratch.git('merge', '-q', '--no-edit', 'p')
  expect(scratch.git('merge-base', '--all', 'HEAD^1', 'HEAD^2').trim().split('\n')).toHaveLength(2)
  const not = [expect.any(String), false, null, 'f is not what a turn left']
  expect(told(scratch, 'HEAD')).toEqual([not])

  const parents = [one, two, 'HEAD^1'].flatMap((id) => ['-p', id])
  const ofThree = scratch.git('commit-tree', 'HEAD^{tree}', ...parents, '-m', 'of three').trim()
  expect(told(scratch, ofThree)).toEqual([not])
})

test('a merge whose contents are not all here says so', () => {
  const { scratch } = parted()
  const base = scratch.git('rev-parse', 'HEAD~1:f').trim()
  scratch.git('merge', '-q', '--no-edit', 'p')
  fs.rmSync(scratch.at(`.git/objects/${base.slice(0, 2)}/${base.slice(2)}`))
  expect(told(scratch, 'HEAD').flat().at(-1)).toBe('f cannot be merged again: its contents are not here')
})

test('what lay in a file, uncommitted, when a turn began is not the turn’s, and stays so after an undo of that turn alone', () => {
  const lines = (changed: Record<number, string> = {}) =>
    Array.from({ length: 30 }, (_, i) => `${changed[i + 1] ?? i + 1}\n`).join('')
  const scratch = new Scratch().init({ 'a.txt': lines() })
  scratch.write({ 'a.txt': lines({ 3: 'by hand' }), 'new.txt': lines() })
  scratch.turn('one', () =>
    scratch.write({ 'a.txt': lines({ 3: 'by hand', 20: 'agent' }), 'new.txt': lines({ 5: 'agent' }) }),
  )
  const not = (name: string) => `${name} has in it what no turn made: it was there, uncommitted, before one`
  scratch.git('commit', '-qm', 'mostly by hand', 'a.txt')
  scratch.git('add', 'new.txt')
  scratch.git('commit', '-qm', 'new, by hand')
  scratch.turn('two', () => scratch.write({ 'a.txt': lines({ 3: 'by hand', 20: 'agent', 25: 'agent' }) }))
  scratch.git('commit', '-qam', 'of turn two')
  scratch.turn('three', () =>
    scratch.write({ 'a.txt': lines({ 3: 'by hand', 20: 'agent', 25: 'agent', 29: 'agent' }) }),
  )
  scratch.write({ 'a.txt': lines({ 3: 'by hand', 12: 'by hand', 20: 'agent', 25: 'agent', 29: 'agent' }) })
  scratch.ckpt('undo', '--only', '3')
  scratch.git('commit', '-qam', 'by hand alone')
  expect(told(scratch, 'HEAD~4..HEAD')).toEqual([
    ['mostly by hand', false, null, not('a.txt')],
    ['new, by hand', false, null, not('new.txt')],
    ['of turn two', true, 2, LEFT],
    ['by hand alone', false, null, not('a.txt')],
  ])
})

test('what turns made one after the other is theirs, also where a part was committed, taken back and brought back amid it', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n2\n3\n4\n5\n', 'b.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'one\n2\n3\n4\none\n' }))
  scratch.write({ 'a.txt': 'one\n2\n3\n4\n5\n' })
  scratch.git('commit', '-qam', 'a part')
  scratch.write({ 'a.txt': 'one\n2\n3\n4\none\n' })
  scratch.turn('two', () => scratch.write({ 'a.txt': 'one\n2\ntwo\n4\none\n', 'b.txt': 'two\n' }))
  scratch.ckpt('undo')
  scratch.ckpt('redo')
  scratch.git('stash', '-q')
  scratch.turn('three', () => scratch.write({ 'c.txt': 'three\n' }))
  scratch.git('stash', 'pop', '-q')
  scratch.turn('four', () => scratch.write({ 'a.txt': 'one\n2\ntwo\n4\nfour\n' }))
  scratch.turn('five', () => scratch.write({ 'b.txt': 'five\n' }))
  scratch.ckpt('undo', '--only', '2', '--', 'a.txt')
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'the rest')
  expect(told(scratch, 'HEAD')).toEqual([['the rest', true, 6, LEFT]])
})

test('a commit by hand that is squashed with a turn’s makes it one that no turn accounts for', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n2\n3\n' })
  scratch.write({ 'a.txt': 'by hand\n2\n3\n' })
  scratch.git('commit', '-qam', 'by hand')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'by hand\n2\nagent\n' }))
  scratch.git('commit', '-qam', 'of the turn')
  expect(told(scratch, 'HEAD')).toEqual([['of the turn', true, 1, LEFT]])
  scratch.git('reset', '-q', '--soft', 'HEAD~2')
  scratch.git('commit', '-qm', 'of both')
  expect(told(scratch, 'HEAD')).toMatchObject([['of both', false, null, expect.stringContaining('a.txt has in it')]])
})

test('what a turn committed is its own, also where somebody else’s checkpoint is the first to show it', () => {
  const scratch = new Scratch().init()
  const mark = (...args: string[]) => scratch.ckpt('mark', ...args)
  const commit = (subject: string) => {
    scratch.write({ 'own.txt': subject })
    scratch.git('add', 'own.txt')
    scratch.git('commit', '-q', '-m', subject)
  }
  mark('prompt', '--session', 'A')
  commit('seen by hand')
  scratch.ckpt('snapshot')
  mark('stop', '--session', 'A')
  mark('prompt', '--session', 'A')
  commit('seen by a prompt')
  mark('prompt', '--session', 'B')
  const step = (session: string, ...args: string[]) =>
    mark('step', '--session', session, '--tool', 'Bash', '--call-id', session, ...args)
  step('A', '--start')
  commit('seen by a step’s beginning')
  step('B', '--start')
  step('B')
  step('A')
  for (const session of ['A', 'B']) mark('stop', '--session', session)
  commit('by hand')
  scratch.ckpt('snapshot')
  mark('prompt', '--session', 'C')
  commit('of a turn that never ended, or by hand')
  scratch.ckpt('snapshot')
  expect(told(scratch, 'HEAD~5..HEAD').map((one: unknown[]) => one.slice(0, 3))).toEqual([
    ['seen by hand', true, 1],
    ['seen by a prompt', true, 2],
    ['seen by a step’s beginning', true, 2],
    ['by hand', false, null],
    ['of a turn that never ended, or by hand', false, null],
  ])
})

test('a change is of the turn at work also where a checkpoint of nobody’s, or of another session, is the first to show it', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n2\n3\n4\n5\n', 'b.txt': 'b\n' })
  const mark = (event: string, session: string) => scratch.ckpt('mark', event, '--session', session)
  mark('prompt', 'A')
  scratch.write({ 'new.txt': 'new\n' })
  scratch.ckpt('snapshot')
  mark('stop', 'A')
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'seen by hand')
  mark('prompt', 'A')
  scratch.write({ 'a.txt': 'one\n2\n3\n4\n5\n' })
  mark('prompt', 'B')
  scratch.write({ 'b.txt': 'of B\n', 'a.txt': 'one\n2\n3\n4\nfive\n' })
  mark('stop', 'A')
  mark('stop', 'B')
  scratch.git('commit', '-qm', 'of one', 'a.txt')
  scratch.git('commit', '-qam', 'of the other')
  mark('prompt', 'C') // it never ends
  scratch.write({ 'b.txt': 'by hand\n' })
  scratch.ckpt('snapshot')
  scratch.turn('more', () => scratch.write({ 'b.txt': 'by hand\nmore\n' }), 'D')
  scratch.git('commit', '-qam', 'by hand, and more')
  expect(told(scratch, 'HEAD~4..HEAD').map((one: unknown[]) => one.slice(0, 2))).toEqual([
    ['seen by hand', true],
    ['of one', true],
    ['of the other', true],
    ['by hand, and more', false],
  ])
})

test('what no snapshot held before a turn may have lain there: a file that was ignored is not the turn’s, but for what it wrote anew', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': 'ignored.txt\n' })
  scratch.write({ 'ignored.txt': 'by hand\n' })
  scratch.turn('one', () => scratch.write({ '.gitignore': '', 'ignored.txt': 'by hand\nagent\n' }))
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'mostly by hand')
  scratch.turn('two', () => scratch.write({ 'new.txt': 'new\n' }))
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'new')
  expect(told(scratch, 'HEAD~2..HEAD').map((one: unknown[]) => one.slice(0, 2))).toEqual([
    ['mostly by hand', false],
    ['new', true],
  ])
})

test('what was committed below stays so when that commit is made anew; where history is cut, that is said', () => {
  const scratch = new Scratch().init({ 'a.txt': '1\n2\n3\n4\n5\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'one\n2\n3\n4\nfive\n' }))
  scratch.git('commit', '-q', '--amend', '-m', 'reworded')
  scratch.write({ 'a.txt': 'one\n2\n3\n4\n5\n' })
  scratch.git('commit', '-qam', 'a part')
  scratch.write({ 'a.txt': 'one\n2\n3\n4\nfive\n' })
  scratch.git('commit', '-qam', 'the rest')
  expect(told(scratch, 'HEAD')).toEqual([['the rest', true, 1, LEFT]])
  const remote = path.join(scratch.base, 'remote.git')
  scratch.git('clone', '-q', '--bare', scratch.root, remote)
  scratch.ckpt('push', remote)
  const there = new Scratch()
  fs.rmdirSync(there.root)
  scratch.git('clone', '-q', '--depth', '2', `file://${remote}`, there.root)
  there.ckpt('pull', remote)
  expect(told(there, 'HEAD')).toEqual([
    ['the rest', false, null, 'a.txt came from what is not here: git fetch --unshallow'],
  ])
})
