/** Configuration as the rest of the program sees it: every key present, sizes in bytes, times in milliseconds. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../core/defined.ts'

export interface Config {
  enableFileCheckpointing: boolean
  /** Turns kept per session; 0: no limit. */
  checkpointKeepCount: number
  snapshot: {
    include: string[]
    exclude: string[]
    maxFileSize: number
    maxBytes: number
    deadline: number
  }
  store: {
    maxBytes: number
    /** `git`, or an absolute directory. */
    location: string
  }
  prune: {
    /** Age at which visible turns go, milliseconds; null: never. */
    olderThan: number | null
    /** How long abandoned turns stay, milliseconds. */
    grace: number
  }
  watch: {
    /** Changes followed by quiet become a turn of session `auto`, while a daemon runs. */
    autoTurn: boolean
    /** `on-demand`: a marker in a large worktree starts a daemon in the background. */
    start: 'on-demand' | 'never'
    /** Milliseconds without a call after which a background daemon stops. */
    idleStop: number
    /** Turns whose hooks did not run are taken from the agent's own transcripts, while a daemon runs. */
    transcripts: boolean
  }
  agents: {
    /** After an undo the next prompt's hook tells the agent, in one line, which files were taken back. */
    tellUndone: boolean
  }
  commit: {
    /** `ckpt run` and an agent's session end with a commit of what they changed. */
    auto: boolean
    /** A shell command that writes the message; null: it is made from the prompts. Only the user's own file may name one. */
    messageCommand: string | null
  }
  /** Hooks that `ckpt hooks install` adds to the gate's. */
  hooks: {
    /** Refuses to push commits that were made while a boundary was pending, or those that no recorded turn covers. */
    prePush: 'off' | 'pending' | 'uncovered'
    /** Records which checkpoints a commit came from. */
    postCommit: boolean
    /** Carries that over to what an amend or a rebase made of a commit. */
    postRewrite: boolean
  }
}

export const DEFAULTS: Config = {
  enableFileCheckpointing: true,
  checkpointKeepCount: 0,
  snapshot: {
    include: [],
    exclude: [],
    maxFileSize: 10 * 2 ** 20,
    maxBytes: 512 * 2 ** 20,
    deadline: 20_000,
  },
  store: { maxBytes: 5 * 2 ** 30, location: 'git' },
  prune: { olderThan: null, grace: 7 * 86_400_000 },
  watch: { autoTurn: false, start: 'on-demand', idleStop: 30 * 60_000, transcripts: true },
  agents: { tellUndone: false },
  commit: { auto: false, messageCommand: null },
  hooks: { prePush: 'off', postCommit: false, postRewrite: false },
}

/** Part of a configuration, as one file gives it. */
export interface PartialConfig {
  enableFileCheckpointing?: boolean | undefined
  checkpointKeepCount?: number | undefined
  snapshot?: { [K in keyof Config['snapshot']]?: Config['snapshot'][K] | undefined } | undefined
  store?: { [K in keyof Config['store']]?: Config['store'][K] | undefined } | undefined
  prune?: { [K in keyof Config['prune']]?: Config['prune'][K] | undefined } | undefined
  watch?: { [K in keyof Config['watch']]?: Config['watch'][K] | undefined } | undefined
  commit?: { [K in keyof Config['commit']]?: Config['commit'][K] | undefined } | undefined
  agents?: { [K in keyof Config['agents']]?: Config['agents'][K] | undefined } | undefined
  hooks?: { [K in keyof Config['hooks']]?: Config['hooks'][K] | undefined } | undefined
}

/** Later files win, key by key. */
export function mergeConfig(base: Config, part: PartialConfig): Config {
  const { snapshot, store, prune, watch, commit, agents, hooks, ...top } = part
  return {
    ...base,
    ...defined(top),
    snapshot: { ...base.snapshot, ...defined(snapshot ?? {}) },
    store: { ...base.store, ...defined(store ?? {}) },
    prune: { ...base.prune, ...defined(prune ?? {}) },
    watch: { ...base.watch, ...defined(watch ?? {}) },
    commit: { ...base.commit, ...defined(commit ?? {}) },
    agents: { ...base.agents, ...defined(agents ?? {}) },
    hooks: { ...base.hooks, ...defined(hooks ?? {}) },
  }
}

