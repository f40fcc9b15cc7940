import { agentFindings } from '../../agents/findings.ts'
import { AGENT_NAMES, findAgent } from '../../agents/registry.ts'
import { EXIT_CODES } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { hooksFinding } from '../../githooks/status.ts'
import { doctor } from '../../ops/doctor/doctor.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { flag } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const fix = flag(args, 'fix')
  const context = await openContext(env, cwd, { reading: true, mend: fix, whole: true })
  try {
    const findings = await doctor(context, { fix, breakLock: flag(args, 'break-lock') })
    if (context.repository) findings.push(await hooksFinding(context))
    const places = { home: env.home, vars: env.vars, root: context.worktree.root }
    const agents = (await Promise.all(AGENT_NAMES.map(findAgent))).filter((agent) => agent !== null)
    findings.push(...(await agentFindings(env, agents, places)))
    const rows = findings.map(({ name, ok, detail, mend, fixed, advice }) => [
      fixed ? colors.green('fixed') : ok ? colors.green('ok') : advice ? colors.yellow('note') : colors.red('bad'),
      name,
      `${printable(detail)}${mend ? `  → ${mend}` : ''}`,
    ])
    const { warnings } = context
    const bad = findings.filter(({ ok, advice }) => !ok && !advice)
    const code = bad.every(({ name }) => name === 'lock') ? 'LOCKED' : 'DAMAGED'
    const message = bad.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
    return {
      json: { findings, warnings },
      text: table(rows),
      paged: true,
      warnings,
      ...(bad.length === 0 ? {} : { ok: false, exitCode: EXIT_CODES[code], error: { code, message } }),
    }
  } finally {
    closeContext(context)
  }
}

export default command
