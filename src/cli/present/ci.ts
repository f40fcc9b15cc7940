/** What `verify --ci` says in the words of the CI it runs in. Pure: the variables come in, text goes out. */
import { printable } from '../../core/paths.ts'
import type { VerifyResult } from '../../ops/verify/verify.ts'

export interface CiReport {
  /** Lines for the CI's log. */
  annotations: string[]
  /** Markdown for a page of its own; null: this CI has none. */
  summary: { file: string; text: string } | null
}

type Vars = Readonly<Record<string, string | undefined>>

/** GitHub's workflow commands percent-encode what would end them; properties also `:` and `,`. */
const data = (text: string) => text.replace(/%/g, '%25').replace(/\r/g, '%0D').replace(/\n/g, '%0A')
const property = (text: string) => data(text).replace(/:/g, '%3A').replace(/,/g, '%2C')

const cell = (text: string) => printable(text).replace(/[\\`*_[\]<>|]/g, (c) => `\\${c}`)

export function ciReport(vars: Vars, result: VerifyResult): CiReport {
  const github = vars.GITHUB_ACTIONS === 'true'
  const line = (level: 'error' | 'warning', title: string, text: string) =>
    github
      ? `::${level} title=${property(`ckpt verify: ${title}`)}::${data(printable(text))}`
      : `${level.toUpperCase()}: ckpt verify: ${title}: ${printable(text)}`
  const annotations = result.checks.filter((check) => !check.ok).map(({ name, detail }) => line('error', name, detail))
  for (const { id, subject, covered, why } of result.commits ?? [])
    if (!covered) annotations.push(line('warning', 'commit not covered', `${id.slice(0, 10)} ${subject}: ${why}`))
  for (const warning of result.warnings) annotations.push(line('warning', 'warning', warning))
  const file = github ? vars.GITHUB_STEP_SUMMARY : undefined
  return { annotations, summary: file ? { file, text: summaryText(result) } : null }
}

function summaryText({ checks, commits, problems, checkpoints }: VerifyResult): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const head =
    problems.length === 0
      ? `${checkpoints} checkpoints verified`
      : `${problems.length} of ${checks.length} checks failed`
  const lines = [
    `### ckpt verify: ${head}`,
    '',
    row(['check', 'result', 'detail']),
    row(['---', '---', '---']),
    ...checks.map(({ name, ok, detail }) => row([name, ok ? 'ok' : '**bad**', cell(detail)])),
  ]
  if (commits && commits.length > 0) {
    lines.push('', row(['commit', 'turn', 'covered']), row(['---', '---', '---']))
    for (const { id, subject, covered, session, turn, why } of commits) {
      const by = session === null ? '' : `${turn ?? ''} of ${cell(session)}`
      lines.push(row([`${id.slice(0, 10)} ${cell(subject)}`, by, `${covered ? 'yes' : '**no**'}: ${cell(why)}`]))
    }
  }
  return `${lines.join('\n')}\n`
}
