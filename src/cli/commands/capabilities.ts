import { latestSession } from '../../git/history.ts'
import { capabilitiesOf } from '../../ops/capabilities.ts'
import { closeContext } from '../../ops/context.ts'
import { openForReading } from '../../ops/reading.ts'
import { readRefs } from '../../ops/sessions.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'
import { table } from '../present/text.ts'

const command: Command = async ({ env, args, cwd, colors }) => {
  const context = await openForReading(env, cwd)
  try {
    const wanted = text(args, 'session')
    // An unknown session has the default backend's.
    const result = capabilitiesOf(wanted && wanted !== 'latest' ? wanted : latestSession(await readRefs(context)))
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
