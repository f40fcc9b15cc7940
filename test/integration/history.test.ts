import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import type { Checkpoint, CheckpointMeta } from '../../src/core/checkpoint.ts'
import type { Oid, SessionId, TurnNumber } from '../../src/core/ids.ts'
import { formatTree } from '../../src/core/tree-object.ts'
import { type Env, realEnv } from '../../src/env.ts'
import { createStore } from '../../src/git/frame.ts'
import { findPrompt, readChain, readChainUntil, writeCheckpoint } from '../../src/git/history.ts'
import { Store } from '../../src/git/store.ts'
import { Scratch } from '../support/scratch.ts'

/** A store, and the git commands that were started for it. */
async function counted(): Promise<{ store: Store; again: () => Store; started: string[] }> {
  const scratch = new Scratch()
  const started: string[] = []
  const real = realEnv()
  const env: Env = {
    ...real,
    vars: scratch.vars,
    spawn: (command, args, options) => {
      started.push(args.find((arg) => /^(rev-list|cat-file)$/.test(arg)) ?? command)
      return real.spawn(command, args, options)
    },
  }
  const place = { directory: path.join(scratch.base, 'ckpt'), worktreeId: '@main', hash: 'sha1' as const }
  await createStore(env, place, () => 'nobody')
  started.length = 0
  return { store: Store.open(env, place), again: () => Store.open(env, place), started }
}

function longTurn(store: Store, steps: number): Oid[] {
  const beside = store.objects.write('blob', Buffer.from('beside'))
  const chain: Oid[] = []
  for (let seq = 1; seq <= steps + 1; seq++) {
    const meta: CheckpointMeta = {
      kind: seq === 1 ? 'before' : 'step',
      session: 's' as SessionId,
      turn: 1 as TurnNumber,
      ...(seq === 1 ? {} : { step: seq - 1 }),
      seq,
      beside,
      time: '2026-01-01T00:00:00.000Z',
    }
    chain.push(writeCheckpoint(store, { tree: store.trees.empty, parents: chain.slice(-1) }, meta).id)
  }
  store.objects.write('tree', Buffer.alloc(0))
  store.objects.flush()
  return chain
}

test('a turn of hundreds of steps is not read again for each marker', async () => {
  const { store, again, started } = await counted()
  const chain = longTurn(store, 300)
  const read = async (from: Store) => (await readChainUntil(from, chain.at(-1)!, () => true)).map(({ id }) => id)
  expect(await read(store)).toEqual(chain)
  expect(started).toEqual([]) // it wrote them itself
  const other = again()
  expect(await read(other)).toEqual(chain)
  expect(started).toContain('rev-list')
  started.length = 0
  expect(await read(other)).toEqual(chain)
  expect(started).toEqual([])
  expect((await readChain(other, chain.at(-1)!)).map(({ id }) => id)).toEqual(chain)
  expect((await readChain(other, chain.at(-1)!, { limit: 5 })).map(({ id }) => id)).toEqual(chain.slice(-5))
  expect(started).toEqual([])
  // What is known says the same as the commits do.
  const written = (await readChainUntil(store, chain.at(-1)!, () => true)).map((one) => JSON.stringify(one))
  expect((await readChain(again(), chain.at(-1)!)).map((one) => JSON.stringify(one))).toEqual(written)
  execFileSync('git', [`--git-dir=${store.gitDir}`, 'fsck', '--full'], { stdio: 'ignore' })
  for (const one of [store, other]) one.close()
})

test('a prompt is found by its message id however far back; who remembers starts git for it once', async () => {
  const { store, again, started } = await counted()
  const beside = store.objects.write('blob', Buffer.from('beside'))
  const chain: Checkpoint[] = []
  for (let turn = 1; turn <= 30; turn++) {
    const shared = { session: 's' as SessionId, turn: turn as TurnNumber, beside, time: '2026-01-01T00:00:00.000Z' }
    for (const kind of ['before', 'after'] as const) {
      const parents = chain.slice(-1).map(({ id }) => id)
      const meta: CheckpointMeta = { ...shared, kind, seq: chain.length + 1, messageId: `m${turn}` }
      chain.push(writeCheckpoint(store, { tree: store.trees.empty, parents }, meta))
    }
  }
  store.objects.write('tree', Buffer.alloc(0))
  store.objects.flush()
  const tip = chain.at(-1)!
  const [forgetful, remembering] = [again(), again()]
  remembering.remember()
  for (const [from, times] of [
    [forgetful, 3],
    [remembering, 1],
  ] as const) {
    started.length = 0
    expect((await findPrompt(from, tip, 'm1'))?.id).toBe(chain[0]!.id)
    expect((await findPrompt(from, tip, 'm4'))?.id).toBe(chain[6]!.id)
    expect(await findPrompt(from, tip, 'm')).toBe(null)
    expect(started.filter((one) => one === 'rev-list')).toHaveLength(times)
  }
  remembering.close()
})

test('of trees so much is remembered, however large they are: those that were asked for last', async () => {
  const { store } = await counted()
  const oid = store.objects.write('blob', Buffer.from('a file'))
  const tree = (name: string, rows: number) =>
    store.objects.write(
      'tree',
      formatTree(Array.from({ length: rows }, (_, i) => ({ mode: '100644', name: `${name}-${i}`, oid }))),
    )
  const many = (name: string, count: number, rows: number) =>
    Array.from({ length: count }, (_, i) => tree(`${name}${i}`, rows))
  const [small, large, larger] = [tree('small', 10), many('large', 13, 20_000), many('larger', 8, 40_000)]
  const read = vi.spyOn(store.objects, 'get')
  const reads = async (...trees: Oid[]) => {
    read.mockClear()
    for (const one of trees) await store.trees.entries(one)
    return read.mock.calls.map(([one]) => one)
  }
  expect(await reads(small, ...large.slice(0, 12), small)).toEqual([small, ...large.slice(0, 12)])
  expect(await reads(large[12]!, small)).toEqual([large[12]])
  expect(await reads(large[1]!, large[0]!)).toEqual([large[0]])
  // So is what all of was asked for, though it has more rows than that; and so are a few.
  expect(await reads(...larger, ...larger)).toEqual(larger)
  const whole = store.objects.write(
    'tree',
    formatTree(larger.map((oid, i) => ({ mode: '40000', name: `directory-${i}`, oid }))),
  )
  const files = async () => {
    read.mockClear()
    await store.trees.files(whole)
    return read.mock.calls.length
  }
  await files()
  expect([await files(), await files()]).toEqual([1, 0])
  store.close()
})
