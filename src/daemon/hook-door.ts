/**
 * Where an agent's hook hands its payload over without Node: `bin/ckpt-hook` is the other end.
 *
 * ```
 * daemon/hooks/ready         who answers here, one field a line; only while the daemon listens
 * daemon/hooks/door          a fifo: `<id> <agent> [event]`
 * daemon/hooks/free/<id>     fifos for answers; who makes `<id>.payload` has that one, and with none left makes its own
 * daemon/hooks/<id>.payload  what was handed over, whole when the line is sent
 * daemon/hooks/<id>.answer   the client's fifo: `working` as a sign of life, then `done [answer]`, or `no`
 * ```
 */
import { constants } from 'node:fs'
import { Socket } from 'node:net'
import { type Env, errno, lstatIfThere } from '../env.ts'
import { removeIfThere, writeFileWhole } from '../git/whole-file.ts'
import { startOf } from '../ops/lock.ts'

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

/** Said by `ready` and by the client: raised when one would misunderstand the other. */
const PROTOCOL = 'ckpt-hooks 3'
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
  #free = 0

  constructor(env: Env, options: HookDoorOptions) {
    this.#env = env
    this.#options = options
    this.#directory = `${options.worktreeDir}/daemon/hooks`
  }

  /** Without mkfifo(1) there is no door, and clients start Node. */
  async open(): Promise<void> {
    const { files } = this.#env
    const directory = this.#directory
    const door = `${directory}/door`
    files.mkdirSync(`${directory}/free`, { recursive: true, mode: 0o700 })
    this.#sweep()
    removeIfThere(this.#env, door)
    if (!(await this.#makeFifos([door]))) return
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
    const { vars, home, pid, files } = this.#env
    const directory = this.#directory
    if (!this.#socket || files.existsSync(`${directory}/ready`)) return
    const { XDG_CONFIG_HOME = '', XDG_STATE_HOME = '', CKPT_STATE_DIR = '' } = vars
    const fields = [
      PROTOCOL,
      String(pid),
      startOf(this.#env, pid),
      home,
      XDG_CONFIG_HOME,
      XDG_STATE_HOME,
      CKPT_STATE_DIR,
    ]
    // A line break in one of them would move the others.
    if (!fields.some((field) => field.includes('\n')))
      writeFileWhole(this.#env, `${directory}/ready`, `${fields.join('\n')}\n`)
  }

  /** Nobody new is heard; who waits still gets an answer. */
  close(): void {
    if (!this.#socket) return
    const directory = this.#directory
    removeIfThere(this.#env, `${directory}/ready`)
    this.#socket.destroy()
    this.#socket = null
    removeIfThere(this.#env, `${directory}/door`)
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
    const file = `${this.#directory}/${id}.payload`
    this.#take(id)
    this.#waiting.add(id)
    this.#options
      .carryOut({ agent, event, file })
      .then((answer) => (answer.includes('\n') ? 'no' : answer === '' ? 'done' : `done ${answer}`))
      .catch((error: unknown) => {
        this.#options.log('hooks', { error: String(error) })
        return 'no'
      })
      .then((said) => {
        this.#waiting.delete(id)
        if (this.#beat && !this.#socket && this.#waiting.size === 0) clearInterval(this.#beat)
        this.#say(id, said, { last: true })
        if (this.#socket && this.#free <= READY / 2) return this.#provide()
      })
      .catch((error: unknown) => this.#options.log('hooks', { error: String(error) }))
  }

  /** One that was ready is in use from now on, and bears that name. */
  #take(id: string): void {
    try {
      this.#env.files.renameSync(`${this.#directory}/free/${id}`, `${this.#directory}/${id}.answer`)
      this.#free--
    } catch (error) {
      if (errno(error) !== 'ENOENT') throw error // the client made its own
    }
  }

  async #provide(): Promise<void> {
    const paths = Array.from({ length: READY - this.#free }, () => `${this.#directory}/free/${this.#env.random(16)}`)
    this.#free = READY // at once: they are being made
    if (!(await this.#makeFifos(paths))) this.#free -= paths.length
  }

  /** A client that is gone does not hear it, and nobody waits for it. */
  #say(id: string, words: string, { last = false } = {}): void {
    const fifo = `${this.#directory}/${id}.answer`
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

  #makeFifos(paths: readonly string[]): Promise<boolean> {
    return new Promise((resolve) => {
      const child = this.#env.spawn('mkfifo', ['-m', '600', ...paths], { stdio: 'ignore' })
      child.on('error', () => resolve(false))
      child.on('close', (code) => resolve(code === 0))
    })
  }

  /** Payloads stay: the next hook takes them up. */
  #sweep(): void {
    const { files, now } = this.#env
    const directory = this.#directory
    // Those of a daemon that is gone: who has one finds out.
    for (const name of files.readdirSync(`${directory}/free`)) removeIfThere(this.#env, `${directory}/free/${name}`)
    for (const name of files.readdirSync(directory)) {
      const stats = lstatIfThere(files, `${directory}/${name}`)
      if (stats && /\.(answer|tmp)$/.test(name) && now() - stats.mtimeMs > ABANDONED)
        removeIfThere(this.#env, `${directory}/${name}`)
    }
  }
}
