import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { listTurns } from '../../ops/history/history.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import type { Command, Invocation } from '../command.ts'
import { capabilitiesHere, shownCommands } from '../shown.ts'

const scripts: Record<string, string> = {
  bash: `_ckpt() {
  local IFS=$'\\n' line
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("\${line%%$'\\t'*}"); done < <(ckpt completion --words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _ckpt ckpt`,
  zsh: `#compdef ckpt
_ckpt() {
  local -a found
  local line
  while IFS= read -r line; do found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}"); done < <(ckpt completion --words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe ckpt found || _files
}
compdef _ckpt ckpt`,
  fish: `complete -c ckpt -f -a '(ckpt completion --words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
}

/** Commands that take a turn, as an argument or as an option's value. */
const takesTurn = new Set(['show', 'diff', 'restore', 'switch', '--to', '--only'])

/** What fits the last word: `<word>\t<what it is>`. Never writes. */
async function wordsFor({ env, cwd, backends }: Invocation, line: readonly string[]): Promise<[string, string][]> {
  const last = line.at(-1) ?? ''
  const [name] = line
  const fits = (rows: [string, string][]) => rows.filter(([word]) => word.startsWith(last))
  const commands = shownCommands(await capabilitiesHere(env, { cwd, words: line, backends }))
  if (line.length <= 1) return fits(commands.map(({ usage, describe }) => [usage.split(' ')[0]!, describe]))
  const entry = commands.find(({ usage }) => usage.split(' ')[0] === name)
  if (!entry) return []
  if (last.startsWith('-')) {
    const own = Object.entries(entry.options ?? {}).filter(([, option]) => !option.positional && !option.hidden)
    return fits([
      ...own.map(([option, { describe }]): [string, string] => [`--${option}`, String(describe ?? '')]),
      ['--json', 'one JSON document'],
      ['--help', 'help'],
    ])
  }
  if (!takesTurn.has(line.at(-2) ?? '') && !takesTurn.has(name ?? '')) return []
  const context = await openContext(env, cwd, { reading: true })
  try {
    const { turns } = await listTurns(context, { limit: 30, hidden: true })
    return fits(turns.map(({ turn, description }) => [String(turn.number), printable(description)]))
  } finally {
    closeContext(context)
  }
}

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
  const shell = args.shell === undefined ? (env.vars.SHELL ?? '').split('/').at(-1)! : String(args.shell)
  const script = scripts[shell]
  if (!script) {
    throw new CkptError(
      'USAGE',
      shell === ''
        ? 'Which shell? There is completion for bash, zsh and fish. Nothing was changed.'
        : `There is completion for bash, zsh and fish, not for ${JSON.stringify(shell)}. Nothing was changed.`,
      { hints: ['ckpt completion bash'] },
    )
  }
  return { json: { shell, script }, text: script, paged: true }
}

export default command
