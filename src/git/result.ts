/** What a git ended with. */

export interface GitResult {
  code: number
  stdout: Buffer
  stderr: string
  /** The signal that ended it, if it was its own doing (SIGABRT, SIGSEGV, SIGBUS): it met what it could not cope with. */
  crash: NodeJS.Signals | null
  /** The signal of somebody else's that ended it. */
  ended?: NodeJS.Signals | null
  /** It could not write, and there is no room: it need not have said so. */
  noRoom?: boolean
}

/** Somebody else sends these; SIGPIPE comes of who reads what it says, which may have failed itself. */
const FROM_OUTSIDE: ReadonlySet<NodeJS.Signals> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'])

/** Whose doing the signal was that ended a git. */
export const endedBy = (signal: NodeJS.Signals | null): Pick<GitResult, 'crash' | 'ended'> => ({
  crash: signal && !FROM_OUTSIDE.has(signal) && signal !== 'SIGPIPE' ? signal : null,
  ended: signal && FROM_OUTSIDE.has(signal) ? signal : null,
})
