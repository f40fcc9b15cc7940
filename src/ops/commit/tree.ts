/**
 * What a session's turns come to on top of HEAD: each change is carried over, oldest first, to what is committed.
 * Base = before the turn, theirs = after it, ours = what the commit holds so far; the person's own edits, before, between
 * or after the turns, are in none of the differences and so stay out.
 */
import { type ClaimedTransition, toldRival } from '../../core/claims.ts'
import type { Oid } from '../../core/ids.ts'
import { ancestorsOf, pathToText } from '../../core/paths.ts'
import type { PathState } from '../../core/state.ts'
import { runGit } from '../../git/process.ts'
import { runUsersGit } from '../../git/users-git.ts'
import { mergeTexts } from '../change/merge.ts'
import type { Context } from '../worktree/context.ts'
import { type Entry, readIndexEntries, sameEntry } from './entries.ts'

export interface Folded {
  /** Paths that the commit changes, with what it holds. */
  entries: Map<string, Entry>
  conflicts: Map<string, string>
}

/** Blobs between the store, which holds the bytes on disk, and the user's repository, which holds what its filters make of them. */
export class CommitBlobs {
  readonly #context: Context
  readonly #filtered: ReadonlySet<string>
  /** Where the disk's executable bits mean nothing (core.fileMode): those of the index. */
  readonly #index: ReadonlyMap<string, Entry> | null
  readonly #clean = new Map<string, Promise<Oid>>()

  private constructor(context: Context, filtered: ReadonlySet<string>, index: ReadonlyMap<string, Entry> | null) {
    this.#context = context
    this.#filtered = filtered
    this.#index = index
  }

  /** Asks git once which of these paths are converted on their way in (gitattributes(5), core.autocrlf). */
  static async open(context: Context, paths: readonly string[]): Promise<CommitBlobs> {
    const { env, worktree } = context
    const cwd = worktree.root
    const { tryUsersGit } = await import('../../git/users-git.ts')
    const setting = async (...args: string[]) =>
      (await tryUsersGit(env, { args: ['config', '--get', ...args], cwd })).stdout.toString('utf8').trim()
    const index = (await setting('--type=bool', 'core.fileMode')) === 'false' ? await readIndexEntries(context) : null
    if (!['', 'false'].includes(await setting('core.autocrlf'))) return new CommitBlobs(context, new Set(paths), index)
    const attributes = ['text', 'crlf', 'eol', 'filter', 'ident', 'working-tree-encoding']
    const out = await runUsersGit(env, {
      args: ['check-attr', '-z', '--stdin', ...attributes],
      cwd,
      input: Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1'),
    })
    const fields = out.toString('latin1').split('\0')
    const filtered = new Set<string>()
    for (let i = 0; i + 2 < fields.length; i += 3) {
      if (!['unspecified', 'unset'].includes(fields[i + 2]!)) filtered.add(fields[i]!)
    }
    return new CommitBlobs(context, filtered, index)
  }

  /** What the repository holds for a state of the worktree; undefined: nothing that can be committed. */
  async entryOf(path: string, state: PathState): Promise<Entry | undefined> {
    if (state.kind === 'absent' || state.kind === 'directory') return null
    if (state.kind === 'unknown') return undefined
    if (state.type === 'link') return { mode: '120000', oid: state.oid }
    const isProgram = this.#index ? this.#index.get(path)?.mode === '100755' : (state.mode & 0o100) !== 0
    const mode = isProgram ? '100755' : '100644'
    if (!this.#filtered.has(path)) return { mode, oid: state.oid }
    const key = `${path}\0${state.oid}`
    const known = this.#clean.get(key) ?? this.#cleaned(path, state.oid)
    this.#clean.set(key, known)
    return { mode, oid: await known }
  }

  async #cleaned(path: string, oid: Oid): Promise<Oid> {
    const { env, store, worktree } = this.#context
    const input = await store.objects.get(oid, 'blob')
    const args = ['hash-object', '-w', '--stdin', `--path=${pathToText(path)}`]
    const out = await runUsersGit(env, { args, cwd: worktree.root, input })
    return out.toString('latin1').trim() as Oid
  }

  /** Both sides' changes in one file; null where they overlap, or where it is no text. */
  async merge(base: Oid, ours: Oid, theirs: Oid): Promise<Oid | null> {
    if (ours === base || ours === theirs) return theirs
    if (base === theirs) return ours
    for (const oid of [base, ours, theirs]) await this.#intoStore(oid)
    const result = await mergeTexts(this.#context, { base, ours, theirs })
    return result.kind === 'clean' ? result.oid : null
  }

  async #intoStore(oid: Oid): Promise<void> {
    const { env, store, worktree } = this.#context
    if (await store.objects.read(oid)) return
    store.objects.write('blob', await runGit(env, { args: ['cat-file', 'blob', oid], cwd: worktree.root }))
  }

