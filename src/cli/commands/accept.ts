import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { sameAs } from '../again.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'

const command: Command = async ({ env, args, cwd, backends }) => {
  const context = await openContext(env, cwd, { create: true })
  try {
    const wanted = text(args, 'session')
    const { session, abandoned, warnings } = await backends.accept(context, wanted)
    const shown =
      abandoned.length === 0
        ? 'Nothing is undone here.'
        : `Kept. ${abandoned.length === 1 ? `Turn ${abandoned[0]} is` : `Turns ${abandoned.join(', ')} are`} abandoned now; the files can still be brought back: ckpt restore ${abandoned.at(-1)}${sameAs({ session: wanted, cwd: args.cwd })}`
    return { json: { session, abandoned, warnings }, text: shown, warnings }
  } finally {
    closeContext(context)
  }
}

export default command
