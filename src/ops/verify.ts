/** Verify: proves the store and its timeline by reading all of it. Writes nothing. */
import { parseBeside } from '../core/beside.ts'
import { parseRecord, recordObjects } from '../core/boundary.ts'
import type { Checkpoint } from '../core/checkpoint.ts'
import { CkptError } from '../core/errors.ts'
import type { Oid } from '../core/ids.ts'
import { printable } from '../core/paths.ts'
import { groupRefs, readCheckpoint } from '../git/history.ts'
import type { Context } from './context.ts'
import { readJournal } from './journal.ts'

export interface Check {
  name: string
  ok: boolean
  detail: string
}

export interface VerifyResult {
  checks: Check[]
  checkpoints: number
  problems: string[]
  pending: string[]
  warnings: string[]
}

const message = (error: unknown) => (error instanceof Error ? error.message : String(error))

export async function verify(context: Context): Promise<VerifyResult> {
  const checks: Check[] = []
  const problems: string[] = []
  const check = async (name: string, work: () => Promise<string>) => {
    try {
      checks.push({ name, ok: true, detail: await work() })
    } catch (error) {
      const detail = message(error)
      checks.push({ name, ok: false, detail })
      problems.push(name === 'unfinished' ? `unfinished: ${detail}` : `${name}: ${detail}`)
    }
  }
  const pending: string[] = []
  let checkpoints = 0
  if (!context.exists) {
    checks.push({ name: 'store', ok: true, detail: 'nothing was recorded here yet' })
    return { checks, checkpoints, problems, pending, warnings: context.warnings }
  }
  const { env, store } = context
  await check('unfinished', async () => {
    const journal = readJournal(env, store)
    if (journal)
      throw new CkptError(
        'VERIFY_FAILED',
        `a ${journal.op} of session ${printable(journal.session)} was cut short; the next command that writes finishes it`,
      )
    return 'no operation was cut short'
  })
  await check('objects', async () => `${await verifyObjects(context)} objects read and hashed`)
  await check('packs', async () => `${await verifyPacks(context)} own packs whole`)
  await check('timeline', async () => {
    checkpoints = await verifyTimeline(context, pending)
    return `${checkpoints} checkpoints, every chain whole`
  })
  await check('durable', async () => {
    if (!store.durable)
      throw new CkptError('VERIFY_FAILED', "objects are borrowed from the user's repository: its gc could take them")
    return 'no object is borrowed'
  })
  return { checks, checkpoints, problems, pending, warnings: context.warnings }
}

/** Reads and hashes everything that a ref reaches. */
async function verifyObjects({ store }: Context): Promise<number> {
  const out = await store.git(['rev-list', '--objects', '--no-object-names', '--all'])
  const bad: string[] = []
  let count = 0
  for (const oid of out.toString('latin1').split('\n')) {
    if (oid === '') continue
    count++
    try {
      const found = await store.objects.read(oid as Oid)
      if (!found) bad.push(`${oid} is missing`)
      else if (store.objects.oidOf(found.type as 'blob', found.bytes) !== oid)
        bad.push(`${oid} does not hold what its name says`)
    } catch {
      bad.push(`${oid} cannot be read`) // named; the reader starts again for the next one
    }
  }
  if (bad.length > 0) throw new CkptError('VERIFY_FAILED', bad.slice(0, 20).join(', '))
  return count
}

/** Checksums of packs that are the store's own; linked ones hold more than checkpoints need. */
async function verifyPacks({ env, store }: Context): Promise<number> {
  const directory = `${store.gitDir}/objects/pack`
  const own = env.files
    .readdirSync(directory)
    .filter((name) => name.endsWith('.idx') && env.files.lstatSync(`${directory}/${name}`).nlink === 1)
  for (const name of own) await store.git(['verify-pack', `${directory}/${name}`])
  return own.length
}

/** Every chain from its tip to its root: commits readable, order rising, what lies beside them there. */
async function verifyTimeline({ store }: Context, pending: string[]): Promise<number> {
  const tips = await store.refs('refs/ckpt/')
  const worktrees = new Set(tips.map(({ ref }) => `${ref.split('/').slice(0, 3).join('/')}/`))
  const seen = new Map<Oid, Checkpoint>()
  const besides = new Set<Oid>()
  for (const prefix of worktrees) {
    const refs = groupRefs(
      prefix,
      tips.filter(({ ref }) => ref.startsWith(prefix)),
    )
    const meta = refs.meta
    for (const one of refs.sessions.values()) {
      if (one.boundary) pending.push(one.session)
      const heads = [
        one.live,
        one.boundary,
        ...one.abandoned.map(({ tip }) => tip),
        ...one.others.map(({ tip }) => tip),
      ]
      for (const head of heads) if (head) await walk(head.id)
    }
    for (const oid of besides) {
      if (meta && (await store.trees.lookup(meta, `${oid.slice(0, 2)}/${oid.slice(2)}`))) continue
      throw new CkptError('VERIFY_FAILED', `what lies beside a checkpoint (${oid}) is not kept by ${prefix}@meta`)
    }
    besides.clear()
  }
  return seen.size

  async function walk(tip: Oid): Promise<void> {
    for (let id: Oid | undefined = tip, child: Checkpoint | null = null; id !== undefined; ) {
      if (seen.has(id)) return
      const checkpoint: Checkpoint = await readCheckpoint(store, id)
      if (child && checkpoint.seq >= child.seq)
        throw new CkptError('VERIFY_FAILED', `${child.id} does not come after its parent ${id}`)
      seen.set(id, checkpoint)
      besides.add(checkpoint.beside)
      parseBeside(await store.objects.get(checkpoint.beside, 'blob'))
      if (checkpoint.record) {
        besides.add(checkpoint.record)
        const record = parseRecord(await store.objects.get(checkpoint.record, 'blob'))
        for (const oid of recordObjects(record)) await store.objects.get(oid, 'blob')
      }
      child = checkpoint
      id = checkpoint.parents[0]
    }
  }
}
