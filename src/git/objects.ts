/**
 * Objects of the store, written in this process. They are held back until git or a ref needs them: what one snapshot writes
 * then becomes one pack, for making a file costs more than what is in it.
 */
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { deflateSync, inflateSync } from 'node:zlib'
import { CkptError, unlessDamaged } from '../core/errors.ts'
import type { HashName, Oid } from '../core/ids.ts'
import { type Env, errno } from '../env.ts'
import { loosePath, readSmall } from './loose.ts'
import { type FoundObject, ObjectReader } from './object-reader.ts'
import { formatPack, type ObjectType, type PackObject } from './pack.ts'
import { makePacksDirectory } from './packs.ts'
import { movePack, syncPacks } from './unsynced-packs.ts'
import { syncFiles, withDrafts } from './whole-file.ts'

/** Bytes up to which a process that packs when it is idle does not compress what it writes. */
const MOST_RAW = 1 << 20
/** Up to this many are written as loose objects: each pack makes every lookup slower. */
const FEW = 8
/** Bytes from which on an object is a file of its own. */
const LARGE = 1 << 20
/** Bytes that are held back at most. */
const MOST_HELD = 16 << 20
/** What was written lately is known without asking: so many objects, of so many bytes at most. */
const RECENT = 256
const SMALL = 16_384
/** So many are synced, or read here, before others have their turn. */
const [STEP, ROUND] = [8, 100]

export class ObjectStore {
  readonly #env: Env
  readonly #gitDir: string
  readonly hash: HashName
  readonly #vars: Record<string, string>
  readonly #reader: ObjectReader
  readonly #held = new Map<Oid, PackObject>()
  #heldBytes = 0
  /** By whom it is held on disk: a loose object's file or a pack's index. */
  readonly #written = new Map<Oid, string>()
  readonly #recent = new Map<Oid, FoundObject>()
  /** Of temporary names. */
  readonly #nonce: string
  #number = 0
  #readHere = 0
  /** What is there counts for nothing: objects are written again. */
  #distrusted = false
  /** Loose objects that this process relies on and has not synced. */
  readonly #fresh = new Map<Oid, object>()
  /** Somebody waits for what is written, and there will be time to compress it. */
  hurried = false
  /** Bytes that files written here take on disk, until somebody has noted them. */
  grown = 0

  constructor(env: Env, { gitDir, hash, vars }: { gitDir: string; hash: HashName; vars: Record<string, string> }) {
    this.#env = env
    this.#gitDir = gitDir
    this.hash = hash
    this.#vars = vars
    this.#reader = new ObjectReader(env, gitDir, vars)
    this.#nonce = `${env.random(8)}_`
  }

  get oidBytes(): number {
    return this.hash === 'sha1' ? 20 : 32
  }

  oidOf(type: ObjectType, bytes: Buffer): Oid {
    return createHash(this.hash).update(`${type} ${bytes.length}\0`).update(bytes).digest('hex') as Oid
  }

  /** The object, or null when the store does not have it. @throws CkptError DAMAGED when it is there and cannot be read. */
  async read(oid: Oid): Promise<FoundObject | null> {
    const known = this.#held.get(oid) ?? this.#recent.get(oid) ?? (await this.#atHand(oid))
    return known ?? this.#reader.read(oid)
  }

