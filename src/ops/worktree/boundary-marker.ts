/** The file that the git hooks read: one line for each session whose boundary is pending, `<session>\t<turn>\t<hidden>`. */

import type { Checkpoint } from '../../core/checkpoint.ts'
import type { SessionId } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import type { Env } from '../../env.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import type { Store } from '../../git/store.ts'
import { readIfThere, removeIfThere, writeFileWhole } from '../../git/whole-file.ts'

const markerOf = (store: Store) => `${store.worktreeDir}/boundary`

/** What the git hooks read; null: nothing is pending. */
export function readMarker(env: Env, store: Store): string | null {
  return readIfThere(env, markerOf(store))?.toString('utf8') ?? null
}

/** What the git hooks read, with no Node. */
export function writeMarker(env: Env, store: Store, marker: string | null): void {
  if (marker === null) removeIfThere(env, markerOf(store))
  else writeFileWhole(env, markerOf(store), { content: marker, sync: false })
}

/** The text after one session's boundary became `boundary`; null when none is left. */
export function markerAfter(
  refs: WorktreeRefs,
  session: SessionId,
  boundary: Pick<Checkpoint, 'session' | 'turn' | 'hidden'> | null,
): string | null {
  const pending = [...refs.sessions.values()].flatMap((one) =>
    one.boundary && one.session !== session ? [one.boundary] : [],
  )
  const lines = [...pending, ...(boundary ? [boundary] : [])].map(
    (one) => `${printable(one.session)}\t${one.turn ?? ''}\t${one.hidden ?? ''}\n`,
  )
  return lines.length === 0 ? null : lines.join('')
}

/** Whether what the git hooks read is what the refs say is pending, in whatever order. */
export function isMarkerOf(refs: WorktreeRefs, marker: string | null): boolean {
  const lines = (text: string | null) => (text ?? '').split('\n').sort().join('\n')
  return lines(marker) === lines(markerAfter(refs, '' as SessionId, null))
}
