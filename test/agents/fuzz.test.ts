// Damaged payloads, by class of damage: never a failure, never a word, never a marker that is lost without a trace.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AGENT_NAMES, findAgent } from '../../src/agents/registry.ts'
import { CkptError } from '../../src/core/errors.ts'
import { hook, hookLog, recorded } from '../support/agents.ts'
import { type Json, Scratch } from '../support/scratch.ts'

const SCENARIO: Record<string, string> = { cursor: 'two-turns.hand-written' }
const runs = Number(process.env.CKPT_PROPERTY_RUNS ?? 24)

const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1e300,
    '',
    ' ',
    [],
    {},
    '\u0000',
    '\ud800',
    '\u202e',
    '../../etc',
    '/',
    '\n-x',
  ),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string().map((text) => text.repeat(3000)),
  fc.jsonValue({ maxDepth: 4 }),
  fc.array(fc.string(), { maxLength: 5 }),
)

/** Every place in a payload. */
function placesIn(value: Json, at: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [at]
  return [at, ...Object.keys(value).flatMap((key) => placesIn(value[key], [...at, key]))]
}

function changed(value: Json, at: readonly string[], change: (old: Json) => Json): Json {
  const [key, ...rest] = at
  if (key === undefined) return change(value)
  const copy: Json = Array.isArray(value) ? [...value] : { ...value }
  const next = changed(copy[key], rest, change)
  if (next === undefined) delete copy[key]
  else copy[key] = next
  return copy
}

/** Damage to what a payload says: it stays JSON. */
const damage: Record<string, (payload: Json) => fc.Arbitrary<Json>> = {
  'a field of another kind': (payload) =>
    fc.tuple(fc.constantFrom(...placesIn(payload)), odd).map(([at, value]) => changed(payload, at, () => value)),
  'a field missing': (payload) =>
    fc
      .constantFrom(...placesIn(payload).filter((at) => at.length > 0))
      .map((at) => changed(payload, at, () => undefined)),
  'fields nobody knows': (payload) => fc.dictionary(fc.string(), odd).map((more) => ({ ...more, ...payload })),
  'an event nobody knows': (payload) => odd.map((name) => ({ ...payload, hook_event_name: name })),
  'something else altogether': () => fc.jsonValue({ maxDepth: 3 }),
}

/** Damage to the bytes. */
const bytes: Record<string, (text: string) => fc.Arbitrary<Buffer>> = {
  'cut short': (text) => fc.nat(text.length - 1).map((end) => Buffer.from(text.slice(0, end))),
  'a byte changed': (text) =>
    fc.tuple(fc.nat(Buffer.byteLength(text) - 1), fc.nat(255)).map(([at, byte]) => {
      const copy = Buffer.from(text)
      copy[at] = byte
      return copy
    }),
  'a byte order mark before it': (text) => fc.constant(Buffer.from(`\uFEFF${text}`)),
  twice: (text) => fc.constant(Buffer.from(text + text)),
  'any bytes': () => fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
}

const payloadsOf = (scratch: Scratch, agent: string): Json[] =>
  recorded(scratch, agent, SCENARIO[agent] ?? 'two-turns')
    .filter(({ via }) => via !== 'codex-notify')
    .map(({ event, payload }) => ({ hook_event_name: event, ...payload }))

test.each(AGENT_NAMES)('%s: a payload is understood or refused, whatever it holds', async (name) => {
  const agent = (await findAgent(name))!
  const payloads = payloadsOf(new Scratch(), name)
  const any = fc
    .tuple(fc.constantFrom(...payloads), fc.constantFrom(...Object.values(damage)))
    .chain(([payload, how]) => how(payload))
  fc.assert(
    fc.property(any, fc.option(fc.string(), { nil: undefined }), (payload, event) => {
      try {
        const { markers } = agent.hear(payload, { event, vars: {} })
        for (const marker of markers) {
          expect(marker.session).toMatch(/^[^\u0000-\u001f\u007f]+$/)
          expect((marker.marker ?? '').length).toBeLessThanOrEqual(1024)
        }
      } catch (error) {
        expect(error).toBeInstanceOf(CkptError)
        expect((error as CkptError).code).toBe('BAD_MARKER')
      }
    }),
    { numRuns: runs * 20 },
  )
})

test.each(Object.keys({ ...damage, ...bytes }))('never an exit, never a word, never a loss: %s', async (kind) => {
  const scratch = new Scratch().init()
  const all = AGENT_NAMES.flatMap((name) => payloadsOf(scratch, name).map((payload) => ({ name, payload })))
  const start = all.filter(({ payload }) => /Prompt|BeforeAgent|chat/.test(payload.hook_event_name))
  for (const { name, payload } of start) await hook(scratch, name, { payload })
  const any = fc.constantFrom(...all).chain(({ name, payload }) => {
    const made = damage[kind]
      ? damage[kind](payload).map((value) => Buffer.from(JSON.stringify(value) ?? ''))
      : bytes[kind]!(JSON.stringify(payload))
    return made.map((input) => ({ name, input }))
  })
  await fc.assert(
    fc.asyncProperty(any, async ({ name, input }) => {
      const lines = hookLog(scratch).length
      const { code, stdout, stderr } = await hook(scratch, name, { payload: input })
      expect([code, stdout, stderr]).toEqual([0, '', ''])
      const heard = await understood(name, input)
      const log = hookLog(scratch).slice(lines)
      if (heard === null) {
        // Not understood: whole in the log.
        const { payload, payloadBase64 } = log.at(-1) ?? {}
        expect(payloadBase64 === undefined ? Buffer.from(payload) : Buffer.from(payloadBase64, 'base64')).toEqual(input)
      } else {
        expect(log).toEqual([])
        // Prompts are recorded, again or for the first time; the rest may concern a session without a turn.
        const [marker] = heard
        if (marker?.event === 'prompt') {
          const { turns } = scratch.ckpt('list', '--all-sessions', '--abandoned')
          expect(turns.some((turn: Json) => turn.session === marker.session)).toBe(true)
        }
      }
    }),
    { numRuns: Math.ceil(runs / 6) },
  )
  expect(scratch.ckpt('verify').problems).toEqual([])
})

async function understood(name: string, input: Buffer) {
  try {
    const value = JSON.parse(input.toString('utf8').replace(/^\uFEFF/, ''))
    return (await findAgent(name))!.hear(value, { event: undefined, vars: {} }).markers
  } catch {
    return null
  }
}
