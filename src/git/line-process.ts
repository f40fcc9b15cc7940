/** A git process that is kept running and answers in lines: what the daemon saves by not starting one for each question. */
import type { ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import { CkptError } from '../core/errors.ts'
import type { Env } from '../env.ts'
import { type GitCall, startGit } from './process.ts'

/** Milliseconds for an answer; a process that hangs is ended, and the next question starts another. */
const PATIENCE = 10_000

export class LineProcess {
  readonly #env: Env
  readonly #call: GitCall
  /** Of a line. */
  readonly #end: '\n' | '\0'
  #child: ChildProcess | null = null
  #lines: string[] = []
  /** The line that has not ended yet. */
  #rest = ''
  #waiting: { count: number; resolve: (lines: string[]) => void; reject: (error: Error) => void } | null = null
  #said = ''
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(env: Env, call: GitCall, end: '\n' | '\0' = '\n') {
    this.#env = env
    this.#call = call
    this.#end = end
  }

  /** Sends input and waits for so many lines (bytes); one question after the other. @throws CkptError INTERNAL when it ends or hangs */
  ask(input: string | Buffer, count: number): Promise<string[]> {
    const answer = this.#last.then(() => this.#ask(input, count))
    this.#last = answer.catch(() => undefined)
    return answer
  }

  #ask(input: string | Buffer, count: number): Promise<string[]> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(this.#failure('it was closed')) // one started now would keep us alive
      const child = this.#start()
      held(child, true)
      const timer = setTimeout(() => this.#fail('it hangs'), PATIENCE)
      this.#waiting = {
        count,
        resolve: (lines) => {
          clearTimeout(timer)
          resolve(lines)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      }
      child.stdin?.write(input)
    })
  }

  /** For good: who waits for an answer gets an error, and so does who asks. */
  close(): void {
    this.#isClosed = true
    this.#fail('it was closed')
  }

  #start(): ChildProcess {
    if (this.#child) return this.#child
    const child = startGit(this.#env, this.#call)
    this.#child = child
    this.#lines = []
    this.#rest = ''
    this.#said = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      if (this.#child !== child) return // what one says that was ended is nobody's answer
      const lines = (this.#rest + chunk.toString('latin1')).split(this.#end)
      this.#rest = lines.pop()!
      for (const line of lines) this.#lines.push(line)
      this.#drain()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString('utf8')).slice(0, 500)
    })
    child.on('error', () => {
      if (this.#child === child) this.#fail('it cannot be started')
    })
    child.on('close', () => {
      if (this.#child === child) this.#fail(this.#said.trim() || 'it ended')
    })
    return child
  }

  #drain(): void {
    const waiting = this.#waiting
    if (!waiting) return
    if (this.#lines.length < waiting.count) return
    this.#waiting = null
    if (this.#child) held(this.#child, false)
    waiting.resolve(this.#lines.splice(0, waiting.count))
  }

  #fail(why: string): void {
    this.#child?.kill('SIGKILL')
    this.#child = null
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.reject(this.#failure(why))
  }

  #failure(why: string): CkptError {
    return new CkptError('INTERNAL', `git ${this.#call.args[0] ?? ''} does not answer: ${why}. Nothing was changed.`)
  }
}

/** Whether Node waits for it: one that nobody asks keeps no program alive, and ends with it. */
function held(child: ChildProcess, isHeld: boolean): void {
  const hold = isHeld ? 'ref' : 'unref'
  child[hold]()
  for (const pipe of [child.stdin, child.stdout, child.stderr]) if (pipe instanceof Socket) pipe[hold]()
}

/** One that is kept as long as what it has read once is still so. */
export class KeptProcess {
  #kept: { state: string; process: LineProcess } | null = null

  /** `state`: of what it has read. */
  of(state: string, start: () => LineProcess): LineProcess {
    if (this.#kept?.state !== state) {
      this.close()
      this.#kept = { state, process: start() }
    }
    return this.#kept.process
  }

  close(): void {
    this.#kept?.process.close()
    this.#kept = null
  }
}
