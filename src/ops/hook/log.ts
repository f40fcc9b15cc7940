/** What went wrong in a hook: an agent is never told, so it is written down, and `ckpt status` shows the last of it. */
import { CkptError } from '../../core/errors.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../../env.ts'
import { appendTo, makeDirectories } from '../../git/whole-file.ts'
import { stateDirectory } from '../worktree/state-directory.ts'

export interface HookError {
  /** ISO 8601 UTC. */
  time: string
  /** The agent and its event, or the marker file. */
  where: string
  code: string
  message: string
  /** Where the hook was started. */
  cwd: string
}

export interface HookFailure {
  where: string
  error: unknown
  /** What arrived, when it could not be understood: kept whole. */
  payload?: Buffer
}

/** Bytes: then the log is set aside, and one older one is kept. */
const FULL = 4 * 2 ** 20

const logOf = (directory: string) => `${directory}/hook.log`
/** The last line of `bin/ckpt-hook`, where it could start no Node. */
const shellLogOf = (directory: string) => `${directory}/hook.shell`
/** Empty: its time says when something could not be logged. */
const markOf = (directory: string) => `${directory}/hook.unlogged`

/** Where hooks write before they know a worktree. */
export const stateLog = (env: Env): string => stateDirectory(env)

/** Whether it is written down: what logs has more to do than to fail by it. @throws what is no error of the system */
export function logHookError(env: Env, directory: string, failure: HookFailure): boolean {
  try {
    writeHookError(env, directory, failure)
    return true
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
}

/** @throws what the system says */
function writeHookError(env: Env, directory: string, { where, error, payload }: HookFailure): void {
  const { files } = env
  const line = {
    time: new Date(env.now()).toISOString(),
    where,
    code: error instanceof CkptError ? error.code : 'INTERNAL',
    message: error instanceof Error ? error.message : String(error),
    cwd: env.cwd,
    ...(payload === undefined ? {} : shownPayload(payload)),
  }
  makeDirectories(env, directory)
  const path = logOf(directory)
  const stats = lstatIfThere(files, path)
  if (stats && stats.size > FULL) files.renameSync(path, `${path}.1`)
  appendTo(env, path, { text: `${JSON.stringify(line)}\n` })
}

/**
 * Writes it into the first log that has room; where none has, leaves a mark beside the first: a name needs no room, on most
 * file systems. @throws what the system says, where not even that can be left
 */
export function writeHookErrorSomewhere(env: Env, directories: readonly string[], failure: HookFailure): void {
  if (directories.some((directory) => logHookError(env, directory, failure))) return
  const mark = markOf(directories[0]!)
  env.files.closeSync(env.files.openSync(mark, 'a', 0o600))
  env.files.utimesSync(mark, env.now() / 1000, env.now() / 1000)
}

function markedIn(env: Env, directory: string, root: string): HookError[] {
  const stats = lstatIfThere(env.files, markOf(directory))
  if (!stats) return []
  const message = 'What an agent told was not recorded, and why could not be written down: there was no room, it seems.'
  return [{ time: stats.mtime.toISOString(), where: 'ckpt hook', code: 'INTERNAL', message, cwd: root }]
}

function shownPayload(payload: Buffer): Record<string, string> {
  const text = payload.toString('utf8')
  return Buffer.from(text, 'utf8').equals(payload) ? { payload: text } : { payloadBase64: payload.toString('base64') }
}

/** The newest error in these directories' logs; null: none. `root`: of the log that all places share, only what concerns it. */
export function lastHookError(env: Env, directories: readonly string[], root: string): HookError | null {
  const found = directories.flatMap((directory, i) => {
    const errors = [logOf(directory), shellLogOf(directory)].map((path) => readTail(env, path))
    const isOurs = ({ cwd }: HookError) => i === 0 || cwd === root || cwd.startsWith(`${root}/`)
    // Beside the log that all share it may be of any place: of this one, where nothing of it is recorded yet.
    const isMarked = i === 0 || !env.files.existsSync(directories[0]!)
    return [
      ...errors.flatMap((log) => log.filter(isOurs).slice(-1)),
      ...(isMarked ? markedIn(env, directory, root) : []),
    ]
  })
  return found.sort((a, b) => (a.time < b.time ? 1 : -1))[0] ?? null
}

function readTail({ files }: Env, path: string): HookError[] {
  let text: string
  try {
    if (!statIfThere(files, path)?.isFile()) return []
    text = files.readFileSync(path, 'utf8')
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR') return []
    throw error
  }
  return text.split('\n').flatMap((line) => {
    const parsed = parseLine(line)
    return parsed ? [parsed] : []
  })
}

function parseLine(line: string): HookError | null {
  if (line === '') return null
  let value: Partial<Record<keyof HookError, unknown>>
  try {
    value = JSON.parse(line)
  } catch {
    return null // a line that a killed hook left half written
  }
  const { time, where, code, message, cwd } = value
  const texts = [time, where, code, message, cwd]
  if (!texts.every((one) => typeof one === 'string')) return null
  return { time, where, code, message, cwd } as HookError
}
