/** The fault loop: one command killed at its Nth call, for N = 1, 2, 3, … until a run ends by itself. */
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { Writable } from 'node:stream'
import { build } from 'esbuild'
import { main } from '../../src/cli/main.ts'
import { type Env, type Files, realEnv } from '../../src/env.ts'
import { type Json, Scratch } from './scratch.ts'

export const MODES = ['before', 'after', 'group', 'amid'] as const
export type FaultMode = (typeof MODES)[number]

let built: Promise<string> | null = null

/** The harness, compiled once in a process, so that each of hundreds of runs starts quickly. */
function harness(): Promise<string> {
  built ??= buildHarness()
  return built
}

async function buildHarness(): Promise<string> {
  const directory = fs.mkdtempSync(`${fs.realpathSync('/tmp')}/ckpt-fault-`)
  process.once('exit', () => fs.rmSync(directory, { recursive: true, force: true }))
  const outfile = path.join(directory, 'fault-harness.mjs')
  await build({
    entryPoints: [path.resolve(import.meta.dirname, 'fault-harness.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    banner: {
      js: "import{createRequire as faultRequire}from'node:module';const require=faultRequire(import.meta.url);",
    },
  })
  const hooks = path.resolve(import.meta.dirname, '../../hooks')
  fs.cpSync(hooks, path.join(directory, 'hooks'), { recursive: true }) // which the package ships beside the program
  return outfile
}

/** A turn of another repository, exported to `<base>/far.bundle`. */
export function exportFar({ base }: Scratch): void {
  const other = new Scratch().init({ 'z.txt': 'z\n' })
  other.turn('far away', () => other.write({ 'z.txt': 'zz\n' }))
  other.ckpt('export', `${base}/far.bundle`)
}

/** The exit code of a refused undo. */
const CONFLICT = 4

export interface Said {
  code: number
  document: Json
}

/** One worktree in some state after a kill (or before one); commands run in this process. */
export class Place {
  readonly root: string
  readonly #scratch: Scratch
  constructor(scratch: Scratch, root: string) {
    this.#scratch = scratch
    this.root = root
  }

  /** A copy with the same times. */
  copy(name: string): Place {
    const root = path.join(this.#scratch.base, name)
    execFileSync('cp', ['-a', this.root, root])
    return new Place(this.#scratch, root)
  }

  remove(): void {
    fs.rmSync(this.root, { recursive: true })
  }

  try(...argv: string[]): Promise<Said> {
    return this.#run(argv)
  }

  /**
   * Somebody does something right before the Nth call that is made while the journal is there (`of`: and that names such a
   * path); `came`: there was one.
   */
  async interfered(
    { at, of }: { at: number; of?: RegExp },
    act: () => void,
    argv: readonly string[],
  ): Promise<Said & { came: boolean }> {
    let calls = 0
    let hasJournal = fs.existsSync(`${this.root}/.git/ckpt/worktrees/@main/journal.json`)
    const files = new Proxy(realEnv().files, {
      get(target, name: keyof Files) {
        return (...args: unknown[]) => {
          const counts = hasJournal && (of === undefined || args.some((arg) => of.test(String(arg))))
          if (counts && ++calls === at) act()
          const result = Reflect.apply(target[name], target, args)
          if (name === 'renameSync' && String(args[1]).endsWith('/journal.json')) hasJournal = true
          if (name === 'unlinkSync' && String(args[0]).endsWith('/journal.json')) hasJournal = false
          return result
        }
      },
    })
    return { ...(await this.#run(argv, { files })), came: calls >= at }
  }

  async #run(argv: readonly string[], world: Partial<Env> = {}): Promise<Said> {
    const chunks: string[] = []
    const sink = (into: string[]) =>
      new Writable({
        write(chunk: Buffer, _, done) {
          into.push(chunk.toString())
          done()
        },
      })
    const { home, vars } = this.#scratch
    const env = { ...realEnv(), cwd: this.root, home, vars, stdout: sink(chunks), stderr: sink([]), ...world }
    const code = await main([...argv, '--json'], env)
    return { code, document: JSON.parse(chunks.join('')) }
  }

  async ckpt(...argv: string[]): Promise<Json> {
    const { code, document } = await this.try(...argv)
    if (code !== 0) throw new Error(`ckpt ${argv.join(' ')} exited ${code}: ${JSON.stringify(document)}`)
    return document
  }

  get manifest(): Record<string, string> {
    return this.#scratch.manifest(this.root)
  }

  /** The same without the drafts that a kill may leave beside what agents read. */
  get withoutDrafts(): Record<string, string> {
    return Object.fromEntries(Object.entries(this.manifest).filter(([path]) => !/\.[0-9a-f]{12}\.tmp$/.test(path)))
  }

  /** Runs the harness; the number of calls when it ended by itself, null when it was killed. */
  killed(mode: FaultMode, at: number, argv: readonly string[]): Promise<number | null> {
    return this.#harnessed([mode, String(at)], argv, {})
  }

  /** Likewise, with somebody writing to a file right before the Nth call that is made while the journal is there. */
  written(
    { mode, at, file }: { mode: 'written' | 'written-killed'; at: number; file: string },
    argv: readonly string[],
  ): Promise<number | null> {
    return this.#harnessed([mode, String(at)], argv, { CKPT_TEST_WRITE: path.join(this.root, file) })
  }

  /** Likewise, with a power cut there, or at the end of a run that ends before: what it did not sync has lost its bytes. */
  powerCut(at: number, argv: readonly string[]): Promise<number | null> {
    return this.#harnessed(['power', String(at)], argv, {})
  }

  /** Likewise, with a disk that is full from the Nth such call on. */
  full(at: number, argv: readonly string[]): Promise<number | null> {
    return this.#harnessed(['full', String(at)], argv, {})
  }

  async #harnessed(start: string[], argv: readonly string[], vars: Record<string, string>): Promise<number | null> {
    const report = `${this.root}.report`
    const program = await harness()
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [program, ...start, report, '--', ...argv], {
        cwd: this.root,
        env: { ...this.#scratch.vars, ...vars },
        stdio: ['ignore', 'ignore', 'pipe'],
        detached: true,
      })
      let said = ''
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString()
      })
      child.on('error', reject)
      // `exit`, not `close`: a git that outlives its parent may hold the pipe.
      child.on('exit', (code, signal) => {
        if (signal === 'SIGKILL') resolve(null)
        else if (code === 0 || code === CONFLICT || (code === 1 && start[0] === 'full'))
          resolve(Number(fs.readFileSync(report, 'utf8')))
        else reject(new Error(`the harness exited ${code ?? signal}: ${said}`))
      })
    })
  }
}

export interface Loop {
  scratch: Scratch
  start: Place
  argv: readonly string[]
  mode: FaultMode
  /** Every Nth call at least, where there are few. */
  stride?: number
  /** Called after each kill. */
  check: (place: Place, at: number) => Promise<void>
}

/** Every Nth N; 1: each one. */
export const STRIDE = Number(process.env.CKPT_FAULT_STRIDE ?? 751)

/** Returns how many calls a run makes that ends by itself. */
export async function faultLoop({ start, argv, mode, check, ...more }: Loop): Promise<number> {
  const stride = Math.min(STRIDE, more.stride ?? STRIDE)
  const offset = (argv.join(' ').length * 5 + MODES.indexOf(mode) * 7) % stride
  for (let at = 1 + offset; ; at += stride) {
    const place = start.copy(`${mode}-${at}`)
    const calls = await place.killed(mode, at, argv)
    if (calls !== null) {
      place.remove()
      return calls
    }
    try {
      await check(place, at)
    } catch (error) {
      throw new Error(
        `${argv.join(' ')} killed ${mode} call ${at}: ${error instanceof Error ? error.message : error}`,
        {
          cause: error,
        },
      )
    }
    place.remove()
  }
}
