/** Errors as others see them: one class, one shape, paths as text. */
import { CkptError } from '../core/errors.ts'
import { FILE_LIMIT, OPEN_LIMIT, quotedPath } from '../core/hint-words.ts'
import { showPath } from '../core/paths.ts'
import type { FileAction } from '../core/plan.ts'
import { errno } from '../env.ts'
import { isFull } from '../git/denied.ts'
import { actionJson } from './json.ts'
import type { ErrorInfo, FileActionInfo } from './shapes.ts'

/** A system's message that names a path in a store, or where one is made; what belongs to no store lies beside those. */
const STORES =
  /\/(store\.\w+|worktrees|ckpt)(\/(?!(agents|by-path|owners|run)(\/|'))|')|-[0-9a-f]{16}(-\d+-\d+)?\/(lock|owner|bytes|generation|spare|parcel|replaced)[.']/

/** Shows who may do what with a path: on Linux, with each directory on its way. */
const LOOK = process.platform === 'linux' ? 'namei -l' : 'ls -ld'

/** Calls of the system that only look, as its message ends with them. */
const READING = /, (scandir|l?stat|readlink|access|opendir) '/

/** One for either, of which the system does not say which. */
const OPENING = /^EACCES\b.*, open '/

/** What a user may not do with the store, as a message of the system says. */
const deniedIn = (message: string): string =>
  READING.test(message) ? 'read' : OPENING.test(message) ? 'read or written' : 'written'

/** What Node says of an error that it has no name for. */
const NAMELESS_TWICE = /^(Unknown system error -\d+): \1/

/** Whatever was thrown, as the one class of error. */
export function toCkptError(error: unknown): CkptError {
  if (error instanceof CkptError) return error
  const code = errno(error)
  const message = (error instanceof Error ? error.message : String(error)).replace(NAMELESS_TWICE, code ?? '$1')
  if (isFull(code)) {
    return new CkptError(
      'INTERNAL',
      `${code === 'EDQUOT' ? 'The disk quota is exceeded' : 'The disk is full'}: nothing was recorded, and your files were not touched (${message}).`,
      {
        cause: error,
        hints: ['free some space, then run the command again'],
      },
    )
  }
  if (code === 'EFBIG') {
    const said = `A file would be larger than may be written (${message}). Your files were not touched unless said above.`
    return new CkptError('INTERNAL', said, { cause: error, hints: FILE_LIMIT })
  }
  if (code === 'EMFILE' || code === 'ENFILE') {
    const said = `No more files may be opened here (${message}). Your files were not touched unless said above.`
    return new CkptError('INTERNAL', said, { cause: error, hints: OPEN_LIMIT })
  }
  if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM') {
    const said = STORES.test(message)
      ? `The store cannot be ${deniedIn(message)} (${message}). Your files were not touched.`
      : `Not permitted: ${message}. Your files were not touched unless said above.`
    const { path } = error as NodeJS.ErrnoException
    const hint = STORES.test(message) || !path ? 'ckpt doctor' : `${LOOK} ${quotedPath(path)}   (whose it is)`
    return new CkptError('INTERNAL', said, { cause: error, hints: [hint] })
  }
  if (STORES.test(message) && (code === 'EISDIR' || code === 'ENOTDIR' || code === 'ELOOP')) {
    const said = `Something else lies where a file of the store belongs (${message}). Your files were not touched unless said above.`
    return new CkptError('DAMAGED', said, { cause: error, hints: ['move it away, then: ckpt doctor'] })
  }
  return new CkptError('INTERNAL', `Unexpected: ${message}. Your files were not touched unless said above.`, {
    cause: error,
    hints: ['ckpt doctor', 'ckpt verify'],
  })
}

export function errorJson({ code, message, paths, hints }: CkptError): ErrorInfo {
  return {
    code,
    message,
    ...(paths.length > 0 ? { paths: paths.map((path) => showPath(path).path) } : {}),
    ...(hints.length > 0 ? { hints: [...hints] } : {}),
  }
}

/** What is told beside an error: the plan that was refused, and what was done or passed over before. */
export function besideError({ detail, warnings }: CkptError): { files?: FileActionInfo[]; warnings?: string[] } {
  const files = (detail as { files?: FileAction[] } | undefined)?.files
  return {
    ...(files ? { files: files.map(actionJson) } : {}),
    ...(warnings.length > 0 ? { warnings: [...warnings] } : {}),
  }
}
