import { printable } from '../../core/paths.ts'
import { type DaemonStatus, daemonStatus } from '../../daemon/life.ts'
import { status } from '../../ops/history/status.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { sessionJson, timelineBoundary, uncoveredJson } from '../../results/json.ts'
import { sameAs } from '../again.ts'
import type { Command } from '../command.ts'
import { statusText } from '../present/status.ts'

function daemonText({ running, pid, state }: DaemonStatus): string {
  if (!running) return 'not running'
  return `running (process ${pid})${state?.why ? `, the next snapshot is a scan: ${printable(state.why)}` : ''}`
}

const command: Command = async ({ env, args, cwd, colors }) => {
  const context = await openForReading(env, cwd)
  try {
    const [result, daemon] = await Promise.all([status(context), daemonStatus(env, context.store.worktreeDir)])
    const { root, gitDir, worktree, store, durable, uncovered, ignoredCount, dirty, head, unfinished, warnings } =
      result
    const json = {
      root,
      gitDir,
      worktree,
      sessions: result.sessions.map(sessionJson),
      boundary: result.boundary ? timelineBoundary(result.boundary.timeline) : null,
      daemon: { running: daemon.running, pid: daemon.pid, watching: daemon.watching },
      store,
      durable,
      uncovered: uncovered.map(uncoveredJson),
      ignoredCount,
      dirty: dirty !== false, // where git cannot tell there may be some
      git: { head: head.head, branch: head.branch, busy: head.busy },
      unfinished,
      lastHookError: result.lastHookError,
      warnings,
    }
    const undone = result.boundary?.timeline.session
    const same = sameAs({ session: undone === result.latest ? undefined : undone, cwd: args.cwd })
    return { json, text: statusText(result, { c: colors, daemon: daemonText(daemon), same }), paged: true, warnings }
  } finally {
    closeContext(context)
  }
}

export default command
