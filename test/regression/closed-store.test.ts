// A store that its owner may not read, or not write, in part: nothing in it is gone for that, and doctor says what helps.
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { closedIn } from '../../src/git/closed.ts'
import { envOf } from '../support/in-process.ts'
import { isRoot, type Json, PACKAGE, Scratch } from '../support/scratch.ts'
import { inStore } from '../support/store-surgery.ts'

/** Where another user reaches it (reachable.ts). */
const client = () => path.join(inject('reachable') ?? PACKAGE, 'bin/ckpt-hook')

/** Three turns, in a worktree that is another user's. */
function begun() {
  const scratch = new Scratch().init()
  for (const name of ['one', 'two', 'three']) scratch.turn(name, () => scratch.write({ 'a.txt': `${name}\n` }))
  const uid = scratch.handOver()
  const run = (...args: string[]): { code: number; document: Json } => {
    const { code, stdout } = scratch.run([...args, '--json'], { uid })
    return { code, document: JSON.parse(stdout) }
  }
  const store = scratch.at('.git/ckpt')
  /** As the person who follows a hint does it. */
  const follow = (command: string) =>
    execFileSync('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', 'sh', '-c', command])
  return { scratch, uid, run, store, follow }
}

test.skipIf(!isRoot)(
  'what cannot be read is not missing: doctor mends nothing, and names what lets its owner in',
  () => {
    const { scratch, run, store, follow } = begun()
    const oid = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live~2').trim()
    const object = `${store}/store.git/objects/${oid.slice(0, 2)}/${oid.slice(2)}`
    const ref = `${store}/store.git/refs/ckpt/@main/s/live`
    for (const path of [object, ref, `${store}/store.git/objects`, `${store}/worktrees`, `${store}/store.git/config`]) {
      const { mode } = fs.statSync(path)
      fs.chmodSync(path, 0)
      for (const command of [['doctor'], ['doctor', '--fix']]) {
        const { code, document } = run(...command)
        const why = `The store cannot be read: ${path} is yours, and of a mode that keeps you out. Nothing was changed.`
        const hints = [`chmod -R u+rwX ${store}`]
        expect([path, code, document.error]).toEqual([path, 1, { code: 'INTERNAL', message: why, hints }])
      }
      follow(`chmod -R u+rwX ${store}`)
      expect(run('list').document.turns).toHaveLength(3)
      fs.chmodSync(path, mode & 0o7777)
    }
    expect(run('doctor').code).toBe(0)
  },
)

test.skipIf(!isRoot)('what the daemon has not synced yet is closed to nobody', () => {
  const { scratch, uid, run, store } = begun()
  onTestFinished(() => {
    scratch.run(['daemon', 'stop'], { uid })
  })
  expect(run('daemon', 'start').code).toBe(0)
  run('mark', 'prompt', '--session', 's')
  scratch.write(Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`f${n}`, `${n}\n`])))
  expect(run('mark', 'stop', '--session', 's').document.mode).toBe('fast')
  const { code, document } = run('doctor')
  expect(fs.readdirSync(`${store}/store.git/unsynced`)).not.toEqual([])
  expect([code, document.findings.filter((one: Json) => !one.ok)]).toEqual([0, []])
})

test.skipIf(!isRoot)('where nothing can be written, doctor says so, and what is recorded is shown all the same', () => {
  const { scratch, uid, run, store, follow } = begun()
  const closed = `find ${store}/store.git/objects -type d -exec chmod`
  follow(`${closed} a-w {} +`)
  const payload = { hook_event_name: 'UserPromptSubmit', session_id: 'h', cwd: scratch.root, prompt: 'x' }
  expect(scratch.runApart(['hook', 'claude'], { uid, input: JSON.stringify(payload) }).code).toBe(0)
  for (const command of ['list --session s', 'status', 'diff', 'show 1 --session s']) {
    const { code, document } = run(...command.split(' '))
    expect([command, code, document.warnings.join()]).toEqual([
      command,
      0,
      expect.stringContaining('A marker that waited cannot be taken up yet'),
    ])
  }
  for (const command of [['doctor'], ['doctor', '--fix']]) {
    const { code, document } = run(...command)
    const found = document.findings.find((one: Json) => one.name === 'store' && !one.ok)
    expect([code, found.mend]).toEqual([7, `chmod -R u+rwX ${store}`])
  }
  follow(`chmod -R u+rwX ${store}`)
  expect(run('list').document).toMatchObject({ session: 'h', warnings: ['A marker that waited: recorded late.'] })
})

