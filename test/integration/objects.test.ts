// Objects as packs and loose files: written by us, read by git.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { deflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { HashName, Oid } from '../../src/core/ids.ts'
import { formatTree } from '../../src/core/tree-object.ts'
import { type Env, type Files, realEnv } from '../../src/env.ts'
import { ObjectStore } from '../../src/git/objects.ts'
import type { ObjectType } from '../../src/git/pack.ts'
import { Scratch } from '../support/scratch.ts'
import { inStore, storeOf } from '../support/store-surgery.ts'

interface World {
  files?: Partial<Files>
  sync?: Env['sync']
}

function bareStore(
  hash: HashName,
  { files, ...world }: World = {},
): { objects: ObjectStore; gitDir: string; git: Git } {
  const scratch = new Scratch()
  const gitDir = path.join(scratch.base, 'store.git')
  execFileSync('git', ['init', '-q', '--bare', `--object-format=${hash}`, gitDir])
  const env: Env = { ...realEnv(), ...world, vars: scratch.vars, files: { ...fs, ...files } }
  const git: Git = (args, input) => execFileSync('git', [`--git-dir=${gitDir}`, ...args], { input, stdio: 'pipe' })
  return { objects: new ObjectStore(env, { gitDir, hash, vars: { GIT_DIR: gitDir } }), gitDir, git }
}

test.each(['sha1', 'sha256'] as const)(
  'a small object of %s in a file of its own is read without a git; what is wrong with another is for git to tell',
  async (hash) => {
    const { objects: writer, gitDir } = bareStore(hash)
    const texts = ['', 'text', 'x'.repeat(16_000), 'y'.repeat(2 << 20)]
    const blobs = texts.map((text) => writer.write('blob', Buffer.from(text)))
    const tree = writer.write('tree', formatTree([{ mode: '100644', name: 'f', oid: blobs[1]! }]))
    const commit = writer.write(
      'commit',
      Buffer.from(`tree ${tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\n`),
    )
    writer.flush()
    writer.close()
    let started = 0
    const env = realEnv()
    const spawn: Env['spawn'] = (...given) => {
      started++
      return env.spawn(...given)
    }
    const reading = () => new ObjectStore({ ...env, spawn }, { gitDir, hash, vars: { GIT_DIR: gitDir } })
    const objects = reading()
    for (const [i, oid] of blobs.slice(0, 3).entries())
      expect(await objects.read(oid)).toEqual({ type: 'blob', bytes: Buffer.from(texts[i]!) })
    expect(await objects.read(tree)).toMatchObject({ type: 'tree' })
    expect(await objects.read(commit)).toMatchObject({ type: 'commit' })
    await objects.prove(blobs.slice(0, 3))
    expect(await objects.damaged(blobs.slice(0, 3))).toEqual(new Set())
    expect(await objects.has(tree)).toBe(true)
    expect(started).toBe(0)
    expect((await objects.get(blobs[3]!, 'blob')).length).toBe(2 << 20) // a small file, but of much
    expect(await objects.read(objects.oidOf('blob', Buffer.from('absent')))).toBe(null)
    expect(started).toBe(1)
    objects.close()

    const file = writer.loosePath(blobs[1]!)
    const whole = fs.readFileSync(file)
    const damage: [string, Buffer][] = [
      ['cut short', whole.subarray(0, -6)],
      ['empty', Buffer.alloc(0)],
      ['of another object', fs.readFileSync(writer.loosePath(blobs[2]!))],
      ['no object', deflateSync('text')],
      ['not deflated', Buffer.from('text')],
    ]
    for (const [what, bytes] of damage) {
      fs.rmSync(file)
      fs.writeFileSync(file, bytes)
      const again = reading()
      await expect(again.prove([blobs[1]!]), what).rejects.toMatchObject({ code: 'DAMAGED' })
      expect(await again.damaged(blobs.slice(0, 3)), what).toEqual(new Set([blobs[1]]))
      again.close()
    }
  },
)

type Git = (args: readonly string[], input?: string) => Buffer

