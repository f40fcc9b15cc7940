// The library does what the command line does, is the same after it was opened again, and can be cancelled.
import { execFileSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import fs from 'node:fs'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import type { Backend } from '../../src/backends/backend.ts'
import { methods } from '../../src/calls/table.ts'
import { withCapabilities } from '../../src/core/capabilities.ts'
import { CkptError } from '../../src/core/errors.ts'
import { connectDaemon } from '../../src/library/client.ts'
import { onDoubleEscape } from '../../src/library/double-escape.ts'
import { rewindMenu } from '../../src/library/rewind-menu.ts'
import { openWorktree } from '../../src/library/worktree.ts'
import { startDaemon } from '../support/daemon.ts'
import { byCall, byCommand, called, Steady, stage, story } from '../support/equivalence.ts'
import { PACKAGE, Scratch } from '../support/scratch.ts'
import { toyBackend } from '../support/toy-backend.ts'

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error) => (error instanceof CkptError ? error.code : `not a CkptError: ${error}`),
  )

test('each function does what the command does', async () => {
  const [typed, used] = [stage('work'), stage('work')]
  const worktree = await openWorktree(used.root, { vars: used.vars })
  const [a, b] = [new Steady(), new Steady()]
  for (const one of story) {
    for (const scratch of [typed, used]) one.edit?.(scratch)
    const expected = a.of(byCommand(typed, one))
    expect([one.name, b.of(await byCall(worktree, one))]).toEqual([one.name, expected])
    expect([one.name, used.manifest()]).toEqual([one.name, typed.manifest()])
  }
  const missing = Object.keys(methods).filter((name) => name !== 'sessions.setBackend')
  expect([...(await called(story))].sort()).toEqual(missing.sort())
})

test('the same session after it is opened again, and for another process', async () => {
  const scratch = stage('work')
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  for (const n of [1, 2, 3]) {
    await worktree.mark({ event: 'prompt', session: 's', text: `prompt ${n}\nwhole`, messageId: `m${n}` })
    scratch.write({ 'a.txt': `${n}\n` })
    await worktree.mark({ event: 'stop', session: 's' })
  }
  await worktree.sessions.revert('m2')
  const info = await worktree.sessions.getSessionInfo('s')
  expect(info).toMatchObject({ revertMessageID: 'm2', revertPartID: null, restoredPrompt: 'prompt 2\nwhole', turns: 1 })
  expect(info.hiddenTurns.map((turn) => turn.messageId)).toEqual(['m2', 'm3'])
  expect(info.revertDiff).toMatch(/^-3$/m)
  expect(info.revertDiff).toMatch(/^\+1$/m)
  fs.mkdirSync(scratch.at('deep/er'), { recursive: true })
  const again = await openWorktree(scratch.at('deep/er'), { vars: scratch.vars })
  expect(again.root).toBe(scratch.root)
  expect(await again.sessions.getSessionInfo()).toEqual(info)
  expect(scratch.ckpt('status').boundary).toEqual(info.boundary)
  await again.sessions.unrevert()
  expect(await worktree.sessions.getSessionInfo('s')).toMatchObject({
    revertMessageID: null,
    revertDiff: '',
    boundary: null,
  })
})

test('a session that is named when opening is the one that is meant', async () => {
  const scratch = stage('work')
  scratch.turn('in a', () => scratch.write({ 'a.txt': 'a\n' }), 'a')
  scratch.turn('in b', () => scratch.write({ 'b.txt': 'b\n' }), 'b')
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, session: 'a' })
  expect((await worktree.turns()).session).toBe('a')
  expect((await worktree.turns({ session: 'b' })).session).toBe('b')
  expect((await worktree.sessions.capabilities()).session).toBe('a')
  expect((await worktree.sessions.undo()).session).toBe('a')
  expect(await codeOf(worktree.mark({ event: 'prompt' } as never))).toBe(null)
})

