// The daemon's protocol: the same functions, the same refusals, and events in one order for everybody.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import type { MarkRequest } from '../../src/calls/requests.ts'
import { methods } from '../../src/calls/table.ts'
import { CkptError } from '../../src/core/errors.ts'
import { PROTOCOL } from '../../src/daemon/protocol.ts'
import { realEnv } from '../../src/env.ts'
import { connectDaemon } from '../../src/library/client.ts'
import { openWorktree } from '../../src/library/worktree.ts'
import { withLock } from '../../src/ops/worktree/lock.ts'
import { startDaemon } from '../support/daemon.ts'
import { byCall, byCommand, Steady, stage, story } from '../support/equivalence.ts'
import { Bare, clientOf, frame, infoOf, ofType, typesOf, until, watchEvents } from '../support/protocol.ts'
import type { Json } from '../support/scratch.ts'
import { uncaught } from '../support/uncaught.ts'

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error) => (error instanceof CkptError ? error.code : `not a CkptError: ${error}`),
  )

test('each function does through the daemon what the command does', async () => {
  const [typed, used] = [stage('work'), stage('work')]
  startDaemon(used)
  const client = await clientOf(used)
  const [a, b] = [new Steady(), new Steady()]
  for (const one of story) {
    for (const scratch of [typed, used]) one.edit?.(scratch)
    const expected = a.of(byCommand(typed, one))
    expect([one.name, b.of(await byCall(client, one))]).toEqual([one.name, expected])
    expect([one.name, used.manifest()]).toEqual([one.name, typed.manifest()])
  }
  expect(used.ckpt('verify').ok).toBe(true)
})

test('any command line, but none that belongs to a terminal', async () => {
  const scratch = stage('work')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  startDaemon(scratch)
  const client = await clientOf(scratch)
  for (const argv of [['list'], ['status'], ['verify'], ['log'], ['blame', 'a.txt'], ['doctor']]) {
    const { code, stdout } = await client.command([...argv, '--json'])
    expect([argv, code, JSON.parse(stdout).ok]).toEqual([argv, 0, true])
  }
  expect(await client.command(['redo', '--json'])).toMatchObject({ code: 3 })
  expect(await codeOf(client.command(['--text', 't', 'run', '--', 'true']))).toBe('USAGE')
  for (const name of ['watch', 'daemon', 'run', 'bisect', 'rewind'])
    for (const before of [[], ['--quiet'], ['--cwd', scratch.root], ['--session=s', '--json']])
      expect([name, await codeOf(client.command([...before, name, 'stop']))]).toEqual([name, 'USAGE'])
  expect(await client.command(['--quiet', 'list', 'run'])).toMatchObject({ code: 2 })
  // Options may come first, and it has the environment of the connection.
  for (const [name, ...more] of [['list'], ['undo', '--dry-run'], ['snapshot']] as const) {
    const { code, stdout } = await client.command(['--json', '--cwd', scratch.root, name, ...more])
    expect([name, code, JSON.parse(stdout).ok]).toEqual([name, 0, true])
  }
  const names = ['AUTHOR', 'COMMITTER'].flatMap((who) => [`GIT_${who}_NAME`, `GIT_${who}_EMAIL`])
  const vars = { ...scratch.vars, ...Object.fromEntries(names.map((name) => [name, 'me@example.com'])) }
  const named = await connectDaemon(scratch.root, { vars })
  expect((await named.command(['commit', '-m', 'x'])).code).toBe(0)
  named.close()
})

test('a first subscription that fails is told as what it is, and the next one is taken', async () => {
  const scratch = stage('work')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const objects = scratch.at('.git/ckpt/store.git/objects')
  fs.renameSync(objects, `${objects}.away`)
  fs.mkdirSync(objects)
  expect(await codeOf(client.subscribe(() => undefined))).toBe('DAMAGED')
  fs.rmdirSync(objects)
  fs.renameSync(`${objects}.away`, objects)
  const heard: string[] = []
  await client.subscribe(({ event }) => heard.push(event.type))
  await client.mark({ event: 'prompt', session: 's' })
  await until(() => heard.includes('turn.added'))
})

