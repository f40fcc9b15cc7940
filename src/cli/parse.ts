/** The command line as yargs sees it: parsing and help. */
import type { Argv } from 'yargs'
import yargs from 'yargs/yargs'
import { ownWords } from '../core/own-words.ts'
import { VERSION } from '../core/version.ts'
import type { Arguments, Parsed } from './command.ts'
import { type CommandEntry, usageLine } from './command-entry.ts'
import { commands } from './commands.ts'
import { mistake, NO_COMMAND } from './mistake.ts'

interface Chosen {
  args: Arguments
  entry: CommandEntry
}

/** The heading of what every command takes. */
export const OF_EVERY_COMMAND = 'Options of every command:'

/** Columns of help, at most and at least; the reference has the former. */
const [WIDEST, NARROWEST] = [100, 40]

/**
 * `shown`: the commands and options that help names; all of them are understood. `columns`: of the terminal that help is
 * for. @throws CkptError USAGE
 */
export async function parse(
  argv: readonly string[],
  { shown = commands, columns = WIDEST }: { shown?: readonly CommandEntry[]; columns?: number | undefined } = {},
): Promise<Parsed> {
  let chosen: Chosen | null = null
  const tree = yargs([], '/') // wherever we are, which may be gone
    .scriptName('ckpt')
    .usage('ckpt: undo and redo for the work that coding agents do in a worktree\n\nUsage: $0 COMMAND [options]')
    .parserConfiguration({
      'populate--': true,
      'parse-positional-numbers': false,
      'duplicate-arguments-array': true,
      'camel-case-expansion': false,
      'dot-notation': false, // else --dry-run.x is --dry-run with a value that is none, and nothing is dry
    })
    .option('json', { type: 'boolean', default: false, describe: 'one JSON document on standard output' })
    .option('cwd', { type: 'string', requiresArg: true, describe: 'run as if started in this directory' })
    .option('color', { type: 'boolean', default: true, describe: 'colours on a terminal (--no-color)' })
    .option('quiet', { type: 'boolean', default: false, describe: 'print nothing but data and errors' })
    .option('daemon', { type: 'boolean', default: true, describe: 'ask the daemon if it runs (--no-daemon)' })
    .version(VERSION)
    .help()
    .alias('help', 'h')
    .group(['json', 'cwd', 'color', 'quiet', 'daemon', 'version', 'help'], OF_EVERY_COMMAND)
    .strict()
    .demandCommand(1, NO_COMMAND)
    .exitProcess(false)
    .wrap(Math.min(WIDEST, Math.max(NARROWEST, columns)))
  for (const entry of commands) {
    const { usage, describe, options, examples } = entry
    const visible = shown.find((one) => one.usage === usage)
    tree.command(
      usage,
      (visible ? describe : false) as string, // false hides it: yargs has an overload for each of the two
      (one: Argv) => {
        one.usage(`$0 ${usageLine(entry)}\n\n${describe}`)
        for (const [name, option] of Object.entries(options ?? {})) {
          if (option.positional) one.positional(name, { describe: option.describe, type: 'string' })
          else one.option(name, visible && !(name in (visible.options ?? {})) ? { ...option, hidden: true } : option)
        }
        // Its own before those of every command.
        const own = Object.entries(options ?? {}).filter(([, { positional }]) => !positional)
        if (own.length > 0)
          one.group(
            own.map(([name]) => name),
            'Options:',
          )
        for (const [line, what] of examples ?? []) one.example(line, what)
        if (!visible) one.epilogue('The session that is meant cannot do this: ckpt capabilities')
        return one
      },
      (args) => {
        chosen = { args: args as unknown as Arguments, entry }
      },
    )
  }
  // To yargs a name that every object has is an option that conflicts with others.
  const strange = ownWords(argv)
    .map((word) => /^--(?:no-)?([^=]+)/.exec(word)?.[1])
    .find((name) => name !== undefined && name in Object.prototype)
  if (strange !== undefined) throw mistake(argv, `Unknown argument: ${strange}`)
  const off = offThatHasAValue(argv)
  if (off !== null) throw mistake(argv, `Unknown argument: ${off}`)
  if (isOfNoCommand(argv)) return parse(withoutHelp(argv), { shown, columns })
  const odd = neitherOnNorOff(argv)
  if (odd) throw mistake(argv, `${odd.name} is true or false, not ${JSON.stringify(odd.value)}`)
  const text = await new Promise<string>((resolve, reject) => {
    tree.parse([...argv], {}, (error: Error | undefined, _args: unknown, output: string) => {
      if (error) reject(mistake(argv, error.message.split('\n')[0]!))
      else resolve(output)
    })
  })
  const run = chosen as Chosen | null
  if (text !== '' || !run) return { kind: 'help', text }
  if (run.entry.rest === undefined && run.args['--']?.length) throw mistake(argv, 'Nothing comes after -- here.')
  return { kind: 'run', args: run.args, command: await run.entry.load() }
}

const isHelp = (word: string) => word === '--help' || word === '-h'

/** Help of what is no command: what is asked is whether there is one. */
function isOfNoCommand(argv: readonly string[]): boolean {
  const [name = '-'] = argv
  return (
    ownWords(argv).some(isHelp) && !name.startsWith('-') && !commands.some(({ usage }) => usage.split(' ')[0] === name)
  )
}

function withoutHelp(argv: readonly string[]): string[] {
  const own = ownWords(argv)
  return [...own.filter((word) => !isHelp(word)), ...argv.slice(own.length)]
}

/** `--no-session`: to yargs the session is "false" then. */
function offThatHasAValue(argv: readonly string[]): string | null {
  const { options = {} } = commands.find(({ usage }) => usage.split(' ')[0] === argv[0]) ?? {}
  for (const word of ownWords(argv)) {
    const [, off, name = ''] = /^--(no-([^=]+))/.exec(word) ?? []
    if (off === undefined || Object.hasOwn(options, off)) continue
    if (name === 'cwd' || (Object.hasOwn(options, name) && options[name]!.type !== 'boolean')) return off
  }
  return null
}

/** A switch with a value that yargs would take for off without a word: `--dry-run=yes` is to be no undo in earnest. */
function neitherOnNorOff(argv: readonly string[]): { name: string; value: string } | null {
  const { options = {} } = commands.find(({ usage }) => usage.split(' ')[0] === argv[0]) ?? {}
  const switches = new Set(['json', 'color', 'quiet', 'daemon', 'version', 'help', 'h'])
  for (const [name, { type, alias }] of Object.entries(options)) {
    if (type !== 'boolean') continue
    switches.add(name)
    if (typeof alias === 'string') switches.add(alias)
  }
  for (const word of ownWords(argv)) {
    const [, name, option, value] = /^(--(?:no-)?([^=]+)|-\w)=(.*)$/s.exec(word) ?? []
    if (name === undefined || value === 'true' || value === 'false') continue
    if (switches.has(option ?? name.slice(1))) return { name, value: value! }
  }
  return null
}
