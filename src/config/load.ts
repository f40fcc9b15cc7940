/** Where configuration comes from, and which file may say what. */
import type { Loader } from 'cosmiconfig'
import { holdsConfig } from '../core/config-file.ts'
import { CkptError, reasonOf } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../env.ts'
import type { HeadReader } from '../git/head.ts'
import { type Config, DEFAULTS, mergeConfig, type PartialConfig, widenConfig } from './defaults.ts'

/** In the order of search; the first that is there counts. Config that is code is not loaded. */
export const CONFIG_NAMES = [
  'package.json',
  '.checkpointrc',
  '.checkpointrc.json',
  '.checkpointrc.yaml',
  '.checkpointrc.yml',
] as const

export interface LoadedConfig {
  config: Config
  warnings: string[]
}

/** As errors name it, and what is to be done about it. */
interface ConfigFile {
  name: string
  mend: string
}

export interface LoadInput {
  root: string
  /** Of the repository; null: a plain directory. */
  head: HeadReader | null
  /** Markers and undo pass over an invalid project file that is not committed, so that an agent cannot stop them by breaking it. */
  forgiving: boolean
}

/** Where the user's own files lie. */
export const usersDirectory = (env: Env): string => `${env.vars.XDG_CONFIG_HOME || `${env.home}/.config`}/ckpt`

/**
 * `store.location` of plain directories: only the user's own file can give it there. `git` where that file says nothing, or
 * is invalid, which {@link loadConfig} says once the worktree is known.
 */
export async function usersLocation(env: Env): Promise<string> {
  const home = usersDirectory(env)
  try {
    const part = await parseFirst(readDirectory(env, home).found, inDirectory(home))
    return part?.store?.location ?? DEFAULTS.store.location
  } catch (error) {
    if (error instanceof CkptError) return DEFAULTS.store.location
    throw error
  }
}

/** What can be wrong where there is no worktree to be configured. @throws CkptError CONFIG when the user's own file is invalid */
export async function checkUsersConfig(env: Env): Promise<void> {
  const home = usersDirectory(env)
  const { found, unread } = readDirectory(env, home)
  if (unread) throw unread
  await parseFirst(found, inDirectory(home))
}

/** @throws CkptError CONFIG */
export async function loadConfig(env: Env, { root, head, forgiving }: LoadInput): Promise<LoadedConfig> {
  const home = usersDirectory(env)
  const { found: user, unread: unreadOfUser } = readDirectory(env, home)
  if (unreadOfUser) throw unreadOfUser
  const committed = (await head?.committed(CONFIG_NAMES)) ?? new Map<string, string>()
  const { found: onDisk, links, unread } = readDirectory(env, root, { isProject: true })
  const warnings = links.map(
    (path) => `${printable(path)} is a link: a project's configuration is not read through one.`,
  )
  if (!unread && user.size + committed.size + onDisk.size === 0) return { config: DEFAULTS, warnings }
  const userPart = await parseFirst(user, inDirectory(home))
  const committedPart = await parseFirst(committed, (name) => ({
    name: `HEAD:${name}`,
    mend: `edit ${root}/${name}, and commit it`,
  }))
  const projects = (part: PartialConfig | null): PartialConfig => {
    const given = part?.commit?.messageCommand
    if (!part || given === undefined) return part ?? {}
    if (given !== null)
      warnings.push("commit.messageCommand is a command: it counts in the user's own file only, and was passed over.")
    return { ...part, commit: { ...part.commit, messageCommand: undefined } }
  }
  let trusted = mergeConfig(mergeConfig(DEFAULTS, userPart ?? {}), projects(committedPart))
  const passedOver = (error: unknown, why = 'It is not committed and was passed over.'): LoadedConfig => {
    if (!forgiving || !(error instanceof CkptError)) throw error
    warnings.push(`${reasonOf(error)} ${why}`)
    return { config: trusted, warnings } // what is committed leaves out is left out, whatever that was to say
  }
  if (unread) return passedOver(unread, 'It was passed over.')
  const same = CONFIG_NAMES.every((name) => committed.get(name) === onDisk.get(name))
  if (!same) {
    let part: PartialConfig | null
    try {
      part = await parseFirst(onDisk, inDirectory(root))
    } catch (error) {
      return passedOver(error)
    }
    const { config, ignored } = widenConfig(trusted, mergeConfig(mergeConfig(DEFAULTS, userPart ?? {}), projects(part)))
    trusted = config
    const counts = head
      ? 'once it is committed'
      : `in your own file only (${printable(`${home}/${[...user.keys()][0] ?? '.checkpointrc'}`)})`
    for (const [says, keys] of [
      ['narrows protection', ignored.filter((key) => !ofItself(key))],
      ['says what ckpt does by itself', ignored.filter(ofItself)],
    ] as const) {
      if (keys.length > 0)
        warnings.push(`The project's configuration on disk ${says} (${keys.join(', ')}): that counts ${counts}.`)
    }
  }
  return { config: trusted, warnings }
}