test('the end of a connection is told, whoever ended it; what is asked after it is refused in our words', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const [mine, its] = [await clientOf(scratch), await clientOf(scratch)]
  const ended = (client: typeof mine) => new Promise<void>((resolve) => client.onClose(resolve))
  const both = Promise.all([ended(mine), ended(its)])
  mine.close()
  scratch.ckpt('daemon', 'stop')
  await both
  for (const client of [mine, its]) {
    const nothing = { code: 'INTERNAL', message: expect.stringContaining('Nothing was asked of it') }
    await expect(client.subscribe(() => undefined)).rejects.toMatchObject(nothing)
    await expect(client.turns()).rejects.toMatchObject(nothing)
    await expect(client.command(['undo'])).rejects.toMatchObject(nothing)
  }
})

test('what was asked before the end of a connection may or may not have been done, and that is said', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const asked = client.turns()
  client.close()
  await expect(asked).rejects.toMatchObject({ code: 'INTERNAL', message: expect.stringContaining('may or may not') })
})

test('promise 12: nobody waits for ever for a daemon that hangs: to connect to it, or for an answer, cancelled or not', async () => {
  const scratch = stage('work')
  const { pid } = startDaemon(scratch)
  const client = await clientOf(scratch)
  process.kill(pid, 'SIGSTOP')
  const asked = client.sessions.undo({ signal: AbortSignal.timeout(50) })
  const unknown = { code: 'INTERNAL', message: expect.stringContaining('may or may not') }
  const given = AbortSignal.timeout(200)
  await Promise.all([
    expect(asked).rejects.toMatchObject(unknown),
    expect(client.turns()).rejects.toMatchObject(unknown),
    expect(codeOf(connectDaemon(scratch.root, { vars: scratch.vars, signal: given }))).resolves.toBe('CANCELLED'),
    expect(connectDaemon(scratch.root, { vars: scratch.vars })).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'The daemon does not answer. Nothing was asked of it.',
    }),
  ])
  process.kill(pid, 'SIGCONT')
})

test('a daemon that is only busy is waited for, not replaced', async () => {
  const scratch = stage('work')
  const { pid } = startDaemon(scratch)
  process.kill(pid, 'SIGSTOP')
  const asked = connectDaemon(scratch.root, { vars: scratch.vars, start: true })
  await new Promise((resolve) => setTimeout(resolve, 3000))
  process.kill(pid, 'SIGCONT')
  const client = await asked
  expect(client.daemon.pid).toBe(pid)
  client.close()
})

test('who starts a daemon at the same time as others gets the one that stands', async () => {
  const scratch = stage('work')
  const connecting = Array.from({ length: 4 }, () => connectDaemon(scratch.root, { vars: scratch.vars, start: true }))
  const clients = await Promise.all(connecting)
  expect(new Set(clients.map(({ daemon }) => daemon.pid)).size).toBe(1)
  for (const client of clients) client.close()
  scratch.ckpt('daemon', 'stop')
})

test('what cannot be sent is refused, and other calls of the connection are answered', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const marks = (more: object) => client.mark({ event: 'prompt', session: 's', ...more } as MarkRequest)
  const other = client.mark({ event: 'prompt', session: 't' })
  expect(await codeOf(marks({ text: 1n }))).toBe('BAD_MARKER')
  expect(await codeOf(marks({ text: 'x'.repeat(2 ** 24) }))).toBe('BAD_MARKER')
  expect(await codeOf(client.command(['list', 1n as unknown as string]))).toBe('USAGE')
  expect((await other).checkpoint).not.toBeNull()
  expect((await client.sessions.list()).map(({ id }) => id)).toEqual(['t'])
  client.close()
  await new Promise<void>((resolve) => client.onClose(resolve))
  await new Promise<void>((resolve) => client.onClose(resolve)) // it has ended
})

test('what is no AbortSignal is refused', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await clientOf(scratch)
  for (const signal of [{}, null, 'now'] as unknown as AbortSignal[])
    for (const call of [() => client.turns({ signal }), () => connectDaemon(scratch.root, { signal })])
      expect(await codeOf(call())).toBe('USAGE')
})

