// Objects that the store has lost: what is told of them, where they are had again, and that all else goes on.
import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'
import { corruptObject, inStore, looseFile, removeObject, storeOf } from '../support/store-surgery.ts'

/** Turn 1 by two steps, turn 2 by one, turn 3 undone; a directory with a mode of its own. */
function threeTurns(): Scratch {
  const scratch = new Scratch().init({ 'a.txt': 'base\n', 'sub/s.txt': 's\n' })
  const mark = (...args: string[]) => scratch.ckpt('mark', ...args, '--session', 's')
  mark('prompt', '--text', 'first')
  scratch.write({ 'n.txt': 'one\n' })
  mark('step', '--tool', 'Write')
  fs.chmodSync(scratch.at('sub'), 0o700)
  scratch.write({ 'n.txt': 'two\n' })
  mark('step', '--tool', 'Bash')
  mark('stop')
  mark('prompt', '--text', 'second')
  scratch.write({ 'n.txt': 'two\nthree\n' })
  scratch.remove('a.txt')
  mark('step', '--tool', 'Bash')
  mark('stop')
  scratch.turn('third', () => scratch.write({ 'sub/t.txt': 'more\n' }))
  scratch.ckpt('undo')
  return scratch
}

interface Part {
  oid: string
  type: string
}

/** Of what a ref reaches, but commits: two of each kind, by its type and the name that git finds it under. */
function parts(scratch: Scratch): Part[] {
  const kinds = new Map<string, Part[]>()
  for (const row of inStore(scratch, 'rev-list', '--objects', '--all').split('\n')) {
    const [oid, name = ''] = row.split(' ') as [string, string?]
    const type = inStore(scratch, 'cat-file', '-t', oid)
    const kind = `${type} ${name.replace(/^[0-9a-f]{2}(?=$|\/)/, '..').replace(/[0-9a-f]{38}$/, '…')}`
    const alike = kinds.get(kind) ?? []
    if (type !== 'commit' && alike.length < 2) kinds.set(kind, [...alike, { oid, type }])
  }
  return [...kinds.values()].flat()
}

/** Removes an object, looks, and puts it back. */
function without<T>(scratch: Scratch, oid: string, look: () => T): T {
  const file = looseFile(scratch, oid)
  const aside = `${scratch.base}/aside`
  fs.renameSync(file, aside)
  try {
    return look()
  } finally {
    fs.renameSync(aside, file)
  }
}

const doctor = (scratch: Scratch, ...more: string[]): { code: number; mend: string; detail: string } => {
  const { code, document } = scratch.tryCkpt('doctor', ...more)
  const finding = document.findings.find((one: { name: string }) => one.name === 'objects')
  return { code, mend: finding?.mend ?? '', detail: finding?.detail ?? '' }
}

