/** What of the live view a terminal has room for. */
import { clipped, columnsOf } from '../../core/columns.ts'
import { plural } from './text.ts'

/** Rows that the list of files takes besides them. */
const AROUND_FILES = 2

/** The first line and as many more as there are rows for; the last row, where one is left, tells of the others. */
function fitting(lines: string[], rows: number, columns: number): string[] {
  if (heightOf(lines, columns) <= rows) return lines
  const [first, ...others] = [clipped(lines[0]!, Math.max(1, rows) * columns), ...lines.slice(1)]
  const fit = others.filter((_, i) => heightOf([first, ...others.slice(0, i + 1)], columns) < rows)
  const left = others.length - fit.length
  return [first, ...fit, ...(heightOf([first, ...fit], columns) < rows ? [`… ${plural(left, 'more line')}`] : [])]
}

/** Rows that the lines take on a terminal of so many columns. */
const heightOf = (lines: readonly string[], columns: number): number =>
  lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(columnsOf(line) / columns)), 0)

export interface Live {
  /** The first line, from the longest form to the one that is cut where it has to be. */
  heads: readonly string[]
  /** The lines of so many turns, the newest first. */
  turns: (count: number) => string[]
  count: number
  /** Paths that changed lately, the newest last. */
  files: readonly string[]
  /** What the last command said. */
  message: string
  keys: string
  rows: number
  columns: number
}

/** The newest turn and the keys stay on the screen, then what was said, files that changed, more turns. */
export function liveLines({ heads, turns, count, files, message, keys, rows, columns }: Live): string[] {
  const height = (lines: readonly string[]) => heightOf(lines, columns)
  const around = height(['', ...turns(1), '', keys])
  const head = heads.find((one) => height([one]) + around < rows) ?? heads.at(-1)!
  const left = rows - height([head]) - around
  const said = fitting(message.split('\n'), left, columns)
  const room = left - height(said) - AROUND_FILES
  const names = files.map((path) => `  ${path}`).filter((_, i, paths) => height(paths.slice(i)) <= room)
  const above = [head, '']
  const below = ['', ...(names.length > 0 ? ['Changed lately', ...names, ''] : []), ...said, keys]
  const missing = height([...above, ...turns(count), ...below]) - rows
  return [...above, ...turns(Math.max(1, count - Math.max(0, missing))), ...below]
}
