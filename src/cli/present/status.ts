/** Where the worktree stands, as text. Pure; text from elsewhere is printed without control characters. */

import { bytesText } from '../../config/units.ts'
import { withArticle } from '../../core/hint-words.ts'
import { printable, shown } from '../../core/paths.ts'
import { visibleTurns } from '../../core/timeline.ts'
import type { SessionView } from '../../ops/history/history.ts'
import type { StatusResult } from '../../ops/history/status.ts'
import type { Colors } from '../command.ts'
import { beginning, plural, table } from './text.ts'

/** So many sessions are named, the newest first. */
const FEW_SESSIONS = 5

function sessionsInShort(sessions: readonly SessionView[]): string {
  const named = sessions
    .slice(0, FEW_SESSIONS)
    .map(
      ({ timeline, state }) =>
        `${printable(timeline.session)} (${plural(visibleTurns(timeline).length, 'turn')}, ${state})`,
    )
  const more = sessions.length - named.length
  return `${named.join(', ')}${more > 0 ? `, and ${more} more   (ckpt list --sessions)` : ''}`
}

/** `same`: the words that lines to run need, where what is undone is of another session than the one that is meant without a word. */
export function statusText(
  result: StatusResult,
  { c, daemon, same }: { c: Colors; daemon: string; same: string },
): string {
  const { head, store, sessions, uncovered } = result
  const git =
    result.gitDir === null
      ? 'plain directory'
      : `${head.branch ? printable(head.branch) : head.head ? `detached at ${head.head.slice(0, 7)}` : 'no commit yet'}${result.dirty ? ', uncommitted changes' : ''}${head.busy ? `, in the middle of ${withArticle(head.busy)}` : ''}`
  const rows = [
    ['Worktree', printable(result.root)],
    ['Git', git],
    [
      'Store',
      store.checkpoints === 0
        ? 'nothing recorded yet'
        : `${plural(store.checkpoints, 'checkpoint')}, ${bytesText(store.bytes)}, ${result.durable ? 'survives git gc' : c.red('not durable')}`,
    ],
    ['Sessions', sessions.length === 0 ? 'none yet   (first: ckpt agent install NAME)' : sessionsInShort(sessions)],
    ['Daemon', daemon],
  ]
  if (result.boundary) {
    const boundary = result.boundary.timeline.boundary!
    rows.push(['Undone', c.yellow(`from ${beginning(boundary)} of ${printable(boundary.session)}`)])
  }
  const lines = [table(rows.map(([name, value]) => [c.dim(name!), value!]))]
  if (result.boundary) lines.push(`Bring it back: ckpt redo --all${same}   Keep it this way: ckpt accept${same}`)
  if (uncovered.length > 0 || result.ignoredCount > 0) {
    lines.push(
      `Not covered: ${uncovered
        .slice(0, 10)
        .map((entry) => `${shown(entry.path)} (${entry.reason})`)
        .join(
          ', ',
        )}${uncovered.length > 10 ? `, ${uncovered.length - 10} more` : ''}${uncovered.length > 0 && result.ignoredCount > 0 ? ', and ' : ''}${result.ignoredCount > 0 ? plural(result.ignoredCount, 'ignored path') : ''}`,
    )
  }
  const failed = result.lastHookError
  if (failed) {
    const when = failed.time.slice(0, 16).replace('T', ' ')
    lines.push(c.yellow(`A hook failed at ${when} (${printable(failed.where)}): ${printable(failed.message)}`))
  }
  if (result.unfinished)
    lines.push(c.yellow('A killed operation is unfinished: the next command that writes finishes it.'))
  return lines.join('\n')
}
