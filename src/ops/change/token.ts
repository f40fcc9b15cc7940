/** The token of a dry run: what was asked, and the fingerprint of the plan that was printed. Nothing is stored for it. */
import { createHash } from 'node:crypto'
import { CkptError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import type { FileAction } from '../../core/plan.ts'
import type { WorktreeRefs } from '../../git/history.ts'

export interface Token {
  op: 'undo' | 'redo' | 'restore'
  options: object
  hash: string
}

/** Changes when anything that the plan rests on moved. */
export function planHash(refs: WorktreeRefs, session: SessionId, actions: readonly FileAction[]): string {
  const one = refs.sessions.get(session)
  const facts = [
    one?.live?.id ?? null,
    one?.boundary?.id ?? null,
    actions.map(({ path, action, pre, post }) => [path, action, pre, post]),
  ]
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32)
}

export function makeToken(token: Token): string {
  return Buffer.from(JSON.stringify({ v: 1, ...token }), 'utf8').toString('base64url')
}

/** The session that the dry run named; undefined: none, and the newest was meant. */
export function sessionOf({ options }: Token): string | undefined {
  return 'session' in options ? String(options.session) : undefined
}

/** Where nobody knows in which words it was asked. */
export const ONCE_MORE = 'run the dry run again'

export function staleToken(cause?: CkptError): CkptError {
  return new CkptError(
    'CONFLICT',
    'Something changed since that dry run: its plan no longer holds. Nothing was written.',
    { hints: [ONCE_MORE], cause },
  )
}

const GONE: ReadonlySet<string> = new Set(['NOTHING_TO_UNDO', 'NOTHING_TO_REDO', 'NOT_FOUND'])

/** Of an error met on the way to a plan that a dry run has made before: what is not there any more was there then. */
export const whenApplied = (error: unknown): unknown =>
  error instanceof CkptError && GONE.has(error.code) ? staleToken(error) : error