test('wrong calls are USAGE, and never more than was asked for', async () => {
  const scratch = stage('work')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  const before = scratch.manifest()
  const { sessions, snapshots } = worktree
  const wrong: [string, Promise<unknown>][] = [
    ['two ways at once', sessions.undo({ turns: 1, to: '1' })],
    ['no paths at all', sessions.undo({ paths: [] })],
    ['a path outside', sessions.undo({ paths: ['../a.txt'] })],
    ['an absolute path', snapshots.restore('1', { paths: [scratch.at('a.txt')] })],
    ['an empty path', snapshots.restore('1', { paths: [''] })],
    ['an empty path in bytes', snapshots.revert({ from: '1', files: [{ path: 'a.txt', pathBase64: '' }] })],
    ['half a turn', sessions.undo({ turns: 0.5 })],
    ['a number for a text', sessions.undo({ to: 1 as never })],
    ['an unknown word', sessions.undo({ turn: 1 } as never)],
    ['an unknown choice', sessions.redo({ conflicts: 'maybe' as never })],
    ['no patch', snapshots.revert(null as never)],
    ...[3, 1, '', [], true, () => 1].flatMap((none): [string, Promise<unknown>][] => [
      [`${JSON.stringify(none)} for options`, sessions.undo(none as never)],
      [`${JSON.stringify(none)} beside what has its place`, snapshots.restore('1', none as never)],
      [`${JSON.stringify(none)} to open with`, openWorktree(scratch.root, none as never)],
    ]),
  ]
  for (const [what, call] of wrong) expect([what, await codeOf(call)]).toEqual([what, 'USAGE'])
  for (const none of [{ event: 'nothing' }, null, 3])
    expect(await codeOf(worktree.mark(none as never))).toBe('BAD_MARKER')
  expect(scratch.manifest()).toEqual(before)
})

test('places: a plain directory wants init, a bad root is refused', async () => {
  const scratch = new Scratch('plain')
  const { vars } = scratch
  expect(await codeOf(openWorktree(scratch.root, { vars }))).toBe('NOT_INITIALIZED')
  expect(await codeOf(openWorktree('/', { vars }))).toBe('BAD_ROOT')
  const worktree = await openWorktree(scratch.root, { vars, init: true })
  scratch.write({ 'a.txt': 'a\n' })
  expect((await worktree.snapshots.track()).checkpoint?.kind).toBe('manual')
  const git = stage('work')
  await openWorktree(git.root, { vars: git.vars })
  expect(git.exists('.git/ckpt')).toBe(false)
})

test('cancelled before it writes, a call has changed nothing; later it goes on to its end', async () => {
  const scratch = stage('work')
  for (let i = 0; i < 40; i++) scratch.write({ [`d${i % 4}/f${i}.txt`]: `${i}\n` })
  scratch.turn('one', () => {
    for (let i = 0; i < 40; i++) scratch.write({ [`d${i % 4}/f${i}.txt`]: `${i} changed\n` })
  })
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  const [before, refs] = [scratch.manifest(), scratch.ckpt('log')]
  for (const call of [
    (signal: AbortSignal) => worktree.sessions.undo({ signal }),
    (signal: AbortSignal) => worktree.snapshots.track({ signal }),
    (signal: AbortSignal) => worktree.snapshots.diff('1', 'worktree', { signal }),
  ])
    expect(await codeOf(call(AbortSignal.abort('no')))).toBe('CANCELLED')
  const met = new Set<string | null>()
  for (const after of [1, 5, 10, 15, 20, 25, 30, 40, 60, 90, 140, 200, 400]) {
    const code = await codeOf(worktree.sessions.undo({ signal: AbortSignal.timeout(after) }))
    met.add(code)
    if (code === null) await worktree.sessions.redo()
    expect([after, scratch.manifest()]).toEqual([after, before])
  }
  expect([...met].every((code) => code === null || code === 'CANCELLED')).toBe(true)
  expect(met.has('CANCELLED')).toBe(true)
  expect(scratch.ckpt('log').turns).toEqual(refs.turns)
  expect(scratch.ckpt('verify').ok).toBe(true)
})

