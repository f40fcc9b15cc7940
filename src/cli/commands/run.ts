import { CkptError } from '../../core/errors.ts'
import { parseSessionId } from '../../core/ids.ts'
import { run } from '../../ops/run.ts'
import { markJson } from '../../results/json.ts'
import { ofPlace } from '../again.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'

const command: Command = async ({ env, args, cwd }) => {
  const line = args['--'] ?? []
  if (line.length === 0 || line[0] === '')
    throw new CkptError('USAGE', 'Which command? Give it after `--`. Nothing was run.', {
      hints: ['ckpt run -- COMMAND'],
    })
  const given = { session: text(args, 'session'), text: text(args, 'text') }
  const { exitCode, before, after } = await run(env, {
    ...(given.session === undefined ? {} : { session: parseSessionId(given.session) }),
    ...(given.text === undefined ? {} : { text: given.text }),
    command: line.map(String),
    cwd,
    checkpoints: args.checkpoints !== false,
    commit: args.commit !== false,
    json: args.json,
  })
  const last = after ?? before
  const at = ofPlace(args.cwd)
  if (after?.checkpoint && !after.checkpoint.late && env.stderr.isTTY && !args.json && !args.quiet)
    env.stderr.write(
      `ckpt: Turn ${after.turn} is recorded. What it did: ckpt diff${at}   Take it back: ckpt undo${at}\n`,
    )
  const warnings = [...new Set([...(before?.warnings ?? []), ...(after?.warnings ?? [])])]
  return {
    json: { ...(last ? markJson(last, true) : { checkpoint: null, turn: null }), warnings, exitCode },
    text: '',
    warnings,
    exitCode,
  }
}

export default command
