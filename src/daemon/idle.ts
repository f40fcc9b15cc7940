/**
 * What a daemon does while nobody calls: abandoned turns past their grace go, the oldest where the store holds too much,
 * and loose objects and linked packs become one pack. It runs as a process of its own at the lowest priority; a call ends it
 * at once, which a prune survives.
 */
import type { ChildProcess } from 'node:child_process'
import { type Env, errno, statIfThere } from '../env.ts'

export interface IdleOptions {
  /** The worktree. */
  root: string
  /** The store's git directory. */
  gitDir: string
  /** Whether the store holds more bytes than it may. */
  isOver: () => boolean
  log: (message: string, details?: object) => void
}

/** Milliseconds without a call before it begins. */
export const QUIET_BEFORE = 60_000
/** Milliseconds between two that are not for the number of objects. */
const EVERY = 86_400_000
/** Milliseconds before what could not be mended the last time is tried again. */
const AGAIN = 600_000
/** Loose objects, and packs, from which on packing is worth it; git's own gc.auto is 6700 and 50. */
const LOOSE = 3000
const PACKS = 20

export class IdleWork {
  readonly #env: Env
  readonly #options: IdleOptions
  #child: ChildProcess | null = null
  #ended: Promise<void> = Promise.resolve()
  /** When the store's bytes were last counted, in milliseconds since 1970. */
  #counted = 0

  constructor(env: Env, options: IdleOptions) {
    this.#env = env
    this.#options = options
  }

  get running(): boolean {
    return this.#child !== null
  }

  /** Begins it if it is due. `quiet`: milliseconds since the last call. `busy`: git is in the middle of something. */
  consider({ quiet, busy }: { quiet: number; busy: boolean }): void {
    if (this.#child || busy || quiet < QUIET_BEFORE || !this.#due()) return
    const { root, gitDir, log } = this.#options
    const { program, vars, spawn, now, files } = this.#env
    files.writeFileSync(stamp(gitDir), `${new Date(now()).toISOString()}\n`, { mode: 0o600 })
    const child = spawn('nice', ['-n', '19', process.execPath, program, 'prune', '--idle', '--json'], {
      cwd: root,
      env: vars as NodeJS.ProcessEnv,
      detached: true, // a group of its own: its gits end with it
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    this.#child = child
    let said = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString('utf8')
    })
    this.#ended = new Promise((resolve) => {
      const done = (how: object) => {
        this.#child = null
        log('idle work', how)
        resolve()
      }
      child.on('error', (error) => done({ error: error.message }))
      child.on('close', (code, signal) => done({ code, signal, said: said.slice(0, 2000) }))
    })
  }

  /** Ends it, and waits until it is gone: it holds the store's lock. */
  async interrupt(): Promise<void> {
    const pid = this.#child?.pid
    if (pid !== undefined) {
      try {
        this.#env.kill(-pid, 'SIGKILL')
      } catch (error) {
        if (errno(error) !== 'ESRCH') throw error
      }
    }
    await this.#ended
  }

  #due(): boolean {
    const { files, now } = this.#env
    const { gitDir } = this.#options
    const last = statIfThere(files, stamp(gitDir))
    if (!last || now() - last.mtimeMs >= EVERY) return true
    const count = (directory: string) => (files.existsSync(directory) ? files.readdirSync(directory) : [])
    // One of 256 directories stands for all, as for git gc --auto.
    const loose = count(`${gitDir}/objects/17`).length * 256
    const packs = count(`${gitDir}/objects/pack`).filter((name) => name.endsWith('.pack')).length
    // Packs that cannot become fewer are not tried for ever, and not all files are counted at each beat.
    if (now() - Math.max(last.mtimeMs, this.#counted) < AGAIN) return false
    if (loose >= LOOSE || packs >= PACKS) return true
    this.#counted = now()
    return this.#options.isOver()
  }
}

const stamp = (gitDir: string) => `${gitDir}/../idle`
