/** Our entry in an agent's settings: put in, taken out to the exact bytes, looked for. */

import { createHash } from 'node:crypto'
import path from 'node:path'
import * as z from 'zod/mini'
import { CkptError, isDamage } from '../core/errors.ts'
import { quotedPath, singleQuoted } from '../core/hint-words.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../env.ts'
import { makeDirectories, readIfThere, removeIfEmpty, removeIfThere, writeFileWhole } from '../git/whole-file.ts'
import { sweepDraftsOf } from '../ops/worktree/half-made.ts'
import { stateDirectory } from '../ops/worktree/state-directory.ts'
import { packageFile } from '../package-file.ts'
import type { Agent, Places, Scope } from './agent.ts'
import { hookProgram, hookWord, isHookOf, isNothingButHookOf, withClientAt } from './program.ts'
import {
  installedEvents,
  keysBefore,
  type Ours,
  ourCommands,
  withOurs,
  withoutOurs,
  withoutRanges,
} from './settings.ts'

export interface Plan {
  agent: Agent
  scope: Scope
  /** As the agent names it, and where it lies when links are followed. */
  path: string
  target: string
  /** Null: no file. */
  before: string | null
  after: string | null
  /** What an uninstall needs to know. */
  record: Record | null
  /** Commands that an uninstall leaves: they run our hook, and do more. */
  left?: readonly string[]
}

export interface Standing {
  agent: string
  scope: Scope
  path: string
  installed: boolean
  /** Events without our entry, where there is one for others. */
  missing: string[]
  /** The plugin is of another version of ckpt. */
  outdated: boolean
  /** What the agent is told to run. */
  commands: string[]
}

/** The command line for one agent's settings of one scope. */
export const agentCommand = (action: 'install' | 'uninstall', { agent, scope }: { agent: string; scope: Scope }) =>
  `ckpt agent ${action} ${agent}${scope === 'user' ? '' : ` --scope ${scope}`}`

const recordSchema = z.object({
  version: z.literal(1),
  path: z.string(),
  existed: z.boolean(),
  /** Directories that were made for the file, outermost first. */
  made: z.array(z.string()),
  sha256: z.string(),
  ranges: z.array(z.object({ start: z.number(), end: z.number() })),
  /** Keys that were there before ours, of those that we make. */
  keys: z.optional(z.array(z.string())),
})
type Record = z.output<typeof recordSchema>

const digest = (text: string) => createHash('sha256').update(text).digest('hex')
const recordsOf = (env: Env) => `${stateDirectory(env)}/agents`
const recordPath = (env: Env, target: string) => `${recordsOf(env)}/${digest(target).slice(0, 32)}.json`

/** The first line of a plugin of ours. */
const MARK = '// ckpt plugin for '

/** @throws CkptError USAGE: the agent has no such scope */
function pathOf(agent: Agent, scope: Scope, places: Places): string {
  const path = agent.settings.file(scope, places)
  if (path === null) {
    throw new CkptError('USAGE', `${agent.title} has no settings of scope ${scope}. Nothing was changed.`, {
      hints: [`ckpt agent install ${agent.name} --scope user`],
    })
  }
  return path
}

/** @throws CkptError CONFIG */
function readText(env: Env, path: string): { target: string; text: string | null } {
  let target = path
  try {
    target = env.files.realpathSync(path)
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw unreadable(path, error)
    target = linkedTo(env, path)
  }
  let bytes: Buffer | null
  let text: string
  try {
    // A pipe would wait for ever.
    if (statIfThere(env.files, target)?.isFile() === false) throw new Error('it is no file')
    bytes = readIfThere(env, target)
    if (bytes === null) return { target, text: null }
    text = bytes.toString('utf8')
  } catch (error) {
    throw unreadable(path, error)
  }
  if (!Buffer.from(text, 'utf8').equals(bytes)) {
    throw new CkptError('CONFIG', `${path} cannot be read: it is not UTF-8. Nothing was changed.`, {
      hints: [`edit ${path}, then run the command again`],
    })
  }
  return { target, text }
}

function unreadable(path: string, cause: unknown): CkptError {
  const { message } = cause instanceof CkptError && cause.cause instanceof Error ? cause.cause : (cause as Error)
  return new CkptError('CONFIG', `${path} cannot be read: ${message}. Nothing was changed.`, {
    hints: [`look at ${path}, then run the command again`],
    cause,
  })
}

/** Where links lead that end in nothing: the file is made there, and the links stay. */
function linkedTo({ files }: Env, file: string): string {
  let at = file
  for (let depth = 0; depth < 40 && lstatIfThere(files, at)?.isSymbolicLink(); depth++)
    at = path.resolve(path.dirname(at), files.readlinkSync(at, 'utf8'))
  return at
}

