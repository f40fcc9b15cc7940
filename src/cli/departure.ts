/** What leaves the machine, said before it does; and what came, told after. */
import { printable } from '../core/paths.ts'
import type { Env } from '../env.ts'
import type { Departure, Received, Sent } from '../ops/transport/transport.ts'
import { foreignWorktree } from '../ops/worktree/worktrees.ts'
import type { Arguments, Output } from './command.ts'
import { table } from './present/text.ts'
import { askYesNo } from './question.ts'

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`

function whatGoes({ to, sessions, checkpoints, prompts }: Departure, verb: string): string {
  const words = prompts > 0 ? `the text of ${plural(prompts, 'prompt')}, ` : ''
  return [
    `${verb} ${plural(checkpoints, 'checkpoint')} of ${plural(sessions, 'session')} to ${printable(to)}: every file they hold,`,
    `${words}names of ignored files, session ids, branches, times.${prompts > 0 ? '' : ' Prompts stay here.'}`,
  ].join(' ')
}

/** Says it on standard error. Where something looks like a secret a person on a terminal is asked; a script is only told. */
export function announcing(env: Env, args: Arguments, verb: string): (departure: Departure) => Promise<boolean> {
  return async (departure) => {
    const { secrets } = departure
    if (!args.quiet) env.stderr.write(`ckpt: ${whatGoes(departure, verb)}\n`)
    if (secrets.length === 0) return true
    const named = secrets.slice(0, 50).map((path) => `  ${printable(path)}\n`)
    const more = secrets.length > 50 ? `  … and ${secrets.length - 50} more\n` : ''
    env.stderr.write(`ckpt: These look like secrets, and go along:\n${named.join('')}${more}`)
    if (args.yes === true || !env.stdin.isTTY) {
      if (args.yes !== true) env.stderr.write('ckpt: What takes one out of every checkpoint: ckpt forget PATH\n')
      return true
    }
    return askYesNo(env, 'Go on?')
  }
}

export function sentOutput(result: Sent, where: Record<string, string>, verb: string): Output {
  const { sent, sessions, checkpoints, prompts, secrets, warnings, to } = result
  const text = sent
    ? `${verb} ${plural(checkpoints, 'checkpoint')} of ${plural(sessions, 'session')} to ${printable(to)}.`
    : 'Nothing left this machine.'
  return { json: { ...where, sent, sessions, checkpoints, prompts, secrets, warnings }, text, warnings }
}

export function receivedOutput(result: Received, where: Record<string, string>): Output {
  const { worktrees, warnings } = result
  const rows = worktrees.map(({ from, worktree, sessions, checkpoints }) => [
    worktree,
    plural(sessions.length, 'session'),
    checkpoints === 0 ? 'nothing new' : plural(checkpoints, 'new checkpoint'),
    worktree === from ? '' : `(${from} there)`,
  ])
  const hint = worktrees.some(({ worktree }) => foreignWorktree(worktree))
    ? '\nBeside your own: ckpt list --all-worktrees'
    : ''
  const text = rows.length === 0 ? 'Nothing new.' : `${table(rows)}${hint}`
  return { json: { ...where, worktrees, warnings }, text, warnings }
}
