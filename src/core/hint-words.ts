/** Words of a command line that a hint proposes, as a shell takes them. */
import { printable } from './paths.ts'

export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** The option that names a session: an id may begin with a dash. */
export const sessionOption = (session: string): string =>
  `--session${session.startsWith('-') ? '=' : ' '}${quoted(printable(session))}`
