/** Doctor, what checkpoints hold: objects that the store lacks or holds damaged, and where they can be had again. */
import { quotedName } from '../../core/hint-words.ts'
import type { Oid } from '../../core/ids.ts'
import type { PathState } from '../../core/state.ts'
import { errno, statIfThere } from '../../env.ts'
import type { RefEdit } from '../../git/refs.ts'
import { withoutPrompts } from '../../git/side-refs.ts'
import { takeSnapshot } from '../record/record.ts'
import { describeLost, findLost, type Lost, type LostPart, lostPaths } from '../store/lost.ts'
import { diskHolds, inRepository, mendObjects, rewriteSpilled } from '../store/mend-objects.ts'
import { damagedObjects, readLoose } from '../store/verify-objects.ts'
import type { Context } from '../worktree/context.ts'
import { readRefs } from '../worktree/sessions.ts'
import { FIX, type Finding } from './finding.ts'
import { alone } from './timeline.ts'

/** Everything that a ref reaches is there, and no loose object is damaged; packs are looked at before. */
export async function checkObjects(context: Context, fix: boolean, rewritten: readonly Oid[] = []): Promise<Finding> {
  const before = await readObjects(context)
  const said = rewritten.map((oid) => `${oid}, whose file held more than it, was written again`)
  if (before.lost.length + before.idle.length + before.spilled.length === 0) {
    if (said.length > 0) return { name: 'objects', ok: true, fixed: true, detail: listed(said) }
    return { name: 'objects', ok: true, detail: 'each that a checkpoint needs is whole' }
  }
  if (!fix) return damage(before, (await canBeMended(context, before)) ? FIX : remedy(before.lost))
  said.push(...(await alone(context, () => mend(context, before))))
  let after = await readObjects(context)
  if (after.lost.length === 0 && after.idle.length > 0) {
    // What was done without is needed no more, and damaged still.
    const { idle } = after
    said.push(...(await alone(context, () => mend(context, { lost: [], idle, spilled: [] }))))
    after = await readObjects(context)
  }
  if (after.lost.length + after.idle.length > 0) return damage(after, remedy(after.lost))
  return { name: 'objects', ok: true, fixed: true, detail: listed(said) }
}

/** Before anything is decided on what git takes. */
export async function mendSpilled(context: Context): Promise<Oid[]> {
  try {
    return readLoose(context).spilled.size > 0 ? await alone(context, () => rewriteSpilled(context)) : []
  } catch (error) {
    if (errno(error) === 'EACCES') return [] // another user's, which is told by who needs it
    throw error
  }
}

interface Damage {
  lost: Lost[]
  /** Loose objects that are damaged and that nothing rests on. */
  idle: Oid[]
  /** Those that are there, in files that hold more. */
  spilled: Oid[]
}

async function readObjects(context: Context): Promise<Damage> {
  const { env, store } = context
  store.objects.forget()
  store.trees.forget()
  const { damaged: loose, spilled } = readLoose(context)
  const { code } = await store.tryGit(['rev-list', '--objects', '--quiet', '--all'])
  if (code === 0 && loose.size === 0) return { lost: [], idle: [], spilled: [] }
  // What a pack has too can be read all the same.
  const lost = await findLost(context, await damagedObjects(env, store, [...loose.keys()]))
  const needed = new Set(oidsOf(lost))
  const others = [...loose.keys()].filter((oid) => !needed.has(oid))
  return { lost, idle: others.filter((oid) => !spilled.has(oid)), spilled: others.filter((oid) => spilled.has(oid)) }
}

function damage({ lost, idle, spilled }: Damage, mend: string): Finding {
  const said = [
    ...lost.map((one) => `${describeLost(one)} ${one.said}`),
    ...idle.map((oid) => `${oid}, which nothing needs, is damaged`),
    ...spilled.map((oid) => `the file of ${oid} holds more than it`),
  ]
  return { name: 'objects', ok: false, detail: listed(said), mend }
}

const MOST = 8

const listed = (said: readonly string[]): string =>
  said.length > MOST ? `${said.slice(0, MOST).join('; ')}; and ${said.length - MOST} more` : said.join('; ')

const oidsOf = (lost: readonly Lost[]): Oid[] => lost.map(({ oid }) => oid)

const isTree = ({ of }: Lost) => of.kind === 'files' && /^$|\/$/.test(of.path)

/** A tree may be made again of what is on disk, which only a snapshot tells; prompts can be done without. */
async function canBeMended(context: Context, { lost, idle, spilled }: Damage): Promise<boolean> {
  if (
    idle.length + spilled.length > 0 ||
    lost.some((one) => isTree(one) || one.of.kind === 'prompt' || one.of.kind === 'other')
  )
    return true
  for await (const _ of inRepository(context, oidsOf(lost))) return true
  return statesOf(context, lost).length > 0
}

function statesOf(context: Context, lost: readonly Lost[]): [string, PathState][] {
  return lost.flatMap(({ oid, of }): [string, PathState][] => {
    const state = of.kind === 'files' && of.path !== '' ? diskHolds(context, of.path, oid) : null
    return of.kind === 'files' && state ? [[of.path, state]] : []
  })
}

/** One sentence for each. The caller holds the worktree's lock. */
async function mend(context: Context, { lost, idle }: Damage): Promise<string[]> {
  const { env, store, place } = context
  await mendObjects(context, new Set(oidsOf(lost)), statesOf(context, lost))
  if (lost.some(isTree)) await takeSnapshot(context, readRefs(context), { anew: true, publish: false })
  await store.objects.syncFresh()
  const left = new Set(oidsOf((await readObjects(context)).lost))
  const said = lost.flatMap((one) => (left.has(one.oid) ? [] : [`${describeLost(one)} was written again`]))
  for (const oid of idle) {
    const path = store.objects.loosePath(oid)
    if (statIfThere(env.files, path)?.size === 0) {
      env.files.unlinkSync(path)
      said.push(`${oid}, which nothing needs, was empty, and went`)
      continue
    }
    const aside = `${place.directory}/object.damaged-${oid.slice(0, 10)}`
    env.files.renameSync(path, aside)
    said.push(`${oid}, which nothing needs, is ${aside} now`)
  }
  const without = lost.filter(({ oid, of }) => left.has(oid) && (of.kind === 'prompt' || isOfScan(of)))
  const edits: RefEdit[] = []
  for (const { ref, oid } of await store.refs('refs/ckpt/', 'refs/notes/ckpt/')) {
    const parts = without.flatMap(({ of }) => ('ref' in of && of.ref === ref ? [of] : []))
    const befores = parts.flatMap((of) => (of.kind === 'prompt' ? [of.before] : []))
    if (befores.length > 0) edits.push({ ref, from: oid, to: await withoutPrompts(store, oid, befores) })
    else if (parts.length > 0) edits.push({ ref, from: oid, to: null }) // the next scan makes another
  }
  await store.moveRefs(edits, { durable: true })
  store.announce()
  return [...said, ...without.map((one) => `${describeLost(one)} is nowhere, and is done without`)]
}

const isOfScan = (of: LostPart): boolean => of.kind === 'other' && of.ref?.endsWith('/@scan') === true

/** What is nowhere. */
function remedy(lost: readonly Lost[]): string {
  const paths = lostPaths(lost)
  if (paths.length === 0) return 'the turns that need it cannot be undone or restored; ckpt prune lets them go in time'
  const forget = paths.slice(0, 3).map((path) => `ckpt forget ${quotedName(path)}`)
  return `put the store back from a backup, or let go of what was recorded there: ${forget.join('; ')}${paths.length > 3 ? '; …' : ''}`
}
