/** Every call by its name: what the library's functions and the protocol's methods are made of. */
import type * as z from 'zod'
import { CkptError } from '../core/errors.ts'
import type * as Shapes from '../results/shapes.ts'
import type * as Requests from './requests.ts'
import type { Scope } from './scope.ts'

/** Name → what it takes and what it gives. */
export interface Methods {
  'snapshots.track': { takes: Requests.TrackRequest; gives: Shapes.MarkInfo }
  'snapshots.patch': { takes: Requests.PatchRequest; gives: Shapes.PatchInfo }
  'snapshots.revert': { takes: Requests.RevertPatchRequest; gives: Shapes.ChangeInfo }
  'snapshots.restore': { takes: Requests.RestoreRequest; gives: Shapes.ChangeInfo }
  'snapshots.diff': { takes: Requests.DiffRequest; gives: Shapes.DiffInfo }
  'snapshots.diffFull': { takes: Requests.DiffRequest; gives: Shapes.FullDiffInfo }
  'snapshots.cleanup': { takes: Requests.CleanupRequest; gives: Shapes.PruneInfo }
  'sessions.list': { takes: Record<never, never>; gives: { sessions: Shapes.SessionInfo[] } }
  'sessions.getSessionInfo': { takes: Requests.SessionRequest; gives: Shapes.SessionDetails }
  'sessions.undo': { takes: Requests.UndoRequest; gives: Shapes.ChangeInfo }
  'sessions.redo': { takes: Requests.RedoRequest; gives: Shapes.ChangeInfo }
  'sessions.revert': { takes: Requests.RevertRequest; gives: Shapes.ChangeInfo }
  'sessions.unrevert': { takes: Requests.UnrevertRequest; gives: Shapes.ChangeInfo }
  'sessions.cleanupRevertedHistory': { takes: Requests.SessionRequest; gives: Shapes.AcceptInfo }
  'sessions.capabilities': { takes: Requests.SessionRequest; gives: Shapes.CapabilitiesInfo }
  'sessions.setBackend': { takes: Requests.SetBackendRequest; gives: null }
  mark: { takes: Requests.MarkRequest; gives: Shapes.MarkInfo }
  turns: { takes: Requests.TurnsRequest; gives: Shapes.TurnList }
  show: { takes: Requests.ShowRequest; gives: Shapes.ShowInfo }
  switchTo: { takes: Requests.SwitchRequest; gives: Shapes.ChangeInfo }
  apply: { takes: Requests.ApplyRequest; gives: Shapes.ChangeInfo }
}

export type MethodName = keyof Methods

export interface Method<M extends MethodName> {
  takes: z.ZodType<Methods[M]['takes']>
  run: (scope: Scope, request: Methods[M]['takes']) => Promise<Methods[M]['gives']>
  /** It changes neither files nor the timeline. */
  reads: boolean
}

export type MethodTable = { readonly [M in MethodName]: Method<M> }

/** @throws CkptError USAGE (BAD_MARKER for `mark`), naming what is wrong */
export function checkRequest<T>(name: string, takes: z.ZodType<T>, request: unknown): T {
  const checked = takes.safeParse(request)
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  const where = issue?.path.length ? `${issue.path.join('.')}: ` : ''
  throw new CkptError(
    name === 'mark' ? 'BAD_MARKER' : 'USAGE',
    `${name} was called wrongly: ${where}${issue?.message ?? 'not a request'}. Nothing was changed.`,
  )
}