const packsIn = (gitDir: string) =>
  fs.readdirSync(path.join(gitDir, 'objects/pack')).filter((name) => name.endsWith('.pack'))

/** Around every boundary of a pack's object header, and of zlib's stored blocks. */
const SIZES = [0, 1, 15, 16, 17, 2047, 2048, 2049, 65_534, 65_535, 65_536, 200_000, 262_143, 262_144, 900_000]

test.each([
  ['sha1', false],
  ['sha1', true],
  ['sha256', false],
  ['sha256', true],
] as const)('git reads a pack of %s objects back (hurried: %s)', async (hash, hurried) => {
  const { objects, gitDir, git } = bareStore(hash)
  objects.hurried = hurried
  const written = new Map<Oid, Buffer>()
  for (const size of SIZES) {
    for (const bytes of [randomBytes(size), Buffer.alloc(size, 'text ')])
      written.set(objects.write('blob', bytes), bytes)
  }
  const rows = [...written.keys()].map((oid, i) => ({ mode: '100644' as const, name: `f${i}`, oid }))
  const tree = objects.write('tree', formatTree(rows))
  const text = `tree ${tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nmessage\n`
  const commit = objects.write('commit', Buffer.from(text))
  expect(() => git(['cat-file', '-e', commit])).toThrow() // nobody else sees it yet
  expect((await objects.get(commit, 'commit')).toString()).toBe(text)
  objects.flush()
  expect(packsIn(gitDir)).toHaveLength(1)
  git(['update-ref', 'refs/heads/main', commit])
  git(['fsck', '--full', '--strict'])
  git(['verify-pack', path.join(gitDir, 'objects/pack', packsIn(gitDir)[0]!)])
  for (const [oid, bytes] of written) expect(git(['cat-file', 'blob', oid]).equals(bytes)).toBe(true)
  // What moves refs looks at the commit alone, which is no part of the pack.
  expect(fs.existsSync(objects.loosePath(commit))).toBe(true)
  expect(fs.existsSync(objects.loosePath(tree))).toBe(false)
  objects.close()
})

test('a few objects are loose, and so is a large one', () => {
  const { objects, gitDir } = bareStore('sha1')
  const few = ['a', 'b', 'c'].map((text) => objects.write('blob', Buffer.from(text)))
  objects.flush()
  const large = objects.write('blob', randomBytes(1 << 20))
  for (const oid of [...few, large]) expect(fs.existsSync(objects.loosePath(oid))).toBe(true)
  expect(packsIn(gitDir)).toEqual([])
})

test('what is held back stays bounded', () => {
  const { objects, gitDir } = bareStore('sha1')
  for (let i = 0; i < 40; i++) objects.write('blob', randomBytes(1_000_000))
  expect(packsIn(gitDir).length).toBeGreaterThanOrEqual(2)
})

test('what was removed under us is not said to be there, and is written again', async () => {
  const { objects, gitDir, git } = bareStore('sha1')
  const all = Array.from({ length: 20 }, (_, i) => Buffer.from(`number ${i}`))
  const oids = all.map((bytes) => objects.write('blob', bytes))
  expect(await objects.has(oids[0]!)).toBe(true) // held back: it will be
  objects.flush()
  expect(await objects.has(oids[0]!)).toBe(true)
  for (const name of fs.readdirSync(path.join(gitDir, 'objects/pack')))
    fs.unlinkSync(path.join(gitDir, 'objects/pack', name))
  objects.forget()
  expect(await objects.has(oids[0]!)).toBe(false)
  for (const bytes of all) objects.write('blob', bytes)
  objects.flush()
  expect(git(['cat-file', 'blob', oids[7]!]).toString()).toBe('number 7')
  objects.close()
})

