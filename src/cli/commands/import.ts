import { importBundle } from '../../ops/transport/transport.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { absolute, fileName } from '../arguments.ts'
import type { Command } from '../command.ts'
import { receivedOutput } from '../departure.ts'

const command: Command = async ({ env, args, cwd }) => {
  const file = absolute(cwd, fileName(args))
  const context = await openContext(env, cwd, { create: true })
  try {
    return receivedOutput(await importBundle(context, file), { file })
  } finally {
    closeContext(context)
  }
}

export default command
