/** Objects read through one long-lived `git cat-file --batch`. */
import type { ChildProcess } from 'node:child_process'
import { CkptError } from '../core/errors.ts'
import type { Oid } from '../core/ids.ts'
import type { Env } from '../env.ts'
import { machineFailure, notStarted } from './failure.ts'
import { startGit } from './process.ts'
import { endedBy } from './result.ts'

export interface FoundObject {
  type: string
  bytes: Buffer
}

const closed = () => new CkptError('INTERNAL', 'The store was closed while it was read. Nothing was changed.')

interface Waiting {
  oid: Oid
  resolve: (found: FoundObject | null) => void
  reject: (error: unknown) => void
}

export class ObjectReader {
  readonly #env: Env
  readonly #gitDir: string
  readonly #vars: Record<string, string>
  #child: ChildProcess | null = null
  /** In the order in which they asked; so many have their answer. To take each from the front takes long where there are many. */
  #waiting: Waiting[] = []
  #answered = 0
  #chunks: Buffer[] = []
  #buffered = 0
  /** It is to be replaced once it has answered. */
  #stale = false
  /** One was killed, and no answer has come since. */
  #killed = false
  #isClosed = false

  constructor(env: Env, gitDir: string, vars: Record<string, string>) {
    this.#env = env
    this.#gitDir = gitDir
    this.#vars = vars
  }

  /** The object, or null when the store does not have it. @throws CkptError DAMAGED when it is there and cannot be read. */
  read(oid: Oid): Promise<FoundObject | null> {
    if (this.#isClosed) return Promise.reject(closed()) // by what failed beside it: a git started now would keep the process alive
    return new Promise((resolve, reject) => {
      const child = this.#process()
      this.#waiting.push({ oid, resolve, reject })
      child.stdin?.write(`${oid}\n`)
    })
  }

  /** It may hold packs open that went: another one answers from now on. */
  renew(): void {
    if (!this.#isWaiting) this.#end()
    else this.#stale = true
  }

  /** For good. */
  close(): void {
    this.#isClosed = true
    this.#end()
  }

  #end(): void {
    const child = this.#child
    this.#child = null // what it says from now on is for nobody
    this.#stale = false
    this.#chunks = []
    this.#buffered = 0
    child?.stdin?.end()
    child?.kill('SIGKILL')
    this.#fail(closed())
  }

  #process(): ChildProcess {
    if (this.#child) return this.#child
    const child = startGit(this.#env, { args: ['cat-file', '--batch'], vars: this.#vars, cwd: this.#gitDir })
    child.stdout?.on('data', (chunk: Buffer) => {
      if (this.#child !== child) return
      this.#chunks.push(chunk)
      this.#buffered += chunk.length
      try {
        this.#drain()
        if (this.#stale && !this.#isWaiting) this.#end()
      } catch (error) {
        this.#fail(error)
      }
    })
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString('utf8')).slice(0, 500)
    })
    child.on('error', (cause) => {
      if (this.#child === child) this.#child = null // the next question starts another
      this.#fail(notStarted(cause))
    })
    child.on('close', (code, signal) => {
      if (this.#child !== child) return
      this.#child = null
      this.#chunks = []
      this.#buffered = 0
      const result = { code: code ?? 128, stdout: Buffer.alloc(0), stderr: said, ...endedBy(signal) }
      const notOurs = machineFailure(['cat-file'], result)
      if (signal && result.crash === null && !this.#killed) this.#askAgain()
      else if (notOurs) this.#fail(notOurs)
      else {
        // Any other signal is its own doing: a pack that was cut short under it, for one.
        const why = said.trim() || signal || 'no message'
        this.#fail(
          new CkptError('DAMAGED', `git cat-file ended early: ${why}. Nothing was changed.`, {
            hints: ['ckpt verify'],
          }),
        )
      }
    })
    this.#child = child
    return child
  }

  /** It was killed, and did not fail: another one is asked the same, once. */
  #askAgain(): void {
    if (!this.#isWaiting) return
    this.#killed = true
    const child = this.#process()
    for (const { oid } of this.#waiting.slice(this.#answered)) child.stdin?.write(`${oid}\n`)
  }

  get #isWaiting(): boolean {
    return this.#answered < this.#waiting.length
  }

  #next(): Waiting {
    this.#killed = false
    const next = this.#waiting[this.#answered++]!
    if (!this.#isWaiting) {
      this.#waiting = []
      this.#answered = 0
    }
    return next
  }

  #fail(error: unknown): void {
    const waiting = this.#waiting.slice(this.#answered)
    this.#waiting = []
    this.#answered = 0
    for (const one of waiting) one.reject(error)
  }

  #drain(): void {
    while (this.#isWaiting) {
      let data = this.#chunks[0]
      if (!data) return
      let newline = data.indexOf(10)
      if (newline < 0 && this.#chunks.length > 1) {
        data = Buffer.concat(this.#chunks)
        this.#chunks = [data]
        newline = data.indexOf(10)
      }
      if (newline < 0) return
      const header = data.toString('latin1', 0, newline)
      if (header.endsWith(' missing') || header.endsWith(' ambiguous')) {
        this.#consume(newline + 1)
        this.#next().resolve(null)
        continue
      }
      const match = /^[0-9a-f]+ (\w+) (\d+)$/.exec(header)
      if (!match)
        throw new CkptError('DAMAGED', `git cat-file said: ${header.slice(0, 200)}`, { hints: ['ckpt verify'] })
      const size = Number(match[2])
      if (this.#buffered < newline + 1 + size + 1) return
      const all = this.#chunks.length === 1 ? data : Buffer.concat(this.#chunks)
      this.#chunks = [all]
      const bytes = Buffer.from(all.subarray(newline + 1, newline + 1 + size))
      this.#consume(newline + 1 + size + 1)
      this.#next().resolve({ type: match[1]!, bytes })
    }
  }

  #consume(count: number): void {
    const rest = this.#chunks[0]!.subarray(count)
    this.#chunks[0] = rest
    this.#buffered -= count
    if (rest.length === 0) this.#chunks.shift()
  }
}