test('a call that waits for the lock can be cancelled', async () => {
  const scratch = stage('work')
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  await worktree.snapshots.track()
  const lock = scratch.at('.git/ckpt/worktrees/@main/lock')
  fs.writeFileSync(lock, 'somebody else')
  expect(await codeOf(worktree.snapshots.track({ signal: AbortSignal.timeout(100) }))).toBe('CANCELLED')
  fs.rmSync(lock)
  await worktree.snapshots.track()
})

test('one signal for many calls: Node warns of no leak, and nobody listens to it afterwards', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await connectDaemon(scratch.root, { vars: scratch.vars })
  onTestFinished(() => client.close())
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  const warnings: string[] = []
  const hear = ({ name }: Error) => warnings.push(name)
  process.on('warning', hear)
  onTestFinished(() => void process.off('warning', hear))
  const { signal } = new AbortController()
  const calls = Array.from({ length: 12 }, (_, i) => [
    client.turns({ signal }),
    worktree.snapshots.track({ signal, message: String(i) }),
  ])
  await Promise.all(calls.flat())
  expect(warnings).toEqual([])
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('no directory at all is a mistake that is named', async () => {
  for (const open of [openWorktree, connectDaemon])
    for (const none of [undefined, null, 5])
      await expect(open(none as unknown as string)).rejects.toMatchObject({ code: 'USAGE' })
})

test('a patch goes back to the turn of the session that is meant, and to any checkpoint', async () => {
  const scratch = new Scratch().init()
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, session: 'aa' })
  const by = async (session: string, text: string) => {
    await worktree.mark({ event: 'prompt', session, text })
    scratch.write({ 'x.txt': text })
    await worktree.mark({ event: 'stop', session })
  }
  for (const [session, text] of [
    ['bb', 'by bb\n'],
    ['aa', 'by aa\n'],
    ['bb', 'by bb again\n'],
  ] as const)
    await by(session, text)
  const { checkpoint } = await worktree.snapshots.track()
  const files = [{ path: 'x.txt' }]
  await worktree.snapshots.revert({ from: '1', files }, { force: true })
  expect(scratch.read('x.txt')).toBe('by aa\n')
  await worktree.snapshots.revert({ from: '1', files }, { force: true, session: 'bb' })
  expect(scratch.read('x.txt')).toBe('by bb\n')
  const patch = await worktree.snapshots.patch(checkpoint!.id)
  await worktree.snapshots.revert(patch, { force: true })
  expect(scratch.read('x.txt')).toBe('by bb again\n')
})

test('what is opened with is looked at: a name that is misspelled would mean another session', async () => {
  const scratch = stage('work')
  const { vars } = scratch
  const backends = [toyBackend, toyBackend]
  for (const wrong of [
    { sesion: 's' },
    { session: '' },
    { session: 5 },
    { session: null },
    { vars: 'x' },
    { vars: { HOME: 1 } },
    { signal: {} },
  ])
    for (const open of [openWorktree, connectDaemon])
      expect([wrong, await codeOf(open(scratch.root, { vars, ...wrong } as never))]).toEqual([wrong, 'USAGE'])
  for (const wrong of [{ init: 1 }, { backends: [{}] }, { backends: toyBackend }, { backends }, { start: true }])
    expect([wrong, await codeOf(openWorktree(scratch.root, { vars, ...wrong } as never))]).toEqual([wrong, 'USAGE'])
  for (const wrong of [{ start: 'yes' }, { client: 5 }, { init: true }])
    expect([wrong, await codeOf(connectDaemon(scratch.root, { vars, ...wrong } as never))]).toEqual([wrong, 'USAGE'])
  expect(scratch.exists('.git/ckpt')).toBe(false)
  const none = { session: undefined, init: undefined, backends: undefined, signal: undefined }
  expect((await openWorktree(scratch.root, { vars, ...none })).root).toBe(scratch.root)
})

