// Directories against a plain map: copies share what they were made from, and neither sees the other's changes.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Directories, type DirectoryEntry } from '../../src/snapshot/directories.ts'

const entryOf = (number: number): DirectoryEntry => ({
  mtimeMs: number,
  ctimeMs: number,
  ino: number,
  mode: number % 7 === 0 ? 0o700 : 0o755,
  seen: number % 5 === 0 ? 0 : 1,
  directories: [],
  specials: [],
  unrepresentable: [],
  empty: number % 3 === 0,
  rules: false,
})

const name = fc
  .array(fc.constantFrom('a', 'b', 'ab', 'c'), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('/'))
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('set' as const), name, number: fc.nat(1000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('copy' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('many' as const), number: fc.nat(1000) }) },
)

interface Pair {
  ours: Directories
  plain: Map<string, DirectoryEntry>
}

const isRemarkable = ({ mode, seen, empty }: DirectoryEntry) => mode !== 0o755 || seen === 0 || empty
const sorted = <T>(entries: Iterable<[string, T]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1))

test('every copy holds what was put into it, whatever happens to the others', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.nat(), (steps, seed) => {
      const pairs: Pair[] = [{ ours: new Directories(0o755), plain: new Map() }]
      for (const [i, one] of steps.entries()) {
        const pair = pairs[(seed + i * 7) % pairs.length]!
        if (one.do === 'set') {
          pair.ours.set(one.name, entryOf(one.number))
          pair.plain.set(one.name, entryOf(one.number))
        } else if (one.do === 'many') {
          for (let n = 0; n < 600; n++) {
            pair.ours.set(`many/${n}`, entryOf(one.number + n))
            pair.plain.set(`many/${n}`, entryOf(one.number + n))
          }
        } else if (one.do === 'remove') {
          pair.ours.remove(one.name)
          for (const key of [...pair.plain.keys()])
            if (key === one.name || key.startsWith(`${one.name}/`)) pair.plain.delete(key)
        } else pairs.push({ ours: new Directories(0o755, pair.ours), plain: new Map(pair.plain) })
      }
      for (const { ours, plain } of pairs) {
        expect(sorted(ours)).toEqual(sorted(plain))
        expect(ours.size).toBe(plain.size)
        expect([...ours.keys()].sort()).toEqual([...plain.keys()].sort())
        expect(sorted(ours.remarkable())).toEqual(sorted([...plain].filter(([, entry]) => isRemarkable(entry))))
        for (const [key, entry] of plain) expect(ours.get(key)).toEqual(entry)
        expect(ours.has('nowhere')).toBe(false)
      }
    }),
  )
})
