import { restore } from '../../ops/change/restore.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { changeJson } from '../../results/json.ts'
import { flag, place, text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { changeText } from '../present/changes.ts'

const command: Command = async ({ env, args, cwd, colors, arrived, backends }) => {
  const [id, session] = [place(args, 'id')!, text(args, 'session')]
  const context = await openContext(env, cwd, { create: true })
  try {
    const options = {
      id,
      ...(session === undefined ? {} : { session }),
      move: true,
      force: flag(args, 'force'),
      dryRun: flag(args, 'dry-run'),
    }
    await backends.require(context, session, ['supportsFork'])
    const result = await restore(context, options, { arrived })
    return {
      json: changeJson(result),
      text: changeText('switch', result, { colors, said: { cwd: args.cwd } }),
      paged: result.dryRun,
      warnings: result.warnings,
    }
  } finally {
    closeContext(context)
  }
}

export default command
