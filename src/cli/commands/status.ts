import { showPath } from '../../core/paths.ts'
import { closeContext } from '../../ops/context.ts'
import { openForReading } from '../../ops/reading.ts'
import { status } from '../../ops/status.ts'
import type { Command } from '../command.ts'
import { sessionJson, timelineBoundary } from '../present/json.ts'
import { statusText } from '../present/text.ts'

const command: Command = async ({ env, cwd, colors }) => {
  const context = await openForReading(env, cwd)
  try {
    const result = await status(context)
    const { root, gitDir, worktree, store, durable, uncovered, ignoredCount, dirty, head, unfinished, warnings } =
      result
    const json = {
      root,
      gitDir,
      worktree,
      sessions: result.sessions.map(sessionJson),
      boundary: result.boundary ? timelineBoundary(result.boundary.timeline) : null,
      daemon: { running: false, pid: null, watching: false },
      store,
      durable,
      uncovered: uncovered.map(({ path, reason }) => ({ ...showPath(path === '' ? '.' : path), reason })),
      ignoredCount,
      dirty,
      git: { head: head.head, branch: head.branch, busy: head.busy },
      unfinished,
      warnings,
    }
    return { json, text: statusText(result, colors), paged: true, warnings }
  } finally {
    closeContext(context)
  }
}

export default command