test('whichever part of a checkpoint is lost, list and log tell all turns; doctor says what it is of', () => {
  const scratch = threeTurns()
  // A boundary whose record is lost hides what cannot be told; refs to nothing are another matter.
  const tops = inStore(scratch, 'for-each-ref', '--format=%(objectname)').split('\n')
  const record = /^Ckpt-Record: (.*)$/m.exec(inStore(scratch, 'cat-file', '-p', 'refs/ckpt/@main/s/boundary'))![1]!
  const silent: string[] = []
  for (const { oid, type } of parts(scratch)) {
    if (tops.includes(oid)) continue
    without(scratch, oid, () => {
      const found = scratch.tryCkpt('doctor')
      expect([oid, found.code]).toEqual([oid, 7])
      if (oid === record) return
      const { turns, warnings } = scratch.ckpt('list', '--hidden')
      expect(turns.map((one: { n: number }) => one.n)).toEqual([3, 2, 1])
      expect(scratch.ckpt('log').sessions[0].turns).toHaveLength(3)
      if (warnings.length === 0) silent.push(type)
    })
  }
  // Contents that no count needs, and rows that only keep objects.
  expect(silent.length).toBeLessThan(8)
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a content that was committed, or is on disk, is written again: by doctor --fix and by undo itself', () => {
  const scratch = threeTurns()
  scratch.ckpt('redo')
  removeObject(scratch, 'refs/ckpt/@main/s/live:n.txt') // on disk
  const committed = scratch.git('rev-parse', 'HEAD:a.txt').trim()
  corruptObject(scratch, committed)
  expect(doctor(scratch)).toMatchObject({ code: 7, mend: 'ckpt doctor --fix' })
  const fixed = doctor(scratch, '--fix')
  expect(fixed.code).toBe(0)
  expect(fixed.detail).toContain('a.txt before turn 1 of session s was written again')
  expect(fixed.detail).toContain('n.txt in turn 2 of session s was written again')
  expect(scratch.ckpt('verify').problems).toEqual([])
  corruptObject(scratch, committed)
  expect(scratch.ckpt('undo', '--turns', '2', '--dry-run').warnings).toEqual([])
  scratch.ckpt('undo')
  scratch.ckpt('undo')
  expect(scratch.read('a.txt')).toBe('base\n')
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a directory that is lost and is as it was on disk is written again', () => {
  const scratch = threeTurns()
  removeObject(scratch, 'refs/ckpt/@main/s/boundary^{tree}:sub')
  expect(doctor(scratch, '--fix')).toMatchObject({ code: 0, detail: expect.stringContaining('sub/') })
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a content that is nowhere: undo names the file, the rest is undone, and forgetting it makes the store whole', () => {
  const scratch = threeTurns()
  scratch.ckpt('accept')
  scratch.turn('fourth', () => scratch.write({ 'n.txt': 'four\n', 'b.txt': 'b\n' }))
  scratch.turn('fifth', () => scratch.write({ 'n.txt': 'five\n' }))
  removeObject(scratch, inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live~2:n.txt'))
  const before = scratch.manifest()
  const refused = scratch.tryCkpt('undo')
  expect([refused.code, refused.document.error.code]).toEqual([7, 'DAMAGED'])
  expect(refused.document.error.message).toBe('The store has lost the content of n.txt. Nothing was changed.')
  const lost = 'It would be refused: the store has lost the content of n.txt.'
  expect(scratch.ckpt('undo', '--dry-run').warnings).toEqual([lost])
  expect(scratch.ckpt('restore', '4', '--dry-run').warnings).toEqual([lost])
  expect(scratch.run(['undo', '--dry-run'])).toMatchObject({
    stdout: expect.not.stringContaining('ckpt apply'), // a line to run that would be refused
    stderr: `ckpt: ${lost}\n`,
  })
  expect(scratch.ckpt('undo', '--dry-run', '--only', '4', '--', 'b.txt').warnings).toEqual([])
  expect(scratch.manifest()).toEqual(before)
  const shown = scratch.tryCkpt('show', '5')
  expect([shown.code, shown.document.error.paths]).toEqual([7, ['n.txt']])
  const said = doctor(scratch, '--fix')
  expect(said).toMatchObject({ code: 7, detail: 'n.txt after turn 4 of session s is missing' })
  expect(said.mend).toContain('ckpt forget n.txt')
  expect(scratch.tryCkpt('prune').code).toBe(7)
  scratch.ckpt('forget', 'n.txt')
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(doctor(scratch).code).toBe(0)
  scratch.ckpt('prune')
  scratch.ckpt('undo')
  scratch.ckpt('undo')
  expect(scratch.exists('b.txt')).toBe(false)
  expect(scratch.read('n.txt')).toBe('five\n') // what is forgotten is never taken for absent
})

test('all files of a turn are lost: it goes with prune, and then the store is whole', () => {
  const scratch = threeTurns()
  removeObject(scratch, inStore(scratch, 'rev-parse', 'refs/ckpt/@main/s/live~4^{tree}'))
  expect(doctor(scratch, '--fix')).toMatchObject({ code: 7, mend: expect.stringContaining('ckpt prune') })
  scratch.ckpt('accept')
  scratch.turn('fourth', () => scratch.write({ 'b.txt': 'b\n' }))
  scratch.ckpt('prune', '--keep', '1')
  expect(scratch.ckpt('verify').problems).toEqual([])
  expect(doctor(scratch).code).toBe(0)
})

test('a damaged object that nothing needs is set aside', () => {
  const scratch = threeTurns()
  const file = `${scratch.base}/idle.txt`
  fs.writeFileSync(file, 'nobody needs this\n')
  const oid = inStore(scratch, 'hash-object', '-w', file)
  corruptObject(scratch, oid)
  expect(doctor(scratch)).toMatchObject({ code: 7, mend: 'ckpt doctor --fix' })
  expect(doctor(scratch, '--fix').code).toBe(0)
  expect(fs.readFileSync(`${storeOf(scratch)}/../object.damaged-${oid.slice(0, 10)}`, 'latin1')).toBe(
    'this is no object',
  )
  expect(scratch.ckpt('verify').problems).toEqual([])
})

test('a boundary whose record is lost is set aside: the turn is there, and the files are as the undo left them', () => {
  const scratch = threeTurns()
  const record = /^Ckpt-Record: (.*)$/m.exec(inStore(scratch, 'cat-file', '-p', 'refs/ckpt/@main/s/boundary'))![1]!
  removeObject(scratch, record)
  const before = scratch.manifest()
  expect(scratch.tryCkpt('mark', 'prompt', '--session', 's', '--text', 'four').code).toBe(7)
  scratch.tryCkpt('doctor', '--fix')
  expect(scratch.manifest()).toEqual(before)
  scratch.turn('fourth', () => scratch.write({ 'b.txt': 'b\n' }))
  expect(scratch.ckpt('list').turns.map((one: { n: number }) => one.n)).toEqual([4, 3, 2, 1])
  scratch.ckpt('undo')
  scratch.ckpt('restore', '3')
  expect(scratch.read('sub/t.txt')).toBe('more\n')
})

describe.each(['damaged', 'gone'])('prompts whose tree is %s', (how) => {
  const lose = (scratch: Scratch) => {
    const file = looseFile(scratch, 'refs/notes/ckpt/@main^{tree}')
    const bytes = fs.readFileSync(file)
    fs.unlinkSync(file)
    if (how === 'damaged') fs.writeFileSync(file, 'this is no object')
    return () => {
      if (how === 'damaged') fs.unlinkSync(file)
      fs.writeFileSync(file, bytes)
    }
  }
  const lost = 'Prompts of this worktree are damaged, and left out: ckpt doctor --fix'
  const notKept = 'Prompts of this worktree are damaged, and this one was not kept: ckpt doctor --fix'

  test('undo, redo and what only reads do without them', () => {
    const scratch = threeTurns()
    lose(scratch)
    expect(scratch.ckpt('list').warnings).toEqual([lost])
    expect(scratch.ckpt('show', '2').turn.prompt).toMatch(/^Checkpoint at/)
    expect(scratch.ckpt('blame', 'n.txt').lines).toHaveLength(2)
    expect(scratch.ckpt('undo', '--dry-run').warnings).toContain(lost)
    expect(scratch.ckpt('undo')).toMatchObject({ turns: [2], restoredPrompt: null })
    expect(scratch.read('a.txt')).toBe('base\n')
    scratch.ckpt('redo', '--all')
    expect(scratch.read('sub/t.txt')).toBe('more\n')
    expect(scratch.ckpt('undo', '--', 'sub/t.txt').warnings).toContain(notKept)
    expect(scratch.tryCkpt('verify').code).toBe(7)
    scratch.ckpt('doctor', '--fix')
    expect(scratch.ckpt('verify').problems).toEqual([])
  })

  test('a marker is recorded without its prompt, the others are not given up', () => {
    const scratch = threeTurns()
    const back = lose(scratch)
    expect(scratch.ckpt('mark', 'prompt', '--session', 't', '--text', 'x')).toMatchObject({ turn: 1 })
    const again = scratch.ckpt('mark', 'prompt', '--session', 't', '--text', 'x')
    expect([again.turn, again.warnings]).toEqual([2, [notKept]])
    expect(scratch.ckpt('snapshot', '-m', 'x').warnings).toEqual([notKept])
    expect(scratch.tryCkpt('verify').code).toBe(7)
    back()
    expect(scratch.ckpt('list', '--session', 's').turns[0].prompt).toBe('second')
    expect(scratch.ckpt('verify').problems).toEqual([])
  })
})

test('objects that are there, in files that go on after their end, are written again, and nothing is lost', () => {
  const scratch = threeTurns()
  const before = scratch.ckpt('list')
  const oids = inStore(scratch, 'rev-list', '--objects', '--no-object-names', '--all').split('\n').filter(Boolean)
  const loose = oids.map((oid) => looseFile(scratch, oid)).filter((file) => fs.existsSync(file))
  expect(loose.length).toBeGreaterThan(20)
  for (const kind of ['one', 'all'] as const) {
    for (const file of kind === 'one' ? loose.slice(-1) : loose) {
      fs.chmodSync(file, 0o600)
      fs.appendFileSync(file, '\0')
    }
    expect(scratch.tryCkpt('verify').code).toBe(7)
    expect(scratch.tryCkpt('doctor').document.findings.map(({ mend }: { mend?: string }) => mend)).toContain(
      'ckpt doctor --fix',
    )
    expect(doctor(scratch, '--fix').detail).toContain('whose file held more than it, was written again')
    scratch.ckpt('verify')
    expect(scratch.ckpt('list')).toEqual(before)
  }
  scratch.ckpt('redo')
  expect(scratch.read('sub/t.txt')).toBe('more\n')
  scratch.ckpt('undo', '--turns', '3')
  expect(scratch.read('a.txt')).toBe('base\n')
})
