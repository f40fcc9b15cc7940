/** The parts of docs/ that follow from the source: command line, exit codes, configuration, states, and which test shows what. */
import fs from 'node:fs'
import path from 'node:path'
import { type CommandEntry, usageLine } from '../src/cli/command-entry.ts'
import { commands } from '../src/cli/commands.ts'
import { OF_EVERY_COMMAND, parse } from '../src/cli/parse.ts'
import { DEFAULTS } from '../src/config/defaults.ts'
import { CONFIG_NAMES } from '../src/config/load.ts'
import { checkConfig, configSchema } from '../src/config/schema.ts'
import { CkptError, type ErrorCode, EXIT_CODES } from '../src/core/errors.ts'
import { drawMachine } from '../src/core/machine.ts'
import { libraryPage, protocolSchema } from './api.ts'
import { jsonSchema } from './json-schema.ts'

const root = path.resolve(import.meta.dirname, '..')

const generated = 'This page is made by `npm run docs` from the source; a test compares the two.'
const cell = (text: string) => text.replaceAll('|', '\\|')
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n')

type Option = NonNullable<CommandEntry['options']>[string]

const isPositional = (option: Option) => option.positional === true

const sentence = (text: string) => `${text[0]!.toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`

function optionName(name: string, option: Option): string {
  if (option.default === true) return `\`--${name}\` (by default), \`--no-${name}\``
  const value = option.type === 'boolean' ? '' : option.array ? ' VALUE…' : ' VALUE'
  const short = typeof option.alias === 'string' ? `-${option.alias}, ` : ''
  return `\`${short}--${name}${value}\`${option.demandOption ? ' (needed)' : ''}`
}

