/** Hints that say "the same once more, with another option", or "the help of this command", as lines that can be run. Pure. */
import { CkptError } from '../core/errors.ts'
import { cwdOption, quoted, sessionOption } from '../core/hint-words.ts'
import { ownWords, valueIn } from '../core/own-words.ts'
import { pathToText, printable } from '../core/paths.ts'
import { ONCE_MORE, type Token } from '../ops/change/token.ts'

/** Options that say nothing about what is done. */
const DROPPED = new Set(['--json', '--quiet', '--no-daemon'])
/** Of these there is one at a time. */
const MODES = new Set(['--merge', '--force', '--skip-conflicts'])

/** What the command that was given takes. */
export const ITS_HELP = 'ckpt … --help'

/** Lines that mean the same session as the command line did, up to where its name belongs. */
const OF_A_SESSION =
  /^ckpt (?:accept|commit|diff|list|redo|restore|show|switch|undo)(?: (?!--help|--session|--all-sessions|-- )\S+)*(?= -- | {3}\(|$)/

/** Any line of ours but those that ask for help, up to where an option of every command belongs. */
const OF_A_PLACE = /^ckpt \S+(?: (?!--help|-- )\S+)*(?= -- | {3}\(|$)/

/** The words that name a session again, where one was named. */
const ofSession = (session: string | undefined): string => (session === undefined ? '' : ` ${sessionOption(session)}`)

/** The words that name again where the command was run, where that was said. */
export const ofPlace = (cwd: string | undefined): string => (cwd === undefined ? '' : ` ${cwdOption(cwd)}`)

/** What a command line said of where it is to be carried out. */
export interface Said {
  session?: string | undefined
  cwd?: string | undefined
}

/** The words that say it again. */
export const sameAs = ({ session, cwd }: Said): string => `${ofSession(session)}${ofPlace(cwd)}`

/** `ckpt undo … --merge   (why)` with the words of the command line in place of the dots, if it is that command's. */
export function again(hint: string, argv: readonly string[]): string {
  const [command = '-'] = argv
  if (hint === ITS_HELP) return command.startsWith('-') ? 'ckpt --help' : `ckpt ${command} --help`
  const match = /^ckpt (\S+) …( --\S+)?( {3}\(.*)?$/.exec(hint)
  const own = ownWords(argv)
  if (!match || match[1] !== command) {
    const same = hint.replace(OF_A_SESSION, (line) => `${line}${ofSession(valueIn(own, 'session'))}`)
    return same.replace(OF_A_PLACE, (line) => `${line}${ofPlace(valueIn(own, 'cwd'))}`)
  }
  const [, , added = '', why = ''] = match
  const option = added.trim()
  const isReplaced = (name: string) => DROPPED.has(name) || name === option || (MODES.has(option) && MODES.has(name))
  const words = own.filter((word) => !isReplaced(word.split('=')[0]!)).map(quoted)
  const rest = argv.slice(own.length).map((word) => ` ${quoted(word)}`)
  return `ckpt ${words.join(' ')}${added}${rest.join('')}${why}`
}

const MODE_OF: Readonly<Record<string, string>> = { merge: '--merge', force: '--force', skip: '--skip-conflicts' }

/** The command line that made a token, without its `--dry-run`; of the worktree at `root`. */
function lineOf({ op, options }: Token, root: string): string[] {
  const { id, mode, paths, move, dryRun: _, ...rest } = options as Record<string, unknown>
  const words = [move === true ? 'switch' : op, ...(id === undefined ? [] : [String(id)])]
  for (const [name, value] of Object.entries(rest)) {
    if (value === true) words.push(`--${name}`)
    else if (typeof value === 'string' || typeof value === 'number') words.push(`--${name}=${value}`)
  }
  const own = MODE_OF[String(mode)]
  if (own !== undefined) words.push(own)
  const names = Array.isArray(paths) ? paths.map((path) => `${root}/${pathToText(String(path))}`) : []
  return names.length > 0 ? [...words, '--', ...names] : words
}

/** What was refused of a token, with hints in the words of its dry run. */
export function asAsked(error: CkptError, { token, root }: { token: Token; root: string }): CkptError {
  const line = lineOf(token, root)
  if (line.some((word) => word !== printable(word) || word.includes('\ufffd'))) return error // no line of text names it
  const inWords = (hint: string) => again(hint === ONCE_MORE ? `ckpt ${line[0]} … --dry-run` : hint, line)
  return new CkptError(error.code, error.message, { ...error, hints: error.hints.map(inWords), cause: error.cause })
}
