/** Words, columns and counts that all texts share. Pure: colours are passed in. */
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

/** `12:04` of today, else the date. */
export function when(time: string, now: number): string {
  const date = new Date(time)
  const two = (n: number) => String(n).padStart(2, '0')
  const today = new Date(now)
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`
  if (date.toDateString() === today.toDateString()) return clock
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`
}

export const widthOf = (text: string): number => text.replace(/\x1b\[[0-9;]*m/g, '').length

/** Rows with their columns aligned; colours do not count. */
export function table(rows: readonly (readonly string[])[]): string {
  const width = widthOf
  const widths: number[] = []
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, width(cell))
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === row.length - 1 ? cell : cell + ' '.repeat(widths[i]! - width(cell))))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
