// What `ckpt doctor` names, and what `--fix` makes of it.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { Oid } from '../../src/core/ids.ts'
import { realEnv } from '../../src/env.ts'
import { resetTips } from '../../src/git/tips.ts'
import { withLock } from '../../src/ops/worktree/lock.ts'
import { amid } from '../support/amid.ts'
import { type Json, PROGRAM, Scratch } from '../support/scratch.ts'
import { corruptObject, inStore, looseFile, ownDirectory, removeObject, storeOf } from '../support/store-surgery.ts'

const fileOf = (scratch: Scratch, ref: string) => path.join(storeOf(scratch), 'refs', ref)
const cutShort = (scratch: Scratch, ref: string) => fs.writeFileSync(fileOf(scratch, ref), '')

function threeTurns(): Scratch {
  const scratch = new Scratch().init()
  for (const n of [1, 2, 3]) scratch.turn(`work ${n}`, () => scratch.write({ 'a.txt': `${n}\n` }))
  return scratch
}

/** As if each ref had been moved to where it is. */
function writtenDown(scratch: Scratch): void {
  const rows = inStore(scratch, 'for-each-ref', '--format=%(refname) %(objectname)').split('\n')
  const tips = rows.map((row) => row.split(' ')).map(([ref, oid]) => ({ ref: ref!, oid: oid as Oid }))
  resetTips(realEnv(), { directory: scratch.at('.git/ckpt'), worktree: '@main' }, tips)
}

const finding = (document: Json, name: string) => document.findings.find((one: Json) => one.name === name)

/** `doctor` names the ref and exits 7; `--fix` mends it; everything is clean then. Mostly with nothing written down of it. */
function mended(scratch: Scratch, ref: string, { written = false } = {}): string {
  if (!written) fs.rmSync(path.join(ownDirectory(scratch), 'tips'))
  const named = scratch.tryCkpt('doctor')
  expect([named.code, named.document.error.code]).toEqual([7, 'DAMAGED'])
  expect(finding(named.document, 'refs')).toMatchObject({ ok: false, mend: 'ckpt doctor --fix' })
  expect(finding(named.document, 'refs').detail).toContain(`refs/${ref}`)
  const { detail, fixed } = finding(scratch.ckpt('doctor', '--fix'), 'refs')
  expect(fixed).toBe(true)
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(finding(scratch.ckpt('doctor'), 'refs').ok).toBe(true)
  return detail
}

const turns = (scratch: Scratch) =>
  scratch
    .ckpt('list', '--hidden', '--abandoned')
    .turns.map((turn: Json) => `${turn.n}${turn.hidden ? ' hidden' : ''}${turn.abandoned ? ' abandoned' : ''}`)

