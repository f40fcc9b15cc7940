/** The one place that knows which backend a session has. Everybody else asks what the session can do. */
import { CAPABILITIES, type Capabilities, type Capability } from '../core/capabilities.ts'
import { CkptError } from '../core/errors.ts'
import { sessionOption } from '../core/hint-words.ts'
import { parseAlone, parsePlace, parseTarget, type SessionId } from '../core/ids.ts'
import { type OwnSession, ownRevert } from '../core/own-session.ts'
import { printable } from '../core/paths.ts'
import { latestSession } from '../git/history.ts'
import type { AcceptResult } from '../ops/change/accept.ts'
import type { ChangeResult } from '../ops/change/change.ts'
import type { RedoOptions } from '../ops/change/redo.ts'
import type { RestoreOptions } from '../ops/change/restore.ts'
import { type Token, whenApplied } from '../ops/change/token.ts'
import type { UndoOptions } from '../ops/change/undo.ts'
import type { DiffOptions, DiffResult } from '../ops/history/diff.ts'
import type { RevertTarget } from '../ops/history/session-details.ts'
import { readSessionBackends } from '../ops/session-backends.ts'
import type { Context } from '../ops/worktree/context.ts'
import { choosePending, chooseSession, readRefs } from '../ops/worktree/sessions.ts'
import type { Backend, How } from './backend.ts'
import { ckptBackend } from './ckpt.ts'

export interface SessionCapabilities {
  session: SessionId | null
  backend: string
  capabilities: Capabilities
  /** Checkpoints are recorded here: neither the configuration nor `CKPT_DISABLED` switches them off. */
  enabled: boolean
}

/** What an undo asks for beyond `supportsUndo`. @throws CkptError USAGE */
export function undoNeeds({ step, to, only, paths = [] }: Partial<UndoOptions>): Capability[] {
  if (only !== undefined) parseAlone(only)
  const bySteps = step === true || (to !== undefined && parsePlace(to).kind === 'step')
  return [
    'supportsUndo',
    ...(bySteps ? (['supportsStepUndo'] as const) : []),
    ...(only !== undefined || paths.length > 0 ? (['supportsSelectiveUndo'] as const) : []),
  ]
}

export class Backends {
  readonly #byName: ReadonlyMap<string, Backend>

  /** The default is always among them. */
  constructor(others: readonly Backend[] = []) {
    this.#byName = new Map(others.map((one) => [one.name, one]))
  }

  /** What a session can do; an unknown session, or one of an unknown backend, has what the default can. */
  async capabilitiesOf(context: Context, wanted: string | undefined): Promise<SessionCapabilities> {
    const { session, backend } = await this.#backendOf(context, wanted)
    const { config, env } = context
    return {
      session,
      backend: backend.name,
      capabilities: await backend.capabilities(session, context),
      enabled: config.enableFileCheckpointing && env.vars.CKPT_DISABLED !== '1',
    }
  }

  /** The session as its backend keeps it; null: ckpt's own checkpoints are its turns. */
  async read(context: Context, wanted: string | undefined): Promise<OwnSession | null> {
    if (readSessionBackends(context).size === 0) return null
    const { session, backend } = await this.#backendOf(context, wanted)
    return session === null ? null : ((await backend.read?.(context, session)) ?? null)
  }

  /** The sessions that their backends keep themselves; one that its backend has no more is none. */
  async ownSessions(context: Context): Promise<OwnSession[]> {
    const reading = [...readSessionBackends(context)].map(async ([session, name]) => {
      const own = this.#named(name).read?.(context, session)
      return own?.catch((error: unknown) => {
        if (error instanceof CkptError && error.code === 'NOT_FOUND') return null
        throw error
      })
    })
    return (await Promise.all(reading)).flatMap((own) => own ?? [])
  }

  /** @throws CkptError UNSUPPORTED where turns of a session are meant that its backend keeps itself: they have no checkpoints */
  async requireCheckpoints(context: Context, wanted: string | undefined, ids: readonly string[]): Promise<void> {
    const own = await this.read(context, wanted)
    if (!own || (ids.length > 0 && ids.every((id) => !isTurnOf(own, id)))) return
    throw new CkptError(
      'UNSUPPORTED',
      `Session ${printable(own.session)} is kept by its agent: its turns have no checkpoints to read. \`turns\` lists them; where the session has supportsDiff, \`snapshots.diff\` tells what one did. Nothing was changed.`,
      { hints: [`ckpt capabilities ${sessionOption(own.session)}`] },
    )
  }

  /** Which turn or step a message and its part are. @throws CkptError NOT_FOUND, NOTHING_TO_UNDO */
  async revertTarget(
    context: Context,
    asked: { session?: string; messageId: string; partId?: string },
  ): Promise<RevertTarget> {
    const own = await this.read(context, asked.session)
    if (own) return ownRevert(own, asked.messageId, asked.partId)
    return (await import('../ops/history/session-details.ts')).revertTarget(context, asked)
  }