  /** Puts blobs into the user's repository, as they are. */
  async publish(entries: Iterable<Entry>): Promise<void> {
    const { env, store, worktree } = this.#context
    const directory = `${store.worktreeDir}/tmp`
    env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
    const made: string[] = []
    try {
      for (const oid of new Set([...entries].flatMap((entry) => (entry ? [entry.oid] : [])))) {
        const found = await store.objects.read(oid)
        if (!found) continue // made by git from a filter: it is there already
        const file = `${directory}/commit-${env.random(6)}`
        env.files.writeFileSync(file, found.bytes, { mode: 0o600, flag: 'wx' })
        made.push(file)
      }
      if (made.length === 0) return
      const args = ['hash-object', '-w', '--no-filters', '--stdin-paths']
      await runUsersGit(env, { args, cwd: worktree.root, input: made.map((file) => `${file}\n`).join('') })
    } finally {
      for (const file of made) env.files.unlinkSync(file)
    }
  }
}

export interface FoldInput {
  /** Oldest first. */
  changes: readonly ClaimedTransition[]
  head: ReadonlyMap<string, Entry>
  blobs: CommitBlobs
  /** Whether a commit since the turn holds exactly what the turn left: the person has committed it. */
  committed: (path: string, to: Entry) => boolean
}

export async function foldChanges({ changes, head, blobs, committed }: FoldInput): Promise<Folded> {
  const entries = new Map<string, Entry>()
  const conflicts = new Map<string, string>()
  for (const change of changes) {
    const { path } = change
    if (path.endsWith('/')) continue // git keeps no directories
    const ours = entries.get(path) ?? (entries.has(path) ? null : (head.get(path) ?? null))
    const [from, to] = [await blobs.entryOf(path, change.from), await blobs.entryOf(path, change.to)]
    if (from !== undefined && to !== undefined && (sameEntry(ours, to) || committed(path, to))) {
      conflicts.delete(path) // whosever it was, and however it came to be: it is committed
      continue
    }
    if (change.ambiguousWith !== undefined) {
      conflicts.set(path, toldRival(change.ambiguousWith))
      continue
    }
    if (from === undefined || to === undefined) {
      conflicts.set(path, 'was not captured')
      continue
    }
    if (sameEntry(from, to)) continue
    if (sameEntry(ours, from)) {
      entries.set(path, to)
      continue
    }
    const merged = await mergeEntries(blobs, { base: from, ours, theirs: to })
    if (merged === undefined) conflicts.set(path, 'your own changes overlap with the session’s'.replace('’', "'"))
    else entries.set(path, merged)
  }
  for (const [path, entry] of entries) if (sameEntry(entry, head.get(path) ?? null)) entries.delete(path)
  for (const [path, reason] of clashes(entries, head)) conflicts.set(path, reason)
  return { entries, conflicts }
}

/** A file and a directory of one name: git-update-index(1) drops what was there, and that is not the session's to drop. */
function* clashes(
  entries: ReadonlyMap<string, Entry>,
  head: ReadonlyMap<string, Entry>,
): Generator<[path: string, reason: string]> {
  const coming = new Set([...entries].flatMap(([path, entry]) => (entry && !head.has(path) ? [path] : [])))
  if (coming.size === 0) return
  const held = (path: string) => (entries.has(path) ? entries.get(path) : head.get(path)) ?? null
  for (const path of coming) {
    const above = ancestorsOf(path).flatMap((directory) => held(directory) ?? [])[0]
    if (above) yield [path, `a ${above.mode === '160000' ? 'submodule' : 'file'} is in the place of its directory`]
  }
  for (const path of head.keys()) {
    const above = held(path) && ancestorsOf(path).find((directory) => coming.has(directory))
    if (above) yield [above, 'a directory with other files is in its place']
  }
}

/** Undefined: they overlap. */
export async function mergeEntries(
  blobs: CommitBlobs,
  { base, ours, theirs }: { base: Entry; ours: Entry; theirs: Entry },
): Promise<Entry | undefined> {
  if (!base || !ours || !theirs || [base, ours, theirs].some((one) => one.mode === '120000')) return undefined
  const mode = ours.mode === base.mode ? theirs.mode : ours.mode
  const oid = await blobs.merge(base.oid, ours.oid, theirs.oid)
  return oid === null ? undefined : { mode, oid }
}
