/** Bisect: the first turn that makes a command fail. Each state is laid out in a directory of its own; the worktree is not touched. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import type { SessionId, TurnNumber } from '../../core/ids.ts'
import { printable, type RelativePath, reasonedList } from '../../core/paths.ts'
import { type Turn, visibleTurns } from '../../core/timeline.ts'
import { takeSnapshot } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'
import { chooseSession, loadTimeline, readRefs } from '../worktree/sessions.ts'
import { type Missing, tryAt } from './bisect-state.ts'

export interface BisectResult {
  session: SessionId
  turn: TurnNumber
  prompt: string
  runs: number
}

/** @throws CkptError NOT_FOUND when no turn made it fail: it never fails, failed before the first one, or began to between two turns */
export async function bisect(
  context: Context,
  { command, session: wanted }: { command: readonly string[]; session: string | undefined },
): Promise<Omit<BisectResult, 'prompt'> & { found: Turn }> {
  const refs = await readRefs(context)
  const session = chooseSession(refs, wanted)
  const turns = session ? visibleTurns(await loadTimeline(context, refs, { session })).filter((turn) => turn.after) : []
  if (!session || turns.length === 0)
    throw new CkptError('NOT_FOUND', 'There is no finished turn to look at.', {
      hints: session ? ['ckpt list'] : FIRST_TURN,
    })
  const { beside, tree } = await takeSnapshot(context, refs, { publish: false })
  const held = await context.store.trees.files(tree)
  const now = { ignored: [...beside.ignored.keys()], isHeld: (path: string) => held.has(path as RelativePath) }
  let runs = 0
  const missing = new Map<string, Missing>()
  const fails = async (checkpoint: Checkpoint) => {
    runs++
    await context.env.progress(`bisecting: run ${runs}`)
    const tried = await tryAt(context, { checkpoint, now }, command)
    for (const one of tried.missing) missing.set(one.path, one)
    return tried.exitCode !== 0
  }
  try {
    return { session, ...(await search({ session, turns }, fails)), runs }
  } finally {
    if (missing.size > 0)
      context.warnings.push(
        `Not in the states that were tried, for no checkpoint holds it: ${reasonedList([...missing.values()])}.`,
      )
  }
}

async function search(
  { session, turns }: { session: SessionId; turns: readonly Turn[] },
  fails: (checkpoint: Checkpoint) => Promise<boolean>,
): Promise<{ turn: TurnNumber; found: Turn }> {
  const last = turns.at(-1)!
  if (!(await fails(last.after!))) {
    throw new CkptError(
      'NOT_FOUND',
      `The command does not fail after turn ${last.number} of session ${printable(session)}. Your files were not touched.`,
      { hints: ['ckpt list'] },
    )
  }
  if (await fails(turns[0]!.before)) {
    throw new CkptError(
      'NOT_FOUND',
      `The command failed before turn ${turns[0]!.number} of session ${printable(session)} already. Your files were not touched.`,
      { hints: ['ckpt list'] },
    )
  }
  // It passes before `low` and fails after `high`.
  let [low, high] = [0, turns.length - 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (await fails(turns[middle]!.after!)) high = middle
    else low = middle + 1
  }
  const [before, found] = [turns[high - 1]?.after, turns[high]!]
  if (before && !isSameState(before, found.before) && (await fails(found.before))) {
    throw new CkptError(
      'NOT_FOUND',
      `No turn made it fail: it passes after turn ${before.turn} and fails before turn ${found.number} of session ${printable(session)}. What changed in between is not the session's work.`,
      { hints: [`ckpt diff ${before.turn}:after ${found.number}:before`] },
    )
  }
  return { turn: found.number, found }
}

const isSameState = (a: Checkpoint, b: Checkpoint): boolean => a.tree === b.tree && a.beside === b.beside
