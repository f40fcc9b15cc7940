/** Turns whose hooks did not run, taken from the agent's own record. The record is only read. */
import type { SessionId, TurnNumber } from '../core/ids.ts'
import { runningTurn } from '../core/timeline.ts'
import { mark } from '../ops/mark.ts'
import { notePrompt, timelineOf, turnElsewhere, turnKnownBy, turnWithoutId } from '../ops/said.ts'
import type { Context } from '../ops/worktree/context.ts'
import type { Agent, SaidPrompt } from './agent.ts'
import { markerId } from './payload.ts'
import { AT_REST } from './transcript.ts'

/**
 * known: it is recorded. described: it was recorded without its text, and has it now. recorded: it is a turn now, of which
 * no files are known. passed-over: turns that came after it are recorded, and their order stays. of-parent: a turn of the
 * session that this one was forked from. at-work: left out, for it would close a turn that its hooks still tell of.
 * pending: left out, for it would clear the session's boundary. switched-off: checkpoints are, here.
 */
export type Outcome =
  | 'known'
  | 'described'
  | 'recorded'
  | 'passed-over'
  | 'of-parent'
  | 'at-work'
  | 'pending'
  | 'switched-off'

export interface Said {
  prompts: readonly SaidPrompt[]
  /** Milliseconds since 1970: when the record was last written to. */
  written: number
  arrived: number
}

export interface ImportedPrompt extends SaidPrompt {
  outcome: Outcome
  turn: TurnNumber | null
}

export async function importTranscript(
  context: Context,
  agent: Agent,
  { prompts, written, arrived }: Said,
): Promise<ImportedPrompt[]> {
  const done: ImportedPrompt[] = []
  let forkedFrom: SessionId | null = null
  const persons = prompts.filter(({ notice }) => !notice)
  for (const [i, prompt] of persons.entries()) {
    const { session, marker, ids, text, messageId } = prompt
    const timeline = await timelineOf(context, session)
    const names = [marker, ...ids]
    const turn = turnKnownBy(timeline, names) ?? (await turnWithoutId(context, timeline, prompt))
    const stop = markerId(marker, 'stop')
    const ended = {
      event: 'stop',
      session,
      status: prompt.end ?? 'interrupted',
      late: true,
      onlyRunning: true,
      ...(stop === undefined ? {} : { marker: stop }),
    } as const
    if (turn) {
      const added = await notePrompt(context, { before: turn.before.id, text })
      // Begun from the transcript, by a daemon that was gone when it ended.
      if (prompt.end !== null && turn === runningTurn(timeline) && turn.before.messageId === messageId)
        await mark(context, { ...ended, turn: turn.before.marker ?? marker }, arrived)
      done.push({ ...prompt, outcome: added ? 'described' : 'known', turn: turn.number })
      continue
    }
    const later = persons.slice(i + 1).filter((one) => one.session === session)
    if (later.some((one) => turnKnownBy(timeline, [one.marker, ...one.ids]))) {
      done.push({ ...prompt, outcome: 'passed-over', turn: null })
      continue
    }
    const original = await turnElsewhere(context, { but: session, ids: names })
    if (original) {
      forkedFrom = original.session
      done.push({ ...prompt, outcome: 'of-parent', turn: original.number })
      continue
    }
    if (!context.config.enableFileCheckpointing) {
      done.push({ ...prompt, outcome: 'switched-off', turn: null })
      continue
    }
    if (timeline.boundary) {
      done.push({ ...prompt, outcome: 'pending', turn: null })
      continue
    }
    const mayGoOn = prompt.end === null && later.length === 0 && context.env.now() - written < AT_REST
    if (mayGoOn || runningTurn(timeline)) {
      done.push({ ...prompt, outcome: 'at-work', turn: null })
      continue
    }
    // What was there before and after it is not known any more: it owns nothing, for both are what is there now.
    const parent = forkedFrom !== null && timeline.turns.length === 0 ? { parent: forkedFrom } : {}
    const prompted = { event: 'prompt', session, agent: agent.name, text, messageId, marker, late: true } as const
    const { turn: number } = await mark(context, { ...prompted, ...parent }, arrived)
    await mark(context, ended, arrived)
    done.push({ ...prompt, outcome: number === null ? 'passed-over' : 'recorded', turn: number })
  }
  return done
}
