/**
 * One `query()` of the caller's. Where something was undone before a prompt comes, the SDK's query is ended, and the prompt
 * opens another one: a fork, or a fresh session. The caller sees one stream.
 */
import { randomUUID } from 'node:crypto'
import { CkptError } from '../../core/errors.ts'
import type { Conversation, Plan } from './conversation.ts'
import type { Asked } from './given.ts'
import { Input } from './input.ts'
import { withHooks } from './own-checkpoints.ts'
import type { AgentMessage, AgentQuery, AgentSdk, GivenTo, KnownOptions, QueryOf, UserMessage } from './sdk.ts'

interface Segment {
  query: AgentQuery
  /** A prompt came that this query must not get. */
  again: boolean
}

/** A query of the caller's. */
interface Run {
  input: Input
  options: KnownOptions
  /** The session that it begins with; from there on the conversation says which. */
  resume: string | undefined
  isOver: () => boolean
}

export function runQuery<S extends AgentSdk>(
  conversation: Conversation,
  sdk: S,
  { prompt, options }: Asked,
): QueryOf<S> {
  const input = new Input(prompt)
  let isOver = false
  let segment: Segment | null = null
  const run: Run = { input, options, resume: options.resume, isOver: () => isOver }
  const opening = async () => {
    segment = await begin(conversation, sdk, run)
    return segment
  }
  /** Once: another query may run by the time that somebody reads the end of this one. Whoever comes second waits for the first. */
  let ending: Promise<void> | null = null
  const over = async () => {
    const isFirst = ending === null
    isOver = true
    aborting?.removeEventListener('abort', aborted)
    ending ??= conversation.over(run)
    await ending
    if (isFirst) await input.close()
  }
  /** By who left the query: nobody may be reading it, and then nothing else would tell of its end. */
  const leave = async () => {
    segment?.query.close?.()
    await over()
  }
  const aborted = () => void over().catch((error) => conversation.warn(error))
  const aborting = options.abortController?.signal
  aborting?.addEventListener('abort', aborted)
  const isHeard = () => !isOver && conversation.life.isHeldBy(run)
  let opened = opening()
  opened.catch(() => undefined) // told to whoever reads the stream
  const messages = (async function* (): AsyncGenerator<AgentMessage, void> {
    try {
      while (!isOver) {
        const current = await opened
        if (!current) return
        for await (const message of current.query) {
          if (isHeard()) await conversation.hearing(conversation.hear(message))
          else if (isOver) await conversation.hearLate(message)
          yield message
          if (isHeard()) conversation.life.goOn()
        }
        if (!current.again || isOver) return
        await conversation.over(run)
        opened = opening()
      }
    } finally {
      await over()
    }
  })()
  const own: Record<PropertyKey, unknown> = {
    close: () => void leave().catch((error) => conversation.warn(error)),
    return: async (value: undefined) => {
      await leave()
      return messages.return(value)
    },
    throw: async (error: unknown) => {
      await leave()
      return messages.throw(error)
    },
    [Symbol.asyncDispose]: async () => {
      await leave()
      await messages.return()
    },
  }
  return new Proxy(messages, {
    get(target, key) {
      const mine: unknown = Object.hasOwn(own, key) ? own[key] : Reflect.get(target, key, target)
      if (typeof mine === 'function') return mine.bind(target)
      if (mine !== undefined || typeof key === 'symbol' || key === 'then') return mine
      // Whatever else a query of the SDK's can be asked: its own one, also when that is over and another one is live.
      return async (...given: unknown[]) => {
        const query = (await opened)?.query as unknown as Record<string, (...given: unknown[]) => unknown> | undefined
        if (!query) throw new CkptError('NOT_FOUND', 'The query was closed before it began. Nothing was changed.')
        return query[key]?.(...given)
      }
    },
  }) as unknown as QueryOf<S>
}

/** Null: it was left before it began. @throws CkptError TURN_RUNNING */
async function begin(conversation: Conversation, sdk: AgentSdk, run: Run): Promise<Segment | null> {
  const { input, options, isOver } = run
  await conversation.left()
  if (isOver()) return null
  conversation.life.take(run)
  if (run.resume !== undefined) await conversation.adopt(run.resume)
  else if (options.continue) conversation.continues()
  run.resume = undefined
  const plan = await conversation.plan()
  if (isOver()) return null
  const segment = { again: false } as Segment
  const feed = async function* (): AsyncGenerator<UserMessage, void> {
    for (let sent = false; ; sent = true) {
      const message = await input.next()
      if (isOver()) return
      // The end of the prompts would close the way by which a query is asked to interrupt or rewind.
      if (!message) return conversation.life.settled(segment.query)
      await conversation.left() // another query may have been left since this one was asked for
      const now = await conversation.plan()
      if (isOver()) return
      // Where another query went on with the conversation, this one knows nothing of that.
      const goesOn = conversation.life.isHeldBy(run) && (sent ? now.undone === null : isSame(now, plan))
      if (!goesOn) {
        input.putBack(message)
        segment.again = true
        // Who was never asked anything waits for a first prompt, and would never end by itself.
        if (!sent) segment.query.close?.()
        return
      }
      const known = { ...message, uuid: message.uuid ?? randomUUID(), session_id: message.session_id ?? '' }
      await conversation.begin(known, sent ? now : plan)
      yield known
    }
  }
  const given: GivenTo<AgentSdk> = { prompt: feed(), options: optionsFor(conversation, options, { plan, isOver }) }
  segment.query = sdk.query(given) as unknown as AgentQuery
  conversation.life.live = segment.query
  return segment
}

const isSame = (a: Plan, b: Plan) => a.resume === b.resume && a.anchor === b.anchor && a.undone === b.undone

/** The caller's options, with what undo needs beside them. */
export function optionsFor(
  conversation: Conversation,
  options: KnownOptions,
  next: { plan: Plan; isOver: () => boolean } | null,
): KnownOptions {
  const { resume: _, ...given } = options
  // They choose a session, and this conversation has one.
  const { continue: __, sessionId: ___, ...rest } = given
  const own = conversation.session === null ? given : rest
  return {
    cwd: conversation.root,
    ...own,
    enableFileCheckpointing: true,
    extraArgs: { ...options.extraArgs, 'replay-user-messages': null },
    ...(next?.plan.resume == null ? {} : { resume: next.plan.resume }),
    ...(next?.plan.anchor == null ? {} : { forkSession: true, resumeSessionAt: next.plan.anchor }),
    ...(next && conversation.recorded && conversation.env.vars.CKPT_DISABLED !== '1'
      ? { hooks: hooksFor(conversation, options, next.isOver) }
      : {}),
  }
}

function hooksFor(
  conversation: Conversation,
  { hooks }: KnownOptions,
  isOver: () => boolean,
): NonNullable<KnownOptions['hooks']> {
  return withHooks(hooks, {
    env: conversation.env,
    root: conversation.root,
    isOver,
    hearing: (work) => conversation.hearing(work),
    prompt: (session, text) => conversation.promptHeard(session, text),
    stopped: () => conversation.stopHeard(),
    failed: (error) => conversation.warn(error),
  })
}
