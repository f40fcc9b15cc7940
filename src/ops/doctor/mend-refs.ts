/** Refs of this worktree that were cut short, lost or name what is not there, and what they are set to: where they were last moved to, or the newest that the store's objects tell of. */
import { parseRecord } from '../../core/boundary.ts'
import type { Checkpoint } from '../../core/checkpoint.ts'
import { unlessDamaged } from '../../core/errors.ts'
import { isOid, type Oid, type SessionId } from '../../core/ids.ts'
import { printable } from '../../core/paths.ts'
import { errno } from '../../env.ts'
import { gitFailure } from '../../git/failure.ts'
import { abandonedName, isRefOf, metaRef, readCheckpoint, sessionRef } from '../../git/history.ts'
import { refuseUnreadable } from '../../git/refs.ts'
import { fanout, metaTree, oidOfFanned, promptsTree } from '../../git/side-refs.ts'
import type { Store } from '../../git/store.ts'
import { resetTips } from '../../git/tips.ts'
import { syncDirectory, syncOpen } from '../../git/whole-file.ts'
import { comesFromSafety, type Known, reachable, readKnown } from '../store/known.ts'
import { believable, type Strayed, strayedRefs, unledSessions } from '../store/strayed.ts'
import type { Context } from '../worktree/context.ts'

interface Refs {
  /** Those that can be read, of every worktree. */
  whole: Map<string, Oid>
  /** Those of this worktree that cannot. */
  broken: string[]
  /** Those of this worktree that somebody else moved or removed. */
  strayed: Strayed[]
  /** Nothing says where this worktree's refs were last moved to. */
  unwritten: boolean
  /** With that, sessions of it to which no ref leads. */
  unled: SessionId[]
}

export async function readAnyRefs(context: Context): Promise<Refs> {
  const { env, store, place } = context
  // Without the objects' types, a ref whose object is missing is listed too.
  const args = ['for-each-ref', '--format=%(refname) %(objectname)']
  const result = await store.tryGit(args)
  if (result.code !== 0) throw gitFailure(args, result, { store: true })
  const broken = [...result.stderr.matchAll(/ignoring (?:broken|dangling) \S*?\s*(refs\/\S+)/g)].map(
    (match) => match[1]!,
  )
  refuseUnreadable(env, store.gitDir, broken)
  const own = (ref: string) => ref.startsWith(store.refPrefix) || ref === store.notesRef
  const whole = new Map<string, Oid>()
  for (const row of result.stdout.toString('utf8').split('\n')) {
    const [ref, oid] = row.split(' ')
    if (!ref || !oid || !isOid(oid)) continue
    if (await isWhole(store, ref, oid)) whole.set(ref, oid)
    else {
      refuseUnreadable(env, store.gitDir, [`objects/${fanout(oid)}`])
      broken.push(ref)
    }
  }
  const now = new Map([...whole].filter(([ref]) => own(ref)))
  const tips = believable(context, place.worktreeId)
  const strayed = tips ? await strayedRefs(context, tips, now) : []
  const unled = tips ? [] : await unledSessions(context, place.worktreeId, whole)
  return {
    whole,
    broken: broken.filter(own).sort(),
    strayed: strayed.filter(({ ref }) => !broken.includes(ref)),
    unwritten: tips === null && now.size + unled.length > 0,
    unled,
  }
}

/** What it names is there, and of its kind; of a tree of rows that only we read, all of it; of a boundary, what was undone. */
function isWhole(store: Store, ref: string, oid: Oid): Promise<boolean> {
  return unlessDamaged(async () => {
    const there = await store.objects.read(oid)
    if (there === null) return false
    if (ref.endsWith('/@scan')) return true
    if (ref.endsWith('/@meta')) await store.trees.files(oid)
    else if (ref.startsWith('refs/notes/')) await store.trees.files(await promptsTree(store, oid))
    else if (there.type !== 'commit') return false
    else if (ref.endsWith('/boundary')) {
      const { record, session } = await readCheckpoint(store, oid)
      if (!record || !isRefOf(session, ref)) return false
      parseRecord(await store.objects.get(record, 'blob'))
    } else {
      // One that we cannot read may be a later ckpt's.
      const checkpoint = await unlessDamaged(() => readCheckpoint(store, oid), null)
      return checkpoint === null || isRefOf(checkpoint.session, ref)
    }
    return true
  }, false)
}

/** A file of the store that git cannot read, and reads no ref for; what it said is told elsewhere too. */
export async function unreadableFile(store: Store): Promise<'packed-refs' | 'shallow' | null> {
  const { code, stderr } = await store.tryGit(['for-each-ref', '--format=%(contents)']) // not just one: it may be no commit
  if (code === 0) return null
  return stderr.includes('/packed-refs') ? 'packed-refs' : stderr.includes('shallow line') ? 'shallow' : null
}

