import { drawGraph } from '../../core/graph.ts'
import { printable } from '../../core/paths.ts'
import { readLog, type SessionLog } from '../../ops/history/log.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { timelineBoundary, turnJson } from '../../results/json.ts'
import { flag, text } from '../arguments.ts'
import type { Colors, Command } from '../command.ts'
import { table } from '../present/text.ts'
import { forkedFrom, NO_TURNS, turnRow } from '../present/turns.ts'

function draw({ timeline, nodes }: SessionLog, { c, now, graph }: { c: Colors; now: number; graph: boolean }): string {
  const lines = table(nodes.map(({ view }) => turnRow(view, { c, now }))).split('\n')
  const rows = new Map(nodes.map(({ view }, i) => [view.turn.id, lines[i]!]))
  const { session, parent } = timeline
  const head = `Session ${c.bold(printable(session))}${parent === null ? '' : `, ${forkedFrom(parent)}`}`
  if (!graph) return [head, ...nodes.map(({ view }) => rows.get(view.turn.id)!)].join('\n')
  const drawn = drawGraph(
    nodes.map(({ view, parent }) => ({
      id: view.turn.id,
      parent,
      mark: view.turn.abandoned || view.turn.hidden ? 'o' : '*',
    })),
  )
  const width = Math.max(...drawn.map((line) => line.lines.length), 0)
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
    const how = { c: colors, now: env.now(), graph: flag(args, 'graph') }
    const shown = logs.length === 0 ? NO_TURNS : logs.map((log) => draw(log, how)).join('\n\n')
    return { json: { sessions, warnings }, text: shown, warnings, paged: true }
  } finally {
    closeContext(context)
  }
}

export default command
