/** What `ckpt watch` shows: the session, its turns, files as they change. Plain lines where there is no terminal. */
import type { Logger } from 'pino'
import type { Backends } from '../backends/backends.ts'
import { callHere } from '../calls/call.ts'
import type { Capability } from '../core/capabilities.ts'
import { clipped } from '../core/columns.ts'
import { printable, shown } from '../core/paths.ts'
import { collector } from '../daemon/collector.ts'
import type { Daemon } from '../daemon/server.ts'
import type { Env } from '../env.ts'
import { onDoubleEscape } from '../library/double-escape.ts'
import { type Caller, WorktreeFunctions } from '../library/facade.ts'
import { outcomeText, rewindMenu } from '../library/rewind-menu.ts'
import { COLUMNS, ROWS } from '../library/screen.ts'
import { listTurns } from '../ops/history/history.ts'
import { toCkptError } from '../results/errors.ts'
import type { Colors } from './command.ts'
import { type Live, liveLines } from './present/live.ts'
import { plural } from './present/text.ts'
import { listText } from './present/turns.ts'
import { refusalText, runProgram } from './program.ts'

/** Another screen of the terminal, without a cursor. */
const ENTER = '\x1b[?1049h\x1b[?25l'
/** Milliseconds between two redraws, and within which a second Escape counts. */
const REDRAW = 250
const DOUBLE = 300
const RECENT = 8
/** Turns that are shown, where there is room for them; all: when that was asked for. */
const [FEW, ALL] = [6, 50]
/** What a key does, and what the session has to be able to do for it. */
const KEYS: readonly { key: string; what: string; argv: string[]; needs: Capability }[] = [
  { key: 'u', what: 'undo', argv: ['undo'], needs: 'supportsUndo' },
  { key: 'r', what: 'redo', argv: ['redo'], needs: 'supportsRedo' },
  { key: 'd', what: 'diff', argv: ['diff', '--stat'], needs: 'supportsDiff' },
]

/** Arrows and the like, as a terminal sends them (ECMA-48, CSI and SS3; Alt with a key). */
const OTHER_KEYS = /\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|[^\x1b])?/g

const sizeOf = ({ stdout }: Env): [columns: number, rows: number] => [stdout.columns || COLUMNS, stdout.rows || ROWS]

export interface View {
  changed: (path: string) => void
  end: () => void
}

