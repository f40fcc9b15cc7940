/**
 * Promises 1 and 8, where what an undo had put aside meets something odd by the time it is swept: no later command is held up
 * by it, and what somebody wrote is kept and named.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { realEnv } from '../../src/env.ts'
import { withLock } from '../../src/ops/worktree/lock.ts'
import { type Amid, amid, killedAt } from '../support/amid.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const OWN = '.git/ckpt/worktrees/@main'
const FAILS = { call: 'renameSync', on: '/z$', when: 'before', fail: 'EIO' } as const

/** A file and one that comes after it, both changed in the only turn. */
function place(file = 'd/f'): Scratch {
  const scratch = new Scratch().init({ [file]: 'one\n', z: 'one\n' })
  scratch.turn('both', () => scratch.write({ [file]: 'two\n', z: 'two\n' }))
  return scratch
}

function undone(scratch: Scratch, specs: readonly Amid[], { mount = false, uid = 0 } = {}): Json {
  const vars = amid(scratch, specs, { mount })
  const { code, stdout } = scratch.runApart(['undo', '--json'], { vars, ...(uid && { uid }) })
  return code === 128 ? { code } : { code, ...JSON.parse(stdout) }
}

const sh = ({ root }: Scratch, script: string) => execFileSync('sh', ['-c', script], { cwd: root })

const kept = (scratch: Scratch): string[] => {
  const at = scratch.at(`${OWN}/kept`)
  return fs.existsSync(at) ? fs.readdirSync(at).map((name) => `${at}/${name}`) : []
}

/** Every other command works, and nothing of ours is left. */
function goesOn(scratch: Scratch): void {
  expect(scratch.ckpt('mark', 'prompt', '--session', 's').ok).toBe(true)
  expect(fs.readdirSync(scratch.at(`${OWN}/tmp`))).toEqual([])
  expect(fs.existsSync(scratch.at(`${OWN}/journal.json`))).toBe(false)
  expect(scratch.ckpt('verify').problems).toEqual([])
}

describe('a directory that is a circle of links by now', () => {
  const circle = 'mv d elsewhere; ln -s d d'

  test('after a kill', () => {
    const scratch = place()
    killedAt(scratch, ['renameSync', '/d/f'], 'undo')
    sh(scratch, circle)
    expect(scratch.ckpt('status').warnings.join()).toContain('left as it is')
    expect(scratch.read('z')).toBe('one\n')
    goesOn(scratch)
  })

  test('amid an undo', () => {
    const scratch = place()
    const { code, error } = undone(scratch, [{ ...FAILS, run: circle }])
    expect([code, error.message]).toEqual([1, expect.stringContaining('was taken back')])
    expect(scratch.read('z')).toBe('two\n')
    goesOn(scratch)
  })
})

describe('a path beside which no longer name has room', () => {
  /** PATH_MAX with the NUL, less than what our names take. */
  const LONGEST = 4088
  function deep(): { scratch: Scratch; read: () => string } {
    const scratch = new Scratch().init({ z: 'one\n' })
    const names: string[] = []
    for (let left = LONGEST - scratch.root.length; left > 3; left -= 201)
      names.push('p'.repeat(Math.min(200, left - 3)))
    const cd = names.map((name) => `cd ${name}`).join(' && ')
    sh(scratch, names.map((name) => `mkdir ${name} && cd ${name}`).join(' && '))
    const put = (text: string) => sh(scratch, `${cd} && echo ${text} >f`)
    put('one')
    scratch.turn('both', () => {
      put('two')
      scratch.write({ z: 'two\n' })
    })
    return { scratch, read: () => sh(scratch, `${cd} && cat f`).toString() }
  }

  test('after a kill: the undo is finished', () => {
    const { scratch, read } = deep()
    killedAt(scratch, ['renameSync', '/f'], 'undo')
    expect(scratch.ckpt('status').warnings).toEqual(['A killed undo was finished.'])
    expect([read(), scratch.read('z')]).toEqual(['one\n', 'one\n'])
    goesOn(scratch)
  })

  test('amid an undo: it is taken back', () => {
    const { scratch, read } = deep()
    expect(undone(scratch, [FAILS]).error.message).toContain('was taken back')
    expect([read(), scratch.read('z')]).toEqual(['two\n', 'two\n'])
    goesOn(scratch)
  })
})

test('an old inode that has become too large to be read is kept, and named', () => {
  const scratch = place()
  const open = fs.openSync(scratch.at('d/f'), 'a')
  killedAt(scratch, ['renameSync', '/d/f'], 'undo')
  fs.ftruncateSync(open, 3 * 2 ** 30) // without a block of its own
  expect(scratch.ckpt('status').warnings.join()).toContain('d/f was written to at that very moment; it holds that now.')
  expect(fs.statSync(scratch.at('d/f')).size).toBe(3 * 2 ** 30)
  expect(scratch.read('z')).toBe('one\n')
  fs.rmSync(scratch.at('d/f'))
  goesOn(scratch)
})

