import { CkptError, EXIT_CODES, reasonOf } from '../../core/errors.ts'
import { pendingHints } from '../../core/hint-words.ts'
import { printable } from '../../core/paths.ts'
import type { Env } from '../../env.ts'
import { type VerifyResult, verify } from '../../ops/verify/verify.ts'
import { closeContext, openContext } from '../../ops/worktree/context.ts'
import { absolute, flag, text } from '../arguments.ts'
import type { Colors, Command } from '../command.ts'
import { type CiReport, ciReport } from '../present/ci.ts'
import { table } from '../present/text.ts'

function verifyText({ checks, commits }: VerifyResult, colors: Colors): string {
  const rows = checks.map(({ name, ok, detail }) => [
    ok ? colors.green('ok') : colors.red('bad'),
    name,
    printable(detail),
  ])
  if (!commits || commits.length === 0) return table(rows)
  const list = commits.map(({ id, subject, covered, turn, session, why }) => [
    covered ? colors.green('covered') : colors.yellow('not'),
    id.slice(0, 10),
    printable(subject),
    session === null ? why : `turn ${turn} of ${printable(session)}: ${why}`,
  ])
  return `${table(rows)}\n\n${table(list)}`
}

/** What to run of a check that the store is not to blame for, beside `commits`. */
const NEXT: Readonly<Record<string, string>> = {
  worktree: 'ckpt snapshot   (records it as it is now)',
  bundle: 'ckpt export FILE   (makes it anew, on the machine it came from)',
}
const DOCTOR = 'ckpt doctor   (what can be mended, and how)'

function hintsFor({ checks, commits }: VerifyResult): string[] {
  const open = commits?.find(({ covered }) => !covered)?.id.slice(0, 10)
  const next = (name: string) =>
    name === 'commits' && open ? `git show ${open}   (what no recorded turn accounts for)` : (NEXT[name] ?? DOCTOR)
  return [...new Set(checks.filter(({ ok }) => !ok).map(({ name }) => next(name)))]
}

/** Null: it is written. */
function appendSummary(env: Env, { file, text }: NonNullable<CiReport['summary']>): string | null {
  try {
    env.files.writeFileSync(file, text, { flag: 'a' })
    return null
  } catch (error) {
    return `The summary was not written to ${printable(file)}: ${reasonOf(error)}`
  }
}

const command: Command = async ({ env, args, cwd, colors }) => {
  const [ref, bundle] = [text(args, 'ref'), text(args, 'bundle')]
  if (flag(args, 'covered') && ref === undefined)
    throw new CkptError('USAGE', '--covered speaks of the commits of --ref, which is missing. Nothing was changed.', {
      hints: ['ckpt verify --ref origin/main..HEAD --covered'],
    })
  // For git that is no commit at all: an empty variable would pass for all that was pushed.
  if (ref?.startsWith('..'))
    throw new CkptError('USAGE', `--ref ${printable(ref)} has no base before its dots. Nothing was changed.`, {
      hints: ['ckpt verify --ref origin/main..HEAD   (from where the branch began)'],
    })
  const context = await openContext(env, cwd, { reading: true, whole: true, present: true })
  try {
    const result = await verify(context, {
      worktree: flag(args, 'worktree'),
      covered: flag(args, 'covered'),
      ...(ref === undefined ? {} : { ref }),
      ...(bundle === undefined ? {} : { bundle: absolute(cwd, bundle) }),
    })
    const { checks, checkpoints, problems, pending, commits, warnings } = result
    const refused = args.pending === false && pending.length > 0
    if (refused) {
      const detail = `undone turns are pending in ${pending.map(printable).join(', ')}`
      checks.push({ name: 'pending', ok: false, detail })
      problems.push(`pending: ${detail}`)
    }
    let shown = verifyText(result, colors)
    if (flag(args, 'ci')) {
      const { annotations, summary } = ciReport(env.vars, result)
      // The page is the CI's own file: without it the answer is the same.
      const unwritten = summary && appendSummary(env, summary)
      if (unwritten) warnings.push(unwritten)
      // With --json standard output is one document.
      if (args.json) for (const line of annotations) env.stderr.write(`${line}\n`)
      else shown = [shown, ...annotations].join('\n')
    }
    const code = refused ? 'BOUNDARY_PENDING' : problems.length > 0 ? 'VERIFY_FAILED' : null
    return {
      json: { checks, checkpoints, problems, ...(commits ? { commits } : {}), warnings },
      text: shown,
      paged: true,
      warnings,
      ok: code === null,
      ...(code === null
        ? {}
        : {
            exitCode: EXIT_CODES[code],
            error: {
              code,
              message: problems.join('; '),
              hints: code === 'BOUNDARY_PENDING' ? pending.flatMap(pendingHints) : hintsFor(result),
            },
          }),
    }
  } finally {
    closeContext(context)
  }
}

export default command