test('everything is synced before it is relied on: our own objects, loose and packed, and packs of other processes', async () => {
  const open = new Map<number, string>()
  const synced = new Set<string>()
  const files: Partial<Files> = {
    openSync: (file, flags, mode) => {
      const fd = fs.openSync(file, flags, mode)
      open.set(fd, String(file))
      return fd
    },
    fsyncSync: (fd) => {
      synced.add(path.basename(open.get(fd)!))
      fs.fsyncSync(fd)
    },
  }
  const sync: Env['sync'] = async (fd) => {
    synced.add(path.basename(open.get(fd)!))
    await realEnv().sync(fd)
  }
  const { objects, gitDir } = bareStore('sha1', { files, sync })
  const other = new ObjectStore({ ...realEnv() }, { gitDir, hash: 'sha1', vars: {} })
  const write = (store: ObjectStore, type: ObjectType, { count, salt }: { count: number; salt: string }) =>
    Array.from({ length: count }, (_, i) => store.write(type, Buffer.from(`${salt} ${i}`)))
  write(other, 'blob', { count: 20, salt: 'theirs' })
  other.flush()
  write(objects, 'blob', { count: 20, salt: 'ours' })
  objects.flush()
  const loose = write(objects, 'blob', { count: 2, salt: 'loose' })
  await objects.syncFresh()
  const packs = packsIn(gitDir)
  expect(packs).toHaveLength(2)
  for (const pack of packs) {
    expect(synced).toContain(pack)
    expect(synced).toContain(pack.replace(/pack$/, 'idx'))
  }
  for (const oid of loose) expect(synced).toContain(oid.slice(2))
  expect(synced).toContain('pack') // the directory
  synced.clear()
  await objects.syncFresh()
  expect([...synced]).toEqual([])
})

/** More than a few objects make a pack. */
function withPack(): Scratch {
  const scratch = new Scratch()
  scratch.git('init', '-q')
  scratch.write(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, `${i}\n`])))
  scratch.ckpt('snapshot')
  return scratch
}

test.each(['whole', 'without its bytes, for the power failed'])(
  'a pack whose writer was killed before its index was there, %s, is no damage, and goes with the next prune',
  (how) => {
    const scratch = withPack()
    const packs = path.join(storeOf(scratch), 'objects/pack')
    const pack = fs.readdirSync(packs).find((name) => name.endsWith('.pack'))!
    const name = `pack-${'ab'.repeat(20)}`
    if (how === 'whole') fs.copyFileSync(path.join(packs, pack), path.join(packs, `${name}.pack`))
    else fs.writeFileSync(path.join(packs, `${name}.pack`), '')
    fs.writeFileSync(path.join(storeOf(scratch), 'unsynced', name), '')
    expect(scratch.ckpt('verify')).toMatchObject({ ok: true })
    expect(scratch.ckpt('prune')).toMatchObject({ ok: true })
    expect(fs.existsSync(path.join(packs, `${name}.pack`))).toBe(false)
    expect(fs.readdirSync(path.join(storeOf(scratch), 'unsynced'))).toEqual([])
    inStore(scratch, 'fsck', '--full')
  },
)

test('a pack that was not synced when the power failed is set aside by doctor', () => {
  const scratch = withPack()
  const packs = path.join(storeOf(scratch), 'objects/pack')
  const name = `pack-${'ab'.repeat(20)}`
  for (const suffix of ['pack', 'idx']) fs.writeFileSync(path.join(packs, `${name}.${suffix}`), '')
  expect(scratch.tryCkpt('doctor', '--fix').document.ok).toBe(false) // nothing says that it was not synced
  fs.writeFileSync(path.join(storeOf(scratch), 'unsynced', name), '')
  expect(scratch.tryCkpt('doctor').document.findings).toContainEqual(
    expect.objectContaining({ name: 'packs', ok: false, mend: 'ckpt doctor --fix' }),
  )
  expect(scratch.ckpt('doctor', '--fix').findings).toContainEqual(
    expect.objectContaining({ name: 'packs', ok: true, fixed: true }),
  )
  expect(fs.readdirSync(packs).filter((file) => file.startsWith(name))).toEqual([])
  expect(scratch.ckpt('verify')).toMatchObject({ ok: true })
  scratch.ckpt('prune')
  inStore(scratch, 'fsck', '--full')
})

