/** Puts the gate in front of git's hooks; a hook that is there is kept and runs after it. */
import { CkptError } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import type { Env } from '../env.ts'
import type { Draft } from '../git/whole-file.ts'
import { locked } from '../ops/recovery/locked.ts'
import type { Context } from '../ops/worktree/context.ts'
import { sweepDrafts, sweepDraftsOf } from '../ops/worktree/half-made.ts'
import {
  draftHook,
  gateDirectory,
  gateFiles,
  type HookOnDisk,
  keepAside,
  keptName,
  keptNames,
  PRE_COMMIT,
  readHook,
  refuseIfKept,
  writeHook,
} from './disk.ts'
import {
  ALL_HOOKS,
  GATE_ASKED,
  GATE_BESIDE,
  type HookName,
  hasLine,
  hookBefore,
  lineToAdd,
  ourPart,
  ownHook,
  type Templates,
  takesLines,
  wantedHooks,
  withLines,
  withoutOurs,
} from './hook-file.ts'
import { readLedger, writeLedger } from './ledger.ts'
import { findHooksPlace, type HooksPlace } from './place.ts'
import { type HooksResult, hooksStatus, projectHook, repositoryOf } from './status.ts'
import { readTemplates } from './templates.ts'
import { uninstallOne } from './uninstall.ts'

/** @throws CkptError USAGE, with the lines to add, where the hooks directory is not ours to write; CONFIG where git runs no hooks */
export async function installHooks(context: Context): Promise<HooksResult> {
  repositoryOf(context)
  const { env, store } = context
  if (!env.files.existsSync(store.worktreeDir)) return install(context)
  return locked(context, { command: 'hooks' }, () => install(context))
}

async function install(context: Context): Promise<HooksResult> {
  const { env } = context
  const place = await findHooksPlace(env, repositoryOf(context))
  if (place.off !== null) {
    throw new CkptError('CONFIG', `Git runs no hooks here: ${place.off.why}. No hook was changed.`, {
      hints: [place.off.mend, 'ckpt hooks install'],
    })
  }
  const templates = readTemplates(context)
  const wanted = wantedHooks(context.config.hooks)
  const found = wanted.map((hook) => ({ hook, disk: readHook(env, place.directory, hook) }))
  const todo = found.filter(({ hook }) => !(place.husky && hasLine(projectHook(env, place.directory, hook).text, hook)))
  refuseOdd(found)
  // The gate itself first: it is in our own directory, and the lines that a person adds call it there.
  placeGate(context, templates)
  const ledger = await readLedger(context)
  const add = (list: string[], one: string, when = true) => (when ? [...new Set([...list, one])] : list)
  if (place.refusal !== null) {
    refuseUnlessAdded(place, found)
    writeLedger(context, { ...ledger, lined: add(ledger.lined, place.directory) })
    return hooksStatus(context)
  }
  // All of them or none: what would stop one is found before the first is written.
  for (const { hook, disk } of todo)
    if (givesWay(hook, disk)) refuseIfKept(env, { directory: place.directory, hook }, disk)
  for (const hook of ALL_HOOKS) sweepDraftsOf(env, `${place.directory}/${hook}`)
  const made = makeDirectory(env, place.directory)
  writeLedger(context, {
    ...ledger,
    directories: add(ledger.directories, place.directory),
    made: add(ledger.made, place.directory, made),
  })
  installAll(env, { place, templates }, todo)
  const words = todo.map(({ disk }) => rewrittenBy(place, disk))
  const warnings = new Set(words.filter((word) => word !== null))
  for (const hook of ALL_HOOKS) if (!wanted.includes(hook)) uninstallOne(env, place.directory, hook)
  const result = await hooksStatus(context)
  return { ...result, warnings: [...result.warnings, ...warnings] }
}

type Found = readonly { hook: HookName; disk: HookOnDisk }[]

function refuseOdd(found: Found): void {
  for (const { path, kind } of found.map(({ disk }) => disk)) {
    if (kind !== 'other' && kind !== 'unreadable') continue
    const [what, mend] =
      kind === 'other'
        ? ['is neither a file nor a link', `move ${path} away`]
        : ['cannot be read', `chmod u+r ${quotedPath(path)}   (as its owner)`]
    throw new CkptError('USAGE', `${path} ${what}. No hook was changed.`, { hints: [mend, 'ckpt hooks install'] })
  }
}

function placeGate(context: Context, templates: Templates): void {
  const { env } = context
  const directory = gateDirectory(context)
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  sweepDrafts(env, directory)
  for (const [name, text] of gateFiles(templates)) writeHook(env, `${directory}/${name}`, { text, mode: 0o600 })
}