test('what a connection is asked with is looked at, too', async () => {
  const scratch = stage('work')
  const { vars } = scratch
  startDaemon(scratch)
  const client = await connectDaemon(scratch.root, { vars })
  onTestFinished(() => client.close())
  const hear = () => undefined
  for (const wrong of [{ afterr: { epoch: 'x', seq: 1 } }, { onGap: 1 }, { signal: AbortSignal.abort() }])
    expect([wrong, await codeOf(client.subscribe(hear, wrong as never))]).toEqual([wrong, 'USAGE'])
  for (const wrong of [{ cwdd: scratch.base }, { cwd: 5 }, { vars: { HOME: 1 } }, { signal: {} }])
    expect([wrong, await codeOf(client.command(['list'], wrong as never))]).toEqual([wrong, 'USAGE'])
  const told = await client.command(['status', '--json'], { cwd: undefined, vars: { ...vars, NONE: undefined } })
  expect([told.code, JSON.parse(told.stdout).root]).toEqual([0, scratch.root])
})

test('the menu, its keys and capabilities: wrong calls are USAGE, where they are made', async () => {
  const scratch = stage('work')
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  for (const [given, options] of [
    [undefined],
    [5],
    [{}],
    [worktree, 5],
    [worktree, { input: 5 }],
    [worktree, { sesion: 's' }],
  ])
    expect(await rewindMenu(given as never, options as never)).toMatchObject({
      kind: 'failed',
      error: { code: 'USAGE' },
    })
  const heard: CkptError[] = []
  await rewindMenu(worktree, { log: (error: CkptError) => heard.push(error), colors: 1 } as never)
  expect(heard.map(({ message }) => message)).toEqual(['colors is to be true or false. Nothing was changed.'])
  const keys = new PassThrough()
  const refused = expect.objectContaining({ code: 'USAGE' })
  for (const wrong of [
    [],
    [null, 300, () => undefined],
    [keys, 300],
    [keys, -1, () => undefined],
    [keys, '500', () => undefined],
  ])
    expect(() => onDoubleEscape(...(wrong as unknown as Parameters<typeof onDoubleEscape>))).toThrow(refused)
  for (const wrong of [null, 5, {}, ['nope'], [undefined], [10n]])
    expect(() => withCapabilities(wrong as never)).toThrow(refused)
})

test('nobody is asked where standard input is no terminal: the menu refuses, and nothing is undone', async () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const { base, vars } = scratch
  const script = `import { openWorktree, rewindMenu } from '${PACKAGE}/dist/index.js'
    console.log(JSON.stringify(await rewindMenu(await openWorktree('.'))))`
  fs.writeFileSync(`${base}/ask.mjs`, script)
  const said = execFileSync(process.execPath, [`${base}/ask.mjs`], { cwd: scratch.root, env: vars, input: '\r' })
  const message = 'Standard input is no terminal: nobody was asked, and nothing was changed'
  expect(said.toString()).toBe(`${message}\n${JSON.stringify({ kind: 'refused', message })}\n`)
  expect(scratch.read('a.txt')).toBe('two\n')
})

test('options that are none, or no options at all, as plain JavaScript can give them', async () => {
  const scratch = stage('work')
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  expect(await codeOf(worktree.sessions.undo(null as never))).toBe('NOTHING_TO_UNDO')
  expect(await codeOf(worktree.sessions.undo('1' as never))).toBe('USAGE')
  expect((await openWorktree(scratch.root, null as never)).root).toBe(worktree.root)
})

test.each(['in this process', 'by the daemon'])('%s a call is what it was when it was made', async (who) => {
  const scratch = new Scratch().init({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  const isDaemon = who === 'by the daemon'
  if (isDaemon) startDaemon(scratch)
  const client = isDaemon ? await connectDaemon(scratch.root, { vars: scratch.vars }) : null
  onTestFinished(() => client?.close())
  const worktree = client ?? (await openWorktree(scratch.root, { vars: scratch.vars }))
  scratch.turn('one', () => scratch.write({ 'a.txt': 'changed\n', 'b.txt': 'changed\n' }))
  const paths = ['a.txt']
  const undone = worktree.sessions.undo({ paths })
  paths[0] = 'b.txt'
  expect((await undone).files.map(({ path }) => path)).toEqual(['a.txt'])
  expect([scratch.read('a.txt'), scratch.read('b.txt')]).toEqual(['a\n', 'changed\n'])
})

test('a message id that looks like a number of a turn is the message', async () => {
  const scratch = new Scratch().init()
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, session: 's' })
  const { sessions } = worktree
  for (const n of [0, 1, 2, 3]) {
    await worktree.mark({ event: 'prompt', session: 's', messageId: String(n) })
    scratch.write({ [`f${n}`]: 'x' })
    await worktree.mark({ event: 'step', session: 's', callId: n === 3 ? '4.1' : `${n + 2}.1` })
    await worktree.mark({ event: 'stop', session: 's' })
  }
  expect((await sessions.revert('2')).turns).toEqual([3, 4])
  expect([0, 1, 2, 3].map((n) => scratch.exists(`f${n}`))).toEqual([true, true, false, false])
  expect((await sessions.getSessionInfo()).revertMessageID).toBe('2')
  await sessions.unrevert()
  expect((await sessions.revert('t1').catch((error) => error)).code).toBe('NOT_FOUND')
})

