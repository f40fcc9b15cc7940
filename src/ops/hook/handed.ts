/** Payloads that a hook hands over in a file (src/daemon/hook-door.ts): four lines that say where and for whom, then what the agent sent, then a line that says it is whole. */
import { basename, dirname } from 'node:path'
import { type Env, errno, lstatIfThere, namesIfThere } from '../../env.ts'
import { ageOf } from '../../git/file-clock.ts'
import { readIfThere, removeIfThere, writeFileWhole } from '../../git/whole-file.ts'
import { quickPlaces } from '../worktree/quick-place.ts'

export interface Handed {
  /** Made by the client: its markers carry it, whoever records them. */
  id: string
  agent: string
  event: string | undefined
  cwd: string
  /** `CLAUDE_PROJECT_DIR` of the client. */
  project: string | undefined
  payload: Buffer
  /** When it was written, by our clock; milliseconds since 1970, UTC. */
  time: number
}

const LINES = 4
const END = '\nend\n'
const LAST = '.payload'
/** Milliseconds: who handed it over waits no longer, and nobody answered. */
const LEFT = 60_000
/** What the name of one begins with whose client could do nothing with it: it is nobody's from the start. */
const KEPT = 'kept-'
/** Payloads that one hook takes up beside its own. */
const MOST = 20
/** So many are kept at most: where nothing can be recorded for long, the newest are lost. */
const ROOM = 1000

/** The worktree's own directory in the store, of a payload in it. */
const worktreeOf = (file: string): string => dirname(dirname(dirname(file)))

/** Whether a name is that of a payload that was handed over: nothing else is read, or removed, as one. */
export const isHanded = (file: string): boolean => /\/worktrees\/[^/]+\/daemon\/hooks\/[\w-]{1,64}\.payload$/.test(file)

/** What a client writes; what is not one line each cannot be said in it. */
export function handedBytes(
  { agent, event, cwd, project }: Pick<Handed, 'agent' | 'event' | 'cwd' | 'project'>,
  payload: Buffer,
): Buffer {
  const lines = [agent, event ?? '', cwd, project ?? ''].map((line) => `${line}\n`).join('')
  return Buffer.concat([Buffer.from(lines), payload, Buffer.from(END)])
}

/** Null: it is not there any more, for somebody else has carried it out. */
export function readHanded(env: Env, file: string): Handed | null {
  const stats = lstatIfThere(env.files, file)
  const bytes = stats?.isFile() ? readIfThere(env, file) : null
  if (!stats || bytes === null) return null
  const lines: string[] = []
  let at = 0
  while (lines.length < LINES) {
    const end = bytes.indexOf(0x0a, at)
    if (end < 0) return null
    lines.push(bytes.toString('utf8', at, end))
    at = end + 1
  }
  const [agent, event, cwd, project] = lines as [string, string, string, string]
  return {
    id: basename(file, LAST).replace(KEPT, ''),
    agent,
    event: event === '' ? undefined : event,
    cwd,
    project: project === '' ? undefined : project,
    time: env.now() - ageOf(env, worktreeOf(file), stats),
    // One that was cut short is no JSON, and will be said to be none.
    payload: bytes.subarray(at, bytes.toString('latin1', bytes.length - END.length) === END ? -END.length : undefined),
  }
}

/** Removes one that was carried out. Its fifo goes first, if nobody was answered on it: who took it next would have the same id. */
export function removeHanded(env: Env, file: string): void {
  removeIfThere(env, `${dirname(file)}/free/${basename(file, LAST)}`)
  removeIfThere(env, file)
}

/**
 * Keeps one that could not be carried out, for the next hook. `file`: where it was handed over; without one its bytes are
 * written where the worktree is recorded, if it is. False: it is lost.
 */
export function keepHanded(env: Env, handed: Omit<Handed, 'time'>, file?: string): boolean {
  const { files } = env
  const places = file === undefined ? quickPlaces(env, handed.cwd).map((one) => one.worktreeDir) : [worktreeOf(file)]
  const worktreeDir = places.find((one) => files.existsSync(one))
  if (worktreeDir === undefined) return false
  if ([handed.agent, handed.event, handed.cwd, handed.project].some((line) => line?.includes('\n'))) return false
  const directory = `${worktreeDir}/daemon/hooks`
  const kept = `${directory}/${KEPT}${handed.id}${LAST}`
  try {
    files.mkdirSync(directory, { recursive: true, mode: 0o700 })
    if (files.readdirSync(directory).filter((name) => name.endsWith(LAST)).length > ROOM) return false
    if (file === undefined) writeFileWhole(env, kept, { content: handedBytes(handed, handed.payload), sync: false })
    else {
      removeIfThere(env, `${directory}/free/${basename(file, LAST)}`)
      files.renameSync(file, kept)
    }
    return true
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false // no room, or not ours to write: the log says what went wrong first
  }
}

/** What clients handed over that were killed while they waited, and whose daemon is gone; oldest first. */
export function leftBehind(env: Env, worktreeDir: string): string[] {
  const { files } = env
  const directory = `${worktreeDir}/daemon/hooks`
  return namesIfThere(files, directory)
    .filter((name) => name.endsWith(LAST))
    .flatMap((name) => {
      const stats = lstatIfThere(files, `${directory}/${name}`)
      return stats && (name.startsWith(KEPT) || ageOf(env, worktreeDir, stats) > LEFT)
        ? [{ file: `${directory}/${name}`, time: stats.mtimeMs }]
        : []
    })
    .sort((a, b) => a.time - b.time)
    .slice(0, MOST)
    .map(({ file }) => file)
}