function makeDirectory({ files }: Env, directory: string): boolean {
  if (files.existsSync(directory)) return false
  files.mkdirSync(directory, { recursive: true })
  return true
}

interface Where {
  place: HooksPlace
  templates: Templates
}

/** Each is written before the first is in its place: where the disk is full none is there. */
function installAll(env: Env, where: Where, todo: Found): void {
  const drafts: Draft[] = []
  try {
    for (const { hook, disk } of todo) {
      const draft = draftOne(env, { ...where, hook, disk })
      if (draft) drafts.push(draft)
    }
    for (const draft of drafts) draft.place()
  } catch (error) {
    for (const draft of drafts) draft.remove()
    throw error
  }
}

interface One extends Where {
  hook: HookName
  disk: HookOnDisk
}

/** Whether somebody's hook is put aside for ours: git passes over it, or lines more would change what it does. */
function givesWay(hook: HookName, { kind, runs, text }: HookOnDisk): boolean {
  if (!runs) return kind !== 'absent'
  if (kind === 'file' && (ourPart(text) !== null || takesLines(text))) return false
  return !hasLine(text, hook)
}

/** A hook that is written, and not yet in its place. Null: it is there already. */
function draftOne(env: Env, { place, templates, hook, disk }: One): Draft | null {
  const { directory } = place
  const filling = { hook, gate: place.beside ? GATE_BESIDE : GATE_ASKED }
  const put = (text: string, mode = 0o755) =>
    disk.kind === 'absent' || disk.text !== text ? draftHook(env, disk.path, { text, mode }) : null
  const part = disk.kind === 'file' && disk.runs ? ourPart(disk.text) : null
  if (disk.kind === 'absent') return put(ownHook(templates, filling))
  if (part === 'lines') return put(withLines(disk.text, templates, filling), disk.mode)
  if (part === 'own') return put(refreshed(disk.text, ownHook(templates, filling)), disk.mode)
  if (part === 'before') {
    const names = keptNames(hook)
    const kept = env.files.existsSync(`${directory}/${names.link}`) ? names.link : names.file
    return put(refreshed(disk.text, hookBefore(templates, filling, kept)), disk.mode)
  }
  if (givesWay(hook, disk)) {
    const kept = keptName(hook, disk)
    // What git passed over must not begin to run because of us.
    const text = disk.runs ? hookBefore(templates, filling, kept) : ownHook(templates, filling)
    const draft = draftHook(env, disk.path, { text, mode: 0o755 })
    const place = () => {
      keepAside(env, { directory, hook }, disk)
      draft.place()
    }
    return { ...draft, place }
  }
  return hasLine(disk.text, hook) ? null : put(withLines(disk.text, templates, filling), disk.mode)
}

/** Our part renewed, whatever was added to the file since. */
function refreshed(text: string, whole: string): string {
  const before = text.indexOf('# >>> ckpt gate: ')
  const ours = whole.slice(whole.indexOf('# >>> ckpt gate: '))
  return text.slice(0, before) + ours + withoutOurs(text).slice(before)
}

/** By what is in the hooks that they write. */
const REWRITERS: [string, RegExp][] = [
  ['lefthook', /\blefthook\b/i],
  ['pre-commit', PRE_COMMIT],
  ['simple-git-hooks', /\bSKIP_SIMPLE_GIT_HOOKS\b/],
]

/** Tools that write their hooks anew now and then, and take ours away without a word. */
function rewrittenBy({ husky, directory }: HooksPlace, { text, path }: HookOnDisk): string | null {
  const project = directory.slice(0, directory.lastIndexOf('/'))
  if (husky) {
    return `husky writes ${directory} anew at each install, and in a linked worktree git runs no hook before it did. For the gate to stay, add to ${project}/pre-commit, and likewise to the others: ${lineToAdd('pre-commit')}`
  }
  const [tool] = REWRITERS.find(([, marks]) => marks.test(text)) ?? []
  return tool === undefined
    ? null
    : `${tool} writes ${path} anew when it installs its hooks: then run ckpt hooks install again (ckpt hooks status tells).`
}

function refuseUnlessAdded(place: HooksPlace, found: Found): void {
  const missing = found.filter(({ hook, disk }) => !(disk.runs && hasLine(disk.text, hook)))
  if (missing.length === 0) return
  throw new CkptError(
    'USAGE',
    `The hooks directory ${place.directory} is not ours to write: ${place.refusal}. No hook was changed. Add one line to each hook there, first after its #! line (a missing hook: a new executable file that starts with #!/bin/sh), then run ckpt hooks install again.`,
    { hints: missing.map(({ hook, disk }) => `${disk.path}: ${lineToAdd(hook)}`) },
  )
}
