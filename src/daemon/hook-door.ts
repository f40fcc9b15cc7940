/** The daemon's end of the place where agents' hooks hand their payloads over: `bin/ckpt-hook` and `hook-client.ts` are the other. */
import { constants } from 'node:fs'
import { Socket } from 'node:net'
import { type Env, errno, lstatIfThere } from '../env.ts'
import { ageOf } from '../git/file-clock.ts'
import { removeIfThere } from '../git/whole-file.ts'
import { makeFifos } from '../ops/worktree/fifos.ts'
import { announce, answerFifo, doorFifo, freeFifo, hooksDirectory, payloadFile, readyFile } from './hook-place.ts'

export interface HookCall {
  agent: string
  event: string | undefined
  /** The file with the payload; whoever carries it out removes it. */
  file: string
}

export interface HookDoorOptions {
  worktreeDir: string
  /** Gives what the agent is to see on standard output. */
  carryOut: (call: HookCall) => Promise<string>
  log: (message: string, details?: object) => void
}

/** Milliseconds between two signs of life. */
const BEAT = 500
/** So many fifos are kept ready, and when half of them are used up others are made. */
const READY = 64
/** Milliseconds: what clients that were killed left behind goes after this. */
const ABANDONED = 24 * 3600 * 1000

export class HookDoor {
  readonly #env: Env
  readonly #options: HookDoorOptions
  readonly #directory: string
  readonly #waiting = new Set<string>()
  #socket: Socket | null = null
  #beat: NodeJS.Timeout | null = null
  #rest = ''
  #isProviding = false

  constructor(env: Env, options: HookDoorOptions) {
    this.#env = env
    this.#options = options
    this.#directory = hooksDirectory(options.worktreeDir)
  }

  /** Without mkfifo(1) there is no door, and clients start Node. */
  async open(): Promise<void> {
    const { files } = this.#env
    const directory = this.#directory
    const door = doorFifo(directory)
    files.mkdirSync(`${directory}/free`, { recursive: true, mode: 0o700 })
    this.#sweep()
    for (const file of [readyFile(directory), door]) removeIfThere(this.#env, file) // a killed daemon's
    if (!(await makeFifos(this.#env, [door]))) return
    await this.#provide()
    // Open for writing too, so that it does not end when the last client has gone.
    const fd = files.openSync(door, constants.O_RDWR | constants.O_NONBLOCK)
    const socket = new Socket({ fd, readable: true, writable: false })
    this.#socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => this.#read(String(chunk)))
    socket.on('error', (error) => {
      this.#options.log('hooks', { error: error.message })
      this.close()
    })
    this.#beat = setInterval(() => {
      for (const id of this.#waiting) this.#say(id, 'working')
    }, BEAT)
    this.#beat.unref()
    this.announce()
  }

  /** Says that it listens; a client that found it hanging has taken that away. */
  announce(): void {
    if (this.#socket && !this.#env.files.existsSync(readyFile(this.#directory))) announce(this.#env, this.#directory)
  }

  /** Nobody new is heard; who waits still gets an answer. `leave`: what lies there is another daemon's. */
  close({ leave = false } = {}): void {
    if (!this.#socket) return
    const directory = this.#directory
    try {
      if (!leave) {
        for (const file of [readyFile(directory), doorFifo(directory)]) removeIfThere(this.#env, file)
        this.#removeFree() // not everything that copies a directory takes a fifo
      }
    } finally {
      this.#socket.destroy() // one that is open keeps the process
      this.#socket = null
    }
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) {
      const [, id, agent, event] = /^([\w-]{1,64}) ([\w.-]{1,200}) ([\w.-]{0,200})$/.exec(line) ?? []
      if (id === undefined || agent === undefined)
        this.#options.log('hooks: a line that is none', { line: line.slice(0, 200) })
      else this.#serve(id, agent, event || undefined)
    }
  }

  #serve(id: string, agent: string, event: string | undefined): void {
    const file = payloadFile(this.#directory, id)
    this.#waiting.add(id)
    this.#take(id)
      .then(() => this.#options.carryOut({ agent, event, file }))
      .then((answer) => (answer.includes('\n') ? 'no' : answer === '' ? 'done' : `done ${answer}`))
      .catch((error: unknown) => {
        this.#options.log('hooks', { error: String(error) })
        return 'no'
      })
      .then((said) => {
        this.#waiting.delete(id)
        if (this.#beat && !this.#socket && this.#waiting.size === 0) clearInterval(this.#beat)
        this.#say(id, said, { last: true })
        if (this.#socket && this.#free().length <= READY / 2) return this.#provide()
      })
      .catch((error: unknown) => this.#options.log('hooks', { error: String(error) }))
  }

  /** One that was ready is in use from now on, and bears that name. */
  async #take(id: string): Promise<void> {
    try {
      this.#env.files.renameSync(freeFifo(this.#directory, id), answerFifo(this.#directory, id))
    } catch (error) {
      if (errno(error) !== 'ENOENT') throw error // the client made its own
    }
  }

  /** Who has one in its hands finds out. */
  #removeFree(): void {
    for (const name of this.#free()) removeIfThere(this.#env, freeFifo(this.#directory, name))
  }

  /** A client that gives up takes its fifo away. */
  #free(): string[] {
    return this.#env.files.readdirSync(`${this.#directory}/free`)
  }

  async #provide(): Promise<void> {
    const missing = READY - this.#free().length
    if (this.#isProviding || missing <= 0) return
    this.#isProviding = true
    const paths = Array.from({ length: missing }, () => freeFifo(this.#directory, this.#env.random(16)))
    await makeFifos(this.#env, paths).finally(() => {
      this.#isProviding = false
    })
  }

  /** A client that is gone does not hear it, and nobody waits for it. */
  #say(id: string, words: string, { last = false } = {}): void {
    const fifo = answerFifo(this.#directory, id)
    const { files } = this.#env
    let fd: number
    try {
      fd = files.openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      const code = errno(error)
      if (code !== 'ENOENT' && code !== 'ENXIO') this.#options.log('hooks', { error: String(error) })
      if (last) removeIfThere(this.#env, fifo)
      return
    }
    try {
      if (last) removeIfThere(this.#env, fifo) // before the client goes on: then nothing is left of it
      files.writeSync(fd, `${words}\n`)
    } catch (error) {
      const code = errno(error)
      if (code !== 'EPIPE' && code !== 'EAGAIN') this.#options.log('hooks', { error: String(error) })
    } finally {
      files.closeSync(fd)
    }
  }

  /** Payloads stay: the next hook takes them up. */
  #sweep(): void {
    const { files } = this.#env
    const directory = this.#directory
    this.#removeFree() // those of a daemon that is gone
    for (const name of files.readdirSync(directory)) {
      const stats = lstatIfThere(files, `${directory}/${name}`)
      if (stats && /\.(answer|tmp)$/.test(name) && ageOf(this.#env, this.#options.worktreeDir, stats) > ABANDONED)
        removeIfThere(this.#env, `${directory}/${name}`)
    }
  }
}
