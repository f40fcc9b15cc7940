/**
 * Promise 1, where somebody writes, moves or closes something while an undo writes: nothing of it is lost, what the undo says
 * is so, and no later command is held up.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Amid, amid, killedAt } from '../support/amid.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const OWN = '.git/ckpt/worktrees/@main'

/** The undo of the only turn, with what befalls it. */
function undone(
  scratch: Scratch,
  specs: readonly Amid[],
  { mount = false, args = [] as string[], uid = 0 } = {},
): Json {
  const vars = amid(scratch, specs, { mount })
  const { code, stdout } = scratch.runApart(['undo', ...args, '--json'], { vars, ...(uid && { uid }) })
  return { code, ...JSON.parse(stdout) }
}

/** Everything that is written in the worktree, and in what was kept for a person, as one text. */
function allTexts(scratch: Scratch): string {
  const within = [scratch.root, scratch.at(`${OWN}/kept`)].filter((at) => fs.existsSync(at))
  return within
    .flatMap((at) => fs.readdirSync(at, { withFileTypes: true, recursive: true }).map((one) => ({ at, one })))
    .filter(({ at, one }) => one.isFile() && !`${one.parentPath}/`.includes(`${at}/.git/`))
    .map(({ one }) => fs.readFileSync(`${one.parentPath}/${one.name}`, 'utf8'))
    .join('\n')
}

const leftovers = (scratch: Scratch): string[] => [
  ...fs.readdirSync(scratch.at(`${OWN}/tmp`)),
  ...Object.keys(scratch.manifest()).filter((path) => path.includes('.ckpt-')),
]

describe('a directory that comes back closed', () => {
  const closing = { call: 'chmodSync', on: '/d$', nth: 2, when: 'before' } as const
  function place() {
    const scratch = new Scratch().init({ 'd/f': 'one\n', 'a.txt': 'one\n' })
    fs.chmodSync(scratch.at('d'), 0o555)
    scratch.turn('all', () => {
      scratch.remove('d')
      scratch.write({ 'a.txt': 'two\n' })
    })
    scratch.write({ 'a.txt': 'an afternoon\n' })
    return scratch
  }

  test('and is moved right before it is closed fails nothing', () => {
    const scratch = place()
    const { code } = undone(scratch, [{ ...closing, run: 'mv d moved' }], { args: ['--force'] })
    expect([code, scratch.read('a.txt'), scratch.read('moved/f')]).toEqual([0, 'one\n', 'one\n'])
    scratch.ckpt('prune')
    scratch.ckpt('redo', '--force')
    expect(scratch.read('a.txt')).toBe('an afternoon\n')
  })

  test('and cannot be closed: what was written is taken back', () => {
    const scratch = place()
    const before = scratch.manifest()
    const { code, error } = undone(scratch, [{ ...closing, fail: 'EIO' }], { args: ['--force'] })
    expect([code, error.message]).toEqual([1, expect.stringContaining('What had been written was taken back')])
    expect(scratch.manifest()).toEqual(before)
    expect(scratch.ckpt('list').turns).toMatchObject([{ n: 1, status: 'completed' }])
  })
})

describe('a directory that moved away, with a link to another one in its place', () => {
  const away = 'mv d d2; ln -s other d; echo precious >other/f'
  const placed = { call: 'renameSync', on: '/d/f$', when: 'after' } as const
  function place() {
    const scratch = new Scratch().init({ 'd/f': 'one\n', 'other/f': 'other\n' })
    scratch.turn('all', () => scratch.write({ 'd/f': 'two\n' }))
    return { scratch, open: fs.openSync(scratch.at('d/f'), 'a') }
  }
  const check = (scratch: Scratch) => {
    expect(scratch.read('other/f')).toBe('precious\n')
    expect(allTexts(scratch)).toContain('two\nmine\n')
    expect(leftovers(scratch)).toEqual([])
  }

  test('after a kill: nothing is put behind the link', () => {
    const { scratch, open } = place()
    killedAt(scratch, ['renameSync', '/d/f'], 'undo')
    fs.writeSync(open, 'mine\n')
    execFileSync('sh', ['-c', away], { cwd: scratch.root })
    expect(scratch.ckpt('status').warnings.join()).toContain('/kept/')
    check(scratch)
  })

  test('amid an undo: nothing is put behind the link', () => {
    const { scratch } = place()
    const write = `for one in ${OWN}/tmp/*.old; do echo mine >>$one; done`
    const { code, error } = undone(scratch, [{ ...placed, run: `${write}; ${away}` }])
    expect([code, error.message]).toEqual([4, expect.stringContaining('/kept/')])
    check(scratch)
  })
})

describe.each([
  ['beside the worktree', false],
  ['on another mount', true],
])('a file is written to before and after it goes, with the store %s', (_, mount) => {
  test.each([
    ['replaced', 'f', '/f$', 'echo line-2 >>f'],
    ['replaced, and saved anew', 'f', '/f$', 'echo line-2 >saved; mv saved f'],
    ['deleted', 'new', '\\.old$', 'echo line-2 >>new'],
    ['deleted, and saved anew', 'new', '\\.old$', 'echo line-2 >saved; mv saved new'],
  ])('%s', (_, file, on, afterwards) => {
    const moved = { call: 'renameSync', on } as const
    const specs: Amid[] = [
      { ...moved, when: 'before', run: `echo line-1 >>${file}` },
      { ...moved, when: 'after', run: afterwards },
    ]
    const scratch = new Scratch().init({ f: 'one\n', 'a.txt': 'one\n' })
    scratch.turn('all', () =>
      scratch.write({ 'a.txt': 'two\n', ...(file === 'f' ? { f: 'two\n' } : { new: 'two\n' }) }),
    )
    const { code, error } = undone(scratch, specs, { mount })
    expect(code).toBe(4)
    expect(error.message).toContain('What had been written was taken back')
    for (const word of ['line-1', 'line-2']) expect(allTexts(scratch)).toContain(word)
    expect(scratch.read('a.txt')).toBe('two\n')
    expect(leftovers(scratch)).toEqual([])
    expect(scratch.ckpt('verify').problems).toEqual([])
  })
})

