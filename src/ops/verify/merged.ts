/**
 * What a merge changed by itself, though nothing in it came from elsewhere: a file that both parents changed since the commit
 * where they parted, and that holds what a merge without a conflict gives. git takes another diff for it (merge-ort:
 * histogram; git-merge-file(1): myers), so that now and then one is not known again.
 */
import { isOid, type Oid } from '../../core/ids.ts'
import { pathToText, splitNul } from '../../core/paths.ts'
import { emptyTree, WITH_SUBMODULES } from '../../git/diff.ts'
import { runGit, tryGit } from '../../git/process.ts'
import { isShallow, type Repository } from '../../git/repository.ts'
import { withTemporary } from '../../git/temporary.ts'
import type { FileEntry } from '../../git/trees.ts'
import { type Entry, readHeadEntries } from '../committed/entries.ts'
import { mergeContents, type Sides } from '../store/merge-texts.ts'
import type { Context } from '../worktree/context.ts'
import { blobName, type ChangedFiles } from './changed-files.ts'

export interface Merged {
  paths: ReadonlySet<string>
  /** One that cannot be merged again: its contents are not here, as in a partial clone. */
  unread: string | null
}

type Files = readonly [ours: FileEntry, base: FileEntry, theirs: FileEntry]

/** Of a merge of two parents that parted at one commit (`base`, if that is known); of any other there are none. */
export async function mergedPaths(
  context: Context,
  repository: Repository,
  { parents, changed, base: given }: { parents: readonly Oid[]; changed: ChangedFiles; base?: Oid },
): Promise<Merged> {
  const { env } = context
  const paths = new Set<string>()
  let unread: string | null = null
  const isMerged = parents.length === 2 && changed.paths.length > 0
  const base = isMerged ? (given ?? (await baseOf(context, repository, parents))) : null
  if (base === null) return { paths, unread }
  const sides = await Promise.all([parents[0]!, base, parents[1]!].map((id) => readHeadEntries(context, id)))
  await withTemporary(env, 'ckpt-verify', async (directory) => {
    for (const path of changed.paths) {
      const wanted = changed.entry(path)
      const there = sides.map((entries) => entries.get(path) ?? null)
      if (taken(there.map(named)) === named(wanted) || (await isForwarded(context, path, { wanted, there }))) {
        paths.add(path)
        continue
      }
      const files = filesOf(there)
      if (!wanted || !files || wanted.mode !== taken(files.map(({ mode }) => mode))) continue
      const oid = taken(files.map((one) => one.oid)) ?? (await mergedName(context, repository, { files, directory }))
      if (oid === undefined) unread ??= path
      else if (oid === wanted.oid) paths.add(path)
    }
  })
  return { paths, unread }
}

/**
 * Paths at which a merge is as one parent, though the other one changed them since they parted: git would not have made that
 * by itself, so that it is the merge's own. Of a merge of two parents that parted at one commit.
 */
export async function droppedPaths(
  context: Context,
  repository: Repository,
  { id, parents }: { id: Oid; parents: readonly Oid[] },
): Promise<string[]> {
  const base = parents.length === 2 ? await baseOf(context, repository, parents) : null
  if (base === null) return []
  const [first, second] = parents as [Oid, Oid]
  const ours = await changesBetween(context, repository, [base, first])
  const theirs = await changesBetween(context, repository, [base, second])
  const made = await changesBetween(context, repository, [first, id])
  return [...new Set([...ours.keys(), ...theirs.keys()])].filter((path) => {
    const before = (ours.get(path) ?? theirs.get(path))![0]
    const one = ours.get(path)?.[1] ?? before
    const two = theirs.get(path)?.[1] ?? before
    const is = made.get(path)?.[1] ?? one
    if (one === two) return false
    return is === one ? two !== before : is === two && one !== before
  })
}

/** Mode and name of each path that changed, before and after; nothing has the mode 000000. */
async function changesBetween(
  { env }: Context,
  { root }: Repository,
  between: readonly [Oid, Oid],
): Promise<Map<string, [before: string, after: string]>> {
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-abbrev', '--no-renames', WITH_SUBMODULES, ...between]
  const fields = splitNul(await runGit(env, { args, cwd: root }))
  const found = new Map<string, [string, string]>()
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [mode = '', after = '', oid = '', then = ''] = fields[i]!.slice(1).split(' ')
    found.set(fields[i + 1]!, [`${mode} ${oid}`, `${after} ${then}`])
  }
  return found
}

/** Of histories that have nothing in common: the empty tree. Null: there is more than one, or it is not here. */
async function baseOf({ env }: Context, { root, hash }: Repository, parents: readonly Oid[]): Promise<Oid | null> {
  const { code, stdout } = await tryGit(env, { args: ['merge-base', '--all', ...parents], cwd: root })
  const [base, ...others] = stdout.toString('latin1').split('\n').filter(isOid)
  if (base !== undefined) return others.length === 0 ? base : null
  return code === 1 && !(await isShallow(env, root)) ? emptyTree(hash) : null
}

/** Whether git took a submodule from one side to the commit of the other one, which is made on it (git-merge(1)). */
async function isForwarded(
  { env, worktree }: Context,
  path: string,
  { wanted, there }: { wanted: Entry; there: readonly Entry[] },
): Promise<boolean> {
  const [ours, , theirs] = there
  if (!wanted || !there.every((one) => one?.mode === '160000')) return false
  const other = wanted.oid === theirs!.oid ? ours! : theirs!
  if (![ours!.oid, theirs!.oid].includes(wanted.oid)) return false
  const args = ['-C', pathToText(path), 'merge-base', '--is-ancestor', other.oid, wanted.oid]
  return (await tryGit(env, { args, cwd: worktree.root })).code === 0
}

/** Two of them are the same where their names are. */
const named = (entry: Entry): string => (entry ? `${entry.mode} ${entry.oid}` : '')

const filesOf = (entries: readonly Entry[]): Files | null =>
  entries.every((one) => one?.mode.startsWith('100')) ? (entries as unknown as Files) : null

/** What one side alone changed, or both alike; undefined: each has its own. */
function taken<T>([ours, base, theirs]: readonly T[]): T | undefined {
  if (ours === base) return theirs
  return theirs === base || theirs === ours ? ours : undefined
}

/** What git calls the merged text. Null: they conflict, or are no texts; undefined: one of them is not here. */
async function mergedName(
  context: Context,
  { root, hash }: Repository,
  { files, directory }: { files: Files; directory: string },
): Promise<string | null | undefined> {
  const contents: Buffer[] = []
  for (const { oid } of files) {
    const { code, stdout } = await tryGit(context.env, { args: ['cat-file', 'blob', oid], cwd: root })
    if (code !== 0) return undefined
    contents.push(stdout)
  }
  const labels = ['ours', 'base', 'theirs']
  const [merged] = await mergeContents(context, [contents as unknown as Sides], { directory, labels })
  return merged?.isClean ? blobName(hash, merged.bytes) : null
}
