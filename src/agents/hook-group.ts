/** The shape that Claude Code's hooks have, and those of the agents that took it over: a list of groups for each event. */
import * as z from 'zod/mini'

export function hookGroup(command: string, more: { matcher?: string; timeout?: number; name?: string }): unknown {
  const { matcher, timeout, name } = more
  return {
    ...(matcher === undefined ? {} : { matcher }),
    hooks: [
      {
        ...(name === undefined ? {} : { name }),
        type: 'command',
        command,
        ...(timeout === undefined ? {} : { timeout }),
      },
    ],
  }
}

const group = z.looseObject({ hooks: z.array(z.unknown()) })
const hook = z.looseObject({ command: z.string() })

export function commandsInGroup(entry: unknown): string[] {
  const parsed = group.safeParse(entry)
  if (!parsed.success) return []
  return parsed.data.hooks.flatMap((one) => {
    const found = hook.safeParse(one)
    return found.success ? [found.data.command] : []
  })
}
