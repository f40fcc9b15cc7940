/**
 * A place of its own for each test: a temporary directory with its own HOME, that cannot reach the machine's git
 * configuration, and the compiled `ckpt` run there: in a thread of the test's process where nothing shows the
 * difference, else in a process of its own.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createSyncFn } from 'synckit'
import { inject, onTestFinished } from 'vitest'
import type { Env } from '../../src/env.ts'

export const PACKAGE = path.resolve(import.meta.dirname, '../..')
export const PROGRAM = path.join(PACKAGE, 'bin/ckpt.js')

/** All that the program needs to run, somewhere else. */
export function copyProgram(to: string): void {
  for (const part of ['bin', 'dist', 'hooks', 'package.json'])
    fs.cpSync(path.join(PACKAGE, part), path.join(to, part), { recursive: true })
}

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

interface Inside extends Pick<Env, 'cwd' | 'home' | 'vars' | 'program'> {
  argv: string[]
  command: readonly string[] | undefined
}

/** `main` of the compiled program, in a thread or by another user's process that `command` starts; waited for. */
const inside: (given: Inside) => Ran = createSyncFn(path.join(import.meta.dirname, 'inside-worker.mjs'))

/** They hand their own streams to a program, or stay when they have answered: always in a process of their own. */
const APART = new Set(['run', 'watch', 'bisect', 'hook'])
/** What Node itself goes by when it starts. */
const OF_NODE = ['NODE_OPTIONS', 'TMPDIR', 'TZ']

export interface RunOptions {
  cwd?: string
  vars?: Record<string, string>
  input?: string
  uid?: number
}

/** Whether this user may do anything: what an ordinary one may not do is then tried as another user. */
export const isRoot = process.getuid?.() === 0

/** Whom root is then: nobody's number, as a rule. */
export const OTHER_USER = 4321

/** What starts a command as that user. */
export const asUser = (uid: number): string[] => ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']

/** Where a user finds what is run, and what starts a command as that user. */
interface Place {
  as: readonly string[]
  node: string
  program: string
  /** Runs the program as often as it is told to. */
  inside: string
}

const OURS: Place = {
  as: [],
  node: process.execPath,
  program: PROGRAM,
  inside: path.join(import.meta.dirname, 'inside-process.mjs'),
}

/** Another user may not reach ours: then there is a copy (reachable.ts). */
function placeFor(uid = process.getuid!()): Place {
  if (uid === process.getuid!()) return OURS
  const as = asUser(uid)
  const copy = inject('reachable')
  if (copy === null) return { ...OURS, as }
  const at = (name: string) => path.join(copy, name)
  return { as, node: at('node'), program: at('bin/ckpt.js'), inside: at('inside-process.mjs') }
}

/** A JSON document of the contract: its fields differ from command to command. */
export type Json = any

export class Scratch {
  /** The temporary directory; everything of the test lies in it. */
  readonly base: string
  readonly home: string
  /** The worktree. */
  readonly root: string
  #date = Date.UTC(2026, 0, 1)

