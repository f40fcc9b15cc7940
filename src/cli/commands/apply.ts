import { apply } from '../../ops/apply.ts'
import { closeContext, openContext } from '../../ops/context.ts'
import { readToken } from '../../ops/token.ts'
import type { Command } from '../command.ts'
import { changeJson } from '../present/json.ts'
import { changeText } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors, arrived }) => {
  const token = String(args.token)
  readToken(token) // a wrong one is refused before anything is looked at
  const context = await openContext(env, cwd, { create: true, forgiving: true })
  try {
    const { verb, result } = await apply(context, token, arrived)
    return { json: changeJson(result), text: changeText(verb, result, colors), warnings: result.warnings }
  } finally {
    closeContext(context)
  }
}

export default command