function oursOf(env: Env, agent: Agent, scope: Scope): Ours | null {
  if (agent.settings.kind !== 'hooks') return null
  const word = hookWord(env, scope)
  return {
    settings: agent.settings,
    isOurs: isHookOf(agent.name),
    isOnlyOurs: isNothingButHookOf(agent.name),
    command: () => `${word} ${agent.name}`,
    moved: (command) => withClientAt(command, { agent: agent.name, word }),
  }
}

/** @throws CkptError CONFIG, USAGE */
export function planInstall(env: Env, agent: Agent, { scope, places }: { scope: Scope; places: Places }): Plan {
  const path = pathOf(agent, scope, places)
  const { target, text } = readText(env, path)
  const plan = { agent, scope, path, target, before: text }
  const ours = oursOf(env, agent, scope)
  if (ours) {
    const there = text !== null && text.trim() !== '' && installedEvents(text, path, ours).length > 0
    const old = there ? readRecord(env, target, text) : null
    // The exact way back is known for the very text that we left.
    const isAsLeft = text !== null && old?.sha256 === digest(text)
    const { text: after, ranges } = withOurs({ text: text ?? '', ranges: isAsLeft ? old.ranges : [] }, path, ours)
    const exact = { sha256: digest(after), ranges }
    if (there) return { ...plan, after, record: isAsLeft ? { ...old, ...exact, path: target } : old }
    const made = missingAbove(env, target)
    const keys = keysBefore(text ?? '', path, ours)
    return { ...plan, after, record: { version: 1, path: target, existed: text !== null, made, keys, ...exact } }
  }
  const source = pluginText(env, agent, scope)
  if (text !== null && text !== source && !text.startsWith(MARK)) {
    throw new CkptError('CONFIG', `${path} is there and not ours. Nothing was changed.`, {
      hints: [`move ${path} away, then run the command again`],
    })
  }
  const made = text === null ? missingAbove(env, target) : (readRecord(env, target, text)?.made ?? [])
  const record: Record = { version: 1, path: target, existed: false, made, sha256: digest(source), ranges: [] }
  return { ...plan, after: source, record }
}

/** What a plugin runs: the one line of it that differs from machine to machine. */
const PROGRAM = /^const PROGRAM = (?:'(.*)'|(".*"))$/m

/** Null: it is not as we write it. */
function programIn(text: string): string | null {
  const [, plain, json] = PROGRAM.exec(text) ?? []
  try {
    return plain ?? (json === undefined ? null : String(JSON.parse(json)))
  } catch {
    return null // somebody changed it
  }
}

function pluginText(env: Env, agent: Agent, scope: Scope): string {
  const program = JSON.stringify(hookProgram(env, scope))
  return shippedPlugin(env, agent).replace(PROGRAM, () => `const PROGRAM = ${program}`)
}

const shippedPlugin = (env: Env, { settings }: Agent): string =>
  settings.kind === 'plugin' ? env.files.readFileSync(packageFile(env, settings.source), 'utf8') : ''

/** @throws CkptError CONFIG, USAGE */
export function planUninstall(env: Env, agent: Agent, { scope, places }: { scope: Scope; places: Places }): Plan {
  const path = pathOf(agent, scope, places)
  const { target, text } = readText(env, path)
  const plan = { agent, scope, path, target, before: text }
  const record = readRecord(env, target, text)
  if (text === null) return { ...plan, after: null, record }
  const ours = oursOf(env, agent, scope)
  if (!ours) return { ...plan, after: text.startsWith(MARK) ? null : text, record }
  if (record?.sha256 === digest(text)) {
    const back = withoutRanges({ text, ranges: record.ranges })
    const clean = back.trim() === '' || installedEvents(back, path, ours).length === 0
    if (clean) return { ...plan, after: record.existed ? back : null, record }
  }
  if (text.trim() === '' || installedEvents(text, path, ours).length === 0) return { ...plan, after: text, record }
  const rest = withoutOurs(text, path, { ...ours, before: record?.keys ?? null })
  const after = record?.existed === false && holdsNothing(rest) ? null : rest
  return { ...plan, after, record, left: ourCommands(rest, path, ours) }
}

/** Whether a file that we made holds nothing of anybody else's. */
const holdsNothing = (text: string) => /^\s*\{\s*(?:"version"\s*:\s*1\s*,?\s*)?\}\s*$/.test(text)

/** Directories above that are not there yet, outermost first. */
function missingAbove({ files }: Env, path: string): string[] {
  const missing: string[] = []
  for (
    let at = path.slice(0, path.lastIndexOf('/'));
    at !== '' && !files.existsSync(at);
    at = at.slice(0, at.lastIndexOf('/'))
  )
    missing.unshift(at)
  return missing
}

