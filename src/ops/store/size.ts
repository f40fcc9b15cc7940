/**
 * What the store takes on disk, and how much more it may (`store.maxBytes`). All its files are counted seldom: `bytes` says what
 * there was then, and a line for each who wrote since, how much.
 */
import { constants } from 'node:fs'
import { type Env, errno, lstatIfThere } from '../../env.ts'
import { writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'
import { keepSpare, SPARE_NAME } from './spare.ts'

/** Milliseconds after which they are counted again: a pack that was linked is ours alone once the user's gc dropped it. */
const COUNT_HOLDS = 86_400_000
/** Bytes of `bytes` itself. */
const MOST_LINES = 16_384
/** Bytes that a daemon writes before it notes them. */
const NOTED_AT_ONCE = 65_536
/** Over the limit the oldest turns go when there is time for that: until then there is this much more room, if not taken at once. */
const LEEWAY = 0.1
/** Bytes that each snapshot may add beyond that, as a share of the limit: an edit of a source file is never left out for it. */
const EVER = { share: 1 / 256, most: 16 * 2 ** 20 }
/** Bytes of a disk that are for others, and of what is left the share that a snapshot takes all the same: for small edits. */
const LEFT_FREE = { share: 0.05, most: 64 * 2 ** 20, ever: 1 / 64 }

type Sized = Pick<Context, 'env' | 'place' | 'config'>

const fileOf = ({ place }: Pick<Context, 'place'>) => `${place.directory}/bytes`

/**
 * What deleting the store would free: a file that is linked from elsewhere costs nothing here. What is being made, or was
 * when somebody was killed, is no part of it, nor is what is kept for a prune: no turn that went would free that.
 */
export function bytesOf(env: Env, directory: string): number {
  let bytes = 0
  for (const entry of env.files.readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory() && entry.name.endsWith('.tmp')) continue
    const path = `${directory}/${entry.name}`
    if (entry.isDirectory()) bytes += bytesOf(env, path)
    else if (entry.name !== SPARE_NAME) {
      const stats = lstatIfThere(env.files, path)
      if (stats && stats.nlink === 1) bytes += stats.blocks * 512
    }
  }
  return bytes
}

/** Counts the store's files, and remembers how many bytes they take. Sees to it that a prune will have room. `limit`: bytes. */
export function count({ env, place, config }: Sized, limit = config.store.maxBytes): number {
  unlessRefused(() => keepSpare(env, place.directory, limit))
  const bytes = bytesOf(env, place.directory)
  unlessRefused(() => writeFileWhole(env, fileOf({ place }), { content: `${bytes} ${env.now()}\n`, sync: false }))
  return bytes
}

/** Bytes of the store, as good as they can be told without counting. */
function sizeOf({ env, place, config }: Sized): number {
  let text = ''
  unlessRefused(() => {
    text = env.files.readFileSync(fileOf({ place })).toString('latin1')
  })
  const [first = '', ...lines] = text.split('\n')
  const [counted, at] = first.split(' ').map(Number)
  const grown = lines.reduce((sum, line) => sum + Number(line), 0)
  const known = (counted ?? Number.NaN) + grown
  const limit = config.store.maxBytes
  const holds = at !== undefined && Math.abs(env.now() - at) < COUNT_HOLDS && text.length < MOST_LINES
  // Where it matters it is counted, but not each time that somebody asks in a store which stays over its limit.
  const matters = known > limit && (counted! <= limit || grown > limit / 64)
  return holds && known >= 0 && !matters ? known : count({ env, place, config })
}

/** Says how much this process wrote. */
export function noteGrowth({ env, place, store, live }: Pick<Context, 'env' | 'place' | 'store' | 'live'>): void {
  const { objects } = store
  if (objects.grown < (live ? NOTED_AT_ONCE : 1)) return
  const line = `${objects.grown}\n`
  objects.grown = 0
  unlessRefused(() => {
    // Not where nothing was counted: the first line is a count.
    const fd = env.files.openSync(fileOf({ place }), constants.O_WRONLY | constants.O_APPEND)
    try {
      env.files.writeSync(fd, line)
    } finally {
      env.files.closeSync(fd)
    }
  })
}

/** No marker fails for that: what cannot be noted, or read, is counted another day. */
function unlessRefused(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

/** `pressing`: half of the leeway is gone, too. */
export const isOver = (context: Sized, { pressing = false } = {}): boolean =>
  sizeOf(context) > context.config.store.maxBytes * (pressing ? 1 + LEEWAY / 2 : 1)

/** Bytes that a snapshot may add: the store has its limit, and the disk is never filled. */
export function roomIn(context: Sized & Pick<Context, 'exists'>): number {
  const { env, place, config, exists } = context
  if (!exists) return Number.POSITIVE_INFINITY
  const limit = config.store.maxBytes
  const size = sizeOf(context)
  // Within its limit a store takes what one snapshot brings, and the oldest go after it: nothing is left out before they are.
  const left = size <= limit ? limit : Math.max(limit * (1 + LEEWAY) - size, Math.min(limit * EVER.share, EVER.most))
  const { bsize, blocks, bavail } = env.files.statfsSync(place.directory)
  const disk = blocks * bsize
  const free = bavail * bsize
  const others = Math.min(LEFT_FREE.most, disk * LEFT_FREE.share)
  return disk > 0 ? Math.min(left, Math.max(free - others, free * LEFT_FREE.ever)) : left
}
