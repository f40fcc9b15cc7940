import { printable } from '../../core/paths.ts'
import { hooksFinding } from '../../githooks/status.ts'
import { closeContext, openContext } from '../../ops/context.ts'
import { doctor } from '../../ops/doctor.ts'
import { flag } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const context = await openContext(env, cwd)
  try {
    const findings = await doctor(context, { fix: flag(args, 'fix'), breakLock: flag(args, 'break-lock') })
    if (context.repository) findings.push(await hooksFinding(context))
    const rows = findings.map(({ name, ok, detail, mend, fixed }) => [
      fixed ? colors.green('fixed') : ok ? colors.green('ok') : colors.red('bad'),
      name,
      `${printable(detail)}${mend ? `  → ${mend}` : ''}`,
    ])
    const { warnings } = context
    return { json: { findings, warnings }, text: table(rows), paged: true, warnings }
  } finally {
    closeContext(context)
  }
}

export default command
