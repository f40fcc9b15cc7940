// Refs and HEAD read as files: what git says of them, or nothing, and then git is asked.
import fs from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Env } from '../../src/env.ts'
import { HeadReader } from '../../src/git/head.ts'
import { listRefs, plainTips } from '../../src/git/refs.ts'
import { findRepository } from '../../src/git/repository.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'
import { inStore, storeOf } from '../support/store-surgery.ts'

const LIVE = 'refs/ckpt/@main/s/live'

/** Writes an object into the store, as it stands there. */
function written(scratch: Scratch, type: string, content: string): string {
  fs.writeFileSync(`${scratch.base}/object`, content)
  return inStore(scratch, 'hash-object', '-w', '--literally', '-t', type, `${scratch.base}/object`).trim()
}

const COMMIT = (header: string, message: string) => (scratch: Scratch) => {
  const tree = inStore(scratch, 'rev-parse', `${LIVE}^{tree}`).trim()
  const who = 'A U Thor <author@example.com> 1700000000 +0000'
  const oid = written(scratch, 'commit', `tree ${tree}\nauthor ${who}\ncommitter ${who}\n${header}\n${message}`)
  inStore(scratch, 'update-ref', 'refs/ckpt/made', oid)
}

const inRefs = (name: string, write: (path: string) => void) => (scratch: Scratch) =>
  write(`${storeOf(scratch)}/${name}`)

describe('the refs of a store', () => {
  test.for<[string, boolean, (scratch: Scratch) => void]>([
    ['as they were made', true, () => undefined],
    ['of several sessions', true, (scratch) => scratch.turn('other', () => scratch.write({ 'b.txt': 'b\n' }), 'other')],
    ['packed', true, (scratch) => inStore(scratch, 'pack-refs', '--all')],
    [
      'packed, and moved on',
      true,
      (scratch) => {
        inStore(scratch, 'pack-refs', '--all')
        scratch.turn('more', () => scratch.write({ 'a.txt': 'more\n' }))
      },
    ],
    [
      'packed, and one is gone',
      true,
      (scratch) => {
        inStore(scratch, 'update-ref', 'refs/ckpt/more', LIVE)
        inStore(scratch, 'pack-refs', '--all')
        inStore(scratch, 'update-ref', '-d', 'refs/ckpt/more')
      },
    ],
    ['beside a lock and hidden files', true, inRefs('refs/ckpt/x.lock', (file) => fs.writeFileSync(file, 'x'))],
    ['beside an empty directory', true, inRefs('refs/ckpt/x/y', (file) => fs.mkdirSync(file, { recursive: true }))],
    ['with an empty file', false, inRefs('refs/ckpt/x', (file) => fs.writeFileSync(file, ''))],
    ['that are cut short', false, inRefs(LIVE, (file) => fs.truncateSync(file, 20))],
    ['of no object', false, inRefs(LIVE, (file) => fs.writeFileSync(file, `${'0'.repeat(40)}\n`))],
    ['of an object that is not there', false, inRefs(LIVE, (file) => fs.writeFileSync(file, `${'1'.repeat(40)}\n`))],
    ['that are links', false, inRefs('refs/ckpt/x', (file) => fs.symlinkSync('@main/s/live', file))],
    ['that name others', false, inRefs('refs/ckpt/x', (file) => fs.writeFileSync(file, `ref: ${LIVE}\n`))],
    ['of no name', false, (scratch) => fs.cpSync(`${storeOf(scratch)}/${LIVE}`, `${storeOf(scratch)}/refs/ckpt/a~b`)],
    ['of names that are not ASCII', false, (scratch) => inStore(scratch, 'update-ref', 'refs/ckpt/ä', LIVE)],
    ['of a blob', true, (scratch) => inStore(scratch, 'update-ref', 'refs/ckpt/x', `${LIVE}:a.txt`)],
    ['of a tree', true, (scratch) => inStore(scratch, 'update-ref', 'refs/ckpt/x', `${LIVE}^{tree}`)],
    ['of a commit without a message', true, COMMIT('', '')],
    ['of a message that begins and ends with empty lines', true, COMMIT('', '\n\nä\n\nbody\n\n')],
    ['of a commit in another encoding', false, COMMIT('encoding ISO-8859-1\n', 'x\n')],
    ['of a message with a NUL', false, COMMIT('', 'x\0y\n')],
    [
      'of a tag',
      false,
      (scratch) => {
        const object = inStore(scratch, 'rev-parse', LIVE).trim()
        const tag = written(scratch, 'tag', `object ${object}\ntype commit\ntag x\ntagger A <a@b> 1 +0000\n\nx\n`)
        inStore(scratch, 'update-ref', 'refs/ckpt/x', tag)
      },
    ],
    ['whose objects are packed', false, (scratch) => inStore(scratch, 'repack', '-a', '-d', '-q')],
    [
      'of which there are many',
      false,
      (scratch) => {
        for (let i = 0; i < 40; i++) fs.cpSync(`${storeOf(scratch)}/${LIVE}`, `${storeOf(scratch)}/refs/ckpt/${i}`)
      },
    ],
    ['whose packed file goes on', false, inRefs('packed-refs', (file) => fs.appendFileSync(file, 'garbage'))],
    ['of a store of tables', false, inRefs('reftable', (file) => fs.mkdirSync(file))],
    [
      'packed, with a remark amid them',
      false,
      (scratch) => {
        inStore(scratch, 'pack-refs', '--all')
        fs.appendFileSync(`${storeOf(scratch)}/packed-refs`, '# x\n')
      },
    ],
    [
      'packed, out of their order',
      false,
      (scratch) => {
        inStore(scratch, 'pack-refs', '--all')
        const file = `${storeOf(scratch)}/packed-refs`
        const [head, ...refs] = fs.readFileSync(file, 'utf8').trimEnd().split('\n')
        expect(refs.length).toBeGreaterThan(1)
        fs.writeFileSync(file, `${[head, ...refs.reverse()].join('\n')}\n`)
      },
    ],
    [
      'beside a configuration that git refuses',
      false,
      inRefs('config', (file) => fs.appendFileSync(file, '[core]\n\tignorecase = 77777777777777777777\n')),
    ],
    ['beside a configuration that is none', false, inRefs('config', (file) => fs.appendFileSync(file, 'x y\n'))],
  ])('%s', async ([, isPlain, work]) => {
    const scratch = new Scratch().init()
    scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
    work(scratch)
    const env = envOf(scratch)
    const context = await openContext(env, scratch.root)
    onTestFinished(() => closeContext(context))
    const { store } = context
    for (const prefixes of [
      ['refs/'],
      ['refs/ckpt/'],
      ['refs/ckpt/@main/', 'refs/notes/ckpt/@main'],
      [LIVE],
      ['refs/no'],
    ]) {
      const here = plainTips(env, store, prefixes)
      if (prefixes[0] === 'refs/') expect(here !== null).toBe(isPlain)
      if (here) expect(here).toEqual(await listRefs(env, store, prefixes))
    }
  })
})