test('the paths of a patch are taken back as they are given, directories too', async () => {
  const scratch = new Scratch().init()
  const { snapshots } = await openWorktree(scratch.root, { vars: scratch.vars })
  fs.mkdirSync(scratch.at('empty'))
  const { checkpoint } = await snapshots.track()
  fs.rmdirSync(scratch.at('empty'))
  fs.mkdirSync(scratch.at('made'))
  scratch.write({ 'a.txt': 'two\n' })
  await snapshots.track()
  const patch = await snapshots.patch(checkpoint!.id)
  expect(patch.files.map(({ path }) => path)).toEqual(['a.txt', 'empty/', 'made/'])
  const { files } = await snapshots.revert(patch, { dryRun: true })
  expect(files.map(({ path }) => path)).toEqual(['a.txt', 'empty/', 'made/'])
  const plan = await snapshots.restore(checkpoint!.id, {
    exact: true,
    paths: files.map(({ path }) => path),
    dryRun: true,
  })
  expect(plan.files).toEqual(files)
  await snapshots.revert(patch)
  expect([scratch.read('a.txt'), scratch.exists('empty'), scratch.exists('made')]).toEqual(['one\n', true, false])
})

test('the patch of nothing is taken back, and nothing is written', async () => {
  const scratch = new Scratch().init()
  const { snapshots } = await openWorktree(scratch.root, { vars: scratch.vars })
  const { checkpoint } = await snapshots.track()
  const patch = await snapshots.patch(checkpoint!.id)
  expect(patch.files).toEqual([])
  // What changes since is not in it.
  scratch.write({ 'a.txt': 'mine\n', 'new.txt': 'n\n' })
  const before = scratch.manifest()
  expect([(await snapshots.revert(patch, { dryRun: true })).files, (await snapshots.revert(patch)).files]).toEqual([
    [],
    [],
  ])
  await snapshots.revert(patch, { force: true })
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  await worktree.apply((await snapshots.revert(patch, { dryRun: true })).token!)
  expect(scratch.manifest()).toEqual(before)
  expect(await codeOf(snapshots.revert({ from: 'ffffffff', files: [] }))).toBe('NOT_FOUND')
})

test('markers that are not awaited are recorded in their order, and so is what comes after them', async () => {
  const scratch = new Scratch().init()
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, session: 's' })
  const all: Promise<unknown>[] = []
  for (const n of [1, 2, 3]) {
    all.push(worktree.mark({ event: 'prompt', session: 's', messageId: `m${n}` }))
    all.push(worktree.mark({ event: 'step', session: 's' }), worktree.mark({ event: 'stop', session: 's' }))
  }
  const undone = worktree.sessions.undo()
  const written = Promise.all(all)
  const first = Promise.race([worktree.sessions.list().then(() => 'read'), written.then(() => 'written')])
  expect(await first).toBe('read') // what reads waits for none of them
  await written
  expect((await undone).turns).toEqual([3])
  const { turns } = await worktree.turns()
  expect(turns.map(({ n, messageId, status, steps }) => [n, messageId, status, steps.length])).toEqual([
    [2, 'm2', 'completed', 1],
    [1, 'm1', 'completed', 1],
  ])
})

