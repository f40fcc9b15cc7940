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
import { setRaw } from '../library/raw-mode.ts'
import { outcomeText, rewindMenu } from '../library/rewind-menu.ts'
import { COLUMNS, ROWS } from '../library/screen.ts'
import { listTurns } from '../ops/history/history.ts'
import { toCkptError } from '../results/errors.ts'
import type { Colors } from './command.ts'
import { type Live, liveLines } from './present/live.ts'
import { plural } from './present/text.ts'
import { listText } from './present/turns.ts'
import { refusalText, runProgram } from './program.ts'
import { movesItsCursor } from './streams.ts'
import { onlyInFront } from './terminal.ts'

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

interface ViewOptions {
  daemon: Daemon
  colors: Colors
  backends: Backends
  log: Logger
}

export function startView(env: Env, options: ViewOptions): View {
  return env.stdout.isTTY && movesItsCursor(env) ? new Screen(env, options) : plainView(env, options)
}

function plainView(env: Env, { daemon }: ViewOptions): View {
  let last = ''
  env.stdout.write(`watching ${printable(daemon.held.root)}\n`)
  return {
    changed: (path) => {
      const name = shown(path)
      if (name === last) return
      last = name
      env.stdout.write(`${new Date(env.now()).toISOString()} ${name}\n`)
    },
    end: () => undefined,
  }
}

/** The terminal's other screen, and its keys, until `end`. */
class Screen implements View {
  readonly #env: Env
  readonly #options: ViewOptions
  readonly #root: string
  readonly #stdin: NodeJS.ReadStream
  readonly #timer: NodeJS.Timeout
  /** Files that changed, the newest last. */
  readonly #recent: string[] = []
  #message = ''
  /** Why the turns cannot be shown, as a command would say it. */
  #failure = ''
  /** All turns were asked for. */
  #all = false
  #dirty = true
  #drawing = false
  /** The rewind menu has the screen and the keys. */
  #asking = false
  #ended = false
  /** The terminal's size when it was drawn last. */
  #drawn = ''
  #unlisten: () => void = () => undefined
  readonly #unheed: () => void

