import { findAgent } from '../../agents/registry.ts'
import type { ChangeResult } from '../../ops/change/change.ts'
import type { UndoOptions } from '../../ops/change/undo.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { changeJson } from '../../results/json.ts'
import { alone, conflictMode, count, exclusive, flag, givenPaths, place, text, worktreePaths } from '../arguments.ts'
import type { Command } from '../command.ts'
import { changeText } from '../present/changes.ts'

/** The files are back, the agent's conversation is not. */
async function conversation({ agent: name, session, messageId, dryRun, boundary }: ChangeResult): Promise<string[]> {
  // An id that is no plain word is none of the agent's own.
  if (dryRun || !boundary || !name || !/^[\w.-]+$/.test(session)) return []
  const how = (await findAgent(name))?.goBack?.({ session, messageId })
  return how === undefined ? [] : [`The conversation still has it: ${how}.`]
}

const command: Command = async ({ env, args, cwd, colors, arrived, backends }) => {
  exclusive(args, ['turns', 'to', 'step', 'only'])
  const mode = conflictMode(args)
  const [session, turns] = [text(args, 'session'), count(args, 'turns')]
  const [to, only] = [place(args, 'to'), alone(args, 'only')]
  const given = givenPaths(args['--'])
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
      paths: worktreePaths(context, cwd, given),
    }
    const result = await backends.undo(context, options, { arrived })
    const lines = [
      changeText('undo', result, { colors, said: { session, cwd: args.cwd } }),
      ...(await conversation(result)),
    ]
    return { json: changeJson(result), text: lines.join('\n'), paged: result.dryRun, warnings: result.warnings }
  } finally {
    closeContext(context)
  }
}

export default command
