/** What came from elsewhere: read, and believed in nothing that was not looked at. */
import { parseBeside } from '../../core/beside.ts'
import { lostTurn, parseRecord, recordObjects } from '../../core/boundary.ts'
import { type Checkpoint, parseCheckpoint, turnsBegun } from '../../core/checkpoint.ts'
import { CkptError } from '../../core/errors.ts'
import { isOid, type Oid, parseSessionId } from '../../core/ids.ts'
import { type Manifest, type ManifestRef, parseManifest } from '../../core/manifest.ts'
import { barePath, printable } from '../../core/paths.ts'
import { parseTree } from '../../core/tree-object.ts'
import type { Parcel, ParcelRef } from '../../git/parcel.ts'

/** The checkpoints of one worktree of another store. */
export interface Incoming {
  ref: ParcelRef
  manifest: Manifest
  checkpoints: Map<Oid, Checkpoint>
  /** The bytes of their commits. */
  commits: Map<Oid, Buffer>
  /** What lies beside them. */
  beside: Set<Oid>
  /** Checkpoint → blob with its prompt's text. */
  prompts: Map<Oid, Oid>
}

const wrong = (why: string) =>
  new CkptError('DAMAGED', `What came is not what ckpt exports: ${why}. Nothing was changed.`, {
    hints: ['ckpt verify --bundle FILE'],
  })

/** Reads every object of a parcel's ref by git's own walk, then its parts. @throws CkptError DAMAGED */
export async function readIncoming(parcel: Parcel, ref: ParcelRef, seen = new Set<Oid>()): Promise<Incoming> {
  await parcel.git(['rev-list', '--objects', '--quiet', ref.oid])
  const root = await rootOf(parcel, ref)
  const manifestBlob = root.get('manifest.json')
  if (!manifestBlob) throw wrong('it has no manifest')
  const manifest = parseManifest(await parcel.objects.get(manifestBlob, 'blob'))
  if (manifest.origin !== ref.origin || manifest.worktree !== ref.worktree)
    throw wrong(`${printable(ref.ref)} says it is ${printable(`${manifest.origin}/${manifest.worktree}`)}`)
  if (manifest.hash !== parcel.objects.hash) throw wrong(`its objects are ${manifest.hash}`)
  const part = async (name: string) => (root.has(name) ? readFan(parcel, root.get(name)!) : new Map<Oid, Oid>())
  const [commitBlobs, trees, beside, prompts] = [
    await part('commits'),
    await part('trees'),
    await part('beside'),
    await part('prompts'),
  ]
  const incoming: Incoming = {
    ref,
    manifest,
    checkpoints: new Map(),
    commits: new Map(),
    beside: new Set(beside.keys()),
    prompts,
  }
  for (const [id, blob] of commitBlobs) {
    const bytes = await parcel.objects.get(blob, 'blob')
    if (parcel.objects.oidOf('commit', bytes) !== id) throw wrong(`checkpoint ${id} does not hold what its name says`)
    incoming.commits.set(id, bytes)
    incoming.checkpoints.set(id, parseCheckpoint(id, bytes.toString('utf8')))
  }
  for (const checkpoint of incoming.checkpoints.values())
    await checkOne(parcel, incoming, { checkpoint, trees, beside, seen })
  for (const one of manifest.refs) await checkRef(parcel, incoming, one)
  for (const id of prompts.keys()) if (!incoming.checkpoints.has(id)) throw wrong(`a prompt belongs to no checkpoint`)
  return incoming
}

async function rootOf({ objects }: Parcel, { oid }: ParcelRef): Promise<Map<string, Oid>> {
  const text = (await objects.get(oid, 'commit')).toString('latin1')
  const tree = text.slice('tree '.length, text.indexOf('\n'))
  if (!isOid(tree)) throw wrong('its commit cannot be read')
  return new Map(parseTree(await objects.get(tree, 'tree'), objects.oidBytes).map(({ name, oid: at }) => [name, at]))
}

async function readFan({ objects }: Parcel, tree: Oid): Promise<Map<Oid, Oid>> {
  const found = new Map<Oid, Oid>()
  for (const fan of parseTree(await objects.get(tree, 'tree'), objects.oidBytes)) {
    if (fan.mode !== '40000') throw wrong('a list in it cannot be read')
    for (const { name, oid } of parseTree(await objects.get(fan.oid, 'tree'), objects.oidBytes)) {
      const id = `${fan.name}${name}`
      if (!isOid(id)) throw wrong('a list in it cannot be read')
      found.set(id, oid)
    }
  }
  return found
}

interface Parts {
  checkpoint: Checkpoint
  trees: ReadonlyMap<Oid, Oid>
  beside: ReadonlyMap<Oid, Oid>
  /** Trees that were looked through. */
  seen: Set<Oid>
}

