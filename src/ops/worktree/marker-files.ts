/**
 * Markers that wait: a hook that could not get the lock leaves its marker as a file, and the next command that can write
 * takes it up. Anybody may leave one: written beside and renamed into `markers/`, so that nobody reads half of it.
 */
import { createHash } from 'node:crypto'
import type { Marker } from '../../core/marker.ts'
import { type Env, lstatIfThere, namesIfThere } from '../../env.ts'
import type { Store } from '../../git/store.ts'
import { syncDirectory, writeFileWhole } from '../../git/whole-file.ts'

export interface WaitingMarker {
  version: 1
  /** Made by the client: the same id is the same marker, however often it is taken up. */
  id: string
  /** Who left it: an agent's name, and its process. */
  client: string
  /** ISO 8601 UTC: when the marker arrived. */
  time: string
  marker: Marker
}

export interface TakeUpOptions {
  /** By `env.monotonic()`: from then on only those of some sessions are taken up, for they come before what these are told now. */
  until: number
  sessions: readonly string[]
}

export const markersDirectory = ({ worktreeDir }: Pick<Store, 'worktreeDir'>): string => `${worktreeDir}/markers`

/** Names of the markers that wait, oldest first. */
export function waitingMarkers(env: Env, store: Pick<Store, 'worktreeDir'>): string[] {
  // To read a fifo would be to wait for its writer; a directory, or a link (an editor's lock), is nobody's marker.
  const isFile = (name: string) => lstatIfThere(env.files, `${markersDirectory(store)}/${name}`)?.isFile() === true
  const names = namesIfThere(env.files, markersDirectory(store))
  return names.filter((name) => name.endsWith('.json') && isFile(name)).sort()
}

/** Whether {@link leaveMarker} left it. */
export const isOfHook = (name: string): boolean => /^\d{15,}-[0-9a-f]{24}\.json$/.test(name)

/** Leaves a marker; when this returns it survives a kill, and a crash of the machine. None where the store is gone by now. */
export function leaveMarker(env: Env, store: Pick<Store, 'worktreeDir'>, waiting: WaitingMarker): void {
  const directory = markersDirectory(store)
  if (!env.files.existsSync(store.worktreeDir)) return // taken away with its repository, which is not to come back for this
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  // Behind all that wait, though the clock was set back meanwhile: an end before its prompt would be of no turn.
  const places = namesIfThere(env.files, directory).flatMap((name) => /^\d{15}(?=-.*\.json$)/.exec(name) ?? [])
  const place = String(Math.max(Date.parse(waiting.time), Number(places.sort().at(-1) ?? 0) + 1)).padStart(15, '0')
  const name = createHash('sha256').update(waiting.id).digest('hex').slice(0, 24) // isOfHook knows it
  writeFileWhole(env, `${directory}/${place}-${name}.json`, { content: `${JSON.stringify(waiting)}\n` })
  syncDirectory(env, store.worktreeDir)
}