/** Nothing is protected less by it, but nobody is to find commits or hooks that an agent asked for. */
const ofItself = (key: string) => /^(commit|agents|hooks)\./.test(key)

const inDirectory =
  (directory: string) =>
  (name: string): ConfigFile => ({ name: `${directory}/${name}`, mend: `edit ${directory}/${name}` })

/**
 * The files by their names. A person's own may be links, a project's are not followed: they could lead anywhere. `unread`:
 * the first that may not be read.
 */
function readDirectory(
  { files }: Env,
  directory: string,
  { isProject = false } = {},
): { found: Map<string, string>; links: string[]; unread: CkptError | null } {
  const found = new Map<string, string>()
  const links: string[] = []
  let unread: CkptError | null = null
  for (const name of CONFIG_NAMES) {
    const path = `${directory}/${name}`
    if (!files.existsSync(path)) continue // nor what may not be looked at
    const stats = (isProject ? lstatIfThere : statIfThere)(files, path)
    if (stats?.isSymbolicLink() && name !== 'package.json') links.push(path)
    if (!stats?.isFile() || stats.size > 2 ** 20) continue
    try {
      const text = files.readFileSync(path, 'utf8')
      if (holdsConfig(name, text)) found.set(name, text)
    } catch (cause) {
      const code = errno(cause)
      if (code === undefined) throw cause
      if (code === 'ENOENT') continue // it went since
      unread ??= new CkptError('CONFIG', `${printable(path)} cannot be read (${code}). Nothing was changed.`, {
        cause,
        hints: [`ls -l ${quotedPath(path)}   (whose it is, and who may read it)`],
      })
    }
  }
  return { found, links, unread }
}

/** What a parser says in a line, without that which cosmiconfig puts before it, and the picture of the place that may follow. */
function whyUnread(cause: unknown): string {
  const said = cause instanceof Error ? cause.message : String(cause)
  const lines = said.replace(/^(JSON|YAML) Error in .*: ?\n/, '').split('\n')
  return (lines.find((line) => /^\w/.test(line)) ?? lines[0]!).replace(/ while parsing .*/, '')
}

async function parseFirst(
  found: ReadonlyMap<string, string>,
  fileOf: (name: string) => ConfigFile,
): Promise<PartialConfig | null> {
  for (const name of CONFIG_NAMES) {
    const text = found.get(name)?.replace(/^\uFEFF/, '')
    if (text === undefined || text.trim() === '') continue // as cosmiconfig passes over an empty one
    const file = fileOf(name)
    const [cosmiconfig, { checkConfig }] = await Promise.all([import('cosmiconfig'), import('./schema.ts')])
    // CommonJS: once bundled it has a default export only, unless a loader such as tsx puts its exports in that place.
    const { defaultLoadersSync } = cosmiconfig.default ?? cosmiconfig
    const loader: Loader = defaultLoadersSync[name.endsWith('.json') ? '.json' : '.yaml']
    let value: unknown
    try {
      value = loader(file.name, text)
    } catch (cause) {
      throw new CkptError('CONFIG', `${file.name} cannot be read: ${whyUnread(cause)}. Nothing was changed.`, {
        hints: [file.mend],
        cause,
      })
    }
    if (name === 'package.json') value = (value as { checkpoint?: unknown } | null)?.checkpoint
    if (value === undefined || value === null) continue
    return checkConfig(value, file.name, file.mend)
  }
  return null
}
