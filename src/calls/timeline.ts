/** Markers, turns, and what can be done with any checkpoint. */
import { defined } from '../core/defined.ts'
import { parseSessionId } from '../core/ids.ts'
import type { Marker } from '../core/marker.ts'
import { readToken } from '../ops/change/read-token.ts'
import { restore } from '../ops/change/restore.ts'
import { listTurns, show as showOne } from '../ops/history/history.ts'
import { mark as markOne } from '../ops/mark.ts'
import { changeJson, markJson, showJson, timelineBoundary, turnJson } from '../results/json.ts'
import { ownTurnsJson } from '../results/own-session.ts'
import type { ChangeInfo, MarkInfo, ShowInfo, TurnList } from '../results/shapes.ts'
import type * as Requests from './requests.ts'
import { bytesOf, reading, type Scope, writing } from './scope.ts'

export const mark = (scope: Scope, request: Requests.MarkRequest): Promise<MarkInfo> => {
  const session = parseSessionId(request.session)
  const paths = request.event === 'step' && request.paths ? { paths: bytesOf(request.paths) } : {}
  const marker = { ...defined(request), session, ...paths } as Marker
  const present = request.event !== 'prompt'
  return writing(scope, { create: 'unless-off', present, forgiving: true }, async (context) =>
    markJson(await markOne(context, marker, scope.arrived), context.store.durable),
  )
}

export const turns = (scope: Scope, request: Requests.TurnsRequest): Promise<TurnList> =>
  reading(scope, async (context) => {
    const own = await scope.backends.read(context, request.session)
    const { hidden, limit } = request
    if (own) {
      const how = { worktree: context.place.worktreeId, ...defined({ hidden, limit }) }
      return { ...ownTurnsJson(own, how), warnings: context.warnings }
    }
    const found = await listTurns(context, defined(request))
    return {
      session: found.session,
      turns: found.turns.map((view) => turnJson(view, context.place.worktreeId)),
      boundary: found.timeline ? timelineBoundary(found.timeline) : null,
      warnings: found.warnings,
    }
  })

export const show = (scope: Scope, { id, session }: Requests.ShowRequest): Promise<ShowInfo> =>
  reading(scope, async (context) => {
    await scope.backends.requireCheckpoints(context, session, [id])
    return showJson(await showOne(context, id, session), context.store)
  })

export const switchTo = (scope: Scope, request: Requests.SwitchRequest): Promise<ChangeInfo> =>
  writing(scope, {}, async (context) => {
    await scope.backends.require(context, request.session, ['supportsFork'])
    return changeJson(await restore(context, { ...defined(request), move: true }, { arrived: scope.arrived }))
  })

export const apply = (scope: Scope, { token }: Requests.ApplyRequest): Promise<ChangeInfo> => {
  const read = readToken(token)
  return writing(scope, { forgiving: true }, async (context) =>
    changeJson(await scope.backends.apply(context, read, { arrived: scope.arrived })),
  )
}
