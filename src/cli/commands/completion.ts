import { resolve } from 'node:path'
import { CkptError } from '../../core/errors.ts'
import { valueIn, wordsBefore } from '../../core/own-words.ts'
import { printable } from '../../core/paths.ts'
import { listSessions, listTurns } from '../../ops/history/history.ts'
import { type Context, closeContext, openContext } from '../../ops/worktree/context.ts'
import type { Command, Invocation } from '../command.ts'
import type { Option } from '../command-entry.ts'
import { capabilitiesHere, shownCommands } from '../shown.ts'

const scripts: Record<string, string> = {
  // What is offered goes into the command line as it stands: a session's id may hold anything that a shell would act on.
  bash: `_ckpt() {
  local IFS=$'\\n' line word quote=\${COMP_WORDS[COMP_CWORD]:0:1} typed=()
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    case $word in
      [\\'\\"]*) word=\${word:1} && typed+=("\${word%[\\'\\"]}") ;;
      *) typed+=("\${word//\\\\/}") ;;
    esac
  done
  while IFS= read -r line; do
    word=\${line%%$'\\t'*}
    case $quote in
      \\') [[ $word == *\\'* ]] && continue ;;
      \\") [[ $word == *[\\$\\\`\\"\\\\!]* ]] && continue ;;
      *) printf -v word %q "$word" ;;
    esac
    COMPREPLY+=("$word")
  done < <(ckpt completion --words -- "\${typed[@]}" 2>/dev/null)
}
complete -o default -F _ckpt ckpt`,
  zsh: `#compdef ckpt
_ckpt() {
  local -a found typed
  local line quotes="['\\"]"
  typed=("\${(@Q)words[2,CURRENT]}")
  typed=("\${(@)typed#\${~quotes}}")
  while IFS= read -r line; do found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}"); done < <(ckpt completion --words -- "\${(@)typed}" 2>/dev/null)
  _describe ckpt found || _files
}
if [[ \${funcstack[1]-} == _ckpt ]]; then _ckpt "$@"; else compdef _ckpt ckpt; fi`,
  fish: `function __ckpt_words
  set -l typed (commandline -ct)
  set -l word (string unescape -- $typed; or string trim -l -c "'\\"" -- $typed)
  set -l found (ckpt completion --words -- (commandline -opc)[2..] "$word" 2>/dev/null)
  if test -n "$found"
    printf '%s\\n' $found
  else
    complete -C "'' "(commandline -ct)
  end
end
complete -c ckpt -f -a '(__ckpt_words)'`,
}

/** Options that take a turn, and commands of which every argument is one. */
const TAKE_TURNS = new Set(['show', 'diff', 'restore', 'switch', '--to', '--only'])

const OF_EVERY_COMMAND: [string, string][] = [
  ['--json', 'one JSON document'],
  ['--cwd', 'run as if started in this directory'],
  ['--no-color', 'no colours'],
  ['--quiet', 'nothing but data and errors'],
  ['--no-daemon', 'do not ask the daemon'],
  ['--help', 'help'],
]

const HELP: [string, string] = ['help', 'of one command']

/** bash takes `--option=value` for three words, and `a:b` too. */
function asMeant(typed: readonly string[]): string[] {
  const joined: string[] = []
  for (const [i, word] of typed.entries()) {
    const before = joined.at(-1) ?? ''
    const isValue = word === '=' ? /^--[a-z-]+$/.test(before) : /^--[a-z-]+=$/.test(before)
    const isBehindColon = i > 0 && (word === ':' || typed[i - 1] === ':')
    if (isValue || isBehindColon) joined[joined.length - 1] += word
    else joined.push(word)
  }
  return joined
}

