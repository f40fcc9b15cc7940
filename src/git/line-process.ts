/** A git process that is kept running and answers in lines: what the daemon saves by not starting one for each question. */
import type { ChildProcess } from 'node:child_process'
import { CkptError } from '../core/errors.ts'
import type { Env } from '../env.ts'
import { type GitCall, startGit } from './process.ts'

/** Milliseconds for an answer; a process that hangs is ended, and the next question starts another. */
const PATIENCE = 10_000

export class LineProcess {
  readonly #env: Env
  readonly #call: GitCall
  #child: ChildProcess | null = null
  #text = ''
  #waiting: { count: number; resolve: (lines: string[]) => void; reject: (error: Error) => void } | null = null
  #said = ''
  #last: Promise<unknown> = Promise.resolve()

  constructor(env: Env, call: GitCall) {
    this.#env = env
    this.#call = call
  }

  /** Sends input and waits for so many lines; one question after the other. @throws CkptError INTERNAL when it ends or hangs */
  ask(input: string, count: number): Promise<string[]> {
    const answer = this.#last.then(() => this.#ask(input, count))
    this.#last = answer.catch(() => undefined)
    return answer
  }

  #ask(input: string, count: number): Promise<string[]> {
    return new Promise((resolve, reject) => {
      const child = this.#start()
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

  close(): void {
    this.#child?.kill('SIGKILL')
    this.#child = null
  }

  #start(): ChildProcess {
    if (this.#child) return this.#child
    const child = startGit(this.#env, this.#call)
    this.#child = child
    this.#text = ''
    this.#said = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('utf8')
      this.#drain()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString('utf8')).slice(0, 500)
    })
    child.on('error', () => this.#fail('it cannot be started'))
    child.on('close', () => {
      if (this.#child === child) this.#fail(this.#said.trim() || 'it ended')
    })
    return child
  }

  #drain(): void {
    const waiting = this.#waiting
    if (!waiting) return
    const lines = this.#text.split('\n')
    if (lines.length <= waiting.count) return
    this.#text = lines.slice(waiting.count).join('\n')
    this.#waiting = null
    waiting.resolve(lines.slice(0, waiting.count))
  }

  #fail(why: string): void {
    this.close()
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.reject(
      new CkptError('INTERNAL', `git ${this.#call.args[0] ?? ''} does not answer: ${why}. Nothing was changed.`),
    )
  }
}