function commandText(entry: CommandEntry): string {
  const { usage, describe, options = {}, examples = [] } = entry
  const name = usage.split(' ')[0]!
  const all = Object.entries(options).filter(([, option]) => option.hidden !== true)
  const positional = all.filter(([, option]) => isPositional(option))
  const named = all.filter(([, option]) => !isPositional(option))
  const parts = [`## ckpt ${name}`, sentence(describe), `\`\`\`\nckpt ${usageLine(entry)}\n\`\`\``]
  if (positional.length > 0)
    parts.push(
      table(
        ['argument', ''],
        positional.map(([key, option]) => [`\`${key}\``, option.describe ?? '']),
      ),
    )
  if (named.length > 0)
    parts.push(
      table(
        ['option', ''],
        named.map(([key, option]) => [optionName(key, option), option.describe ?? '']),
      ),
    )
  if (examples.length > 0) {
    const width = Math.max(...examples.map(([line]) => line.length))
    parts.push(`\`\`\`sh\n${examples.map(([line, what]) => `${line.padEnd(width)}   # ${what}`).join('\n')}\n\`\`\``)
  }
  return parts.join('\n\n')
}

/** The options that every command takes, as the program's own help prints them. */
async function globalOptions(): Promise<string> {
  const help = await parse(['--help'])
  if (help.kind !== 'help') throw new Error('--help printed no help')
  const [, options] = help.text.split(`${OF_EVERY_COMMAND}\n`)
  return options!.trimEnd()
}

export async function cliPage(): Promise<string> {
  return `${[
    '# Command line',
    generated,
    'Standard output is data, standard error is prose. [Exit codes](exit-codes.md) tell a script what happened; with `--json` each command prints one JSON document, `{"schemaVersion":1,"ok":true,…}` or `{"schemaVersion":1,"ok":false,"error":{"code","message","paths"?,"hints"?}}`; an error may have `files` (the plan that was refused) and `warnings` (what was done or passed over before) beside it.',
    '## Every command',
    `\`\`\`\n${await globalOptions()}\n\`\`\``,
    '## Ids',
    table(
      ['written', 'means'],
      [
        ['`3`', 'turn 3 of the session'],
        ['`3.2`', 'its second step'],
        ['`3:before`, `3:after`', 'the checkpoints at its two ends'],
        ['`t` and 12 hex digits', 'a turn, by the `id` that JSON gives it'],
        ['4 or more hex digits, not all of them 0-9', 'a checkpoint, by a prefix that only it has'],
        ['`worktree`', 'the files as they are now (`diff` only)'],
      ],
    ),
    'A session is named by its own id or by a prefix that only it has. `latest`, which is meant when none is named, is the session whose turn marker is the newest in this worktree; checkpoints by hand are in session `manual`, which is never the latest. `ckpt accept` without one means the session that has something undone, if only one has.',
    ...commands.map(commandText),
  ].join('\n\n')}\n`
}

const CAUSES: Record<ErrorCode, string> = {
  USAGE: 'the command line was wrong',
  CONFIG: 'a configuration file is wrong; the message names the key, the file and what is allowed',
  BAD_MARKER: 'a marker was wrong',
  BAD_ROOT:
    'not a place that can be checkpointed: `/`, the home directory, a directory that contains the store, a bare repository, or one that git refuses',
  NOT_INITIALIZED: 'a plain directory without `ckpt init`',
  UNSUPPORTED: "the session's backend cannot do that: `ckpt capabilities`",
  LOCKED: 'another process holds the lock of this worktree',
  GIT_BUSY: 'git is in the middle of a merge, rebase, cherry-pick, revert or am',
  TURN_RUNNING: 'the turn has not ended yet',
  BOUNDARY_PENDING: 'undone turns are pending: redo or accept them first',
  NOTHING_TO_UNDO: 'there is no turn to undo',
  NOTHING_TO_REDO: 'nothing is undone',
  NOT_FOUND: 'no such turn, step, session, checkpoint or path',
  DAMAGED: 'the store cannot be read as it must be; nothing was changed',
  VERIFY_FAILED: '`ckpt verify` found a problem',
  CONFLICT:
    'files differ from what the turn left, the turn was made on another branch, another session claims the change, or a token is stale; nothing was written',
  CANCELLED:
    'the call was cancelled, by a program that uses the library or the protocol, or by a signal; nothing was changed',
  INTERNAL: 'something unexpected failed',
}

export function exitCodesPage(): string {
  const codes = Object.entries(EXIT_CODES) as [ErrorCode, number][]
  const order = [...new Set(codes.map(([, exit]) => exit))]
  return `${[
    '# Exit codes',
    generated,
    '`0` is done, also when nothing had to be done. `ckpt run` ends with the exit code of the command it ran, or 128 and the number of the signal that ended it. Any other command that a signal cancelled or ended ends of that signal, which a shell shows as 130 (Ctrl-C), 143 (SIGTERM) or 129 (SIGHUP). `ckpt watch` in the foreground is left by Ctrl-C and SIGTERM: it finishes what it does, and ends with `0`; it ends of the hangup of its terminal, and without one (`nohup`) does not heed SIGHUP. Where a question is asked on a terminal, Ctrl-C ends `[y/N]` like any other command, and leaves the menu of `ckpt rewind` with `0`: nothing was changed.',
    table(
      ['exit code', '`error.code` in JSON', 'why'],
      codes.toSorted(([, a], [, b]) => a - b).map(([code, exit]) => [String(exit), `\`${code}\``, CAUSES[code]]),
    ),
    `Where several would fit, the first of these wins: ${order.join(', ')}; among codes that share a number, in the order ${codes
      .filter(([, exit]) => codes.filter(([, other]) => other === exit).length > 1)
      .map(([code]) => `\`${code}\``)
      .join(', ')}.`,
  ].join('\n\n')}\n`
}

