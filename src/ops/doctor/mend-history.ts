/** Chains of checkpoints that end where a parent is missing: what was pruned with nothing left that says so, and what was lost. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import type { Oid } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { abandonedName, sessionRef } from '../../git/history.ts'
import { comesFromSafety, type Known, reachable, readKnown } from '../store/known.ts'
import type { Context } from '../worktree/context.ts'

interface Ends {
  known: Known
  /** Nothing older of their session is left: it was pruned. */
  cut: Checkpoint[]
  /** Older checkpoints of their session are there, and no ref leads to the newest of them any more. */
  broken: { end: Checkpoint; older: Checkpoint | null }[]
}

async function readEnds(context: Context): Promise<Ends> {
  const { store } = context
  const tips = await store.refs('refs/ckpt/')
  const known = await readKnown(context, new Map(tips.map(({ ref, oid }) => [ref, oid])))
  const ends: Ends = { known, cut: [], broken: [] }
  const live = reachable(known, liveTips(known))
  const reached = reachable(known, known.whole.values())
  const orphans = [...known.checkpoints.values()].filter((one) => !reached.has(one.id) && !comesFromSafety(known, one))
  for (const id of reached) {
    const end = known.checkpoints.get(id)
    const parent = end?.parents[0]
    if (!end || parent === undefined || known.checkpoints.has(parent) || store.shallow.has(id)) continue
    const older = orphans
      .filter(({ session, seq }) => session === end.session && seq < end.seq)
      .reduce<Checkpoint | null>((best, one) => (one.seq > (best?.seq ?? 0) ? one : best), null)
    // Prune cuts a live branch where a turn begins.
    if (older || (live.has(id) && end.kind !== 'before')) ends.broken.push({ end, older })
    else ends.cut.push(end)
  }
  return ends
}

const liveTips = ({ whole }: Known): Oid[] => [...whole].flatMap(([ref, oid]) => (ref.endsWith('/live') ? [oid] : []))

/** One sentence for each that is wrong. */
export async function findEnds(context: Context): Promise<string[]> {
  const { cut, broken } = await readEnds(context)
  const said = broken.map(
    ({ end }) =>
      `what came before checkpoint ${end.id.slice(0, 10)}${turnOf(end)} of session ${printable(end.session)} is missing`,
  )
  if (cut.length > 0) said.unshift(`nothing says that history was pruned before ${listOf(cut)}`)
  return said
}

/**
 * Says of each end that history begins there. Older checkpoints that a lost one led to are an abandoned branch from then on.
 * The caller holds the worktree's lock.
 */
export async function mendEnds(context: Context): Promise<string[]> {
  const { env, store } = context
  const said: string[] = []
  for (let again = true; again; ) {
    const { known, cut, broken } = await readEnds(context)
    again = broken.length > 0
    const ends = [...cut, ...broken.map(({ end }) => end)]
    if (ends.length === 0) break
    const kept = [...store.shallow].filter((id) => known.checkpoints.has(id))
    store.writeShallow(new Set([...kept, ...ends.map(({ id }) => id)]))
    said.push(`history begins at ${listOf(ends)}`)
    const olders = new Map(broken.flatMap(({ older }) => (older ? [[older.id, older]] : [])))
    const edits = [...olders.values()].map((older) => {
      const name = abandonedName(older.seq, new Date(env.now()).toISOString())
      said.push(
        `what ended at checkpoint ${older.id.slice(0, 10)}${turnOf(older)} is an abandoned branch now: it goes once prune.grace is over`,
      )
      return { ref: sessionRef(store, older.session, name), from: null, to: older.id }
    })
    await store.moveRefs(edits, { durable: true })
  }
  return said
}

const turnOf = ({ turn }: Checkpoint): string => (turn === undefined ? '' : ` (turn ${turn})`)
const listOf = (all: readonly Checkpoint[]): string =>
  `checkpoint ${all.map((one) => `${one.id.slice(0, 10)}${turnOf(one)}`).join(', ')}`
