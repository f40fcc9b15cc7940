/** Blame: which turn wrote a line, and what was asked for then. git-blame(1) over a session's own history. */
import { describePrompt } from '../core/checkpoint.ts'
import { CkptError, FIRST_TURN } from '../core/errors.ts'
import { type Oid, parseOid, type SessionId, type TurnNumber } from '../core/ids.ts'
import { pathToText, printable, type RelativePath } from '../core/paths.ts'
import { readCheckpoint } from '../git/history.ts'
import { promptReader } from '../git/side-refs.ts'
import type { Context } from './context.ts'
import { chooseSession, loadTimeline, readRefs } from './sessions.ts'

export interface BlamedLine {
  line: number
  text: string
  /** Null: it was there before the session, or came between two turns. */
  turn: TurnNumber | null
  session: SessionId | null
  prompt: string | null
}

interface Origin {
  turn: TurnNumber | null
  session: SessionId | null
  prompt: string | null
}

const NOBODY: Origin = { turn: null, session: null, prompt: null }

/** The file as the session's newest visible checkpoint has it. @throws CkptError NOT_FOUND */
export async function blame(context: Context, path: RelativePath, wanted: string | undefined): Promise<BlamedLine[]> {
  const { store } = context
  const refs = await readRefs(context)
  const session = chooseSession(refs, wanted)
  const timeline = session ? await loadTimeline(context, refs, session) : null
  const last = timeline?.turns.filter((turn) => !turn.hidden).at(-1)
  const tip = last?.after ?? last?.checkpoints.at(-1)
  const shown = printable(pathToText(path))
  if (!tip || !session || !timeline)
    throw new CkptError('NOT_FOUND', `There is no turn yet to ask about ${shown}.`, { hints: FIRST_TURN })
  const entry = await store.trees.lookup(tip.tree, path)
  if (!entry || entry.mode === '40000') {
    throw new CkptError('NOT_FOUND', `The newest checkpoint of session ${printable(session)} has no file ${shown}.`, {
      hints: ['ckpt status   (what is not covered)', 'ckpt list --sessions'],
    })
  }
  const out = await store.git(['blame', '--first-parent', '--line-porcelain', tip.id, '--', pathToText(path)])
  const prompts = await promptReader(store, refs.notes)
  const befores = new Map(timeline.turns.map((turn) => [turn.number, turn.before]))
  const origins = new Map<Oid, Origin>()
  const originOf = async (id: Oid): Promise<Origin> => {
    const checkpoint = await readCheckpoint(store, id)
    const { turn, kind } = checkpoint
    // What a `before` brings came from outside; a first checkpoint has all that was there.
    const own =
      turn !== undefined && (kind === 'step' || kind === 'after') && !checkpoint.late && checkpoint.parents.length > 0
    const before = own ? befores.get(turn) : undefined
    if (!own || !before) return NOBODY
    return { turn, session, prompt: describePrompt(await prompts(before.id), before.time) }
  }
  const lines: BlamedLine[] = []
  let id: Oid | null = null
  for (const row of out.toString('utf8').split('\n')) {
    const header = /^([0-9a-f]{40,64}) \d+ \d+/.exec(row)
    if (header) id = parseOid(header[1]!)
    else if (row.startsWith('\t') && id) {
      if (!origins.has(id)) origins.set(id, await originOf(id))
      lines.push({ line: lines.length + 1, text: row.slice(1), ...origins.get(id)! })
    }
  }
  return lines
}
