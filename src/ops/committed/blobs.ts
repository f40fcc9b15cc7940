/** Files on their way between the store, which holds the bytes on disk, and the user's repository. */
import { isOid, type Oid } from '../../core/ids.ts'
import { isText, pathToText, printable, shown } from '../../core/paths.ts'
import type { PathState } from '../../core/state.ts'
import { runGit } from '../../git/process.ts'
import { done, runUsersGit, tryUsersGit, type UsersCall } from '../../git/users-git.ts'
import { removeDrafts, removeTree } from '../../git/whole-file.ts'
import { mergeTexts } from '../store/merge-texts.ts'
import type { Context } from '../worktree/context.ts'
import { type Entry, indexInfo, readIndexEntries } from './entries.ts'

/** Attributes by which a file is more than text with line ends of one kind or another (gitattributes(5)). */
const BEYOND_LINE_ENDS = ['filter', 'ident', 'working-tree-encoding']

/** convert.c of git */
const CANNOT_CONVERT =
  /^fatal: (.*(?: filter .* failed|failed to encode | would be replaced by |BOM is (?:required|prohibited) in ).*)$/m

/** Blobs between the store, which holds the bytes on disk, and the user's repository, which holds what its filters make of them. */
export class CommitBlobs {
  readonly #context: Context
  readonly #filtered: ReadonlySet<string>
  /** Where the disk says less than a mode of git's (core.fileMode, core.symlinks): what the index has. */
  readonly #index: { entries: ReadonlyMap<string, Entry>; programs: boolean; links: boolean } | null
  readonly #clean = new Map<string, Promise<Oid | string>>()
  /** What the commit has of attributes. */
  readonly #attributes: ReadonlyMap<string, Entry>
  /** The store of what once was a plain directory may name objects by another hash than the repository. */
  readonly #isAlike: boolean

  private constructor(
    context: Context,
    {
      filtered,
      index,
      attributes,
    }: {
      filtered: ReadonlySet<string>
      index: { entries: ReadonlyMap<string, Entry>; programs: boolean; links: boolean } | null
      attributes: ReadonlyMap<string, Entry>
    },
  ) {
    this.#context = context
    this.#filtered = filtered
    this.#index = index
    this.#attributes = attributes
    this.#isAlike = context.repository?.hash === context.store.objects.hash
  }

  /** Asks git once which of these paths are converted on their way in (gitattributes(5), core.autocrlf). `head`: what is committed. */
  static async open(
    context: Context,
    { paths, head }: { paths: readonly string[]; head: ReadonlyMap<string, Entry> },
  ): Promise<CommitBlobs> {
    const { env, worktree } = context
    const cwd = worktree.root
    const setting = async (...args: string[]) =>
      (await tryUsersGit(env, { args: ['config', '--get', ...args], cwd })).stdout.toString('utf8').trim()
    const programs = (await setting('--type=bool', 'core.fileMode')) === 'false'
    const links = (await setting('--type=bool', 'core.symlinks')) === 'false'
    const index = programs || links ? { entries: await readIndexEntries(context), programs, links } : null
    const autocrlf = !['', 'false'].includes(await setting('core.autocrlf'))
    const out = await runUsersGit(env, {
      args: ['check-attr', '-z', '--stdin', 'text', 'crlf', 'eol', ...BEYOND_LINE_ENDS],
      cwd,
      input: Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1'),
    })
    const fields = out.toString('latin1').split('\0')
    const [filtered, beyond] = [new Set(autocrlf ? paths : []), new Set<string>()]
    for (let i = 0; i + 2 < fields.length; i += 3) {
      if (['unspecified', 'unset'].includes(fields[i + 2]!)) continue
      filtered.add(fields[i]!)
      if (BEYOND_LINE_ENDS.includes(fields[i + 1]!)) beyond.add(fields[i]!)
    }
    const committed = new Map<string, Entry>()
    for (const path of filtered) {
      const entry = head.get(path)
      if (entry && !beyond.has(path)) committed.set(path, entry)
    }
    for (const path of await withLineEndsKept(context, committed, autocrlf)) filtered.delete(path)
    const attributes = new Map([...head].filter(([path]) => /(^|\/)\.gitattributes$/.test(path)))
    return new CommitBlobs(context, { filtered, index, attributes })
  }

