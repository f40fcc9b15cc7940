/** Words of a command line that a hint proposes, as a shell takes them. */
import { isText, pathToText, printable, shown } from './paths.ts'

/** One word of a POSIX shell, in quotes whatever it holds. */
export const singleQuoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** One word of a POSIX shell, in quotes where it needs them. */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : singleQuoted(word))

/** A path of the file system, as it is shown and as a shell takes it. */
export const quotedPath = (path: string): string => quoted(printable(path))

/** A name in the worktree, as it is shown and as a shell takes it. */
export const quotedName = (path: string): string => quoted(shown(path))

/**
 * A name in the worktree as a pathspec that means it alone, from any directory in there (gitglossary(7)). Of one that cannot be
 * shown as it is, `?` stands for each byte that no terminal takes.
 */
export function quotedPathspec(path: string): string {
  if (/^[A-Za-z0-9][\w./ -]*$/.test(path)) return quoted(`:/${path}`)
  if (isText(path) && shown(path) === pathToText(path)) return quoted(`:(top,literal)${shown(path)}`)
  return quoted(`:(top,glob)${path.replace(/[*?[\\]/g, '\\$&').replace(/[^ -~]/g, '?')}`)
}

/** `a merge`, `an am`. */
export const withArticle = (noun: string): string => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`

/** A value may begin with a dash. */
const option = (name: string, value: string): string =>
  `--${name}${value.startsWith('-') ? '=' : ' '}${quoted(printable(value))}`

/** The option that names a session. */
export const sessionOption = (session: string): string => option('session', session)

/** The option that names the directory of another worktree. */
export const cwdOption = (cwd: string): string => option('cwd', cwd)

/** The ways out of a pending boundary, whichever session is the newest. */
export const pendingHints = (session: string): string[] => [
  `ckpt redo --all ${sessionOption(session)}`,
  `ckpt accept ${sessionOption(session)}`,
]

/** What to look at where a file would be larger than may be written (EFBIG). */
export const FILE_LIMIT: readonly string[] = [
  'ulimit -f   (how large a file may be; the file system may have a limit of its own)',
  'ckpt daemon stop   (if it was started with that limit)',
]

/** What to look at where no more files may be opened (EMFILE, ENFILE). */
export const OPEN_LIMIT: readonly string[] = [
  'ulimit -n   (how many files a process may have open)',
  'ckpt daemon stop   (if it was started with that limit)',
]
