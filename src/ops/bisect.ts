/**
 * Bisect: the first turn that makes a command fail. Each state is laid out in a directory of its own; the worktree is
 * not touched. What is ignored there (dependencies, say) is linked in from the worktree.
 */
import type { Checkpoint } from '../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../core/errors.ts'
import type { SessionId, TurnNumber } from '../core/ids.ts'
import { printable } from '../core/paths.ts'
import { type Turn, visibleTurns } from '../core/timeline.ts'
import { type Env, errno, lstatIfThere } from '../env.ts'
import { native } from '../snapshot/disk.ts'
import { viewOf } from '../snapshot/view.ts'
import type { Context } from './context.ts'
import { chooseSession, loadTimeline, readRefs } from './sessions.ts'

export interface BisectResult {
  session: SessionId
  turn: TurnNumber
  prompt: string
  runs: number
}

/** @throws CkptError NOT_FOUND when the command fails at no turn, or before the first one already */
export async function bisect(
  context: Context,
  { command, session: wanted }: { command: readonly string[]; session: string | undefined },
): Promise<Omit<BisectResult, 'prompt'> & { found: Turn }> {
  const refs = await readRefs(context)
  const session = chooseSession(refs, wanted)
  const turns = session ? visibleTurns(await loadTimeline(context, refs, session)).filter((turn) => turn.after) : []
  const last = turns.at(-1)
  if (!session || !last)
    throw new CkptError('NOT_FOUND', 'There is no finished turn to look at.', {
      hints: session ? ['ckpt list'] : FIRST_TURN,
    })
  let runs = 0
  const fails = async (checkpoint: Checkpoint) => {
    runs++
    context.env.progress(`bisecting: run ${runs}`)
    return runAt(context, checkpoint, command)
  }
  if (!(await fails(last.after!))) {
    throw new CkptError(
      'NOT_FOUND',
      `The command does not fail after turn ${last.number} of session ${printable(session)}.`,
      { hints: ['ckpt list'] },
    )
  }
  if (await fails(turns[0]!.before)) {
    throw new CkptError(
      'NOT_FOUND',
      `The command failed before turn ${turns[0]!.number} of session ${printable(session)} already.`,
      { hints: ['ckpt list'] },
    )
  }
  // It passes before `low` and fails after `high`.
  let [low, high] = [0, turns.length - 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (await fails(turns[middle]!.after!)) high = middle
    else low = middle + 1
  }
  return { session, turn: turns[high]!.number, runs, found: turns[high]! }
}

/** Whether the command fails in that state. @throws CkptError USAGE when it cannot be run at all */
async function runAt(context: Context, checkpoint: Checkpoint, command: readonly string[]): Promise<boolean> {
  const { env, store } = context
  const directory = `${store.worktreeDir}/tmp/bisect-${env.random(6)}`
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  try {
    await layOut(context, checkpoint, directory)
    return (await exitOf(env, command, directory)) !== 0
  } finally {
    removeTree(env, directory)
  }
}

async function layOut({ env, store, worktree }: Context, checkpoint: Checkpoint, directory: string): Promise<void> {
  const { files } = env
  const view = await viewOf(store, checkpoint)
  for (const [path, entry] of await store.trees.files(view.tree)) {
    const at = native(directory, path)
    const slash = path.lastIndexOf('/')
    if (slash > 0) files.mkdirSync(native(directory, path.slice(0, slash)), { recursive: true })
    const bytes = await store.objects.get(entry.oid, 'blob')
    const state = view.fileState(path, entry)
    if (entry.mode === '120000') files.symlinkSync(bytes, at)
    else files.writeFileSync(at, bytes, { mode: state.kind === 'present' ? state.mode : 0o644 })
  }
  for (const path of view.beside.emptyDirectories) files.mkdirSync(native(directory, path), { recursive: true })
  for (const path of view.beside.ignored.keys()) {
    const bare = path.endsWith('/') ? path.slice(0, -1) : path
    const parent = bare.includes('/') ? native(directory, bare.slice(0, bare.lastIndexOf('/'))) : directory
    if (!files.existsSync(native(worktree.root, bare)) || !files.existsSync(parent)) continue
    if (!lstatIfThere(files, native(directory, bare)))
      files.symlinkSync(native(worktree.root, bare), native(directory, bare))
  }
}

function exitOf(env: Env, command: readonly string[], cwd: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = env.spawn(command[0]!, command.slice(1), {
      cwd,
      env: env.vars as NodeJS.ProcessEnv,
      stdio: ['ignore', 2, 2],
    })
    child.on('error', (cause) => {
      const missing = errno(cause) === 'ENOENT'
      reject(
        new CkptError(
          'USAGE',
          `${printable(command[0]!)} could not be run${missing ? ': there is no such program' : ''}. Nothing was changed.`,
          { cause },
        ),
      )
    })
    child.on('close', (code) => resolve(code ?? 1))
  })
}

function removeTree(env: Env, root: string, below = ''): void {
  for (const entry of env.files.readdirSync(native(root, below), { withFileTypes: true, encoding: 'latin1' })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (entry.isDirectory()) removeTree(env, root, path)
    else env.files.unlinkSync(native(root, path))
  }
  env.files.rmdirSync(native(root, below))
}
