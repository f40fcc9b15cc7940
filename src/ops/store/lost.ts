/** Objects that a ref reaches and the store lacks, or holds damaged, and what they are of: git's own walk ends at the first. */
import type { Checkpoint } from '../../core/checkpoint.ts'
import { unlessDamaged } from '../../core/errors.ts'
import type { Oid } from '../../core/ids.ts'
import { barePath, printable, type RelativePath, shown } from '../../core/paths.ts'
import { readCheckpoint } from '../../git/history.ts'
import { oidOfFanned, promptsTree, recordedObjects } from '../../git/side-refs.ts'
import type { Store } from '../../git/store.ts'
import type { Context } from '../worktree/context.ts'

export interface Lost {
  oid: Oid
  /** `is missing`, `cannot be read`, … */
  said: string
  /** What it is of: the first checkpoint that needs it. */
  of: LostPart
}

export type LostPart =
  /** `path`: a file, or a directory with a slash behind it; empty: all files. */
  | { kind: 'files'; path: string; checkpoint: Checkpoint }
  /** Modes, empty directories, what is left out. */
  | { kind: 'beside'; checkpoint: Checkpoint }
  /** What an undo was. */
  | { kind: 'record'; checkpoint: Checkpoint }
  | { kind: 'prompt'; ref: string; before: Oid; checkpoint: Checkpoint | null }
  /** What serves the timeline, or a scan, and can be made anew. */
  | { kind: 'other'; ref: string | null }

/** `damaged`: what reading has found, with what is to be said of it; of that only what is needed is told. */
export async function findLost({ store }: Context, damaged: ReadonlyMap<Oid, string>): Promise<Lost[]> {
  const refs = await store.refs('refs/ckpt/', 'refs/notes/ckpt/')
  const checkpoints = await readCheckpoints(store, refs)
  const notes = await Promise.all(
    refs
      .filter(({ ref }) => ref.startsWith('refs/notes/'))
      .map(async ({ ref, oid }) => ({ ref, tree: await unlessDamaged(() => promptsTree(store, oid), null) })),
  )
  const others = refs.filter(({ type }) => type === 'tree')
  const walk = new Walk(store)
  for (const { tree, beside, record } of checkpoints.values()) {
    await walk.add(tree)
    walk.named.add(beside)
    if (!record) continue
    walk.named.add(record)
    for (const oid of await recordedObjects(store, record)) walk.named.add(oid)
  }
  for (const { tree } of notes) if (tree) await walk.add(tree)
  for (const { oid } of others) await walk.add(oid)
  const bad = new Map([...(await missing(store, walk.named)), ...walk.bad])
  for (const [oid, said] of damaged) if (walk.named.has(oid) || walk.seen.has(oid)) bad.set(oid, said)

  const found = new Map<Oid, Lost>()
  const tell = (oid: Oid, of: LostPart) => {
    const said = bad.get(oid)
    if (said !== undefined && !found.has(oid)) found.set(oid, { oid, said, of })
  }
  for (const checkpoint of checkpoints.values()) {
    for (const { path, oid } of await walk.below(checkpoint.tree, bad)) tell(oid, { kind: 'files', path, checkpoint })
    tell(checkpoint.beside, { kind: 'beside', checkpoint })
    if (!checkpoint.record) continue
    tell(checkpoint.record, { kind: 'record', checkpoint })
    for (const oid of await recordedObjects(store, checkpoint.record)) tell(oid, { kind: 'record', checkpoint })
  }
  for (const { ref, tree } of notes) {
    for (const { path, oid } of tree ? await walk.below(tree, bad) : []) {
      const before = oidOfFanned(path)
      tell(oid, { kind: 'prompt', ref, before, checkpoint: checkpoints.get(before) ?? null })
    }
  }
  for (const { ref, oid: top } of others)
    for (const { oid } of await walk.below(top, bad)) tell(oid, { kind: 'other', ref })
  for (const oid of bad.keys()) tell(oid, { kind: 'other', ref: null })
  return [...found.values()]
}

