/** Verify, the bytes: every loose object, every pack and its index, and everything that a ref reaches. Writes nothing. */
import { createHash } from 'node:crypto'
import { CkptError, isDamage } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import { type Env, errno } from '../../env.ts'
import { type End, endOf } from '../../git/checksum.ts'
import { isOfMachine } from '../../git/denied.ts'
import { type Inflated, inflate, parseLoose } from '../../git/loose.ts'
import type { FoundObject } from '../../git/object-reader.ts'
import { packFiles, packsDirectory } from '../../git/packs.ts'
import { refuseUnreadable } from '../../git/refs.ts'
import type { Store } from '../../git/store.ts'
import { unsyncedPacks } from '../../git/unsynced-packs.ts'
import type { Context } from '../worktree/context.ts'
import { describeLost, findLost } from './lost.ts'

const failed = (bad: readonly string[]) => new CkptError('VERIFY_FAILED', bad.slice(0, 20).join(', '))
const failedFor = (damaged: ReadonlyMap<Oid, string>) => failed([...damaged].map(([oid, said]) => `${oid} ${said}`))

type Reachable = Pick<Store, 'git' | 'objects'>

/** Reads and hashes everything that a ref reaches. @throws CkptError VERIFY_FAILED, DAMAGED */
export async function verifyReachable(env: Env, store: Reachable): Promise<number> {
  const oids = await reachableOids(store)
  await readAll(env, store, oids)
  return oids.length
}

/** The same for a store of ours, whose checkpoints tell what each object is of. @throws CkptError VERIFY_FAILED, DAMAGED */
export async function verifyObjects(context: Context): Promise<number> {
  const { env, store } = context
  let ended: unknown = null
  const oids = await reachableOids(store).catch((error: unknown) => {
    if (!isDamage(error)) throw error
    ended = error
    return []
  })
  const damaged = await damagedObjects(env, store, oids)
  if (ended === null && damaged.size === 0) return oids.length
  const lost = await findLost(context, damaged)
  if (lost.length === 0) throw ended ?? failedFor(damaged)
  throw failed(lost.map((one) => `${one.oid} ${one.said} (${describeLost(one)})`))
}

async function reachableOids(store: Reachable): Promise<Oid[]> {
  const out = await store.git(['rev-list', '--objects', '--no-object-names', '--all'])
  return out
    .toString('latin1')
    .split('\n')
    .filter((line) => line !== '') as Oid[]
}

/** @throws CkptError VERIFY_FAILED that names what is missing or damaged */
export async function readAll(env: Env, store: Reachable, oids: readonly Oid[]): Promise<void> {
  const damaged = await damagedObjects(env, store, oids)
  if (damaged.size > 0) throw failedFor(damaged)
}

/** What is wrong with each that is not whole. */
export async function damagedObjects(env: Env, store: Reachable, oids: readonly Oid[]): Promise<Map<Oid, string>> {
  const bad = new Map<Oid, string>()
  for (let at = 0; at < oids.length; at += 256) {
    await env.progress(`verifying: ${at} of ${oids.length} objects`)
    const some = oids.slice(at, at + 256)
    const found = await Promise.all(some.map((oid) => proof(store, oid)))
    // A reader that met a damaged object ends, and takes its other questions with it: they are asked one by one.
    for (const [i, oid] of some.entries()) {
      const said = found[i] === 'cannot be read' ? await proof(store, oid) : found[i]
      if (said) bad.set(oid, said)
    }
  }
  return bad
}

async function proof({ objects }: Reachable, oid: Oid): Promise<string | null> {
  try {
    const found = await objects.read(oid)
    if (!found) return 'is missing'
    return objects.oidOf(found.type as 'blob', found.bytes) === oid ? null : 'does not hold what its name says'
  } catch (error) {
    if (isDamage(error)) return 'cannot be read'
    throw error // also a git that could not be started: nothing is known of the object
  }
}

