/** What a command is to the program: arguments in, one result out. */
import type pc from 'picocolors'
import type { Backends } from '../backends/backends.ts'
import type { Env } from '../env.ts'

export type Colors = ReturnType<typeof pc.createColors>

interface GlobalArguments {
  json: boolean
  cwd?: string
  color: boolean
  quiet: boolean
  daemon: boolean
}

export type Arguments = GlobalArguments & Record<string, unknown> & { '--'?: string[] }

export interface Output {
  /** Fields of the JSON document, beside schemaVersion and ok. */
  json: object
  /** For a person, on standard output. */
  text: string
  warnings?: readonly string[]
  /** The text is data that was asked for: `--quiet` does not hide it. Long text goes through a pager on a terminal. */
  paged?: boolean
  /** There is nothing of what was asked for, and the text says so: prose, for standard error, and not with `paged`. */
  isNone?: boolean
  exitCode?: number
  /** False: the command failed, though it ran to its end (verify). */
  ok?: boolean
  error?: { code: string; message: string; hints?: readonly string[] }
}

export interface Invocation {
  env: Env
  args: Arguments
  /** Absolute; where the command was started, or `--cwd`. */
  cwd: string
  colors: Colors
  /** Milliseconds of the monotonic clock when the program began. */
  arrived: number
  backends: Backends
}

export type Command = (invocation: Invocation) => Promise<Output>

export type Parsed = { kind: 'help'; text: string } | { kind: 'run'; args: Arguments; command: Command }
