/** A commit's message from the prompts of its turns, in conventional form (conventionalcommits.org). Pure. */
import { printable } from './paths.ts'

const conventional = /^(build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(\([^)]*\))?!?: \S/

const types: [RegExp, string][] = [
  [/^(fix|repair|correct|resolve|debug)\b|\bbugs?\b/i, 'fix'],
  [/^(document|explain|describe)\b|\b(readme|docs|documentation)\b/i, 'docs'],
  [/^(test|cover)\b|\b(unit )?tests?\b/i, 'test'],
  [/^(refactor|rename|move|extract|simplify|clean|restructure|split)\b/i, 'refactor'],
  [/^(speed|optimi[sz]e)\b|\bfaster\b/i, 'perf'],
  [/^(add|implement|create|make|build|introduce|support|allow|write)\b/i, 'feat'],
]

const SUBJECT = 72

export interface PromptedTurn {
  number: number
  /** The whole prompt; null where none was recorded. */
  prompt: string | null
}

/** The first turn's prompt says what it is about; with several turns the body lists them all. */
export function messageFromPrompts(turns: readonly PromptedTurn[]): string {
  const lines = turns.map(({ number, prompt }) => firstLine(prompt) ?? `turn ${number}`)
  const first = lines[0] ?? 'work'
  const subject = conventional.test(first) ? first : `${typeOf(first)}: ${first[0]!.toLowerCase()}${first.slice(1)}`
  const short = subject.length <= SUBJECT ? subject : `${subject.slice(0, SUBJECT - 3).trimEnd()}...`
  const body = lines.length > 1 || short !== subject ? `\n${lines.map((line) => `- ${line}\n`).join('')}` : ''
  return `${short}\n${body}`
}

function firstLine(prompt: string | null): string | null {
  const line = (prompt ?? '')
    .split('\n')
    .map((one) => one.trim())
    .find((one) => one !== '')
  return line === undefined ? null : printable(line).replace(/[.]+$/, '') || null
}

function typeOf(text: string): string {
  return types.find(([pattern]) => pattern.test(text))?.[1] ?? 'chore'
}
