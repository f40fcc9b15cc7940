/**
 * HEAD of the user's repository: read here where it and what it names are plain files, else asked of one git process that
 * stays. Both resolve its refs anew for each question.
 */
import { holdsConfig } from '../core/config-file.ts'
import { isDamage } from '../core/errors.ts'
import { isOid, type Oid } from '../core/ids.ts'
import { parseTree, type TreeEntry } from '../core/tree-object.ts'
import { type Env, lstatIfThere } from '../env.ts'
import { gitFailure, isUnfetched } from './failure.ts'
import { LineProcess } from './line-process.ts'
import { readSmall } from './loose.ts'
import { askGit, runGit, tryGit } from './process.ts'
import { hasTables, plainHead } from './ref-files.ts'
import { findRepository, type Repository } from './repository.ts'

/** What a checkpoint records of the user's HEAD. */
export interface HeadState {
  head: Oid | null
  /** HEAD's tree. */
  tree: Oid | null
  /** Null: detached. */
  branch: string | null
  /** What git is in the middle of, in its own words. */
  busy: string | null
}

/** Of a plain directory. */
export const NO_HEAD: HeadState = { head: null, tree: null, branch: null, busy: null }

/** What git knows of one name; null: nothing that is there. */
type Answer = { type: string; size: number; oid: Oid } | null

const BATCH_CHECK = ['cat-file', '--batch-check=%(objecttype) %(objectsize) %(objectname)']

const BRANCHES = 'refs/heads/'
/** What git is in the middle of has one of these (gitrepository-layout(5)). */
const OTHER_HEADS = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD']
/** Bytes of a file of settings at most. */
const MOST = 2 ** 20

export class HeadReader {
  readonly #env: Env
  readonly #repository: Repository
  readonly #process: LineProcess

  constructor(env: Env, repository: Repository) {
    this.#env = env
    this.#repository = repository
    this.#process = new LineProcess(env, { args: BATCH_CHECK, cwd: repository.root })
  }

