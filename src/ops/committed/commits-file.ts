/** What earlier commits of a session took in (`ckpt commit`): a small file beside the timeline. */
import { isOid, type Oid, type SessionId, type TurnNumber } from '../../core/ids.ts'
import { tryGit } from '../../git/process.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'
import type { Context } from '../worktree/context.ts'

const commitsFile = ({ store }: Context) => `${store.worktreeDir}/commits.json`

/** With the place in the order of the last checkpoint that is in HEAD: an agent may go on with a turn after that. */
type Turns = Readonly<Record<TurnNumber, number>>

/** What commits took in of a session. */
export interface Taken {
  turns: Turns
  /** Paths that were left out of them (by a hook), each with the turns that are in HEAD there all the same. */
  leftOut?: readonly (readonly [path: string, turns: Turns])[]
}

/** All that is in HEAD by this commit and those before it. */
interface Committed extends Taken {
  commit: string
}

/** How far the turns are in HEAD at each path. */
export function takenAt({ turns, leftOut = [] }: Taken): (path: string) => Turns {
  const apart = new Map(leftOut)
  return (path) => apart.get(path) ?? turns
}

/** A file that is damaged says nothing: then what is in HEAD is told from HEAD alone. */
function readCommits(context: Context): Map<string, Committed> {
  const bytes = readIfThere(context.env, commitsFile(context))
  let known: unknown
  try {
    known = JSON.parse(bytes?.toString('utf8') ?? '{}')
  } catch {
    known = null
  }
  const rows = typeof known === 'object' && known !== null ? Object.entries(known) : []
  return new Map(rows.filter((row): row is [string, Committed] => isCommitted(row[1])))
}

const isCommitted = (value: Partial<Committed> | null): value is Committed =>
  typeof value?.commit === 'string' &&
  isOid(value.commit) &&
  areTurns(value.turns) &&
  Object.entries(value.turns).length > 0 &&
  (value.leftOut === undefined || (Array.isArray(value.leftOut) && value.leftOut.every((row) => areTurns(row?.[1]))))

const areTurns = (value: unknown): value is Turns =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.entries(value).flat().map(Number).every(Number.isSafeInteger)

/** The commit holds these turns but for what was left out, and all that were committed before it (`taken`). */
export function rememberCommit(
  context: Context,
  session: SessionId,
  {
    commit,
    turns,
    taken,
    leftOut,
  }: {
    commit: Oid
    turns: readonly { number: TurnNumber; seq: number }[]
    taken: Taken
    leftOut: readonly string[]
  },
): void {
  const known = readCommits(context)
  const added = Object.fromEntries(turns.map(({ number, seq }) => [number, seq]))
  const before = takenAt(taken)
  known.set(session, {
    commit,
    turns: { ...taken.turns, ...added },
    leftOut: leftOut.map((path) => [path, before(path)]),
  })
  writeFileWhole(context.env, commitsFile(context), { content: JSON.stringify(Object.fromEntries(known)) })
}

export interface LastCommit extends Committed {
  isInHead: boolean
  /** What HEAD has in its place: amended, or rebased; null: nothing, as after a reset. `isSame`: it makes the very same of the same files. */
  successor: { commit: string; isSame: boolean } | null
}

/** What an earlier `ckpt commit` took in. */
export async function lastCommit(context: Context, session: SessionId, head: Oid | null): Promise<LastCommit | null> {
  const last = readCommits(context).get(session)
  if (!last || head === null) return null
  const isInHead = await isAncestor(context, last.commit, head)
  return { ...last, isInHead, successor: isInHead ? null : await successorOf(context, last.commit, head) }
}

/** git keeps the author and their time where it makes a commit again. */
async function successorOf({ env, worktree }: Context, commit: string, head: Oid): Promise<LastCommit['successor']> {
  const git = async (...args: string[]) => {
    const { code, stdout } = await tryGit(env, { args, cwd: worktree.root })
    return code === 0 ? stdout.toString('latin1') : ''
  }
  const log = async (range: string) =>
    (await git('log', '--no-show-signature', '--format=%H%x00%at %an <%ae>', ...range.split(' '))).split('\n')
  const author = (await log(`-1 ${commit}`))[0]!.split('\0')[1]
  if (author === undefined) return null // it is gone
  const found = (await log(`${commit}..${head}`)).find((row) => row.endsWith(`\0${author}`))
  if (found === undefined) return null
  const [successor = ''] = found.split('\0')
  const made = async (id: string) =>
    (await git('diff-tree', '--root', '-r', '-z', '--no-commit-id', '--no-renames', id)).replace(
      /:\d+ (\d+) \w+ (\w+)/g,
      '$1 $2',
    )
  return { commit: successor, isSame: (await made(commit)) === (await made(successor)) }
}

/** Whether a commit is part of another one's history; one that is gone is not. */
export async function isAncestor({ env, worktree }: Context, commit: string, of = 'HEAD'): Promise<boolean> {
  const { code } = await tryGit(env, { args: ['merge-base', '--is-ancestor', commit, of], cwd: worktree.root })
  return code === 0
}
