/** Changes of text files word by word (the `diff` package), for a terminal: `[-gone-]` and `{+new+}` where there is no colour. */
import { diffWordsWithSpace } from 'diff'
import { printable } from '../../core/paths.ts'
import type { ChangedText } from '../../ops/history/diff.ts'
import type { Colors } from '../command.ts'
import { diffName } from './changes.ts'

const lines = (text: string) => text.split('\n').map(printable).join('\n')

/** What only its name or its mode tells apart has no lines to show. */
export function fileWordsText({ file, before, after }: ChangedText, c: Colors): string {
  const name = c.bold(diffName(file))
  return before === after ? `${name}  ${c.dim(file.status)}` : `${name}\n${wordsText(before, after, c)}`
}

/** Only the lines around changes. */
function wordsText(before: string, after: string, c: Colors): string {
  const text = diffWordsWithSpace(before, after)
    .map(({ value, added, removed }) => {
      const safe = lines(value)
      if (added) return c.isColorSupported ? c.green(safe) : `{+${safe}+}`
      if (removed) return c.isColorSupported ? c.red(safe) : `[-${safe}-]`
      return safe
    })
    .join('')
  const rows = text.split('\n')
  const changed = rows.map((row) => /\x1b\[|\{\+|\[-|\+\}|-\]/.test(row))
  return rows.filter((_, i) => changed.slice(Math.max(0, i - 1), i + 2).some(Boolean)).join('\n')
}
