/** Paths as git holds them, in HEAD, in the user's index and in a commit that is being made. */
import type { Oid } from '../../core/ids.ts'
import { ancestorsOf } from '../../core/paths.ts'
import { runGit } from '../../git/process.ts'
import type { FileEntry } from '../../git/trees.ts'
import type { Context } from '../worktree/context.ts'

/** One path; null: it is not there. */
export type Entry = FileEntry | null

export const sameEntry = (a: Entry, b: Entry): boolean =>
  a === null || b === null ? a === b : a.mode === b.mode && a.oid === b.oid

export async function readHeadEntries({ env, worktree }: Context, head: Oid | null): Promise<Map<string, Entry>> {
  if (head === null) return new Map()
  return readEntries(await runGit(env, { args: ['ls-tree', '-r', '-z', '--full-tree', head], cwd: worktree.root }))
}

/** What `git ls-tree -z` prints. */
export const readEntries = (out: Buffer): Map<string, Entry> =>
  readRows(out.toString('latin1'), /^(\d+) \w+ ([0-9a-f]+)\t/)

export async function readIndexEntries({ env, worktree }: Context): Promise<Map<string, Entry>> {
  const out = await runGit(env, { args: ['ls-files', '-s', '-z'], cwd: worktree.root })
  return readRows(out.toString('latin1'), /^(\d+) ([0-9a-f]+) 0\t/)
}

/** Paths with a conflict in the index: nothing is staged there, and what is to be only a person knows. */
export async function readUnmergedPaths({ env, worktree }: Context): Promise<Set<string>> {
  const out = await runGit(env, { args: ['ls-files', '-u', '-z'], cwd: worktree.root })
  return new Set(readRows(out.toString('latin1'), /^(\d+) ([0-9a-f]+) [123]\t/).keys())
}

/** Entries of the index of which nothing is staged (git-add(1) --intent-to-add): git takes their files for new ones. */
export async function readIntendedPaths({ env, worktree }: Context): Promise<Set<string>> {
  const args = ['diff-files', '--name-only', '-z', '--diff-filter=A', '--ita-invisible-in-index', '--ignore-submodules']
  const out = await runGit(env, { args, cwd: worktree.root })
  return new Set(out.toString('latin1').split('\0'))
}

/** The marks that a person can give an entry of the index, as options of git-update-index(1). */
export const MARKS: readonly string[] = ['--assume-unchanged', '--skip-worktree']

/** These marks, and the paths that bear them. */
export async function readMarkedPaths({ env, worktree }: Context): Promise<[option: string, paths: Set<string>][]> {
  const out = await runGit(env, { args: ['ls-files', '-v', '-z'], cwd: worktree.root })
  const [assumed, skipped] = [new Set<string>(), new Set<string>()]
  for (const row of out.toString('latin1').split('\0')) {
    const [tag = '', path] = [row[0], row.slice(2)]
    if (/[a-z]/.test(tag)) assumed.add(path)
    if (/s/i.test(tag)) skipped.add(path)
  }
  return [
    [MARKS[0]!, assumed],
    [MARKS[1]!, skipped],
  ]
}

function readRows(text: string, row: RegExp): Map<string, Entry> {
  const found = new Map<string, Entry>()
  for (const line of text.split('\0')) {
    const [all, mode, oid] = row.exec(line) ?? []
    if (all !== undefined) found.set(line.slice(all.length), { mode: mode as '100644', oid: oid as Oid })
  }
  return found
}

/** For `git update-index --index-info`. */
export function indexInfo(entries: ReadonlyMap<string, Entry>, known: string | null): Buffer {
  const none = '0'.repeat(known?.length ?? 40)
  const rows = [...entries].map(([path, entry]) =>
    entry ? `${entry.mode} ${entry.oid}\t${path}\0` : `0 ${none}\t${path}\0`,
  )
  return Buffer.from(rows.join(''), 'latin1')
}

/**
 * A file and a directory of one name: git-update-index(1) drops what was there, and that is not the session's to drop.
 * `entries` are to come, or to go, beside those that are `there`.
 */
export function* clashes(
  entries: ReadonlyMap<string, Entry>,
  there: ReadonlyMap<string, Entry>,
): Generator<[path: string, reason: string]> {
  const coming = new Set([...entries].flatMap(([path, entry]) => (entry && !there.has(path) ? [path] : [])))
  if (coming.size === 0) return
  const held = (path: string) => (entries.has(path) ? entries.get(path) : there.get(path)) ?? null
  for (const path of coming) {
    const above = ancestorsOf(path).flatMap((directory) => held(directory) ?? [])[0]
    if (above) yield [path, `a ${above.mode === '160000' ? 'submodule' : 'file'} is in the place of its directory`]
  }
  for (const path of there.keys()) {
    const above = held(path) && ancestorsOf(path).find((directory) => coming.has(directory))
    if (above) yield [above, 'a directory with other files is in its place']
  }
}
