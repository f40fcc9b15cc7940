import { hook } from '../../agents/hook.ts'
import { startOnDemand } from '../../daemon/life.ts'
import { text } from '../arguments.ts'
import type { Command } from '../command.ts'

const command: Command = async ({ env, args, arrived }) => {
  const shell = args.shell === true
  let said = false
  const say = (answer: string | null) => {
    if (answer !== null) env.stdout.write(`${answer}\n`)
  }
  const answer = await hook(env, {
    name: String(args.name),
    event: args.event === undefined ? undefined : String(args.event),
    arrived: arrived - (Number(args.waited) || 0),
    handed: text(args, 'handed'),
    gaveUp: (known) => {
      say(known)
      said = true
      env.exit(0) // what hangs is left behind
    },
    recorded: (context, { directories }) => {
      if (args.daemon) startOnDemand(context, directories, { anyway: shell })
    },
  })
  if (!said) say(answer)
  return { json: {}, text: '' }
}

export default command
