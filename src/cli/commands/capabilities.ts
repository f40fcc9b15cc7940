import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors, backends }) => {
  const context = await openForReading(env, cwd)
  try {
    const result = await backends.capabilitiesOf(context, text(args, 'session'))
    const rows = Object.entries(result.capabilities).map(([name, can]) => [
      can ? colors.green('yes') : colors.dim('no'),
      name,
    ])
    return { json: { ...result }, text: table(rows), paged: true }
  } finally {
    closeContext(context)
  }
}

export default command
