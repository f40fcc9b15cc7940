import { printable } from '../../core/paths.ts'
import { listAllTurns, listSessions, listTurns } from '../../ops/history/history.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { sessionJson, timelineBoundary, turnJson } from '../../results/json.ts'
import { sameAs } from '../again.ts'
import { count, flag, text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'
import { listText, noneText, sessionsText, turnRow } from '../present/turns.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const limit = count(args, 'limit')
  const session = text(args, 'session')
  const chosen = {
    ...(session === undefined ? {} : { session }),
    ...(limit === undefined ? {} : { limit }),
  }
  const context = await openForReading(env, cwd)
  try {
    const { warnings } = context
    if (flag(args, 'sessions')) {
      const sessions = await listSessions(context, { ...chosen, worktrees: flag(args, 'all-worktrees') })
      return {
        json: { sessions: sessions.map(sessionJson), warnings },
        text: sessionsText(sessions, colors),
        warnings,
        paged: true,
      }
    }
    if (flag(args, 'all-sessions') || flag(args, 'all-worktrees')) {
      const worktrees = flag(args, 'all-worktrees')
      const asked = { hidden: flag(args, 'hidden'), abandoned: flag(args, 'abandoned') }
      const views = await listAllTurns(context, { ...chosen, ...asked, worktrees })
      const how = { c: colors, now: env.now() }
      const rows = views.map((view) => [colors.dim(printable(view.turn.session)), ...turnRow(view, how)])
      const shown =
        rows.length > 0
          ? table(rows)
          : noneText(await listAllTurns(context, { ...chosen, hidden: true, abandoned: true, worktrees }), {
              named: session !== undefined,
              same: `${sameAs({ session, cwd: args.cwd })} ${worktrees ? '--all-worktrees' : '--all-sessions'}`,
            })
      return {
        json: { session: null, turns: views.map((view) => turnJson(view, view.worktree)), warnings },
        text: shown,
        warnings,
        paged: true,
      }
    }
    const result = await listTurns(context, {
      ...chosen,
      hidden: flag(args, 'hidden'),
      abandoned: flag(args, 'abandoned'),
    })
    const boundary = result.timeline ? timelineBoundary(result.timeline) : null
    const turns = result.turns.map((view) => turnJson(view, context.place.worktreeId))
    return {
      json: { session: result.session, turns, boundary, warnings },
      text: listText(result, {
        same: sameAs({ session, cwd: args.cwd }),
        c: colors,
        now: env.now(),
        ...(env.stdout.isTTY ? { columns: env.stdout.columns } : {}),
      }),
      warnings,
      paged: true,
    }
  } finally {
    closeContext(context)
  }
}

export default command
