/** Objects of the store: read through one long-lived `git cat-file --batch`, written in this process as loose objects. */
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { CkptError } from '../core/errors.ts'
import type { Oid } from '../core/ids.ts'
import { type Env, errno } from '../env.ts'
import { startGit } from './process.ts'

export type ObjectType = 'blob' | 'tree' | 'commit'
export type HashName = 'sha1' | 'sha256'

interface Waiting {
  oid: string
  resolve: (found: { type: string; bytes: Buffer } | null) => void
  reject: (error: unknown) => void
}

/** Speed matters more than size here: idle packing compresses again (gitglossary: loose objects are zlib streams of any level). */
const DEFLATE = { level: 1 }
/** A tree is mostly hashes, which nothing compresses; a marker writes one for each directory above a change. */
const STORE = { level: 0 }

export class ObjectStore {
  readonly #env: Env
  readonly #gitDir: string
  readonly hash: HashName
  readonly #vars: Record<string, string>
  #child: ChildProcess | null = null
  #waiting: Waiting[] = []
  #chunks: Buffer[] = []
  #buffered = 0
  #written = new Set<Oid>()
  /** Of temporary names. */
  readonly #nonce: string
  #number = 0
  /** The reader is to be replaced once it has answered. */
  #stale = false
  /** What is there counts for nothing: objects are written again. */
  #distrusted = false
  /** Loose objects written by this process: what an operation syncs before it relies on them. */
  readonly fresh: Oid[] = []

  constructor(env: Env, gitDir: string, hash: HashName, vars: Record<string, string>) {
    this.#env = env
    this.#gitDir = gitDir
    this.hash = hash
    this.#vars = vars
    this.#nonce = `${env.random(8)}_`
  }

  get oidBytes(): number {
    return this.hash === 'sha1' ? 20 : 32
  }

  oidOf(type: ObjectType, bytes: Buffer): Oid {
    return createHash(this.hash).update(`${type} ${bytes.length}\0`).update(bytes).digest('hex') as Oid
  }

  /** The object, or null when the store does not have it. @throws CkptError DAMAGED when it is there and cannot be read. */
  read(oid: Oid): Promise<{ type: string; bytes: Buffer } | null> {
    return new Promise((resolve, reject) => {
      const child = this.#reader()
      this.#waiting.push({ oid, resolve, reject })
      child.stdin?.write(`${oid}\n`)
    })
  }

  /** @throws CkptError DAMAGED when it is missing, unreadable or of another type. */
  async get(oid: Oid, type: ObjectType): Promise<Buffer> {
    const found = await this.read(oid)
    if (found?.type !== type) {
      throw new CkptError(
        'DAMAGED',
        `The store lacks ${type} ${oid}${found ? ` (it is a ${found.type})` : ''}. Nothing was changed.`,
        { hints: ['ckpt verify'] },
      )
    }
    return found.bytes
  }

  /** Reads blobs whole and hashes them, before the first file rests on them. @throws CkptError DAMAGED */
  async prove(oids: Iterable<Oid>): Promise<void> {
    for (const oid of new Set(oids)) {
      if (this.oidOf('blob', await this.get(oid, 'blob')) === oid) continue
      throw new CkptError('DAMAGED', `Blob ${oid} does not hold what its name says. Nothing was changed.`, {
        hints: ['ckpt verify'],
      })
    }
  }

