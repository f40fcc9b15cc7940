import { pull } from '../../ops/transport/transport.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { remoteName } from '../arguments.ts'
import type { Command } from '../command.ts'
import { receivedOutput } from '../departure.ts'

const command: Command = async ({ env, args, cwd }) => {
  const remote = remoteName(args)
  const context = await openContext(env, cwd, { create: true })
  try {
    return receivedOutput(await pull(context, remote), { remote })
  } finally {
    closeContext(context)
  }
}

export default command