/** Of this file; or of one that is not there any more and was left as this one is: what it lies in was moved. */
function readRecord(env: Env, target: string, text: string | null): Record | null {
  const own = atRecords(env, () => parseRecord(env, recordPath(env, target)))
  const directory = recordsOf(env)
  if (own || text === null || !env.files.existsSync(directory)) return own
  const left = digest(text)
  for (const name of env.files.readdirSync(directory)) {
    const record = recordElsewhere(env, `${directory}/${name}`)
    if (record?.sha256 !== left || env.files.existsSync(record.path)) continue
    const made = record.made.flatMap((one) => {
      const below = record.path.slice(one.length)
      return target.endsWith(below) ? [target.slice(0, -below.length)] : []
    })
    return { ...record, made }
  }
  return null
}

/** No directory is there, and none can be made. */
const NO_PLACE: ReadonlySet<string | undefined> = new Set(['ENOTDIR', 'ENOENT', 'EEXIST', 'ELOOP'])

/** @throws CkptError CONFIG: there is no place for them */
function atRecords<T>(env: Env, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    const own = cause instanceof CkptError ? cause.cause : cause
    if (!NO_PLACE.has(errno(own))) throw cause
    const { message } = own as Error
    throw new CkptError(
      'CONFIG',
      `What undoes this again is kept where nothing can be kept: ${printable(message)}. Nothing was changed.`,
      { hints: [`ls -ld ${quotedPath(recordsOf(env))}   (XDG_STATE_HOME or HOME says where that is)`], cause },
    )
  }
}

/** One that cannot be read is of no file that is asked about. */
function recordElsewhere(env: Env, file: string): Record | null {
  try {
    return parseRecord(env, file)
  } catch (error) {
    if (!isDamage(error)) throw error
    return null
  }
}

function parseRecord(env: Env, file: string): Record | null {
  const bytes = readIfThere(env, file)
  if (bytes === null) return null
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return null // without it our entries are found by their commands
  }
  const parsed = recordSchema.safeParse(value)
  return parsed.success ? parsed.data : null
}

export const changes = ({ before, after }: Plan): boolean => before !== after

/** Carries a plan out. @throws CkptError CONFIG: the file changed since it was read */
export function carryOut(env: Env, plan: Plan, action: 'install' | 'uninstall'): void {
  const { files } = env
  const { target, before, after, record } = plan
  sweepDraftsOf(env, target)
  if (!changes(plan)) return
  const now = readIfThere(env, target)?.toString('utf8') ?? null
  if (now !== before) {
    throw new CkptError('CONFIG', `${plan.path} was changed meanwhile. Nothing was changed by ckpt.`, {
      hints: ['run the command again'],
    })
  }
  const own = recordPath(env, target)
  if (action === 'install' && record) {
    atRecords(env, () => {
      makeDirectories(env, recordsOf(env))
      writeFileWhole(env, own, { content: `${JSON.stringify(record)}\n` })
    })
  }
  if (after === null) files.unlinkSync(target)
  else {
    files.mkdirSync(target.slice(0, target.lastIndexOf('/')), { recursive: true })
    const stats = statIfThere(files, target)
    const mode = stats ? stats.mode & 0o7777 : 0o644 & ~env.umask
    writeFileWhole(env, target, { content: after, mode, owner: stats })
  }
  if (action === 'uninstall') {
    if (after === null) for (const directory of [...(record?.made ?? [])].reverse()) removeIfEmpty(env, directory)
    if (record) removeIfThere(env, recordPath(env, record.path))
  }
}

/** Where our entry stands; null: the agent has no such scope. @throws CkptError CONFIG */
export function standing(env: Env, agent: Agent, { scope, places }: { scope: Scope; places: Places }): Standing | null {
  const path = agent.settings.file(scope, places)
  if (path === null) return null
  const { text } = readText(env, path)
  const base = { agent: agent.name, scope, path }
  const ours = oursOf(env, agent, scope)
  if (!ours) {
    const installed = text?.startsWith(MARK) ?? false
    const program = programIn(text ?? '')
    const commands = program === null ? [] : [singleQuoted(program)]
    const outdated = installed && text?.replace(PROGRAM, '') !== shippedPlugin(env, agent).replace(PROGRAM, '')
    return { ...base, installed, missing: [], outdated, commands }
  }
  if (text !== null) withOurs({ text, ranges: [] }, path, ours) // what an install would refuse to read is none to look at
  const there = text === null || text.trim() === '' ? [] : installedEvents(text, path, ours)
  const wanted = ours.settings.entries(ours.command).map(({ event }) => event)
  const missing = there.length === 0 ? [] : wanted.filter((event) => !there.includes(event))
  const commands = there.length === 0 ? [] : ourCommands(text ?? '', path, ours)
  return { ...base, installed: there.length > 0, missing, outdated: false, commands }
}
