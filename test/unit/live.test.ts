// The live view, whatever terminal there is: never more than it has rows for, and the newest turn and the keys are there.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { liveLines } from '../../src/cli/present/live.ts'
import { columnsOf } from '../../src/core/columns.ts'

const KEYS = 'u undo  q quit'
const word = fc.string({ minLength: 1, maxLength: 40, unit: fc.constantFrom('a', 'é', '語', ' ') })

test('what does not fit goes, the newest turn and the keys last', () => {
  fc.assert(
    fc.property(
      fc.record({
        rows: fc.integer({ min: 8, max: 40 }),
        columns: fc.integer({ min: 41, max: 120 }),
        turns: fc.array(word, { minLength: 1, maxLength: 30 }),
        files: fc.array(word, { maxLength: 8 }),
        said: fc.array(word, { maxLength: 60 }),
      }),
      ({ rows, columns, turns, files, said }) => {
        const lines = liveLines({
          ...{
            heads: ['ckpt /root  3 directories, last snapshot 4 ms', 'ckpt /root'],
            keys: KEYS,
            rows,
            columns,
            files,
          },
          turns: (count) => turns.slice(0, count).map((text, i) => `${turns.length - i} ${text}`),
          count: turns.length,
          message: said.join('\n'),
        })
        const height = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(columnsOf(line) / columns)), 0)
        expect(height).toBeLessThanOrEqual(rows)
        expect(lines[0]).toMatch(/^ckpt \/root/)
        expect(lines).toContain(`${turns.length} ${turns[0]}`)
        expect(lines.at(-1)).toBe(KEYS)
      },
    ),
  )
})
