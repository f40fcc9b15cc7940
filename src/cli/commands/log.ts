import { drawGraph } from '../../core/graph.ts'
import { printable } from '../../core/paths.ts'
import { readLog, type SessionLog } from '../../ops/history/log.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { timelineBoundary, turnJson } from '../../results/json.ts'
import { flag, text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { forkedFrom, NO_TURNS, type TurnsShown, turnLines } from '../present/turns.ts'
import { columnsIn } from '../streams.ts'

function draw({ timeline, nodes }: SessionLog, { graph, columns, ...how }: TurnsShown & { graph: boolean }): string {
  const views = nodes.map(({ view }) => view)
  const { session, parent } = timeline
  const head = `Session ${how.c.bold(printable(session))}${parent === null ? '' : `, ${forkedFrom(parent)}`}`
  if (!graph) return [head, ...turnLines(views, { ...how, columns })].join('\n')
  const drawn = drawGraph(
    nodes.map(({ view, parent }) => ({
      id: view.turn.id,
      parent,
      mark: view.turn.abandoned || view.turn.hidden ? 'o' : '*',
    })),
  )
  const width = Math.max(...drawn.map((line) => line.lines.length), 0)
  const lines = turnLines(views, { ...how, columns: columns && columns - width - 1 })
  const rows = new Map(views.map((view, i) => [view.turn.id, lines[i]!]))
  return [head, ...drawn.map(({ lines, id }) => (id === null ? lines : `${lines.padEnd(width)} ${rows.get(id)}`))].join(
    '\n',
  )
}

const command: Command = async ({ env, args, cwd, colors }) => {
  const context = await openForReading(env, cwd)
  try {
    const logs = await readLog(context, text(args, 'session'))
    const { warnings, place } = context
    const sessions = logs.map(({ timeline, nodes }) => ({
      id: timeline.session,
      boundary: timelineBoundary(timeline),
      turns: nodes.map(({ view, parent }) => ({ ...turnJson(view, place.worktreeId), parent })),
    }))
    const how = { c: colors, now: env.now(), columns: columnsIn(env), graph: flag(args, 'graph') }
    const json = { sessions, warnings }
    if (logs.length === 0) return { json, text: NO_TURNS, warnings, isNone: true }
    return { json, text: logs.map((log) => draw(log, how)).join('\n\n'), warnings, paged: true }
  } finally {
    closeContext(context)
  }
}

export default command