describe('a closed directory, with the store on another mount', () => {
  function place() {
    const scratch = new Scratch().init({ 'd/f': 'one\n', z: 'one\n' })
    const uid = scratch.handOver()
    const d = scratch.at('d')
    const run = (...args: string[]) => {
      const { code, stdout } = scratch.run([...args, '--json'], { uid })
      return { code, ...JSON.parse(stdout) }
    }
    fs.chmodSync(d, 0o555)
    run('mark', 'prompt', '--session', 's')
    fs.chmodSync(d, 0o755)
    for (const at of ['d/f', 'z']) fs.writeFileSync(scratch.at(at), 'two\n')
    fs.chmodSync(d, 0o555)
    run('mark', 'stop', '--session', 's')
    return { scratch, uid, run }
  }
  const inD = { on: '/d/\\.ckpt-', when: 'after' } as const

  const full = { call: 'writeFileSync', on: '^two\\n$|^one\\n$', when: 'before', nth: 2, fail: 'ENOSPC' } as const

  test.each<[string, Amid[], number]>([
    ['is written into', [{ ...inD, call: 'linkSync', run: 'echo mine >>d/f' }], 4],
    ['has no room until another file is in its place', [full], 0],
    ['has no room', [full, { ...full, nth: 3 }], 1],
    ['is closed once more', [{ ...inD, call: 'linkSync', run: 'chmod 600 d' }], 4],
  ])('%s: nothing is left in it, and the next command goes on', (_, specs, ends) => {
    const { scratch, uid, run } = place()
    const { code } = undone(scratch, specs, { mount: true, uid })
    expect(code).toBe(ends)
    fs.chmodSync(scratch.at('d'), 0o555)
    expect(run('snapshot').code).toBe(0)
    expect(leftovers(scratch)).toEqual([])
    if (specs[0]!.run?.includes('mine')) expect(scratch.read('d/f')).toBe('two\nmine\n')
    expect((fs.statSync(scratch.at('d')).mode & 0o777).toString(8)).toBe('555')
    expect(run('verify').problems).toEqual([])
  })

  test('is closed again after a kill: the undo is finished', () => {
    const { scratch, uid, run } = place()
    const vars = amid(scratch, [{ ...inD, call: 'openSync', kill: true }], { mount: true })
    expect(scratch.runApart(['undo'], { vars, uid })).toMatchObject({ code: 128, stderr: '' })
    fs.chmodSync(scratch.at('d'), 0o555)
    expect(run('status').warnings).toEqual(['A killed undo was finished.'])
    expect([scratch.read('d/f'), leftovers(scratch)]).toEqual(['one\n', []])
  })
})

test('what is no file and took the place of one stays where people see it, also with the store on another mount', () => {
  const scratch = new Scratch().init({ f: 'one\n' })
  scratch.turn('new', () => scratch.write({ new: 'two\n' }))
  const old = { call: 'renameSync', on: '\\.old$' } as const
  const { code, error } = undone(
    scratch,
    [
      { ...old, when: 'before', run: 'rm new; mkdir new; echo mine >new/mine' },
      { ...old, when: 'after', run: 'echo other >new' },
    ],
    { mount: true },
  )
  expect(code).toBe(4)
  expect(error.message).toMatch(/new~[0-9a-f]{12}/)
  expect(allTexts(scratch)).toContain('mine')
  expect(scratch.read('new')).toBe('other\n')
  expect(leftovers(scratch)).toEqual([])
  expect(scratch.ckpt('snapshot').checkpoint).toMatchObject({ kind: 'manual' })
})

test('what was written to a file whose directory is moved away with it, with the store on another mount, is named', () => {
  const scratch = new Scratch().init({ 'd/f': 'one\n' })
  scratch.turn('new', () => scratch.write({ 'd/new': 'two\n' }))
  const old = { call: 'renameSync', on: '\\.old$' } as const
  const specs: Amid[] = [
    { ...old, when: 'before', run: 'echo mine >>d/new' },
    { ...old, when: 'after', run: 'mv d moved' },
  ]
  const { code, error } = undone(scratch, specs, { mount: true })
  expect(code).toBe(4)
  const [name] = /\.ckpt-[0-9a-f]{12}-0\.old/.exec(error.message) ?? []
  expect(scratch.read(`moved/${name}`)).toBe('two\nmine\n')
})

test('an undo of a file to a directory that is killed in the middle is finished without a word of others', () => {
  const scratch = new Scratch().init({ 'd/x': 'one\n' })
  scratch.turn('a file', () => {
    scratch.remove('d')
    scratch.write({ d: 'two\n' })
  })
  killedAt(scratch, ['mkdirSync', '/d'], 'undo')
  expect(scratch.ckpt('status').warnings).toEqual(['A killed undo was finished.'])
  expect(scratch.read('d/x')).toBe('one\n')
})
