/** What lies in the package beside the compiled program. */
import { fileURLToPath } from 'node:url'
import { CkptError } from './core/errors.ts'
import type { Env } from './env.ts'

/** A file of the package, from wherever the compiled program lies below it. @throws CkptError INTERNAL */
export function packageFile({ files }: Pick<Env, 'files'>, name: string): string {
  let at = fileURLToPath(new URL('.', import.meta.url))
  for (let depth = 0; depth < 4; depth++) {
    if (files.existsSync(`${at}${name}`)) return `${at}${name}`
    at = at.slice(0, at.slice(0, -1).lastIndexOf('/') + 1)
  }
  throw new CkptError('INTERNAL', `${name} is not in the package of ckpt. Nothing was changed.`, {
    hints: ['install ckpt again'],
  })
}