/** What each key is for. A test compares the names with the schema's. */
export const KEYS: Record<string, string> = {
  enableFileCheckpointing:
    'The whole of it, on or off. When off, markers and `ckpt snapshot` record nothing and say so.',
  checkpointKeepCount: 'Turns that `ckpt prune` keeps per session; 0 is no limit.',
  'snapshot.include': 'gitignore syntax: ignored files that are captured all the same, such as `.env`.',
  'snapshot.exclude': 'gitignore syntax: files that are never captured.',
  'snapshot.maxFileSize':
    "A larger file is left out by name, unless it is in the user's index: those are captured at any size that `snapshot.maxBytes` leaves room for.",
  'snapshot.maxBytes':
    'New bytes that one snapshot may take; what goes beyond is left out, and the checkpoint is degraded.',
  'snapshot.deadline': 'Time for one marker, the wait for the lock included; then the checkpoint is degraded.',
  'store.maxBytes':
    'Over this size the oldest turns and checkpoints by hand go: by themselves, and with `ckpt prune`. A tenth over it, where that made no room, a snapshot takes 16 MiB of new content at most (of a lower limit a 256th), and is degraded where there is more.',
  'prune.olderThan': 'Age at which `ckpt prune` removes visible turns.',
  'watch.autoTurn':
    'Whether a daemon makes a turn of session `auto` of changes that are followed by two seconds of quiet, or by a marker, while no turn of another session runs. What is undone of that session is left by the next such turn.',
  'watch.start':
    'Whether a marker that had to look through 250 directories or more, or an agent whose hooks run `ckpt-hook`, starts a daemon in the background, for those that follow.',
  'watch.idleStop': 'How long a daemon in the background stays without a call.',
  'watch.transcripts':
    "Whether a daemon takes turns whose hooks did not run from the agent's own transcripts (Claude Code); they are only read.",
  'agents.tellUndone':
    'Whether, after an undo, the next prompt tells the agent in one line which files were taken back (Claude Code, Codex, Gemini CLI).',
  'commit.auto':
    "Whether `ckpt run`, and an agent's session when it ends, make a commit of what they changed, as `ckpt commit` does.",
  'commit.messageCommand':
    "A shell command that gets the prompts' message and the patch on standard input and prints the commit's message; `CKPT_SESSION` names the session. It counts in the user's own file only. When it fails, prints nothing or more than 64 KiB, or takes longer than a minute, the prompts' message is taken.",
  'hooks.prePush':
    'Whether `ckpt hooks install` adds a pre-push hook: `pending` refuses commits that were made while a boundary was pending, `uncovered` also those that no recorded turn covers.',
  'hooks.postCommit':
    'Whether `ckpt hooks install` adds a post-commit hook that records which checkpoints a commit came from, for `ckpt show COMMIT`.',
  'hooks.postRewrite':
    'Whether `ckpt hooks install` adds a post-rewrite hook that carries this over an amend or a rebase.',
  'prune.grace': 'How long abandoned turns stay; then `ckpt prune` removes them.',
  'store.location':
    "`git` puts the store in the repository's own git directory; a directory puts it there instead, and given in the user's own file it is found there after `.git` was deleted.",
}

/** Every key of the schema, dotted. */
export function schemaKeys(): string[] {
  const keys: string[] = []
  const { $schema: _, ...fields } = configSchema.shape
  for (const [name, field] of Object.entries(fields)) {
    const inner = field.unwrap()
    if ('shape' in inner) keys.push(...Object.keys(inner.shape).map((key) => `${name}.${key}`))
    else keys.push(name)
  }
  return keys
}

const nested = (key: string, value: unknown): Record<string, unknown> => {
  const [first, ...rest] = key.split('.')
  return { [first!]: rest.length === 0 ? value : nested(rest.join('.'), value) }
}

/** What the schema itself says when a value is wrong. */
function allowedValue(key: string): string {
  try {
    checkConfig(nested(key, {}), 'file')
  } catch (error) {
    const said = error instanceof CkptError ? / must be (.*)\. Nothing was changed\.$/.exec(error.message) : null
    if (said) return said[1]!
    throw error
  }
  throw new Error(`${key} takes anything`)
}

