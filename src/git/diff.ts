/** Differences between two trees as git tells them: git-diff-tree(1). */

import { constants } from 'node:fs'
import { CkptError, isDamage, unlessDamaged } from '../core/errors.ts'
import type { HashName, Oid } from '../core/ids.ts'
import { lostContent } from '../core/lost-content.ts'
import { pathToText, type RelativePath, splitNul } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { gitFailure } from './failure.ts'
import { argumentPieces, runGit } from './process.ts'
import { committedTree, filtersOff, type Repository } from './repository.ts'
import type { Store } from './store.ts'
import { withTemporary } from './temporary.ts'

export interface FileDiff {
  path: RelativePath
  oldPath?: RelativePath
  status: 'added' | 'modified' | 'deleted' | 'renamed' | 'type' | 'mode'
  insertions: number
  deletions: number
  binary: boolean
}

export interface Stat {
  files: number
  insertions: number
  deletions: number
}

const base = ['diff-tree', '-r', '--no-ext-diff', '--no-textconv', '--no-color']

export interface TreesDiffOptions {
  /** None: all. */
  paths?: readonly string[]
  /** Nothing is taken for a rename. */
  renames?: boolean
}

/** @throws CkptError DAMAGED when an object is missing */
export async function diffTrees(
  store: Store,
  { from, to }: { from: Oid; to: Oid },
  { paths = [], renames = true }: TreesDiffOptions = {},
): Promise<{ files: FileDiff[]; patch: string }> {
  const run = async (flags: string[]) => {
    const found: Buffer[] = []
    for (const scope of paths.length > 0 ? argumentPieces(paths.map(pathToText)) : [[]])
      found.push(await store.git([...base, renames ? '-M' : '--no-renames', ...flags, from, to, '--', ...scope]))
    return Buffer.concat(found)
  }
  const all = [run(['-z', '--raw', '--full-index']), run(['-z', '--numstat']), run(['-p', '--full-index'])] as const
  const [raw, numbers, patch] = await Promise.all(all).catch(async (error: unknown) => {
    throw (isDamage(error) && (await lostBetween(store, from, to))) || error
  })
  const counts = parseNumstat(numbers)
  return { files: parseRaw(raw, counts), patch: patch.toString('utf8') }
}

/** Which files cannot be compared; null where git cannot tell that either. */
async function lostBetween(store: Store, from: Oid, to: Oid): Promise<CkptError | null> {
  const changes = await unlessDamaged(() => store.trees.compare(from, to), [])
  const damaged = await store.objects.damaged(
    changes.flatMap((one) => [one.from, one.to]).flatMap((one) => one?.oid ?? []),
  )
  const paths = changes.filter((one) => [one.from, one.to].some((side) => side && damaged.has(side.oid)))
  if (paths.length === 0) return null
  return lostContent(paths.map(({ path }) => path))
}

/** A submodule is a change like any other, also where `submodule.<name>.ignore` hides it. */
export const WITH_SUBMODULES = '--ignore-submodules=none'

/** A patch as programs expect it, whatever a person likes to see (git-config(1): color.ui, diff.noprefix, diff.external). */
export const PLAIN_PATCH = ['--no-ext-diff', '--no-color', '--no-relative', '--src-prefix=a/', '--dst-prefix=b/']

/** Lines around each change: no file has as many. */
const EVERY_LINE = '-U999999999'

/** HEAD (or the empty tree) against the user's worktree, with every filter driver switched off. `whole`: the patch leaves no line out. */
export async function diffWorktree(
  env: Env,
  repository: Repository,
  { paths, whole = false }: { paths: readonly string[]; whole?: boolean },
): Promise<{ files: FileDiff[]; patch: string }> {
  const head = (await committedTree(env, repository)) ?? emptyTree(repository.hash)
  const config = await filtersOff(env, repository)
  return withTemporary(env, 'ckpt-diff', async (within) => {
    const copied = copyIndex(env, repository, within)
    const run = (flags: string[]) =>
      runGit(env, {
        args: [
          'diff',
          ...PLAIN_PATCH,
          '--no-textconv',
          '--ignore-submodules',
          '-M',
          ...flags,
          head,
          '--',
          ...paths.map(pathToText),
        ],
        cwd: repository.root,
        vars: copied === null ? {} : { GIT_INDEX_FILE: copied },
        config,
      })
    const running = [
      run(['-z', '--raw', '--full-index', '--no-abbrev']),
      run(['-z', '--numstat']),
      run(['-p', ...(whole ? [EVERY_LINE] : [])]),
    ] as const
    try {
      const [raw, numbers, patch] = await Promise.all(running)
      return { files: parseRaw(raw, parseNumstat(numbers)), patch: patch.toString('utf8') }
    } finally {
      await Promise.allSettled(running)
    }
  })
}

