import { printable } from '../../core/paths.ts'
import { listAllTurns, listSessions, listTurns } from '../../ops/history/history.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { sessionJson, timelineBoundary, turnJson } from '../../results/json.ts'
import { sameAs } from '../again.ts'
import { count, flag, text } from '../arguments.ts'
import type { Command, Output } from '../command.ts'
import { listText, noneText, sessionsText, turnLines } from '../present/turns.ts'
import { columnsIn } from '../streams.ts'

/** What is listed is data; that there is none is not. */
const asData = (listed: number): Pick<Output, 'paged' | 'isNone'> => (listed > 0 ? { paged: true } : { isNone: true })

const command: Command = async ({ env, args, cwd, colors }) => {
  const limit = count(args, 'limit')
  const session = text(args, 'session')
  const chosen = {
    ...(session === undefined ? {} : { session }),
    ...(limit === undefined ? {} : { limit }),
  }
  const worktrees = flag(args, 'all-worktrees')
  const context = await openForReading(env, cwd)
  try {
    const { warnings } = context
    const how = { c: colors, now: env.now(), columns: columnsIn(env) }
    if (flag(args, 'sessions')) {
      const sessions = await listSessions(context, { ...chosen, worktrees })
      return {
        json: { sessions: sessions.map(sessionJson), warnings },
        text: sessionsText(sessions, { c: colors, worktrees }),
        warnings,
        ...asData(sessions.length),
      }
    }
    if (flag(args, 'all-sessions') || worktrees) {
      const asked = { hidden: flag(args, 'hidden'), abandoned: flag(args, 'abandoned') }
      const views = await listAllTurns(context, { ...chosen, ...asked, worktrees })
      const lead = ({ worktree, turn }: (typeof views)[number]) =>
        [...(worktrees ? [worktree] : []), turn.session].map((name) => colors.dim(printable(name)))
      const shown =
        views.length > 0
          ? turnLines(views, { ...how, lead }).join('\n')
          : noneText(await listAllTurns(context, { ...chosen, hidden: true, abandoned: true, worktrees }), {
              named: session !== undefined,
              same: `${sameAs({ session, cwd: args.cwd })} ${worktrees ? '--all-worktrees' : '--all-sessions'}`,
            })
      return {
        json: { session: null, turns: views.map((view) => turnJson(view, view.worktree)), warnings },
        text: shown,
        warnings,
        ...asData(views.length),
      }
    }
    const result = await listTurns(context, {
      ...chosen,
      hidden: flag(args, 'hidden'),
      abandoned: flag(args, 'abandoned'),
    })
    const byHand = result.byHand.map(({ checkpoint: { id, time }, message }) => ({ id, time, message }))
    const boundary = result.timeline ? timelineBoundary(result.timeline) : null
    const turns = result.turns.map((view) => turnJson(view, context.place.worktreeId))
    return {
      json: {
        session: result.session,
        turns,
        boundary,
        ...(byHand.length > 0 ? { checkpoints: byHand } : {}),
        warnings,
      },
      text: listText(result, { ...how, same: sameAs({ session, cwd: args.cwd }) }),
      warnings,
      ...asData(turns.length + byHand.length),
    }
  } finally {
    closeContext(context)
  }
}

export default command
