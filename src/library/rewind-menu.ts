/** A list of turns on a terminal; the one that is picked is gone back to. For front ends, whatever undoes their sessions. */
import type { Readable } from 'node:stream'
import type pc from 'picocolors'
import { clipped } from '../core/columns.ts'
import { CkptError } from '../core/errors.ts'
import { printable } from '../core/paths.ts'
import { tell } from '../core/tell.ts'
import type { ChangeInfo, TurnInfo } from '../results/shapes.ts'
import { answered } from './answered.ts'
import type { WorktreeFunctions } from './facade.ts'
import { when } from './local-time.ts'
import { checkedOptions, isFunction, isSwitch, isText } from './options.ts'
import { roomIn, screen } from './screen.ts'

export interface RewindMenuOptions {
  /** The session; the one of the newest turn marker unless told. */
  session?: string | undefined
  /** Where keys come from: standard input unless told. */
  input?: NodeJS.ReadableStream | undefined
  /** Where the menu is shown, and what came of it: standard output unless told. */
  output?: NodeJS.WritableStream | undefined
  /** Unless told, as the terminal and `NO_COLOR` say. */
  colors?: boolean | undefined
  /** Hears of what failed, for the front end's own log. */
  log?: ((error: CkptError) => void) | undefined
}

/** What came of the menu. `refused`: checkpoints are off, there are none, or nobody can be asked; `cancelled`: the person left it. */
export type RewindOutcome =
  | { kind: 'restored'; turn: number; change: ChangeInfo }
  | { kind: 'failed'; error: CkptError }
  | { kind: 'refused'; message: string }
  | { kind: 'cancelled' }

/** Turns that are offered. */
const OFFERED = 200

type Colors = ReturnType<typeof pc.createColors>

const CHECKS = {
  session: isText,
  input: (value: unknown) => (isCalled(value, 'on') ? null : 'a stream of keys'),
  output: (value: unknown) => (isCalled(value, 'write') ? null : 'a stream to write to'),
  colors: isSwitch,
  log: isFunction,
}

const isCalled = (value: unknown, name: string): boolean =>
  typeof (value as Record<string, unknown> | null)?.[name] === 'function'

/**
 * Lists the turns of a session, asks for one, and goes back to before it: list → pick → restore. Says in green what was
 * restored, in red what failed. Nothing is thrown: what went wrong is in the result, and told to `log`. Where no `input` is
 * given and standard input is no terminal nobody is asked: refused.
 */
export async function rewindMenu(worktree: WorktreeFunctions, options: RewindMenuOptions = {}): Promise<RewindOutcome> {
  try {
    if (!isCalled(worktree?.sessions, 'undo') || !isCalled(worktree, 'turns'))
      throw new CkptError('USAGE', 'rewindMenu takes what openWorktree or connectDaemon gives. Nothing was changed.')
    return await menu(worktree, checkedOptions<RewindMenuOptions>(options, CHECKS))
  } catch (thrown) {
    const error = asError(thrown)
    if (typeof options?.log === 'function') tell(options.log, error)
    return { kind: 'failed', error }
  }
}

const asError = (thrown: unknown): CkptError =>
  thrown instanceof CkptError ? thrown : new CkptError('INTERNAL', String(thrown), { cause: thrown })

async function menu(worktree: WorktreeFunctions, options: RewindMenuOptions): Promise<RewindOutcome> {
  const { input = process.stdin, output = process.stdout } = options
  const colored = options.colors ?? ((output as { isTTY?: boolean }).isTTY === true && !process.env.NO_COLOR)
  const colors = (await import('picocolors')).default.createColors(colored)
  const told = (outcome: RewindOutcome): RewindOutcome => {
    const text = outcomeText(outcome, colors)
    if (text !== '') output.write(`${text}\n`)
    return outcome
  }
  try {
    const turns = await offered(worktree, options.session)
    if (!turns) return told({ kind: 'refused', message: 'Checkpoint feature not enabled' })
    if (turns.length === 0) return told({ kind: 'refused', message: 'No checkpoints available' })
    if (options.input === undefined && !process.stdin.isTTY)
      return told({
        kind: 'refused',
        message: 'Standard input is no terminal: nobody was asked, and nothing was changed',
      })
    const turn = await pick(turns, { input, output, colored })
    if (!turn) return { kind: 'cancelled' }
    const change = await worktree.sessions.undo({ session: turn.session, to: String(turn.n) })
    return told({ kind: 'restored', turn: turn.n, change })
  } catch (thrown) {
    const error = asError(thrown)
    if (options.log) tell(options.log, error)
    return told({ kind: 'failed', error })
  }
}

/** @internal What is said of it: green, red, or plain; nothing when it was cancelled. */
export function outcomeText(outcome: RewindOutcome, { green, red }: Pick<Colors, 'green' | 'red'>): string {
  switch (outcome.kind) {
    case 'restored':
      return green(`Restored to before turn ${outcome.turn}: ${counted(outcome.change)}.`)
    case 'failed':
      return [
        red(printable(outcome.error.message)),
        ...outcome.error.hints.map((hint) => `  → ${printable(hint)}`),
      ].join('\n')
    case 'refused':
      return outcome.message
    case 'cancelled':
      return ''
  }
}

/** Null: checkpoints are off there. None: also where there is no such session. */
async function offered(worktree: WorktreeFunctions, session: string | undefined): Promise<readonly TurnInfo[] | null> {
  try {
    const { capabilities, enabled } = await worktree.sessions.capabilities(session)
    if (!enabled || !capabilities.supportsUndo) return null
    return (await worktree.turns({ ...(session === undefined ? {} : { session }), limit: OFFERED })).turns
  } catch (error) {
    if (error instanceof CkptError && error.code === 'NOT_FOUND') return []
    throw error
  }
}

async function pick(
  turns: readonly TurnInfo[],
  { input, output, colored }: { input: NodeJS.ReadableStream; output: NodeJS.WritableStream; colored: boolean },
): Promise<TurnInfo | null> {
  const { select } = await import('@clack/prompts')
  const room = roomIn(output as { columns?: number })
  const options = turns.map((turn, value) => {
    const line = `${String(turn.n).padStart(3)}  ${when(turn.startedAt, Date.now())}  ${printable(turn.prompt)}`
    return { value, label: clipped(line, room) }
  })
  const value = await answered(input, (signal) =>
    select<number>({
      message: 'Back to before which turn?',
      options,
      input: input as unknown as Readable,
      output: screen(output, { colors: colored }),
      signal,
    }),
  )
  return value === null ? null : turns[value]!
}

function counted({ files, summary }: ChangeInfo): string {
  const count = files.length || (summary?.files ?? 0)
  return count === 0 ? 'no files differ' : count === 1 ? '1 file' : `${count} files`
}