/** What fits the last word: `<word>\t<what it is>`. None: the shell offers files. Never writes. */
async function wordsFor(call: Invocation, given: readonly string[]): Promise<[string, string][]> {
  const typed = asMeant(given)
  if (typed.at(-2) === '--cwd') return []
  const { env, backends } = call
  const cwd = resolve(call.cwd, valueIn(typed, 'cwd') ?? '.')
  const invocation = { ...call, cwd }
  const line = typed.slice(wordsBefore(typed.slice(0, -1)))
  const last = line.at(-1) ?? ''
  const isWhole = given.at(-1) === last // else the shell completes what is behind the `=`, or the last colon
  const behind = (begun: string) => (isWhole ? 0 : begun.lastIndexOf(':') + 1)
  const fitting = (rows: [string, string][], begun: string) =>
    rows.flatMap(([word, what]): [string, string][] =>
      word.startsWith(begun) ? [[word.slice(behind(begun)), what]] : [],
    )
  const fits = (rows: [string, string][]) => fitting(rows, last)
  if (line.slice(0, -1).includes('--')) return [] // paths, or another program's words
  const commands = shownCommands(await capabilitiesHere(env, { cwd, words: typed, backends }))
  const names = commands.map(({ usage, describe }): [string, string] => [usage.split(' ')[0]!, describe])
  if (line.length <= 1) return fits(last.startsWith('-') ? OF_EVERY_COMMAND : [...names, HELP])
  if (line[0] === HELP[0]) return line.length === 2 ? fits(names) : []
  const entry = commands.find(({ usage }) => usage.split(' ')[0] === line[0])
  if (!entry) return []
  const options = Object.entries(entry.options ?? {})
  const [, named, begun] = /^(--[a-z-]+)=(.*)$/s.exec(last) ?? []
  const before = named ?? line.at(-2)!
  const asked = options.find(
    ([name, { positional, alias }]) => !positional && (before === `--${name}` || before === `-${alias}`),
  )
  if (asked?.[1].type === 'string') {
    const values = await valuesOf(invocation, line, [before, asked[1]])
    if (begun === undefined) return fits(values)
    return fitting(values, begun).map(([word, what]) => [isWhole ? `${named}=${word}` : word, what])
  }
  if (last.startsWith('-')) {
    const own = options.filter(([, option]) => !option.positional && !option.hidden)
    return fits([
      ...own.map(([option, { describe, default: given }]): [string, string] => [
        given === true ? `--no-${option}` : `--${option}`,
        String(describe ?? ''),
      ]),
      ...OF_EVERY_COMMAND,
    ])
  }
  const argument = options.filter(([, { positional }]) => positional)[argumentsIn(line.slice(1, -1), options)]
  if (!argument) return []
  if (TAKE_TURNS.has(line[0]!)) return fits(await turnsHere(invocation, line))
  return fits((argument[1].words ?? []).map((word) => [word, '']))
}

/** What an option may be. */
async function valuesOf(
  invocation: Invocation,
  line: readonly string[],
  [name, { words = [] }]: [string, Option],
): Promise<[string, string][]> {
  if (name === '--session') return sessionsHere(invocation)
  if (TAKE_TURNS.has(name)) return turnsHere(invocation, line)
  return words.map((word) => [word, ''])
}

/** How many words of a line are neither options nor their values. */
function argumentsIn(words: readonly string[], options: readonly [string, Option][]): number {
  const taking = new Set(options.filter(([, { type }]) => type === 'string').map(([name]) => `--${name}`))
  const isValue = (i: number) => words[i - 1] === '--cwd' || taking.has(words[i - 1] ?? '')
  return words.filter((word, i) => !word.startsWith('-') && !isValue(i)).length
}

async function reading<T>({ env, cwd }: Invocation, work: (context: Context) => Promise<T>): Promise<T> {
  const context = await openContext(env, cwd, { reading: true })
  return work(context).finally(() => closeContext(context))
}

/** Of the session that is meant. */
const turnsHere = (invocation: Invocation, line: readonly string[]): Promise<[string, string][]> =>
  reading(invocation, async (context) => {
    const session = valueIn(line.slice(0, -1), 'session')
    const { turns } = await listTurns(context, { limit: 30, hidden: true, ...(session ? { session } : {}) })
    const sides = line.at(-1)?.includes(':') ? [':before', ':after'] : ['']
    return turns.flatMap(({ turn, description }) =>
      sides.map((side): [string, string] => [`${turn.number}${side}`, printable(description)]),
    )
  })

const sessionsHere = (invocation: Invocation): Promise<[string, string][]> =>
  reading(invocation, async (context) => {
    const sessions = await listSessions(context)
    return sessions.map(({ timeline: { session, agent } }) => [printable(session), printable(agent ?? '')])
  })

const command: Command = async (invocation) => {
  const { args, env } = invocation
  if (args.words === true) {
    const words = await wordsFor(invocation, args['--'] ?? []).catch(() => []) // a shell that asks gets an answer, or silence
    return {
      json: { words: words.map(([word, what]) => ({ word, what })) },
      text: words.map(([word, what]) => `${word}\t${what}`).join('\n'),
      paged: true,
    }
  }
  const own = (env.vars.SHELL ?? '').split('/').at(-1)!
  // What a container or a CI calls its shell is none that completes.
  const shell = args.shell === undefined ? (Object.hasOwn(scripts, own) ? own : 'bash') : String(args.shell)
  if (!Object.hasOwn(scripts, shell)) {
    throw new CkptError(
      'USAGE',
      `There is completion for bash, zsh and fish, not for ${JSON.stringify(shell)}. Nothing was changed.`,
      { hints: ['ckpt completion bash'] },
    )
  }
  const script = scripts[shell]!
  return { json: { shell, script }, text: script, paged: true }
}

export default command
