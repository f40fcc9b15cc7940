/** What is wrong with a command line, in a person's words: yargs speaks of its arguments. */
import leven from 'leven'
import { CkptError } from '../core/errors.ts'
import { quoted } from '../core/hint-words.ts'
import { ownWords } from '../core/own-words.ts'
import type { CommandEntry } from './command-entry.ts'
import { commands } from './commands.ts'

export const NO_COMMAND = 'No command was given.'

/** Options of every command. */
const EVERYWHERE = ['json', 'cwd', 'no-color', 'quiet', 'no-daemon', 'version', 'help']

const COMMANDS = commands.map(({ usage }) => usage.split(' ')[0]!)

/** What was wrong with the command line, and where to look. */
export function mistake(argv: readonly string[], message: string): CkptError {
  const [name] = argv.filter((word) => !word.startsWith('-'))
  if (name === undefined && message === NO_COMMAND) {
    return new CkptError('USAGE', `${message} Nothing was changed.`, {
      hints: ['ckpt status   (where this worktree stands)', 'ckpt list   (its turns)', 'ckpt --help   (every command)'],
    })
  }
  const entry = commands.find(({ usage }) => usage.split(' ')[0] === name)
  if (name !== undefined && !entry) {
    const meant = nearest(name, COMMANDS)
    return new CkptError('USAGE', `There is no command ${JSON.stringify(name)}. Nothing was changed.`, {
      hints: [...(meant === null ? [] : [`ckpt ${meant}`]), 'ckpt --help   (every command)'],
    })
  }
  const { said, hints = [] } = (entry && ofCommand(entry, argv, message)) ?? { said: message }
  return new CkptError('USAGE', `${said.replace(/[.?]?$/, (end) => end || '.')} Nothing was changed.`, {
    hints: [...hints, entry ? `ckpt ${name} --help` : 'ckpt --help'],
  })
}

interface Worded {
  said: string
  hints?: string[]
}

function ofCommand(entry: CommandEntry, argv: readonly string[], message: string): Worded | null {
  const [, what, names = ''] =
    /^(Unknown argument|Missing required argument|Not enough arguments following)s?: (.*)$/.exec(message) ?? []
  const dashed = (one: string) => `${one.length === 1 ? '-' : '--'}${one}`
  const all = names.split(', ')
  switch (what) {
    case 'Unknown argument':
      return unknown(entry, ownWords(argv), all)
    case 'Missing required argument':
      return { said: `${all.map(dashed).join(' and ')} ${all.length === 1 ? 'is' : 'are'} missing` }
    case 'Not enough arguments following':
      return { said: `${all.map(dashed).join(' and ')} wants a value` }
  }
  const [missing] = /<\w+>.*/.exec(entry.usage) ?? []
  return message.startsWith('Not enough non-option arguments') && missing
    ? { said: `Something is missing: ckpt ${entry.usage}` }
    : null
}

/** Options first: a word may stand there for want of one. */
function unknown(entry: CommandEntry, own: readonly string[], names: readonly string[]): Worded {
  const typed = (name: string): string | undefined =>
    own.map((word) => word.split('=')[0]!).find((word) => word === `--${name}` || word === `--no-${name}`) ??
    (name.length === 1 && own.some((word) => /^-\w/.test(word) && word.includes(name)) ? `-${name}` : undefined)
  const [option] = names.map(typed).filter((word) => word !== undefined)
  const words = names.filter((name) => typed(name) === undefined)
  const hints = words.length === 0 ? [] : instead(entry, words, own.slice(own.indexOf(words[0]!)))
  if (option === undefined)
    return { said: `${names.map((name) => JSON.stringify(name)).join(' and ')} cannot stand there`, hints }
  const meant = nearest(option.slice(2), optionsOf(entry))
  return { said: `There is no option ${option} here${meant === null ? '' : `: is --${meant} meant?`}`, hints }
}

const optionsOf = ({ options = {} }: CommandEntry): string[] => [
  ...EVERYWHERE,
  ...Object.entries(options)
    .filter(([, { positional }]) => !positional)
    .map(([name]) => name),
]

/** Lines with which words would be understood. `from`: what was typed from the first of them on. */
function instead(
  { usage, rest = '', options = {} }: CommandEntry,
  words: readonly string[],
  from: readonly string[],
): string[] {
  const name = usage.split(' ')[0]!
  const [word = ''] = words
  if (rest.includes('COMMAND')) return [`ckpt ${name} -- ${from.map(quoted).join(' ')}`]
  if (/^\d+(\.\d+)?$/.test(word)) {
    if (options.to) return [`ckpt ${name} --to ${word}   (and all later ones)`, `ckpt ${name} --only ${word}`]
    return options.turns && /^[1-9]\d*$/.test(word) ? [`ckpt ${name} --turns ${word}`] : []
  }
  return rest.includes('PATH') ? [`ckpt ${name} -- ${quoted(word)}`] : []
}

/** The one of these that the fewest slips of the keys make of a word; null: none is near. */
function nearest(word: string, names: readonly string[]): string | null {
  let [best, least] = [null as string | null, Math.min(3, Math.ceil(word.length / 2))]
  for (const name of names) {
    const far = name.startsWith(word) && word.length > 1 ? 0.5 : isSwapped(word, name) ? 1 : leven(word, name)
    if (far < least) [best, least] = [name, far]
  }
  return best
}

/** Two letters that stand side by side, the other way round. */
function isSwapped(word: string, name: string): boolean {
  const at = [...word].findIndex((letter, i) => letter !== name[i])
  return `${word.slice(0, at)}${word[at + 1]}${word[at]}${word.slice(at + 2)}` === name
}
