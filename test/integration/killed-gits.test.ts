// Gits may be killed like any process, by a system that is short of memory for one: another is asked. Or none can be started.
import type { ChildProcess } from 'node:child_process'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Oid } from '../../src/core/ids.ts'
import type { Env } from '../../src/env.ts'
import { HeadReader } from '../../src/git/head.ts'
import { ObjectReader } from '../../src/git/object-reader.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { answer, envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

/** The outside world, with every process that was started in it; `kill`: those that are started from now on are killed at once. */
function watched(scratch: Scratch): {
  env: Env
  started: ChildProcess[]
  kill: (signal: NodeJS.Signals | null) => void
} {
  const env = envOf(scratch)
  const started: ChildProcess[] = []
  let killing: NodeJS.Signals | null = null
  const spawn = ((...args: Parameters<Env['spawn']>) => {
    const child = env.spawn(...args)
    started.push(child)
    if (killing) child.kill(killing)
    return child
  }) as Env['spawn']
  const kill = (signal: NodeJS.Signals | null) => {
    killing = signal
  }
  return { env: { ...env, spawn }, started, kill }
}

test('one that reads objects: all that was asked is answered, and one that is killed again is no damage', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  const { env, started, kill } = watched(scratch)
  const oids = scratch.git('rev-parse', 'HEAD:a.txt', 'HEAD:b.txt').trim().split('\n') as Oid[]
  const reader = new ObjectReader(env, scratch.at('.git'), {})
  onTestFinished(() => reader.close())
  const answers = Promise.all([...oids, '0'.repeat(40) as Oid].map((oid) => reader.read(oid)))
  started[0]!.kill('SIGKILL')
  expect((await answers).map((found) => found?.bytes.toString() ?? null)).toEqual(['a\n', 'b\n', null])
  reader.renew()
  kill('SIGKILL')
  await expect(Promise.all(oids.map((oid) => reader.read(oid)))).rejects.toMatchObject({ code: 'INTERNAL' })
  // A pack that is cut short under it ends it by a signal of its own.
  kill('SIGBUS')
  await expect(reader.read(oids[0]!)).rejects.toMatchObject({ code: 'DAMAGED' })
  kill(null)
  expect((await reader.read(oids[1]!))?.bytes.toString()).toBe('b\n')
})

test('one that reads objects and cannot be started is no damage, and the next question starts another', async () => {
  const scratch = new Scratch().init()
  for (let n = 0; n < 12; n++) scratch.write({ [`d${n}/f`]: `${n}` }) // so many objects become a pack, which git reads
  scratch.ckpt('snapshot')
  const env = envOf(scratch)
  let [refused, refusals] = [0, 1]
  const spawn: Env['spawn'] = (command, args, options) => {
    const isRefused = args.join(' ') === 'cat-file --batch' && refused++ < refusals
    return env.spawn(isRefused ? 'no-such-git' : command, args, options)
  }
  // What looks bad is looked at once more.
  expect([(await answer({ ...env, spawn }, 'verify')).code, refused]).toEqual([0, 2])
  ;[refused, refusals] = [0, 2]
  const { code, document } = await answer({ ...env, spawn }, 'verify')
  expect([code, refused]).toEqual([7, 3])
  expect(document.problems).toEqual(['objects: git is not installed, or not in PATH. Nothing was changed.'])
})

test('what goes on after the store was closed, since something beside it failed, starts no git', async () => {
  const scratch = new Scratch().init()
  const { env, started } = watched(scratch)
  const reader = new ObjectReader(env, scratch.at('.git'), {})
  reader.close()
  await expect(reader.read(scratch.git('rev-parse', 'HEAD').trim() as Oid)).rejects.toMatchObject({ code: 'INTERNAL' })
  expect(started).toEqual([])
})

test('one that tells of HEAD', async () => {
  const scratch = new Scratch().init()
  const { env, started } = watched(scratch)
  const context = await openContext(env, scratch.root)
  const head = new HeadReader(env, context.repository!)
  onTestFinished(() => {
    head.close()
    closeContext(context)
  })
  const known = await head.read()
  expect(await head.read()).toEqual(known)
  const kept = started.at(-1)!
  const asked = head.read()
  kept.kill('SIGKILL')
  expect(await asked).toEqual(known)
})

test('one that moved refs and was killed before it could say so: they are moved', async () => {
  const scratch = new Scratch().init()
  scratch.ckpt('snapshot')
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const bin = path.join(scratch.base, 'mute')
  fs.mkdirSync(bin)
  const mute = `case " $* " in *" update-ref --stdin "*) '${real}' "$@" | { read -r a; read -r b; read -r c; echo "$a"; kill -9 $$; } ;; esac`
  fs.writeFileSync(path.join(bin, 'git'), `#!/bin/sh\n${mute}\nexec '${real}' "$@"\n`, { mode: 0o755 })
  const env = { ...envOf(scratch), vars: { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` } }
  const context = await openContext(env, scratch.root)
  onTestFinished(() => closeContext(context))
  const { store } = context
  store.remember()
  const [live] = await store.refs(`${store.refPrefix}manual/live`)
  const ref = `${store.refPrefix}other/live`
  await store.moveRefs([
    { ref, from: null, to: live!.oid },
    { ref: live!.ref, from: live!.oid, to: null },
  ])
  expect((await store.refs(store.refPrefix)).map((tip) => [tip.ref, tip.oid])).toContainEqual([ref, live!.oid])
  expect(scratch.git('--git-dir=.git/ckpt/store.git', 'for-each-ref', '--format=%(refname)')).not.toContain(live!.ref)
})
