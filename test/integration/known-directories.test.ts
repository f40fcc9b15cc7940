// A scan reads a directory once it is known only where something speaks against what is known of it.
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { DEFAULTS } from '../../src/config/defaults.ts'
import { realEnv } from '../../src/env.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { type Captured, capture } from '../../src/snapshot/capture.ts'
import { Scratch } from '../support/scratch.ts'

/** More than are looked at one by one: then git lists everything. */
const MANY = 450

test('directories at rest are read twice and no more; one that lost a file, once more', async () => {
  const scratch = new Scratch().init()
  for (let i = 0; i < MANY; i++) scratch.write({ [`d${i}/f`]: `${i}\n` })
  const read: string[] = []
  const real = realEnv()
  const files = new Proxy(real.files, {
    get: (target, name, receiver) => {
      const own = Reflect.get(target, name, receiver)
      if (name !== 'readdirSync') return own
      return (at: Buffer | string, ...rest: unknown[]) => {
        const one = path.relative(scratch.root, String(at))
        if (!one.startsWith('.')) read.push(one)
        return own(at, ...rest)
      }
    },
  })
  const env = { ...real, files, vars: scratch.vars, home: scratch.home, cwd: scratch.root }
  const context = await openContext(env, scratch.root, { create: true })
  const { worktree, store } = context
  let last: Captured | null = null
  const take = async () => {
    await setTimeout(60) // what changed just now is looked at again anyway
    read.length = 0
    const [cache, lastTree] = [last?.cache ?? null, last?.tree ?? null]
    last = await capture(env, { worktree, store, limits: DEFAULTS.snapshot, cache, lastTree, headTree: null })
    return read.filter((one) => one !== '')
  }
  try {
    expect([(await take()).length, (await take()).length, await take()]).toEqual([MANY, MANY, []])
    scratch.remove('d7/f')
    expect([await take(), await take(), await take()]).toEqual([['d7'], ['d7'], []])
  } finally {
    closeContext(context)
  }
})