test('handshake: the version is agreed on first; unknown methods and bad parameters are JSON-RPC errors', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const info = infoOf(scratch)
  const { token } = info
  const answer = async (bare: Bare) => {
    await until(() => bare.messages.length > 0 || bare.closed)
    return bare.messages[0]
  }
  const old = new Bare(info).ask('hello', { token, protocol: PROTOCOL + 1 })
  expect((await answer(old))?.error).toMatchObject({ code: -32002, data: { protocol: PROTOCOL } })
  await until(() => old.closed)
  const stranger = new Bare(info).ask('turns', {})
  expect((await answer(stranger))?.error).toMatchObject({ code: -32001, message: expect.stringContaining('hello') })
  await until(() => stranger.closed)
  const bare = new Bare(info).ask('hello', { token, protocol: PROTOCOL }, 'one')
  expect(await answer(bare)).toMatchObject({ id: 'one', result: { protocol: PROTOCOL, root: scratch.root } })
  bare.ask('no.such', {}, 2).ask('toString', {}, 3).ask('turns', { limit: 'x' }, 4).ask('subscribe', { after: 3 }, 5)
  bare.ask('turns', [1], 6).ask('sessions.undo', {}, 7).ask('turns', undefined, 8)
  await until(() => bare.messages.length === 8)
  const by = new Map(bare.messages.map((message) => [message.id, message]))
  const codes = [2, 3, 4, 5, 6, 7].map((id) => by.get(id)?.error?.code)
  expect(codes).toEqual([-32601, -32601, -32602, -32602, -32602, -32010])
  expect(by.get(4)?.error?.message).toMatch(/^turns: limit: /)
  expect(by.get(7)?.error?.data).toMatchObject({ code: 'NOTHING_TO_UNDO', exitCode: 3 })
  expect(by.get(8)?.result.turns).toEqual([])
})

test('who asks, and closes his side, is answered all of it before the connection ends', async () => {
  const scratch = stage('work')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  startDaemon(scratch)
  const info = infoOf(scratch)
  const bare = new Bare(info).ask('hello', { token: info.token, protocol: PROTOCOL }, 1)
  bare.ask('sessions.undo', {}, 2).ask('turns', {}, 3).ask('no.such', {}, 4).socket.end()
  await until(() => bare.closed)
  const by = new Map(bare.messages.map((message) => [message.id, message]))
  expect([...by.keys()].sort()).toEqual([1, 2, 3, 4])
  expect(by.get(2)?.result).toMatchObject({ turns: [1] })
  expect(scratch.read('a.txt')).toBe('one\n')
  // What was only begun has no answer, and who asked nothing none either: the connection ends all the same.
  for (const begun of ['', 'Content-Length: 100\r\n\r\n{']) {
    const none = new Bare(info).send(begun)
    none.socket.end()
    await until(() => none.closed)
    expect(none.messages).toEqual([])
  }
})

test('what comes together with the end of a client, and fills a piece of 64 KiB, is carried out and answered', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const info = infoOf(scratch)
  const bare = new Bare(info).ask('hello', { token: info.token, protocol: PROTOCOL }, 1)
  await until(() => bare.messages.length === 1)
  const mark = (length: number) => {
    const params = { event: 'prompt', session: 's', text: 'x'.repeat(length) }
    return frame(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'mark', params }))
  }
  const piece = mark(60_000 + 65_536 - mark(60_000).length)
  expect(piece).toHaveLength(65_536)
  process.kill(info.pid, 'SIGSTOP')
  try {
    bare.send(piece).socket.end()
    await new Promise((resolve) => bare.socket.once('finish', resolve))
  } finally {
    process.kill(info.pid, 'SIGCONT')
  }
  await until(() => bare.closed)
  expect(bare.messages.map(({ id }) => id)).toEqual([1, 2])
  expect(scratch.ckpt('list').turns).toHaveLength(1)
})