  constructor(env: Env, options: ViewOptions) {
    this.#env = env
    this.#options = options
    const { daemon } = options
    this.#root = printable(daemon.held.root)
    this.#stdin = env.stdin.stream as NodeJS.ReadStream
    daemon.onWorked = () => this.#redraw()
    this.#timer = setInterval(() => {
      this.#draw().catch((error: unknown) => this.#fail(error))
    }, REDRAW)
    this.#listen()
    env.stdout.write(ENTER)
    const heeded = [
      onlyInFront(env, this.#stdin),
      env.onSignal('SIGCONT', () => this.#takeBack()),
      env.onSignal('SIGQUIT', () => {
        this.end()
        env.kill(env.pid, 'SIGQUIT')
      }),
    ]
    this.#unheed = () => {
      for (const off of heeded) off()
    }
  }

  changed(path: string): void {
    const name = shown(path)
    if (!this.#recent.includes(name)) this.#recent.push(name)
    this.#recent.splice(0, this.#recent.length - RECENT)
    this.#redraw()
  }

  end(): void {
    this.#ended = true
    this.#unheed()
    clearInterval(this.#timer)
    this.#unlisten()
    setRaw(this.#stdin, false)
    this.#stdin.pause()
    this.#env.stdout.write('\x1b[?25h\x1b[?1049l')
  }

  #redraw(): void {
    this.#dirty = true
  }

  async #read() {
    const context = await this.#options.daemon.held.context(this.#env)
    const limit = this.#all ? ALL : FEW
    return context && { context, turns: await listTurns(context, { limit, hidden: true }) }
  }

  async #draw(): Promise<void> {
    const [columns, rows] = sizeOf(this.#env)
    const size = `${columns} ${rows}`
    if ((!this.#dirty && size === this.#drawn) || this.#drawing || this.#asking) return
    this.#drawn = size
    this.#dirty = false
    this.#drawing = true
    const now = await this.#read().finally(() => {
      this.#drawing = false
    })
    if (!now) return // it ends at the next look
    this.#failure = ''
    const { colors, backends } = this.#options
    const { turns } = now
    const { capabilities } = await backends.capabilitiesOf(now.context, undefined)
    this.#paint({
      heads: this.#heads(columns),
      turns: (count) =>
        listText({ ...turns, turns: turns.turns.slice(0, count) }, { c: colors, now: this.#env.now(), columns }).split(
          '\n',
        ),
      count: turns.turns.length,
      message: this.#message,
      keys: colors.dim(keysText(capabilities)),
    })
  }

  /** What is watched, in long and in short. */
  #heads(columns: number): string[] {
    const { daemon, colors } = this.#options
    const { why, watched } = daemon.state()
    const { lastMode, lastMs } = daemon.held.state
    const about = [
      plural(watched, 'directory', 'directories'),
      `last snapshot ${lastMs.toFixed(lastMs < 10 ? 1 : 0)} ms${lastMode === 'scan' ? ' (a scan)' : ''}`,
      ...(why === null ? [] : [`the next is a scan: ${why}`]),
    ]
    return [
      `${colors.bold('ckpt')} ${this.#root}  ${colors.dim(about.join(', '))}`,
      clipped(`ckpt ${this.#root}`, columns),
    ]
  }

  #paint(what: Pick<Live, 'heads' | 'turns' | 'count' | 'message' | 'keys'>): void {
    if (this.#asking || this.#ended) return
    const [columns, rows] = sizeOf(this.#env)
    const lines = liveLines({ ...what, files: this.#all ? [] : this.#recent, rows, columns })
    // One write, line by line over what is there: no flicker.
    this.#env.stdout.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`)
  }

  /** Shown instead of the turns until they can be read again. */
  #fail(error: unknown): void {
    const { colors, log } = this.#options
    const { code, message, hints } = toCkptError(error)
    const said = refusalText(message, hints).trimEnd()
    if (said !== this.#failure) log.error({ code }, message)
    this.#failure = said
    const heads = [clipped(`ckpt ${this.#root}`, sizeOf(this.#env)[0])]
    this.#paint({ heads, turns: () => [], count: 0, message: said, keys: colors.dim('q quit') })
  }

  #onKey = (key: Buffer): void => {
    // Several may come at once, over a slow line; those with a name of several characters are none of ours.
    for (const text of key.toString('latin1').replace(OTHER_KEYS, '')) {
      const known = KEYS.find((one) => one.key === text)
      if (text === 'q' || text === '\x03') this.#options.daemon.stop()
      else if (text === 'a') this.#all = !this.#all
      else if (known) void this.#run(known.argv)
    }
    this.#redraw()
  }

  #run(argv: string[]): Promise<void> {
    const env = this.#env
    const { daemon, backends } = this.#options
    return daemon.enqueue(async () => {
      const said = collector(false, env.stdout.columns ?? COLUMNS)
      const streams = { stdout: said.stream, stderr: said.stream, onSignal: () => () => undefined }
      await runProgram(argv, { ...env, held: daemon.held, cwd: daemon.held.root, ...streams }, backends)
      this.#message = said.text().trimEnd()
      this.#redraw()
    })
  }

  #call: Caller = (name, request) => {
    const { daemon, backends } = this.#options
    return daemon.enqueue(() => {
      const at = { ...this.#env, held: daemon.held, cwd: daemon.held.root }
      return callHere({ env: at, cwd: at.cwd, backends, arrived: at.monotonic() }, name, request)
    })
  }

  /** The menu has the keys and the screen until it is done. */
  async #rewind(): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    this.#unlisten()
    const { daemon, colors, log } = this.#options
    this.#env.stdout.write('\x1b[H\x1b[J\x1b[?25h')
    const worktree = new WorktreeFunctions(daemon.held.root, this.#call, undefined)
    const outcome = await rewindMenu(worktree, {
      input: this.#stdin,
      output: this.#env.stdout,
      colors: colors.isColorSupported,
      log: (error) => log.error({ code: error.code }, error.message),
    })
    this.#message = outcomeText(outcome, colors)
    this.#asking = false
    if (!this.#ended) this.#listen()
    this.#redraw()
  }

  #listen(): void {
    setRaw(this.#stdin, true)
    this.#stdin.on('data', this.#onKey)
    const stop = onDoubleEscape(this.#stdin, DOUBLE, () => void this.#rewind())
    this.#unlisten = () => {
      this.#stdin.off('data', this.#onKey)
      stop()
    }
    this.#stdin.resume()
    this.#env.stdout.write('\x1b[?25l')
  }

  /** Who stopped us and lets us go on has had the screen and the keys meanwhile. */
  #takeBack(): void {
    if (this.#asking) return
    setRaw(this.#stdin, false) // or it would be taken for raw still
    setRaw(this.#stdin, true)
    this.#env.stdout.write(ENTER)
    this.#redraw()
  }
}

function keysText(capabilities: Readonly<Record<Capability, boolean>>): string {
  const offered = KEYS.filter(({ needs }) => capabilities[needs]).map(({ key, what }) => `${key} ${what}`)
  return [...offered, ...(capabilities.supportsUndo ? ['Esc Esc rewind'] : []), 'a all turns', 'q quit'].join('  ')
}