test.each([
  ['HEAD', ''],
  ['HEAD', null],
  ['config', ''],
  ['config', null],
  ['config', '[core]\n\trepositoryformatversion = 0\n\tfilemode = tr'],
  ['config', '[core]\n\trepositoryformatversion = 0\n'],
] as const)('a store whose %s is %j is damaged, not empty, and is put right', (name, content) => {
  const scratch = threeTurns()
  const file = path.join(storeOf(scratch), name)
  const whole = fs.readFileSync(file, 'utf8')
  if (content === null) fs.rmSync(file)
  else fs.writeFileSync(file, content)
  for (const command of ['list', 'status', 'verify', 'undo', 'doctor']) {
    const { code, document } = scratch.tryCkpt(command)
    expect([command, code, document.error.code]).toEqual([command, 7, 'DAMAGED'])
    expect(document.error.hints).toContain('ckpt doctor --fix')
  }
  expect(scratch.ckpt('doctor', '--fix').warnings.join()).toContain(`its ${name} was written anew`)
  expect(fs.readFileSync(file, 'utf8')).toBe(whole)
  expect(scratch.ckpt('verify').problems).toEqual([])
  scratch.ckpt('undo', '--turns', '3')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('a store without its directory of refs, as a copy leaves it out once all are packed, is put right', () => {
  const scratch = threeTurns()
  inStore(scratch, 'pack-refs', '--all')
  fs.rmSync(path.join(storeOf(scratch), 'refs'), { recursive: true })
  for (const command of ['list', 'verify', 'undo', 'doctor'])
    expect([command, scratch.tryCkpt(command).code]).toEqual([command, 7])
  expect(scratch.ckpt('doctor', '--fix').warnings.join()).toContain('its refs was written anew')
  scratch.ckpt('undo', '--turns', '3')
  expect(scratch.read('a.txt')).toBe('one\n')
})

test('a store of a newer format is named as that: no command leads to another one that fails of it, too', () => {
  const scratch = threeTurns()
  inStore(scratch, 'config', 'core.repositoryFormatVersion', '2')
  for (const command of ['list', 'doctor']) {
    const { code, document } = scratch.tryCkpt(command)
    expect([command, code, document.error.hints]).toEqual([command, 1, [expect.stringMatching(/^ckpt --version /)]])
  }
})

test('a configuration of the store that a newer git wrote, with its extensions first, is whole', () => {
  const scratch = threeTurns()
  const file = path.join(storeOf(scratch), 'config')
  fs.writeFileSync(file, `[extensions]\n\tnoop = true\n${fs.readFileSync(file, 'utf8')}`)
  expect(scratch.ckpt('doctor').findings.every((one: Json) => one.ok)).toBe(true)
  expect(turns(scratch)).toEqual(['3', '2', '1'])
  fs.writeFileSync(file, '[extensions]\n\tnoop = true\n')
  expect(scratch.tryCkpt('list').code).toBe(7)
})

test('a configuration of the store that git cannot read amid its lines is written anew', () => {
  const scratch = threeTurns()
  const file = path.join(storeOf(scratch), 'config')
  const whole = fs.readFileSync(file, 'utf8')
  for (const to of ['bare garbage', 'filemode = perhaps']) {
    fs.writeFileSync(file, whole.replace('bare = true', to))
    for (const command of ['list', 'undo', 'prune', 'doctor'])
      expect(scratch.tryCkpt(command).document.error).toMatchObject({ code: 'DAMAGED', hints: ['ckpt doctor --fix'] })
    expect(scratch.ckpt('doctor', '--fix').warnings.join()).toContain('its config was written anew')
    expect(fs.readFileSync(file, 'utf8')).toBe(whole)
  }
})

test("where this worktree's own directory is gone, its turns are not", () => {
  const scratch = threeTurns()
  fs.rmSync(ownDirectory(scratch), { recursive: true })
  expect(turns(scratch)).toEqual(['3', '2', '1'])
  expect(scratch.tryCkpt('verify').code).toBe(7) // what the directory said of the refs is lost
  scratch.ckpt('undo', '--turns', '3')
  expect(scratch.read('a.txt')).toBe('one\n')
})

describe('a ref that was cut short', () => {
  test('a live branch is set to its newest checkpoint, and the commands work again', () => {
    const scratch = threeTurns()
    const ref = 'ckpt/@main/s/live'
    const before = inStore(scratch, 'rev-parse', `refs/${ref}`)
    cutShort(scratch, ref)
    const { code, document } = scratch.tryCkpt('list')
    expect([code, document.error.code]).toEqual([7, 'DAMAGED'])
    expect(document.error.hints.join()).toContain('ckpt doctor --fix')
    expect(mended(scratch, ref, { written: true })).toContain(before.slice(0, 10))
    expect(inStore(scratch, 'rev-parse', `refs/${ref}`)).toBe(before)
    scratch.ckpt('undo', '--turns', '3')
    expect(scratch.read('a.txt')).toBe('one\n')
  })

  test('a ref that names what is not there is as bad as an empty one', () => {
    const scratch = threeTurns()
    fs.writeFileSync(fileOf(scratch, 'ckpt/@main/s/live'), `${'1'.repeat(40)}\n`)
    mended(scratch, 'ckpt/@main/s/live')
    expect(turns(scratch)).toEqual(['3', '2', '1'])
  })

  test('a pending boundary is pending again: redo goes forward, and the gate knows', () => {
    const scratch = threeTurns()
    scratch.ckpt('undo', '--turns', '2')
    cutShort(scratch, 'ckpt/@main/s/boundary')
    fs.rmSync(path.join(ownDirectory(scratch), 'boundary'))
    mended(scratch, 'ckpt/@main/s/boundary')
    expect(fs.existsSync(path.join(ownDirectory(scratch), 'boundary'))).toBe(true)
    expect(turns(scratch)).toEqual(['3 hidden', '2 hidden', '1'])
    scratch.ckpt('redo', '--all')
    expect(scratch.read('a.txt')).toBe('3\n')
  })

  test.each([
    ['a tree', 's/live', 's/live^{tree}'],
    ['a file', 's/live', 's/live:a.txt'],
    ['a checkpoint of another session', 's/live', 'other/live'],
    ['a checkpoint', '@meta', 's/live'],
  ])('a ref that names %s: it is set right, with what is written down of it and without', (_name, ref, named) => {
    const scratch = threeTurns()
    scratch.turn('another', () => scratch.write({ 'b.txt': 'b\n' }), 'other')
    const [was, other] = [`refs/ckpt/@main/${ref}`, `refs/ckpt/@main/${named}`].map((one) =>
      inStore(scratch, 'rev-parse', one),
    )
    for (const written of [true, false]) {
      fs.writeFileSync(fileOf(scratch, `ckpt/@main/${ref}`), `${other}\n`)
      if (written) expect(scratch.tryCkpt('prune').code).toBe(7)
      mended(scratch, `ckpt/@main/${ref}`, { written })
      expect(inStore(scratch, 'rev-parse', `refs/ckpt/@main/${ref}`)).toBe(was)
    }
  })

  test('a ref of the wrong kind that names no session goes aside, and the session can begin', () => {
    const scratch = threeTurns()
    inStore(scratch, 'update-ref', 'refs/ckpt/@main/zz/live', 'refs/ckpt/@main/s/live^{tree}')
    mended(scratch, 'ckpt/@main/zz/live', { written: true })
    scratch.turn('begins', () => undefined, 'zz')
  })

  test.each([
    ['a session’s refs', 'refs/ckpt/@main/s', 'tips'],
    ['all refs', 'refs/ckpt', 'tips'],
    ['all refs, with the store’s part of each worktree,', 'refs/ckpt', '../@main'],
  ])(
    '%s and what is written down of them are gone: nothing is removed, and what the objects tell is back',
    (_name, what, written) => {
      const scratch = threeTurns()
      scratch.turn('another', () => scratch.write({ 'b.txt': 'b\n' }), 'other')
      const live = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')
      fs.rmSync(path.join(storeOf(scratch), what), { recursive: true })
      fs.rmSync(path.join(ownDirectory(scratch), written), { recursive: true })
      expect(scratch.tryCkpt('prune').document.error).toMatchObject({
        code: 'DAMAGED',
        hints: ['ckpt doctor --fix   (puts it back)'],
      })
      expect(scratch.tryCkpt('verify').code).toBe(7)
      expect(scratch.tryCkpt('doctor').code).toBe(7)
      expect(finding(scratch.ckpt('doctor', '--fix'), 'refs').detail).toContain(
        'refs/ckpt/@main/s/live is set to checkpoint',
      )
      expect(scratch.ckpt('verify').problems).toEqual([])
      expect(inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')).toBe(live)
      expect(scratch.ckpt('list', '--session', 's').turns.map(({ prompt }: Json) => prompt)).toEqual([
        'work 3',
        'work 2',
        'work 1',
      ])
    },
  )

  test.each(['s/live', 'other/boundary'])('a boundary that names %s is pending as it was', (named) => {
    const scratch = threeTurns()
    scratch.turn('another', () => scratch.write({ 'b.txt': 'b\n' }), 'other')
    for (const session of ['other', 's']) scratch.ckpt('undo', '--session', session)
    const ref = 'ckpt/@main/s/boundary'
    const was = inStore(scratch, 'rev-parse', `refs/${ref}`)
    inStore(scratch, 'update-ref', `refs/${ref}`, `refs/ckpt/@main/${named}`)
    mended(scratch, ref)
    expect(inStore(scratch, 'rev-parse', `refs/${ref}`)).toBe(was)
    scratch.ckpt('redo', '--session', 's')
  })

  test('a checkpoint whose ref was never moved to it is no lost session, also beside a worktree without any', () => {
    const scratch = threeTurns()
    scratch.git('worktree', 'add', '-q', '../linked')
    expect(scratch.run(['init'], { cwd: `${scratch.base}/linked` }).code).toBe(0)
    const file = path.join(scratch.base, 'commit')
    for (const session of ['s', 'new']) {
      const tip = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')
      const text = `${inStore(scratch, 'cat-file', 'commit', tip)}\n`.replace(
        /Ckpt-Session: .*/,
        `Ckpt-Session: ${session}`,
      )
      fs.writeFileSync(
        file,
        session === 's' ? text.replace(/parent .*/, `parent ${tip}`) : text.replace(/parent .*\n/, ''),
      )
      inStore(scratch, 'hash-object', '-t', 'commit', '-w', file)
    }
    for (const command of ['verify', 'doctor', 'prune'])
      expect([command, scratch.run([command]).code]).toEqual([command, 0])
    // As a prune leaves it that is killed before it removed what no ref leads to any more.
    scratch.turn('gone', () => scratch.write({ 'b.txt': 'b\n' }), 'pruned')
    const refs = inStore(scratch, 'for-each-ref', '--format=%(refname)', 'refs/ckpt/@main/pruned').split('\n')
    for (const ref of refs) inStore(scratch, 'update-ref', '-d', ref)
    writtenDown(scratch)
    for (const command of ['verify', 'doctor', 'prune'])
      expect([command, scratch.run([command]).code]).toEqual([command, 0])
  })

  test('a live branch beside an undo, and one after accept, end where they did', () => {
    const scratch = threeTurns()
    scratch.ckpt('undo')
    const pending = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')
    cutShort(scratch, 'ckpt/@main/s/live')
    mended(scratch, 'ckpt/@main/s/live')
    expect(inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')).toBe(pending)
    scratch.ckpt('accept')
    const accepted = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')
    cutShort(scratch, 'ckpt/@main/s/live')
    mended(scratch, 'ckpt/@main/s/live')
    expect(inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')).toBe(accepted)
    expect(turns(scratch)).toEqual(['3 abandoned', '2', '1'])
  })

  test('an abandoned branch, prompts, what lies beside checkpoints, a safety checkpoint', () => {
    const scratch = threeTurns()
    scratch.ckpt('undo')
    scratch.turn('work 4', () => scratch.write({ 'a.txt': '4\n' }))
    const shown = scratch.ckpt('list', '--hidden', '--abandoned').turns
    const own = fs.readdirSync(fileOf(scratch, 'ckpt/@main/s'), { recursive: true, encoding: 'utf8' })
    const leaf = (kind: string) => own.find((name) => name.startsWith(`${kind}/`))!
    const abandoned = `ckpt/@main/s/${leaf('abandoned')}`
    const safety = `ckpt/@main/s/${leaf('safety')}`
    const was = [abandoned, safety].map((ref) => inStore(scratch, 'rev-parse', `refs/${ref}`))
    for (const ref of [abandoned, safety, 'ckpt/@main/@meta', 'notes/ckpt/@main']) {
      cutShort(scratch, ref)
      mended(scratch, ref)
    }
    expect([abandoned, safety].map((ref) => inStore(scratch, 'rev-parse', `refs/${ref}`))).toEqual(was)
    expect(scratch.ckpt('list', '--hidden', '--abandoned').turns).toEqual(shown)
  })

  test('where nothing is left of what it named, its file is set aside, and that is said', () => {
    const scratch = threeTurns()
    scratch.ckpt('undo')
    scratch.ckpt('redo')
    cutShort(scratch, 'ckpt/@main/s/abandoned')
    expect(mended(scratch, 'ckpt/@main/s/abandoned')).toContain('names nothing that is left')
    expect(turns(scratch)).toEqual(['3', '2', '1'])
  })
})

describe('a ref that is gone, though nobody of us removed it', () => {
  const refusals = ['status', 'list', 'mark prompt --session s', 'undo', 'prune', 'forget a.txt']

  test.each([
    ['its file was removed', (scratch: Scratch) => fs.rmSync(fileOf(scratch, 'ckpt/@main/s/live'))],
    [
      'packed refs were emptied',
      (scratch: Scratch) => {
        inStore(scratch, 'pack-refs', '--all')
        fs.writeFileSync(path.join(storeOf(scratch), 'packed-refs'), '')
      },
    ],
  ])('is no session that never was: nothing is pruned, nothing begun anew, and it is put back: %s', (_name, lose) => {
    const scratch = threeTurns()
    const before = inStore(scratch, 'for-each-ref')
    const objects = inStore(scratch, 'count-objects')
    lose(scratch)
    for (const command of refusals) {
      const { code, document } = scratch.tryCkpt(...command.split(' '))
      expect([command, code, document.error.code]).toEqual([command, 7, 'DAMAGED'])
      expect(document.error.hints.join()).toContain('ckpt doctor --fix')
    }
    expect(inStore(scratch, 'count-objects')).toBe(objects)
    mended(scratch, 'ckpt/@main/s/live', { written: true })
    expect(inStore(scratch, 'for-each-ref')).toBe(before)
    scratch.ckpt('undo', '--turns', '3')
    expect(scratch.read('a.txt')).toBe('one\n')
  })

  test('where what it named is gone as well, it is set to the newest checkpoint that is left', () => {
    const scratch = threeTurns()
    removeObject(scratch, 'refs/ckpt/@main/s/live')
    fs.rmSync(fileOf(scratch, 'ckpt/@main/s/live'))
    expect(mended(scratch, 'ckpt/@main/s/live', { written: true })).toMatch(
      /turn 3, the newest that is left: what came after it is lost/,
    )
    expect(turns(scratch)).toEqual(['3', '2', '1'])
  })

  test('a pending boundary that was lost is pending again', () => {
    const scratch = threeTurns()
    scratch.ckpt('undo')
    const marker = fs.readFileSync(path.join(ownDirectory(scratch), 'boundary'), 'utf8')
    fs.rmSync(fileOf(scratch, 'ckpt/@main/s/boundary'))
    expect(scratch.tryCkpt('redo').code).toBe(7)
    mended(scratch, 'ckpt/@main/s/boundary', { written: true })
    expect(fs.readFileSync(path.join(ownDirectory(scratch), 'boundary'), 'utf8')).toBe(marker)
    scratch.ckpt('redo')
    expect(scratch.read('a.txt')).toBe('3\n')
  })

  test('one of a worktree that is no more is put back from another worktree', () => {
    const scratch = threeTurns()
    scratch.git('worktree', 'add', '-q', '../linked')
    const cwd = path.join(scratch.base, 'linked')
    scratch.run(['snapshot'], { cwd })
    const ref = inStore(scratch, 'for-each-ref', '--format=%(refname)', 'refs/ckpt')
      .split('\n')
      .find((name) => name.includes('/linked-') && name.endsWith('/live'))!
    scratch.git('worktree', 'remove', '--force', cwd)
    fs.rmSync(path.join(storeOf(scratch), ref))
    expect(scratch.tryCkpt('prune').code).toBe(7)
    mended(scratch, ref.slice('refs/'.length), { written: true })
    scratch.ckpt('prune')
  })
})

describe('a ref that somebody else moved back', () => {
  const movedBack = () => {
    const scratch = threeTurns()
    const lost = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')
    inStore(scratch, 'update-ref', 'refs/ckpt/@main/s/live', `${lost}~2`)
    return { scratch, lost }
  }

  test('stops prune and forget, and goes forward again', () => {
    const { scratch, lost } = movedBack()
    for (const command of [['prune'], ['forget', 'a.txt']]) expect(scratch.tryCkpt(...command).code).toBe(7)
    mended(scratch, 'ckpt/@main/s/live', { written: true })
    expect(inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live')).toBe(lost)
    scratch.ckpt('prune')
    expect(turns(scratch)).toEqual(['3', '2', '1'])
  })

  test('when the session went on from there, what was lost is kept as an abandoned branch', () => {
    const { scratch } = movedBack()
    scratch.turn('work 3 again', () => scratch.write({ 'a.txt': 'again\n' }))
    expect(scratch.tryCkpt('prune').code).toBe(7)
    mended(scratch, 'ckpt/@main/s/live', { written: true })
    expect(turns(scratch)).toEqual(['3', '3 abandoned', '2', '1'])
    scratch.ckpt('prune')
  })
})

test.each([
  ['gone', null],
  ['garbled', 'garbage'],
])(
  'where what says of the refs is %s, they are believed as they are, and doctor --fix writes it anew',
  (_name, text) => {
    const scratch = threeTurns()
    const file = path.join(ownDirectory(scratch), 'tips')
    if (text === null) fs.rmSync(file)
    else fs.writeFileSync(file, text)
    expect(turns(scratch)).toEqual(['3', '2', '1'])
    scratch.ckpt('prune', '--keep', '2')
    fs.rmSync(file)
    expect(scratch.tryCkpt('verify').code).toBe(7)
    expect(finding(scratch.tryCkpt('doctor').document, 'refs')).toMatchObject({ ok: false, mend: 'ckpt doctor --fix' })
    expect(finding(scratch.ckpt('doctor', '--fix'), 'refs').detail).toContain('believed as they are')
    expect(scratch.ckpt('verify').problems).toEqual([])
  },
)

/** `doctor` names it and exits 7, `--fix` mends it, and everything is clean then. */
function mendedAs(scratch: Scratch, name: string, detail: string): void {
  const { code, document } = scratch.tryCkpt('doctor')
  expect([code, document.error.code]).toEqual([7, 'DAMAGED'])
  expect(finding(document, name)).toMatchObject({ ok: false, mend: 'ckpt doctor --fix' })
  expect(finding(document, name).detail).toContain(detail)
  expect(finding(scratch.ckpt('doctor', '--fix'), name)).toMatchObject({ ok: true, fixed: true })
  expect(scratch.ckpt('verify').problems).toEqual([])
}

test('an index that a killed prune left of a pack is no damage, and goes with doctor --fix', () => {
  const scratch = threeTurns()
  inStore(scratch, 'repack', '-a', '-d', '-q')
  const packs = path.join(storeOf(scratch), 'objects/pack')
  const indexes = () => fs.readdirSync(packs).filter((name) => name.endsWith('.idx'))
  const [old] = indexes()
  const bytes = fs.readFileSync(path.join(packs, old!))
  scratch.turn('more', () => scratch.write({ 'a.txt': 'more\n' }))
  scratch.ckpt('prune', '--keep', '1')
  fs.writeFileSync(path.join(packs, old!), bytes)
  expect(indexes()).toHaveLength(2)
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(finding(scratch.ckpt('doctor'), 'packs').ok).toBe(true)
  expect(finding(scratch.ckpt('doctor', '--fix'), 'packs')).toMatchObject({ ok: true, fixed: true })
  expect(indexes()).toHaveLength(1)
  expect(indexes()).not.toContain(old)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a pack that is gone, with its index there, is found by what is missing', () => {
  const scratch = threeTurns()
  inStore(scratch, 'repack', '-a', '-d', '-q')
  const packs = path.join(storeOf(scratch), 'objects/pack')
  for (const name of fs.readdirSync(packs)) if (name.endsWith('.pack')) fs.unlinkSync(path.join(packs, name))
  expect(scratch.tryCkpt('verify').code).toBe(7)
  expect(scratch.tryCkpt('doctor').code).toBe(7)
})

test.each(['refs/notes/ckpt/@main^{tree}', 'refs/ckpt/@main/@meta', 'refs/ckpt/@main/s/live~2'])(
  'an object whose type is garbled keeps nothing else from being mended: %s',
  (rev) => {
    const scratch = threeTurns()
    const file = looseFile(scratch, rev)
    fs.unlinkSync(file)
    fs.writeFileSync(file, deflateSync('tqee 0\0'))
    expect(scratch.tryCkpt('doctor').code).toBe(7)
    scratch.ckpt('doctor', '--fix')
    expect(scratch.ckpt('verify').problems).toEqual([])
    expect(scratch.ckpt('doctor').ok).toBe(true)
  },
)

test('a directory of what lies beside checkpoints is written anew', () => {
  const scratch = threeTurns()
  const row = inStore(scratch, 'ls-tree', 'refs/ckpt/@main/@meta').split('\n')[0]!
  removeObject(scratch, row.split(/\s/)[2]!)
  expect(scratch.tryCkpt('undo').code).toBe(7)
  mendedAs(scratch, 'refs', '@meta')
  scratch.turn('work 4', () => scratch.write({ 'a.txt': '4\n' }))
  scratch.ckpt('undo', '--turns', '4')
  expect(scratch.read('a.txt')).toBe('one\n')
})

describe('refs that are packed', () => {
  const packed = (ready: (scratch: Scratch) => void = () => undefined) => {
    const scratch = threeTurns()
    ready(scratch)
    inStore(scratch, 'pack-refs', '--all')
    return { scratch, file: path.join(storeOf(scratch), 'packed-refs') }
  }

  test('a live branch whose checkpoint is missing is set to the newest that is left', () => {
    const { scratch } = packed()
    removeObject(scratch, 'refs/ckpt/@main/s/live')
    expect(scratch.tryCkpt('list').document.error).toMatchObject({ code: 'DAMAGED', hints: ['ckpt doctor --fix'] })
    expect(mended(scratch, 'ckpt/@main/s/live')).toContain('turn 3')
    expect(turns(scratch)).toEqual(['3', '2', '1'])
  })

  test('a boundary whose checkpoint is missing goes, and with it what the git hooks read', () => {
    const { scratch } = packed((one) => one.ckpt('undo'))
    removeObject(scratch, 'refs/ckpt/@main/s/boundary')
    expect(mended(scratch, 'ckpt/@main/s/boundary')).toContain('names nothing that is left')
    expect(fs.existsSync(path.join(ownDirectory(scratch), 'boundary'))).toBe(false)
    expect(turns(scratch)).toEqual(['3', '2', '1'])
  })

  test.each([
    ['garbled', () => 'garbage\n'],
    ['cut in half', (text: string) => text.slice(0, text.length / 2)],
  ])('a file of them that is %s is kept beside it, and each ref put back', (_name, damage) => {
    const { scratch, file } = packed()
    const before = inStore(scratch, 'for-each-ref')
    fs.writeFileSync(file, damage(fs.readFileSync(file, 'utf8')))
    for (const command of ['list', 'status', 'mark prompt --session s', 'prune', 'forget a.txt']) {
      const { code, document } = scratch.tryCkpt(...command.split(' '))
      expect([command, code, document.error.hints]).toEqual([command, 7, ['ckpt doctor --fix']])
    }
    mendedAs(scratch, 'refs', 'git cannot read packed-refs')
    expect(inStore(scratch, 'for-each-ref')).toBe(before)
    expect(fs.readdirSync(scratch.at('.git/ckpt')).join()).toContain('packed-refs.damaged-')
  })
})

describe('packs', () => {
  /** One pack that holds all but the commits of what came after it. */
  const packed = () => {
    const scratch = threeTurns()
    scratch.ckpt('prune')
    scratch.turn('work 4', () => scratch.write({ 'a.txt': '4\n' }))
    const directory = path.join(storeOf(scratch), 'objects/pack')
    const pack = fs.readdirSync(directory).find((name) => name.endsWith('.pack'))!
    const file = (suffix: string) => path.join(directory, pack.replace(/pack$/, suffix))
    for (const suffix of ['pack', 'idx']) fs.chmodSync(file(suffix), 0o600)
    return { scratch, file }
  }
  const flipped = (bytes: Buffer) => {
    const other = Buffer.from(bytes)
    other[other.length >> 1]! ^= 0x40
    return other
  }
  const damages: [string, (bytes: Buffer) => Buffer][] = [
    ['empty', () => Buffer.alloc(0)],
    ['cut short', (bytes) => bytes.subarray(0, bytes.length >> 1)],
    ['garbled', (bytes) => Buffer.concat([Buffer.from('garbage'), bytes.subarray(7)])],
    ['one bit off', flipped],
  ]

  function refused(scratch: Scratch): void {
    for (const args of [['prune'], ['prune', '--keep', '1'], ['forget', 'a.txt']]) {
      const { code, document } = scratch.tryCkpt(...args)
      expect([args, code, document.error.code]).toEqual([args, 7, 'DAMAGED'])
      expect(document.error.message).toContain('Nothing was removed.')
    }
  }

  /** The first offset points behind the pack's end: gitformat-pack(5), version 2. */
  const offset = (bytes: Buffer) => {
    const other = Buffer.from(bytes)
    other[8 + 1024 + 24 * bytes.readUInt32BE(8 + 255 * 4) + 1]! ^= 0x40
    return other
  }

  test.each([...damages, ['wrong in an offset', offset] as const, ['not there', null] as const])(
    'an index that is %s: nothing is pruned, and it is made anew from its pack',
    (_name, damage) => {
      const { scratch, file } = packed()
      const whole = fs.readFileSync(file('idx'))
      const refs = inStore(scratch, 'for-each-ref')
      if (damage) fs.writeFileSync(file('idx'), damage(whole))
      else fs.rmSync(file('idx'))
      refused(scratch)
      mendedAs(scratch, 'packs', '.idx')
      expect(fs.readFileSync(file('idx')).equals(whole)).toBe(true)
      expect(inStore(scratch, 'for-each-ref')).toBe(refs)
      expect(turns(scratch)).toEqual(['4', '3', '2', '1'])
    },
  )

  test.each(damages.slice(2))('so it is of a pack that is not synced yet (%s)', (_name, damage) => {
    const scratch = new Scratch().init()
    const files = Array.from({ length: 20 }, (_, i) => [`f${i}`, `${i}\n`])
    scratch.turn('work', () => scratch.write(Object.fromEntries(files)))
    const directory = path.join(storeOf(scratch), 'objects/pack')
    const index = path.join(directory, fs.readdirSync(directory).find((name) => name.endsWith('.idx'))!)
    const whole = fs.readFileSync(index)
    fs.linkSync(index, path.join(storeOf(scratch), 'unsynced', path.basename(index, '.idx'))) // as the daemon leaves it
    fs.rmSync(index) // the entry of what is not synced is a link to it
    fs.writeFileSync(index, damage(whole))
    mendedAs(scratch, 'packs', '.idx')
    expect(fs.readFileSync(index).equals(whole)).toBe(true)
    scratch.ckpt('undo')
    expect(scratch.exists('f7')).toBe(false)
  })

  test.each(damages)('a pack that is %s stays, and no ref is moved because of what it held', (_name, damage) => {
    const { scratch, file } = packed()
    const refs = inStore(scratch, 'for-each-ref', '--format=%(refname) %(objectname)')
    const damaged = damage(fs.readFileSync(file('pack')))
    fs.writeFileSync(file('pack'), damaged)
    refused(scratch)
    expect(finding(scratch.tryCkpt('doctor', '--fix').document, 'packs').mend).toContain('from a backup')
    expect(fs.readFileSync(file('pack')).equals(damaged)).toBe(true)
    expect(inStore(scratch, 'for-each-ref', '--format=%(refname) %(objectname)')).toBe(refs)
  })
})

describe('where history was pruned', () => {
  const pruned = () => {
    const scratch = threeTurns()
    scratch.ckpt('prune', '--keep', '2')
    return { scratch, shallow: path.join(storeOf(scratch), 'shallow') }
  }

  test('is written anew when nothing says so any more', () => {
    const { scratch, shallow } = pruned()
    const before = fs.readFileSync(shallow, 'utf8')
    fs.rmSync(shallow)
    mendedAs(scratch, 'history', 'history was pruned before')
    expect(fs.readFileSync(shallow, 'utf8')).toBe(before)
    expect(turns(scratch)).toEqual(['3', '2'])
  })

  test('and when git cannot read what says so, which is kept beside it', () => {
    const { scratch, shallow } = pruned()
    const before = fs.readFileSync(shallow, 'utf8')
    fs.appendFileSync(shallow, 'garbage\n')
    for (const args of [['list'], ['mark', 'prompt', '--session', 's']])
      expect(scratch.tryCkpt(...args).document.error).toMatchObject({ code: 'DAMAGED', hints: ['ckpt doctor --fix'] })
    mendedAs(scratch, 'refs', 'git cannot read shallow')
    expect(fs.readFileSync(shallow, 'utf8')).toBe(before)
    expect(fs.readdirSync(scratch.at('.git/ckpt')).join()).toContain('shallow.damaged-')
  })
})

test('a checkpoint that is missing amid its chain: what is older is kept as an abandoned branch, and the session goes on', () => {
  const scratch = threeTurns()
  removeObject(scratch, 'refs/ckpt/@main/s/live~3') // turn 2 before
  expect(scratch.tryCkpt('list').code).toBe(7)
  mendedAs(scratch, 'history', '(turn 2) of session s is missing')
  expect(turns(scratch)).toEqual(['3', '1 abandoned'])
  scratch.turn('work 4', () => scratch.write({ 'a.txt': '4\n' }))
  scratch.ckpt('undo', '--turns', '2')
  expect(scratch.read('a.txt')).toBe('2\n')
  scratch.ckpt('redo', '--all')
  scratch.ckpt('restore', '1:after')
  expect(scratch.read('a.txt')).toBe('1\n')
})

test.each([
  ['gone', null, true],
  ['garbled', 'garbage', true],
  ['there though nothing is undone', 's\t3\t3\n', false],
])('what the git hooks read is written anew from the refs: %s', (_name, text, undo) => {
  const scratch = threeTurns()
  const file = path.join(ownDirectory(scratch), 'boundary')
  if (undo) scratch.ckpt('undo')
  const before = undo ? fs.readFileSync(file, 'utf8') : null
  if (text === null) fs.rmSync(file)
  else fs.writeFileSync(file, text)
  mendedAs(scratch, 'boundary', 'what the git hooks of worktree @main read')
  expect(fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null).toBe(before)
})

test('a hidden turn whose beginning is lost: its boundary goes with doctor --fix, which names it alone, too', () => {
  const scratch = threeTurns()
  scratch.ckpt('undo')
  const id = inStore(scratch, 'log', '--all', '--format=%H %s')
    .split('\n')
    .find((row) => row.endsWith('turn 3 before'))!
    .split(' ')[0]!
  const boundary = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/boundary')
  const read = path.join(ownDirectory(scratch), 'boundary')
  const marker = fs.readFileSync(read, 'utf8')
  corruptObject(scratch, id)
  expect(scratch.tryCkpt('doctor').code).toBe(7)
  const mends = () => {
    const { detail, fixed } = finding(scratch.ckpt('doctor', '--fix'), 'boundary')
    expect(fixed).toBe(true)
    expect(detail).toContain('the boundary of session s, whose turn 3 is no longer there, was cleared')
    expect(scratch.ckpt('verify').problems).toEqual([])
    expect(scratch.ckpt('doctor').ok).toBe(true)
    expect(fs.existsSync(read)).toBe(false)
  }
  mends()
  // One that was left when history was mended.
  fs.writeFileSync(fileOf(scratch, 'ckpt/@main/s/boundary'), `${boundary}\n`)
  fs.writeFileSync(read, marker)
  writtenDown(scratch)
  expect(scratch.tryCkpt('verify').code).toBe(7)
  expect(finding(scratch.tryCkpt('doctor').document, 'boundary')).toMatchObject({
    ok: false,
    detail: 'the boundary of session s hides turn 3, which is not in its live chain',
    mend: 'ckpt doctor --fix',
  })
  mends()
  expect(scratch.tryCkpt('redo').code).toBe(3)
  expect(scratch.read('a.txt')).toBe('2\n')
})

test('a boundary with a later turn that is not in the live chain is found, and cleared rather than redone', () => {
  const scratch = threeTurns()
  scratch.ckpt('undo', '--turns', '2')
  const live = 'refs/ckpt/@main/s/live'
  inStore(scratch, 'update-ref', live, scratch.ckpt('show', '2').turn.after)
  writtenDown(scratch)
  const said = 'the boundary of session s hides turn 3, which is not in its live chain'
  expect(scratch.tryCkpt('verify').document.problems).toEqual([`boundary: ${said}`])
  expect(finding(scratch.tryCkpt('doctor').document, 'boundary')).toMatchObject({ ok: false, detail: said })
  const { code, document } = scratch.tryCkpt('redo')
  expect([code, document.error.code]).toEqual([3, 'NOTHING_TO_REDO'])
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(scratch.read('a.txt')).toBe('1\n')
})

test('a journal whose contents are gone is named by every command, and set aside by doctor --fix', () => {
  const scratch = threeTurns()
  const lost = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live~2:a.txt')
  const post = { kind: 'present', type: 'file', mode: 0o644, oid: lost }
  const body = JSON.stringify({
    ...{ version: 1, op: 'undo', nonce: '0123456789ab', session: 's', time: '2026-01-01T00:00:00.000Z' },
    ...{ entries: [{ path: 'a.txt', pre: { kind: 'absent' }, post }], removable: [], directoryMode: 0o755 },
    ...{ refs: [], marker: null },
  })
  const sum = createHash('sha256').update(body).digest('hex')
  const journal = path.join(ownDirectory(scratch), 'journal.json')
  fs.writeFileSync(journal, `${sum}\n${body}\n`)
  removeObject(scratch, lost)
  for (const args of [['status'], ['undo'], ['mark', 'prompt', '--session', 's']]) {
    const { code, document } = scratch.tryCkpt(...args)
    expect([args, code, document.error.code]).toEqual([args, 7, 'DAMAGED'])
    expect(document.error.hints.join()).toContain('ckpt doctor --fix')
  }
  expect(finding(scratch.tryCkpt('doctor').document, 'journal')).toMatchObject({ ok: false, mend: 'ckpt doctor --fix' })
  expect(finding(scratch.tryCkpt('doctor', '--fix').document, 'journal')).toMatchObject({ fixed: true })
  expect(fs.existsSync(journal)).toBe(false)
  expect(scratch.ckpt('status').unfinished).toBe(false)
  expect(scratch.read('a.txt')).toBe('3\n')
})

test('what is worth knowing but no damage leaves the exit code 0', () => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', '.gitignore': '.env\n' })
  scratch.write({ '.env': 'SECRET=1\n' })
  scratch.ckpt('snapshot')
  expect(finding(scratch.ckpt('doctor'), 'coverage')).toMatchObject({ ok: false, advice: true })
  expect(scratch.run(['doctor']).stdout).toMatch(/^note +coverage/m)
})

test('a checkpoint that ckpt would not have written is damage, and doctor names it', () => {
  const scratch = new Scratch().init()
  scratch.turn('one', () => scratch.write({ 'a.txt': 'two\n' }))
  const live = 'refs/ckpt/@main/s/live'
  const tip = inStore(scratch, 'rev-parse', live)
  const words = `${inStore(scratch, 'cat-file', 'commit', tip)}\n`
  for (const [from, to] of [
    [/Ckpt-Head: .*/, 'Ckpt-Head: foo'],
    [/Ckpt-Seq: .*/, 'Ckpt-Seq: 9007199254740992'],
    [/\nauthor/, `\nparent ${tip}\nauthor`],
  ] as const) {
    const file = path.join(scratch.base, 'commit')
    fs.writeFileSync(file, words.replace(/parent .*/, `parent ${tip}`).replace(from, to))
    const id = inStore(scratch, 'hash-object', '-t', 'commit', '-w', '--literally', file)
    inStore(scratch, 'update-ref', live, id)
    for (const args of [['doctor'], ['verify'], ['mark', 'prompt', '--session', 's'], ['doctor', '--fix']]) {
      const { code, document } = scratch.tryCkpt(...args)
      expect([args, code]).toEqual([args, 7])
      expect(JSON.stringify(document)).toContain(id)
      expect(JSON.stringify(document)).not.toContain('INTERNAL')
    }
    inStore(scratch, 'update-ref', live, tip)
  }
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test.each(['redo --all', 'accept'])('what an undo set out from, lost while it is pending, is told until %s', (way) => {
  const scratch = new Scratch().init({ 'a.txt': 'one\n' })
  for (const text of ['two\n', 'three\n']) scratch.turn('work', () => scratch.write({ 'a.txt': text }))
  scratch.ckpt('undo')
  removeObject(scratch, 'refs/ckpt/@main/s/boundary^')
  for (const args of [['doctor'], ['doctor', '--fix'], ['doctor']]) {
    const { code, document } = scratch.tryCkpt(...args)
    expect([code, finding(document, 'boundary')]).toEqual([
      7,
      expect.objectContaining({ ok: false, mend: 'ckpt redo --all --session s, or ckpt accept --session s' }),
    ])
  }
  scratch.ckpt(...way.split(' '))
  expect(scratch.read('a.txt')).toBe(way === 'accept' ? 'two\n' : 'three\n')
  expect([scratch.tryCkpt('doctor', '--fix').code, scratch.ckpt('verify').problems]).toEqual([0, []])
})

test('while somebody is at work doctor waits: what is half done is neither cut short nor moved by a stranger', async () => {
  const scratch = threeTurns()
  const live = inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live').trim()
  const looking = await withLock(
    realEnv(),
    { path: path.join(ownDirectory(scratch), 'lock'), command: 'undo', wait: 0 },
    async () => {
      inStore(scratch, 'update-ref', 'refs/ckpt/@main/s/live', `${live}^`)
      const doctor = spawn(process.execPath, [PROGRAM, 'doctor', '--json'], { cwd: scratch.root, env: scratch.vars })
      await new Promise((resolve) => setTimeout(resolve, 1500))
      inStore(scratch, 'update-ref', 'refs/ckpt/@main/s/live', live)
      return { said: doctor.stdout.setEncoding('utf8').toArray() }
    },
  )
  const document = JSON.parse((await looking.said).join(''))
  expect(['refs', 'journal'].map((name) => finding(document, name).ok)).toEqual([true, true])
})

test('a store that others can look into, as a copy may leave it, is closed again', () => {
  const scratch = new Scratch().init()
  scratch.turn('work', () => scratch.write({ 'a.txt': 'two\n' }))
  const mode = () => fs.statSync(scratch.at('.git/ckpt')).mode & 0o777
  const stores = () => scratch.ckpt('doctor').findings.filter(({ name }: Json) => name === 'store')
  expect(stores()).toHaveLength(1)
  fs.chmodSync(scratch.at('.git/ckpt'), 0o755)
  expect(stores()[1]).toMatchObject({ ok: false, advice: true, mend: 'ckpt doctor --fix' })
  expect(mode()).toBe(0o755)
  expect(scratch.ckpt('doctor', '--fix').findings.filter((one: Json) => one.fixed)).toMatchObject([{ name: 'store' }])
  expect([mode(), stores().length]).toEqual([0o700, 1])
})

test('a prompt that is damaged is done without, and what is left of it is gone with the same doctor', () => {
  const scratch = threeTurns()
  const prompt = createHash('sha1').update('blob 6\0work 2').digest('hex')
  const file = looseFile(scratch, prompt)
  fs.chmodSync(file, 0o600)
  fs.truncateSync(file, 9)
  expect(scratch.tryCkpt('verify').code).toBe(7)
  expect(scratch.ckpt('doctor', '--fix').findings.filter(({ ok }: Json) => !ok)).toEqual([])
  expect([scratch.run(['doctor']).code, scratch.run(['verify']).code]).toEqual([0, 0])
  expect(turns(scratch)).toEqual(['3', '2', '1'])
})

test('what is at work is not cut short: doctor says so, and verify that it is busy', () => {
  const scratch = threeTurns()
  const ckpt = `exec '${process.execPath}' '${PROGRAM}'`
  const looked = (name: string) => `{ (${ckpt} ${name} --json) >../${name}.json; echo $? >../${name}.code; } &`
  // Amid its writing: the journal is there, and the undo waits for those that look.
  const run = `${['verify', 'doctor', 'status'].map(looked).join(' ')} wait`
  const vars = amid(scratch, [{ call: 'renameSync', on: 'a\\.txt$', when: 'before', run }])
  expect(scratch.runApart(['undo'], { vars }).code).toBe(0)
  const read = (name: string) => fs.readFileSync(scratch.at(`../${name}`), 'utf8')
  const document = (name: string) => JSON.parse(read(`${name}.json`))
  const { error } = document('verify')
  expect([read('verify.code'), error.code, error.message]).toEqual(['8\n', 'LOCKED', expect.stringContaining('(undo')])
  expect(read('doctor.code')).toBe('0\n')
  expect(finding(document('doctor'), 'journal')).toEqual({
    name: 'journal',
    ok: true,
    detail: 'an operation is at work',
  })
  expect(document('status')).toMatchObject({ unfinished: false })
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('markers that wait are told of, and what lies among them and is none', () => {
  const scratch = threeTurns()
  expect(finding(scratch.ckpt('doctor'), 'markers')).toBeUndefined()
  const directory = path.join(ownDirectory(scratch), 'markers')
  fs.mkdirSync(directory, { recursive: true })
  const marker = { event: 'prompt', session: 'left', text: 'left as a file' }
  const file = JSON.stringify({ version: 1, id: 'one', client: 'test', time: new Date().toISOString(), marker })
  fs.writeFileSync(path.join(directory, 'one.json'), file)
  fs.writeFileSync(path.join(directory, 'two.txt'), file)
  fs.writeFileSync(Buffer.from(`${directory}/caf\xe9.json`, 'latin1'), file)
  fs.writeFileSync(path.join(directory, '.one.json.swp'), '')
  const said = () => scratch.ckpt('doctor').findings.filter(({ name }: Json) => name === 'markers')
  expect(said()).toEqual([
    expect.objectContaining({ ok: false, advice: true, detail: 'a marker waits to be recorded' }),
    expect.objectContaining({ ok: false, advice: true, detail: expect.stringContaining('caf\ufffd.json, two.txt') }),
  ])
  scratch.ckpt('status')
  expect(said()).toEqual([expect.objectContaining({ detail: expect.stringContaining('two.txt') })])
})
