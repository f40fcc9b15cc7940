// A server that fails midway, in OpenCode's words (docs/backends.md): what is said of the files, and which events are told.
import fs from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CkptError } from '../../src/core/errors.ts'
import type { CkptEvent } from '../../src/daemon/protocol.ts'
import { openWorktree, type Worktree } from '../../src/library/worktree.ts'
import type { FollowOptions } from '../../src/wrappers/opencode/events.ts'
import { OpenCode, type OpenCodeOptions, openCode } from '../../src/wrappers/opencode/opencode.ts'
import { type Json, Scratch } from '../support/scratch.ts'

/** Answers by hand: `GET /session/s` → what the table has; an answer of its own where that is a function. */
async function stage() {
  const scratch = new Scratch().init()
  const message = (id: string, role: string, created: number) => ({
    info: { id, role, time: { created, completed: created } },
    parts: [{ id: `${id}p`, type: 'text', text: `do ${id}` }],
  })
  type Answer = Json | ((answer: ServerResponse, request: IncomingMessage) => void)
  const table: Record<string, Answer> = {
    'GET /session': [{ id: 's' }, { id: 'other' }, { id: 'child', parentID: 's' }],
    'GET /session/status': {},
  }
  for (const [id, more] of [
    ['s', {}],
    ['other', {}],
    ['child', { parentID: 's' }],
  ] as const) {
    table[`GET /session/${id}`] = { id, ...more }
    table[`GET /session/${id}/message`] = [message(`${id}1`, 'user', 1000), message(`${id}2`, 'assistant', 2000)]
  }
  const listeners = new Set<ServerResponse>()
  const send = (type: string, properties: object = {}) => {
    for (const one of listeners) one.write(`data: ${JSON.stringify({ type, properties })}\n\n`)
  }
  table['GET /event'] = (answer: ServerResponse) => {
    answer.writeHead(200, { 'content-type': 'text/event-stream' })
    listeners.add(answer)
    send('server.connected')
  }
  const server = createServer((request, answer) => {
    const found = table[`${request.method} ${request.url!.split('?')[0]}`]
    if (typeof found === 'function') found(answer, request)
    else answer.writeHead(found === undefined ? 404 : 200).end(JSON.stringify(found ?? 'not there'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const opencode = new OpenCode({ url, directory: scratch.root, vars: scratch.vars })
  return { scratch, url, table, send, opencode }
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => expect.unreachable(),
    (error: unknown) => {
      expect(error).toBeInstanceOf(CkptError)
      return error as CkptError
    },
  )

test.each<[string, string, (answer: ServerResponse) => void]>([
  ['breaks the connection off', 'does not answer', (answer) => answer.destroy()],
  ['fails', 'half of it', (answer) => answer.writeHead(500).end('half of it')],
  ['answers with a page', 'is no OpenCode server', (answer) => answer.end('<html>')],
  ['shows nothing undone', 'nothing undone in session s', (answer) => answer.end('{}')],
])('a revert that writes, and then %s: what may have happened is said, with the way back', async (_, why, then) => {
  const { scratch, table, opencode } = await stage()
  await opencode.attach('s')
  table['POST /session/s/revert'] = (answer: ServerResponse) => {
    scratch.write({ 'a.txt': 'written by the revert\n' })
    then(answer)
  }
  scratch.write({ 'a.txt': 'mine, in no commit\n' })
  const disk = scratch.manifest()
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [opencode.backend], session: 's' })
  const { message, hints } = await failure(worktree.sessions.undo())
  expect(message).toContain(why)
  const [, saved] = /OpenCode may have changed files by then\. They are as they were in checkpoint (\w+)\.$/.exec(
    message,
  )!
  expect(hints[0]).toBe(`ckpt restore ${saved} --exact --force`)
  scratch.ckpt('restore', saved!, '--exact', '--force')
  expect(scratch.manifest()).toEqual(disk)
})

async function heard({ opencode, send }: Awaited<ReturnType<typeof stage>>, sessions?: string[]) {
  const told: CkptEvent[] = []
  const errors: unknown[] = []
  const follower = await opencode.subscribe({
    listener: (event) => told.push(event),
    onError: (error) => errors.push(error),
    ...(sessions && { sessions }),
  })
  onTestFinished(() => follower.close())
  /** All that was told by now: a diff of a session that is known is told in its turn. */
  const all = async () => {
    send('session.diff', { sessionID: 's', diff: [] })
    const isLast = (event: CkptEvent) => event.type === 'session.diff' && event.session === 's' && event.total === 0
    while (!told.some(isLast)) await new Promise((resolve) => setTimeout(resolve, 10))
    return told.splice(0).filter((event) => !isLast(event))
  }
  return { follower, told, errors, all }
}

test('what is undone between the first look and the connection is told', async () => {
  const here = await stage()
  const connect = here.table['GET /event']
  here.table['GET /event'] = (answer: ServerResponse) => {
    here.table['GET /session/s'] = { id: 's', revert: { messageID: 's1' } }
    connect(answer)
  }
  const { all } = await heard(here, ['s'])
  expect((await all()).map(({ type }) => type)).toEqual(['turn.removed', 'boundary.changed', 'session.updated'])
})

test('a text with any line end of Unicode in it is told', async () => {
  const here = await stage()
  const { all, errors, told } = await heard(here, ['s'])
  const file = 'a\u2028b\u2029c\u0085.txt'
  here.send('session.diff', { sessionID: 's', diff: [{ file, additions: 1, deletions: 0 }] })
  await expect.poll(() => told).toMatchObject([{ type: 'session.diff', files: [{ path: file }] }])
  expect([(await all()).length, errors]).toEqual([1, []])
})

test('a time that no clock has is no OpenCode server\u2019s', async () => {
  const { scratch, table, opencode } = await stage()
  await opencode.attach('s')
  table['GET /session/s/message'] = [{ info: { id: 's1', role: 'user', time: { created: 1e20 } }, parts: [] }]
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [opencode.backend], session: 's' })
  expect((await failure(worktree.sessions.undo())).message).toContain('is no OpenCode server')
})