/** Every loose object, needed or not: its stream is whole, and holds what its name says. @throws CkptError VERIFY_FAILED */
export function verifyLoose(context: Context): number {
  const { count, damaged } = readLoose(context)
  if (damaged.size > 0) throw failedFor(damaged)
  return count
}

interface LooseObjects {
  count: number
  /** What is wrong with each that is not whole. */
  damaged: Map<Oid, string>
  /** Of those the ones that are there all the same, in files that hold more. */
  spilled: Map<Oid, FoundObject>
}

export function readLoose({ env, store }: Context): LooseObjects {
  const { files } = env
  const directory = `${store.gitDir}/objects`
  const damaged = new Map<Oid, string>()
  const spilled = new Map<Oid, FoundObject>()
  let count = 0
  for (const fan of files.readdirSync(directory)) {
    if (!/^[0-9a-f]{2}$/.test(fan)) continue
    for (const name of files.readdirSync(`${directory}/${fan}`)) {
      if (!/^[0-9a-f]{38,62}$/.test(name)) continue
      const oid = `${fan}${name}` as Oid
      let packed: Buffer
      try {
        packed = files.readFileSync(`${directory}/${fan}/${name}`)
      } catch (error) {
        if (errno(error) === 'ENOENT') continue // packed meanwhile
        if (isOfMachine(error)) throw error
        damaged.set(oid, 'cannot be read')
        continue
      }
      count++
      const { hash } = store.objects
      const whole = inflate(packed)
      const said = looseProof(packed, whole, { oid, hash })
      if (!said) continue
      damaged.set(oid, said)
      const object = whole && parseLoose(whole.bytes, { oid, hash })
      if (object) spilled.set(oid, object)
    }
  }
  return { count, damaged, spilled }
}

function looseProof(
  packed: Buffer,
  whole: Inflated | null,
  { oid, hash }: { oid: string; hash: string },
): string | null {
  if (whole === null) return 'cannot be read'
  if (whole.used !== packed.length) return 'has bytes after its end'
  if (createHash(hash).update(whole.bytes).digest('hex') !== oid) return 'does not hold what its name says'
  return hasStrayBits(packed, whole) ? 'has a bit set after its end' : null
}

/**
 * zlib fills the last byte of its data up with zeros (RFC 1951); no checksum covers those. If the highest bit that is set
 * can be cleared and nothing changes, it was one of them.
 */
function hasStrayBits(packed: Buffer, whole: Inflated): boolean {
  const at = whole.used - 5 // four bytes of Adler-32 come after it
  const last = packed[at]
  if (!last) return false
  const other = Buffer.from(packed)
  other[at] = last & ~(1 << (31 - Math.clz32(last)))
  const cleared = inflate(other)
  return cleared !== null && cleared.used === whole.used && cleared.bytes.equals(whole.bytes)
}

/** Files that end in a checksum of all that comes before: gitformat-pack(5). */
const SUMMED = /\.(pack|idx|rev|bitmap|mtimes)$|^multi-pack-index$/

/** Every pack, linked ones too: the checksums at the end of it and of what goes with it. */
export function verifyPacks({ env, store }: Context): number {
  const directory = packsDirectory(store.gitDir)
  const all = packFiles(env.files, store.gitDir)
  const names = all.filter((name) => SUMMED.test(name) && !/^(tmp_|\.tmp-)/.test(name))
  const bad: string[] = []
  const ends = new Map<string, End>()
  // The writer was killed before its pack could be seen; the next prune removes it.
  const cutShort = new Set([...unsyncedPacks(env.files, store.gitDir), ...unseenPacks(all)])
  const baseOf = (name: string) => name.replace(/\.\w+$/, '')
  const isUnseen = (name: string) => cutShort.has(baseOf(name)) && !names.includes(`${baseOf(name)}.idx`)
  for (const name of names) {
    if (isUnseen(name)) continue // nothing rests on it, whatever bytes it has
    const end = endOf(env.files, `${directory}/${name}`, store.objects)
    if (end) ends.set(name, end)
    else bad.push(`${name} does not have the bytes it was written with`)
  }
  for (const name of names) {
    if (!/\.(pack|idx)$/.test(name)) continue
    const [pack, idx] = [`${baseOf(name)}.pack`, `${baseOf(name)}.idx`]
    // An index alone is what a killed git-repack(1) leaves of a pack that it had replaced; whatever is missing is said of its object.
    if (name === pack && !names.includes(idx) && !isUnseen(name))
      bad.push(`${name} is alone: ${pack} and ${idx} go together`)
    // An index names the pack it is for, before its own checksum.
    const named = name === idx ? ends.get(idx)?.before : undefined
    const own = ends.get(pack)?.sum
    if (named && own && !named.equals(own)) bad.push(`${idx} is for another pack`)
  }
  if (bad.length > 0) throw failed(bad)
  return names.filter((name) => name.endsWith('.pack')).length
}

