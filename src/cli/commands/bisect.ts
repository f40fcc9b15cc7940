import { describePrompt } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { promptReader } from '../../git/side-refs.ts'
import { bisect } from '../../ops/history/bisect.ts'
import { tellingLost } from '../../ops/record/prompts.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { readRefs } from '../../ops/worktree/sessions.ts'
import { sameAs } from '../again.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'

const command: Command = async ({ env, args, cwd }) => {
  const line = (args['--'] ?? []).map(String)
  if (line.length === 0 || line[0] === '')
    throw new CkptError('USAGE', 'Which command? Give it after `--`. Nothing was run.', {
      hints: ['ckpt bisect -- npm test'],
    })
  const context = await openForReading(env, cwd)
  try {
    const { session, turn, runs, found } = await bisect(context, { command: line, session: text(args, 'session') })
    const prompts = await promptReader(context.store, (await readRefs(context)).notes, tellingLost(context))
    const prompt = describePrompt(await prompts(found.before.id), found.before.time)
    const same = sameAs({ session: text(args, 'session'), cwd: args.cwd })
    const shown = `Turn ${turn} of session ${printable(session)} is the first after which it fails (${runs} runs): ${printable(prompt)}\nWhat it did: ckpt diff ${turn}${same}   Take it back alone: ckpt undo --only ${turn}${same}`
    return {
      json: { turn, runs, session, prompt, warnings: context.warnings },
      text: shown,
      warnings: context.warnings,
      paged: true,
    }
  } catch (error) {
    if (error instanceof CkptError) error.warnings = [...context.warnings, ...error.warnings]
    throw error
  } finally {
    closeContext(context)
  }
}

export default command
