import { closeContext, openContext } from '../../ops/context.ts'
import type { UndoOptions } from '../../ops/undo.ts'
import { changeJson } from '../../results/json.ts'
import { conflictMode, count, exclusive, flag, text, worktreePaths } from '../arguments.ts'
import type { Command } from '../command.ts'
import { changeText } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors, arrived, backends }) => {
  exclusive(args, ['turns', 'to', 'step', 'only'])
  const mode = conflictMode(args)
  const [session, to, only, turns] = [text(args, 'session'), text(args, 'to'), text(args, 'only'), count(args, 'turns')]
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  try {
    const options: UndoOptions = {
      mode,
      ...(session === undefined ? {} : { session }),
      ...(to === undefined ? {} : { to }),
      ...(only === undefined ? {} : { only }),
      ...(turns === undefined ? {} : { turns }),
      step: flag(args, 'step'),
      unclaimed: flag(args, 'unclaimed'),
      interrupt: flag(args, 'interrupt'),
      dryRun: flag(args, 'dry-run'),
      paths: worktreePaths(context, cwd, args['--'] ?? []),
    }
    const result = await backends.undo(context, options, { arrived })
    return { json: changeJson(result), text: changeText('undo', result, colors), warnings: result.warnings }
  } finally {
    closeContext(context)
  }
}

export default command