test('an id that is not answered yet is refused, and its client keeps no place', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const info = infoOf(scratch)
  for (const other of [1, '1']) {
    const bare = new Bare(info).ask('hello', { token: info.token, protocol: PROTOCOL }, 0)
    await until(() => bare.messages.length === 1)
    bare.socket.cork() // both come together, and the first takes its time
    bare.ask('snapshots.track', {}, 1).ask('state', {}, other).socket.end()
    await until(() => bare.closed)
    expect(bare.messages).toContainEqual(
      expect.objectContaining({
        id: null,
        error: { code: -32600, message: 'A request of that id is not answered yet.' },
      }),
    )
  }
})

test('a client finds no daemon, or starts one', async () => {
  const scratch = stage('work')
  const { vars } = scratch
  expect(await codeOf(connectDaemon(scratch.root, { vars }))).toBe('NOT_FOUND')
  const client = await connectDaemon(scratch.root, { vars, start: true })
  try {
    expect(await client.turns()).toMatchObject({ turns: [] })
    expect(scratch.ckpt('status').daemon.running).toBe(true)
    const closed = new Promise<void>((resolve) => client.onClose(resolve))
    scratch.ckpt('daemon', 'stop')
    await closed
    expect(await codeOf(client.turns())).toBe('INTERNAL')
  } finally {
    client.close()
    scratch.run(['daemon', 'stop'])
  }
})

test('a call can be cancelled over the socket', async () => {
  const scratch = stage('work')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const before = scratch.manifest()
  const calls = [1, 2, 3].map(() => client.sessions.undo({ signal: AbortSignal.timeout(1) }))
  const codes = await Promise.all(calls.map(codeOf))
  expect(codes.filter((code) => code === 'CANCELLED').length).toBeGreaterThan(0)
  if (codes.includes(null)) await client.sessions.redo()
  expect(scratch.manifest()).toEqual(before)
})

test('a command line can be cancelled too, while it waits', async () => {
  const scratch = stage('work')
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const before = scratch.manifest()
  const lock = `${scratch.root}/.git/ckpt/worktrees/@main/lock`
  await withLock(realEnv(), { path: lock, command: 'test', wait: 0 }, async () => {
    for (const more of [[], ['--no-daemon']])
      expect(await codeOf(client.command(['undo', ...more], { signal: AbortSignal.timeout(200) }))).toBe('CANCELLED')
  })
  expect(scratch.manifest()).toEqual(before)
  expect((await client.command(['undo', '--json'])).code).toBe(0)
})

