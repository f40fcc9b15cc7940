import { snapshotNow } from '../../ops/snapshot-now.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { markJson } from '../../results/json.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { markText } from '../present/turns.ts'

const command: Command = async ({ env, args, cwd, arrived }) => {
  const context = await openContext(env, cwd, { create: 'unless-off' })
  try {
    const result = await snapshotNow(context, text(args, 'message'), arrived)
    return {
      json: markJson(result, context.store.durable),
      text: markText('snapshot', result),
      warnings: result.warnings,
    }
  } finally {
    closeContext(context)
  }
}

export default command
