/** Hints that say "the same once more, with another option", or "the help of this command", as lines that can be run. Pure. */
import { cwdOption, quoted, sessionOption } from '../core/hint-words.ts'
import { ownWords, valueIn } from '../core/own-words.ts'

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