test.each([
  ['before this system started', 0],
  ['since', Date.now() / 1000],
])('one of which nothing is left, made %s: every command goes on, and it is gone after a prune', (_, time) => {
  const scratch = withPack()
  const packs = path.join(storeOf(scratch), 'objects/pack')
  const name = `pack-${'ab'.repeat(20)}`
  for (const suffix of ['pack', 'idx']) {
    fs.writeFileSync(path.join(packs, `${name}.${suffix}`), '')
    fs.utimesSync(path.join(packs, `${name}.${suffix}`), time, time)
  }
  fs.writeFileSync(path.join(storeOf(scratch), 'unsynced', name), '')
  scratch.turn('goes on', () => scratch.write({ f7: 'other\n' }))
  const isThere = () => fs.readdirSync(packs).some((file) => file.startsWith(name))
  expect([isThere(), scratch.tryCkpt('verify').code]).toEqual(time === 0 ? [false, 0] : [true, 7])
  scratch.ckpt('undo')
  scratch.ckpt('prune')
  expect([isThere(), fs.readdirSync(path.join(storeOf(scratch), 'unsynced'))]).toEqual([false, []])
  expect(scratch.ckpt('verify')).toMatchObject({ ok: true })
  inStore(scratch, 'fsck', '--full')
})

test('one that cannot be looked at keeps nobody from reading', () => {
  const scratch = withPack()
  const pack = path.join(storeOf(scratch), 'objects/pack', `pack-${'ab'.repeat(20)}`)
  fs.mkdirSync(`${pack}.pack`)
  fs.writeFileSync(`${pack}.idx`, '')
  fs.utimesSync(`${pack}.idx`, 0, 0)
  fs.writeFileSync(path.join(storeOf(scratch), 'unsynced', path.basename(pack)), '')
  for (const command of ['list', 'status']) expect(scratch.tryCkpt(command).code).toBe(0)
})

test('who syncs in steps goes on only when the others are served, and to the end', async () => {
  let synced = 0
  const { objects } = bareStore('sha1', {
    sync: async (fd) => {
      await realEnv().sync(fd)
      synced++
    },
  })
  const COUNT = 20
  for (let i = 0; i < COUNT; i++) {
    objects.write('blob', Buffer.from(`${i}`))
    objects.flush() // a file of its own each
  }
  const before: number[] = []
  let serve = () => {}
  const others = () =>
    new Promise<void>((resolve) => {
      before.push(synced)
      serve = resolve
    })
  const syncing = objects.syncFreshInSteps(others)
  for (let step = 1; step <= 3; step++) {
    await expect.poll(() => before.length).toBe(step)
    await new Promise(setImmediate)
    expect(synced).toBe(before.at(-1)) // nothing while they are waited for
    serve()
  }
  await syncing
  expect(before[0]).toBeLessThan(COUNT)
  expect(synced).toBeGreaterThanOrEqual(COUNT)
})

test('of one that is whole, and whose index lost its bytes, the next command makes that anew', () => {
  const scratch = withPack()
  const packs = path.join(storeOf(scratch), 'objects/pack')
  const index = fs.readdirSync(packs).find((name) => name.endsWith('.idx'))!
  const before = fs.readFileSync(path.join(packs, index))
  fs.truncateSync(path.join(packs, index))
  fs.utimesSync(path.join(packs, index), 0, 0)
  fs.writeFileSync(path.join(storeOf(scratch), 'unsynced', index.replace('.idx', '')), '')
  const told = scratch.ckpt('list', '--session', 'manual').warnings
  expect(told.join()).toMatch(/The index of pack-[0-9a-f]+, which was not synced when the power failed, was made anew/)
  expect(fs.readFileSync(path.join(packs, index)).equals(before)).toBe(true)
  scratch.turn('goes on', () => scratch.write({ f7: 'other\n' }))
  scratch.ckpt('undo')
  expect(scratch.read('f7')).toBe('7\n')
  scratch.ckpt('prune')
  expect(fs.readdirSync(path.join(storeOf(scratch), 'unsynced'))).toEqual([])
  expect(scratch.ckpt('verify')).toMatchObject({ ok: true })
  inStore(scratch, 'fsck', '--full')
})