test('what was undone before is not; nor is a word of subagents', async () => {
  const here = await stage()
  const reverted = { id: 'other', revert: { messageID: 'other1' } }
  here.table['GET /session'] = [{ id: 's' }, reverted]
  here.table['GET /session/other'] = reverted
  const { all, errors } = await heard(here)
  here.send('session.updated', { info: { id: 'other', title: 'a title' } })
  here.send('session.diff', { sessionID: 'child', diff: [{ file: 'a.txt', additions: 1, deletions: 0 }] })
  expect([await all(), errors]).toEqual([[], []])
})

test.each<[string, string[]]>([
  ['the server says so', ['session.deleted']],
  ['it is looked at again', ['message.removed']],
  ['both', ['message.removed', 'session.deleted']],
])('of a session that was deleted the end is told, once, when %s', async (_, types) => {
  const here = await stage()
  here.table['GET /session/other'] = { id: 'other', revert: { messageID: 'other1' } }
  const { all, errors } = await heard(here, ['s', 'other'])
  await all()
  delete here.table['GET /session/other']
  for (const type of types) here.send(type, { sessionID: 'other', info: { id: 'other' } })
  expect([await all(), errors]).toEqual([
    [
      { type: 'turn.removed', session: 'other', turn: 1, id: 'other1', why: 'left' },
      { type: 'boundary.changed', session: 'other', boundary: null },
      { type: 'session.updated', session: 'other', info: expect.objectContaining({ turns: 0, boundary: null }) },
    ],
    [],
  ])
  here.send('session.deleted', { info: { id: 'never-seen' } })
  expect(await all()).toEqual([])
})

test('after `close()` nothing is told, what is under way included', async () => {
  const here = await stage()
  const { follower, told, errors } = await heard(here, ['s'])
  const asked = new Promise<ServerResponse>((resolve) => {
    here.table['GET /session/s'] = (answer: ServerResponse) => resolve(answer)
  })
  here.send('session.updated', { info: { id: 's' } })
  const answer = await asked
  follower.close()
  answer.end(JSON.stringify({ id: 's', revert: { messageID: 's1' } }))
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect([told, errors]).toEqual([[], []])
})

/** What the server is asked on these paths stays without an answer; resolves when one of them is asked. */
const silentAt = ({ table }: Awaited<ReturnType<typeof stage>>, ...asked: string[]) =>
  new Promise<void>((resolve) => {
    for (const one of asked) table[one] = () => resolve()
  })

test.each<[string, (worktree: Worktree, signal: AbortSignal) => Promise<unknown>]>([
  ['turns', (worktree, signal) => worktree.turns({ signal })],
  ['info', ({ sessions }, signal) => sessions.getSessionInfo('s', { signal })],
  ['list', ({ sessions }, signal) => sessions.list({ signal })],
  ['diff', ({ snapshots }, signal) => snapshots.diff('1', undefined, { signal })],
  ['undo', ({ sessions }, signal) => sessions.undo({ signal })],
  ['redo', ({ sessions }, signal) => sessions.redo({ signal })],
])('a server that never answers: %s is cancelled, and has changed nothing', async (_, call) => {
  const here = await stage()
  const { scratch, opencode } = here
  await opencode.attach('s')
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [opencode.backend], session: 's' })
  const asked = silentAt(here, 'GET /session/s', 'GET /session/s/message', 'GET /session/status')
  const cancel = new AbortController()
  const failed = failure(call(worktree, cancel.signal))
  await asked
  cancel.abort()
  expect(await failed).toMatchObject({ code: 'CANCELLED', message: 'Cancelled. Nothing was changed.' })
})

