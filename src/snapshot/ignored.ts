/** Which names an ignore rule leaves out: git-check-ignore(1). */
import { MovedMeanwhile } from '../core/errors.ts'
import { directoryKey, type RelativePath, splitNul } from '../core/paths.ts'
import { gitFailure } from '../git/failure.ts'
import { LineProcess } from '../git/line-process.ts'
import { type GitCall, tryGit } from '../git/process.ts'
import type { SnapshotCache } from './cache.ts'
import { SPELLING } from './listing.ts'
import type { Scan } from './scan.ts'

/** More names than these at once, and a process of their own is no loss. */
const MOST_KEPT = 1000
/** Fields that git gives for each name, with `--verbose`: the file of the rule, its line, the pattern, the name. */
const FIELDS = 4
/**
 * A name at the root, after which git knows no rules but the root's and those outside: another directory may come in the
 * place of one whose rules it has read.
 */
const FORGET = Buffer.from('./-\0')

export interface Asked {
  names: ReadonlyMap<RelativePath, 'file' | 'directory'>
  /** What the rules are by the watcher's word: a git that stays knows them from the questions before. Null: nobody's word. */
  rules: string | null
}

/** The rules by which a listing was made. */
export const rulesOf = ({ listing }: Pick<SnapshotCache, 'listing'>): string => `${listing.outside} ${listing.rules}`

/** Which of these names a rule ignores, directories with a slash at the end. Null: the signal came first. */
export async function askIgnored(
  scan: Scan,
  { names, rules }: Asked,
  signal: AbortSignal,
): Promise<Set<RelativePath> | null> {
  if (names.size === 0) return new Set()
  if (signal.aborted) return null
  const isKept = rules !== null && names.size <= MOST_KEPT
  const known = isKept ? await askKept(scan, { names, rules }, signal) : null
  if (signal.aborted) return null
  const answer = known ?? (await askOnce(scan, names, signal))
  if (answer === null) return null
  const found = new Set<RelativePath>()
  for (const path of answer) found.add(names.get(path) === 'directory' ? directoryKey(path) : path)
  // The configuration's own patterns are not in any file that git reads.
  if (scan.limits.exclude.length > 0) {
    const { excluder } = await import('./worktree.ts')
    const excluded = excluder(scan.limits)
    for (const [path, kind] of names) if (excluded(path)) found.add(kind === 'directory' ? directoryKey(path) : path)
  }
  return found
}

function callFor({ worktree, store }: Scan, ...more: string[]): GitCall {
  const { root, repository } = worktree
  // Names are taken as pathspecs, and literal ones are not supported here: `./` keeps a leading colon from meaning anything.
  const vars = { GIT_LITERAL_PATHSPECS: '0', ...(repository ? {} : { ...store.vars, GIT_WORK_TREE: root }) }
  return { args: ['check-ignore', '--no-index', '-z', '--stdin', ...more], cwd: root, vars, config: SPELLING }
}

/** git does not say whether what is not in the worktree is ignored. */
const BEHIND_LINK = /is beyond a symbolic link/

/** Without a slash at the end: with one, git takes the rules inside a directory for rules on the directory itself. */
const question = (names: Asked['names']) =>
  Buffer.from([...names.keys()].map((path) => `./${path}\0`).join(''), 'latin1')

async function askOnce(scan: Scan, names: Asked['names'], signal: AbortSignal): Promise<RelativePath[] | null> {
  const call = callFor(scan)
  const result = await tryGit(scan.env, { ...call, input: question(names), signal })
  if (signal.aborted) return null
  if (BEHIND_LINK.test(result.stderr)) throw new MovedMeanwhile('A directory became a link.')
  if (result.code > 1) throw gitFailure(call.args, result) // 1: none of them is ignored
  return splitNul(result.stdout).map((answer) => answer.slice(2) as RelativePath)
}

/** Null: it did not answer, and one that is started for the question is asked. */
async function askKept(
  scan: Scan,
  { names, rules }: Asked & { rules: string },
  signal: AbortSignal,
): Promise<RelativePath[] | null> {
  const start = () => new LineProcess(scan.env, callFor(scan, '--verbose', '--non-matching'), '\0')
  const kept = scan.rules?.of(rules, start)
  if (!kept) return null
  const late = new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }))
  const asked = Buffer.concat([question(names), FORGET])
  const asking = kept.ask(asked, (names.size + 1) * FIELDS).catch(() => null)
  const fields = await Promise.race([asking, late])
  if (fields === null) return null
  return [...names.keys()].filter((_, i) => {
    const pattern = fields[i * FIELDS + 2]!
    return pattern !== '' && !pattern.startsWith('!') // one that takes it out of another rule
  })
}
