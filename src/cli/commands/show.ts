import { CkptError } from '../../core/errors.ts'
import { originOf } from '../../ops/committed/origins.ts'
import { show } from '../../ops/history/history.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { checkpointJson, showJson } from '../../results/json.ts'
import { place, text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { originText, showText } from '../present/turns.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const context = await openForReading(env, cwd).catch((error: unknown) => {
    if (error instanceof CkptError && (error.code === 'NOT_INITIALIZED' || error.code === 'BAD_ROOT')) place(args, 'id') // no commit is meant
    throw error
  })
  try {
    const found = await show(context, String(args.id), text(args, 'session')).catch(async (error: unknown) => {
      // No turn and no checkpoint: it may be a commit of the person's own.
      if (!(error instanceof CkptError && (error.code === 'NOT_FOUND' || error.code === 'USAGE'))) throw error
      const origin = await originOf(context, String(args.id))
      if (origin === null) throw error
      return origin
    })
    if ('recorded' in found) {
      const { commit, time, pending, checkpoints } = found
      const shown = checkpoints.map((one) =>
        checkpointJson(one, { beside: null, since: null, durable: context.store.durable }),
      )
      const { warnings } = context
      return {
        json: { commit: { id: commit, time, pending, checkpoints: shown }, warnings },
        text: originText(found, colors),
        warnings,
        paged: true,
      }
    }
    const result = found
    return {
      json: showJson(result, context.store),
      text: showText(result, { c: colors, now: env.now() }),
      warnings: result.warnings,
      paged: true,
    }
  } finally {
    closeContext(context)
  }
}

export default command
