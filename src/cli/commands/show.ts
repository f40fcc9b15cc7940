import { closeContext } from '../../ops/context.ts'
import { show } from '../../ops/history.ts'
import { originOf } from '../../ops/origins.ts'
import { openForReading } from '../../ops/reading.ts'
import { showJson } from '../../results/json.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { showText } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const context = await openForReading(env, cwd)
  try {
    const result = await show(context, String(args.id), text(args, 'session'))
    return {
      json: showJson(result, { durable: context.store.durable, worktree: context.place.worktreeId }),
      text: showText(result, { c: colors, now: env.now() }),
      warnings: result.warnings,
    }
  } finally {
    closeContext(context)
  }
}

export default command
