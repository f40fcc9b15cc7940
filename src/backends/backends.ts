/** The one place that knows which backend a session has. Everybody else asks what the session can do. */
import { CAPABILITIES, type Capabilities, type Capability } from '../core/capabilities.ts'
import { CkptError } from '../core/errors.ts'
import { parseTarget, type SessionId } from '../core/ids.ts'
import { printable } from '../core/paths.ts'
import { latestSession } from '../git/history.ts'
import type { Context } from '../ops/context.ts'
import type { AcceptResult, RedoOptions } from '../ops/redo.ts'
import type { RestoreOptions } from '../ops/restore.ts'
import { readSessionBackends } from '../ops/session-backends.ts'
import { choosePending, chooseSession, readRefs } from '../ops/sessions.ts'
import type { Token } from '../ops/token.ts'
import type { ChangeResult, UndoOptions } from '../ops/undo.ts'
import type { Backend, How } from './backend.ts'
import { ckptBackend } from './ckpt.ts'

export interface SessionCapabilities {
  session: SessionId | null
  backend: string
  capabilities: Capabilities
}

/** What an undo asks for beyond `supportsUndo`. @throws CkptError USAGE */
export function undoNeeds({ step, to, only, paths = [] }: Partial<UndoOptions>): Capability[] {
  const bySteps = step === true || (to !== undefined && parseTarget(to).kind === 'step')
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
    const known = readSessionBackends(context)
    const latest = wanted === undefined || wanted === 'latest'
    const refs = await readRefs(context)
    const session = latest ? latestSession(refs) : (found(() => chooseSession(refs, wanted)) ?? (wanted as SessionId))
    const backend = this.#named(session === null ? undefined : known.get(session))
    return { session, backend: backend.name, capabilities: backend.capabilities(session) }
  }

  /** @throws CkptError UNSUPPORTED when the session meant lacks one of these */
  async require(context: Context, wanted: string | undefined, needs: readonly Capability[]): Promise<void> {
    await this.#able(context, wanted, needs)
  }

  /** @throws CkptError UNSUPPORTED, and what the backend throws */
  async undo(context: Context, options: UndoOptions, how: How): Promise<ChangeResult> {
    const { undo } = await this.#able(context, options.session, undoNeeds(options))
    if (!undo) throw unsupported(options.session ?? 'latest', 'supportsUndo')
    return undo(context, options, how)
  }

  /** @throws CkptError UNSUPPORTED, and what the backend throws */
  async redo(context: Context, options: RedoOptions, how: How): Promise<ChangeResult> {
    const { redo } = await this.#able(context, options.session, ['supportsRedo'])
    if (!redo) throw unsupported(options.session ?? 'latest', 'supportsRedo')
    return redo(context, options, how)
  }

  /** Carries out what a dry run planned. @throws CkptError UNSUPPORTED, CONFLICT when its plan no longer holds */
  async apply(context: Context, { op, options, hash }: Token, { arrived }: How): Promise<ChangeResult> {
    const how = { arrived, expected: hash }
    const wanted = { ...options, dryRun: false }
    if (op === 'undo') return this.undo(context, wanted as UndoOptions, how)
    if (op === 'redo') return this.redo(context, wanted as RedoOptions, how)
    const { move, session } = wanted as Partial<RestoreOptions>
    if (move) await this.require(context, session, ['supportsFork'])
    return (await import('../ops/restore.ts')).restore(context, wanted as RestoreOptions, how)
  }

  /** @throws CkptError UNSUPPORTED, and what the backend throws */
  async accept(context: Context, session: string | undefined): Promise<AcceptResult> {
    const meant = await this.#pending(context, session)
    const { accept } = await this.#able(context, meant, ['supportsUndo'])
    if (!accept) throw unsupported(session ?? 'latest', 'supportsUndo')
    return accept(context, meant)
  }

  async #pending(context: Context, wanted: string | undefined): Promise<string | undefined> {
    if (wanted !== undefined || readSessionBackends(context).size === 0) return wanted
    return choosePending(await readRefs(context), wanted) ?? undefined
  }

  async #able(context: Context, wanted: string | undefined, needs: readonly Capability[]): Promise<Backend> {
    // Nobody but the default is at work here: no ref has to be read to know whose the session is.
    if (readSessionBackends(context).size === 0) return ckptBackend
    const { session, backend, capabilities } = await this.capabilitiesOf(context, wanted)
    const lacking = needs.find((need) => !capabilities[need])
    if (lacking) throw unsupported(session ?? 'latest', lacking)
    return this.#named(backend)
  }

  #named(name: string | undefined): Backend {
    return (name === undefined ? undefined : this.#byName.get(name)) ?? ckptBackend
  }
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
    { hints: [`ckpt capabilities --session ${printable(session)}`] },
  )
}