  /** @throws CkptError UNSUPPORTED, NOT_FOUND, USAGE */
  async diff(context: Context, options: DiffOptions): Promise<DiffResult> {
    await this.require(context, options.session, ['supportsDiff'])
    const own = await this.read(context, options.session)
    const turn = options.a === undefined ? null : Number(options.a)
    const isTurn = options.b === undefined && (turn === null || Number.isInteger(turn))
    const { backend } = own && isTurn ? await this.#backendOf(context, options.session) : { backend: null }
    if (!own || !backend?.diff) return (await import('../ops/history/diff.ts')).diff(context, options)
    return backend.diff(context, own.session, turn)
  }

  /** @throws CkptError UNSUPPORTED when the session meant lacks one of these */
  async require(context: Context, wanted: string | undefined, needs: readonly Capability[]): Promise<void> {
    await this.#able(context, wanted, needs)
  }

  /** @throws CkptError UNSUPPORTED, and what the backend throws */
  async undo(context: Context, options: UndoOptions, how: How): Promise<ChangeResult> {
    const { backend, meant } = await this.#able(context, options.session, undoNeeds(options))
    if (!backend.undo) throw unsupported(options.session ?? 'latest', 'supportsUndo')
    return backend.undo(context, { ...options, ...meant }, how)
  }

  /** @throws CkptError UNSUPPORTED, and what the backend throws */
  async redo(context: Context, options: RedoOptions, how: How): Promise<ChangeResult> {
    const { backend, meant } = await this.#able(context, options.session, ['supportsRedo'])
    if (!backend.redo) throw unsupported(options.session ?? 'latest', 'supportsRedo')
    return backend.redo(context, { ...options, ...meant }, how)
  }

  /** Carries out what a dry run planned. @throws CkptError UNSUPPORTED, CONFLICT when its plan no longer holds */
  async apply(context: Context, token: Token, how: How): Promise<ChangeResult> {
    try {
      return await this.#apply(context, token, how)
    } catch (error) {
      throw whenApplied(error)
    }
  }

  async #apply(context: Context, { op, options, hash }: Token, { arrived }: How): Promise<ChangeResult> {
    const how = { arrived, expected: hash }
    const wanted = { ...options, dryRun: false }
    if (op === 'undo') return this.undo(context, wanted as UndoOptions, how)
    if (op === 'redo') return this.redo(context, wanted as RedoOptions, how)
    const { move, session } = wanted as Partial<RestoreOptions>
    if (move) await this.require(context, session, ['supportsFork'])
    return (await import('../ops/change/restore.ts')).restore(context, wanted as RestoreOptions, how)
  }

  /** @throws CkptError UNSUPPORTED, and what the backend throws */
  async accept(context: Context, session: string | undefined): Promise<AcceptResult> {
    const pending = await this.#pending(context, session)
    const { backend, meant } = await this.#able(context, pending, ['supportsUndo'])
    if (!backend.accept) {
      const of = printable(meant.session ?? session ?? 'latest')
      const message = `Session ${of} keeps what is undone until it goes on (${backend.name}). Nothing was changed.`
      throw new CkptError('UNSUPPORTED', message, { hints: [`ckpt redo ${sessionOption(of)}`] })
    }
    return backend.accept(context, meant.session ?? pending)
  }

  async #pending(context: Context, wanted: string | undefined): Promise<string | undefined> {
    if (wanted !== undefined || readSessionBackends(context).size === 0) return wanted
    return choosePending(await readRefs(context), wanted) ?? undefined
  }

  /** The backend, and the session that is meant by its whole id. */
  async #able(
    context: Context,
    wanted: string | undefined,
    needs: readonly Capability[],
  ): Promise<{ backend: Backend; meant: { session?: SessionId } }> {
    // Nobody but the default is at work here: no ref has to be read to know whose the session is.
    if (readSessionBackends(context).size === 0) return { backend: ckptBackend, meant: {} }
    const { session, backend, capabilities } = await this.capabilitiesOf(context, wanted)
    const lacking = needs.find((need) => !capabilities[need])
    if (lacking) throw unsupported(session ?? 'latest', lacking)
    return { backend: this.#named(backend), meant: session === null ? {} : { session } }
  }

  async #backendOf(context: Context, wanted: string | undefined) {
    const known = readSessionBackends(context)
    const latest = wanted === undefined || wanted === 'latest'
    const refs = await readRefs(context)
    const session = latest ? latestSession(refs) : (found(() => chooseSession(refs, wanted)) ?? (wanted as SessionId))
    return { session, backend: this.#named(session === null ? undefined : known.get(session)) }
  }

  #named(name: string | undefined): Backend {
    return (name === undefined ? undefined : this.#byName.get(name)) ?? ckptBackend
  }
}

function isTurnOf({ turns }: OwnSession, id: string): boolean {
  if (turns.some(({ messageId }) => messageId === id)) return true
  return ['turn', 'step', 'edge'].includes(parseTarget(id).kind)
}

/** Which session a word means is for the operation to refuse, in its own words. */
function found(choose: () => SessionId | null): SessionId | null {
  try {
    return choose()
  } catch (error) {
    if (error instanceof CkptError && (error.code === 'NOT_FOUND' || error.code === 'USAGE')) return null
    throw error
  }
}

function unsupported(session: string, need: Capability): CkptError {
  return new CkptError(
    'UNSUPPORTED',
    `Session ${printable(session)} cannot ${CAPABILITIES[need]} (${need}). Nothing was changed.`,
    { hints: [`ckpt capabilities ${sessionOption(session)}`] },
  )
}
