/** Blame: which turn wrote a line, and what was asked for then. */
import { describePrompt } from '../../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../../core/errors.ts'
import type { SessionId, TurnNumber } from '../../core/ids.ts'
import { printable, type RelativePath, shown } from '../../core/paths.ts'
import type { Turn } from '../../core/timeline.ts'
import { promptReader } from '../../git/side-refs.ts'
import type { Context } from '../worktree/context.ts'
import { chooseSession, readRefs } from '../worktree/sessions.ts'
import { LineOrigins } from './line-origins.ts'

export interface BlamedLine {
  line: number
  text: string
  /** Null: it was there before all turns, or came from outside of them. */
  turn: TurnNumber | null
  session: SessionId | null
  prompt: string | null
}

/** The file as the session's newest visible checkpoint has it. @throws CkptError NOT_FOUND */
export async function blame(context: Context, path: RelativePath, wanted: string | undefined): Promise<BlamedLine[]> {
  const { store } = context
  const refs = await readRefs(context)
  const session = chooseSession(refs, wanted)
  const origins = new LineOrigins(context, refs)
  const timeline = session && (await origins.timeline(session))
  const last = timeline?.turns.filter((turn) => !turn.hidden).at(-1)
  const tip = last?.after ?? last?.checkpoints.at(-1)
  const name = shown(path)
  if (!tip || !session)
    throw new CkptError('NOT_FOUND', `There is no turn yet to ask about ${name}.`, { hints: FIRST_TURN })
  const entry = await store.trees.lookup(tip.tree, path)
  if (!entry || entry.mode === '40000') {
    throw new CkptError('NOT_FOUND', `The newest checkpoint of session ${printable(session)} has no file ${name}.`, {
      hints: ['ckpt status   (what is not covered)', 'ckpt list --sessions'],
    })
  }
  const lines = await origins.linesAt(session, tip, path)
  const prompts = await promptReader(store, refs.notes)
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
