/** Sessions: what is undone in them, undo and redo, and what they can do. */
import { defined } from '../core/defined.ts'
import { parseSessionId } from '../core/ids.ts'
import { listSessions } from '../ops/history/history.ts'
import { sessionDetails } from '../ops/history/session-details.ts'
import { setSessionBackend } from '../ops/session-backends.ts'
import { changeJson, sessionJson, turnJson } from '../results/json.ts'
import { ownDetailsJson, ownSessionJson } from '../results/own-session.ts'
import type { AcceptInfo, CapabilitiesInfo, ChangeInfo, SessionDetails, SessionInfo } from '../results/shapes.ts'
import type * as Requests from './requests.ts'
import { bytesOf, modeOf, reading, type Scope, writing } from './scope.ts'

export const list = (scope: Scope): Promise<{ sessions: SessionInfo[] }> =>
  reading(scope, async (context) => {
    const own = (await scope.backends.ownSessions(context)).map((one) => ownSessionJson(one, context.place.worktreeId))
    const kept = new Set(own.map(({ id }) => id))
    const recorded = (await listSessions(context)).map(sessionJson)
    return { sessions: [...own, ...recorded.filter(({ id }) => !kept.has(id))] }
  })

export const getSessionInfo = (scope: Scope, { session }: Requests.SessionRequest): Promise<SessionDetails> =>
  reading(scope, async (context) => {
    const own = await scope.backends.read(context, session)
    if (own) return ownDetailsJson(own, context.place.worktreeId)
    const { view, messageId, partId, diff, hidden, prompt } = await sessionDetails(context, session)
    return {
      ...sessionJson(view),
      revertMessageID: messageId,
      revertPartID: partId,
      revertDiff: diff,
      hiddenTurns: hidden.map((turn) => turnJson(turn, view.worktree)),
      restoredPrompt: prompt,
    }
  })

export const undo = (scope: Scope, { conflicts, paths, ...request }: Requests.UndoRequest): Promise<ChangeInfo> =>
  writing(scope, { forgiving: true }, async (context) => {
    const options = { ...defined(request), mode: modeOf(conflicts), paths: bytesOf(paths) }
    return changeJson(await scope.backends.undo(context, options, { arrived: scope.arrived }))
  })

export const redo = (scope: Scope, { conflicts, ...request }: Requests.RedoRequest): Promise<ChangeInfo> =>
  writing(scope, { forgiving: true }, async (context) => {
    const options = { ...defined(request), mode: modeOf(conflicts) }
    return changeJson(await scope.backends.redo(context, options, { arrived: scope.arrived }))
  })

/** Undo to before a message; forward to it, when more than that is undone. */
export const revert = async (scope: Scope, request: Requests.RevertRequest): Promise<ChangeInfo> => {
  const { messageId, partId, unclaimed, interrupt, ...rest } = request
  const target = await reading(scope, (context) =>
    scope.backends.revertTarget(context, { messageId, ...defined({ session: request.session, partId }) }),
  )
  return target.kind === 'undo'
    ? undo(scope, { ...rest, unclaimed, interrupt, to: target.to })
    : redo(scope, { ...rest, turns: target.turns })
}

export const unrevert = (scope: Scope, request: Requests.UnrevertRequest): Promise<ChangeInfo> =>
  redo(scope, { ...request, all: true })

export const cleanupRevertedHistory = (scope: Scope, { session }: Requests.SessionRequest): Promise<AcceptInfo> =>
  writing(scope, { forgiving: true }, async (context) => {
    const { cut: _, ...info } = await scope.backends.accept(context, session)
    return info
  })

export const capabilities = (scope: Scope, { session }: Requests.SessionRequest): Promise<CapabilitiesInfo> =>
  reading(scope, (context) => scope.backends.capabilitiesOf(context, session))

export const setBackend = (scope: Scope, request: Requests.SetBackendRequest): Promise<null> =>
  writing(scope, {}, async (context) => {
    await setSessionBackend(context, parseSessionId(request.session), request.backend)
    return null
  })
