/** Which of the gate's hooks are in place, and whether git runs them: proved by a dry run. */
import { CkptError } from '../core/errors.ts'
import { printable } from '../core/paths.ts'
import { type Env, lstatIfThere } from '../env.ts'
import { tryGit } from '../git/process.ts'
import type { Repository } from '../git/repository.ts'
import { readIfThere } from '../git/whole-file.ts'
import type { Finding } from '../ops/doctor/finding.ts'
import type { Context } from '../ops/worktree/context.ts'
import { gateDirectory, gateFiles, type HookOnDisk, keptNames, readHook, readMovedByPreCommit } from './disk.ts'
import { ALL_HOOKS, type HookName, hasLine, lineComesFirst, ourPart, oursComesFirst, wantedHooks } from './hook-file.ts'
import { type Ledger, readLedger } from './ledger.ts'
import { findHooksPlace, type HooksPlace, realPath, usersConfig } from './place.ts'
import { readTemplates } from './templates.ts'

export interface HookState {
  name: HookName
  path: string
  installed: boolean
  /** Somebody else's hook runs after the gate. */
  chained: boolean
  /** Git ran it, and it looked at this worktree's boundary. Null: it cannot be read, or not be tried without running somebody else's code. */
  fires: boolean | null
}

export interface HooksResult {
  hooks: HookState[]
  place: HooksPlace
  /** The gate is of another version of ckpt, or of another configuration: an install would write it otherwise. */
  outdated: boolean
  warnings: string[]
}

/** @throws CkptError BAD_ROOT in a plain directory: it has no git hooks */
export function repositoryOf({ repository, worktree }: Context): Repository {
  if (repository) return repository
  throw new CkptError('BAD_ROOT', `${worktree.root} is a plain directory: it has no git hooks. Nothing was changed.`, {
    hints: ['git init'],
  })
}

export async function hooksStatus(context: Context): Promise<HooksResult> {
  const place = await findHooksPlace(context.env, repositoryOf(context))
  const wanted = wantedHooks(context.config.hooks)
  const others = await configuredHooks(context)
  const states = await Promise.all(ALL_HOOKS.map((name) => hookState(context, place, { name, others })))
  const hooks = states.filter(({ name, installed }) => installed || wanted.includes(name))
  const off = place.off === null ? [] : [`Git runs no hooks here: ${place.off.why}.`]
  const outdated = hooks.some((hook) => hook.installed) && isOutdated(context)
  const hidden = hooks.filter(({ fires, installed }) => fires === null && !installed)
  const warnings = [
    ...off,
    ...hidden.map(({ path }) => `${path} cannot be read: whether the gate is in it cannot be told.`),
    ...(hidden.length + off.length > 0 || hooks.some((hook) => hook.installed) ? [] : await replaced(context, place)),
    ...ALL_HOOKS.flatMap((name) => asideAndNotRun(context.env, place.directory, name)),
    ...(outdated ? [`${OLD} Renew it: ckpt hooks install`] : []),
  ]
  return { hooks, place, outdated, warnings: [...context.warnings, ...warnings] }
}

/** What was moved aside for ours, which would run it or give it back, and something took the place of ours since. */
export function asideAndNotRun(env: Env, directory: string, name: HookName): string[] {
  const { kind, text } = readHook(env, directory, name)
  const part = kind === 'file' ? ourPart(text) : null
  const { file, link, disabled } = keptNames(name)
  const lost = part === 'before' ? [] : part === 'own' ? [file, link] : [file, link, disabled]
  return lost
    .map((kept) => `${directory}/${kept}`)
    .filter((kept) => lstatIfThere(env.files, kept) !== null)
    .map((kept) => `${printable(kept)} was your ${name} before ckpt, and git does not run it any more.`)
}

const OLD = 'The gate in place is of another version of ckpt, or of another configuration.'

function isOutdated(context: Context): boolean {
  const directory = gateDirectory(context)
  return gateFiles(readTemplates(context)).some(
    ([name, text]) => readIfThere(context.env, `${directory}/${name}`)?.toString('latin1') !== text,
  )
}

/** Directories that have, or had, the gate in their hooks. */
const gated = ({ directories, lined }: Ledger) => [...new Set([...directories, ...lined])]

async function replaced(context: Context, { directory }: HooksPlace): Promise<string[]> {
  const directories = gated(await readLedger(context))
  if (directories.length === 0) return []
  return [
    directories.includes(directory)
      ? `The gate is not in ${directory}, where it was to be: something took it out again, or its install was cut short.`
      : `The gate is installed in ${directories.join(', ')}, but git now runs the hooks in ${directory}.`,
  ]
}

/** One of the gate's hooks, and the names of those that git would run beside it. */
interface Asked {
  name: HookName
  others: readonly string[]
}

