// What is left of a store that was never made, and what a store lacks that a backup brought back: it goes, or is made, and nobody fails of it.
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { realEnv } from '../../src/env.ts'
import { createStore } from '../../src/git/frame.ts'
import { removeTree } from '../../src/git/whole-file.ts'
import { claimHalfMade } from '../../src/ops/worktree/half-made.ts'
import { killedAt } from '../support/amid.ts'
import { envOf } from '../support/in-process.ts'
import { isRoot, Scratch } from '../support/scratch.ts'

const left = (scratch: Scratch) => fs.readdirSync(scratch.at('.git/ckpt')).filter((name) => name.endsWith('.tmp'))

test('a store whose maker was killed goes with the next command that makes it, or opens it to write', () => {
  const scratch = new Scratch().init()
  const mark = ['mark', 'prompt', '--session', 's']
  const moments = [
    ['writeFileSync', '/ckpt-owner'],
    ['chmodSync', '/config'],
    ['chmodSync', '/refs'],
  ] as const
  for (const moment of moments) killedAt(scratch, moment, ...mark)
  expect([scratch.exists('.git/ckpt/store.git'), left(scratch).length]).toEqual([false, 3])
  expect(scratch.run(['status']).code).toBe(0)
  expect(left(scratch)).toHaveLength(3)
  scratch.ckpt('snapshot')
  expect(left(scratch)).toEqual([])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test("a store whose maker was killed when it had its name is nobody's", () => {
  const scratch = new Scratch().init()
  killedAt(scratch, ['renameSync', '/store.git'], 'snapshot')
  expect(fs.readdirSync(scratch.at('.git/ckpt/store.git'))).toContain('ckpt-owner')
  scratch.ckpt('snapshot')
  expect(fs.readdirSync(scratch.at('.git/ckpt/store.git'))).not.toContain('ckpt-owner')
})

test('one that names nobody goes when it is old; a file of such a name, and one that is closed, stay', () => {
  const scratch = new Scratch().init()
  killedAt(scratch, ['mkdirSync', '.tmp'], 'snapshot')
  const [name] = left(scratch)
  scratch.ckpt('snapshot')
  expect(left(scratch)).toEqual([name])
  fs.utimesSync(scratch.at(`.git/ckpt/${name}`), 4e9, 4e9) // made while the clock was ahead
  scratch.write({ '.git/ckpt/store.0123456789ab.tmp': 'mine\n' })
  scratch.ckpt('snapshot')
  expect(left(scratch)).toEqual(['store.0123456789ab.tmp'])
  if (!isRoot) return
  const closed = scratch.at('.git/ckpt/store.ba9876543210.tmp')
  const uid = scratch.handOver()
  fs.mkdirSync(closed, { mode: 0o700 })
  expect(scratch.run(['snapshot'], { uid }).code).toBe(0)
  expect(fs.existsSync(closed)).toBe(true)
})

test('what is removed names who was at work in it to the end: where that is killed, the next command knows', () => {
  const scratch = new Scratch()
  const env = envOf(scratch)
  const parcel = scratch.at('parcel-00.tmp')
  scratch.write({
    'parcel-00.tmp/HEAD': 'x',
    'parcel-00.tmp/refs/x': 'x',
    'parcel-00.tmp/ckpt-owner': 'x',
    'parcel-00.tmp/zz': 'x',
  })
  const gone: string[] = []
  const unlinkSync = (at: fs.PathLike) => {
    gone.push(path.relative(parcel, String(at)))
    fs.unlinkSync(at)
  }
  removeTree({ ...env, files: { ...env.files, unlinkSync } }, parcel, 'ckpt-owner')
  expect([gone.length, gone.at(-1)]).toEqual([4, 'ckpt-owner'])
  expect(fs.existsSync(parcel)).toBe(false)
})

test('drafts of files that were never put in their place go when they are old', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const [store, git, own] = ['.git/ckpt', '.git/ckpt/store.git', '.git/ckpt/worktrees/@main']
  killedAt(scratch, ['writeFileSync', '.0.tmp'], 'undo')
  const drafts = () =>
    [store, git, own].flatMap((at) => fs.readdirSync(scratch.at(at)).filter((name) => name.endsWith('.tmp')))
  expect(drafts()).toEqual([expect.stringMatching(/^lock\.[0-9a-f]{16}\.0\.tmp$/)])
  const made = ['forgetting.json.0123456789ab.tmp', 'bytes.0123456789ab.tmp', 'lock.0123456789ab.git.tmp']
  for (const name of made) scratch.write({ [`${store}/${name}`]: 'x', [`${own}/${name}`]: 'x' })
  scratch.write({ [`${git}/shallow.0123456789ab.tmp`]: 'x' })
  scratch.ckpt('snapshot')
  expect(drafts()).toHaveLength(8)
  for (const [at, time] of [
    [own, 1e9],
    [git, 1e9],
    [store, 4e9], // made while the clock was ahead
  ] as const)
    for (const name of fs.readdirSync(scratch.at(at))) fs.utimesSync(scratch.at(`${at}/${name}`), time, time)
  scratch.ckpt('snapshot')
  expect(drafts()).toEqual([])
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test("drafts of hooks and of agents' settings go with the next install or uninstall, when they are old; others stay", () => {
  const scratch = new Scratch().init()
  const hex = '0123456789ab'
  const ours = [
    `.git/hooks/pre-commit.${hex}.tmp`,
    `.git/ckpt/hooks/gate-more.sh.${hex}.tmp`,
    `.claude/settings.json.${hex}.tmp`,
  ]
  const others = [`.git/hooks/other.${hex}.tmp`, '.git/hooks/pre-commit.tmp', `.claude/other.json.${hex}.tmp`]
  const put = (when: number) => {
    for (const name of [...ours, ...others]) {
      scratch.write({ [name]: 'x' })
      fs.utimesSync(scratch.at(name), when, when)
    }
  }
  const left = () => [...ours, ...others].filter((name) => fs.existsSync(scratch.at(name)))
  for (const action of ['install', 'uninstall']) {
    for (const [when, stay] of [
      [Date.now() / 1000, [...ours, ...others]],
      [1e9, others],
    ] as const) {
      put(when)
      scratch.ckpt('hooks', action)
      scratch.ckpt('agent', action, 'claude', '--scope', 'project', '--yes')
      expect([action, left()]).toEqual([action, stay])
    }
  }
})

test('an install of the hooks that was cut short is told as that, and the next one ends it', () => {
  const scratch = new Scratch().init()
  killedAt(scratch, ['renameSync', '/installed.json'], 'hooks', 'install')
  expect(scratch.ckpt('hooks', 'status').warnings.join()).toContain('its install was cut short')
  expect(scratch.ckpt('hooks', 'install').warnings).toEqual([])
})

test('a git that is killed, and the second of two that make the store, leave nothing', async () => {
  const scratch = new Scratch().init()
  const git = `${scratch.base}/bin/git`
  fs.mkdirSync(`${scratch.base}/bin`)
  const script = `#!/bin/sh\nPATH=\${PATH#*:}\ncase "$*" in *--bare*) git "$@"; kill -9 $$;; esac\nexec git "$@"\n`
  fs.writeFileSync(git, script, { mode: 0o755 })
  const vars = { PATH: `${scratch.base}/bin:${process.env.PATH}` }
  expect(scratch.run(['snapshot'], { vars }).code).toBe(1)
  expect(left(scratch)).toEqual([])
  const env = { ...realEnv(), vars: scratch.vars }
  const place = { directory: scratch.at('.git/ckpt'), worktreeId: '@main', hash: 'sha1' as const }
  const make = () => createStore(env, place, claimHalfMade(env, 'store'))
  expect((await Promise.all([make(), make(), make()])).sort()).toEqual([false, false, true])
  expect(fs.readdirSync(place.directory).sort()).toEqual(['store.git', 'worktrees'])
  expect(fs.readdirSync(`${place.directory}/store.git`)).not.toContain('ckpt-owner')
  expect(scratch.ckpt('snapshot').checkpoint).not.toBe(null)
})

test('what a git left that was killed while it packed anew is no damage, and goes with the next prune', () => {
  const scratch = new Scratch().init()
  for (const text of ['two', 'three', 'four']) scratch.turn(text, () => scratch.write({ 'a.txt': `${text}\n` }))
  expect(scratch.run(['prune']).code).toBe(0)
  const packs = scratch.at('.git/ckpt/store.git/objects/pack')
  const names = () => fs.readdirSync(packs).sort()
  const [one] = names().filter((name) => name.endsWith('.pack'))
  const pack = one!.replace(/\.pack$/, '')
  const other = `pack-${'0123456789'.repeat(4)}`
  // The new pack is there, and its index is not yet.
  fs.copyFileSync(`${packs}/${pack}.pack`, `${packs}/${other}.pack`)
  fs.copyFileSync(`${packs}/${pack}.idx`, `${packs}/.tmp-4321-${other}.idx`)
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(scratch.run(['doctor']).code).toBe(0)
  expect(scratch.run(['prune', '--dry-run']).code).toBe(0)
  // An old pack is gone, and its index is not yet.
  const old = `pack-${'9876543210'.repeat(4)}`
  fs.copyFileSync(`${packs}/${pack}.idx`, `${packs}/${old}.idx`)
  expect(scratch.ckpt('prune', '--keep', '1').removed).toHaveLength(2)
  expect(names()).toEqual([expect.stringMatching(/^pack-\w+\.idx$/), expect.stringMatching(/^pack-\w+\.pack$/)])
  expect(names().join()).not.toMatch(/0123456789|9876543210/)
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('three\n')
  // Without that index nobody knows what the pack was: it may be all there is.
  fs.copyFileSync(`${packs}/${names()[1]}`, `${packs}/${other}.pack`)
  expect(scratch.run(['prune']).code).toBe(7)
})

test('a store that a backup brought back without its empty directories serves every command', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'b\n' }))
  const bundle = path.join(scratch.base, 'checkpoints.bundle')
  const remote = path.join(scratch.base, 'remote.git')
  scratch.git('init', '-q', '--bare', remote)
  const store = scratch.at('.git/ckpt')
  const drop = (directory: string) => {
    for (const { name } of fs.readdirSync(directory, { withFileTypes: true }).filter((one) => one.isDirectory()))
      drop(path.join(directory, name))
    if (fs.readdirSync(directory).length === 0) fs.rmdirSync(directory)
  }
  drop(store)
  const backup = path.join(scratch.base, 'backup')
  fs.renameSync(store, backup)
  expect(fs.existsSync(path.join(backup, 'store.git/objects/pack'))).toBe(false)
  for (const words of [
    'verify',
    'doctor',
    `export ${bundle}`,
    `import ${bundle}`,
    `push ${remote}`,
    `pull ${remote}`,
    'undo',
    'snapshot',
    'prune',
    'forget b.txt',
    'doctor --fix',
  ]) {
    fs.rmSync(store, { recursive: true, force: true })
    fs.cpSync(backup, store, { recursive: true })
    const { code, document } = scratch.tryCkpt(...words.split(' '))
    expect([words, code, document.error]).toEqual([words, 0, undefined])
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
})

