/**
 * A parcel: a bare repository of its own, for one export, import, push or pull. Its refs are what travels; the store's
 * objects are borrowed. git's transports run there, where no configuration but ours and the user's own is read.
 */
import type { ChildProcess } from 'node:child_process'
import { CkptError } from '../core/errors.ts'
import { quoted } from '../core/hint-words.ts'
import { type HashName, isOid, type Oid } from '../core/ids.ts'
import type { Env } from '../env.ts'
import { fullDisk, machineFailure } from './failure.ts'
import { ObjectStore } from './objects.ts'
import { type GitCall, runGit, tryGit } from './process.ts'
import type { GitResult } from './result.ts'
import type { Store } from './store.ts'
import { Trees } from './trees.ts'
import { movePack } from './unsynced-packs.ts'
import { moveFile, removeTree } from './whole-file.ts'

/** What is in a parcel, one for each worktree: `refs/ckpt/<origin>/<worktree>`. */
const PREFIX = 'refs/ckpt/'
const REF = /^refs\/ckpt\/([0-9a-f]{12})\/(@main|[a-z0-9_-]{1,80})$/

export interface ParcelRef {
  ref: string
  oid: Oid
  origin: string
  worktree: string
}

/** Refs of another shape are somebody else's, and passed over. */
function parseRefs(text: string): ParcelRef[] {
  return text.split('\n').flatMap((row) => {
    const [oid = '', ref = ''] = row.split(/\s+/)
    const match = REF.exec(ref)
    return match && isOid(oid) ? [{ ref, oid, origin: match[1]!, worktree: match[2]! }] : []
  })
}

export interface ParcelOptions {
  /** It is made in this directory. */
  within: string
  hash: HashName
  /** Object directories that are borrowed. */
  borrow: readonly string[]
  /** Says in the directory who is at work in it, by a file whose name it returns. */
  claim: (directory: string) => string
  /** Sees to signals while a git speaks to another machine, and tells of each. */
  heed: (git: ChildProcess, told: (signal: NodeJS.Signals) => void) => void
}

export class Parcel {
  readonly gitDir: string
  readonly objects: ObjectStore
  readonly trees: Trees
  readonly #env: Env
  readonly #hash: HashName
  readonly #vars: Record<string, string>
  readonly #heed: ParcelOptions['heed']
  #claim: string | undefined

