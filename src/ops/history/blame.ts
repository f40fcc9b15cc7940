/** Blame: which turn wrote a line, and what was asked for then. */
import { type Checkpoint, describePrompt } from '../../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import type { SessionId, TurnNumber } from '../../core/ids.ts'
import { noneVisibleIn } from '../../core/none-visible.ts'
import { printable, type RelativePath, shown } from '../../core/paths.ts'
import { endOf, type Turn, visibleTurns } from '../../core/timeline.ts'
import { diffTrees } from '../../git/diff.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import { promptReader } from '../../git/side-refs.ts'
import { type ObjectWriter, observe } from '../../snapshot/disk.ts'
import { viewOf } from '../../snapshot/view.ts'
import { tellingLost } from '../record/prompts.ts'
import { takeSnapshot } from '../record/record.ts'
import type { Context } from '../worktree/context.ts'
import { chooseSession, readRefs } from '../worktree/sessions.ts'
import { LineOrigins, type WrittenLine } from './line-origins.ts'

export interface BlamedLine {
  line: number
  text: string
  /** Null: it was there before all turns, came from outside of them, or no checkpoint has it yet. */
  turn: TurnNumber | null
  session: SessionId | null
  prompt: string | null
}

/**
 * The file as it is on disk now; one that is not there any more as the session's newest visible checkpoint has it.
 * @throws CkptError NOT_FOUND
 */
export async function blame(context: Context, path: RelativePath, wanted: string | undefined): Promise<BlamedLine[]> {
  const { store } = context
  const refs = await readRefs(context)
  const chosen = chooseSession(refs, wanted)
  const origins = new LineOrigins(context, refs)
  const name = shown(path)
  if (!chosen)
    throw new CkptError('NOT_FOUND', `There is no turn yet to ask about ${name}. Nothing was changed.`, {
      hints: FIRST_TURN,
    })
  const own = await origins.timeline(chosen)
  const isNone = visibleTurns(own).length === 0
  const other = isNone && wanted === undefined ? await origins.newestBeside(chosen, Number.POSITIVE_INFINITY) : null
  const timeline = other?.timeline ?? own
  const { session } = timeline
  const last = visibleTurns(timeline).at(-1)
  const tip = last && endOf(last)
  if (!tip) {
    const [why, hints] = noneVisibleIn(timeline)
    throw new CkptError('NOT_FOUND', `${why} Nothing to say of ${name}, and nothing was changed.`, {
      hints: [...hints, 'ckpt list --sessions'],
    })
  }
  const entry = await store.trees.lookup(tip.tree, path)
  const isRecorded = entry !== null && entry.mode !== '40000'
  const now = readNow(context, path)
  const isDirectory = !Buffer.isBuffer(now) && !isRecorded && (entry !== null || now.isDirectory)
  const notFound = () =>
    isDirectory
      ? noFile(name)
      : new CkptError(
          'NOT_FOUND',
          `The newest checkpoint of session ${printable(session)} has no file ${name}. Nothing was changed.`,
          {
            hints: ['ckpt status   (what is not covered)', 'ckpt list --sessions'],
          },
        )
  let lines: WrittenLine[]
  if (Buffer.isBuffer(now)) {
    const from = isRecorded ? path : await cameFrom(context, refs, { tip, path })
    if (from === 'unknown') throw notFound()
    const recorded = from === null ? null : { session, checkpoint: tip, path: from }
    lines = await origins.linesNow(now, { path, tip, recorded })
  } else {
    if (!isRecorded) throw notFound()
    context.warnings.push(`${name} ${now.why}: this is how the newest checkpoint of the session has it.`)
    lines = await origins.linesAt({ session, checkpoint: tip, path })
  }
  const prompts = await promptReader(store, refs.notes, tellingLost(context))
  const said = new Map<Turn, string | null>()
  for (const { turn } of lines) {
    if (turn && !said.has(turn)) said.set(turn, describePrompt(await prompts(turn.before.id), turn.before.time))
  }
  return lines.map(({ text, turn }, i) => ({
    line: i + 1,
    text,
    turn: turn?.number ?? null,
    session: turn?.session ?? null,
    prompt: (turn && said.get(turn)) ?? null,
  }))
}

/** What a file holds; of a symlink, where it points. */
function readNow(
  { env, store, worktree }: Context,
  path: RelativePath,
): Buffer | { why: string; isDirectory: boolean } {
  const read: Buffer[] = []
  const keeping: ObjectWriter = {
    write: (type, bytes) => {
      read.push(bytes)
      return store.objects.oidOf(type, bytes)
    },
  }
  const state = observe(env, { root: worktree.root, path }, keeping)
  if (state.kind === 'present') return read.at(-1)!
  const isDirectory = state.kind === 'unknown' && state.reason === 'directory'
  return { why: state.kind === 'absent' ? 'is not there any more' : 'cannot be read as a file', isDirectory }
}

const noFile = (name: string): CkptError =>
  new CkptError('NOT_FOUND', `${name} is a directory: blame is of one file. Nothing was changed.`, {
    hints: ['ckpt list --sessions'],
  })

/**
 * Under which name a checkpoint has a file that came to its own since; null: it is new.
 * `unknown`: one of the two did not look.
 */
async function cameFrom(context: Context, refs: WorktreeRefs, { tip, path }: { tip: Checkpoint; path: RelativePath }) {
  const { store } = context
  const { view } = await takeSnapshot(context, refs, { publish: false })
  const states = [await view.state(path), await (await viewOf(store, tip)).state(path)]
  if (states.some(({ kind }) => kind === 'unknown')) return 'unknown'
  const { files } = await diffTrees(store, { from: tip.tree, to: view.tree })
  return files.find((file) => file.path === path)?.oldPath ?? null
}