test('a backend may call the worktree while it carries a call out', async () => {
  const scratch = new Scratch().init()
  const tracked: unknown[] = []
  const undo: Backend['undo'] = async (...given) => {
    tracked.push((await worktree.snapshots.track()).checkpoint?.kind)
    return toyBackend.undo!(...given)
  }
  const backends = [{ ...toyBackend, undo }]
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, session: 's', backends })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  await worktree.sessions.setBackend('s', 'toy')
  expect((await worktree.sessions.undo()).turns).toEqual([1])
  expect([scratch.read('a.txt'), tracked]).toEqual(['one\n', ['manual']])
})

test('a project file that an agent has broken stops no checkpoint and no way back', async () => {
  const scratch = new Scratch().init()
  scratch.write({ '.checkpointrc': '{"nope":1}' })
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, session: 's' })
  const { sessions, snapshots } = worktree
  await worktree.mark({ event: 'prompt', session: 's' })
  scratch.write({ 'a.txt': 'two\n' })
  await worktree.mark({ event: 'stop', session: 's' })
  const { checkpoint } = await snapshots.track()
  await sessions.undo()
  await sessions.cleanupRevertedHistory()
  await snapshots.restore(checkpoint!.id)
  expect(scratch.read('a.txt')).toBe('two\n')
})

test('an error as JSON has its message, too', async () => {
  const worktree = await openWorktree(new Scratch().init().root)
  const error = await worktree.show('99').catch((thrown: unknown) => thrown)
  expect(JSON.parse(JSON.stringify(error))).toMatchObject({
    name: 'CkptError',
    code: 'NOT_FOUND',
    message: (error as Error).message,
    hints: expect.any(Array),
    paths: [],
  })
})

test('whatever keeps it from being opened is a CkptError', async () => {
  const scratch = new Scratch().init()
  scratch.write({ '.git/ckpt': 'not a directory' })
  const codes: unknown[] = []
  for (const open of [
    () => connectDaemon(scratch.root, { vars: scratch.vars, start: true }),
    () =>
      openWorktree(scratch.root, null as never).then((worktree) => worktree.mark({ event: 'prompt', session: 's' })),
    () => openWorktree(5 as never, { vars: null as never, backends: null as never }),
  ])
    codes.push(await codeOf(open()))
  expect(codes).toEqual(['DAMAGED', 'DAMAGED', 'USAGE'])
})

test('the menu is cancelled when nobody can pick any more', async () => {
  const scratch = new Scratch().init()
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, session: 's' })
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const [input, output] = [new PassThrough(), new PassThrough()]
  output.resume()
  setTimeout(() => input.end(), 200)
  expect(await rewindMenu(worktree, { input, output })).toEqual({ kind: 'cancelled' })
  expect(await rewindMenu(worktree, { input, output })).toEqual({ kind: 'cancelled' })
  expect(scratch.read('a.txt')).toBe('two\n')
})

test('what JSON would drop or change is refused by a daemon as it is without one, and nothing is done', async () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n', 'b.txt': 'b\n' }))
  await startDaemon(scratch)
  const alone = await openWorktree(scratch.root, { vars: scratch.vars })
  const client = await connectDaemon(scratch.root, { vars: scratch.vars })
  onTestFinished(() => client.close())
  const before = scratch.manifest()
  const wrong: object[] = [
    { paths: () => ['a.txt'] },
    { paths: new Set(['a.txt']) },
    { paths: Buffer.from('a.txt') },
    { turns: Number.NaN },
    { turns: Number.POSITIVE_INFINITY },
    { to: Symbol('1') },
    { only: new Date(0) },
  ]
  for (const options of wrong)
    for (const [who, one] of [
      ['alone', alone],
      ['the daemon', client],
    ] as const)
      expect([who, options, await codeOf(one.sessions.undo(options as never))]).toEqual([who, options, 'USAGE'])
  expect(scratch.manifest()).toEqual(before)
  // What is not given is not given.
  await client.sessions.undo({ paths: undefined, to: undefined } as never)
  expect(scratch.read('a.txt')).toBe('one\n')
})