const isNegated = (pattern: string): boolean => pattern.startsWith('!')

/**
 * Whether all that `after` differs in from `before` is that patterns which narrow went, and such as widen came. The last
 * pattern that matches decides: what changes places may narrow as well.
 */
function coversNoLess(
  before: readonly string[],
  after: readonly string[],
  narrows: (pattern: string) => boolean,
): boolean {
  const stayed = before.filter((pattern) => after.includes(pattern) || !narrows(pattern))
  const kept = after.filter((pattern) => before.includes(pattern) || narrows(pattern))
  return isDeepStrictEqual(stayed, kept)
}

/**
 * A project's file on disk may widen protection at once; what narrows it counts only once it is committed (or stands in
 * the user's own file), for an agent could have written it. Returns the keys that were passed over.
 */
export function widenConfig(trusted: Config, onDisk: Config): { config: Config; ignored: string[] } {
  const config = structuredClone(trusted)
  const ignored: string[] = []
  const larger = (
    key: string,
    { value, current }: { value: number; current: number },
    unlimited = Number.NaN,
  ): number => {
    if (value === current) return current
    if (value === unlimited || (current !== unlimited && value > current)) return value
    ignored.push(key)
    return current
  }
  if (onDisk.enableFileCheckpointing) config.enableFileCheckpointing = true
  else if (trusted.enableFileCheckpointing) ignored.push('enableFileCheckpointing')
  config.checkpointKeepCount = larger(
    'checkpointKeepCount',
    { value: onDisk.checkpointKeepCount, current: trusted.checkpointKeepCount },
    0,
  )
  const { snapshot } = config
  snapshot.maxFileSize = larger('snapshot.maxFileSize', {
    value: onDisk.snapshot.maxFileSize,
    current: snapshot.maxFileSize,
  })
  snapshot.maxBytes = larger('snapshot.maxBytes', { value: onDisk.snapshot.maxBytes, current: snapshot.maxBytes })
  snapshot.deadline = larger('snapshot.deadline', { value: onDisk.snapshot.deadline, current: snapshot.deadline })
  const { include, exclude } = onDisk.snapshot
  if (coversNoLess(snapshot.include, include, isNegated)) snapshot.include = include
  else {
    snapshot.include = [...new Set([...snapshot.include, ...include.filter((pattern) => !isNegated(pattern))])]
    ignored.push('snapshot.include')
  }
  if (coversNoLess(snapshot.exclude, exclude, (pattern) => !isNegated(pattern))) snapshot.exclude = exclude
  else ignored.push('snapshot.exclude')
  config.store.maxBytes = larger('store.maxBytes', { value: onDisk.store.maxBytes, current: trusted.store.maxBytes })
  for (const key of ['olderThan', 'grace'] as const) {
    if (onDisk.prune[key] !== trusted.prune[key]) ignored.push(`prune.${key}`)
  }
  config.watch = onDisk.watch
  for (const key of ['autoTurn', 'transcripts'] as const) {
    if (onDisk.watch[key] || !trusted.watch[key]) continue
    config.watch = { ...config.watch, [key]: true }
    ignored.push(`watch.${key}`)
  }
  if (onDisk.agents.tellUndone !== trusted.agents.tellUndone) ignored.push('agents.tellUndone')
  if (onDisk.commit.auto !== trusted.commit.auto) ignored.push('commit.auto')
  for (const key of ['prePush', 'postCommit', 'postRewrite'] as const) {
    if (onDisk.hooks[key] !== trusted.hooks[key]) ignored.push(`hooks.${key}`)
  }
  if (onDisk.store.location !== trusted.store.location) ignored.push('store.location')
  return { config, ignored }
}
