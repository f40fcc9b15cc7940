// What a client may send: an error or a closed connection, never a lost marker, never a dead daemon.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { methods } from '../../src/calls/table.ts'
import { MAX_MESSAGE, PROTOCOL } from '../../src/daemon/protocol.ts'
import { alive, startDaemon } from '../support/daemon.ts'
import { Bare, clientOf, frame, infoOf, until } from '../support/protocol.ts'
import { Scratch } from '../support/scratch.ts'
import { RUNS } from '../support/seed.ts'

/** A daemon, and a client whose markers must all come through. */
async function besieged() {
  const scratch = new Scratch().init()
  const { pid } = startDaemon(scratch)
  const info = infoOf(scratch)
  const client = await clientOf(scratch)
  let sent = 0
  const mark = async () => {
    await client.mark({ event: 'prompt', session: 's', messageId: `m${++sent}` })
    expect(alive(pid)).toBe(true)
  }
  const check = async () => {
    await mark()
    const { turns } = await client.turns()
    expect(turns.map((turn) => turn.messageId)).toEqual(Array.from({ length: sent }, (_, i) => `m${sent - i}`))
    expect((await client.command(['status', '--json'])).code).toBe(0)
    expect(scratch.ckpt('verify').problems).toEqual([])
  }
  return { scratch, info, mark, check, hello: { token: info.token, protocol: PROTOCOL } }
}

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

test('malformed frames end the connection, and nothing else', async () => {
  const { info, mark, check } = await besieged()
  const request = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'turns', params: {} })
  const broken: Record<string, string | Buffer> = {
    'no header': '\r\n\r\n',
    'no length': `Content-Type: x\r\n\r\n${request}`,
    'a length that is none': `Content-Length: many\r\n\r\n${request}`,
    'a negative length': `Content-Length: -5\r\n\r\n${request}`,
    'a length that means another thing to the reader': `Content-Length: -1\r\n\r\n${request}`,
    'a length that is too short': `Content-Length: 5\r\n\r\n${request}`,
    'a header without a colon': `Content-Length 5\r\n\r\n${request}`,
    'no JSON': frame('undefined'),
    'half of it': frame(request.slice(0, 20)),
    'not UTF-8': frame(Buffer.from([0xff, 0xfe, 0x00])),
    'a list': frame(`[${request}]`),
    'a text': frame('"turns"'),
    nothing: frame('null'),
    'another version': frame(request.replace('2.0', '1.0')),
    'an id that is none': frame(request.replace('"id":1', '"id":{"a":1}')),
    'a method that is none': frame(request.replace('"turns"', '7')),
    'parameters that are none': frame(request.replace('{}', '7')),
    'a cancel of nothing': frame('{"jsonrpc":"2.0","method":"$/cancelRequest"}'),
    'an answer to nobody': frame('{"jsonrpc":"2.0","id":null,"result":1}'),
    'deep lists': frame(nested(200_000)),
    'deep objects': frame(objects(200_000)),
    http: 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n',
  }
  for (const [what, bytes] of Object.entries(broken)) {
    const bare = new Bare(info).send(bytes)
    await until(() => bare.closed, what)
    expect(`${what}: ${JSON.stringify(bare.messages)}`).not.toMatch(/Cannot read prop/)
    await mark()
  }
  await check()
})

test('a message that is too large, announced or sent, ends the connection', async () => {
  const { info, mark, check } = await besieged()
  const announced = new Bare(info).send(`Content-Length: ${2 ** 52}\r\n\r\n`)
  const endless = new Bare(info)
  const chunk = Buffer.alloc(2 ** 20, 'x')
  for (let i = 0; i <= MAX_MESSAGE / chunk.length && !endless.closed; i++) {
    endless.send(chunk)
    announced.send(chunk)
    if (i % 4 === 0) await mark()
  }
  await until(() => endless.closed && announced.closed, 'both are closed')
  await check()
})

