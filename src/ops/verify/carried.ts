/**
 * Commits that `ckpt commit` made, and those that git made of them: the same with another message, and what a rebase or a
 * cherry-pick carried over without a conflict. git keeps the author and their time; what counts is the content.
 */
import { isOid, type Oid } from '../../core/ids.ts'
import { runGit } from '../../git/process.ts'
import type { Repository } from '../../git/repository.ts'
import { commitsOfTurns } from '../committed/origins.ts'
import type { Context } from '../worktree/context.ts'
import type { ChangedFiles } from './changed-files.ts'
import { mergedPaths } from './merged.ts'

export interface Made {
  /** What `ckpt commit` made. */
  commit: Oid
  /** The last checkpoints of the turns that it took in, and paths in it that are not theirs. */
  turns: readonly Oid[]
  beyond: readonly string[]
}

interface Row {
  id: Oid
  tree: Oid
  parents: Oid[]
  author: string
}

export class MadeByCkpt {
  readonly #context: Context
  readonly #repository: Repository
  readonly #known: ReadonlyMap<string, Omit<Made, 'commit'>>
  #rows: Promise<Row[]> | undefined

  constructor(context: Context, repository: Repository) {
    this.#context = context
    this.#repository = repository
    this.#known = commitsOfTurns(context)
  }

  /** Null: `ckpt commit` did not make it. */
  itself(commit: Oid): Made | null {
    const known = this.#known.get(commit)
    return known ? { commit, ...known } : null
  }

  /** What it was carried over from. `changed`: reads what it changed. Null: it is from none of ckpt's. */
  async carried(id: Oid, changed: () => Promise<ChangedFiles>): Promise<Made | null> {
    this.#rows ??= this.#read([...this.#known.keys()] as Oid[])
    const rows = await this.#rows
    if (rows.length === 0) return null
    const [row] = await this.#read([id])
    for (const old of rows)
      if (old.author === row?.author && (await this.#isMadeOf(row, old, changed))) return this.itself(old.id)
    return null
  }

  async #isMadeOf({ tree, parents }: Row, old: Row, changed: () => Promise<ChangedFiles>): Promise<boolean> {
    if (tree === old.tree && String(parents) === String(old.parents)) return true
    const [parent, ...others] = parents
    const [base] = old.parents
    if (parent === undefined || base === undefined || others.length > 0 || old.parents.length > 1) return false
    const given = { parents: [parent, old.id], base, changed: await changed() }
    const { paths } = await mergedPaths(this.#context, this.#repository, given)
    return given.changed.paths.length > 0 && given.changed.paths.every((path) => paths.has(path))
  }

  /** Those that are here. */
  async #read(ids: readonly Oid[]): Promise<Row[]> {
    if (ids.length === 0) return []
    const { env } = this.#context
    const git = async (args: string[], input: string) =>
      (await runGit(env, { args, cwd: this.#repository.root, input })).toString('utf8').split('\n')
    const found = await git(['cat-file', '--batch-check=%(objectname) %(objecttype)'], `${ids.join('\n')}\n`)
    const here = found.flatMap((line) => (line.endsWith(' commit') ? line.split(' ')[0]! : [])).filter(isOid)
    if (here.length === 0) return []
    const args = [
      'log',
      '--no-show-signature',
      '--no-walk=unsorted',
      '--stdin',
      '--format=%H%x00%T%x00%P%x00%at %an <%ae>',
    ]
    return (await git(args, `${here.join('\n')}\n`)).flatMap((line) => {
      const [id = '', tree = '', parents = '', author = ''] = line.split('\0')
      return isOid(id) && isOid(tree) ? [{ id, tree, parents: parents.split(' ').filter(isOid), author }] : []
    })
  }
}
