/** Turns whose hooks did not run, taken from the agent's own record. The record is only read. */
import type { SessionId, TurnNumber } from '../core/ids.ts'
import { runningTurn, type Timeline, type Turn } from '../core/timeline.ts'
import { mark, markOver } from '../ops/mark.ts'
import { notePrompt, promptsNow, timelineOf, turnElsewhere, turnKnownBy, turnWithoutId } from '../ops/said.ts'
import type { Context } from '../ops/worktree/context.ts'
import type { Agent, SaidPrompt, Transcripts } from './agent.ts'
import { markerId } from './payload.ts'
import { directoryOf, placeOf } from './said-here.ts'
import { AT_REST } from './transcript.ts'

/**
 * known: it is recorded. described: it was recorded without its text, and has it now. recorded: it is a turn now, of which
 * no files are known; where a fork took it along, one of the session that it was forked from. passed-over: turns that came
 * after it are recorded, and their order stays. of-parent: a turn of the session that this one was forked from. at-work:
 * left out, for it would close a turn that its hooks still tell of. pending: left out, for it would clear the session's
 * boundary. switched-off: checkpoints are, here. elsewhere: left out, for it was given in another place.
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
}

export interface ImportedPrompt extends SaidPrompt {
  outcome: Outcome
  turn: TurnNumber | null
  /** Where it was given, if that is told; and whether that directory, none of the worktree's, is there no more. */
  directory: string | null
  isGone: boolean
}

export async function importTranscript(
  context: Context,
  { agent, path, prompts, written }: Said,
): Promise<ImportedPrompt[]> {
  const { env } = context
  const { root } = context.worktree
  const { transcripts } = agent
  const done: ImportedPrompt[] = []
  let forkedFrom: SessionId | null = null
  const persons = prompts.filter(({ notice }) => !notice)
  const reader = new Reader(context)
  for (const [i, prompt] of persons.entries()) {
    await env.progress(`importing: prompt ${i + 1} of ${persons.length}`)
    const directory = directoryOf(prompt, prompts)
    const place = directory === null ? 'here' : await placeOf(env, { directory, root }, { transcripts, path, prompts })
    const later = persons.slice(i + 1).filter((one) => sessionOf(one) === sessionOf(prompt))
    const mayGoOn = prompt.end === null && later.length === 0 && env.now() - written < AT_REST
    const { outcome, turn, found }: Imported =
      place === 'elsewhere'
        ? leftOut('elsewhere')
        : await importPrompt(context, prompt, { agent: agent.name, later, mayGoOn, forkedFrom, reader })
    if (turn !== null) forkedFrom = found ?? sessionOf(prompt)
    const isGone = place === 'gone' && !directory?.startsWith(`${root}/`)
    done.push({ ...prompt, outcome, turn, directory, isGone })
  }
  return done
}

interface Imported {
  outcome: Outcome
  turn: TurnNumber | null
  /** The session that has the turn, where that is another one than the prompt's. */
  found?: SessionId
}

/** What a fork took along are turns of the session that it was forked from. */
const sessionOf = ({ original, session }: SaidPrompt): SessionId => original ?? session

const wasImported = ({ before }: Turn) => (before.imported === undefined ? {} : { imported: true })

const leftOut = (outcome: Outcome): Imported => ({ outcome, turn: null })

/** What is recorded already: of a long record most may be known, for which it need not be read again each time. */
class Reader {
  readonly #context: Context
  readonly #timelines = new Map<SessionId, Timeline>()
  #prompts: ReturnType<typeof promptsNow> | null = null

  constructor(context: Context) {
    this.#context = context
  }

  /** The turn of a prompt; where there is none the timeline is as it is now, for hooks and people go on meanwhile. */
  async find(prompt: SaidPrompt, session: SessionId): Promise<{ timeline: Timeline; turn: Turn | null }> {
    const find = async (timeline: Timeline) =>
      turnKnownBy(timeline, [prompt.marker, ...prompt.ids]) ?? (await turnWithoutId(this.#context, timeline, prompt))
    const before = this.#timelines.get(session)
    const known = before && (await find(before))
    if (known) return { timeline: before, turn: known }
    const timeline = await timelineOf(this.#context, session)
    this.#timelines.set(session, timeline)
    return { timeline, turn: await find(timeline) }
  }

  async prompt({ before }: Turn): Promise<string | null> {
    this.#prompts ??= promptsNow(this.#context)
    return (await this.#prompts)(before.id)
  }

  /** Something was added. */
  forget(): void {
    this.#timelines.clear()
    this.#prompts = null
  }
}

interface Around {
  reader: Reader
  agent: string
  /** The prompts of its session that came after it. */
  later: readonly SaidPrompt[]
  mayGoOn: boolean
  /** The session of the turn before it in the record. */
  forkedFrom: SessionId | null
}

async function importPrompt(context: Context, prompt: SaidPrompt, around: Around): Promise<Imported> {
  const { marker, ids, text, messageId } = prompt
  const session = sessionOf(prompt)
  const { agent, later, mayGoOn, forkedFrom, reader } = around
  const now = () => context.env.monotonic() // a deadline for each marker: the command as a whole has none
  const { timeline, turn } = await reader.find(prompt, session)
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
    const isTold = (await reader.prompt(turn)) !== null
    const added = !isTold && (await notePrompt(context, { before: turn.before.id, text }))
    // Begun from the transcript: by a daemon that was gone when it ended, or by an import that was killed.
    const hasEnded = prompt.end !== null || (turn.before.imported !== undefined && !mayGoOn)
    const ends = hasEnded && turn === runningTurn(timeline) && turn.before.messageId === messageId
    if (ends) await mark(context, { ...ended, ...wasImported(turn), turn: turn.before.marker ?? marker }, now())
    if (ends || added) reader.forget()
    const known = prompt.original === null ? 'known' : 'of-parent'
    return { outcome: added ? 'described' : known, turn: turn.number }
  }
  const elsewhere = await turnElsewhere(context, { but: session, ids: [marker, ...ids] })
  if (elsewhere) return { outcome: 'of-parent', turn: elsewhere.number, found: elsewhere.session }
  if (later.some((one) => turnKnownBy(timeline, [one.marker, ...one.ids]))) return leftOut('passed-over')
  if (!context.config.enableFileCheckpointing) return leftOut('switched-off')
  if (timeline.boundary) return leftOut('pending')
  if (mayGoOn || runningTurn(timeline)) return leftOut('at-work')
  // What was there before and after it is not known any more: it owns nothing, for both are what is there now.
  const isFork = forkedFrom !== null && forkedFrom !== session && timeline.turns.length === 0
  const parent = isFork ? { parent: forkedFrom } : {}
  const imported = { late: true, imported: true } as const
  const prompted = { event: 'prompt', session, agent, text, messageId, marker, ...imported } as const
  const ends = [
    { ...prompted, ...parent },
    { ...ended, imported: true },
  ] as const
  const { turn: number } = await markOver(context, ends, now())
  reader.forget()
  return number === null ? leftOut('passed-over') : { outcome: 'recorded', turn: number }
}