test('wrong types and wrong tokens get an error each', async () => {
  const { info, check, hello } = await besieged()
  const wrong: [string, unknown, number][] = [
    ['turns', { session: 7 }, -32602],
    ['turns', { session: 'x'.repeat(2000) }, -32602],
    ['turns', { unknown: true }, -32602],
    ['turns', ['s'], -32602],
    ['sessions.undo', { turns: -1 }, -32602],
    ['sessions.undo', { paths: ['../../etc/passwd'] }, -32602],
    ['sessions.undo', { paths: ['a\0b'] }, -32602],
    ['snapshots.restore', { id: {} }, -32602],
    ['mark', { event: 'prompt', session: '' }, -32010],
    ['mark', { event: 'prompt' }, -32602],
    ['subscribe', { after: { epoch: 1, seq: -1 } }, -32602],
    ['notice', { token: info.token, event: { type: 'turn.added' } }, -32602],
    ['cli', { token: info.token, argv: 'undo', cwd: '/', vars: {} }, -32602],
    ['cli', { token: info.token, argv: [], cwd: '/', vars: {} }, -32602],
    ['cli', { token: info.token, argv: ['undo'], cwd: 'here', vars: {} }, -32602],
    ['cli', { token: info.token, argv: ['undo'], cwd: '/a\0b', vars: {} }, -32602],
    ['cli', { token: info.token, argv: ['show', 'a\0b'], cwd: '/', vars: {} }, -32602],
    ['cli', { token: info.token, argv: ['undo'], cwd: '/', vars: { A: 1 } }, -32602],
    ['__proto__', {}, -32601],
    ['constructor', {}, -32601],
    ['', {}, -32601],
  ]
  const bare = new Bare(info).ask('hello', hello, 'hello')
  const deep = `{"jsonrpc":"2.0","id":"deep","method":"turns","params":{"session":${objects(100_000)}}}`
  bare.send(frame(deep))
  for (const [i, [method, params]] of wrong.entries()) bare.ask(method, params, i)
  await until(() => bare.messages.length === wrong.length + 2, 'all are answered')
  const answers = new Map(bare.messages.map(({ id, error }) => [id, error?.code]))
  expect(wrong.map(([method], i) => [method, answers.get(i)])).toEqual(wrong.map(([method, , code]) => [method, code]))
  expect(answers.get('deep')).toBe(-32602)
  for (const token of ['', 'wrong', `${info.token}x`, null, 7, {}, [info.token]]) {
    for (const method of ['hello', 'cli', 'state', 'stop', 'notice']) {
      const stranger = new Bare(info).ask(method, { ...hello, token, argv: ['undo'], cwd: '/', vars: {} })
      await until(() => stranger.closed, `${method} with ${JSON.stringify(token)}`)
      expect(stranger.messages.map(({ error }) => error?.code)).toEqual([-32001])
    }
  }
  await check()
})

test('half-open connections, and clients that do not read, hold up nothing', async () => {
  const { info, mark, check, hello } = await besieged()
  const open: Bare[] = []
  for (let i = 0; i < 40; i++) open.push(new Bare(info).send(i % 2 === 0 ? '' : 'Content-Length: 100\r\n\r\n{"json'))
  const deaf = new Bare(info).ask('hello', hello, 'hello')
  deaf.socket.pause()
  for (let i = 0; i < 5000; i++) deaf.ask('state', { token: info.token }, i)
  for (let i = 0; i < 5; i++) await mark()
  await check()
  await until(() => open.every(({ closed }) => closed), 'strangers are sent away', 30)
  for (const one of open) one.socket.destroy()
  deaf.socket.resume()
  await until(() => deaf.messages.length === 5001, 'the deaf one gets every answer')
  await check()
})

test('more connections than it takes: the others do their work themselves', async () => {
  const { info, mark, scratch, check } = await besieged()
  const many = Array.from({ length: 300 }, () => new Bare(info))
  await until(() => many.filter(({ closed }) => closed).length > 40, 'some are refused')
  await mark()
  scratch.ckpt('mark', 'stop', '--session', 's')
  for (const one of many) one.socket.destroy()
  await check()
})

test('anything at all', async () => {
  const { info, mark, check, hello } = await besieged()
  const params = fc.anything({ maxDepth: 4, withNullPrototype: false })
  const method = fc.constantFrom(...Object.keys(methods), 'hello', 'subscribe', 'unsubscribe', 'state', 'notice', 'cli')
  const message = fc.record(
    { jsonrpc: fc.constant('2.0'), id: fc.nat(), method, params },
    { requiredKeys: ['jsonrpc', 'method'] },
  )
  const piece = fc.oneof(
    message.map((one) => frame(JSON.stringify(one))),
    fc.jsonValue().map((one) => frame(JSON.stringify(one))),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.tuple(message, fc.nat(100)).map(([one, cut]) => frame(JSON.stringify(one)).subarray(0, cut)),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 8 }), async (pieces) => {
      const bare = new Bare(info).ask('hello', hello)
      for (const bytes of pieces) bare.send(bytes)
      await new Promise((resolve) => setTimeout(resolve, 5))
      bare.socket.destroy()
      await mark()
    }),
    { numRuns: RUNS },
  )
  await check()
})
