/** From what a person wrote to a checkpoint or a turn. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import { type Oid, type Place, parsePlace, parseTarget } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { endOf, type Timeline, type Turn } from '../../core/timeline.ts'
import { learnSessions, readCheckpoint, type WorktreeRefs } from '../../git/history.ts'
import type { Context } from '../worktree/context.ts'
import { replacedBy, turnIds } from '../worktree/replaced.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { allWorktrees, type WorktreeView } from '../worktree/worktrees.ts'

export type ResolvedPlace =
  | { kind: 'turn'; turn: Turn }
  | { kind: 'step'; turn: Turn; step: number; checkpoint: Checkpoint }
  | { kind: 'checkpoint'; checkpoint: Checkpoint }

export type Resolved = ResolvedPlace | { kind: 'worktree' }

const missing = (what: string, hints: readonly string[] = ['ckpt list --hidden --abandoned']) =>
  new CkptError('NOT_FOUND', `There is no ${what}. Nothing was changed.`, { hints })

/** @throws CkptError NOT_FOUND, USAGE (a prefix that fits several) */
export async function resolveCheckpoint(
  context: Context,
  { timeline, target }: { timeline: Timeline; target: Place },
): Promise<Checkpoint> {
  const turns = [...timeline.turns, ...timeline.abandoned]
  const turnOf = (number: number) => {
    const turn = turns.find((one) => one.number === number)
    if (!turn) throw missing(`turn ${number} in session ${printable(timeline.session)}`)
    return turn
  }
  switch (target.kind) {
    case 'turn': {
      const turn = turnOf(target.turn)
      return endOf(turn)
    }
    case 'edge': {
      const turn = turnOf(target.turn)
      if (target.edge === 'before') return turn.before
      if (!turn.after) throw missing(`checkpoint ${target.turn}:after: the turn is still running`)
      return endOf(turn)
    }
    case 'step': {
      const step = turnOf(target.turn).steps.find((one) => one.number === target.step)
      const checkpoint = step?.end ?? step?.start
      if (!checkpoint)
        throw missing(`step ${target.turn}.${target.step}`, [
          `ckpt show ${target.turn} ${sessionOption(timeline.session)}`,
        ])
      return checkpoint
    }
    case 'turn-id': {
      const ids = turnIds(context.env, context.store, `t${target.prefix}`)
      const turn = turns.find((one) => ids.has(one.id))
      if (turn) return endOf(turn)
      throw missing(`turn t${target.prefix}`)
    }
    case 'checkpoint':
      return findByPrefix(context, target.prefix)
  }
}

/**
 * A prefix that fits several sessions or checkpoints is wrong usage, which comes before whatever may be in the way: it is
 * told without the lock. @throws CkptError USAGE
 */
export async function refuseAmbiguous(
  context: Context,
  { session, id }: { session?: string | undefined; id?: string | undefined },
): Promise<void> {
  const place = id === undefined ? null : parsePlace(id)
  try {
    if (session !== undefined) chooseSession(await readRefs(context), session)
    if (place?.kind === 'checkpoint' && context.exists) await findByPrefix(context, place.prefix)
  } catch (error) {
    if (!(error instanceof CkptError) || error.code === 'USAGE') throw error // what else is wrong is said in its turn
  }
}

/** Any checkpoint of the repository's store that a ref reaches, whatever its session or worktree. */
async function findByPrefix({ env, store }: Context, prefix: string): Promise<Checkpoint> {
  const out = await store.git(['rev-parse', `--disambiguate=${prefix}`])
  const found: Checkpoint[] = []
  for (const oid of out.toString('latin1').split('\n')) {
    if (oid === '') continue
    const object = await store.objects.read(oid as Oid)
    if (object?.type === 'commit' && object.bytes.includes('\nCkpt-Kind: '))
      found.push(await readCheckpoint(store, oid as Oid))
  }
  if (found.length === 0)
    for (const oid of new Set(replacedBy(env, store, prefix)))
      if (await store.objects.read(oid)) found.push(await readCheckpoint(store, oid)) // else it was pruned since
  if (found.length === 0) throw missing(`checkpoint ${prefix}`)
  if (found.length > 1) {
    throw new CkptError(
      'USAGE',
      `${prefix} could be any of ${found.length} checkpoints: give more digits. Nothing was changed.`,
      {
        hints: found.slice(0, 5).map((one) => `ckpt show ${one.id.slice(0, 16)}`),
      },
    )
  }
  return found[0]!
}

interface Asked {
  id: string
  session?: string | undefined
}

/** What `show` and `diff` take as an id; with the turn's timeline and the worktree that it belongs to. */
export async function resolveId(
  context: Context,
  refs: WorktreeRefs,
  asked: Asked,
): Promise<{ resolved: Resolved; timeline: Timeline | null; at?: WorktreeView }> {
  if (parseTarget(asked.id).kind !== 'worktree') return resolvePlace(context, refs, asked)
  return { resolved: { kind: 'worktree' }, timeline: null }
}

/** The same for what one goes back to. */
export async function resolvePlace(
  context: Context,
  refs: WorktreeRefs,
  { id, session }: Asked,
): Promise<{ resolved: ResolvedPlace; timeline: Timeline | null; at?: WorktreeView }> {
  const target = parsePlace(id)
  if (target.kind === 'turn-id') return findTurnId(context, refs, target.prefix)
  if (target.kind === 'checkpoint') {
    if (!context.exists) throw missing(`checkpoint ${target.prefix}`)
    return { resolved: { kind: 'checkpoint', checkpoint: await findByPrefix(context, target.prefix) }, timeline: null }
  }
  const chosen = chooseSession(refs, session)
  if (chosen === null) throw missing(`turn ${target.turn}: this worktree has no turns yet`, FIRST_TURN)
  const timeline = await loadTimeline(context, refs, { session: chosen, abandoned: true })
  const turn = [...timeline.turns, ...timeline.abandoned].find((one) => one.number === target.turn)
  if (!turn) throw missing(`turn ${target.turn} in session ${printable(chosen)}`)
  if (target.kind === 'turn') return { resolved: { kind: 'turn', turn }, timeline }
  const checkpoint = await resolveCheckpoint(context, { timeline, target })
  if (target.kind === 'step') return { resolved: { kind: 'step', turn, step: target.step, checkpoint }, timeline }
  return { resolved: { kind: 'checkpoint', checkpoint }, timeline }
}

/** A turn's own id serves in every worktree of the store, as a checkpoint's does. */
async function findTurnId(
  context: Context,
  refs: WorktreeRefs,
  prefix: string,
): Promise<{ resolved: ResolvedPlace; timeline: Timeline; at: WorktreeView }> {
  const own = await findTurnIn({ context, refs }, prefix)
  if (own) return own
  for (const view of await allWorktrees(context)) {
    const found = view.context === context ? null : await findTurnIn(view, prefix)
    if (found) return found
  }
  throw missing(`turn t${prefix}`)
}

async function findTurnIn(at: WorktreeView, prefix: string) {
  const { context, refs } = at
  await learnSessions(context.store, refs)
  const ids = turnIds(context.env, context.store, `t${prefix}`)
  for (const session of refs.sessions.keys()) {
    const timeline = await loadTimeline(context, refs, { session, abandoned: true })
    const turn = [...timeline.turns, ...timeline.abandoned].find((one) => ids.has(one.id))
    if (turn) return { resolved: { kind: 'turn', turn } as const, timeline, at }
  }
  return null
}
