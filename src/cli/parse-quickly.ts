/**
 * Plain command lines are parsed by Node's own parser from the same option table, for loading yargs costs as much as
 * starting Node again. Whatever is not plain (help, a mistake) goes to yargs, which has the words for it.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { wordsBefore } from '../core/own-words.ts'
import type { Arguments, Parsed } from './command.ts'
import type { CommandEntry, Option } from './command-entry.ts'
import { commands } from './commands.ts'

const globals = {
  json: { type: 'boolean', default: false },
  quiet: { type: 'boolean', default: false },
  color: { type: 'boolean', default: true },
  daemon: { type: 'boolean', default: true },
  cwd: { type: 'string' },
} as const

/**
 * `--text "- a list"` is `--text="- a list"`: a prompt may begin with a dash, and so may an id that an agent made up. It is
 * not forgotten before the next option.
 */
export function joinFreeText(argv: readonly string[]): string[] {
  const names = new Map<string, string>()
  const options = Object.entries(entryOf(argv)?.options ?? {})
  const known = new Set([
    ...[...Object.keys(globals), 'help', ...options.map(([name]) => name)].flatMap((name) => [
      `--${name}`,
      `--no-${name}`,
    ]),
    ...options.flatMap(([, { alias }]) => (typeof alias === 'string' ? [`-${alias}`] : [])),
  ])
  for (const [name, option] of options) {
    if (!option.freeText) continue
    names.set(`--${name}`, name)
    if (typeof option.alias === 'string') names.set(`-${option.alias}`, name)
  }
  const joined: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!
    if (word === '--') return [...joined, ...argv.slice(i)]
    const name = names.get(word)
    const value = argv[i + 1]
    if (name === undefined || value === undefined || value === '--' || known.has(value)) joined.push(word)
    else {
      joined.push(`--${name}=${value}`)
      i++
    }
  }
  return joined
}

/** Undefined: no command has that name. */
export const entryOf = (argv: readonly string[]) => commands.find(({ usage }) => usage.split(' ')[0] === argv[0])

/** `ckpt help undo` is `ckpt undo --help`; of a command that is not there it is said that it is not. */
export function helpWords(argv: readonly string[]): readonly string[] {
  const [help, ...words] = argv
  const at = wordsBefore(words)
  const name = words[at]
  if (help !== 'help' || name === undefined || name.startsWith('-')) return argv
  return entryOf([name]) ? [name, '--help', ...words.toSpliced(at, 1)] : [name]
}

/** Null: yargs is to say what this means. */
export async function parseQuickly(argv: readonly string[]): Promise<Parsed | null> {
  const entry = entryOf(argv)
  const args = entry ? readArguments(entry, argv.slice(1)) : null
  return entry && args ? { kind: 'run', args, command: await entry.load() } : null
}

function readArguments(entry: CommandEntry, given: string[]): Arguments | null {
  // Where the command has nothing of its own to follow `--`, that only ends the options.
  const dashes = entry.rest === undefined ? -1 : given.indexOf('--')
  const argv = dashes < 0 ? given : given.slice(0, dashes)
  const own = Object.entries<Option>({ cwd: globals.cwd, ...entry.options })
  const names = own.filter(([, option]) => option.positional).map(([name]) => name)
  const needed = entry.usage.split('<').length - 1
  const options: NonNullable<ParseArgsConfig['options']> = { ...globals }
  for (const [name, option] of own) {
    if (option.positional) continue
    const type = option.type === 'boolean' ? 'boolean' : 'string'
    options[name] = { type, multiple: true, ...(typeof option.alias === 'string' ? { short: option.alias } : {}) }
  }
  let parsed: ReturnType<typeof parseArgs>
  try {
    parsed = parseArgs({ args: argv, options, allowPositionals: true, allowNegative: true, strict: true })
  } catch {
    return null // yargs words the error
  }
  if (parsed.positionals.length < needed || parsed.positionals.length > names.length) return null
  const args = { ...parsed.values } as unknown as Arguments
  for (const [i, name] of names.entries()) if (i < parsed.positionals.length) args[name] = parsed.positionals[i]
  if (dashes >= 0) args['--'] = given.slice(dashes + 1)
  for (const [name, option] of own) {
    if (option.positional) continue
    const values = args[name] as unknown[] | undefined
    if (values === undefined) {
      if (option.demandOption) return null
      if (option.default !== undefined) args[name] = option.default
    } else if (option.type === 'boolean') args[name] = values.at(-1)
    else if (values.some((value) => typeof value !== 'string')) return null
    else if (!option.array) args[name] = values.length === 1 ? values[0] : values
  }
  return args
}
