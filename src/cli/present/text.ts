/** Words, columns and counts that all texts share. Pure: colours are passed in. */
import { columnsOf } from '../../core/columns.ts'
import type { Stat } from '../../git/diff.ts'
import type { Colors } from '../command.ts'

export const short = (id: string): string => id.slice(0, 10)

export const plural = (count: number, word: string, words = `${word}s`): string =>
  `${count} ${count === 1 ? word : words}`

export function statText(stat: Stat | null, c: Colors): string {
  if (stat === null) return c.red('damaged')
  if (stat.files === 0) return c.dim('no files')
  return `${plural(stat.files, 'file')} ${c.green(`+${stat.insertions}`)} ${c.red(`-${stat.deletions}`)}`
}

/** Where what is undone begins: a turn, or a step of it. */
export const beginning = ({ turn, step }: { turn: number; step: number | null }): string =>
  step === null ? `turn ${turn}` : `step ${turn}.${step}`

/** Rows with their columns aligned; colours do not count. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, columnsOf(cell))
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === row.length - 1 ? cell : cell + ' '.repeat(widths[i]! - columnsOf(cell))))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