test('a directory of the longest name that took a file’s place stays beside it, with the store on another mount', () => {
  const name = 'n'.repeat(250)
  const scratch = new Scratch().init({ z: 'one\n' })
  scratch.turn('new', () => scratch.write({ [name]: 'two\n' }))
  const aside = { call: 'renameSync', on: '\\.old$' } as const
  const { code } = undone(
    scratch,
    [
      { ...aside, when: 'before', run: `rm ${name}; mkdir ${name}; echo mine >${name}/mine` },
      { ...aside, when: 'after', run: `echo other >${name}`, kill: true },
    ],
    { mount: true },
  )
  expect(code).toBe(128)
  const vars = amid(scratch, [], { mount: true })
  const { stdout } = scratch.runApart(['status', '--json'], { vars })
  const [, beside] = /is in (n+~[0-9a-f]{12})/.exec(JSON.parse(stdout).warnings.join()) ?? []
  expect([scratch.read(`${beside}/mine`), scratch.read(name)]).toEqual(['mine\n', 'other\n'])
  goesOn(scratch)
})

test('a closed directory gets its mode back, whatever the names of the files beside it', () => {
  const scratch = new Scratch().init({ 'd/f': 'one\n', dx: 'one\n', z: 'one\n' })
  const uid = scratch.handOver()
  const run = (...args: string[]) => expect(scratch.run(args, { uid }).code).toBe(0)
  const change = (text: string) => {
    fs.chmodSync(scratch.at('d'), 0o755)
    for (const name of ['d/f', 'dx', 'z']) fs.writeFileSync(scratch.at(name), text)
    fs.chmodSync(scratch.at('d'), 0o555)
  }
  change('one\n')
  run('mark', 'prompt', '--session', 's')
  change('two\n')
  run('mark', 'stop', '--session', 's')
  const { error } = undone(scratch, [{ ...FAILS, on: '/dx$' }], { uid })
  expect(error.message).toContain('What had been written was taken back.')
  expect((fs.statSync(scratch.at('d')).mode & 0o777).toString(8)).toBe('555')
})

test('what lies in directories that are closed one in the other is found, with the store on another mount', () => {
  const scratch = new Scratch().init({ 'd/sub/f': 'one\n', z: 'one\n' })
  const uid = scratch.handOver()
  const run = (...args: string[]) => {
    const { code, stdout } = scratch.run([...args, '--json'], { uid })
    expect(code).toBe(0)
    return JSON.parse(stdout)
  }
  run('mark', 'prompt', '--session', 's')
  for (const name of ['d/sub/f', 'z']) fs.writeFileSync(scratch.at(name), 'two\n')
  run('mark', 'stop', '--session', 's')
  const open = fs.openSync(scratch.at('d/sub/f'), 'a')
  const placed = { call: 'renameSync', on: '/d/sub/f$', when: 'after', kill: true } as const
  expect(undone(scratch, [placed], { mount: true, uid }).code).toBe(128)
  fs.writeSync(open, 'mine\n')
  for (const name of ['d/sub', 'd']) fs.chmodSync(scratch.at(name), 0)
  expect(run('status').warnings.join()).toContain('d/sub/f was written to at that very moment; it holds that now.')
  expect((fs.statSync(scratch.at('d')).mode & 0o777).toString(8)).toBe('0')
  fs.chmodSync(scratch.at('d'), 0o755)
  expect((fs.statSync(scratch.at('d/sub')).mode & 0o777).toString(8)).toBe('0')
  expect([scratch.read('d/sub/f'), fs.readdirSync(scratch.at('d/sub'))]).toEqual(['two\nmine\n', ['f']])
  expect(kept(scratch)).toEqual([])
})

test('where no links can be made, what came to a path meanwhile is not replaced by what goes back there', () => {
  const scratch = new Scratch().init({ z: 'one\n' })
  scratch.turn('new', () => scratch.write({ new: 'two\n' }))
  const aside = { call: 'renameSync', on: '\\.old$' } as const
  const linkless = Array.from({ length: 9 }, (_, i) => {
    return { call: 'linkSync', on: '/new$|\\.old$', nth: i + 1, when: 'before', fail: 'EPERM' } as const
  })
  const { code, error } = undone(scratch, [
    ...linkless,
    { ...aside, when: 'before', run: 'echo mine >>new' },
    { ...aside, when: 'after', run: 'echo later >new' },
  ])
  expect([code, error.message]).toEqual([4, expect.stringContaining('/kept/')])
  expect(scratch.read('new')).toBe('later\n')
  expect(kept(scratch).map((at) => fs.readFileSync(at, 'utf8'))).toEqual(['two\nmine\n'])
  goesOn(scratch)
})

test('a lock that could not be given back is given back later, though its holder lives on', async () => {
  const { base } = new Scratch()
  const lock = path.join(base, 'lock')
  const env = realEnv()
  let fails = 1
  const files = {
    ...env.files,
    unlinkSync: (at: fs.PathLike) => {
      if (at === lock && fails-- > 0) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' })
      env.files.unlinkSync(at)
    },
  }
  await withLock({ ...env, files }, { path: lock, command: 'undo', wait: 0 }, async () => undefined)
  expect(fs.existsSync(lock)).toBe(true)
  for (let i = 0; i < 100 && fs.existsSync(lock); i++) await sleep(100)
  expect(fs.existsSync(lock)).toBe(false)
})
