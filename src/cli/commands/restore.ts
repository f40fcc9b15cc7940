import { restore } from '../../ops/change/restore.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { changeJson } from '../../results/json.ts'
import { flag, givenPaths, place, text, worktreePaths } from '../arguments.ts'
import type { Command } from '../command.ts'
import { changeText } from '../present/changes.ts'

const command: Command = async ({ env, args, cwd, colors, arrived }) => {
  const [id, session] = [place(args, 'id')!, text(args, 'session')]
  const given = givenPaths(args['--'])
  const context = await openContext(env, cwd, { create: true })
  try {
    const paths = worktreePaths(context, cwd, given)
    const options = {
      id,
      ...(session === undefined ? {} : { session }),
      exact: flag(args, 'exact'),
      force: flag(args, 'force'),
      dryRun: flag(args, 'dry-run'),
      ...(paths.length > 0 ? { paths } : {}),
    }
    const result = await restore(context, options, { arrived })
    return {
      json: changeJson(result),
      text: changeText('restore', result, { colors, said: { cwd: args.cwd } }),
      paged: result.dryRun,
      warnings: result.warnings,
    }
  } finally {
    closeContext(context)
  }
}

export default command
