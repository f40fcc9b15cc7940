/** Exit codes and error codes: the contract with scripts. In the order in which they win when several apply. */
export const EXIT_CODES = {
  USAGE: 2,
  CONFIG: 2,
  BAD_MARKER: 2,
  BAD_ROOT: 9,
  NOT_INITIALIZED: 9,
  UNSUPPORTED: 6,
  LOCKED: 8,
  GIT_BUSY: 8,
  TURN_RUNNING: 8,
  BOUNDARY_PENDING: 5,
  NOTHING_TO_UNDO: 3,
  NOTHING_TO_REDO: 3,
  NOT_FOUND: 3,
  DAMAGED: 7,
  VERIFY_FAILED: 7,
  CONFLICT: 4,
  CANCELLED: 1,
  INTERNAL: 1,
} as const

export type ErrorCode = keyof typeof EXIT_CODES

/** What somebody runs next who has no turn yet. */
export const FIRST_TURN: readonly string[] = [
  'ckpt agent install NAME   (an agent tells of its turns)',
  'ckpt run -- COMMAND   (one command as a turn)',
]

/**
 * Everything that ends a command early. `message` says what is wrong and what was left untouched; `hints` are the
 * commands to run next; `paths` are worktree paths (bytes) the error is about; `warnings` tell of what was done or passed
 * over before it.
 */
export class CkptError extends Error {
  readonly code: ErrorCode
  readonly hints: readonly string[]
  readonly paths: readonly string[]
  warnings: readonly string[]
  /** What JSON output gives beside the error (a plan that was refused). */
  readonly detail: Record<string, unknown> | undefined

  constructor(
    code: ErrorCode,
    message: string,
    more: {
      hints?: readonly string[]
      paths?: readonly string[]
      warnings?: readonly string[]
      cause?: unknown
      detail?: Record<string, unknown> | undefined
    } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'CkptError'
    this.code = code
    this.hints = more.hints ?? []
    this.paths = more.paths ?? []
    this.warnings = more.warnings ?? []
    this.detail = more.detail
  }

  get exitCode(): number {
    return EXIT_CODES[this.code]
  }

  /** For JSON.stringify: `message` is no property of its own to that. */
  toJSON(): object {
    return { ...this, message: this.message }
  }
}

/** The worktree changed while it was looked at in a way that what was seen does not go together: it is to be looked at again. */
export class MovedMeanwhile extends CkptError {
  constructor(what: string) {
    super('INTERNAL', `${what} The worktree changes too fast to be recorded now. Nothing was changed.`, {
      hints: ['run the command again'],
    })
  }
}

/** Something in a store is missing or cannot be read. */
export const isDamage = (error: unknown): error is CkptError => error instanceof CkptError && error.code === 'DAMAGED'

/** What work gives; `otherwise` where what it reads in a store is missing or damaged. */
export async function unlessDamaged<T, U>(work: () => Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await work()
  } catch (error) {
    if (!isDamage(error)) throw error
    return otherwise
  }
}

/** What went wrong, for a sentence of one who has changed something already: without the word that nothing was. */
export function reasonOf(cause: unknown): string {
  const said = cause instanceof Error ? cause.message.split('\n')[0]! : String(cause)
  return said.replace(/ Nothing was [^.]*\.$/, '').replace(/[^.!?]$/, '$&.')
}
