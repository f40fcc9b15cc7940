import { apply } from '../../ops/apply.ts'
import { closeContext, openContext } from '../../ops/context.ts'
import type { RedoOptions } from '../../ops/redo.ts'
import { type RestoreOptions, restore } from '../../ops/restore.ts'
import { readToken } from '../../ops/token.ts'
import type { UndoOptions } from '../../ops/undo.ts'
import type { Command } from '../command.ts'
import { changeJson } from '../present/json.ts'
import { changeText } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors, arrived, backends }) => {
  const { op, options, hash } = readToken(String(args.token))
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  try {
    const how = { arrived, expected: hash }
    const wanted = { ...options, dryRun: false }
    const { move, session } = wanted as Partial<RestoreOptions>
    if (move) await backends.require(context, session, ['supportsFork'])
    const verb = move ? 'switch' : op
    const result =
      op === 'undo'
        ? await backends.undo(context, wanted as UndoOptions, how)
        : op === 'redo'
          ? await backends.redo(context, wanted as RedoOptions, how)
          : await restore(context, wanted as RestoreOptions, how)
    return { json: changeJson(result), text: changeText(verb, result, colors), warnings: result.warnings }
  } finally {
    closeContext(context)
  }
}

export default command
