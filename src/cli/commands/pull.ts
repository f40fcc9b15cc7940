import { pull } from '../../ops/transport/transport.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import type { Command } from '../command.ts'
import { receivedOutput } from '../departure.ts'

const command: Command = async ({ env, args, cwd }) => {
  const context = await openContext(env, cwd, { create: true })
  try {
    const remote = String(args.remote)
    return receivedOutput(await pull(context, remote), { remote })
  } finally {
    closeContext(context)
  }
}

export default command
