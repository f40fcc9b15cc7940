/** The undo of an SDK session: by ckpt's own checkpoints where there are some, else by the SDK's copies of files. */
import { resolve } from 'node:path'
import type { Backend, How } from '../../backends/backend.ts'
import { ckptBackend } from '../../backends/ckpt.ts'
import { withCapabilities } from '../../core/capabilities.ts'
import { CkptError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import { nothingToUndo, placeToUndo } from '../../core/own-session.ts'
import { pathToText, printable, shortList } from '../../core/paths.ts'
import type { ToldAction } from '../../core/plan.ts'
import type { ChangeResult } from '../../ops/change/change.ts'
import type { UndoOptions } from '../../ops/change/undo.ts'
import type { Context } from '../../ops/worktree/context.ts'
import { ownChange, toldPath } from '../own-change.ts'
import { maybeChanged, saveFirst } from '../safety.ts'
import { type Conversation, NAME } from './conversation.ts'
import { GONE, interruptTurn } from './interrupt.ts'
import { ownSession, writeRecord } from './record.ts'
import type { AgentQuery, RewindResult } from './sdk.ts'

const AGENT = [
  'supportsUndo',
  'supportsReconnect',
  'supportsPermissionRequests',
  'supportsQuestionPrompts',
  'supportsModelSelection',
  'supportsPartialStreaming',
] as const

const CAN = withCapabilities(AGENT)
/** A single step is not among them: the conversation goes on from prompts only. */
const CAN_RECORDED = withCapabilities([
  ...AGENT,
  'supportsRedo',
  'supportsSelectiveUndo',
  'supportsDiff',
  'supportsCommands',
])

/** Asks the live query of a session, or one that is resumed for it. */
export type AskQuery = <T>(session: SessionId, ask: (query: AgentQuery) => Promise<T>) => Promise<T>

export function claudeBackend(conversation: Conversation, ask: AskQuery): Backend {
  const isRecorded = (context: Context, session: SessionId) => conversation.isRecorded(context, session)
  const isRunning = (session: SessionId) => session === conversation.session && conversation.running
  const told = (session: SessionId, messageId: string | null) =>
    conversation.tell('boundary.changed', { session, messageId })

  const rewind = async (context: Context, options: UndoOptions, { arrived }: How): Promise<ChangeResult> => {
    const session = options.session as SessionId
    const find = async () => {
      const record = await conversation.recordOf(context, session)
      const before = ownSession(record, false)
      return { record, before, turn: placeToUndo(before, options).turn }
    }
    if (isRunning(session)) await interruptTurn(conversation, options, find)
    const { record, before, turn } = await find()
    let safety: string | null = null
    let begun = false
    const carriedOut = async (): Promise<ChangeResult> => {
      const { filesChanged, insertions, deletions } = await ask(session, async (query) => {
        const planned = await rewound(query, turn.messageId, { dryRun: true })
        if (options.dryRun) return planned
        safety = await saveFirst(context, `before the undo of ${session}`)
        begun = true
        const { skippedLinks } = await rewound(query, turn.messageId, {})
        if (skippedLinks > 0) context.warnings.push(`${skippedLinks} of the files are behind links: the SDK left them.`)
        return planned
      })
      const summary = { files: filesChanged.length, insertions, deletions }
      const next = { ...record, undone: turn.messageId, summary }
      const paths = filesChanged.map((file) => pathIn(context, file))
      if (!options.dryRun) {
        writeRecord(context, next)
        told(session, turn.messageId)
      } else if (paths.length > 0)
        context.warnings.push(
          `The SDK does not say beforehand what it would write and what delete: ${shortList(paths)}.`,
        )
      return ownChange(context, {
        before,
        after: ownSession(next, false),
        dryRun: options.dryRun ?? false,
        files: options.dryRun ? [] : paths.map((path) => actionOf(context, path)),
        summary,
        restoredPrompt: turn.text,
        messageId: turn.messageId,
        safety,
        arrived,
      })
    }
    return carriedOut().catch((error: unknown) => {
      throw begun ? maybeChanged(error, 'The SDK', safety) : error
    })
  }

  return {
    name: NAME,
    capabilities: async (session, context) =>
      session !== null && (await isRecorded(context, session)) ? CAN_RECORDED : CAN,
    read: async (context, session) => {
      if (await isRecorded(context, session)) return null
      return ownSession(await conversation.recordOf(context, session), isRunning(session))
    },
    undo: async (context, options, how) => {
      const session = options.session as SessionId | undefined
      if (session === undefined) throw nothingToUndo('There is no prompt yet.')
      await conversation.left()
      if (!(await isRecorded(context, session))) return rewind(context, options, how)
      if (isRunning(session))
        await interruptTurn(conversation, options, () => ckptBackend.undo!(context, { ...options, dryRun: true }, how))
      const result = await ckptBackend.undo!(context, options, how)
      if (!result.dryRun && result.boundary) told(session, result.messageId)
      return result
    },
    redo: async (context, options, how) => {
      const result = await ckptBackend.redo!(context, options, how)
      if (!result.dryRun) told(result.session, result.boundary?.record.messageId ?? null)
      return result
    },
    accept: async (context, session) => {
      if (session === undefined || (await isRecorded(context, session as SessionId)))
        return ckptBackend.accept!(context, session)
      throw new CkptError(
        'UNSUPPORTED',
        `What is undone in session ${printable(session)} is kept with its next prompt.`,
      )
    },
  }
}

type Rewound = Required<Omit<RewindResult, 'canRewind' | 'error'>>

/** What it says is looked at: it comes from another program. @throws CkptError CONFLICT when the SDK cannot go back there */
async function rewound(query: AgentQuery, id: string, options: { dryRun?: boolean }): Promise<Rewound> {
  // A dry run answers with the reason, a real one throws it; a query that is over throws too.
  const answer: unknown = await query.rewindFiles(id, options).catch((error: Error): RewindResult => {
    if (GONE.test(error.message)) throw error
    return { canRewind: false, error: error.message }
  })
  const told = (typeof answer === 'object' && answer !== null ? answer : {}) as Record<keyof RewindResult, unknown>
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0)
  const files: unknown[] = Array.isArray(told.filesChanged) ? told.filesChanged : []
  if (told.canRewind)
    return {
      filesChanged: files.filter((file) => typeof file === 'string'),
      insertions: number(told.insertions),
      deletions: number(told.deletions),
      skippedLinks: number(told.skippedLinks),
    }
  const why = typeof told.error === 'string' ? told.error.replace(/\.$/, '') : 'it gave no reason'
  throw new CkptError('CONFLICT', `The SDK cannot rewind to that prompt: ${printable(why)}. Nothing was changed.`, {
    hints: ['ckpt list'],
  })
}

/** Relative to the worktree, where it lies in it. */
function pathIn({ worktree }: Context, file: string): string {
  const inside = `${worktree.root}/`
  return toldPath(file.startsWith(inside) ? file.slice(inside.length) : file)
}

/** What has been done to a file. */
function actionOf({ env, worktree }: Context, path: string): ToldAction {
  const isThere = env.files.existsSync(resolve(worktree.root, pathToText(path)))
  return { path, action: isThere ? 'write' : 'delete' }
}
