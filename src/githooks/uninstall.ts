/** Takes the gate out again: every other hook is as it was, byte for byte, with its mode. */
import type { Env } from '../env.ts'
import { removeIfEmpty } from '../git/whole-file.ts'
import type { Context } from '../ops/worktree/context.ts'
import { sweepDraftsOf } from '../ops/worktree/half-made.ts'
import { giveBack, type HookOnDisk, readHook, readMovedByPreCommit, removeGate, writeHook } from './disk.ts'
import { ALL_HOOKS, type HookName, hasLine, ourPart, withoutOurs } from './hook-file.ts'
import { readLedger } from './ledger.ts'
import { findHooksPlace } from './place.ts'
import { asideAndNotRun, type HooksResult, hooksStatus, projectHook, repositoryOf } from './status.ts'

export async function uninstallHooks(context: Context): Promise<HooksResult> {
  const { env } = context
  const repository = repositoryOf(context)
  const place = await findHooksPlace(env, repository)
  const ledger = await readLedger(context)
  const ours = place.refusal === null ? [place.directory] : []
  const warnings: string[] = []
  for (const directory of new Set([...ledger.directories, ...ours, `${repository.commonDir}/hooks`])) {
    for (const hook of ALL_HOOKS) {
      uninstallOne(env, directory, hook)
      if (directory !== place.directory) warnings.push(...asideAndNotRun(env, directory, hook))
    }
  }
  for (const directory of ledger.made) removeIfEmpty(env, directory)
  for (const hook of ALL_HOOKS) {
    const { path, text } = (place.husky ? projectHook : readHook)(env, place.directory, hook)
    if (hasLine(text, hook)) warnings.push(`The line that calls the gate for ${hook} (${path}) can be taken out now.`)
  }
  removeGate(context)
  const result = await hooksStatus(context)
  return { ...result, warnings: [...result.warnings, ...warnings] }
}

/** What is left of a hook that was ours alone. */
const NOTHING = '#!/bin/sh\n'

export function uninstallOne(env: Env, directory: string, hook: HookName): void {
  sweepDraftsOf(env, `${directory}/${hook}`)
  takeOut(env, { directory, hook, disk: readHook(env, directory, hook) })
  const moved = readMovedByPreCommit(env, directory, readHook(env, directory, hook))
  if (moved) takeOut(env, { directory, hook, disk: moved })
}

function takeOut(env: Env, { directory, hook, disk }: { directory: string; hook: HookName; disk: HookOnDisk }): void {
  const { path, kind, text, mode } = disk
  const part = kind === 'file' ? ourPart(text) : null
  if (part === null) return
  const theirs = withoutOurs(text)
  if (part !== 'lines') {
    if (giveBack(env, { directory, hook, path })) return
    if (theirs === NOTHING) {
      env.files.unlinkSync(path)
      return
    }
  }
  writeHook(env, path, { text: theirs, mode })
}