/** Moves it out of the way. The caller holds the worktree's lock. */
export function setFileAside({ env, place, store }: Context, name: string): string {
  const aside = `${place.directory}/${name}.damaged-${env.random(4)}`
  env.files.renameSync(`${store.gitDir}/${name}`, aside)
  store.announce() // whoever keeps refs in memory reads them again
  return aside
}

/**
 * Sets each ref right, or sets its file aside where nothing is left of what it named; what a branch lost is kept as an
 * abandoned one. Returns one sentence for each. The caller holds the worktree's lock.
 */
export async function mendRefs(
  context: Context,
  { whole, broken, strayed, unwritten, unled }: Refs,
): Promise<string[]> {
  const { env, place, store } = context
  const known = await readKnown(context, whole)
  const tips = believable(context, place.worktreeId)
  const said: string[] = []
  const left = strayed.flatMap(({ lost }) => lost ?? [])
  const gone = [
    ...strayed.flatMap(({ ref, lost }) => (lost ? [] : [ref])),
    ...unled.map((session) => sessionRef(store, session, 'live')),
    ...(unled.length === 0
      ? []
      : [...(known.prompts.length > 0 ? [store.notesRef] : []), metaRef(store)].filter((ref) => !whole.has(ref))),
  ]
  // A session's live branch first: what it reaches is not taken for an abandoned branch.
  const order = (ref: string) => (ref.endsWith('/live') ? 0 : ref.endsWith('/@meta') ? 2 : 1)
  for (const ref of [...broken, ...gone].sort((a, b) => order(a) - order(b))) {
    const now = whole.get(ref) ?? null
    const to = (await writtenDown(context, ref)) ?? now ?? (await bestFor(context, known, ref))
    if (to === null) {
      const aside = await setAside(context, ref)
      said.push(`${printable(ref)} names nothing that is left${aside === null ? '' : `: its file is ${aside} now`}`)
      continue
    }
    if (now !== null && now !== to) left.push(now)
    writeRef(context, ref, to)
    known.whole.set(ref, to)
    const checkpoint = known.checkpoints.get(to)
    const turn = checkpoint?.turn === undefined ? '' : `, turn ${checkpoint.turn}`
    const last = [...(tips?.refs.get(ref) ?? [])].filter((one) => one !== null)
    const lost =
      checkpoint && last.length > 0 && !last.includes(to) ? ', the newest that is left: what came after it is lost' : ''
    said.push(
      `${printable(ref)} is set to ${checkpoint ? `checkpoint ${to.slice(0, 10)}${turn}${lost}` : to.slice(0, 10)}`,
    )
  }
  for (const id of left) {
    const checkpoint = known.checkpoints.get(id)
    if (!checkpoint || comesFromSafety(known, checkpoint) || reachable(known, branches(known)).has(id)) continue
    const name = abandonedName(checkpoint.seq, new Date(env.now()).toISOString())
    const ref = sessionRef(store, checkpoint.session, name)
    writeRef(context, ref, id)
    known.whole.set(ref, id)
    said.push(
      `what ended at checkpoint ${id.slice(0, 10)} is an abandoned branch now: it goes once prune.grace is over`,
    )
  }
  resetTips(
    env,
    { directory: place.directory, worktree: place.worktreeId },
    [...known.whole].map(([ref, oid]) => ({ ref, oid })),
  )
  await store.moveRefs([]) // whoever keeps refs in memory reads them again
  return said.length === 0 && unwritten ? ['the refs are believed as they are'] : said
}

/** Where it was last moved to, as was written down beside the refs; null where that is not known for sure. */
async function writtenDown(context: Context, ref: string): Promise<Oid | null> {
  const { place, store } = context
  const values = [...(believable(context, place.worktreeId)?.refs.get(ref) ?? [])]
  const only = values.length === 1 ? values[0]! : null
  return only && (await isWhole(store, ref, only)) ? only : null
}