/** `new.txt after turn 1 of session s`. */
export function describeLost({ of }: Lost): string {
  switch (of.kind) {
    case 'files':
      return `${of.path === '' ? 'the list of all files' : shown(of.path)} ${momentOf(of.checkpoint)}`
    case 'beside':
      return `the list of modes and of what is left out ${momentOf(of.checkpoint)}`
    case 'record':
      return `what was undone, ${momentOf(of.checkpoint)}`
    case 'prompt':
      return of.checkpoint?.turn === undefined ? 'a prompt' : `the prompt of turn ${turnOf(of.checkpoint)}`
    case 'other':
      return of.ref === null ? 'something else' : `a part of ${printable(of.ref)}`
  }
}

/** Files and directories that somebody could forget, so that the rest is whole. */
export function lostPaths(lost: readonly Lost[]): RelativePath[] {
  const paths = lost.flatMap(({ of }) => (of.kind === 'files' && of.path !== '' ? [barePath(of.path)] : []))
  return [...new Set(paths)] as RelativePath[]
}

function momentOf(checkpoint: Checkpoint): string {
  if (checkpoint.turn === undefined) return `in checkpoint ${checkpoint.id.slice(0, 10)}`
  const when = checkpoint.kind === 'before' ? 'before' : checkpoint.kind === 'after' ? 'after' : 'in'
  return `${when} turn ${turnOf(checkpoint)}`
}

const turnOf = ({ turn, session }: Checkpoint) => `${turn} of session ${printable(session)}`

/** Every checkpoint that a ref reaches, oldest first. What ends a chain too early is for others to tell. */
async function readCheckpoints(store: Store, refs: Awaited<ReturnType<Store['refs']>>): Promise<Map<Oid, Checkpoint>> {
  const found = new Map<Oid, Checkpoint>()
  for (const { ref, oid, type } of refs) {
    if (type !== 'commit' || ref.startsWith('refs/notes/')) continue
    for (let id: Oid | undefined = oid; id !== undefined && !found.has(id); ) {
      const at: Oid = id
      const checkpoint = await unlessDamaged(() => readCheckpoint(store, at), null)
      if (checkpoint === null) break
      found.set(at, checkpoint)
      id = checkpoint.parents[0]
    }
  }
  return new Map([...found].sort(([, a], [, b]) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.seq - b.seq)))
}

/** Those that the store does not have at all. */
async function missing(store: Store, oids: ReadonlySet<Oid>): Promise<Map<Oid, string>> {
  if (oids.size === 0) return new Map()
  const out = await store.git(['cat-file', '--batch-check', '--buffer'], { input: `${[...oids].join('\n')}\n` })
  const rows = out.toString('latin1').split('\n')
  return new Map(rows.filter((row) => row.endsWith(' missing')).map((row) => [row.split(' ')[0] as Oid, 'is missing']))
}

/** Trees, each looked at once. */
class Walk {
  readonly #store: Store
  readonly seen = new Set<Oid>()
  /** Of trees that cannot be walked. */
  readonly bad = new Map<Oid, string>()
  /** Objects that are not walked: files, and what lies beside. */
  readonly named = new Set<Oid>()
  readonly #below = new Map<Oid, readonly { path: string; oid: Oid }[]>()

  constructor(store: Store) {
    this.#store = store
  }

  async add(tree: Oid): Promise<void> {
    if (this.seen.has(tree)) return
    this.seen.add(tree)
    const entries = await unlessDamaged(() => this.#store.trees.entries(tree), null)
    if (entries === null) {
      const gone = (await unlessDamaged(() => this.#store.objects.read(tree), undefined)) === null
      this.bad.set(tree, gone ? 'is missing' : 'cannot be read')
      return
    }
    for (const { mode, oid } of entries.values()) {
      if (mode === '40000') await this.add(oid)
      else this.named.add(oid)
    }
  }

  /** What is bad in a tree, by path; the tree itself has none. */
  async below(tree: Oid, bad: ReadonlyMap<Oid, string>): Promise<readonly { path: string; oid: Oid }[]> {
    const known = this.#below.get(tree)
    if (known) return known
    const found: { path: string; oid: Oid }[] = bad.has(tree) ? [{ path: '', oid: tree }] : []
    const entries = this.bad.has(tree) ? [] : (await this.#store.trees.entries(tree)).values()
    for (const { name, mode, oid } of entries) {
      if (mode !== '40000') {
        if (bad.has(oid)) found.push({ path: name, oid })
      } else for (const one of await this.below(oid, bad)) found.push({ path: `${name}/${one.path}`, oid: one.oid })
    }
    this.#below.set(tree, found)
    return found
  }
}
