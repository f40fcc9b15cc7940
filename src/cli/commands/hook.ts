import { hook } from '../../agents/hook.ts'
import type { Command } from '../command.ts'

const command: Command = async ({ env, args, arrived }) => {
  const event = args.event === undefined ? undefined : String(args.event)
  const answer = await hook(env, { name: String(args.name), event, arrived })
  if (answer !== null) env.stdout.write(`${answer}\n`)
  return { json: {}, text: '' }
}

export default command
