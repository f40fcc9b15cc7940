/** Taking up the markers that waited, in the order in which they came, each exactly once. */
import * as z from 'zod/mini'
import { CkptError } from '../../core/errors.ts'
import { parseSessionId } from '../../core/ids.ts'
import type { Marker } from '../../core/marker.ts'
import { errno } from '../../env.ts'
import { ageOf } from '../../git/file-clock.ts'
import { findByMarkers } from '../../git/history.ts'
import { logHookError } from '../hook/log.ts'
import type { Context } from '../worktree/context.ts'
import {
  isOfHook,
  markersDirectory,
  type TakeUpOptions,
  type WaitingMarker,
  waitingMarkers,
} from '../worktree/marker-files.ts'
import { readRefs } from '../worktree/sessions.ts'
import { type Snapshot, takeSnapshot } from './record.ts'
import { recordMarker } from './record-marker.ts'

/** Milliseconds: what a killed client began to write and never renamed goes after this. */
const ABANDONED = 24 * 3600 * 1000

/** Bytes of a file. A hook's payload, of which one is made, has 64 MiB at most. */
const MOST = 256 * 2 ** 20

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

/** How many are looked for in history at once: their ids are words of one command line. */
const AT_ONCE = 100

/** Returns what to tell the person. The caller holds the worktree's lock. */
export async function takeUpMarkers(context: Context, options?: TakeUpOptions): Promise<string[]> {
  const { env, store, config } = context
  if (!config.enableFileCheckpointing) return []
  sweep(context, markersDirectory(store))
  const names = waitingMarkers(env, store)
  if (names.length === 0) return []
  // They are all as late as each other: one snapshot serves them all.
  const scanning = takeSnapshot(context, readRefs(context))
  scanning.catch(() => undefined) // whoever awaits it gets the failure
  const told = new Set<string>()
  const known = new Set<string>()
  let taken = 0
  let left = 0
  try {
    for (let from = 0; from < names.length; from += AT_ONCE) {
      if (names.length > AT_ONCE) await env.progress(`recording markers that waited: ${from} of ${names.length}`)
      const some = names.slice(from, from + AT_ONCE)
      const result = await takeUpSome(context, some, { scanning, known, told, options })
      taken += result.taken
      left += result.left
      if (result.isStopped) break
    }
  } finally {
    await scanning.catch(() => undefined)
  }
  return [
    ...(taken === 0 ? [] : [`${taken === 1 ? 'A marker' : `${taken} markers`} that waited: recorded late.`]),
    ...(left === 0
      ? []
      : [`${left === 1 ? 'A marker waits' : `${left} markers wait`} on: recorded by a later command.`]),
    ...told,
  ]
}

interface TakingUp {
  scanning: Promise<Snapshot>
  known: Set<string>
  told: Set<string>
  options: TakeUpOptions | undefined
}

/** `known`: ids of markers that are through. `told`: what to tell the person. Stopped: what is behind a marker that cannot be taken up may be of its turn. */
async function takeUpSome(
  context: Context,
  names: readonly string[],
  { scanning, known, told, options }: TakingUp,
): Promise<{ taken: number; left: number; isStopped: boolean }> {
  const { env, store } = context
  const { read, failed } = readSome(context, names, told)
  const hasTime = ({ marker }: WaitingMarker) =>
    !options || options.sessions.includes(marker.session) || env.monotonic() < options.until
  let taken = 0
  let left = 0
  let now = read[0]?.name ?? ''
  try {
    const ids = read.map(({ waiting }) => waiting.id)
    for (const id of (await findByMarkers(store, ids)).keys()) known.add(id)
    for (const { name, waiting } of read) {
      now = name
      if (!hasTime(waiting)) {
        left++
        continue
      }
      const isKnown = known.has(waiting.id)
      const { refused, isNothing, isOvertaken } = isKnown ? NOT_RECORDED : await recorded(context, waiting, scanning)
      // Of one that was overtaken there may be another copy that was not: handed over later.
      if (!refused && !isOvertaken) known.add(waiting.id)
      if (!isNothing) taken++
      // In a hook that is nothing. Who leaves files hears of it nowhere else.
      if (
        refused &&
        !isOfHook(name) &&
        logHookError(env, store.worktreeDir, { where: `marker ${name}`, error: refused })
      )
        told.add('Markers that waited are of no turn, and dropped: ckpt status names the last.')
      env.files.unlinkSync(`${markersDirectory(store)}/${name}`)
    }
    if (failed) told.add(notYet(context, failed.name, failed.error))
    return { taken, left, isStopped: failed !== null }
  } catch (error) {
    told.add(notYet(context, now, error))
    return { taken, left, isStopped: true }
  }
}

