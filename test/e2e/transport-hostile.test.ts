// Bundles that a stranger made.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { Scratch } from '../support/scratch.ts'
import { cloneOf, twoTurns } from '../support/transport.ts'

const me = { GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@b' }

interface Made {
  tree?: string
  /** The boundary's record, or what lies beside the checkpoint. */
  blob?: string
  /** The commit's bytes. */
  words?: (commit: string) => string
  manifest?: (one: any) => any
}

/** What the bundle of a stranger may hold: one checkpoint of a good one, made over. */
class Forgery {
  readonly #git: (args: string[], input?: Buffer | string) => string
  readonly #ref: string
  /** What the good one holds. */
  readonly #good: string

  constructor(scratch: Scratch, bundle: string) {
    const gitDir = path.join(scratch.base, `forged-${path.basename(bundle)}`)
    execFileSync('git', ['init', '-q', '--bare', gitDir], { env: scratch.vars })
    this.#git = (args, input = '') =>
      execFileSync('git', [`--git-dir=${gitDir}`, ...args], { env: { ...scratch.vars, ...me }, input }).toString(
        'latin1',
      )
    this.#git(['fetch', '-q', bundle, '+refs/*:refs/*'])
    ;[this.#ref, this.#good] = this.#git(['for-each-ref', '--format=%(refname) %(objectname)']).trim().split(' ') as [
      string,
      string,
    ]
  }

  blob = (text: string) => this.#git(['hash-object', '-w', '--stdin'], Buffer.from(text, 'latin1')).trim()
  get manifest() {
    return JSON.parse(this.#git(['cat-file', 'blob', `${this.#good}:manifest.json`]))
  }

  /** A tree with names that git itself would not make. */
  tree(...names: [mode: string, name: string, oid: string][]): string {
    const bytes = names.map(([mode, name, oid]) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`, 'latin1'), Buffer.from(oid, 'hex')]),
    )
    return this.#git(['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], Buffer.concat(bytes)).trim()
  }

  /** The bundle with another commit in the place of its newest checkpoint, and whatever else. */
  write(file: string, { tree, blob, words = (one) => one, manifest = (one) => one }: Made): string {
    const { manifest: old } = this
    const live = old.refs.find(({ leaf }: { leaf: string }) => leaf === 'live')!.id
    const fan = (id: string) => `${id.slice(0, 2)}/${id.slice(2)}`
    const commit = words(
      this.#git(['cat-file', 'blob', `${this.#good}:commits/${fan(live)}`]).replace(
        /^tree .*/,
        tree ? `tree ${tree}` : '$&',
      ),
    )
    const id = this.#git(
      ['hash-object', '-t', 'commit', '--literally', '--stdin'],
      Buffer.from(commit, 'latin1'),
    ).trim()
    const text = JSON.stringify(manifest(JSON.parse(JSON.stringify(old).replaceAll(live, id))))
    const inline = (name: string, bytes: string) => `M 100644 inline ${name}\ndata ${bytes.length}\n${bytes}\n`
    const made = [
      `commit ${this.#ref}\ncommitter A <a@b> 0 +0000\ndata 1\nx\n`,
      `M 040000 ${this.#git(['rev-parse', `${this.#good}^{tree}`]).trim()} \n`,
      inline(`commits/${fan(id)}`, commit),
      tree ? `M 040000 ${tree} trees/${fan(tree)}\n` : '',
      blob ? `M 100644 ${blob} beside/${fan(blob)}\n` : '',
      inline('manifest.json', text),
    ]
    this.#git(['fast-import', '--quiet', '--force'], Buffer.from(made.join(''), 'latin1'))
    this.#git(['bundle', 'create', '-q', file, this.#ref])
    return file
  }
}

test('a bundle with a damaged ref, of a name that is not UTF-8, is refused in words, and nothing of it stays', () => {
  const here = twoTurns()
  const bundle = path.join(here.base, 'good.bundle')
  here.ckpt('export', bundle)
  const bytes = fs.readFileSync(bundle)
  bytes[bytes.indexOf('refs/ckpt/') + 12]! |= 0x80
  fs.writeFileSync(bundle, bytes)
  const there = cloneOf(here)
  there.ckpt('snapshot')
  const { code, document } = there.tryCkpt('import', bundle)
  const message = `${bundle} holds no checkpoints. Nothing was changed.`
  expect([code, document.error]).toMatchObject([7, { code: 'DAMAGED', message }])
  const temporary = path.join(there.base, 'tmp')
  fs.mkdirSync(temporary)
  const checked = there.run(['verify', '--bundle', bundle, '--json'], { vars: { TMPDIR: temporary } })
  expect([checked.code, JSON.parse(checked.stdout).problems]).toEqual([7, [expect.stringContaining('no checkpoints')]])
  expect(fs.readdirSync(temporary)).toEqual([])
  expect(fs.readdirSync(there.at('.git/ckpt')).filter((name) => name.startsWith('parcel'))).toEqual([])
})

test('the bundle of a stranger: nothing in it leads out of the worktree, into a git directory, or to other refs', () => {
  const here = twoTurns()
  const good = path.join(here.base, 'good.bundle')
  here.ckpt('export', good)
  const earlier = here.ckpt('show', '1:after').checkpoint.id
  const there = cloneOf(here)
  const state = there.gitState()
  const disk = there.manifest()
  const forgery = new Forgery(here, good)
  const evil = (make: (forgery: Forgery) => Made) => forgery.write(path.join(here.base, 'evil.bundle'), make(forgery))
  const hook = (one: Forgery) => one.tree(['100755', 'post-checkout', one.blob('#!/bin/sh\ntouch pwned\n')])
  const blob = (one: Forgery) => one.blob('x\n')
  const trailer = (key: string, value: string) => (one: string) =>
    one.replace(new RegExp(`Ckpt-${key}: .*`), `Ckpt-${key}: ${value}`)
  const live = (one: any) => one.refs.find((ref: any) => ref.leaf === 'live').id
  const pending = (one: any) => ({ ...one, refs: [...one.refs, { leaf: 'boundary', id: live(one) }] })
  const unit = (turn: number, mode = 0o750) => ({
    turn,
    step: null,
    changes: [['made/', { kind: 'directory', mode }, { kind: 'absent' }]],
  })
  /** Undone, and the session's branch ends elsewhere. */
  const ending = (one: Forgery, branch: (refs: any[]) => any[]): Made => {
    const made = record(one, {})
    return { ...made, manifest: (told) => ({ ...pending(told), refs: branch(pending(told).refs) }) }
  }
  const beside = (one: Forgery, more: object): Made => {
    const told = { version: 1, defaults: [420, 493, 493], modes: [], empty: [], uncovered: [], ignored: [] }
    const blob = one.blob(JSON.stringify({ ...told, ...more }))
    return { blob, words: trailer('Beside', blob) }
  }
  const record = (one: Forgery, more: object): Made => {
    const baseline = live(one.manifest)
    const told = { version: 1, session: 's', turn: 2, step: null, messageId: null, baseline, units: [unit(2)] }
    const blob = one.blob(JSON.stringify({ ...told, ...more }))
    return { blob, words: (commit) => commit.replace('Ckpt-Seq', `Ckpt-Record: ${blob}\nCkpt-Seq`), manifest: pending }
  }
  const cases: Record<string, (one: Forgery) => Made> = {
    'a git directory': (one) => ({ tree: one.tree(['40000', '.git', hook(one)]) }),
    'one in other letters': (one) => ({ tree: one.tree(['40000', '.GiT', hook(one)]) }),
    'the directory above': (one) => ({ tree: one.tree(['40000', '..', hook(one)]) }),
    'a path as a name': (one) => ({ tree: one.tree(['100644', '../outside', blob(one)]) }),
    'from the root': (one) => ({ tree: one.tree(['100644', '/outside', blob(one)]) }),
    'deep down': (one) => ({ tree: one.tree(['40000', 'dir', one.tree(['40000', '.git', hook(one)])]) }),
    'a name twice': (one) => ({ tree: one.tree(['120000', 'd', one.blob('/')], ['40000', 'd', hook(one)]) }),
    'a submodule': (one) => ({ tree: one.tree(['160000', 'sub', '1'.repeat(40)]) }),
    'an object that is not there': (one) => ({ tree: one.tree(['100644', 'x', '1'.repeat(40)]) }),
    'a ref elsewhere': () => ({
      manifest: (one) => ({ ...one, refs: one.refs.map((ref: any) => ({ ...ref, leaf: '../../../heads/main' })) }),
    }),
    'a worktree elsewhere': () => ({ manifest: (one) => ({ ...one, worktree: '../../x' }) }),
    'a manifest of nothing': () => ({ manifest: () => null }),
    'a manifest of no time': () => ({ manifest: (one) => ({ ...one, time: 'foo' }) }),
    'the last number there is': () => ({ words: trailer('Seq', '9007199254740991') }),
    'a place before that of its parent': () => ({ words: trailer('Seq', '1') }),
    'a turn that nobody can ask for': () => ({ words: trailer('Turn', '999999999') }),
    'a turn that is no number': () => ({ words: trailer('Turn', 'foo') }),
    'a time that is none': () => ({ words: trailer('Time', 'foo') }),
    'a HEAD that is no id': () => ({ words: trailer('Head', 'foo') }),
    'a session of control characters': () => ({ words: trailer('Session', 's%0A') }),
    'a second parent': () => ({ words: (one) => one.replace('\nauthor', `\nparent ${'1'.repeat(40)}\nauthor`) }),
    'a second tree': () => ({ words: (one) => `tree ${'1'.repeat(40)}\n${one}` }),
    'a boundary that has no record': () => ({ manifest: pending }),
    'a baseline that is not there': (one) => record(one, { baseline: '1'.repeat(40) }),
    'a baseline that is none': (one) => record(one, { baseline: 'foo' }),
    'the record of another session': (one) => record(one, { session: 'other' }),
    'a record of no turn': (one) => record(one, { turn: 'foo' }),
    'a record of changes that are none': (one) => record(one, { units: [{ turn: 2, step: null, changes: [['x']] }] }),
    'the beginning of no turn': () => ({
      words: (one) => one.replace('Ckpt-Kind: after', 'Ckpt-Kind: before').replace(/Ckpt-Turn: .*\n/, ''),
    }),
    'a step without its place': () => ({ words: trailer('Kind', 'step') }),
    'a record of nothing': (one) => record(one, { units: [] }),
    'a record of a turn that is not there': (one) => record(one, { turn: 9 }),
    'changes of a turn that is not there': (one) => record(one, { units: [unit(2), unit(9)] }),
    'a record of a mode below all': (one) => record(one, { units: [unit(2, -1)] }),
    'a record of a mode above all': (one) => record(one, { units: [unit(2, 0o10000)] }),
    'what is undone, of a branch that ends before it': (one) =>
      ending(one, (refs) => refs.map((ref) => (ref.leaf === 'live' ? { ...ref, id: earlier } : ref))),
    'what is undone, of no branch': (one) => ending(one, (refs) => refs.filter(({ leaf }) => leaf !== 'live')),
    'a coverage list of no paths': (one) => beside(one, { empty: [1] }),
    'a coverage list of modes that are none': (one) => beside(one, { modes: [['a.txt', 2 ** 53]] }),
    'a coverage list of defaults that are none': (one) => beside(one, { defaults: [420, -1, 493] }),
  }
  for (const [i, [name, make]] of Object.entries(cases).entries()) {
    let file: string
    try {
      file = evil(make)
    } catch (error) {
      if (name === 'an object that is not there') continue // git makes no such bundle
      throw error
    }
    // All three go by the same checks: in turn.
    const three = [
      ['import', file],
      ['verify', '--bundle', file],
      ['pull', path.join(here.base, 'forged-good.bundle')],
    ] as const
    const command = three[i % 3]!
    const { code, document } = there.tryCkpt(...command)
    expect([name, command[0], code, JSON.stringify(document)]).toEqual([
      name,
      command[0],
      7,
      expect.not.stringContaining('INTERNAL'),
    ])
    expect([name, there.ckpt('list', '--sessions').sessions]).toEqual([name, []])
  }
  expect([there.gitState(), there.manifest()]).toEqual([state, disk])
  // Where git itself is told to look at what it fetches.
  evil(cases['the directory above']!)
  there.git('config', '--global', 'transfer.fsckObjects', 'true')
  const refused = there.tryCkpt('pull', path.join(here.base, 'forged-good.bundle'))
  expect([refused.code, refused.document.error.message]).toEqual([
    7,
    expect.stringMatching(/^git refused what the rem/),
  ])
  there.git('config', '--global', '--unset', 'transfer.fsckObjects')
  // The same hands, with nothing evil in it: that is taken in.
  const undone = cloneOf(here)
  undone.ckpt(
    'import',
    evil((one) => record(one, { baseline: earlier })),
  )
  expect(undone.ckpt('verify').problems).toEqual([])
  expect(undone.ckpt('redo', '--force').turns).toEqual([2])
  expect(fs.statSync(undone.at('made')).mode & 0o7777).toBe(0o750)
  const fine = evil((one) => ({ tree: one.tree(['100644', 'fine.txt', blob(one)]) }))
  there.ckpt('import', fine)
  expect(there.ckpt('verify').problems).toEqual([])
  there.ckpt('restore', '2', '--force', '--exact')
  expect(there.read('fine.txt')).toBe('x\n')
})
