/** Hints that say "the same once more, with another option", or "the help of this command", as lines that can be run. Pure. */
import { quoted, sessionOption } from '../core/hint-words.ts'

/** Options that do not go together with those that hints propose, or say nothing about what is done. */
const DROPPED = new Set(['--merge', '--force', '--skip-conflicts', '--dry-run', '--json', '--quiet', '--no-daemon'])

/** What the command that was given takes. */
export const ITS_HELP = 'ckpt … --help'

/** Lines that mean the same session as the command line did, up to where its name belongs. */
const OF_A_SESSION =
  /^ckpt (?:accept|commit|diff|list|redo|restore|show|switch|undo)(?: (?!--session|--all-sessions|-- )\S+)*(?= -- | {3}\(|$)/

function sessionIn(own: readonly string[]): string | undefined {
  const at = own.findIndex((word) => word === '--session' || word.startsWith('--session='))
  return own[at]?.startsWith('--session=') ? own[at].slice('--session='.length) : at < 0 ? undefined : own[at + 1]
}

/** The words that name a session again, where one was named. */
export const ofSession = (session: string | undefined): string =>
  session === undefined ? '' : ` ${sessionOption(session)}`

/** `ckpt undo … --merge   (why)` with the words of the command line in place of the dots, if it is that command's. */
export function again(hint: string, argv: readonly string[]): string {
  const [command = '-'] = argv
  if (hint === ITS_HELP) return command.startsWith('-') ? 'ckpt --help' : `ckpt ${command} --help`
  const match = /^ckpt (\S+) … (--\S+)(.*)$/.exec(hint)
  const dashes = argv.indexOf('--')
  const [own, rest] = dashes < 0 ? [argv, []] : [argv.slice(0, dashes), argv.slice(dashes)]
  if (!match || match[1] !== command) return hint.replace(OF_A_SESSION, `$&${ofSession(sessionIn(own))}`)
  const words = [...own.filter((word) => !DROPPED.has(word)), match[2]!, ...rest]
  return `ckpt ${words.map(quoted).join(' ')}${match[3]}`
}
