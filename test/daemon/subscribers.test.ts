// Many markers, several subscribers: the same events in the same order for all, and one that does not read delays nobody.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { EventLog } from '../../src/daemon/event-log.ts'
import type { EventMessage } from '../../src/daemon/protocol.ts'
import type { FileDiffInfo } from '../../src/results/shapes.ts'
import { startDaemon } from '../support/daemon.ts'
import { clientOf, ofType, typesOf, until, watchEvents } from '../support/protocol.ts'
import { Scratch } from '../support/scratch.ts'

/** How many markers arrive; an environment variable asks for more. */
const MARKERS = Number(process.env.CKPT_MARKERS ?? 80)
const AGENTS = 4

/** A subscriber in another process. */
function subscriber(scratch: Scratch) {
  const program = path.join(import.meta.dirname, '../support/subscriber.mjs')
  const child = spawn(process.execPath, [program, scratch.root], {
    env: scratch.vars,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const seen: (EventMessage & { ready?: boolean; gap?: unknown })[] = []
  let rest = ''
  child.stdout.on('data', (chunk) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()!
    seen.push(...lines.map((line) => JSON.parse(line)))
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return { child, seen }
}

test(`${MARKERS} markers of ${AGENTS} agents, two subscribers, and one that is stopped`, {
  timeout: 600_000,
}, async () => {
  const scratch = new Scratch().init()
  startDaemon(scratch)
  const acknowledged: string[] = []
  const agent = async (name: number) => {
    const client = await clientOf(scratch)
    for (let i = 0; i < MARKERS / AGENTS / 2; i++) {
      const prompt = await client.mark({ event: 'prompt', session: `agent-${name}`, text: `${i}` })
      scratch.write({ [`${name}.txt`]: `${i}\n` })
      const stop = await client.mark({ event: 'stop', session: `agent-${name}` })
      acknowledged.push(prompt.checkpoint!.id, stop.checkpoint!.id)
    }
  }
  const [one, two] = [await clientOf(scratch), await clientOf(scratch)]
  const [first, second] = [await watchEvents(one), await watchEvents(two)]
  const stopped = subscriber(scratch)
  await until(() => stopped.seen.some(({ ready }) => ready), 'the third subscribes')
  process.kill(stopped.child.pid!, 'SIGSTOP')
  // All of it is answered and told to the others while it stays stopped.
  await Promise.all(Array.from({ length: AGENTS }, (_, name) => agent(name)))

  const expected = new Set(acknowledged)
  const all = (seen: EventMessage[]) => ofType(seen, 'checkpoint.created').length === expected.size
  await until(() => all(first) && all(second), 'every checkpoint is told', 60)
  await until(() => typesOf(first).at(-1) === 'session.diff' && second.length === first.length, 'both are at rest')
  expect(second).toEqual(first)
  expect(first.map(({ seq }) => seq)).toEqual(first.map((_, i) => first[0]!.seq + i))
  const told = ofType(first, 'checkpoint.created').map(({ checkpoint }) => checkpoint.id)
  expect(new Set(told)).toEqual(expected)
  expect(told).toHaveLength(expected.size)
  expect(ofType(first, 'turn.added')).toHaveLength(expected.size / 2)
  const { turns } = scratch.ckpt('list', '--all-sessions')
  expect(turns).toHaveLength(acknowledged.length / 2)

  process.kill(stopped.child.pid!, 'SIGCONT')
  const last = first.at(-1)!.seq
  await until(() => stopped.seen.some(({ seq, gap }) => seq === last || gap !== undefined), 'the third goes on', 60)
  const events = stopped.seen.filter(({ seq }) => seq !== undefined)
  expect(events).toEqual(first.slice(0, events.length))
})

const event = (n: number) => ({ type: 'turn.removed', session: 's', turn: n, id: 't', why: 'left' }) as const
const tick = () => new Promise((resolve) => setTimeout(resolve, 5))

test('one who does not read is told that it is behind, and what it wants is not kept for it', async () => {
  const log = new EventLog({ epoch: 'e', now: () => 0, kept: 10 })
  const [quick, slow, behind]: [number[], number[], unknown[]] = [[], [], []]
  let read = (): void => undefined
  log.subscribe({}, { send: async ({ seq }) => void quick.push(seq), behind: async () => expect.unreachable() })
  log.subscribe(
    {},
    {
      send: ({ seq }) =>
        new Promise((resolve) => {
          slow.push(seq)
          read = resolve
        }),
      behind: async (at) => void behind.push(at),
    },
  )
  await tick()
  for (let n = 1; n <= 100; n++) {
    log.append(event(n))
    await Promise.resolve()
  }
  await tick()
  expect(quick).toEqual(Array.from({ length: 100 }, (_, i) => i + 1))
  expect([slow, behind]).toEqual([[1], []])
  read()
  await tick()
  expect([slow, behind]).toEqual([[1], [{ epoch: 'e', seq: 1 }]])
  log.append(event(101))
  await tick()
  expect(slow).toEqual([1])

  const sink = { send: async ({ seq }: EventMessage) => void slow.push(seq), behind: async () => undefined }
  expect(log.subscribe({ after: { epoch: 'e', seq: 1 } }, sink).answer).toEqual({
    epoch: 'e',
    seq: 101,
    resumed: false,
  })
  expect(log.subscribe({ after: { epoch: 'other', seq: 101 } }, sink).answer.resumed).toBe(false)
  expect(log.subscribe({ after: { epoch: 'e', seq: 200 } }, sink).answer.resumed).toBe(false)
  const resumed = log.subscribe({ after: { epoch: 'e', seq: 98 } }, sink)
  expect(resumed.answer).toEqual({ epoch: 'e', seq: 98, resumed: true })
  await tick()
  expect(slow).toEqual([1, 99, 100, 101])
  resumed.end()
  log.append(event(102))
  await tick()
  expect(slow.filter((seq) => seq === 102)).toHaveLength(3)
})

test('differences that a newer one of the session replaced name no files any more where they are too many', async () => {
  const file = (n: number) => ({ path: `f${n}` }) as unknown as FileDiffInfo
  const diff = (session: string, count: number) =>
    ({ type: 'session.diff', session, files: Array.from({ length: count }, (_, n) => file(n)), total: count }) as const
  const log = new EventLog({ epoch: 'e', now: () => 0, kept: 10, files: 10 })
  const told = async () => {
    const seen: unknown[] = []
    const send = async ({ seq, event }: EventMessage) =>
      void seen.push([seq, ...(event.type === 'session.diff' ? [event.session, event.files.length, event.total] : [])])
    const { answer, end } = log.subscribe({ after: { epoch: 'e', seq: 0 } }, { send, behind: send as never })
    await tick()
    end()
    expect(answer.resumed).toBe(true)
    return seen
  }
  for (const [session, count] of [
    ['a', 4],
    ['b', 4],
    ['a', 2],
  ] as const)
    log.append(diff(session, count))
  log.append(event(1))
  expect(await told()).toEqual([[1, 'a', 4, 4], [2, 'b', 4, 4], [3, 'a', 2, 2], [4]])
  log.append(diff('a', 4)) // of 14 the oldest go, as many as it takes
  expect(await told()).toEqual([[1, 'a', 0, 4], [2, 'b', 4, 4], [3, 'a', 2, 2], [4], [5, 'a', 4, 4]])
  log.append(diff('a', 9)) // the newest of each stay, whatever they are
  expect((await told()).slice(1)).toEqual([[2, 'b', 4, 4], [3, 'a', 0, 2], [4], [5, 'a', 0, 4], [6, 'a', 9, 9]])
  // What is gone from the log counts no more.
  for (let n = 0; n < 20; n++) log.append(event(n))
  log.append(diff('c', 6))
  log.append(diff('c', 4))
  const seen: number[] = []
  const send = async ({ event: one }: EventMessage) => {
    if (one.type === 'session.diff') seen.push(one.files.length)
  }
  log.subscribe({ after: { epoch: 'e', seq: 26 } }, { send, behind: send as never })
  await tick()
  expect(seen).toEqual([6, 4])
})

test('a subscriber whose connection breaks is gone', async () => {
  const log = new EventLog({ epoch: 'e', now: () => 0 })
  let tries = 0
  const send = async () => {
    tries++
    throw new Error('EPIPE')
  }
  log.subscribe({}, { send, behind: send })
  await tick()
  log.append(event(1))
  await tick()
  log.append(event(2))
  await tick()
  expect(tries).toBe(1)
})