const RC = { '.checkpointrc': '{"store":{"maxSize":"1GiB"}}\n' }
const commit = (scratch: Scratch, files: Record<string, string>) => {
  scratch.write(files)
  scratch.git('add', '-A')
  scratch.git('commit', '-q', '-m', 'more')
}

describe('HEAD', () => {
  test.for<[string, boolean, (scratch: Scratch) => unknown]>([
    ['of a young repository', true, () => undefined],
    ['with settings', true, (scratch) => commit(scratch, { ...RC, 'package.json': '{}' })],
    ['with a package that has settings', true, (scratch) => commit(scratch, { 'package.json': '{"checkpoint":{}}' })],
    ['with a directory of that name', true, (scratch) => commit(scratch, { '.checkpointrc/x': 'x\n' })],
    [
      'with a link of that name',
      true,
      (scratch) => {
        fs.symlinkSync('a.txt', scratch.at('.checkpointrc'))
        commit(scratch, {})
      },
    ],
    ['detached', true, (scratch) => scratch.git('checkout', '-q', '--detach')],
    ['on a branch of several parts', true, (scratch) => scratch.git('checkout', '-q', '-b', 'a/b/c')],
    ['on a branch of another script', false, (scratch) => scratch.git('checkout', '-q', '-b', 'ä')],
    ['beside a branch called as a merge is', true, (scratch) => scratch.git('branch', 'MERGE_HEAD')],
    [
      'on a branch below a file',
      false,
      (scratch) => {
        scratch.git('checkout', '-q', '-b', 'f/g')
        scratch.git('pack-refs', '--all')
        fs.rmSync(scratch.at('.git/refs/heads/f'), { recursive: true, force: true })
        fs.cpSync(scratch.at('.git/packed-refs'), scratch.at('.git/refs/heads/f'))
      },
    ],
    ['beside a tag of that name', true, (scratch) => scratch.git('update-ref', 'refs/tags/HEAD', `${'HEAD'}^{tree}`)],
    ['on a packed branch', true, (scratch) => scratch.git('pack-refs', '--all')],
    [
      'on a branch that names another',
      false,
      (scratch) =>
        scratch.git('symbolic-ref', 'refs/heads/x', 'refs/heads/main') ||
        scratch.git('symbolic-ref', 'HEAD', 'refs/heads/x'),
    ],
    ['without a commit', false, (scratch) => scratch.git('checkout', '-q', '--orphan', 'new')],
    ['of packed objects', false, (scratch) => commit(scratch, RC) ?? scratch.git('gc', '-q')],
    ['amid a merge', false, (scratch) => fs.cpSync(scratch.at('.git/refs/heads/main'), scratch.at('.git/MERGE_HEAD'))],
    [
      'whose tree is gone',
      false,
      (scratch) => {
        const tree = scratch.git('rev-parse', 'HEAD^{tree}').trim()
        fs.rmSync(scratch.at(`.git/objects/${tree.slice(0, 2)}/${tree.slice(2)}`))
      },
    ],
  ])('%s', async ([, isPlain, work]) => {
    const scratch = new Scratch().init()
    work(scratch)
    const env = envOf(scratch)
    const repository = (await findRepository(env, scratch.root))!
    const started: string[] = []
    const spawn: Env['spawn'] = (command, args, options) => {
      started.push(args[0]!)
      return env.spawn(command, args, options)
    }
    const names = ['package.json', '.checkpointrc']
    const read = async (files: Env['files']) => {
      const reader = new HeadReader({ ...env, spawn, files }, repository)
      onTestFinished(() => reader.close())
      return [await reader.read(), await reader.committed(names)]
    }
    const here = await read(env.files)
    expect(!started.includes('cat-file')).toBe(isPlain)
    // Where no file can be looked at before it is read, nothing is plain.
    const lstatSync = ((file: string, options: object) => {
      if (/\/(objects|refs)\/|\/packed-refs$/.test(file)) throw Object.assign(new Error('not here'), { code: 'EACCES' })
      return env.files.lstatSync(file, options)
    }) as unknown as Env['files']['lstatSync']
    const statSync = (() => undefined) as unknown as Env['files']['statSync']
    expect(here).toEqual(await read({ ...env.files, lstatSync, statSync }))
    expect(started).toContain('cat-file')
  })
})
