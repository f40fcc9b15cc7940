import { EXIT_CODES } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { closeContext, openContext } from '../../ops/context.ts'
import { verify } from '../../ops/verify.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const context = await openContext(env, cwd, { reading: true })
  try {
    const { checks, checkpoints, problems, pending, warnings } = await verify(context)
    const refused = args.pending === false && pending.length > 0
    if (refused) {
      const detail = `undone turns are pending in ${pending.map(printable).join(', ')}`
      checks.push({ name: 'pending', ok: false, detail })
      problems.push(`pending: ${detail}`)
    }
    const rows = checks.map(({ name, ok, detail }) => [
      ok ? colors.green('ok') : colors.red('bad'),
      name,
      printable(detail),
    ])
    const code = refused ? 'BOUNDARY_PENDING' : problems.length > 0 ? 'VERIFY_FAILED' : null
    return {
      json: { checks, checkpoints, problems, warnings },
      text: table(rows),
      paged: true,
      warnings,
      ok: code === null,
      ...(code === null ? {} : { exitCode: EXIT_CODES[code], error: { code, message: problems.join('; ') } }),
    }
  } finally {
    closeContext(context)
  }
}

export default command
