/**
 * Watches an agent's own records while a daemon runs: a turn whose hooks did not run is recorded as soon as it is written
 * down. The records are only read.
 */
import { setImmediate } from 'node:timers/promises'
import type { FSWatcher } from 'chokidar'
import type { SessionId } from '../core/ids.ts'
import type { Marker } from '../core/marker.ts'
import { type Env, statIfThere } from '../env.ts'
import { mark } from '../ops/mark.ts'
import { notePrompt, timelineOf, turnElsewhere, turnKnownBy, turnWithoutId } from '../ops/said.ts'
import type { Context } from '../ops/worktree/context.ts'
import type { Agent, SaidPrompt, TranscriptReader, Transcripts } from './agent.ts'
import { markerId } from './payload.ts'
import { directoryOf, placeOf } from './said-here.ts'
import { AT_REST, GrowingFile } from './transcript.ts'

export interface TranscriptWatchOptions {
  agent: Agent & { transcripts: Transcripts }
  root: string
  /** Runs work in the worktree that is held open, one piece at a time. */
  inTurn: (work: (context: Context) => Promise<void>) => Promise<void>
  /** The kernel told something, whatever it was. */
  onEvent?: () => void
  log: (message: string, details?: object) => void
  /** Milliseconds between a line and the look at it: a hook tells of a prompt before it is written down. */
  grace?: number
}

/** Milliseconds; and between two looks for the agent's directory. */
const GRACE = 100
const LOOK_AGAIN = 5000
/** Bytes that are looked through of a transcript whose last turn may have been at work when we came. */
const LATEST = 2 ** 22

interface Followed {
  reader: TranscriptReader
  file: GrowingFile
}

export class TranscriptWatch {
  readonly #env: Env
  readonly #options: TranscriptWatchOptions
  readonly #directory: string
  /** Milliseconds since 1970: a turn that was said before and is not recorded is for `ckpt import-transcript`. */
  readonly #since: number
  #watcher: FSWatcher | null = null
  #looking: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | null = null
  #stopped = false
  /** There was nothing when we came. */
  #allNew = false
  readonly #files = new Map<string, Followed>()
  readonly #due = new Map<string, NodeJS.Timeout>()
  /** What is settled, by the message id of the prompt, which a fork keeps: it is not looked at again. */
  readonly #settled = new Map<string, 'begun' | 'ended'>()
  /** By transcript and directory: whether what was said there is this worktree's. */
  readonly #own = new Map<string, boolean>()

  constructor(env: Env, options: TranscriptWatchOptions) {
    this.#env = env
    this.#options = options
    this.#since = env.now()
    this.#directory = options.agent.transcripts.directory({ home: env.home, vars: env.vars })
  }