async function bestFor(context: Context, known: Known, ref: string): Promise<Oid | null> {
  const { store } = context
  if (ref.endsWith('/@scan')) return null // the next scan makes another
  const foreign = reachable(
    known,
    tipsOf(known, (other) => !other.startsWith(store.refPrefix)),
  )
  const own = [...known.checkpoints.values()].filter((one) => !foreign.has(one.id))
  if (ref === store.notesRef) return bestPrompts(context, known, new Set(own.map((one) => one.id)))
  if (ref.endsWith('/@meta')) return metaOf(context, known)
  const leaf = ref.slice(ref.indexOf('/', store.refPrefix.length) + 1)
  const ours = own.filter((one) => sessionRef(store, one.session, leaf) === ref).sort((a, b) => b.seq - a.seq)
  if (leaf === 'live') return liveOf(known, ref, ours)
  if (leaf === 'boundary') return boundaryOf(context, known, { ref, ours })
  // A safety checkpoint holds the branch that it was made on: only branches count.
  const held = reachable(known, branches(known))
  if (leaf.startsWith('abandoned/'))
    return ours.find((one) => !held.has(one.id) && !comesFromSafety(known, one))?.id ?? null
  // `safety/N` and `late/N`: N is the place of the first checkpoint that was made with it.
  const place = Number(leaf.slice(leaf.indexOf('/') + 1))
  return (
    ours.find((one) => one.seq === place + 1 && one.result)?.id ?? ours.find((one) => one.seq === place)?.id ?? null
  )
}

const tipsOf = ({ whole }: Known, wanted: (ref: string) => boolean): Oid[] =>
  [...whole].filter(([ref]) => wanted(ref)).map(([, oid]) => oid)

const branches = (known: Known): Oid[] => tipsOf(known, (ref) => /\/(live|abandoned\/[^/]+)$/.test(ref))

/** `ours` newest first. What came before the session went on from there is pending no more. */
async function boundaryOf(
  { store }: Context,
  known: Known,
  { ref, ours }: { ref: string; ours: readonly Checkpoint[] },
): Promise<Oid | null> {
  const live = known.whole.get(ref.replace(/boundary$/, 'live'))
  const since = (live && known.checkpoints.get(live)?.seq) ?? 0
  for (const one of ours)
    if (one.kind === 'safety' && one.record && one.seq > since && (await isWhole(store, ref, one.id))) return one.id
  return null
}

/** `ours` newest first. */
function liveOf(known: Known, ref: string, ours: readonly Checkpoint[]): Oid | null {
  const turns = ours.filter((one) => !comesFromSafety(known, one))
  const abandoned = reachable(
    known,
    tipsOf(known, (other) => other.startsWith(ref.replace(/live$/, 'abandoned/'))),
  )
  const free = turns.find((one) => !abandoned.has(one.id))
  const undone = ours.find((one) => one.hidden !== undefined)
  // Nothing came after what was abandoned: the branch ends where the last undo went back to.
  const kept = undone && turns.find((one) => (one.turn ?? 0) < undone.turn!)
  if (free && (!kept || free.seq > kept.seq)) return free.id
  return (kept ?? turns[0])?.id ?? null
}

async function bestPrompts({ store }: Context, { prompts }: Known, own: ReadonlySet<Oid>): Promise<Oid | null> {
  let best: { oid: Oid; count: number } | null = null
  for (const oid of prompts) {
    if (!(await isWhole(store, store.notesRef, oid))) continue
    const entries = [...(await store.trees.files(await promptsTree(store, oid))).keys()]
    const count = entries.filter((path) => own.has(oidOfFanned(path))).length
    if (count > (best?.count ?? 0)) best = { oid, count }
  }
  return best?.oid ?? null
}

/** All that lies beside this worktree's checkpoints. */
async function metaOf({ store }: Context, known: Known): Promise<Oid> {
  const tips = tipsOf(known, (ref) => ref.startsWith(store.refPrefix))
  const checkpoints = [...reachable(known, tips)].flatMap((id) => known.checkpoints.get(id) ?? [])
  // Its directories anew: one that is there may be the damaged one.
  return store.objects.distrusting(() => metaTree(store, checkpoints))
}

/** In git's own way (lock file, rename): `git update-ref` refuses a ref that it cannot read. */
function writeRef({ env, store }: Context, ref: string, oid: Oid): void {
  const path = `${store.gitDir}/${ref}`
  const directory = path.slice(0, path.lastIndexOf('/'))
  env.files.mkdirSync(directory, { recursive: true, mode: 0o700 })
  const fd = env.files.openSync(`${path}.lock`, 'wx', 0o600)
  try {
    env.files.writeFileSync(fd, `${oid}\n`)
    syncOpen(env, fd)
  } finally {
    env.files.closeSync(fd)
  }
  env.files.renameSync(`${path}.lock`, path)
  syncDirectory(env, directory)
}

/** Null: it has no file of its own. */
async function setAside({ env, store }: Context, ref: string): Promise<string | null> {
  const aside = `${store.worktreeDir}/ref.damaged-${env.random(4)}`
  try {
    env.files.renameSync(`${store.gitDir}/${ref}`, aside)
    return aside
  } catch (error) {
    if (errno(error) !== 'ENOENT') throw error
    await store.git(['update-ref', '-d', ref]) // it was packed with others
    return null
  }
}