test.skipIf(!isRoot)('what root left there keeps nobody from looking, and doctor says whose it is', () => {
  const { scratch, run, store } = begun()
  const markers = `${store}/worktrees/@main/markers`
  fs.mkdirSync(markers, { recursive: true, mode: 0o700 })
  fs.chownSync(markers, 0, 0)
  fs.chmodSync(markers, 0o700)
  expect(run('list')).toMatchObject({
    code: 0,
    document: { turns: { length: 3 }, warnings: [expect.stringContaining('cannot be seen: ckpt doctor')] },
  })
  const { error } = run('doctor').document
  expect(error.message).toBe(`The store cannot be read: ${markers} belongs to another user. Nothing was changed.`)
  expect(error.hints).toEqual([`sudo chown -R "$(id -u)" ${store}`])
  scratch.handOver()
  expect(run('doctor').code).toBe(0)
})

test.skipIf(!isRoot)(
  "another user's daemon is called that: it cannot be asked, nor stopped, and a hook says nothing",
  () => {
    const { scratch, uid, run } = begun()
    fs.writeFileSync(path.join(scratch.home, '.gitconfig'), '[safe]\n\tdirectory = *\n')
    expect(scratch.ckpt('daemon', 'start').started).toBe(true)
    onTestFinished(() => void scratch.run(['daemon', 'stop']))
    const hook = () =>
      spawnSync('setpriv', [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', client(), 'claude', 'Stop'], {
        cwd: scratch.root,
        env: scratch.vars,
        input: '{}',
        encoding: 'utf8',
      })
    expect(hook()).toMatchObject({ status: 0, stdout: '', stderr: '' })
    expect(run('daemon', 'stop')).toMatchObject({
      code: 1,
      document: { error: { code: 'INTERNAL', hints: ['ckpt doctor'] } },
    })
    scratch.handOver()
    const { pid } = run('daemon', 'status').document
    expect(scratch.run(['daemon', 'status'], { uid }).stdout).toBe(
      `Running (process ${pid}); it cannot be asked from here (EACCES).\n`,
    )
    const { code, document } = run('daemon', 'stop')
    expect([code, document.error]).toEqual([
      1,
      {
        code: 'INTERNAL',
        message: `The daemon (process ${pid}) is another user's. It was not stopped.`,
        hints: [`sudo kill ${pid}`],
      },
    ])
  },
)

test.skipIf(!isRoot)('verify says of what it may not read that it may not: a store, and a bundle', () => {
  const { scratch, run, store, follow } = begun()
  const bundle = `${scratch.base}/made.bundle`
  expect(run('export', bundle).code).toBe(0)
  const objects = `${store}/store.git/objects`
  fs.chmodSync(objects, 0)
  const closed = run('verify')
  expect([closed.code, closed.document.error]).toMatchObject([1, { code: 'INTERNAL' }])
  expect(closed.document.error.message).toContain(`The store cannot be read: ${objects} is yours`)
  follow(closed.document.error.hints[0])
  expect(run('verify').code).toBe(0)
  fs.chmodSync(bundle, 0)
  for (const args of [
    ['verify', '--bundle', bundle],
    ['import', bundle],
  ]) {
    const { code, document } = run(...args)
    const message = `The bundle cannot be read: ${bundle} is yours, and of a mode that keeps you out. Nothing was changed.`
    expect([args[0], code, document.error]).toEqual([
      args[0],
      1,
      { code: 'INTERNAL', message, hints: [`chmod u+r ${bundle}`] },
    ])
  }
})

test('what goes while a store is looked through is not closed: others are at work in it', async () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const env = envOf(scratch)
  const gone: string[] = []
  const readdirSync = (at: fs.PathLike, options?: { withFileTypes: true }) => {
    if (!options || !/objects\/[0-9a-f]{2}$/.test(String(at))) return fs.readdirSync(at, options as never)
    gone.push(String(at))
    throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' })
  }
  const files = { ...env.files, readdirSync } as unknown as typeof env.files
  expect(closedIn({ ...env, files }, scratch.at('.git/ckpt'))).toEqual([])
  expect(gone.length).toBeGreaterThan(3)
})
