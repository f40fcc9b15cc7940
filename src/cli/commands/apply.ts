import { CkptError } from '../../core/errors.ts'
import { readToken } from '../../ops/change/read-token.ts'
import { sessionOf } from '../../ops/change/token.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { changeJson } from '../../results/json.ts'
import { asAsked } from '../again.ts'
import type { Command } from '../command.ts'
import { changeText } from '../present/changes.ts'

const command: Command = async ({ env, args, cwd, colors, arrived, backends }) => {
  const token = readToken(String(args.token))
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  try {
    const result = await backends.apply(context, token, { arrived })
    const verb = token.op === 'restore' && 'move' in token.options ? 'switch' : token.op
    return {
      json: changeJson(result),
      text: changeText(verb, result, { colors, said: { session: sessionOf(token), cwd: args.cwd } }),
      warnings: result.warnings,
    }
  } catch (error) {
    throw error instanceof CkptError ? asAsked(error, { token, root: context.worktree.root }) : error
  } finally {
    closeContext(context)
  }
}

export default command