  /** What the repository holds for a state of the worktree; undefined: nothing that can be committed, {@link whyNot} says why. */
  async entryOf(path: string, state: PathState): Promise<Entry | undefined> {
    if (state.kind === 'absent' || state.kind === 'directory') return null
    if (state.kind === 'unknown') return undefined
    if (state.type === 'link') return { mode: '120000', oid: await this.#asItIs(state.oid) }
    const known = this.#index?.entries.get(path)?.mode
    if (this.#index?.links && known === '120000') return { mode: '120000', oid: await this.#asItIs(state.oid) }
    const isProgram = this.#index?.programs ? known === '100755' : (state.mode & 0o100) !== 0
    const mode = isProgram ? '100755' : '100644'
    if (!this.#filtered.has(path)) return { mode, oid: await this.#asItIs(state.oid) }
    const oid = await this.#written(state.oid, path)
    return isOid(oid) ? { mode, oid } : undefined
  }

  /** Why a state has no entry: it was not captured, or git cannot convert it. */
  async whyNot(path: string, state: PathState): Promise<string> {
    if (state.kind !== 'present') return 'was not captured'
    return `git cannot convert it: ${await this.#written(state.oid, path)}`
  }

  /**
   * Whether a state of the worktree is what git writes there for a file that is committed, by the attributes of now, or
   * (`committedToo`) by those that are committed: a filter need not give the same bytes twice, and the commit may change its
   * attribute.
   */
  async isCheckedOut(
    path: string,
    entry: Entry,
    { state, committedToo }: { state: PathState; committedToo: boolean },
  ): Promise<boolean> {
    if (!entry?.mode.startsWith('100') || state.kind !== 'present' || state.type !== 'file') return false
    const { store, repository, env } = this.#context
    const bytes = await store.objects.get(state.oid, 'blob')
    const isSame = async (there: Partial<UsersCall> = {}) => {
      const args = ['cat-file', '--filters', entry.oid]
      const { code, stdout } = await tryUsersGit(env, { ...this.#asFor(path, args), ...there })
      return code === 0 && stdout.equals(bytes)
    }
    if (await isSame()) return true
    if (!committedToo) return false
    // In a worktree of its own that holds the committed attributes and nothing else.
    const place = `${store.worktreeDir}/tmp/attributes-${env.random(6)}`
    const vars = { GIT_DIR: repository!.gitDir, GIT_WORK_TREE: place, GIT_INDEX_FILE: `${place}.index` }
    const there = { cwd: place, vars }
    try {
      env.files.mkdirSync(place, { recursive: true, mode: 0o700 })
      const args = ['update-index', '-z', '--index-info']
      await runUsersGit(env, { ...there, args, input: indexInfo(this.#attributes, null) })
      await runUsersGit(env, { ...there, args: ['checkout-index', '-q', '-a'] })
      return await isSame(there)
    } finally {
      removeDrafts(env, [vars.GIT_INDEX_FILE])
      removeTree(env, place)
    }
  }

  /** A call of git's that converts a file as for its path. */
  #asFor(path: string, args: readonly string[]): UsersCall {
    const [cwd, last] = [this.#context.worktree.root, `--path=${path}`]
    return isText(path) ? { args: [...args, pathToText(last)], cwd } : { args, cwd, last: Buffer.from(last, 'latin1') }
  }

  /** The name in the repository of a blob of the store. */
  async #asItIs(oid: Oid): Promise<Oid> {
    return this.#isAlike ? oid : ((await this.#written(oid, null)) as Oid)
  }

  /** Written to the repository, once for each path that it is converted for (null: as it is); git's words where it cannot be. */
  #written(oid: Oid, path: string | null): Promise<Oid | string> {
    const key = `${path ?? ''}\0${oid}`
    const known = this.#clean.get(key) ?? this.#write(oid, path)
    this.#clean.set(key, known)
    return known
  }

  async #write(oid: Oid, path: string | null): Promise<Oid | string> {
    const { env, store, worktree, warnings } = this.#context
    const input = await store.objects.get(oid, 'blob')
    const args = ['hash-object', '-w', '--stdin']
    const asItIs = { args: [...args, '--no-filters'], cwd: worktree.root }
    const call = path === null ? asItIs : { ...this.#asFor(path, args), vars: { LANGUAGE: 'en' } }
    const asked = await tryUsersGit(env, { ...call, input })
    // A content that a filter, an encoding or core.safecrlf does not let pass: a later one may, and the person may mend it.
    const refused = asked.code === 0 ? undefined : CANNOT_CONVERT.exec(asked.stderr)?.[1]
    if (refused !== undefined) return printable(refused)
    const { stdout, stderr } = done(env, call, asked)
    // A filter that is not required fails with a word of git's alone, and the file is then as it is on disk.
    const failed = path === null ? undefined : /^error: .*filter.*$/m.exec(stderr)?.[0]
    if (failed) warnings.push(`${shown(path!)} is committed as it is on disk: git says ${printable(failed)}.`)
    return stdout.toString('latin1').trim() as Oid
  }

  /** Both sides' changes in one file; null where they overlap, or where it is no text. */
  async merge(base: Oid, ours: Oid, theirs: Oid): Promise<Oid | null> {
    if (ours === base || ours === theirs) return theirs
    if (base === theirs) return ours
    const request = {
      base: await this.#inStore(base),
      ours: await this.#inStore(ours),
      theirs: await this.#inStore(theirs),
    }
    const [result] = await mergeTexts(this.#context, [request])
    return result?.kind === 'clean' ? this.#asItIs(result.oid) : null
  }

  /** Of a blob of the repository; one character a byte. */
  async linesOf(oid: Oid): Promise<string[]> {
    const bytes = await this.#context.store.objects.get(await this.#inStore(oid), 'blob')
    return bytes.toString('latin1').split('\n')
  }

  /** The name in the store of a blob of the repository, which the store then has. */
  async #inStore(oid: Oid): Promise<Oid> {
    const { env, store, worktree } = this.#context
    if (this.#isAlike && (await store.objects.read(oid))) return oid
    return store.objects.write('blob', await runGit(env, { args: ['cat-file', 'blob', oid], cwd: worktree.root }))
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
        if (!found) continue // made by git, from a filter or by another name: it is there already
        const file = `${directory}/commit-${env.random(6)}`
        made.push(file) // and if only half of it finds room
        env.files.writeFileSync(file, found.bytes, { mode: 0o600, flag: 'wx' })
      }
      if (made.length === 0) return
      const args = ['hash-object', '-w', '--no-filters', '--stdin-paths']
      await runUsersGit(env, { args, cwd: worktree.root, input: made.map((file) => `${file}\n`).join('') })
    } finally {
      removeDrafts(env, made)
    }
  }
}

/**
 * Of these files those whose line ends git leaves as they are though it converts them by itself (`text=auto`,
 * core.autocrlf): it does so where what is committed has CRLF (gitattributes(5), on `text`). git-hash-object(1) knows nothing
 * of what is committed.
 */
async function withLineEndsKept(
  { env, store, worktree }: Context,
  committed: ReadonlyMap<string, Entry>,
  autocrlf: boolean,
): Promise<string[]> {
  if (committed.size === 0) return []
  const cwd = worktree.root
  const vars = { GIT_INDEX_FILE: `${store.worktreeDir}/tmp/eol-index-${env.random(6)}` }
  env.files.mkdirSync(`${store.worktreeDir}/tmp`, { recursive: true, mode: 0o700 })
  try {
    await runUsersGit(env, {
      args: ['update-index', '-z', '--index-info'],
      cwd,
      vars,
      input: indexInfo(committed, null),
    })
    const out = await runUsersGit(env, { args: ['ls-files', '--eol', '-z'], cwd, vars })
    return out
      .toString('latin1')
      .split('\0')
      .flatMap((row) => {
        const [, attributes, path] = /^i\/(?:crlf|mixed) .*? attr\/(.*?) *\t(.*)$/s.exec(row) ?? []
        const isAutomatic = attributes === '' ? autocrlf : attributes?.startsWith('text=auto')
        return path !== undefined && isAutomatic ? [path] : []
      })
  } finally {
    removeDrafts(env, [vars.GIT_INDEX_FILE])
  }
}

/** Undefined: they overlap. */
export async function mergeEntries(
  blobs: CommitBlobs,
  { base, ours, theirs }: { base: Entry; ours: Entry; theirs: Entry },
): Promise<Entry | undefined> {
  if (!base || !ours || !theirs || [base, ours, theirs].some((one) => !one.mode.startsWith('100'))) return undefined
  const mode = ours.mode === base.mode ? theirs.mode : ours.mode
  const oid = await blobs.merge(base.oid, ours.oid, theirs.oid)
  return oid === null ? undefined : { mode, oid }
}
