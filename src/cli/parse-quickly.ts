/**
 * The commands that an agent waits for are parsed by Node's own parser from the same option table, for loading yargs
 * costs as much as starting Node again. Whatever is not plain goes to yargs, which has the words for it.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { Arguments, Parsed } from './command.ts'
import { type CommandEntry, commands } from './commands.ts'

const QUICK = new Set(['mark'])

const globals = {
  json: { type: 'boolean', default: false },
  quiet: { type: 'boolean', default: false },
  color: { type: 'boolean', default: true },
  daemon: { type: 'boolean', default: true },
  cwd: { type: 'string' },
} as const

/** Null: yargs is to say what this means. */
export async function parseQuickly(argv: readonly string[]): Promise<Parsed | null> {
  const entry = QUICK.has(argv[0] ?? '') ? commands.find(({ usage }) => usage.split(' ')[0] === argv[0]) : undefined
  const args = entry ? readArguments(entry, argv.slice(1)) : null
  return entry && args ? { kind: 'run', args, command: await entry.load() } : null
}

function readArguments(entry: CommandEntry, argv: string[]): Arguments | null {
  const own = Object.entries(entry.options ?? {})
  const names = own.filter(([, option]) => option.positional).map(([name]) => name)
  const options: NonNullable<ParseArgsConfig['options']> = { ...globals }
  for (const [name, option] of own) {
    if (!option.positional) options[name] = { type: option.type === 'boolean' ? 'boolean' : 'string', multiple: true }
  }
  let parsed: ReturnType<typeof parseArgs>
  try {
    parsed = parseArgs({ args: argv, options, allowPositionals: true, allowNegative: true, strict: true })
  } catch {
    return null // yargs words the error
  }
  if (parsed.positionals.length !== names.length) return null
  const args = { ...parsed.values } as unknown as Arguments
  for (const [i, name] of names.entries()) args[name] = parsed.positionals[i]
  for (const [name, option] of own) {
    const given = args[name] as unknown[] | undefined
    if (option.positional || given === undefined) {
      if (option.demandOption && given === undefined) return null
    } else if (!option.array) args[name] = given.length === 1 ? given[0] : given
  }
  return args
}