  constructor(name = 'work') {
    this.base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'ckpt-test-')))
    this.home = path.join(this.base, 'home')
    this.root = path.join(this.base, name)
    fs.mkdirSync(this.home)
    fs.mkdirSync(this.root)
    onTestFinished(() => {
      try {
        fs.rmSync(this.base, { recursive: true, force: true })
      } catch {
        execFileSync('chmod', ['-R', 'u+rwX', this.base])
        fs.rmSync(this.base, { recursive: true, force: true })
      }
    }, 600_000)
  }

  get vars(): Record<string, string> {
    return {
      PATH: process.env.PATH ?? '',
      HOME: this.home,
      TZ: 'UTC',
      LC_ALL: 'C',
      XDG_STATE_HOME: path.join(this.home, 'state'),
      GIT_CONFIG_NOSYSTEM: '1', // what is installed here (Git LFS, say) has its filters there
    }
  }

  /** git as the user runs it: dates step by a minute with each call. */
  git(...args: string[]): string {
    this.#date += 60_000
    const date = new Date(this.#date).toISOString()
    return execFileSync('git', args, {
      cwd: this.root,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...this.vars,
        GIT_AUTHOR_NAME: 'A U Thor',
        GIT_AUTHOR_EMAIL: 'author@example.com',
        GIT_COMMITTER_NAME: 'C O Mitter',
        GIT_COMMITTER_EMAIL: 'committer@example.com',
        GIT_AUTHOR_DATE: date,
        GIT_COMMITTER_DATE: date,
      },
    })
  }

  /** From here on the dates of `git` are after all that was recorded. */
  atPresent(): this {
    this.#date = Date.now()
    return this
  }

  /** Makes the worktree a repository with one commit of these files. */
  init(files: Record<string, string | Buffer> = { 'a.txt': 'one\n' }): this {
    this.git('init', '-q', '-b', 'main')
    this.write(files)
    if (Object.keys(files).length > 0) {
      this.git('add', '-A')
      this.git('commit', '-q', '-m', 'first')
    }
    return this
  }

  /** Gives all of this to an ordinary user, whom permissions bind, and says who that is: ourselves, if we are one. */
  handOver(): number {
    if (!isRoot) return process.getuid!()
    execFileSync('chown', ['-R', `${OTHER_USER}:${OTHER_USER}`, this.base])
    return OTHER_USER
  }

  at(name: string): string {
    return path.join(this.root, name)
  }

  write(files: Record<string, string | Buffer>): void {
    for (const [name, content] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(this.at(name)), { recursive: true })
      fs.writeFileSync(this.at(name), content)
    }
  }

  read(name: string): string {
    return fs.readFileSync(this.at(name), 'utf8')
  }

  remove(...names: string[]): void {
    for (const name of names) {
      // Some versions of Node (24.9) leave a dangling symlink to `rmSync`.
      if (fs.lstatSync(this.at(name), { throwIfNoEntry: false })?.isSymbolicLink()) fs.unlinkSync(this.at(name))
      else fs.rmSync(this.at(name), { recursive: true, force: true })
    }
  }

  exists(name: string): boolean {
    return fs.lstatSync(this.at(name), { throwIfNoEntry: false }) !== undefined
  }

  /** Runs the program, in a process that is there already where that is the same; never throws. */
  run(args: string[], options: RunOptions = {}): Ran {
    const { cwd = this.root, vars = {}, uid } = options
    if (APART.has(args[0] ?? '') || 'input' in options || OF_NODE.some((name) => name in vars))
      return this.runApart(args, options)
    const { as, node, program, inside: process } = placeFor(uid)
    const command = as.length > 0 ? [...as, node, process] : undefined
    return inside({ argv: args, cwd, home: vars.HOME ?? this.home, vars: { ...this.vars, ...vars }, program, command })
  }

  /** Runs the program as users do, in a process of its own; never throws. */
  runApart(args: string[], { cwd = this.root, vars = {}, input = '', uid }: RunOptions = {}): Ran {
    const { as, node, program } = placeFor(uid)
    const command = [...as, node, program, ...args]
    const done = spawnSync(command[0]!, command.slice(1), {
      cwd,
      env: { ...this.vars, ...vars },
      input,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    })
    return { code: done.status ?? 128, stdout: done.stdout, stderr: done.stderr }
  }

  /** Runs the program with `--json`; throws unless it exits 0. */
  ckpt(...args: string[]): Json {
    const { document, code } = this.tryCkpt(...args)
    if (code !== 0) throw new Error(`ckpt ${args.join(' ')} exited ${code}: ${JSON.stringify(document)}`)
    return document
  }

  /** Runs the program with `--json`; gives the exit code and the document. */
  tryCkpt(...args: string[]): { code: number; document: Json } {
    const dashes = args.indexOf('--')
    const line = dashes < 0 ? [...args, '--json'] : [...args.slice(0, dashes), '--json', ...args.slice(dashes)]
    const { code, stdout, stderr } = this.run(line)
    try {
      return { code, document: JSON.parse(stdout) }
    } catch {
      throw new Error(`ckpt ${args.join(' ')} printed no JSON (exit ${code}): ${stdout}${stderr}`)
    }
  }

  /** One turn: a prompt, the work, a stop. */
  turn(text: string, work: () => void, session = 's'): void {
    this.ckpt('mark', 'prompt', '--session', session, '--text', text)
    work()
    this.ckpt('mark', 'stop', '--session', session)
  }

  /** Every path below the worktree but `.git`: type, permission mode, content. Taken straight from the disk. */
  manifest(directory = this.root): Record<string, string> {
    const rows: Record<string, string> = {}
    const walk = (at: Buffer, name: string) => {
      for (const entry of fs.readdirSync(at, { encoding: 'buffer' }).sort(Buffer.compare)) {
        const text = entry.toString('latin1')
        if (name === '' && text === '.git') continue
        const file = Buffer.concat([at, Buffer.from('/'), entry])
        const shown = name === '' ? text : `${name}/${text}`
        const stats = fs.lstatSync(file)
        const mode = (stats.mode & 0o7777).toString(8)
        if (stats.isSymbolicLink())
          rows[shown] = `link ${fs.readlinkSync(file, { encoding: 'buffer' }).toString('latin1')}`
        else if (stats.isDirectory()) {
          rows[`${shown}/`] = `directory ${mode}`
          walk(file, shown)
        } else if (stats.isFile())
          rows[shown] = `file ${mode} ${createHash('sha256').update(fs.readFileSync(file)).digest('hex')}`
        else rows[shown] = 'special'
      }
    }
    walk(Buffer.from(directory), '')
    return rows
  }

  /** Bytes of everything in the user's git directory that is not ours. */
  gitState(): Record<string, string> {
    const rows: Record<string, string> = {}
    const walk = (at: string, name: string) => {
      for (const entry of fs.readdirSync(at, { withFileTypes: true })) {
        const shown = name === '' ? entry.name : `${name}/${entry.name}`
        if (shown === 'ckpt' || shown === 'objects/maintenance.lock') continue // git's own, in the background
        const file = path.join(at, entry.name)
        if (entry.isDirectory()) walk(file, shown)
        else rows[shown] = createHash('sha256').update(fs.readFileSync(file)).digest('hex')
      }
    }
    walk(this.at('.git'), '')
    return rows
  }
}
