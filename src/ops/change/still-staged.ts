/** What stays staged when its file goes back: the user's index is left alone, and git commits what it holds. */
import { quotedPathspec } from '../../core/hint-words.ts'
import type { Oid } from '../../core/ids.ts'
import { isText, shortList, splitNul } from '../../core/paths.ts'
import { type FileAction, isHeld } from '../../core/plan.ts'
import type { PathState } from '../../core/state.ts'
import { emptyTree } from '../../git/diff.ts'
import { tryGit } from '../../git/process.ts'
import { type FileEntry, fileEntry } from '../../git/trees.ts'
import { type Entry, sameEntry } from '../committed/entries.ts'
import type { Context } from '../worktree/context.ts'

/** No control characters, which are shown otherwise, and can be read as text. */
const isPlain = (path: string) => isText(path) && !/[\0-\x1f\x7f]/.test(path)

/** With more names than these no command is proposed that has them all. */
const MOST_NAMED = 5

/**
 * What is staged as its file was on disk when the plan was made: agents run `git add`, and a commit would take what was
 * undone. `verb`: what the user calls the operation. Nothing where git cannot say.
 */
export async function stillStaged(context: Context, verb: string, files: readonly FileAction[]): Promise<string[]> {
  const { repository } = context.worktree
  const written = files.filter((one) => !isHeld(one) && !one.path.endsWith('/'))
  if (!repository || written.length === 0) return []
  const found = await stagedEntries(context, 'HEAD')
  const staged = found ?? (await stagedEntries(context, emptyTree(repository.hash))) ?? new Map<string, Entry>()
  const isStaged = ({ path, pre }: FileAction) => {
    const [was, own] = [onDisk(pre), staged.get(path)]
    return was !== undefined && own !== undefined && sameEntry(was, own)
  }
  const paths = written.filter(isStaged).map(({ path }) => path)
  if (paths.length === 0) return []
  return [
    `What is staged stays as it was before this ${verb}, and git commit would take it: ${shortList(paths)}. ${unstaging(paths, found !== null)}`,
  ]
}

/** The command that takes paths out of the index. Without a commit nothing can be restored from it. */
export function unstaging(paths: readonly string[], hasCommit: boolean): string {
  if (paths.length > MOST_NAMED || !paths.every(isPlain)) return 'git diff --cached   (shows it)'
  const out = hasCommit ? 'git restore --staged' : 'git rm --cached -f'
  return `${out} ${paths.map(quotedPathspec).join(' ')}   (takes it out of the index)`
}

/** What is staged at the paths that differ from a commit. Null: git cannot say, as where there is no such commit. */
async function stagedEntries({ env, worktree }: Context, commit: string): Promise<Map<string, Entry> | null> {
  const args = [
    'diff-index',
    '--cached',
    '--raw',
    '--no-abbrev',
    '--no-renames',
    '-z',
    '--ignore-submodules',
    commit,
    '--',
  ]
  const result = await tryGit(env, { args, cwd: worktree.root }).catch(() => null)
  if (result?.code !== 0) return null
  const fields = splitNul(result.stdout)
  const staged = new Map<string, Entry>()
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [, mode, , oid, status] = fields[i]!.split(' ')
    staged.set(fields[i + 1]!, status === 'D' ? null : { mode: mode as FileEntry['mode'], oid: oid as Oid })
  }
  return staged
}

/** Undefined: neither a file, nor nothing. */
function onDisk(state: PathState): Entry | undefined {
  if (state.kind === 'absent') return null
  return state.kind === 'present' ? fileEntry(state) : undefined
}
