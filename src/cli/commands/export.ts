import { openForReading } from '../../ops/recovery/reading.ts'
import { exportBundle } from '../../ops/transport/transport.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { absolute, fileName, flag } from '../arguments.ts'
import type { Command } from '../command.ts'
import { announcing, sentOutput } from '../departure.ts'

const command: Command = async ({ env, args, cwd }) => {
  const file = absolute(cwd, fileName(args))
  const context = await openForReading(env, cwd)
  try {
    const confirm = announcing(env, args, 'Exports')
    const sent = await exportBundle(context, file, { withPrompts: flag(args, 'with-prompts'), confirm })
    return sentOutput(sent, { file }, 'Exported')
  } finally {
    closeContext(context)
  }
}

export default command