const SIZE_KEYS = new Set(['snapshot.maxFileSize', 'snapshot.maxBytes', 'store.maxBytes'])
const TIME_KEYS = new Set(['snapshot.deadline', 'prune.olderThan', 'prune.grace', 'watch.idleStop'])

/** A default as one writes it in the file. */
export function defaultText(key: string): string {
  const value = key.split('.').reduce<unknown>((at, part) => (at as Record<string, unknown>)[part], DEFAULTS)
  if (value === null) return key === 'commit.messageCommand' ? 'false' : 'never'
  if (SIZE_KEYS.has(key)) return withUnit(value as number, { GiB: 2 ** 30, MiB: 2 ** 20, KiB: 2 ** 10, B: 1 })
  if (TIME_KEYS.has(key)) return withUnit(value as number, { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 })
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** In the largest unit that gives a whole number. */
function withUnit(value: number, units: Record<string, number>): string {
  const [unit, size] = Object.entries(units).find(([, one]) => value % one === 0)!
  return `${value / size}${unit}`
}

const ENVIRONMENT: Record<string, string> = {
  CKPT_ALLOW_PENDING: '`1` lets one commit through while a boundary is pending',
  CKPT_DISABLED:
    '`1` makes every hook, and a daemon that is started with it, do nothing. One that runs without it still reads transcripts (`watch.transcripts`)',
  CKPT_PAGER: 'the pager for long output on a terminal (`less`); empty or `cat`: none',
  CKPT_STATE_DIR:
    'an absolute directory: where the stores of plain directories are (`$XDG_STATE_HOME/ckpt`, `~/.local/state/ckpt`)',
  NO_COLOR: 'no colours',
}

/** The variables that the program, or a hook of it, really reads. */
function environmentRows(): string[][] {
  const texts = ['src', 'hooks'].flatMap((folder) =>
    fs
      .readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => fs.readFileSync(path.join(entry.parentPath, entry.name), 'utf8')),
  )
  return Object.entries(ENVIRONMENT)
    .filter(([name]) => texts.some((text) => new RegExp(`vars\\.${name}\\b|\\$\\{?${name}\\b`).test(text)))
    .map(([name, what]) => [`\`${name}\``, what])
}

export function configPage(): string {
  return `${[
    '# Configuration',
    generated,
    `Configuration is data, never code. In the top directory of a worktree the first of these counts: ${CONFIG_NAMES.map((name) => (name === 'package.json' ? '`"checkpoint"` in `package.json`' : `\`${name}\``)).join(', ')}. The user's own files of the same names lie in \`$XDG_CONFIG_HOME/ckpt/\` (\`~/.config/ckpt/\`). A key in the project's file wins over the same key in the user's. [.checkpointrc.example](../.checkpointrc.example) has every key with its default. For editors, [schema/checkpointrc.schema.json](../schema/checkpointrc.schema.json) says what may stand where: name it in a key \`$schema\`, which ckpt itself passes over.`,
    table(
      ['key', 'default', 'value', ''],
      schemaKeys().map((key) => [`\`${key}\``, `\`${defaultText(key)}\``, allowedValue(key), KEYS[key] ?? '']),
    ),
    'An unknown key or a wrong value is refused with exit code 2. `mark`, `hook`, `run`, `undo`, `redo` and `apply` pass over a wrong project file that is not committed, with a warning: an agent cannot stop checkpoints by breaking it.',
    'Where `include` and `exclude` both name a file, `exclude` wins.',
    "What narrows protection (switching it off, `exclude`, lower limits, another `store.location`, `watch.autoTurn` or `watch.transcripts` switched off, every `prune` key), and what has ckpt do something by itself (`commit.auto`, `agents.tellUndone`, every `hooks` key), counts from the user's file, or from the project's file as committed at HEAD. The same in a file that was only edited is passed over, with a warning: of `include` it may add patterns and leave out exceptions (`!`), of `exclude` leave out patterns and add exceptions; in a plain directory, which has no HEAD, it counts in the user's file only. A project's file that is a symlink is not read, and that is said (but of a `package.json`, which may be one for other reasons); the user's own may be one.",
    '## Environment',
    table(['variable', ''], environmentRows()),
  ].join('\n\n')}\n`
}

export function statesPage(): string {
  return `${[
    '# States of a session',
    generated,
    'A session is in one of four states: `none` (no turn yet), `idle` (its last turn ended), `running` (it has not), `pending` (some turns are undone and hidden). Each arrow reads `event / what is done`. The table behind it is in `src/core/machine.ts`: it declares what is to be done, and the operations do it.',
    `\`\`\`mermaid\n${drawMachine()}\`\`\``,
    '`undo --only`, and an undo of some paths, record a turn of their own and leave the state as it is. `undo --interrupt` ends a running turn first.',
  ].join('\n\n')}\n`
}

/** A configuration file that says what the defaults say. */
export function exampleConfig(): string {
  const lines = [
    '# Configuration of ckpt: copy what you need into .checkpointrc, in the top directory of the worktree.',
    '# Every key, with its default. YAML; JSON is read as well. What the values may be: docs/config.md',
  ]
  let section = ''
  for (const key of schemaKeys()) {
    const [first, second] = key.split('.')
    const indent = second === undefined ? '' : '  '
    lines.push('')
    if (second !== undefined && first !== section) lines.push(`${first}:`)
    section = second === undefined ? '' : first!
    lines.push(`${indent}# ${KEYS[key] ?? ''}`, `${indent}${second ?? first}: ${defaultText(key)}`)
  }
  return `${lines.join('\n')}\n`
}

