import { openForReading } from '../../ops/recovery/reading.ts'
import { push } from '../../ops/transport/transport.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { flag, remoteName } from '../arguments.ts'
import type { Command } from '../command.ts'
import { announcing, sentOutput } from '../departure.ts'

const command: Command = async ({ env, args, cwd }) => {
  const remote = remoteName(args)
  const context = await openForReading(env, cwd)
  try {
    const confirm = announcing(env, args, 'Sends')
    const sent = await push(context, remote, { withPrompts: flag(args, 'with-prompts'), confirm })
    return sentOutput(sent, { remote }, 'Sent')
  } finally {
    closeContext(context)
  }
}

export default command