test('an undo that is cancelled once the session was told to stop goes on to its end', async () => {
  const { scratch, table, opencode } = await stage()
  await opencode.attach('s')
  table['GET /session/status'] = { s: { type: 'busy' } }
  const cancel = new AbortController()
  table['POST /session/s/abort'] = (answer: ServerResponse) => {
    table['GET /session/status'] = {}
    cancel.abort()
    answer.end('true')
  }
  table['POST /session/s/revert'] = (answer: ServerResponse) => {
    table['GET /session/s'] = { id: 's', revert: { messageID: 's1' } }
    answer.end('{}')
  }
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [opencode.backend], session: 's' })
  expect(await worktree.sessions.undo({ interrupt: true, signal: cancel.signal })).toMatchObject({ messageId: 's1' })
})

test.each<[string, Json]>([
  ['GET /session/s', null],
  ['GET /session/s/message', [{ info: null }]],
  ['GET /session/s/message', [{ info: { id: 's1', role: 'user', time: {} }, parts: [] }]],
  ['GET /session/status', [null]],
  ['GET /session/s/diff', {}],
])('%s: what is answered in another shape, %j, is no OpenCode server’s', async (asked, answer) => {
  const { scratch, table, opencode } = await stage()
  await opencode.attach('s')
  table['GET /session/s/diff'] = []
  table[asked] = (response: ServerResponse) => response.end(JSON.stringify(answer))
  const worktree = await openWorktree(scratch.root, { vars: scratch.vars, backends: [opencode.backend], session: 's' })
  const { code, message } = await failure(worktree.snapshots.diff('1'))
  const at = asked.slice('GET '.length)
  expect([code, message]).toEqual([
    'INTERNAL',
    expect.stringContaining(`is no OpenCode server: to ${at} it said ${JSON.stringify(JSON.stringify(answer))}.`),
  ])
})

test('an event of another shape is no OpenCode server’s', async () => {
  const { table, opencode } = await stage()
  table['GET /event'] = (answer: ServerResponse) => answer.end('data: null\n\n')
  expect((await failure(opencode.subscribe({ listener: () => undefined }))).message).toContain('is no OpenCode server')
})

test.each([
  undefined,
  null,
  {},
  { url: 'http://127.0.0.1:9' },
  { url: 'nowhere', directory: '.' },
  { url: 'http://127.0.0.1:9', directory: 7 },
  { url: 'http://127.0.0.1:9', directory: '.', header: {} },
])('a server that is not told of as it is to be, %j, is refused', (given) => {
  expect(() => openCode(given as unknown as OpenCodeOptions)).toThrow(expect.objectContaining({ code: 'USAGE' }))
})

test.each<unknown>([
  undefined,
  {},
  { listener: 5 },
  { listener: () => undefined, session: ['s'] },
  { listener: () => undefined, sessions: 's' },
  { listener: () => undefined, onError: true },
])('who would not hear what is meant, %j, is refused', async (given) => {
  const { opencode } = await stage()
  expect((await failure(opencode.subscribe(given as unknown as FollowOptions))).code).toBe('USAGE')
})

test('the server is told the whole path of a directory that is given from here', async () => {
  const { scratch, url, table } = await stage()
  const told: (string | null)[] = []
  table['GET /session/s'] = (answer: ServerResponse, { url: asked }: IncomingMessage) => {
    told.push(new URL(asked!, url).searchParams.get('directory'))
    answer.end(JSON.stringify({ id: 's' }))
  }
  const opencode = openCode({ url, directory: path.relative(process.cwd(), scratch.root), vars: scratch.vars })
  const follower = await opencode.subscribe({ listener: () => undefined, sessions: ['s'] })
  follower.close()
  expect(told).toContain(scratch.root)
})

test('a server that is not there, or is another one, is an error of ckpt’s', async () => {
  const { scratch, table, opencode } = await stage()
  const nobody = new OpenCode({ url: 'http://127.0.0.1:9', directory: scratch.root, vars: scratch.vars })
  const told = { listener: () => undefined }
  expect((await failure(nobody.subscribe(told))).message).toContain('does not answer')
  table['GET /event'] = (answer: ServerResponse) => answer.end('data: <html>\n\n')
  expect((await failure(opencode.subscribe(told))).message).toContain('is no OpenCode server')
  expect(fs.readdirSync(scratch.root).sort()).toEqual(['.git', 'a.txt'])
})