async function checkOne(parcel: Parcel, incoming: Incoming, { checkpoint, trees, beside, seen }: Parts): Promise<void> {
  const { id, tree, record } = checkpoint
  const { objects } = parcel
  checkNumbers(checkpoint)
  if (!isSession(checkpoint.session)) throw wrong(`checkpoint ${id} is of no session`)
  for (const parent of checkpoint.parents) checkParent(incoming, checkpoint, parent)
  if (trees.get(tree) !== tree) throw wrong(`the snapshot of checkpoint ${id} did not come along`)
  const needed = (oid: Oid) => {
    if (beside.get(oid) !== oid) throw wrong(`what lies beside checkpoint ${id} did not come along`)
    return objects.get(oid, 'blob')
  }
  await checkTree(parcel, tree, seen)
  if (!seen.has(checkpoint.beside)) {
    seen.add(checkpoint.beside)
    const told = parseBeside(await needed(checkpoint.beside))
    for (const path of [...told.modes.keys(), ...told.emptyDirectories]) checkPath(path, isPart)
    for (const path of [...told.uncovered.map((one) => one.path), ...told.ignored.keys()])
      if (path !== '') checkPath(path, isName)
  } else if (!beside.has(checkpoint.beside)) throw wrong(`what lies beside checkpoint ${id} did not come along`)
  if (!record || seen.has(record)) return
  seen.add(record)
  const told = parseRecord(await needed(record))
  for (const unit of told.units) for (const { path } of unit.changes) checkPath(path, isPart)
  for (const oid of recordObjects(told)) await needed(oid)
}

async function checkRef({ objects }: Parcel, incoming: Incoming, { leaf, id }: ManifestRef): Promise<void> {
  const { checkpoints, manifest } = incoming
  const checkpoint = checkpoints.get(id)
  const said = `${leaf} names checkpoint ${id}`
  if (!checkpoint) throw wrong(`${said}, which did not come along`)
  if (leaf !== 'boundary') return
  if (!checkpoint.record) throw wrong(`${said}, which has no record`)
  const record = parseRecord(await objects.get(checkpoint.record, 'blob'))
  if (record.session !== checkpoint.session) throw wrong(`${said}, which has the record of another session`)
  if (!checkpoints.has(record.baseline)) throw wrong(`${said}, whose baseline did not come along`)
  const isLive = (one: ManifestRef) => one.leaf === 'live' && checkpoints.get(one.id)?.session === record.session
  const lost = lostTurn(record, turnsBegun(checkpoints, manifest.refs.find(isLive)?.id))
  if (lost !== null) throw wrong(`${said}, which hides turn ${lost}, and that is not in its session's live chain`)
}

function checkParent({ checkpoints, manifest }: Incoming, { id, seq }: Checkpoint, parent: Oid): void {
  const one = checkpoints.get(parent)
  if (!one && !manifest.cut.includes(id)) throw wrong(`the parent of checkpoint ${id} did not come along`)
  if (one && one.seq >= seq) throw wrong(`checkpoint ${id} does not come after its parent`)
}

/**
 * We count on from what came, and never come near the end of the safe integers (2^53) from here: a checkpoint a
 * millisecond for thirty years. Turns and steps have a digit less than what can be asked for by number: see parseTarget.
 */
const HIGHEST = { seq: 2 ** 40, turn: 99_999_999, step: 99_999_999 } as const

function checkNumbers(checkpoint: Checkpoint): void {
  for (const name of ['seq', 'turn', 'step'] as const)
    if ((checkpoint[name] ?? 0) > HIGHEST[name])
      throw wrong(`checkpoint ${checkpoint.id} says it is ${name} ${checkpoint[name]}`)
}

function isSession(text: string): boolean {
  try {
    parseSessionId(text)
    return true
  } catch {
    return false
  }
}

/** A name that stays in its directory. */
const isName = (name: string) => name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)
/** A name that may be written: never git's own directory. */
const isPart = (name: string) => isName(name) && !/^\.git$/i.test(name)

function checkPath(path: unknown, fits: (name: string) => boolean): void {
  if (typeof path !== 'string' || !barePath(path).split('/').every(fits))
    throw wrong(`it names the path ${JSON.stringify(path)}`)
}

/** No name in it leads out of a worktree or into a git directory. */
async function checkTree(parcel: Parcel, tree: Oid, seen: Set<Oid>): Promise<void> {
  if (seen.has(tree)) return
  seen.add(tree)
  const names = new Set<string>()
  for (const { mode, name, oid } of parseTree(await parcel.objects.get(tree, 'tree'), parcel.objects.oidBytes)) {
    if (!isPart(name) || names.has(name) || mode === '160000') throw wrong(`it names the path ${JSON.stringify(name)}`)
    names.add(name)
    if (mode === '40000') await checkTree(parcel, oid, seen)
  }
}
