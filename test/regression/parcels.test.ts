// What an export, import, push or pull leaves that is killed: it is no part of the store, costs no turn, and goes.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { killedAt } from '../support/amid.ts'
import { Scratch } from '../support/scratch.ts'

const parcels = (scratch: Scratch) =>
  fs.readdirSync(scratch.at('.git/ckpt')).filter((name) => name.startsWith('parcel-'))

test('what was killed amid costs no turn, and what it leaves goes with the next one, or with prune', () => {
  const scratch = new Scratch().init()
  for (const n of [1, 2, 3]) scratch.turn('work', () => scratch.write({ 'a.txt': `${n}\n` }))
  const bundle = `${scratch.base}/x.bundle`
  for (const next of [
    ['prune', '--max-bytes', '4MiB'],
    ['export', bundle],
  ]) {
    killedAt(scratch, ['chmodSync', 'made.bundle'], 'export', bundle)
    const [name] = parcels(scratch)
    fs.writeFileSync(scratch.at(`.git/ckpt/${name}/half`), Buffer.alloc(8 * 2 ** 20, 'x'))
    expect(scratch.ckpt('status').store.bytes).toBeLessThan(4 * 2 ** 20)
    expect(scratch.ckpt('prune', '--max-bytes', '4MiB', '--dry-run').removed).toEqual([])
    expect(parcels(scratch)).toHaveLength(1)
    scratch.ckpt(...next)
    expect([next, parcels(scratch)]).toEqual([next, []])
  }
  expect(scratch.ckpt('list').turns).toHaveLength(3)
})

const packs = (scratch: Scratch) =>
  fs.readdirSync(scratch.at('.git/ckpt/store.git/objects/pack')).filter((name) => name.endsWith('.pack'))

test('a pack that was killed on its way in is no damage, and goes with prune', () => {
  const other = new Scratch().init()
  other.turn('far away', () => other.write({ 'a.txt': 'far\n' }))
  other.ckpt('export', `${other.base}/far.bundle`)
  const importing = new Scratch().init()
  importing.turn('here', () => importing.write({ 'a.txt': 'here\n' }))
  importing.ckpt('prune', '--older-than', '1d')
  const own = packs(importing)
  killedAt(importing, ['renameSync', '.pack'], 'import', `${other.base}/far.bundle`)
  const linking = new Scratch().init()
  linking.git('repack', '-adq')
  killedAt(linking, ['linkSync', '.pack'], 'snapshot')
  for (const scratch of [importing, linking]) {
    expect(packs(scratch).length).toBe(scratch === importing ? own.length + 1 : 1)
    expect(scratch.ckpt('verify').problems).toEqual([])
    expect(scratch.ckpt('doctor').findings).toContainEqual(expect.objectContaining({ name: 'packs', ok: true }))
  }
  importing.ckpt('prune', '--keep', '1')
  expect(packs(importing).length).toBeLessThanOrEqual(Math.max(1, own.length))
  expect(importing.ckpt('verify').problems).toEqual([])
  importing.ckpt('undo')
  linking.ckpt('snapshot')
  expect(linking.ckpt('verify').problems).toEqual([])
})

test('a limit of bytes that cannot be reached is said', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  expect(scratch.ckpt('prune', '--max-bytes', '1').warnings).toEqual([
    'The store is still over its limit of bytes: what is left is held by what stays.',
  ])
  expect(scratch.ckpt('prune').warnings).toEqual([])
})
