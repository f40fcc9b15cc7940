import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { changeJson } from '../../results/json.ts'
import { conflictMode, count, exclusive, flag, text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { changeText } from '../present/changes.ts'

const command: Command = async ({ env, args, cwd, colors, arrived, backends }) => {
  exclusive(args, ['turns', 'all'])
  const mode = conflictMode(args)
  const [session, turns] = [text(args, 'session'), count(args, 'turns')]
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  try {
    const options = {
      mode,
      ...(session === undefined ? {} : { session }),
      ...(turns === undefined ? {} : { turns }),
      all: flag(args, 'all'),
      dryRun: flag(args, 'dry-run'),
    }
    const result = await backends.redo(context, options, { arrived })
    return {
      json: changeJson(result),
      text: changeText('redo', result, { colors, said: { session, cwd: args.cwd } }),
      paged: result.dryRun,
      warnings: result.warnings,
    }
  } finally {
    closeContext(context)
  }
}

export default command
