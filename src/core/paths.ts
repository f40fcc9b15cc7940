/**
 * Paths inside a worktree are bytes. Inside ckpt each byte is one character (latin1), so that comparing, splitting and
 * sorting are exact; they become UTF-8 text only where they are shown.
 */

/** A `/`-separated path relative to the worktree's root, one character a byte, never empty, without `.` or `..` parts. */
export type RelativePath = string & { readonly __brand: 'RelativePath' }

const ascii = /^[\x00-\x7f]*$/

function pathFromBytes(bytes: Buffer): RelativePath {
  return bytes.toString('latin1') as RelativePath
}

/** Text as it arrives from arguments and JSON (UTF-16) to the bytes a file system holds. */
export function pathFromText(text: string): RelativePath {
  return (ascii.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1')) as RelativePath
}

/** The path as text. Bytes that are not UTF-8 become U+FFFD; `pathBase64` then holds the exact ones. */
export function pathToText(path: string): string {
  return ascii.test(path) ? path : Buffer.from(path, 'latin1').toString('utf8')
}

/** Whether a path is text, so that it can be named where bytes cannot. */
export function isText(path: string): boolean {
  return ascii.test(path) || Buffer.from(pathToText(path), 'utf8').toString('latin1') === path
}

/** A name, or a path, in the form in which macOS's git names it (NFC), whatever form its directory holds. */
export function composedName(path: string): string {
  return ascii.test(path) || !isText(path) ? path : pathFromText(pathToText(path).normalize('NFC'))
}

/** One for all spellings that a file system may take for the same path: other cases, other Unicode forms. */
export function foldedPath(path: string): string {
  if (ascii.test(path)) return path.toLowerCase()
  return isText(path) ? pathFromText(pathToText(path).normalize('NFD').toLowerCase().normalize('NFC')) : path
}

export interface ShownPath {
  path: string
  pathBase64?: string
}

export function showPath(path: string): ShownPath {
  const text = pathToText(path)
  return isText(path) ? { path: text } : { path: text, pathBase64: Buffer.from(path, 'latin1').toString('base64') }
}

/** The directory a path lies in: `''` for the root. A trailing slash (a directory's own key) does not count. */
export function parentOf(path: string): string {
  const end = path.endsWith('/') ? path.length - 2 : path.length - 1
  const at = path.lastIndexOf('/', end)
  return at < 0 ? '' : path.slice(0, at)
}

/** All directories above a path, nearest first, without the root. */
export function ancestorsOf(path: string): string[] {
  const found: string[] = []
  for (let at = parentOf(path); at !== ''; at = parentOf(at)) found.push(at)
  return found
}

/** Whether `path` is `scope` or lies below it; the scope `''` is the whole worktree. */
export function isWithin(path: string, scope: string): boolean {
  return scope === '' || path === scope || (path.startsWith(scope) && path[scope.length] === '/')
}

/** A path as the file system takes it: without the slash behind a directory. */
export const barePath = (path: string): RelativePath => (path.endsWith('/') ? path.slice(0, -1) : path) as RelativePath

/** A directory's own key: its path with a trailing slash, so that it cannot be taken for a file of that name. */
export function directoryKey(path: string): RelativePath {
  return `${path}/` as RelativePath
}

/** git takes no path with a part that reads `.git`, in whatever case. */
export function isRepresentable(path: string): boolean {
  return !/(^|\/)\.git(\/|$)/i.test(path)
}

/** What a terminal may obey: C0, DEL, C1, bidirectional marks and overrides. */
export const UNPRINTABLE = /[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** Text from elsewhere, safe on a terminal: control characters are shown as `\xNN`. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (c) => {
    if (c === '\n') return '\\n'
    if (c === '\t') return '\\t'
    const code = c.charCodeAt(0)
    return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })
}

/** A path as a message names it: the worktree itself is `.`. */
export const shown = (path: string): string => printable(pathToText(path)) || '.'

/** So many paths a short list names. */
export const LISTED = 5

/** The first of some paths for a message, and how many more there are. */
export function shortList(paths: readonly string[]): string {
  const first = paths.slice(0, LISTED).map(shown)
  return paths.length > LISTED ? `${first.join(', ')} and ${paths.length - LISTED} more` : first.join(', ')
}

/** The same with what is to be said of each. */
export function reasonedList(paths: readonly { path: string; reason?: string }[]): string {
  const most = 10
  const first = paths
    .slice(0, most)
    .map(({ path, reason }) => `${shown(path)}${reason === undefined ? '' : ` (${reason})`}`)
  return paths.length > most ? `${first.join(', ')}, and ${paths.length - most} more` : first.join(', ')
}

/** `bytes` from `git ls-files -z` and the like, split at each NUL. */
export function splitNul(bytes: Buffer): RelativePath[] {
  const text = pathFromBytes(bytes) as string
  if (text === '') return []
  return (text.endsWith('\0') ? text.slice(0, -1) : text).split('\0') as RelativePath[]
}
