/** What to do where the system lets something not be written. */
import { FILE_LIMIT, OPEN_LIMIT } from '../../core/hint-words.ts'
import { isFull } from '../../git/denied.ts'

/** Hints for an error of the system; `afterwards`: what to do once it is mended, `otherwise`: where it is none of those known here. */
export function unwrittenHints(
  code: string | undefined,
  { afterwards, otherwise }: { afterwards: string; otherwise: string },
): readonly string[] {
  if (isFull(code)) return [`free some disk space, then${afterwards}`]
  if (code === 'EMFILE' || code === 'ENFILE') return OPEN_LIMIT
  return code === 'EFBIG' ? FILE_LIMIT : [otherwise]
}