  /** Writes an object unless this process has already done so. Durable only after {@link sync}. */
  write(type: ObjectType, bytes: Buffer): Oid {
    const oid = this.oidOf(type, bytes)
    if (this.#written.has(oid)) return oid
    const { files } = this.#env
    const path = this.loosePath(oid)
    if (this.#distrusted || !files.existsSync(path)) {
      const whole = Buffer.concat([Buffer.from(`${type} ${bytes.length}\0`), bytes])
      const packed = deflateSync(whole, type === 'tree' ? STORE : DEFLATE)
      const temporary = `${this.#gitDir}/objects/tmp_obj_${this.#nonce}${this.#number++}`
      files.writeFileSync(temporary, packed, { mode: 0o400, flag: 'wx' })
      try {
        files.renameSync(temporary, path)
      } catch (error) {
        if (errno(error) !== 'ENOENT') throw error
        files.mkdirSync(path.slice(0, path.lastIndexOf('/')), { mode: 0o700, recursive: true })
        files.renameSync(temporary, path)
      }
    }
    this.#written.add(oid)
    this.fresh.push(oid)
    return oid
  }

  /** Runs work during which each object that is written is written again, for the one that is there may be damaged. */
  async distrusting<T>(work: () => Promise<T>): Promise<T> {
    this.#written.clear()
    this.#distrusted = true
    try {
      return await work()
    } finally {
      this.#distrusted = false
    }
  }

  /** Marks objects as known to be stored, so that writing equal bytes is skipped. */
  assume(oid: Oid): void {
    this.#written.add(oid)
  }

  loosePath(oid: Oid): string {
    return `${this.#gitDir}/objects/${oid.slice(0, 2)}/${oid.slice(2)}`
  }

  /** Syncs what this process wrote since the last time, and these. */
  syncFresh(more: Iterable<Oid>): void {
    this.sync([...this.fresh, ...more])
    this.fresh.length = 0
  }

  /** Syncs loose objects and their directories to disk; packed ones were synced by whoever packed them. */
  sync(oids: Iterable<Oid>): void {
    const { files } = this.#env
    const directories = new Set<string>()
    for (const oid of oids) {
      const path = this.loosePath(oid)
      let fd: number
      try {
        fd = files.openSync(path, 'r')
      } catch (error) {
        if (errno(error) === 'ENOENT') continue
        throw error
      }
      try {
        files.fsyncSync(fd)
      } finally {
        files.closeSync(fd)
      }
      directories.add(path.slice(0, path.lastIndexOf('/')))
    }
    for (const directory of directories) {
      const fd = files.openSync(directory, 'r')
      try {
        files.fsyncSync(fd)
      } finally {
        files.closeSync(fd)
      }
    }
  }

  /** What was there may be gone: it is written again, and the reader, which may hold packs open that went, is another one. */
  forget(): void {
    this.#written.clear()
    if (this.#waiting.length === 0) this.close()
    else this.#stale = true
  }

  close(): void {
    const child = this.#child
    this.#child = null // what it says from now on is for nobody
    this.#stale = false
    this.#chunks = []
    this.#buffered = 0
    child?.stdin?.end()
    child?.kill('SIGKILL')
    this.#fail(new CkptError('INTERNAL', 'The store was closed while it was read. Nothing was changed.'))
  }

  #reader(): ChildProcess {
    if (this.#child) return this.#child
    const child = startGit(this.#env, { args: ['cat-file', '--batch'], vars: this.#vars, cwd: this.#gitDir })
    child.stdout?.on('data', (chunk: Buffer) => {
      if (this.#child !== child) return
      this.#chunks.push(chunk)
      this.#buffered += chunk.length
      try {
        this.#drain()
        if (this.#stale && this.#waiting.length === 0) this.close()
      } catch (error) {
        this.#fail(error)
      }
    })
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString('utf8')).slice(0, 500)
    })
    child.on('error', (cause) =>
      this.#fail(new CkptError('INTERNAL', 'git could not be run. Nothing was changed.', { cause })),
    )
    child.on('close', () => {
      if (this.#child !== child) return
      this.#child = null
      this.#chunks = []
      this.#buffered = 0
      this.#fail(
        new CkptError('DAMAGED', `git cat-file ended early: ${said.trim() || 'no message'}. Nothing was changed.`, {
          hints: ['ckpt verify'],
        }),
      )
    })
    this.#child = child
    return child
  }

  #fail(error: unknown): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const one of waiting) one.reject(error)
  }

  #drain(): void {
    while (this.#waiting.length > 0) {
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
        this.#waiting.shift()!.resolve(null)
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
      this.#waiting.shift()!.resolve({ type: match[1]!, bytes })
    }
  }

  #consume(count: number): void {
    const rest = this.#chunks[0]!.subarray(count)
    this.#chunks[0] = rest
    this.#buffered -= count
    if (rest.length === 0) this.#chunks.shift()
  }
}