async function hookState(context: Context, place: HooksPlace, asked: Asked): Promise<HookState> {
  const { name } = asked
  const { env } = context
  const { directory, husky } = place
  const hook = readHook(env, directory, name)
  const { path, kind, text, runs } = hook
  const state = { name, path }
  if (kind === 'unreadable') return { ...state, installed: false, chained: false, fires: null }
  if (!runs || !env.files.existsSync(`${gateDirectory(context)}/gate.sh`))
    return { ...state, installed: false, chained: false, fires: false }
  const part = ourPart(text)
  if (part !== null) {
    const fires = oursComesFirst(text) ? await dryRun(context, asked) : null
    return { ...state, installed: true, chained: part !== 'own', fires }
  }
  if (hasLine(text, name)) {
    const fires = lineComesFirst(text, name) ? await dryRun(context, asked) : null
    return { ...state, installed: true, chained: true, fires }
  }
  // What is in front is not to be run for a look.
  const moved = readMovedByPreCommit(env, directory, hook)
  if (moved?.runs && ourPart(moved.text) !== null) return { ...state, installed: true, chained: true, fires: null }
  // husky starts the project's own hook, one directory up: not to be run for a look.
  const project = husky ? projectHook(env, directory, name) : null
  if (project === null || !hasLine(project.text, name))
    return { ...state, installed: false, chained: false, fires: false }
  return { name, path: project.path, installed: true, chained: true, fires: null }
}

/** The hook of the project that husky's launcher runs. */
export function projectHook(env: Env, directory: string, name: HookName): HookOnDisk {
  return readHook(env, directory.slice(0, directory.lastIndexOf('/')), name)
}

/** Names of the hooks that the user's configuration defines (git ≥ 2.54, githooks(5)). */
async function configuredHooks({ env, worktree }: Context): Promise<string[]> {
  const { stdout } = await tryGit(env, {
    args: ['config', '-z', '--name-only', '--get-regexp', '^hook\\..*\\.command$'],
    cwd: worktree.root,
    vars: usersConfig(),
  })
  const keys = stdout.toString('utf8').split('\0')
  return keys.flatMap((key) => /^hook\.(.*)\.command$/s.exec(key)?.[1] ?? [])
}

/**
 * Has git run the hook (`git hook run`, git ≥ 2.36) with the gate's dry run: the gate says which worktree it looks at
 * and refuses, so that no other hook runs after it; of those in the configuration none runs at all. Null where this git
 * cannot.
 */
async function dryRun({ env, worktree, store }: Context, { name, others }: Asked): Promise<boolean | null> {
  const token = env.random(8)
  const off = others.map((one) => [`hook.${one}.enabled`, 'false'] as const)
  const { stderr } = await tryGit(env, {
    args: ['hook', 'run', name],
    cwd: worktree.root,
    vars: { ...usersConfig(off), CKPT_GATE_PROBE: token, CKPT_DISABLED: '' },
  })
  if (/'hook' is not a git command/.test(stderr)) return null
  const said = stderr.split('\n').find((line) => line.startsWith(`ckpt-gate ${token} ${name} `))
  if (said === undefined) return false
  const looksAt = said.slice(`ckpt-gate ${token} ${name} `.length)
  return env.files.existsSync(store.worktreeDir) ? looksAt === realPath(env, store.worktreeDir) : looksAt === ''
}

/** For `ckpt doctor`: fine without hooks; not fine with hooks that do not run. */
export async function hooksFinding(context: Context): Promise<Finding> {
  const { hooks, place, outdated } = await hooksStatus(context)
  const wasNever = gated(await readLedger(context)).length === 0
  if (place.off !== null) {
    return {
      name: 'hooks',
      ok: wasNever,
      detail: `git runs no hooks here: ${place.off.why}`,
      ...(wasNever ? {} : { mend: place.off.mend }),
    }
  }
  const installed = hooks.filter((hook) => hook.installed)
  if (installed.length === 0 && wasNever)
    return { name: 'hooks', ok: true, detail: 'the git hooks are not installed (ckpt hooks install)' }
  const silent = hooks.filter((hook) => hook.fires === false)
  if (silent.length === 0 && outdated)
    return { name: 'hooks', ok: false, advice: true, detail: OLD, mend: 'ckpt hooks install' }
  if (silent.length === 0) {
    const unproved = hooks.filter((hook) => hook.fires === null).length
    return {
      name: 'hooks',
      ok: true,
      detail: unproved === 0 ? 'all fire' : `all in place; ${unproved} cannot be tried without running other hooks`,
    }
  }
  const names = silent.map((hook) => hook.name).join(', ')
  return { name: 'hooks', ok: false, detail: `these do not fire: ${names}`, mend: 'ckpt hooks install' }
}
