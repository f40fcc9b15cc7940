/** Turns whose hooks did not run, taken from the agent's own record. The record is only read. */
import type { SessionId, TurnNumber } from '../core/ids.ts'
import { runningTurn } from '../core/timeline.ts'
import { mark } from '../ops/mark.ts'
import { notePrompt, timelineOf, turnElsewhere, turnKnownBy, turnWithoutId } from '../ops/said.ts'
import type { Context } from '../ops/worktree/context.ts'
import type { Agent, SaidPrompt, Transcripts } from './agent.ts'
import { markerId } from './payload.ts'
import { directoryOf, placeOf } from './said-here.ts'
import { AT_REST } from './transcript.ts'

/**
 * known: it is recorded. described: it was recorded without its text, and has it now. recorded: it is a turn now, of which
 * no files are known. passed-over: turns that came after it are recorded, and their order stays. of-parent: a turn of the
 * session that this one was forked from. at-work: left out, for it would close a turn that its hooks still tell of.
 * pending: left out, for it would clear the session's boundary. switched-off: checkpoints are, here. elsewhere: left out, for
 * it was given in another place.
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
  | 'elsewhere'

export interface Said {
  agent: Agent & { transcripts: Transcripts }
  /** Of the record. */
  path: string
  prompts: readonly SaidPrompt[]
  /** Milliseconds since 1970: when the record was last written to. */
  written: number
  arrived: number
}

export interface ImportedPrompt extends SaidPrompt {
  outcome: Outcome
  turn: TurnNumber | null
  /** Where it was given, if that is told; and whether that directory is there no more. */
  directory: string | null
  isGone: boolean
}

export async function importTranscript(
  context: Context,
  { agent, path, prompts, written, arrived }: Said,
): Promise<ImportedPrompt[]> {
  const { env, worktree } = context
  const done: ImportedPrompt[] = []
  let forkedFrom: SessionId | null = null
  const persons = prompts.filter(({ notice }) => !notice)
  for (const [i, prompt] of persons.entries()) {
    const { session, marker, ids, text, messageId } = prompt
    await env.progress(`importing: prompt ${i + 1} of ${persons.length}`)
    const directory = directoryOf(prompt, prompts)
    const { transcripts } = agent
    const place =
      directory === null
        ? 'here'
        : await placeOf(env, { directory, root: worktree.root }, { transcripts, path, prompts })
    const tell = (outcome: Outcome, turn: TurnNumber | null = null) =>
      done.push({ ...prompt, outcome, turn, directory, isGone: place === 'gone' })
    if (place === 'elsewhere') {
      tell('elsewhere')
      continue
    }
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
    const later = persons.slice(i + 1).filter((one) => one.session === session)
    const mayGoOn = prompt.end === null && later.length === 0 && env.now() - written < AT_REST
    if (turn) {
      const added = await notePrompt(context, { before: turn.before.id, text })
      // Begun from the transcript: by a daemon that was gone when it ended, or by an import that was killed.
      const hasEnded = prompt.end !== null || (turn.before.imported !== undefined && !mayGoOn)
      if (hasEnded && turn === runningTurn(timeline) && turn.before.messageId === messageId)
        await mark(context, { ...ended, turn: turn.before.marker ?? marker }, arrived)
      tell(added ? 'described' : 'known', turn.number)
      continue
    }
    if (later.some((one) => turnKnownBy(timeline, [one.marker, ...one.ids]))) {
      tell('passed-over')
      continue
    }
    const original = await turnElsewhere(context, { but: session, ids: names })
    if (original) {
      forkedFrom = original.session
      tell('of-parent', original.number)
      continue
    }
    if (!context.config.enableFileCheckpointing) {
      tell('switched-off')
      continue
    }
    if (timeline.boundary) {
      tell('pending')
      continue
    }
    if (mayGoOn || runningTurn(timeline)) {
      tell('at-work')
      continue
    }
    // What was there before and after it is not known any more: it owns nothing, for both are what is there now.
    const parent = forkedFrom !== null && timeline.turns.length === 0 ? { parent: forkedFrom } : {}
    const imported = { late: true, imported: true } as const
    const prompted = { event: 'prompt', session, agent: agent.name, text, messageId, marker, ...imported } as const
    const { turn: number } = await mark(context, { ...prompted, ...parent }, arrived)
    await mark(context, { ...ended, imported: true }, arrived)
    tell(number === null ? 'passed-over' : 'recorded', number)
  }
  return done
}
