/** The shape that Claude Code's hooks have, and those of the agents that took it over: a list of groups for each event. */
import * as z from 'zod/mini'

export interface HookFields {
  matcher?: string
  timeout?: number
  name?: string
  /** Claude Code goes on without waiting for it. */
  async?: true
}

export function hookGroup(command: string, { matcher, ...fields }: HookFields): unknown {
  const { timeout, name, async } = fields
  return {
    ...(matcher === undefined ? {} : { matcher }),
    hooks: [
      {
        ...(name === undefined ? {} : { name }),
        type: 'command',
        command,
        ...(timeout === undefined ? {} : { timeout }),
        ...(async ? { async } : {}),
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
