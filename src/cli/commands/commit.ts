import { printable, shown, showPath } from '../../core/paths.ts'
import { BEHIND, commit } from '../../ops/commit/commit.ts'
import { logHookError } from '../../ops/hook/log.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { text, words } from '../arguments.ts'
import type { Command } from '../command.ts'

const command: Command = async ({ env, args, cwd }) => {
  const [session, message] = [text(args, 'session'), words(args, 'message')]
  const context = await openContext(env, cwd, { create: true })
  try {
    const result = await commit(context, {
      ...(session === undefined ? {} : { session }),
      ...(message === undefined ? {} : { message }),
      quiet: env.vars[BEHIND] === '1',
    })
    const { commit: made, files, turns, warnings, none } = result
    const was = 'what the visible turns of the session changed was committed, or is left out.'
    const said =
      made === null
        ? `Nothing to commit${none === null ? `: ${was}` : `. ${none}`}`
        : [
            `Committed ${made.slice(0, 10)}: ${printable(result.message!.split('\n')[0]!)}`,
            ...files.map((path) => `  ${shown(path)}`),
          ].join('\n')
    const json = {
      session: result.session,
      commit: made,
      message: result.message,
      turns,
      files: files.map((path) => showPath(path)),
      warnings,
    }
    return { json, text: said, warnings }
  } catch (error) {
    if (env.vars[BEHIND] === '1') logHookError(env, context.store.worktreeDir, { where: 'commit.auto', error })
    throw error
  } finally {
    closeContext(context)
  }
}

export default command