/** As far as they can be read. */
function readSome(
  context: Context,
  names: readonly string[],
  told: Set<string>,
): { read: { name: string; waiting: WaitingMarker }[]; failed: { name: string; error: unknown } | null } {
  const read: { name: string; waiting: WaitingMarker }[] = []
  for (const name of names) {
    try {
      const waiting = readWaiting(context, name, told)
      if (waiting) read.push({ name, waiting })
    } catch (error) {
      return { read, failed: { name, error } }
    }
  }
  return { read, failed: null }
}

/** Null: it is not understood, which is logged. */
function readWaiting({ env, store }: Context, name: string, told: Set<string>): WaitingMarker | null {
  const path = `${markersDirectory(store)}/${name}`
  const { size } = env.files.lstatSync(path)
  const payload = size > MOST ? Buffer.alloc(0) : env.files.readFileSync(path)
  try {
    if (size > MOST) throw new CkptError('BAD_MARKER', `A marker file of ${size} bytes is none.`)
    return parseWaiting(payload.toString('utf8'))
  } catch (error) {
    if (!(error instanceof CkptError) || error.code !== 'BAD_MARKER') throw error
    if (logHookError(env, store.worktreeDir, { where: `marker ${name}`, error, payload })) env.files.unlinkSync(path)
    else told.add('A marker that waited is not understood, and that cannot be logged: it goes on waiting.')
    return null
  }
}

/** What a marker came to. Refused: it is a step or an end in a session without a turn. */
interface Recorded {
  refused: CkptError | null
  /** It made no checkpoint, and needed none. */
  isNothing: boolean
  isOvertaken: boolean
}

const NOT_RECORDED: Recorded = { refused: null, isNothing: true, isOvertaken: false }

async function recorded(
  context: Context,
  { id, marker }: WaitingMarker,
  scanning: Promise<Snapshot>,
): Promise<Recorded> {
  const recording = { arrived: context.env.monotonic(), reading: readRefs(context), scanning }
  try {
    const { checkpoint, overtaken } = await recordMarker(context, { ...marker, marker: id, late: true }, recording)
    return { refused: null, isNothing: checkpoint === null, isOvertaken: overtaken === true }
  } catch (error) {
    if (error instanceof CkptError && error.code === 'NOT_FOUND') return { ...NOT_RECORDED, refused: error }
    throw error
  }
}

function notYet({ env, store }: Context, name: string, error: unknown): string {
  const isLogged = logHookError(env, store.worktreeDir, { where: `marker ${name}`, error })
  return `A marker that waited cannot be taken up yet: ${isLogged ? 'ckpt status says why.' : String(error)}`
}

function sweep({ env, store }: Context, directory: string): void {
  for (const name of env.files.readdirSync(directory)) {
    const path = `${directory}/${name}`
    try {
      const stats = name.endsWith('.tmp') ? env.files.lstatSync(path) : null
      if (stats?.isFile() && ageOf(env, store.worktreeDir, stats) > ABANDONED) env.files.unlinkSync(path)
    } catch (error) {
      if (errno(error) !== 'ENOENT') throw error
    }
  }
}
