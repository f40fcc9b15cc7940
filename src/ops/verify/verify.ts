/** Verify: proves the store and its timeline by reading all of it. Writes nothing. */

import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import { isOfMachine } from '../../git/denied.ts'
import { isLeftOver, unfinishedOperations } from '../recovery/unfinished.ts'
import { steadily, untilQuiet } from '../store/steadily.ts'
import { verifyDurable, verifyLoose, verifyObjects, verifyPacks } from '../store/verify-objects.ts'
import type { Context } from '../worktree/context.ts'
import { readJournal } from '../worktree/journal.ts'
import { refuseAtWork } from '../worktree/lock.ts'
import { unreadReplaced } from '../worktree/replaced.ts'
import type { CommitCoverage } from './commits.ts'
import { type TimelineResult, verifyBoundaries, verifyChains, verifyTips } from './timeline.ts'

interface Check {
  name: string
  ok: boolean
  detail: string
}

export interface VerifyOptions {
  /** The files on disk are those of the newest checkpoint. */
  worktree?: boolean
  /** A range of the user's commits: which of them turns account for. */
  ref?: string
  /** Of `ref`: one that no turn accounts for is a problem. */
  covered?: boolean
  /** A bundle that `export` made. */
  bundle?: string
}

export interface VerifyResult {
  checks: Check[]
  checkpoints: number
  problems: string[]
  /** Sessions of this worktree with something undone. */
  pending: string[]
  commits: CommitCoverage[] | null
  warnings: string[]
}

const message = (error: unknown) => (error instanceof Error ? error.message : String(error))
const isLocked = (error: unknown) => error instanceof CkptError && error.code === 'LOCKED'
const failed = (why: string) => new CkptError('VERIFY_FAILED', why)

/** @throws CkptError NOT_FOUND, USAGE when `ref` or `bundle` is nothing that can be looked at */
export async function verify(context: Context, options: VerifyOptions = {}): Promise<VerifyResult> {
  const { env, place, warnings } = context
  const { bundle, ref } = options
  if (bundle !== undefined) (await import('../transport/bundle-file.ts')).requireFile(env, bundle)
  const checks: Check[] = []
  const problems: string[] = []
  const told = (one: Check) => {
    checks.push(one)
    if (!one.ok) problems.push(`${one.name}: ${one.detail}`)
  }
  let at = ''
  const check = async (name: string, work: () => Promise<string>, { moves = true } = {}) => {
    at = name
    await env.progress(`verifying: ${name}`)
    const look = () =>
      work().then(
        (detail) => ({ name, ok: true, detail }),
        (error: unknown) => {
          if (isOfMachine(error) || isLocked(error)) throw error
          return { name, ok: false, detail: message(error) }
        },
      )
    told(context.exists && moves ? await steadily(context, look, ({ ok }) => ok) : await look())
  }
  let found: TimelineResult = { checkpoints: new Map(), chains: [], pending: [] }
  const checkStore = async () => {
    await check('unfinished', () => verifyUnfinished(context))
    const unread = await check('objects', async () => `${await verifyObjects(context)} objects read and hashed`).then(
      () => null,
      (error: unknown) => ({ error }),
    )
    await check('loose', async () => `${verifyLoose(context)} loose objects whole`)
    await check('packs', async () => `${verifyPacks(context)} packs whole`)
    // Only now: a damaged one may have asked for more memory than there is, and these tell it without git.
    if (unread) {
      at = 'objects'
      throw unread.error
    }
    const readChains = () => {
      found = { checkpoints: new Map(), chains: [], pending: [] }
      return verifyChains(context, found)
    }
    await check('timeline', async () => {
      await readChains()
      verifyReplaced(context)
      return `${found.checkpoints.size} checkpoints, every chain whole`
    })
    let isAgain = false
    await check('boundary', async () => {
      if (isAgain) await readChains().catch(() => undefined) // there may be more of them
      isAgain = true
      return verifyBoundaries(context, found.checkpoints)
    })
    await check('refs', () => verifyTips(context))
    await check('durable', () => verifyDurable(context))
  }
  let commits: CommitCoverage[] | null = null
  const checkAll = async () => {
    if (context.exists) await checkStore()
    else told({ name: 'store', ok: true, detail: 'nothing was recorded here yet' })
    if (options.worktree) {
      const { verifyWorktree } = await import('./worktree.ts')
      await check('worktree', () => verifyWorktree(context))
    }
    if (ref !== undefined) {
      const { coverCommits } = await import('./commits.ts')
      at = 'commits'
      const covered = await coverCommits(context, ref, found.chains)
      commits = covered
      await check('commits', async () => verifyCovered(covered, options.covered ?? false), { moves: false })
    }
    if (bundle !== undefined) {
      const { verifyBundle } = await import('../transport/transport.ts')
      await check('bundle', () => verifyBundle(context, bundle), { moves: false })
    }
  }
  try {
    await checkAll()
  } catch (error) {
    // That the machine does not let us go on is no verdict; what was found before it is one.
    if (!isOfMachine(error) || problems.length === 0) throw error
    told({ name: at, ok: false, detail: message(error) })
  }
  const pending = found.pending.filter(({ worktree }) => worktree === place.worktreeId).map(({ session }) => session)
  return { checks, checkpoints: found.checkpoints.size, problems, pending, commits, warnings }
}

/** No journal, of this worktree or another, but of who is at work elsewhere. @throws CkptError LOCKED while somebody is here */
async function verifyUnfinished(context: Context): Promise<string> {
  const { env, store } = context
  await untilQuiet(context)
  const journal = readJournal(env, store)
  if (journal) {
    refuseAtWork(env, `${store.worktreeDir}/lock`)
    const { op, session } = journal
    const what = op === 'refs' ? 'an operation' : `the ${op}` // a marker's, or accept's
    const whose = session === '' ? '' : ` of session ${printable(session)}` // import and forget are of several
    throw failed(`${what}${whose} was cut short; the next command that writes finishes it`)
  }
  const others = unfinishedOperations(context).filter(({ context: one }) => isLeftOver(one))
  if (others.length === 0) return 'no operation was cut short'
  const said = others.map(({ context: { place }, removed, missing }) => {
    const name = printable(place.worktreeId)
    if (removed) return `${name}, which was removed, was cut short; ckpt doctor --fix finishes what it recorded`
    if (missing) return `${name}, which is not where git says, was cut short; ckpt doctor tells what helps`
    return `${name} was cut short; the next command that writes there finishes it`
  })
  throw failed(`an operation in worktree ${said.join('; one in worktree ')}`)
}

/** What `forget` wrote of old and new ids can be read. */
function verifyReplaced({ env, store }: Context): void {
  if (unreadReplaced(env, store) > 0) throw failed('the list of ids that `ckpt forget` changed cannot be read')
}

function verifyCovered(commits: readonly CommitCoverage[], strict: boolean): string {
  const open = commits.filter((one) => !one.covered)
  const all = `${commits.length - open.length} of ${commits.length} commits are covered by recorded turns`
  if (!strict || open.length === 0) return all
  throw failed(`${all}; not ${open.map((one) => `${one.id.slice(0, 10)} (${one.why})`).join(', ')}`)
}
