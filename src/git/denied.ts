/** What the machine denies whoever asks: no room, a limit, or a program that somebody ended. Nothing that was read is to blame for it. */
import { errno } from '../env.ts'

/** No room, on the disk or of what this user may have of it. */
const ROOM: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT'])

/** Files to open, the size of a file, processes, memory: setrlimit(2). */
const LIMITS: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE', 'EFBIG', 'EAGAIN', 'ENOMEM'])

/** Those, and EINTR: a program of ours that somebody ended. */
const MACHINE: ReadonlySet<string | undefined> = new Set([...ROOM, ...LIMITS, 'EINTR'])

/** Whether an error has such a code, or what caused it. */
const isOf = (codes: ReadonlySet<string | undefined>, error: unknown): boolean =>
  error instanceof Error && (codes.has(errno(error)) || isOf(codes, error.cause))

export const isFull = (code: string | undefined): boolean => ROOM.has(code)

/** Whether an error is for want of room, whoever met it. */
export const isOutOfRoom = (error: unknown): boolean => isOf(ROOM, error)

/** Whether this process may not have what it wanted. Another one may have more. */
export const isOfLimits = (error: unknown): boolean => isOf(LIMITS, error)

/** Whether the machine, or who ended a program, is to blame for an error: it is no verdict on what was read. */
export const isOfMachine = (error: unknown): boolean => isOf(MACHINE, error)