export function startView(
  env: Env,
  { daemon, colors, backends, log }: { daemon: Daemon; colors: Colors; backends: Backends; log: Logger },
): View {
  const terminal = Boolean(env.stdout.isTTY)
  const recent: string[] = []
  if (!terminal) {
    env.stdout.write(`watching ${printable(daemon.held.root)}\n`)
    return {
      changed: (path) => {
        const name = shown(path)
        if (recent.at(-1) === name) return
        recent.push(name)
        recent.splice(0, recent.length - RECENT)
        env.stdout.write(`${new Date(env.now()).toISOString()} ${name}\n`)
      },
      end: () => undefined,
    }
  }
  const root = printable(daemon.held.root)
  let message = ''
  /** Why the turns cannot be shown, as a command would say it. */
  let failure = ''
  let all = false
  let dirty = true
  let drawing = false
  let asking = false
  let drawn = ''
  const read = async () => {
    const context = await daemon.held.context(env)
    return context && { context, turns: await listTurns(context, { limit: all ? ALL : FEW, hidden: true }) }
  }
  const draw = async () => {
    const [columns, rows] = sizeOf(env)
    const size = `${columns} ${rows}`
    if ((!dirty && size === drawn) || drawing || asking) return
    drawn = size
    dirty = false
    drawing = true
    const now = await read().finally(() => {
      drawing = false
    })
    if (!now) return // it ends at the next look
    failure = ''
    const { context, turns } = now
    const { why, watched } = daemon.state()
    const { lastMode, lastMs } = daemon.held.state
    const about = [
      plural(watched, 'directory', 'directories'),
      `last snapshot ${lastMs.toFixed(lastMs < 10 ? 1 : 0)} ms${lastMode === 'scan' ? ' (a scan)' : ''}`,
      ...(why === null ? [] : [`the next is a scan: ${why}`]),
    ]
    const heads = [`${colors.bold('ckpt')} ${root}  ${colors.dim(about.join(', '))}`, clipped(`ckpt ${root}`, columns)]
    const { capabilities } = await backends.capabilitiesOf(context, undefined)
    const offered = KEYS.filter(({ needs }) => capabilities[needs]).map(({ key, what }) => `${key} ${what}`)
    const keys = colors.dim(
      [...offered, ...(capabilities.supportsUndo ? ['Esc Esc rewind'] : []), 'a all turns', 'q quit'].join('  '),
    )
    paint({
      heads,
      turns: (count) =>
        listText({ ...turns, turns: turns.turns.slice(0, count) }, { c: colors, now: env.now(), columns }).split('\n'),
      count: turns.turns.length,
      message,
      keys,
    })
  }
  const paint = (what: Pick<Live, 'heads' | 'turns' | 'count' | 'message' | 'keys'>) => {
    if (asking) return
    const [columns, rows] = sizeOf(env)
    const lines = liveLines({ ...what, files: all ? [] : recent, rows, columns })
    // One write, line by line over what is there: no flicker.
    env.stdout.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`)
  }
  /** Shown instead of the turns until they can be read again. */
  const fail = (error: unknown) => {
    const { code, message, hints } = toCkptError(error)
    const said = refusalText(message, hints).trimEnd()
    if (said !== failure) log.error({ code }, message)
    failure = said
    const heads = [clipped(`ckpt ${root}`, sizeOf(env)[0])]
    paint({ heads, turns: () => [], count: 0, message: failure, keys: colors.dim('q quit') })
  }
  const redraw = () => {
    dirty = true
  }
  daemon.onWorked = redraw
  const timer = setInterval(() => {
    draw().catch(fail)
  }, REDRAW)
  const run = (argv: string[]) =>
    daemon.enqueue(async () => {
      const said = collector(false, env.stdout.columns ?? COLUMNS)
      await runProgram(
        argv,
        {
          ...env,
          held: daemon.held,
          cwd: daemon.held.root,
          stdout: said.stream,
          stderr: said.stream,
          onSignal: () => () => undefined,
        },
        backends,
      )
      message = said.text().trimEnd()
      redraw()
    })
  const onKey = (key: Buffer) => {
    // Several may come at once, over a slow line; those with a name of several characters are none of ours.
    for (const text of key.toString('latin1').replace(OTHER_KEYS, '')) {
      if (text === 'q' || text === '\x03') daemon.stop()
      else if (text === 'a') all = !all
      else if (KEYS.some(({ key }) => key === text)) void run(KEYS.find(({ key }) => key === text)!.argv)
    }
    redraw()
  }
  const stdin = env.stdin.stream as NodeJS.ReadStream
  const call: Caller = (name, request) =>
    daemon.enqueue(() => {
      const at = { ...env, held: daemon.held, cwd: daemon.held.root }
      return callHere({ env: at, cwd: at.cwd, backends, arrived: env.monotonic() }, name, request)
    })
  /** The menu has the keys and the screen until it is done. */
  const rewind = async () => {
    if (asking) return
    asking = true
    unlisten()
    env.stdout.write('\x1b[H\x1b[J\x1b[?25h')
    const worktree = new WorktreeFunctions(daemon.held.root, call, undefined)
    const outcome = await rewindMenu(worktree, {
      input: stdin,
      output: env.stdout,
      colors: colors.isColorSupported,
      log: (error) => log.error({ code: error.code }, error.message),
    })
    message = outcomeText(outcome, colors)
    asking = false
    if (!ended) listen()
    redraw()
  }
  let unlisten: () => void = () => undefined
  let ended = false
  const listen = () => {
    stdin.setRawMode?.(true)
    stdin.on('data', onKey)
    const stop = onDoubleEscape(stdin, DOUBLE, () => void rewind())
    unlisten = () => {
      stdin.off('data', onKey)
      stop()
    }
    stdin.resume()
    env.stdout.write('\x1b[?25l')
  }
  listen()
  env.stdout.write(ENTER)
  // Who stopped us and lets us go on has had the screen and the keys meanwhile.
  const deaf = env.onSignal('SIGCONT', () => {
    if (asking) return
    stdin.setRawMode?.(false) // or it would be taken for raw still
    stdin.setRawMode?.(true)
    env.stdout.write(ENTER)
    redraw()
  })
  return {
    changed: (path) => {
      const name = shown(path)
      if (!recent.includes(name)) recent.push(name)
      recent.splice(0, recent.length - RECENT)
      redraw()
    },
    end: () => {
      ended = true
      deaf()
      clearInterval(timer)
      unlisten()
      stdin.setRawMode?.(false)
      stdin.pause()
      env.stdout.write('\x1b[?25h\x1b[?1049l')
    },
  }
}