test('events: what happens, in its order, by the daemon or without it', async () => {
  const scratch = stage('work')
  scratch.turn('before anybody looked', () => scratch.write({ 'a.txt': 'zero\n' }))
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const seen = await watchEvents(client)
  const next = async (what: string, done: (types: string[]) => boolean) => {
    await until(() => done(typesOf(seen)), what)
    return seen.splice(0)
  }
  await client.mark({ event: 'prompt', session: 's', text: 'hello\nyou', messageId: 'm2' })
  scratch.write({ 'a.txt': 'two\n' })
  await client.mark({ event: 'step', session: 's', tool: 'edit' })
  scratch.write({ 'b.txt': 'one\n' })
  await client.mark({ event: 'step', session: 's', tool: 'edit' })
  await client.mark({ event: 'stop', session: 's' })
  const turn = await next('a turn', (types) => types.includes('session.diff'))
  expect(typesOf(turn)).toEqual([
    'checkpoint.created',
    'turn.added',
    'session.updated',
    'checkpoint.created',
    'checkpoint.created',
    'checkpoint.created',
    'session.updated',
    'session.diff',
  ])
  expect(ofType(turn, 'turn.added')[0]?.turn).toMatchObject({ n: 2, prompt: 'hello you', messageId: 'm2' })
  expect(ofType(turn, 'checkpoint.created').map(({ checkpoint }) => [checkpoint.kind, checkpoint.step])).toEqual([
    ['before', null],
    ['step', '2.1'],
    ['step', '2.2'],
    ['after', null],
  ])
  expect(ofType(turn, 'session.updated').map(({ info }) => info.state)).toEqual(['running', 'idle'])
  expect(ofType(turn, 'session.diff')[0]?.files.map(({ path }) => path)).toEqual(['a.txt', 'b.txt'])

  await client.sessions.undo({ step: true })
  const step = await next('a step undone', (types) => types.includes('session.diff'))
  expect(ofType(step, 'step.removed')).toMatchObject([{ session: 's', step: '2.2' }])
  expect(ofType(step, 'boundary.changed')).toMatchObject([{ boundary: { turn: 2, step: '2.2' } }])

  scratch.ckpt('undo', '--turns', '2', '--no-daemon')
  const undone = await next('undone by another process', (types) => types.includes('session.diff'))
  expect(ofType(undone, 'turn.removed')).toMatchObject([
    { turn: 2, why: 'undone' },
    { turn: 1, why: 'undone' },
  ])
  expect(ofType(undone, 'boundary.changed')).toMatchObject([{ boundary: { turn: 1, hiddenTurns: [1, 2] } }])

  scratch.write({ 'a.txt': 'mine\n' })
  expect(await codeOf(client.sessions.redo())).toBe('CONFLICT')
  expect((await client.command(['redo', '--all'])).code).toBe(4)
  const conflicts = await next('conflicts', (types) => types.filter((type) => type === 'conflict').length === 2)
  expect(ofType(conflicts, 'conflict')).toMatchObject([
    { session: 's', command: 'sessions.redo', paths: ['a.txt'] },
    { session: 's', command: 'redo', paths: ['a.txt'] },
  ])

  await client.sessions.redo({ conflicts: 'force' })
  const redone = await next('redone', (types) => types.includes('session.diff'))
  expect(ofType(redone, 'turn.added').map((event) => event.turn.n)).toEqual([1])

  await client.sessions.cleanupRevertedHistory()
  const accepted = await next('accepted', (types) => types.includes('session.diff'))
  expect(ofType(accepted, 'boundary.changed')).toMatchObject([{ boundary: null }])

  scratch.turn('three', () => scratch.write({ 'c.txt': 'c\n' }))
  await next('another turn', (types) => types.includes('session.diff'))
  scratch.ckpt('prune', '--keep', '1')
  const pruned = await next('pruned', (types) => types.includes('prune.done') && types.includes('turn.removed'))
  expect(ofType(pruned, 'prune.done')[0]?.removed.map((one) => one.turn)).toContain(1)
  expect(ofType(pruned, 'turn.removed')).toMatchObject([{ turn: 1, why: 'left' }])
  expect(ofType(pruned, 'checkpoint.created')).toEqual([])

  // Its turns have other ids: who knows them by number has them still.
  const numbers = (): [number, string][] => scratch.ckpt('list').turns.map((turn: Json) => [turn.n, turn.id])
  const known = new Map(numbers())
  scratch.ckpt('forget', 'c.txt')
  const told = await next('forgotten', (types) => types.includes('turn.added') && types.includes('turn.removed'))
  for (const { event } of told) {
    if (event.type === 'turn.removed') known.delete(event.turn)
    else if (event.type === 'turn.added') known.set(event.turn.n, event.turn.id)
  }
  expect([...known]).toEqual(numbers())

  // A program that has the library prunes in its own process.
  scratch.turn('four', () => scratch.write({ 'd.txt': 'd\n' }))
  await next('one more', (types) => types.includes('session.diff'))
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars })
  await worktree.snapshots.cleanup({ keep: 1, dryRun: true })
  const { removed } = await worktree.snapshots.cleanup({ keep: 1 })
  const inProcess = await next('pruned by the library', (types) => types.includes('turn.removed'))
  expect(ofType(inProcess, 'prune.done')).toMatchObject([{ removed }])
})

