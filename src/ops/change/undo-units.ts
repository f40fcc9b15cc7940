/** What an undo takes back: the changes of the turns and steps that are meant, and what is said of them. */
import { CUT_SHORT } from '../../core/beside.ts'
import { joinTransitions } from '../../core/claims.ts'
import { CkptError } from '../../core/errors.ts'
import { sessionOption } from '../../core/hint-words.ts'
import { barePath, isWithin, LISTED, shortList } from '../../core/paths.ts'
import type { PlanUnit } from '../../core/plan.ts'
import type { Turn } from '../../core/timeline.ts'
import type { ChangeReader, TurnChanges } from '../history/turn-changes.ts'
import type { Selection } from './selection.ts'

interface UnitsOptions {
  paths?: readonly string[]
  unclaimed?: boolean
  only?: string
  dryRun?: boolean
}

/** What takes back as well what this undo leaves of a turn, once it is done. */
function unclaimedToo({ number, session }: Turn, { turns, cut }: Selection, options: UnitsOptions): string {
  const { paths = [], only, dryRun } = options
  if (dryRun) return '--unclaimed takes them too'
  const of = sessionOption(session)
  if (paths.length > 0) {
    const from = cut?.turn.number === number ? `--to ${number}.${cut.step}` : `--only ${number}`
    return `to take them too: ckpt undo ${from} --unclaimed ${of} -- PATH`
  }
  if (only !== undefined) return `to take them too: ckpt undo --only ${number} --unclaimed ${of}`
  const [count, first] = cut
    ? [turns.length + 1, `${cut.turn.number}.${cut.step}`]
    : [turns.length, turns.at(-1)!.number]
  return `to take them too: ckpt redo --turns ${count} ${of}, then ckpt undo --to ${first} --unclaimed ${of}`
}

export async function unitsOf(
  reader: ChangeReader,
  { turns, cut }: Selection,
  options: UnitsOptions,
): Promise<{ units: PlanUnit[]; warnings: string[] }> {
  const warnings: string[] = []
  const units: PlanUnit[] = []
  let touched = false
  const { paths: scopes = [] } = options
  // A directory goes with the last of what came with it.
  const scoped = <T extends { path: string; implied?: true }>(changes: readonly T[]): readonly T[] =>
    scopes.length === 0
      ? changes
      : changes.filter(({ path, implied }) => {
          const bare = barePath(path)
          return scopes.some((scope) => isWithin(bare, scope) || (implied && isWithin(scope, bare)))
        })
  const inScope = ({ parts, uncovered }: TurnChanges) => scoped(parts).length > 0 || scoped(uncovered).length > 0
  const tell = (changes: TurnChanges) => {
    const { number } = changes.turn
    const { inferred, late } = changes.turn.after ?? {}
    if (inferred && late) warnings.push(`The end of turn ${number} was recorded late: it is the state of that moment.`)
    else if (inferred) warnings.push(`The end of turn ${number} was not reported: it is the state when it was closed.`)
    const left = scoped(changes.unclaimed)
    if (left.length > 0 && !options.unclaimed) {
      warnings.push(
        `Left as they are, changed during turn ${number} outside its steps: ${shortList(left.map((c) => c.path))} (${unclaimedToo(changes.turn, { turns, cut }, options)}).`,
      )
    }
    // What it was before is known where only its new content could not be taken.
    const known = new Set<string>(changes.parts.flatMap(({ path, from }) => (from.kind === 'unknown' ? [] : [path])))
    const isAsked = (path: string) => scopes.some((scope) => isWithin(path, scope) || isWithin(scope, path))
    const lost = changes.uncovered.filter(
      ({ path }) => path !== '' && !known.has(path) && (scopes.length === 0 || isAsked(barePath(path))),
    )
    if (changes.uncovered.some(({ path }) => path === ''))
      warnings.push(`What is known of turn ${number} ${CUT_SHORT} What it lacks stays as it is.`)
    if (lost.length > 0) {
      const paths = lost.map((one) => one.path)
      const all =
        paths.length > LISTED ? ` (all of them: ckpt show ${number} ${sessionOption(changes.turn.session)})` : ''
      warnings.push(
        `Turn ${number} also changed what checkpoints do not cover, and that cannot be undone: ${shortList(paths)}${all}.`,
      )
    }
  }
  for (const one of [...turns.map((turn) => ({ turn, step: null })), ...(cut ? [cut] : [])]) {
    const changes = await reader.changesLeft(one)
    tell(changes)
    touched ||= inScope(changes)
    // Joined only now: what is hidden or not asked for is no part of what is taken back.
    const wanted = changes.parts.filter(({ unclaimed }) => !unclaimed || options.unclaimed)
    units.push({ turn: one.turn.number, step: one.step, changes: scoped(joinTransitions(wanted)) })
  }
  if (options.paths?.length && !touched) {
    const numbers = units.map(({ turn }) => turn)
    const since = cut ? ` from ${cut.turn.number}.${cut.step} on` : ''
    const what = `Turn${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}${since} changed`
    throw new CkptError('NOTHING_TO_UNDO', `${what} none of these paths. Nothing was changed.`, {
      paths: options.paths,
      hints: [`ckpt show ${numbers[0]}   (what it changed)`, 'ckpt undo --only ID -- PATH   (of another turn)'],
    })
  }
  return { units, warnings }
}
