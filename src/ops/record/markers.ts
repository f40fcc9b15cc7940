/** Taking up the markers that waited, in the order in which they came, each exactly once. */
import * as z from 'zod/mini'
import { CkptError } from '../../core/errors.ts'
import { parseSessionId } from '../../core/ids.ts'
import type { Marker } from '../../core/marker.ts'
import { errno } from '../../env.ts'
import { ageOf } from '../../git/file-clock.ts'
import { findByMarker } from '../../git/history.ts'
import { logHookError } from '../hook/log.ts'
import type { Context } from '../worktree/context.ts'
import { markersDirectory, type WaitingMarker, waitingMarkers } from '../worktree/marker-files.ts'
import { readRefs } from '../worktree/sessions.ts'
import { takeSnapshot } from './record.ts'
import { recordMarker } from './record-marker.ts'

/** Milliseconds: what a killed client began to write and never renamed goes after this. */
const ABANDONED = 24 * 3600 * 1000

const text = z.string()
const optional = z.optional(text)
const common = { session: text.check(z.minLength(1)), messageId: optional, handedAt: optional }
const markerSchema = z.discriminatedUnion('event', [
  z.object({
    ...common,
    event: z.literal('prompt'),
    kind: z.optional(z.enum(['prompt', 'command', 'shell', 'compaction'])),
    parent: optional,
    agent: optional,
    text: optional,
    closes: optional,
    notice: z.optional(z.boolean()),
  }),
  z.object({
    ...common,
    event: z.literal('step'),
    start: z.optional(z.boolean()),
    tool: optional,
    paths: z.optional(z.array(text)),
    callId: optional,
    subagent: z.optional(z.boolean()),
    echo: optional,
    turn: optional,
  }),
  z.object({
    ...common,
    event: z.literal('stop'),
    status: z.optional(z.enum(['completed', 'interrupted', 'failed'])),
    turn: optional,
    onlyRunning: z.optional(z.boolean()),
    background: z.optional(z.int().check(z.nonnegative())),
    parent: optional,
  }),
])
const fileSchema = z.object({
  version: z.literal(1),
  id: text.check(z.minLength(1), z.maxLength(1024)),
  client: text,
  time: text,
  marker: markerSchema,
})

/** @throws CkptError BAD_MARKER */
function parseWaiting(json: string): WaitingMarker {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    throw new CkptError('BAD_MARKER', 'A marker file is not JSON.', { cause })
  }
  const parsed = fileSchema.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const where = issue?.path.join('.') || 'its whole'
    throw new CkptError('BAD_MARKER', `A marker file is not a marker: ${where}: ${issue?.message ?? 'unknown'}.`)
  }
  const { marker, ...rest } = parsed.data
  return { ...rest, marker: { ...marker, session: parseSessionId(marker.session) } as Marker }
}

/** Returns what to tell the person. The caller holds the worktree's lock. */
export async function takeUpMarkers(context: Context): Promise<string[]> {
  const { env, store, config } = context
  if (!config.enableFileCheckpointing) return []
  const directory = markersDirectory(store)
  sweep(context, directory)
  const names = waitingMarkers(env, store)
  if (names.length === 0) return []
  // They are all as late as each other: one snapshot serves them all.
  const scanning = takeSnapshot(context, readRefs(context))
  scanning.catch(() => undefined) // whoever awaits it gets the failure
  let taken = 0
  let isUnsaid = false
  try {
    for (const name of names) {
      const path = `${directory}/${name}`
      try {
        const { id, marker } = parseWaiting(env.files.readFileSync(path, 'utf8'))
        if (!(await findByMarker(store, id))) {
          const recording = { arrived: env.monotonic(), reading: readRefs(context), scanning }
          await recordMarker(context, { ...marker, marker: id, late: true }, recording)
          taken++
        }
      } catch (error) {
        if (!(error instanceof CkptError) || (error.code !== 'BAD_MARKER' && error.code !== 'NOT_FOUND')) {
          const isLogged = logHookError(env, store.worktreeDir, { where: `marker ${name}`, error })
          const why = isLogged ? 'ckpt status says why.' : String(error)
          return [`A marker that waited cannot be taken up yet: ${why}`]
        }
        // A step or an end in a session without a turn is nothing, as in a hook.
        const payload = error.code === 'BAD_MARKER' ? env.files.readFileSync(path) : null
        if (payload && !logHookError(env, store.worktreeDir, { where: `marker ${name}`, error, payload })) {
          isUnsaid = true
          continue
        }
      }
      env.files.unlinkSync(path)
    }
  } finally {
    await scanning.catch(() => undefined)
  }
  return [
    ...(taken === 0 ? [] : [`${taken === 1 ? 'A marker' : `${taken} markers`} that waited: recorded late.`]),
    ...(isUnsaid ? ['A marker that waited is not understood, and that cannot be logged: it goes on waiting.'] : []),
  ]
}

function sweep({ env, store }: Context, directory: string): void {
  for (const name of env.files.readdirSync(directory)) {
    const path = `${directory}/${name}`
    try {
      if (name.endsWith('.tmp') && ageOf(env, store.worktreeDir, env.files.lstatSync(path)) > ABANDONED)
        env.files.unlinkSync(path)
    } catch (error) {
      if (errno(error) !== 'ENOENT') throw error
    }
  }
}