  /** Whether it is on disk, or will be with what is held back. @throws CkptError DAMAGED when it is there and cannot be read. */
  async has(oid: Oid): Promise<boolean> {
    const file = this.#written.get(oid)
    if (this.#held.has(oid) || (file !== undefined && this.#env.files.existsSync(file))) return true
    return ((await this.#atHand(oid)) ?? (await this.#reader.read(oid))) !== null
  }

  /** A small one in a file of its own, without a git; null: git is to be asked. */
  readLoose(oid: Oid): FoundObject | null {
    return readSmall(this.#env, this.#directory, { oid, hash: this.hash })
  }

  /** The same of many, one after the other: others have their turn in between. */
  async #atHand(oid: Oid): Promise<FoundObject | null> {
    const found = this.readLoose(oid)
    if (found && ++this.#readHere % ROUND === 0) await setImmediate()
    return found
  }

  /** @throws CkptError DAMAGED when it is missing, unreadable or of another type. */
  async get(oid: Oid, type: ObjectType): Promise<Buffer> {
    return this.#expect(await this.read(oid), oid, type)
  }

  #expect(found: FoundObject | null, oid: Oid, type: ObjectType): Buffer {
    if (found?.type !== type) {
      throw new CkptError(
        'DAMAGED',
        `The store lacks ${type} ${oid}${found ? ` (it is a ${found.type})` : ''}. Nothing was changed.`,
        { hints: ['ckpt verify'] },
      )
    }
    return found.bytes
  }

  /** Without a git, where that can be. */
  async #isBlob(oid: Oid): Promise<boolean> {
    return (await this.#atHand(oid))?.type === 'blob'
  }

  /** Reads blobs whole from the disk and hashes them, before anything rests on them. @throws CkptError DAMAGED */
  async prove(oids: Iterable<Oid>): Promise<void> {
    this.flush()
    for (const oid of new Set(oids)) if (!(await this.#isBlob(oid))) await this.proven(oid, this.#reader)
  }

  /** A blob that holds what its name says. @throws CkptError DAMAGED */
  async proven(oid: Oid, from: Pick<ObjectReader, 'read'> = this): Promise<Buffer> {
    const bytes = this.#expect(await from.read(oid), oid, 'blob')
    if (this.oidOf('blob', bytes) === oid) return bytes
    throw new CkptError('DAMAGED', `Blob ${oid} does not hold what its name says. Nothing was changed.`, {
      hints: ['ckpt verify'],
    })
  }

  /** Those of the blobs that {@link prove} would throw for. What is held back is whole. */
  async damaged(oids: Iterable<Oid>): Promise<Set<Oid>> {
    const found = new Set<Oid>()
    const reader = new ObjectReader(this.#env, this.#gitDir, this.#vars) // ours may hold a pack open that is gone
    try {
      for (const oid of new Set(oids)) {
        if (this.#held.has(oid) || (await this.#isBlob(oid))) continue
        if ((await unlessDamaged(() => this.proven(oid, reader), null)) === null) found.add(oid)
      }
    } finally {
      reader.close()
    }
    return found
  }

  /** Those of them that another directory of objects has whole. Only what lies there: no remote is asked. */
  async *elsewhere(directory: string, oids: Iterable<Oid>): AsyncGenerator<PackObject> {
    const reader = new ObjectReader(this.#env, this.#gitDir, { ...this.#vars, GIT_OBJECT_DIRECTORY: directory })
    try {
      for (const oid of oids) {
        const found = await unlessDamaged(() => reader.read(oid), null)
        const type = found?.type as ObjectType | undefined
        if (found && type && this.oidOf(type, found.bytes) === oid) yield { oid, type, bytes: found.bytes }
      }
    } finally {
      reader.close()
    }
  }

  /** Writes an object unless it lies loose there already: for one, no pack is looked through. On disk after {@link flush}, durable only after {@link syncFresh}. */
  write(type: ObjectType, bytes: Buffer): Oid {
    const oid = this.oidOf(type, bytes)
    if (this.#written.has(oid) || this.#held.has(oid)) return oid
    const object = { oid, type, bytes }
    const alone = this.#distrusted || bytes.length >= LARGE
    const there = alone || this.hurried ? 'nothing' : this.#asLoose(object)
    if (alone || there === 'damaged') this.#writeLoose(object)
    else if (there === 'nothing') {
      this.#held.set(oid, object)
      this.#heldBytes += bytes.length
      if (this.#heldBytes > MOST_HELD) this.flush()
    }
    return oid
  }

  /** Whether anything is held back: the next git would want it written first. */
  get holds(): boolean {
    return this.#held.size > 0
  }

  /** What was held back is on disk, where others see it. */
  flush(): void {
    if (this.#held.size === 0) return
    const held = [...this.#held.values()]
    // git looks at a commit before it moves a ref to it, and would look through all packs anew for one in a new pack.
    const belongsInPack = ({ type }: PackObject) => held.length > FEW && type !== 'commit'
    const packed = held.filter(belongsInPack)
    if (packed.length > 0) this.#writePack(packed)
    for (const object of held) {
      if (!belongsInPack(object) && !(this.hurried && this.#asLoose(object) === 'whole')) this.#writeLoose(object)
    }
    this.#held.clear()
    this.#heldBytes = 0
  }

  /**
   * zlib's. Speed matters more than size here: idle packing compresses again. A tree is mostly hashes, which nothing
   * compresses, and a marker writes one for each directory above a change.
   */
  #level(type: ObjectType): number {
    return type === 'tree' || (this.hurried && this.#heldBytes < MOST_RAW) ? 0 : 1
  }

  /** Somebody may have written it before, as an object of its own: that one is relied on, if it is whole. */
  #asLoose({ oid, type, bytes }: PackObject): 'nothing' | 'whole' | 'damaged' {
    const path = this.loosePath(oid)
    if (!this.#env.files.existsSync(path)) return 'nothing' // without the cost of an error
    const whole = wholeObject(type, bytes)
    try {
      const deflated = this.#env.files.readFileSync(path)
      if (!inflateSync(deflated, { maxOutputLength: whole.length }).equals(whole)) return 'damaged'
    } catch {
      return 'damaged' // closed, cut short, or longer
    }
    this.#written.set(oid, path)
    this.#fresh.set(oid, {})
    return 'whole'
  }

  #isWritten({ oid, type, bytes }: PackObject, file: string): void {
    this.#written.set(oid, file)
    if (bytes.length > SMALL) return
    this.#recent.set(oid, { type, bytes })
    if (this.#recent.size > RECENT) for (const oldest of this.#recent.keys()) return void this.#recent.delete(oldest)
  }

  #writeLoose(object: PackObject): void {
    const { oid, type, bytes } = object
    const { files } = this.#env
    const path = this.loosePath(oid)
    const whole = wholeObject(type, bytes)
    const temporary = `${this.#gitDir}/objects/tmp_obj_${this.#nonce}${this.#number++}`
    const deflated = deflateSync(whole, { level: this.#level(type) })
    withDrafts(this.#env, [temporary], () => {
      files.writeFileSync(temporary, deflated, { mode: 0o400, flag: 'wx' })
      try {
        files.renameSync(temporary, path)
      } catch (error) {
        if (errno(error) !== 'ENOENT') throw error
        files.mkdirSync(path.slice(0, path.lastIndexOf('/')), { mode: 0o700, recursive: true })
        files.renameSync(temporary, path)
      }
    })
    this.grown += inBlocks(deflated)
    this.#fresh.set(oid, {})
    this.#isWritten(object, path)
  }

  #writePack(objects: readonly PackObject[]): void {
    const { files } = this.#env
    const { sum, pack, index } = formatPack(objects, this.hash, (type) => this.#level(type))
    const path = `${this.#gitDir}/objects/pack/pack-${sum}`
    const temporary = `${this.#gitDir}/objects/pack/tmp_pack_${this.#nonce}${this.#number++}`
    makePacksDirectory(files, this.#gitDir)
    withDrafts(this.#env, [`${temporary}.pack`, `${temporary}.idx`], () => {
      files.writeFileSync(`${temporary}.pack`, pack, { mode: 0o400, flag: 'wx' })
      files.writeFileSync(`${temporary}.idx`, index, { mode: 0o400, flag: 'wx' })
      movePack(this.#env, this.#gitDir, { from: temporary, pack: `pack-${sum}` })
    })
    this.grown += inBlocks(pack) + inBlocks(index)
    for (const object of objects) this.#isWritten(object, `${path}.idx`)
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

  loosePath(oid: Oid): string {
    return loosePath(this.#directory, oid)
  }

  get #directory(): string {
    return `${this.#gitDir}/objects`
  }

  /** Syncs what was written and not synced yet, by whomever, and these. */
  async syncFresh(more: Iterable<Oid> = []): Promise<void> {
    this.flush()
    syncPacks(this.#env, this.#gitDir, this)
    await this.#sync(new Set([...this.#fresh.keys(), ...more]))
  }

  /** The same a few at a time, for one who has others to serve meanwhile: `others` waits until they are served. */
  async syncFreshInSteps(others: () => Promise<unknown>): Promise<void> {
    this.flush()
    syncPacks(this.#env, this.#gitDir, this)
    while (this.#fresh.size > 0) {
      const ordered = [...this.#fresh.keys()].sort() // those of a directory together
      for (let at = 0; at < ordered.length; at += STEP) {
        await this.#sync(ordered.slice(at, at + STEP).filter((oid) => this.#fresh.has(oid))) // the others may sync some
        await setImmediate()
        await others()
      }
    }
  }

  /** Syncs loose objects and their directories to disk. */
  async #sync(oids: Iterable<Oid>): Promise<void> {
    const before = [...oids].map((oid) => ({ oid, writing: this.#fresh.get(oid) }))
    const there = await syncFiles(
      this.#env,
      before.map(({ oid }) => this.loosePath(oid)),
    )
    const directories = new Set(there.map((path) => path.slice(0, path.lastIndexOf('/'))))
    await syncFiles(this.#env, [...directories])
    // What was written once more meanwhile is as fresh as it was.
    for (const { oid, writing } of before) if (this.#fresh.get(oid) === writing) this.#fresh.delete(oid)
  }

  /** What was there may be gone: it is written again, and read from the disk. */
  forget(): void {
    this.#written.clear()
    this.#recent.clear()
    this.#reader.renew()
  }

  close(): void {
    this.#reader.close()
  }
}

/** What a file takes on most file systems. */
const inBlocks = ({ length }: Buffer): number => Math.ceil(length / 4096) * 4096

/** What a loose object's file holds, deflated. */
const wholeObject = (type: ObjectType, bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${type} ${bytes.length}\0`), bytes])