  /** @throws CkptError BAD_ROOT when git cannot use the repository any more; like `runGit` */
  async read(): Promise<HeadState> {
    try {
      return await this.#read()
    } catch (error) {
      await findRepository(this.#env, this.#repository.root)
      throw error
    }
  }

  async #read(): Promise<HeadState> {
    const plain = OTHER_HEADS.some((name) => this.#isThere(name)) ? null : this.#plain()
    const [[head, tree, ...others], branch] = await Promise.all([
      plain ? [plain.head, plain.tree] : this.#ask(['HEAD', 'HEAD^{tree}', ...OTHER_HEADS]),
      branchOf(this.#env, this.#repository),
    ])
    // A branch or a tag of such a name is none.
    const own = hasTables(this.#env, this.#repository.commonDir) ? () => true : this.#isThere.bind(this)
    const busy = busyState(
      this.#env,
      this.#repository,
      others.map((other, i) => other && own(OTHER_HEADS[i]!)),
    )
    return { head: head?.oid ?? null, tree: tree?.oid ?? null, branch, busy }
  }

  /** Files as committed at HEAD, by name; those that are not there are left out. `package.json` only if it has our key. */
  async committed(names: readonly string[]): Promise<Map<string, string>> {
    const plain = this.#plainlyCommitted(names)
    if (plain) return plain
    const cwd = this.#repository.root
    const answers = await this.#ask(names.map((name) => `HEAD:./${name}`))
    const found = new Map<string, string>()
    for (const [i, name] of names.entries()) {
      const answer = answers[i]
      if (answer?.type !== 'blob' || answer.size > MOST) continue
      const text = (await runGit(this.#env, { args: ['cat-file', 'blob', answer.oid], cwd })).toString('utf8')
      if (holdsConfig(name, text)) found.set(name, text)
    }
    if (found.size === 0) return found
    for (const link of await committedLinks(this.#env, this.#repository, [...found.keys()])) found.delete(link)
    return found
  }

  close(): void {
    this.#process.close()
  }

  #isThere(name: string): boolean {
    return lstatIfThere(this.#env.files, `${this.#repository.gitDir}/${name}`) !== null
  }

  /** The object, if it is a small one in a file of its own. */
  #object(oid: Oid, type: string): Buffer | null {
    const { commonDir, hash } = this.#repository
    const object = readSmall(this.#env, `${commonDir}/objects`, { oid, hash })
    return object?.type === type ? object.bytes : null
  }

  /** Without a git; null: git is to be asked. */
  #plain(): { head: { oid: Oid }; tree: { oid: Oid; bytes: Buffer } } | null {
    const { gitDir, commonDir, hash } = this.#repository
    const head = plainHead(this.#env, { gitDir: commonDir, hash }, gitDir)
    const commit = head && this.#object(head, 'commit')
    const tree = /^tree ([0-9a-f]+)\n/.exec(commit?.toString('latin1') ?? '')?.[1] ?? ''
    const bytes = isOid(tree) ? this.#object(tree, 'tree') : null
    return head && isOid(tree) && bytes ? { head: { oid: head }, tree: { oid: tree, bytes } } : null
  }

  /** {@link committed}, without a git; null: git is to be asked. */
  #plainlyCommitted(names: readonly string[]): Map<string, string> | null {
    const plain = this.#plain()
    const entries = plain && entriesOf(plain.tree)
    if (!entries) return null
    const found = new Map<string, string>()
    for (const { name, mode, oid } of entries) {
      if (!names.includes(name) || !mode.startsWith('100')) continue
      const bytes = this.#object(oid, 'blob')
      if (!bytes) return null
      const text = bytes.toString('utf8')
      if (bytes.length <= MOST && holdsConfig(name, text)) found.set(name, text)
    }
    return found
  }

  async #ask(names: readonly string[]): Promise<Answer[]> {
    const input = names.map((name) => `${name}\n`).join('')
    const kept = await this.#process.ask(input, names.length).catch(() => null) // it was killed, or hung
    const lines = kept ?? (await this.#askAnother(names))
    return names.map((_, i) => {
      const [type = '', size, oid = ''] = lines[i]?.split(' ') ?? []
      return isOid(oid) ? { type, size: Number(size), oid } : null
    })
  }

  async #askAnother(names: readonly string[]): Promise<string[]> {
    const call = { args: BATCH_CHECK, cwd: this.#repository.root, input: names.map((name) => `${name}\n`).join('') }
    const asked = await tryGit(this.#env, call)
    if (asked.code === 0) return asked.stdout.toString('latin1').split('\n')
    if (!isUnfetched(asked)) throw gitFailure(BATCH_CHECK, asked)
    // Some versions die of the first name whose object a partial clone lacks (2.39.5; 2.55 calls it missing).
    if (names.length === 1) return ['']
    return (await Promise.all(names.map((name) => this.#askAnother([name])))).map(([line]) => line!)
  }
}

/** Null: git may know it better. */
function entriesOf({ oid, bytes }: { oid: Oid; bytes: Buffer }): TreeEntry[] | null {
  try {
    return parseTree(bytes, oid.length / 2)
  } catch (error) {
    if (isDamage(error)) return null
    throw error
  }
}

/** HEAD's branch by its own name, whatever else has that name (a tag, say): gitrepository-layout(5), HEAD. */
async function branchOf(env: Env, { root, gitDir }: Repository): Promise<string | null> {
  const file = `${gitDir}/HEAD`
  const text = lstatIfThere(env.files, file)?.isFile() ? env.files.readFileSync(file, 'utf8').trimEnd() : ''
  if (isOid(text)) return null
  const named = /^ref:\s*refs\/heads\/(.+)$/.exec(text)?.[1]
  if (named !== undefined && named !== '.invalid') return named
  // Where refs are kept otherwise (reftable) the file is a stub; and it may be a symlink.
  const asked = await askGit(env, { args: ['symbolic-ref', '-q', 'HEAD'], cwd: root })
  const ref = asked?.toString('utf8').trimEnd() ?? null
  return ref?.startsWith(BRANCHES) ? ref.slice(BRANCHES.length) : ref
}

/** A rebase first, as its picks leave a CHERRY_PICK_HEAD too (git's `wt_status_get_state`; gate-refuse.sh says the same). */
function busyState(env: Env, { gitDir }: Repository, heads: readonly unknown[]): string | null {
  const there = (name: string) => env.files.existsSync(`${gitDir}/${name}`)
  if (there('rebase-merge')) return 'rebase'
  if (there('rebase-apply')) return there('rebase-apply/applying') ? 'am' : 'rebase'
  const [merge, pick, revert] = heads
  if (merge) return 'merge'
  if (pick) return 'cherry-pick'
  if (revert) return 'revert'
  // Between two of a series there is no head; what comes next is in a list.
  if (!there('sequencer/todo')) return null
  return env.files.readFileSync(`${gitDir}/sequencer/todo`, 'latin1').startsWith('revert') ? 'revert' : 'cherry-pick'
}

/** The git commands that end what git is in the middle of. */
export function endings(env: Env, { gitDir }: Repository, busy: string): string[] {
  const there = (name: string) =>
    ['merge', 'apply'].some((kind) => env.files.existsSync(`${gitDir}/rebase-${kind}/${name}`))
  // A hook refused it before it began; what it had put away is not brought back by git before 2.47.
  if (busy === 'rebase' && !there('head-name'))
    return [`git rebase --quit${there('autostash') ? ' && git stash pop   (brings back what it had put away)' : ''}`]
  return [`git ${busy} --continue`, `git ${busy} --abort`]
}

/** Which of these files of HEAD are symlinks: the content of such a blob is where it leads. */
async function committedLinks(env: Env, { root }: Repository, names: readonly string[]): Promise<string[]> {
  const rows = await runGit(env, { args: ['ls-tree', '-z', 'HEAD', '--', ...names], cwd: root })
  return rows
    .toString('latin1')
    .split('\0')
    .flatMap((row) => (row.startsWith('120000 ') ? [row.slice(row.indexOf('\t') + 1)] : []))
}
