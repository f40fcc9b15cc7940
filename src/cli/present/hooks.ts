/** The git hooks as text. Pure. */
import { printable } from '../../core/paths.ts'
import type { HooksResult } from '../../githooks/status.ts'
import type { Colors } from '../command.ts'
import { table } from './text.ts'

export function hooksText(
  action: 'install' | 'uninstall' | 'status',
  { hooks, place }: HooksResult,
  c: Colors,
): string {
  const rows = hooks.map(({ name, installed, chained, fires }) => [
    `  ${name}`,
    installed ? c.green('installed') : c.dim('not installed'),
    fires ? c.green('fires') : fires === null ? 'not tried' : installed ? c.red('does not fire') : '',
    chained ? 'then the hook that was there' : '',
  ])
  const word = {
    install: hooks.some(({ fires }) => fires === false)
      ? 'The hooks are in place, but git does not run all of them: commits may go through while something is undone.'
      : 'While something is undone, commits in this repository are refused now.',
    uninstall: 'The gate is gone; other hooks are as they were.',
    status: place.off ? 'Git runs no hooks here:' : `Git runs the hooks in ${printable(place.directory)}:`,
  }[action]
  return [word, ...(action === 'uninstall' ? [] : [table(rows)])].join('\n')
}