/**
 * Packs that a killed git-repack(1) had moved to their place without their indexes, which it moves last: nothing rests on
 * them, for the packs that they replace go only after that. Names without a suffix.
 */
export function unseenPacks(names: readonly string[]): string[] {
  const there = new Set(names)
  return names.flatMap((name) => {
    const pack = /^\.tmp-\d+-(pack-[0-9a-f]+)\.idx$/.exec(name)?.[1]
    return pack !== undefined && there.has(`${pack}.pack`) && !there.has(`${pack}.idx`) ? [pack] : []
  })
}

export const withoutSuffix = (name: string): string => name.replace(/\.(pack|idx)$/, '')

/** Names of packs and indexes that do not have the bytes they were written with, and of indexes that are not there. */
export function damagedPackFiles({ env, store }: Context): string[] {
  const directory = packsDirectory(store.gitDir)
  const all = packFiles(env.files, store.gitDir)
  const names = all.filter((name) => /^pack-.*\.(pack|idx)$/.test(name))
  const alone = names
    .filter((name) => name.endsWith('.pack'))
    .map((name) => name.replace(/\.pack$/, ''))
    .filter((name) => !names.includes(`${name}.idx`))
  // Its writer was killed before it could be seen.
  const unseen = [...unsyncedPacks(env.files, store.gitDir), ...unseenPacks(all)]
  const cutShort = new Set(unseen.filter((name) => alone.includes(name)))
  const missing = alone.filter((name) => !cutShort.has(name)).map((name) => `${name}.idx`)
  const damaged = names.filter((name) => {
    if (cutShort.has(withoutSuffix(name))) return false
    refuseUnreadable(env, store.gitDir, [`objects/pack/${name}`])
    try {
      return endOf(env.files, `${directory}/${name}`, store.objects) === null
    } catch (error) {
      if (errno(error) === 'ENOENT') return false // packed anew meanwhile
      throw error
    }
  })
  return [...damaged, ...missing]
}

/** Objects that only the user's repository has. @throws CkptError VERIFY_FAILED that names them */
export async function verifyDurable({ env, store }: Context): Promise<string> {
  if (store.durable) return 'no object is borrowed'
  const directory = `${store.gitDir}/objects`
  const own = new Set<string>()
  for (const name of env.files.readdirSync(`${directory}/pack`)) {
    if (!name.endsWith('.idx')) continue
    const input = env.files.readFileSync(`${directory}/pack/${name}`)
    const rows = (await store.git(['show-index', `--object-format=${store.objects.hash}`], { input })).toString(
      'latin1',
    )
    for (const row of rows.split('\n')) own.add(row.split(' ')[1] ?? '')
  }
  const out = await store.git(['rev-list', '--objects', '--no-object-names', '--all'])
  const borrowed = out
    .toString('latin1')
    .split('\n')
    .filter((oid) => oid !== '' && !own.has(oid) && !env.files.existsSync(store.objects.loosePath(oid as Oid)))
  const named = borrowed.length > 0 ? `: ${borrowed.slice(0, 10).join(', ')}` : ''
  throw new CkptError(
    'VERIFY_FAILED',
    `objects are borrowed from the user's repository, whose gc could take them (${borrowed.length} needed${named})`,
  )
}
