/** One row of the table of commands, and the words it is made of. */
import type { Options } from 'yargs'
import type { Capability } from '../core/capabilities.ts'
import type { Command } from './command.ts'

export type Option = Options & {
  positional?: boolean
  freeText?: boolean
  needs?: Capability
  /** What it may be, for completion. */
  words?: readonly string[]
}

export interface CommandEntry {
  usage: string
  describe: string
  /** What follows `--`, as the usage line shows it (empty: it does not); absent: nothing may. */
  rest?: string
  /** Where the session meant lacks it, help and completion leave the command out. */
  needs?: Capability
  /**
   * `freeText`: the next word is the value, even if it begins with a dash; not if it is another option's name. `needs`: as
   * for the command.
   */
  options?: Record<string, Option>
  examples?: [string, string][]
  load: () => Promise<Command>
}

/** How it is written, as help and docs/cli.md show it: `undo [options] [-- PATH…]`. */
export function usageLine({ usage, rest, options = {} }: CommandEntry): string {
  const hasOptions = Object.values(options).some(({ positional, hidden }) => !positional && !hidden)
  return [usage, ...(hasOptions ? ['[options]'] : []), ...(rest ? [rest] : [])].join(' ')
}

export const string = (describe: string): Options => ({ type: 'string', requiresArg: true, describe })
/** What others made up: it may begin with a dash. */
export const anyText = (describe: string) => ({ ...string(describe), freeText: true })
export const boolean = (describe: string): Options => ({ type: 'boolean', describe })
export const id = (describe: string) => ({ positional: true, describe })
/** An argument that is one of these words. */
export const oneWord = (...words: string[]) => ({
  ...id(words.join(', ').replace(/, (\S+)$/, ' or $1')),
  words,
})

export const session = anyText('the session: its id, a unique prefix, or `latest`')
export const conflicts = {
  merge: boolean('write conflict markers where both sides changed the same lines'),
  force: boolean('take the other state; the safety checkpoint keeps yours'),
  'skip-conflicts': boolean('leave conflicting paths as they are'),
}
export const dryRun = boolean('print the plan, change nothing')
export const sending = {
  'with-prompts': boolean('the text of prompts too'),
  yes: boolean('do not ask when files look like secrets'),
}