/**
 * git-diff(1) locks the index and writes into it what it learns of touched files, whatever GIT_OPTIONAL_LOCKS says: it gets
 * a copy. Null: there is no index.
 */
function copyIndex({ files }: Env, { gitDir }: Repository, within: string): string | null {
  const index = `${gitDir}/index`
  if (!files.existsSync(index)) return null
  const { mtimeMs } = files.statSync(index)
  const copy = `${within}/index`
  files.copyFileSync(index, copy, constants.COPYFILE_FICLONE)
  // Not newer: what is as young as the index git compares by content (its racy entries).
  const time = Math.floor(mtimeMs / 1000)
  files.utimesSync(copy, time, time)
  return copy
}

/** Every repository has it. */
export const emptyTree = (hash: HashName): Oid =>
  (hash === 'sha1'
    ? '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
    : '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321') as Oid

type Counts = Map<string, { insertions: number; deletions: number; binary: boolean }>

function parseNumstat(bytes: Buffer): Counts {
  const counts: Counts = new Map()
  const parts = splitNul(bytes)
  for (let i = 0; i < parts.length; i++) {
    const [insertions, deletions, name] = splitTabs(parts[i]!)
    const binary = insertions === '-'
    const count = { insertions: binary ? 0 : Number(insertions), deletions: binary ? 0 : Number(deletions), binary }
    // A rename gives its two names in fields of their own.
    if (name === '') i += 2
    counts.set(name === '' ? parts[i]! : name, count)
  }
  return counts
}

function splitTabs(row: string): [string, string, string] {
  const one = row.indexOf('\t')
  const two = row.indexOf('\t', one + 1)
  return [row.slice(0, one), row.slice(one + 1, two), row.slice(two + 1)]
}

function parseRaw(bytes: Buffer, counts: Counts): FileDiff[] {
  const files: FileDiff[] = []
  const parts = splitNul(bytes)
  for (let i = 0; i < parts.length; i++) {
    const match = /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*$/.exec(parts[i]!)
    if (!match) throw new CkptError('INTERNAL', 'git diff-tree gave output that cannot be read.')
    const [, oldMode, newMode, oldOid, newOid, letter] = match
    const oldPath = letter === 'R' ? (parts[++i] as RelativePath) : undefined
    const path = parts[++i] as RelativePath
    const count = counts.get(path) ?? { insertions: 0, deletions: 0, binary: false }
    // Of a file on disk git does not say what it would be named: that no line differs says as much.
    const isUnnamed = /^0+$/.test(newOid!) && oldMode !== newMode && !count.binary
    const isSame = oldOid === newOid || (isUnnamed && count.insertions + count.deletions === 0)
    files.push({
      path,
      ...(oldPath === undefined ? {} : { oldPath }),
      status: statusOf(letter!, isSame),
      ...count,
    })
  }
  return files
}

function statusOf(letter: string, sameContent: boolean): FileDiff['status'] {
  if (letter === 'A') return 'added'
  if (letter === 'D') return 'deleted'
  if (letter === 'R') return 'renamed'
  if (letter === 'T') return 'type'
  return sameContent ? 'mode' : 'modified'
}

/** Counts for many pairs of trees with one process; null where an object that they need is missing or damaged. */
export async function statTrees(store: Store, pairs: readonly (readonly [Oid, Oid])[]): Promise<(Stat | null)[]> {
  let wanted = [...new Set(pairs.filter(([a, b]) => a !== b).map(([a, b]) => `${a} ${b}`))]
  const stats = new Map<string, Stat | null>()
  const args = [...base, '-M', '--numstat', '--stdin']
  while (wanted.length > 0) {
    const result = await store.tryGit(args, { input: `${wanted.join('\n')}\n` })
    let pair = ''
    let current: Stat | null = null
    for (const line of result.stdout.toString('latin1').split('\n')) {
      if (/^([0-9a-f]{40,64}) ([0-9a-f]{40,64})$/.test(line)) {
        pair = line
        current = { files: 0, insertions: 0, deletions: 0 }
        stats.set(pair, current)
      } else if (current && line !== '') {
        const [insertions, deletions] = line.split('\t')
        current.files++
        current.insertions += insertions === '-' ? 0 : Number(insertions)
        current.deletions += deletions === '-' ? 0 : Number(deletions)
      }
    }
    if (result.code === 0) break
    const failure = gitFailure(args, result)
    const at = wanted.indexOf(pair)
    if (!isDamage(failure) || at < 0) throw failure
    // It ends at the pair that it cannot count: what comes after that one is asked for again.
    stats.set(pair, null)
    wanted = wanted.slice(at + 1)
  }
  // git passes over a line whose tree it does not have.
  return pairs.map(([a, b]) => (a === b ? { files: 0, insertions: 0, deletions: 0 } : (stats.get(`${a} ${b}`) ?? null)))
}