  /** Begins when the agent's directory is there, which may be later. */
  async start(): Promise<void> {
    if (!this.#env.files.existsSync(this.#directory)) {
      this.#allNew = true
      this.#timer = setTimeout(() => this.start().catch((error: unknown) => this.#failed(error)), LOOK_AGAIN)
      this.#timer.unref()
      return
    }
    const { watch } = await import('chokidar')
    const { agent, root } = this.#options
    const directory = this.#env.files.realpathSync(this.#directory) // a link to it would be watched as a link
    const prefix = `${directory}/${agent.transcripts.prefix(root)}`
    const watcher = watch(directory, {
      depth: 1,
      followSymlinks: false,
      ignored: (path) => path !== directory && !path.startsWith(prefix),
    })
    this.#watcher = watcher
    let ready = this.#allNew
    watcher.on('raw', () => this.#options.onEvent?.())
    watcher.on('add', (path) => {
      if (!path.endsWith('.jsonl')) return
      if (ready) this.#later(path)
      else this.#passOver(path)
    })
    watcher.on('change', (path) => {
      if (path.endsWith('.jsonl')) this.#later(path)
    })
    watcher.on('unlink', (path) => this.#files.delete(path)) // what comes in its place is another one
    watcher.on('unlinkDir', (path) => {
      if (path === directory) void this.#again(watcher).catch((error: unknown) => this.#failed(error))
    })
    watcher.on('error', (error) => this.#failed(error))
    await new Promise<void>((resolve) => watcher.on('ready', resolve))
    ready = true
  }

  /** The directory went: another one may come in its place. */
  async #again(watcher: FSWatcher): Promise<void> {
    if (this.#watcher !== watcher) return
    this.#watcher = null
    await watcher.close()
    if (!this.#stopped) await this.start()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer) clearTimeout(this.#timer)
    for (const timer of this.#due.values()) clearTimeout(timer)
    this.#due.clear()
    await this.#watcher?.close()
  }

  /** Of what was said before we came only the last may be at work; lines tell when that was, a file when it was written to. */
  #passOver(path: string): void {
    const { size = 0, mtimeMs = 0 } = statIfThere(this.#env.files, path) ?? {}
    if (mtimeMs < this.#since - AT_REST) return void this.#follow(path, size)
    this.#follow(path, Math.max(0, size - LATEST))
    this.#later(path)
  }

  #follow(path: string, from: number): Followed {
    const followed = {
      reader: this.#options.agent.transcripts.reader(),
      file: new GrowingFile(this.#env, path, from),
    }
    this.#files.set(path, followed)
    return followed
  }

  #failed(error: unknown): void {
    this.#options.log('transcripts', { error: String(error) })
  }

  #later(path: string): void {
    if (this.#due.has(path)) return
    const timer = setTimeout(() => {
      this.#due.delete(path)
      this.#looking = this.#looking.then(() => this.#look(path)).catch((error: unknown) => this.#failed(error))
    }, this.#options.grace ?? GRACE)
    timer.unref()
    this.#due.set(path, timer)
  }

  /** What was added to a transcript since the last look, and all prompts of this worktree in what was read of it. */
  async #read(path: string): Promise<readonly SaidPrompt[]> {
    const { reader, file } = this.#files.get(path) ?? this.#follow(path, 0)
    for (let lines = file.next(); lines !== null && !this.#stopped; lines = file.next()) {
      reader.add(lines)
      await setImmediate() // hooks are waiting
    }
    const ours: SaidPrompt[] = []
    for (const prompt of reader.prompts) if (await this.#isOurs(path, reader.prompts, prompt)) ours.push(prompt)
    return ours
  }

  /** Told once for a directory, for that may be gone later. */
  async #isOurs(path: string, prompts: readonly SaidPrompt[], prompt: SaidPrompt): Promise<boolean> {
    const { agent, root } = this.#options
    const directory = directoryOf(prompt, prompts) ?? root
    const told = `${path}\n${directory}`
    const known = this.#own.get(told)
    if (known !== undefined) return known
    const { transcripts } = agent
    const isOurs = (await placeOf(this.#env, { directory, root }, { transcripts, path, prompts })) === 'here'
    this.#own.set(told, isOurs)
    return isOurs
  }

  async #look(path: string): Promise<void> {
    const prompts = await this.#read(path)
    // A fork takes its parent's prompts along.
    const isOld = ({ time }: SaidPrompt) => time !== null && Date.parse(time) < this.#since
    const mayBeAtWork = prompts.findLast(isOld)
    for (const prompt of prompts) {
      if (isOld(prompt) && prompt !== mayBeAtWork) continue
      const settled = this.#settled.get(prompt.messageId)
      const { end } = prompt
      if (settled === 'ended' || (settled === 'begun' && end === null)) continue
      const before = isOld(prompt) ? { begin: false, late: settled === undefined } : { begin: true, late: false }
      await this.#options.inTurn((context) => this.#record(context, prompt, before))
      this.#settled.set(prompt.messageId, end === null ? 'begun' : 'ended')
    }
  }

  /** What a hook has told of meanwhile is left as it is. `late`: whether it ended before we came, if it did. */
  async #record(context: Context, said: SaidPrompt, { begin, late }: { begin: boolean; late: boolean }): Promise<void> {
    const { session, marker, ids, text, messageId, notice, end } = said
    const { agent } = this.#options
    // Hooks that name no prompt tell of it in other words, it may be: what no record names (older versions) is for an import.
    const isNamed = ids.length > 1
    const say = (one: Marker) => mark(context, one, context.env.monotonic())
    const names = [marker, ...ids]
    const timeline = await timelineOf(context, session)
    let turn = turnKnownBy(timeline, names) ?? (await turnWithoutId(context, timeline, said))
    if (!turn) {
      if (!begin || !isNamed) return
      // Nobody's words clear no boundary, and a fork's first are not those that it took along.
      if ((notice && timeline.boundary) || (await turnElsewhere(context, { but: session, ids: names }))) return
      const parent = timeline.turns.length === 0 ? await this.#parentOf(context, said) : {}
      await say({ event: 'prompt', session, agent: agent.name, text, messageId, marker, ...parent })
      turn = turnKnownBy(await timelineOf(context, session), [marker])
    } else if (!notice) await notePrompt(context, { before: turn.before.id, text }) // one that no hook told of
    // A turn that hooks began is theirs to end, but no hook tells of an interrupt. They do not know this message id then.
    const isOurs = turn?.before.messageId === messageId
    if (end === null || !turn || turn.after || (end !== 'interrupted' && !isOurs)) return
    const stop = markerId(marker, 'stop')
    const known = {
      ...(notice ? {} : { messageId }),
      ...(stop ? { marker: stop } : {}),
      ...(turn.before.marker === undefined ? {} : { turn: turn.before.marker }), // none that began meanwhile
      ...(late ? { late } : {}),
    }
    await say({ event: 'stop', session, status: end, onlyRunning: true, ...known })
  }

  /** A conversation that goes on with a turn of another one was forked from it. */
  async #parentOf(context: Context, { session, parent }: SaidPrompt): Promise<{ parent?: SessionId }> {
    const original = parent === null ? null : await turnElsewhere(context, { but: session, ids: [parent] })
    return original ? { parent: original.session } : {}
  }
}
