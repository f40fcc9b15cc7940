/** Markers that wait, and what lies among them and is none. */
import { printable, shortList } from '../../core/paths.ts'
import { namesIfThere } from '../../env.ts'
import type { Context } from '../worktree/context.ts'
import { markersDirectory, waitingMarkers } from '../worktree/marker-files.ts'
import type { Finding } from './finding.ts'

export function checkMarkers({ env, store, config }: Context): Finding[] {
  const waiting = waitingMarkers(env, store)
  const known = new Set(waiting)
  // Hidden files are an editor's, and `.tmp` is what is still being written.
  const strays = namesIfThere(env.files, markersDirectory(store)).filter(
    (name) => !known.has(name) && !name.startsWith('.') && !name.endsWith('.tmp'),
  )
  const found: Finding[] = []
  const note = { name: 'markers', ok: false, advice: true }
  if (waiting.length > 0 && config.enableFileCheckpointing)
    found.push({
      ...note,
      detail: `${waiting.length === 1 ? 'a marker waits' : `${waiting.length} markers wait`} to be recorded`,
      mend: 'ckpt status   (records what can be recorded, and says why where it cannot)',
    })
  if (strays.length > 0)
    found.push({
      ...note,
      detail: `never taken up, for they are no regular files NAME.json: ${shortList(strays)}, in ${printable(markersDirectory(store))}`,
      mend: 'rename each to NAME.json, or remove it',
    })
  return found
}
