/** The program: the tree of commands, each imported when it runs; the only place that catches, and that knows exit codes. */
import pc from 'picocolors'
import { Backends } from '../backends/backends.ts'
import { CkptError } from '../core/errors.ts'
import { jsonDocument } from '../core/json-document.ts'
import { isOn, ownWords } from '../core/own-words.ts'
import { printable } from '../core/paths.ts'
import type { Env } from '../env.ts'
import { besideError, errorJson, toCkptError } from '../results/errors.ts'
import { again } from './again.ts'
import { text } from './arguments.ts'
import type { Arguments, Output, Parsed } from './command.ts'
import { showPaged } from './pager.ts'
import { entryOf, helpWords, joinFreeText, parseQuickly } from './parse-quickly.ts'
import { showProgress } from './progress.ts'
import { codeOnceSaid, columnsIn, listen, type Unsaid } from './streams.ts'

/** Runs one command line; the result is the exit code. Standard output is data, standard error is prose. */
export async function runProgram(
  argv: readonly string[],
  env: Env,
  backends: Backends = new Backends(),
): Promise<number> {
  const unsaid = listen(env)
  const code = await carryOut(argv, env, { backends, unsaid })
  return codeOnceSaid(env, { argv, code, unsaid })
}

/** Loads what a command line runs, and does nothing of it. */
export async function loadFor(argv: readonly string[]): Promise<void> {
  const words = joinFreeText(helpWords(argv))
  if (!(await parseQuickly(words))) await Promise.all([import('./parse.ts'), entryOf(words)?.load()])
}

async function carryOut(
  argv: readonly string[],
  env: Env,
  { backends, unsaid }: { backends: Backends; unsaid: Unsaid },
): Promise<number> {
  const arrived = env.monotonic()
  try {
    if (env.platform === 'win32')
      throw new CkptError('USAGE', 'ckpt does not run on Windows. Nothing was changed.', {
        hints: ['use it inside WSL'],
      })
    const words = joinFreeText(helpWords(argv))
    const parsed = (await parseQuickly(words)) ?? (await parseWithHelp(words, env, backends))
    if (parsed.kind === 'help') {
      const { text } = parsed
      const isJson = isOn(ownWords(argv), 'json')
      env.stdout.write(isJson ? jsonDocument({ ok: true, text }) : `${text}\n`)
      return 0
    }
    const { args, command } = parsed
    const colors = pc.createColors(useColor(env, args))
    const dir = text(args, 'cwd')
    const cwd = dir === undefined ? env.cwd : dir.startsWith('/') ? dir : `${env.cwd}/${dir}`
    const shown = showProgress(env, args)
    const output = await command({ env: shown.env, args, cwd, colors, arrived, backends }).finally(shown.clear)
    return unsaid.error ? 0 : await print(env, { args, argv }, output)
  } catch (error) {
    return report(env, { error, argv })
  }
}

/** Help names what the session that is meant can do. */
async function parseWithHelp(words: readonly string[], env: Env, backends: Backends): Promise<Parsed> {
  const { parse } = await import('./parse.ts')
  const own = ownWords(words)
  if (!own.some((word) => word === '--help' || word === '-h' || word === 'help')) return parse(words)
  const { capabilitiesHere, shownCommands } = await import('./shown.ts')
  const shown = shownCommands(await capabilitiesHere(env, { cwd: env.cwd, words: own, backends }))
  return parse(words, { shown, columns: columnsIn(env) })
}

function useColor(env: Env, args: Arguments): boolean {
  return args.color && Boolean(env.stdout.isTTY) && !env.vars.NO_COLOR && env.vars.TERM !== 'dumb'
}

async function print(
  env: Env,
  { args, argv }: { args: Arguments; argv: readonly string[] },
  output: Output,
): Promise<number> {
  const { json, text, warnings = [], exitCode = 0, ok = true } = output
  const error = output.error && { ...output.error, ...hintsOf(output.error, argv) }
  if (args.json) env.stdout.write(jsonDocument({ ok, ...json, ...(error ? { error } : {}) }))
  else if (text !== '') await show(env, output, args)
  if (!args.json && !args.quiet) writeWarnings(env, warnings)
  if (error && !args.json) env.stderr.write(refusalText(error.message, error.hints))
  return exitCode
}

async function show(env: Env, { text, paged = false, isNone }: Output, { quiet }: Arguments): Promise<void> {
  if (quiet && !paged) return
  if (isNone) env.stderr.write(`${text}\n`)
  else if (!(paged && (await showPaged(env, text)))) env.stdout.write(`${text}\n`)
}

function report(env: Env, { error, argv }: { error: unknown; argv: readonly string[] }): number {
  const own = ownWords(argv)
  const known = toCkptError(error)
  const { message, exitCode } = known
  const { hints = [] } = hintsOf(known, argv)
  env.refused?.(known)
  if (isOn(own, 'json')) {
    const document = {
      ok: false,
      error: { ...errorJson(known), ...(hints.length > 0 ? { hints } : {}) },
      ...besideError(known),
    }
    env.stdout.write(jsonDocument(document))
  } else {
    if (!isOn(own, 'quiet')) writeWarnings(env, known.warnings)
    env.stderr.write(refusalText(message, hints))
  }
  return exitCode
}

/** Its hints, with the words of the command line; none: absent. */
function hintsOf({ hints = [] }: { hints?: readonly string[] }, argv: readonly string[]): { hints?: string[] } {
  return hints.length > 0 ? { hints: hints.map((hint) => again(hint, argv)) } : {}
}

function writeWarnings(env: Env, warnings: readonly string[]): void {
  for (const warning of warnings) env.stderr.write(`ckpt: ${printable(warning)}\n`)
}

export const refusalText = (message: string, hints: readonly string[] = []) =>
  `ckpt: ${printable(message)}\n${hints.map((hint) => `  → ${printable(hint)}\n`).join('')}`