/** Tests whose names bear no number, for they show more than one promise at once. */
const UNNUMBERED: Record<string, readonly string[]> = {
  'test/property/timeline.test.ts': ['promise 1', 'promise 3', 'promise 4'],
  'test/property/listing.test.ts': ['promise 10'],
}

/** `promise 3`, `row 7` → the test files whose tests begin with that. */
function provenBy(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  const add = (what: string, file: string) => {
    const files = found.get(what) ?? []
    if (!files.includes(file)) found.set(what, [...files, file])
  }
  const names = fs.readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
  for (const name of names.filter((one) => one.endsWith('.test.ts')).toSorted()) {
    const text = fs.readFileSync(path.join(root, 'test', name), 'utf8')
    for (const [, what] of text.matchAll(/['"`]((?:promise|row) \d+):/g)) add(what!, `test/${name}`)
    for (const what of UNNUMBERED[`test/${name}`] ?? []) add(what, `test/${name}`)
  }
  return found
}

/** docs/promises.md is written by hand, but for the last column of its two tables. */
export function promisesPage(): string {
  const proven = provenBy()
  let kind = 'promise'
  const lines = fs.readFileSync(path.join(root, 'docs/promises.md'), 'utf8').split('\n')
  return lines
    .map((line) => {
      if (line.startsWith('## What others lost')) kind = 'row'
      const number = /^\| (\d+) \|/.exec(line)?.[1]
      if (number === undefined) return line
      const files = proven.get(`${kind} ${number}`) ?? []
      const shown = files.length === 0 ? '*not yet*' : files.map((file) => `\`${file}\``).join(', ')
      return `${line.slice(0, line.slice(0, -1).lastIndexOf('|') + 1)} ${shown} |`
    })
    .join('\n')
}

/** Every generated page, by its path. */
export async function pages(): Promise<Map<string, string>> {
  return new Map([
    ['docs/cli.md', await cliPage()],
    ['docs/exit-codes.md', exitCodesPage()],
    ['docs/config.md', configPage()],
    ['docs/states.md', statesPage()],
    ['docs/promises.md', promisesPage()],
    ['docs/library.md', libraryPage()],
    ['docs/protocol.schema.json', protocolSchema()],
    ['.checkpointrc.example', exampleConfig()],
    ['schema/checkpointrc.schema.json', jsonSchema({ words: KEYS, defaultOf: defaultText })],
  ])
}