test('events go on after a reconnect where they were, or say that something is missing', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const first = await clientOf(scratch)
  const seen = await watchEvents(first)
  await first.mark({ event: 'prompt', session: 's', text: 'one' })
  await until(() => typesOf(seen).includes('turn.added'))
  first.close()
  const at = seen.at(-1)!
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.turn('two', () => scratch.write({ 'a.txt': 'two\n' }))
  const second = await clientOf(scratch)
  const more: typeof seen = []
  const gaps: unknown[] = []
  const onGap = (gap: unknown) => gaps.push(gap)
  expect(await second.subscribe((one) => more.push(one), { after: at, onGap })).toMatchObject({ resumed: true })
  await until(
    () => ofType(more, 'turn.added').some((event) => event.turn.n === 2) && typesOf(more).includes('session.diff'),
  )
  expect([...seen.filter(({ seq }) => seq <= at.seq), ...more].map(({ seq }) => seq)).toEqual(
    Array.from({ length: at.seq + more.length }, (_, i) => i + 1),
  )
  expect(gaps).toEqual([])
  expect(await second.subscribe(() => undefined, { after: { epoch: 'another', seq: 3 }, onGap })).toMatchObject({
    resumed: false,
  }) // a daemon that was started again
  expect(gaps).toHaveLength(1)
})

test('a subscription that takes another one’s place hears nothing of what was on its way to that one', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const start = await client.subscribe(() => undefined)
  await client.mark({ event: 'prompt', session: 's', text: 'one' })
  for (let round = 0; round < 8; round++) {
    const marked = client.mark({ event: 'step', session: 's', callId: `c${round}` })
    await new Promise((resolve) => setTimeout(resolve, round * 4))
    const seen: number[] = []
    await client.subscribe(({ seq }) => seen.push(seq), { after: { epoch: start.epoch, seq: start.seq } })
    const { checkpoint } = await marked
    expect(checkpoint).not.toBe(null)
    await until(() => seen.length > 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(seen).toEqual(seen.map((_, i) => start.seq + 1 + i))
  }
})

test('a subscription that is refused leaves the one before it, which misses nothing', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const seen: number[] = []
  const { seq } = await client.subscribe((message) => seen.push(message.seq))
  await client.mark({ event: 'prompt', session: 's', text: 'one' })
  const after = { epoch: 'x', seq: -1 }
  const refused = client.subscribe(() => expect.fail('it was refused'), { after })
  const marked = client.mark({ event: 'stop', session: 's' })
  await expect(refused).rejects.toMatchObject({ code: 'USAGE' })
  await marked
  const { seq: last } = await (await clientOf(scratch)).subscribe(() => undefined)
  await until(() => seen.length === last - seq)
  expect(seen).toEqual(Array.from({ length: last - seq }, (_, i) => seq + 1 + i))
})

test('what a listener throws is not passed over, and ends nothing; one that is none is refused', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await clientOf(scratch)
  const seen: string[] = []
  const wrong = new Error('of the listener')
  const thrown = await uncaught(async () => {
    await client.subscribe(({ event }) => {
      seen.push(event.type)
      if (event.type === 'checkpoint.created') throw wrong
      if (event.type === 'turn.added') return Promise.reject(wrong) as never
    })
    await client.mark({ event: 'prompt', session: 's' })
    await until(() => seen.includes('session.updated'))
  })
  expect(thrown).toEqual([wrong, wrong])
  const after = { epoch: 'another', seq: 1 }
  const onGap = () => {
    throw wrong
  }
  expect(await uncaught(() => client.subscribe(() => undefined, { after, onGap }))).toEqual([wrong])
  for (const none of [undefined, null, 'listener', {}]) {
    expect(await codeOf(client.subscribe(none as never))).toBe('USAGE')
    expect(await codeOf((async () => client.onClose(none as never))())).toBe('USAGE')
  }
})

test('every method of the protocol is a function of the client', async () => {
  const scratch = stage('work')
  startDaemon(scratch)
  const client = await clientOf(scratch)
  for (const name of Object.keys(methods)) {
    const [first, second] = name.split('.') as [keyof typeof client, string | undefined]
    const at: any = second === undefined ? client : client[first]
    expect([name, typeof at[second ?? first]]).toEqual([name, 'function'])
  }
  await client.sessions.setBackend('s', 'unheard of')
  expect(await client.sessions.capabilities('s')).toMatchObject({ backend: 'ckpt' })
})