test.each<[string, (scratch: Scratch) => void]>([
  ['.git/ckpt', (scratch) => scratch.write({ '.git/ckpt': 'junk\n' })],
  ['.git/ckpt', (scratch) => fs.symlinkSync('nowhere', scratch.at('.git/ckpt'))],
  ['.git/ckpt/store.git', (scratch) => scratch.write({ '.git/ckpt/store.git': 'junk\n' })],
  ['.git/ckpt/store.git', (scratch) => scratch.write({ '.git/ckpt/store.git/refs/x': 'junk\n' })],
])('what lies in the place of a store that never was is no store without turns: it is named (%s)', (name, put) => {
  const scratch = new Scratch().init()
  put(scratch)
  for (const args of [['verify'], ['doctor', '--fix'], ['list'], ['mark', 'prompt', '--session', 's']]) {
    const { code, document } = scratch.tryCkpt(...args)
    expect([args[0], code, document.error.code]).toEqual([args[0], 7, 'DAMAGED'])
    expect(document.error.hints[0]).toContain(`ls -ld ${scratch.at(name)} `)
  }
  fs.renameSync(scratch.at(name), `${scratch.base}/aside`)
  scratch.turn('one', () => scratch.write({ 'a.txt': 'a\n' }))
  expect(scratch.ckpt('verify').problems).toEqual([])
})
