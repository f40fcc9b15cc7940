/** What commits of the user's made of paths: git-log(1). */
import type { Oid } from '../../core/ids.ts'
import { pathToText } from '../../core/paths.ts'
import { tryGit } from '../../git/process.ts'
import type { Context } from '../worktree/context.ts'
import type { Entry } from './entries.ts'

/** git tells its times by the second; in milliseconds. */
export const SECOND = 1000

/** A path that a commit changed. */
export interface CommittedChange {
  path: string
  /** What it made of it. */
  entry: Entry
  /** Of the commit: milliseconds since 1970, UTC. */
  time: number
}

/** `revisions`: as git log takes them. `path`: only what was made of this one. Nothing where git cannot say. */
export async function readChanges(
  { env, worktree }: Context,
  revisions: readonly string[],
  path?: string,
): Promise<CommittedChange[]> {
  const shown = ['--format=%x01%ct', '--root', '--raw', '--no-abbrev', '--no-renames', '-m', '-z']
  const among = path === undefined ? [] : ['--', pathToText(path)]
  const args = ['log', '--no-show-signature', ...shown, ...revisions, ...among]
  const { code, stdout } = await tryGit(env, { args, cwd: worktree.root, vars: { GIT_LITERAL_PATHSPECS: '1' } })
  const fields = code === 0 ? stdout.toString('latin1').split('\0') : []
  const found: CommittedChange[] = []
  let time = 0
  for (let i = 0; i < fields.length; i++) {
    if (fields[i]!.startsWith('\x01')) time = Number(fields[i]!.slice(1)) * SECOND
    const [, mode, oid] = /^\n?:\d+ (\d+) [0-9a-f]+ ([0-9a-f]+) [A-Z]/.exec(fields[i]!) ?? []
    if (mode === undefined) continue
    const entry = mode === '000000' ? null : { mode: mode as '100644', oid: oid as Oid }
    found.push({ path: fields[++i]!, entry, time })
  }
  return found
}