  private constructor(env: Env, gitDir: string, { hash, heed }: ParcelOptions) {
    this.#env = env
    this.#hash = hash
    this.#heed = heed
    this.gitDir = gitDir
    this.#vars = { GIT_DIR: gitDir, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' }
    this.objects = new ObjectStore(env, { gitDir, hash, vars: this.#vars })
    this.trees = new Trees(this.objects)
  }

  static async make(env: Env, options: ParcelOptions): Promise<Parcel> {
    const { within, hash, borrow, claim } = options
    const gitDir = `${within}/parcel-${env.random(6)}.tmp`
    env.files.mkdirSync(gitDir, { mode: 0o700 })
    const parcel = new Parcel(env, gitDir, options)
    try {
      parcel.#claim = claim(gitDir)
      await runGit(env, {
        args: ['init', '-q', '--bare', '--template=', `--object-format=${hash}`, '--shared=0600', gitDir],
        cwd: within,
        vars: { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
      })
      if (borrow.length > 0)
        env.files.writeFileSync(`${gitDir}/objects/info/alternates`, borrow.map((path) => `${path}\n`).join(''))
      return parcel
    } catch (error) {
      parcel.close()
      throw error
    }
  }

  /** Ends its processes and removes it. */
  close(): void {
    this.objects.close()
    removeTree(this.#env, this.gitDir, this.#claim)
  }

  /** git in the parcel, seeing no configuration but ours. */
  git = (args: readonly string[], more: Pick<GitCall, 'input' | 'config'> = {}): Promise<Buffer> => {
    this.objects.flush()
    return runGit(this.#env, { args, cwd: this.gitDir, vars: this.#vars, ...more })
  }

  /** git that speaks to another machine: the user's own configuration counts. A signal ends it, and then this process. */
  async #speak(args: readonly string[]): Promise<GitResult> {
    this.objects.flush()
    const heard: NodeJS.Signals[] = []
    const started = (git: ChildProcess) => this.#heed(git, (signal) => heard.push(signal))
    const vars = { GIT_DIR: this.gitDir }
    const result = await tryGit(this.#env, { args, cwd: this.gitDir, vars, transport: true, started })
    if (heard[0]) {
      this.close()
      this.#env.kill(this.#env.pid, heard[0])
    }
    return result
  }

  async refs(): Promise<ParcelRef[]> {
    return parseRefs((await this.git(['for-each-ref', '--format=%(objectname) %(refname)', PREFIX])).toString('utf8'))
  }

  async point(ref: string, oid: Oid): Promise<void> {
    await this.git(['update-ref', ref, oid])
  }

  /** @throws CkptError DAMAGED when it is no bundle, or not whole */
  async fetchBundle(file: string): Promise<void> {
    const config = [
      ['protocol.file.allow', 'always'],
      ['fetch.unpackLimit', '1'],
    ] as const
    const args = ['fetch', '-q', '--no-tags', '--no-write-fetch-head', file, `+${PREFIX}*:${PREFIX}*`]
    const result = await tryGit(this.#env, { args, cwd: this.gitDir, vars: this.#vars, config })
    if (result.code === 0) return
    const machine = machineFailure(args, result)
    if (machine) throw machine
    throw new CkptError('DAMAGED', `${file} is not a whole bundle: ${said(result)} Nothing was changed.`, {
      hints: ['ckpt export FILE   (on the machine it came from)'],
    })
  }

  /** Made within the parcel, and then put in its place: who is killed meanwhile leaves nothing there, no lock of git's either. */
  async writeBundle(file: string): Promise<void> {
    const made = `${this.gitDir}/made.bundle`
    await this.git(['bundle', 'create', '-q', made, `--glob=${PREFIX}*`])
    this.#env.files.chmodSync(made, 0o600)
    moveFile(this.#env, made, file)
  }

  /** What a remote has. @throws CkptError NOT_FOUND when it cannot be reached */
  async remoteRefs(url: string, pattern = `${PREFIX}*`): Promise<ParcelRef[]> {
    const result = await this.#speak(['ls-remote', '-q', '--refs', '--end-of-options', url, pattern])
    if (result.code !== 0) throw unreachable(url, result)
    return parseRefs(result.stdout.toString('utf8'))
  }

  /** `have`: what was fetched before, so that only what is new comes. */
  async fetchRemote(url: string, refs: readonly ParcelRef[], have: readonly Oid[]): Promise<void> {
    for (const [i, oid] of have.entries()) await this.point(`refs/have/${i}`, oid)
    const specs = refs.map(({ ref }) => `+${ref}:${ref}`)
    const flags = ['-q', '--no-tags', '--no-write-fetch-head', '--end-of-options']
    const result = await this.#speak(['fetch', ...flags, url, ...specs])
    if (result.code === 0) return
    if (isOtherFormat(result)) {
      const theirs = this.#hash === 'sha1' ? 'sha256' : 'sha1'
      throw otherFormat(
        this.#hash,
        `git init --object-format=${theirs} DIRECTORY   (a repository that can take them in)`,
      )
    }
    throw fullDisk(['fetch'], hereOnly(result)) ?? unacceptable(result) ?? unreachable(url, result)
  }

  /** `expected`: what the remote's refs are now; another value there refuses. `local`: nobody's hooks run for it. */
  async push(url: string, refs: readonly { ref: string; expected: Oid | null }[], local: boolean): Promise<void> {
    const lease = refs.map(({ ref, expected }) => `--force-with-lease=${ref}:${expected ?? ''}`)
    const receiver = local ? ['--receive-pack=git -c core.hooksPath=/dev/null receive-pack'] : []
    const specs = refs.map(({ ref }) => `${ref}:${ref}`)
    const flags = ['-q', '--no-verify', '--porcelain', ...receiver, ...lease, '--end-of-options']
    const result = await this.#speak(['push', ...flags, url, ...specs])
    if (result.code === 0) return
    if (isOtherFormat(result))
      throw otherFormat(
        this.#hash,
        `git init --bare --object-format=${this.#hash} DIRECTORY   (a remote that takes them)`,
      )
    throw isOvertaken(result) ? overtaken(result) : (rejected(result) ?? unreachable(url, result))
  }

  /** Moves what was fetched into a store. */
  async movePacks({ gitDir, objects }: Pick<Store, 'gitDir' | 'objects'>): Promise<void> {
    const { files } = this.#env
    const from = `${this.gitDir}/objects/pack`
    for (const name of files.readdirSync(from)) {
      const pack = /^(.*)\.idx$/.exec(name)?.[1]
      if (pack === undefined) continue
      for (const suffix of ['.pack', '.idx']) objects.grown += files.statSync(`${from}/${pack}${suffix}`).size
      movePack(this.#env, gitDir, { from: `${from}/${pack}`, pack })
    }
    await objects.syncFresh()
  }
}

/** Of a URL for ssh the name is left, which leads to another account without it; a name alone may be a token for others. */
const withoutPassword = (text: string) =>
  text.replace(/([\w+.-]*:)\/\/([^/\s]*)@/g, (_, scheme: string, user: string) =>
    /ssh:$/.test(scheme) ? `${scheme}//${user.split(':')[0]}@` : `${scheme}//`,
  )

/** What git adds to every failure of ssh. */
const ADVICE = /^(Please make sure you have the correct access rights|and the repository exists\.)$/

/** What git said, on one line and with nothing of a password in a URL. */
function said({ stderr, stdout }: GitResult): string {
  const text = stderr.trim() || stdout.toString('utf8').trim() || 'no message'
  const rows = withoutPassword(text)
    .split(/[\r\n]+/)
    .map((row) => row.trim())
    .filter((row) => /[\p{L}\p{N}]/u.test(row) && !ADVICE.test(row)) // ssh frames what it warns of
  // What led to it comes first, and git's own word on it; what a failing helper says last is why.
  const most = rows.length > 4 ? [rows[0]!, ...rows.slice(-3)] : rows
  const line = most.join(' ').slice(0, 500)
  return line.endsWith('.') ? line : `${line}.`
}

/** What git said of this machine, and not of the remote's. */
const hereOnly = ({ stderr, ...result }: GitResult) => ({ ...result, stderr: stderr.replace(/^remote:.*$/gm, '') })

const unreachable = (url: string, result: GitResult) =>
  new CkptError('INTERNAL', `git could not speak to the remote: ${said(result)} Nothing was changed here.`, {
    hints: [`git ls-remote ${quoted(withoutPassword(url))}`],
  })

/** It was reached, and git would not have what it sent (git-config(1), `transfer.fsckObjects`). Null: it did not say so. */
const unacceptable = (result: GitResult) =>
  /^fatal: fsck error in packed object/m.test(result.stderr)
    ? new CkptError('DAMAGED', `git refused what the remote sent: ${said(result)} Nothing was changed here.`, {
        hints: ['ckpt verify   (where it was pushed from)'],
      })
    : null

/** It was reached, and its objects have names that this repository's cannot have (git-init(1), `--object-format`). */
const isOtherFormat = ({ stderr }: GitResult) => /mismatched algorithms|support this repository's hash/.test(stderr)

const otherFormat = (ours: HashName, hint: string) =>
  new CkptError(
    'INTERNAL',
    `The remote has another object format than this repository, whose objects are ${ours}: neither takes the other's. Nothing was changed here.`,
    { hints: [hint] },
  )

/** It was reached, and has something else by now than it had a moment before (git-push(1), `--porcelain`). */
const isOvertaken = ({ stdout, stderr }: GitResult) =>
  /^!.*\(stale info\)/m.test(stdout.toString('utf8')) ||
  /cannot lock ref .*(?:is at|already exists|File exists)/.test(stderr)

/** A lock that a killed git left there looks the same: it says itself which one that would be. */
const overtaken = ({ stderr }: GitResult) => {
  const lock = /Unable to create '(.*\.lock)': File exists/.exec(stderr)?.[1]
  return new CkptError(
    'INTERNAL',
    'The remote got something else at the same time, and did not take all of this. Nothing was changed here.',
    {
      hints: [
        'run the command again',
        ...(lock === undefined ? [] : [`rm ${quoted(lock)}   (there, if it stays so and no git is at work on it)`]),
      ],
    },
  )
}

/** It was reached and refused: its rules, or a hook of its own, whose words git passes on. Null: it did not say so. */
function rejected({ stdout, stderr }: GitResult): CkptError | null {
  const rows = stdout.toString('utf8').matchAll(/^!\t[^\t]*\t\[remote rejected\] \((.*)\)$/gm)
  const why = [...new Set([...rows].map(([, reason]) => reason!))]
  if (why.length === 0) return null
  const words = [...stderr.matchAll(/^remote: *(\S.*?) *$/gm)].slice(0, 3).map(([, line]) => line!)
  return new CkptError(
    'INTERNAL',
    `The remote refused it: ${withoutPassword([why.join(', '), ...words].join('; ')).slice(0, 500)}. Nothing was changed here.`,
    {
      hints: [
        fullDisk([], { stderr })
          ? 'free some space there, then run the command again'
          : `let it take refs below ${PREFIX}`,
        'ckpt export FILE   (a bundle, to be sent in another way)',
      ],
    },
  )
}
