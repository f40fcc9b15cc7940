// The limit of bytes is for the store as a prune packs it: no turn goes where packing makes the room.
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

const TURNS = 12
const SIZE = 20_000

/** Turns that each write the same files anew, with what does not compress. */
function withTurns(): Scratch {
  const scratch = new Scratch().init()
  for (let n = 1; n <= TURNS; n++) {
    const files = Object.fromEntries([1, 2, 3].map((i) => [`f${i}.bin`, randomBytes(SIZE)]))
    scratch.turn(`turn ${n}`, () => scratch.write(files))
  }
  return scratch
}

const bytes = (scratch: Scratch): number => scratch.ckpt('status').store.bytes

test('a store that is within its limit once it is packed loses nothing', () => {
  const scratch = withTurns()
  const limit = bytes(scratch) - 50_000
  expect(limit).toBeGreaterThan(TURNS * 3 * SIZE * 1.1)
  expect(scratch.ckpt('prune', '--max-bytes', `${limit}`)).toMatchObject({ removed: [], kept: TURNS, warnings: [] })
  expect(bytes(scratch)).toBeLessThan(limit)
})

test('of one that is not, as many go as have to, the oldest, as a dry run says', () => {
  const scratch = withTurns()
  const limit = ['prune', '--max-bytes', `${TURNS * 2 * SIZE}B`] as const
  const { removed } = scratch.ckpt(...limit, '--dry-run')
  expect(scratch.ckpt(...limit)).toMatchObject({ removed, kept: TURNS - removed.length, warnings: [] })
  const oldest = Array.from({ length: removed.length }, (_, n) => n + 1)
  expect(removed.map(({ turn }: { turn: number }) => turn)).toEqual(oldest)
  // Turns of 60 kB each, of which a third has to go, and what else the store holds.
  expect(removed.length).toBeGreaterThanOrEqual(TURNS / 3)
  expect(removed.length).toBeLessThanOrEqual((TURNS * 2) / 3)
  expect(bytes(scratch)).toBeLessThanOrEqual(TURNS * 2 * SIZE)
  expect(scratch.run(['verify']).code).toBe(0)
})
