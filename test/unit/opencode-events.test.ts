// What OpenCode tells, told on: a server that is made up, and what its listeners do.
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { OwnSession, OwnTurn } from '../../src/core/own-session.ts'
import { follow } from '../../src/wrappers/opencode/events.ts'
import type { Server, ServerEvent } from '../../src/wrappers/opencode/http.ts'
import { uncaught } from '../support/uncaught.ts'

const turn = (number: number): OwnTurn => ({
  number,
  messageId: `m${number}`,
  text: null,
  status: 'completed',
  startedAt: '2026-01-01T00:00:00.000Z',
  endedAt: null,
  steps: [],
})

/** A session that has a turn more each time it is read. */
function growing(): () => Promise<OwnSession> {
  const turns: OwnTurn[] = []
  const session = 's' as OwnSession['session']
  return async () => {
    turns.push(turn(turns.length + 1))
    return { session, agent: 'opencode', parent: null, state: 'idle', turns: [...turns], boundary: null, diff: '' }
  }
}

test('a listener that throws hears the next events all the same, and what it threw is not passed over', async () => {
  const events: ServerEvent[] = [
    { type: 'server.connected', properties: {} },
    { type: 'session.diff', properties: { sessionID: 's', diff: [] } },
    { type: 'session.diff', properties: { sessionID: 's', diff: 'no list' } },
    { type: 'session.updated', properties: { sessionID: 's' } },
  ]
  const server = {
    sessions: async () => [],
    async *events(signal: AbortSignal) {
      yield* events
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  } as Partial<Server> as Server
  const [told, failed]: [string[], unknown[]] = [[], []]
  const wrong = new Error('of the listener')
  const listener = ({ type }: { type: string }) => {
    told.push(type)
    throw wrong
  }
  const thrown = await uncaught(async () => {
    const onError = (error: unknown) => failed.push(error)
    const follower = await follow(server, growing(), { listener, sessions: ['s'], onError })
    await new Promise((resolve) => setTimeout(resolve, 20))
    follower.close()
  })
  const look = ['turn.added', 'session.updated'] // one is taken once the connection stands
  expect(told).toEqual([...look, 'session.diff', 'session.diff', ...look])
  expect(thrown).toEqual(Array(6).fill(wrong))
  expect(failed).toEqual([])
})

test('who only follows goes on following when the connection breaks, and ends when it is closed', async () => {
  const code = `
    import { follow } from ${JSON.stringify(path.resolve(import.meta.dirname, '../../src/wrappers/opencode/events.ts'))}
    let connected = 0
    const server = {
      sessions: async () => [],
      async *events() {
        yield { type: 'server.connected', properties: {} }
        connected++
        if (connected === 2) setImmediate(() => follower.close())
        throw new Error('it broke')
      },
    }
    const follower = await follow(server, () => undefined, { listener: () => undefined })
    process.on('exit', () => console.log(connected))`
  const argv = ['--import', 'tsx', '--input-type=module', '-e', code]
  const said = execFileSync(process.execPath, argv, { encoding: 'utf8', timeout: 20_000 })
  expect(said).toBe('2\n')
})

test('a server whose events end before they began is told as one that cannot be followed', async () => {
  let asked = 0
  const server = {
    sessions: async () => [],
    async *events() {
      asked++
      if (asked > 1) yield { type: 'server.connected', properties: {} }
    },
  } as unknown as Server
  await expect(follow(server, growing(), { listener: () => undefined })).rejects.toThrow('tells no events')
  expect(asked).toBe(1)
})
