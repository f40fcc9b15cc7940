/** Where a command's words go, and what becomes of it when they cannot be written. */
import { type Env, errno } from '../env.ts'

/** Of the terminal that is written to; undefined where it is none, or does not tell. */
export const columnsIn = ({ stdout }: Env): number | undefined => (stdout.isTTY && stdout.columns) || undefined

/** Whether a terminal does what moves its cursor, which menus and views want: a dumb one (terminfo(5)) shows it as text. */
export const movesItsCursor = ({ vars }: Env): boolean => vars.TERM !== 'dumb'

/** The first error of the two streams, once there is one. */
export interface Unsaid {
  error: Error | null
}

export function listen(env: Env): Unsaid {
  const unsaid: Unsaid = { error: null }
  for (const stream of [env.stdout, env.stderr])
    stream.on('error', (error: Error) => {
      unsaid.error ??= error
    })
  return unsaid
}

/** The exit code of a command, once all was written or could not be. */
export async function codeOnceSaid(
  env: Env,
  { argv, code, unsaid }: { argv: readonly string[]; code: number; unsaid: Unsaid },
): Promise<number> {
  await new Promise<void>((resolve) => env.stdout.write('', () => resolve()))
  const { error } = unsaid
  // A hook is never what fails an agent, for which 2 may mean to stop; with EPIPE, whoever read us has seen enough.
  if (argv[0] === 'hook') return 0
  if (error === null || errno(error) === 'EPIPE') return code
  env.stderr.write(`ckpt: What was done could not be said: ${error.message}\n`)
  return code === 0 ? 1 : code
}
