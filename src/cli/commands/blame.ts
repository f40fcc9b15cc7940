import { printable } from '../../core/paths.ts'
import { blame } from '../../ops/history/blame.ts'
import { openForReading } from '../../ops/recovery/reading.ts'
import { closeContext } from '../../ops/worktree/context.ts'
import { givenPaths, text, worktreePaths } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const given = givenPaths([String(args.file)])
  const context = await openForReading(env, cwd)
  try {
    const [path] = worktreePaths(context, cwd, given)
    const lines = await blame(context, path!, text(args, 'session'))
    const { warnings } = context
    const several = new Set(lines.flatMap(({ session }) => session ?? [])).size > 1
    const rows = lines.map(({ line, text: content, turn, session, prompt }) => [
      turn === null ? colors.dim('-') : colors.bold(String(turn)),
      ...(several ? [colors.dim(printable((session ?? '').slice(0, 12)))] : []),
      colors.dim(printable((prompt ?? '').slice(0, 30))),
      colors.dim(String(line)),
      content.split('\t').map(printable).join('  '),
    ])
    return { json: { lines, warnings }, text: table(rows), warnings, paged: true }
  } finally {
    closeContext(context)
  }
}

export default command
