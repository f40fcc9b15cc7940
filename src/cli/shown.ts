/** What help, completion and the live view show: what the session meant can do, and nothing else. */
import type { Backends } from '../backends/backends.ts'
import type { Capability } from '../core/capabilities.ts'
import { valueIn } from '../core/own-words.ts'
import type { Env } from '../env.ts'
import { closeContext, openContext } from '../ops/worktree/context.ts'
import type { CommandEntry } from './command-entry.ts'
import { commands } from './commands.ts'

/** Commands without those, and without those options, that need what is not there. */
export function shownCommands(can: (need: Capability) => boolean): CommandEntry[] {
  return commands
    .filter(({ needs }) => needs === undefined || can(needs))
    .map((entry) => ({
      ...entry,
      options: Object.fromEntries(
        Object.entries(entry.options ?? {}).filter(([, { needs }]) => needs === undefined || can(needs)),
      ),
    }))
}

/** What can be done where a command line was typed. Where that cannot be told (no worktree, a bad file), everything. */
export async function capabilitiesHere(
  env: Env,
  { cwd, words, backends }: { cwd: string; words: readonly string[]; backends: Backends },
): Promise<(need: Capability) => boolean> {
  try {
    const context = await openContext(env, cwd, { reading: true })
    try {
      const { capabilities } = await backends.capabilitiesOf(context, valueIn(words, 'session'))
      return (need) => capabilities[need]
    } finally {
      closeContext(context)
    }
  } catch {
    return () => true // help is given everywhere; what is wrong here is for the command itself to say
  }
}
