/** The gate, with real git: while something is undone, no command that makes a commit passes by, and each way out works. */
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { gateScratch, head, makePending, patchOf, tryGit } from '../support/gate.ts'
import { PROGRAM, Scratch } from '../support/scratch.ts'

interface Operation {
  name: string
  /** On which branch it starts; main unless told. */
  on?: string
  prepare?: (scratch: Scratch) => void
  args: (scratch: Scratch) => string[]
  /** The same with --no-verify; null where git has no such option. */
  noVerify: ((scratch: Scratch) => string[]) | null
  /** What the refusal says to clear with; null: git leaves nothing behind. */
  clear: string[] | null
}

const plain = (...args: string[]) => ({ args: () => args })
const stage = (scratch: Scratch) => {
  scratch.write({ 'mine.txt': 'mine\n' })
  scratch.git('add', 'mine.txt')
}
const unstage = ['reset', '-q', '--hard']

const operations: Operation[] = [
  {
    name: 'commit',
    prepare: stage,
    ...plain('commit', '-m', 'mine'),
    noVerify: () => ['commit', '--no-verify', '-m', 'mine'],
    clear: null,
  },
  {
    name: 'commit of everything',
    prepare: (scratch) => scratch.write({ 'a.txt': 'mine\n' }),
    ...plain('commit', '-am', 'mine'),
    noVerify: () => ['commit', '-anm', 'mine'],
    clear: null,
  },
  {
    name: 'amend',
    prepare: stage,
    ...plain('commit', '--amend', '--no-edit'),
    noVerify: () => ['commit', '--amend', '--no-edit', '--no-verify'],
    clear: null,
  },
  {
    name: 'merge',
    ...plain('merge', '--no-edit', 'side'),
    noVerify: () => ['merge', '--no-edit', '--no-verify', 'side'],
    clear: ['merge', '--abort'],
  },
  {
    name: 'merge after a conflict',
    prepare: (scratch) => {
      expect(tryGit(scratch, ['merge', 'clash']).code).toBe(1)
      scratch.write({ 'c.txt': 'both\n' })
      scratch.git('add', 'c.txt')
    },
    ...plain('merge', '--continue'),
    noVerify: () => ['commit', '--no-verify', '--no-edit'],
    clear: ['merge', '--abort'],
  },
  { name: 'cherry-pick', ...plain('cherry-pick', 'side'), noVerify: null, clear: ['cherry-pick', '--abort'] },
  {
    name: 'cherry-pick of several',
    ...plain('cherry-pick', 'side~2..side'),
    noVerify: null,
    clear: ['cherry-pick', '--abort'],
  },
  {
    name: 'cherry-pick after a conflict',
    prepare: (scratch) => {
      expect(tryGit(scratch, ['cherry-pick', 'clash']).code).toBe(1)
      scratch.write({ 'c.txt': 'both\n' })
      scratch.git('add', 'c.txt')
    },
    ...plain('cherry-pick', '--continue'),
    noVerify: () => ['commit', '--no-verify', '--no-edit'],
    clear: ['cherry-pick', '--abort'],
  },
  { name: 'revert', ...plain('revert', '--no-edit', 'HEAD'), noVerify: null, clear: ['reset', '--merge'] },
  {
    name: 'revert with an editor',
    ...plain('revert', '--edit', 'HEAD'),
    noVerify: null,
    clear: ['reset', '--merge'],
  },
  {
    name: 'revert of several',
    ...plain('revert', '--no-edit', 'HEAD', 'HEAD~1'),
    noVerify: null,
    clear: ['revert', '--abort'],
  },
  {
    name: 'rebase',
    on: 'side',
    ...plain('rebase', 'main'),
    noVerify: () => ['rebase', '--no-verify', 'main'],
    clear: null,
  },
  {
    name: 'rebase by patches',
    on: 'side',
    ...plain('rebase', '--apply', 'main'),
    noVerify: () => ['rebase', '--no-verify', '--apply', 'main'],
    clear: null,
  },
  {
    name: 'am',
    args: (scratch) => ['am', '-q', patchOf(scratch)],
    // Newer ones have it.
    noVerify: /verify/.test(`${spawnSync('git', ['am', '-h'], { encoding: 'utf8' }).output}`)
      ? (scratch) => ['am', '-q', '--no-verify', patchOf(scratch)]
      : null,
    clear: ['am', '--abort'],
  },
]

for (const { name, on = 'main', prepare, args, noVerify, clear } of operations) {
  test(`row 32: ${name}: passes when nothing is pending; is refused when something is; git is left as it was; each way round it works`, () => {
    const scratch = gateScratch()
    scratch.git('checkout', '-q', on)
    const start = head(scratch)
    const again = () => {
      scratch.git('reset', '-q', '--hard', start)
      prepare?.(scratch)
    }
    scratch.ckpt('hooks', 'install')
    again()
    expect(tryGit(scratch, args(scratch)).code).toBe(0)
    expect(head(scratch)).not.toBe(start)

    scratch.git('reset', '-q', '--hard', start)
    makePending(scratch)
    const clean = { files: scratch.manifest(), status: scratch.git('status', '--porcelain') }
    again()
    const before = { files: scratch.manifest(), status: scratch.git('status', '--porcelain') }
    const refused = tryGit(scratch, args(scratch))
    expect(refused.code).not.toBe(0)
    expect(head(scratch)).toBe(start)
    expect(refused.stderr).toContain('a revert boundary is pending')
    expect(refused.stderr).toContain('session s: undone from turn 1 on; hidden turns: 1,2')
    for (const way of ['ckpt redo', 'ckpt accept', 'CKPT_ALLOW_PENDING=1']) expect(refused.stderr).toContain(way)
    expect(refused.stderr.includes('--no-verify')).toBe(noVerify !== null)

    if (clear) {
      expect(refused.stderr).toContain(`git ${clear.join(' ')}`)
      const cleared = tryGit(scratch, clear)
      expect([cleared.code, cleared.stderr]).toEqual([0, ''])
      expect({ files: scratch.manifest(), status: scratch.git('status', '--porcelain') }).toEqual(clean)
      expect(scratch.ckpt('status').git.busy).toBeNull()
    } else {
      expect({ files: scratch.manifest(), status: scratch.git('status', '--porcelain') }).toEqual(before)
    }

    again()
    expect(tryGit(scratch, args(scratch), { vars: { CKPT_ALLOW_PENDING: '1' } }).code).toBe(0)
    expect(head(scratch)).not.toBe(start)
    if (noVerify) {
      again()
      expect(tryGit(scratch, noVerify(scratch))).toMatchObject({ code: 0 })
      expect(head(scratch)).not.toBe(start)
    }

    scratch.git(...unstage)
    scratch.ckpt('accept')
    again()
    expect(tryGit(scratch, args(scratch)).code).toBe(0)
  })
}

test.each([
  ['commit', ['commit', '--allow-empty', '-m', 'x'], ['ckpt redo --all --session s', 'ckpt accept --session s']],
  [
    'merge',
    ['merge', '--no-edit', 'side'],
    ['ckpt accept --session s', 'git merge --abort', 'ckpt redo --all --session s'],
  ],
  [
    'cherry-pick',
    ['cherry-pick', 'side'],
    ['ckpt accept --session s', 'git cherry-pick --abort', 'ckpt redo --all --session s'],
  ],
])('row 32: %s: the ways out work as they stand there, in the middle of what git leaves too', (_, args, ways) => {
  const refused = () => {
    const scratch = gateScratch()
    scratch.ckpt('hooks', 'install')
    makePending(scratch)
    const { stderr } = tryGit(scratch, args)
    const offered = [...stderr.matchAll(/^ {2}-> ((?:ckpt|git \S+ --abort).*?) {4}/gm)].map(([, way]) => way!)
    expect(offered).toEqual(ways)
    return (way: string) => {
      const [program, ...words] = way.split(' ')
      return program === 'git' ? tryGit(scratch, words).code : scratch.run(words).code
    }
  }
  expect(refused()(ways[0]!)).toBe(0)
  const rest = ways.slice(1)
  expect(rest.map(refused())).toEqual(rest.map(() => 0))
})

test('row 32: what a refused rebase had put away comes back, as the refusal and ckpt say', () => {
  for (const flags of [['--merge'], ['--apply']]) {
    const scratch = gateScratch()
    scratch.ckpt('hooks', 'install')
    makePending(scratch)
    scratch.git('checkout', '-q', 'side')
    scratch.write({ 'd.txt': 'mine, not committed\n' })
    const { code, stderr } = tryGit(scratch, ['rebase', ...flags, '--autostash', 'main'])
    expect(code).not.toBe(0)
    const offered = /^ {2}-> (git rebase --quit && git stash pop) {4}/m.exec(stderr)?.[1]
    expect(stderr).not.toMatch(/--abort|--continue/)
    // git 2.47 and later bring it back themselves.
    if (scratch.read('d.txt') !== 'mine, not committed\n') {
      const { error } = scratch.tryCkpt('redo').document
      expect([error.code, error.hints]).toEqual(['GIT_BUSY', [expect.stringContaining(offered!)]])
      for (const command of offered!.split(' && ')) scratch.git(...command.split(' ').slice(1))
    }
    expect([scratch.read('d.txt'), scratch.git('stash', 'list')]).toEqual(['mine, not committed\n', ''])
    scratch.ckpt('redo', '--all')
    expect(scratch.read('agent.txt')).toBe('second\n')
  }
})

test('row 32: each way past the gate that is offered amid a merge, a rebase or a cherry-pick works as it stands there', () => {
  const amid: Record<string, (scratch: Scratch) => string> = {
    merge: (scratch) => tryGit(scratch, ['merge', '--no-edit', 'side']).stderr,
    ...Object.fromEntries(
      ['rebase', 'cherry-pick'].map((command) => [
        command,
        (scratch: Scratch) => {
          if (command === 'rebase') scratch.git('checkout', '-q', 'clash')
          const other = command === 'rebase' ? 'main' : 'clash'
          expect(tryGit(scratch, [command, other], { vars: { CKPT_ALLOW_PENDING: '1' } }).code).toBe(1)
          scratch.write({ 'c.txt': 'both\n' })
          scratch.git('add', 'c.txt')
          return tryGit(scratch, [command, '--continue']).stderr
        },
      ]),
    ),
  }
  const offered: Record<string, string[]> = {}
  for (const [name, stop] of Object.entries(amid)) {
    const refused = () => {
      const scratch = gateScratch()
      scratch.ckpt('hooks', 'install')
      makePending(scratch)
      return { scratch, stderr: stop(scratch) }
    }
    const ways = [...refused().stderr.matchAll(/^ {2}-> (.*(?:PENDING=1|--no-verify).*?) {4}/gm)].map(([, way]) => way!)
    offered[name] = ways
    for (const way of ways) {
      const { scratch } = refused()
      const [, pass, words] = /^(CKPT_ALLOW_PENDING=1 )?git (.*)$/.exec(way)!
      const done = tryGit(
        scratch,
        words!.replace(/ \.\.\.$/, '').split(' '),
        pass ? { vars: { CKPT_ALLOW_PENDING: '1' } } : {},
      )
      expect([way, done.code, scratch.ckpt('status').git.busy]).toEqual([way, 0, null])
    }
  }
  expect(offered).toEqual({
    merge: ['CKPT_ALLOW_PENDING=1 git merge --continue', 'git commit --no-verify'],
    rebase: ['CKPT_ALLOW_PENDING=1 git rebase --continue'],
    'cherry-pick': ['CKPT_ALLOW_PENDING=1 git commit ...', 'git commit --no-verify ...'],
  })
})

test('row 32: a rebase that goes on while something is undone is refused at its next commit, and --abort works', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  scratch.git('checkout', '-q', 'clash')
  const start = head(scratch)
  const pass = { vars: { CKPT_ALLOW_PENDING: '1' } }
  expect(tryGit(scratch, ['rebase', 'main'], pass).code).toBe(1)
  scratch.write({ 'c.txt': 'both\n' })
  scratch.git('add', 'c.txt')
  const refused = tryGit(scratch, ['rebase', '--continue'])
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toContain('git rebase --abort')
  scratch.git('rebase', '--abort')
  expect([head(scratch), scratch.read('c.txt'), scratch.ckpt('status').git.busy]).toEqual([start, 'another\n', null])
})

test('row 32: a reword and a commit that a rebase runs are refused too; a --no-verify of its own passes', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  const start = head(scratch)
  const sequence = { GIT_SEQUENCE_EDITOR: 'sed -i -e s/^pick/reword/', CKPT_ALLOW_PENDING: '' }
  expect(tryGit(scratch, ['rebase', '-i', 'HEAD~1'], { vars: sequence }).code).not.toBe(0)
  expect(head(scratch)).toBe(start)
  const run = ['rebase', '--no-verify', '--exec', 'git commit -q --allow-empty -m run', 'HEAD~1']
  expect(tryGit(scratch, run).code).not.toBe(0)
  scratch.git('rebase', '--abort')
  expect(head(scratch)).toBe(start)
  run[3] = 'git commit -q --no-verify --allow-empty -m run'
  expect(tryGit(scratch, run).code).toBe(0)
})

test.each(['lets this one through', 'Go on later'])(
  'row 32: reverts of several commits that were refused go on as is said: %s',
  (how) => {
    const scratch = gateScratch()
    scratch.ckpt('hooks', 'install')
    makePending(scratch)
    const before = head(scratch)
    const { stderr } = tryGit(scratch, ['revert', '--no-edit', 'HEAD', 'HEAD~1'])
    expect(head(scratch)).toBe(before)
    const said = (/ -> (.*) {4}lets this one through/.exec(stderr) ?? [])[1]!
    const steps = how === 'Go on later' ? /Go on later: (.*)/.exec(stderr)![1]! : said
    if (how === 'Go on later') scratch.ckpt('accept')
    for (const step of steps.split(' && ')) {
      const [, allow, args] = /^(CKPT_ALLOW_PENDING=1 )?git (.*)$/.exec(step)!
      const vars = allow ? { CKPT_ALLOW_PENDING: '1' } : {}
      expect(tryGit(scratch, args!.split(' '), { vars })).toMatchObject({ code: 0 })
    }
    expect(scratch.git('log', '--format=%s', '-n', '2')).toBe('Revert "second"\nRevert "third"\n')
  },
)

test('row 32: an alias of --no-verify passes; a message that quotes a revert does not make a commit one', () => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  makePending(scratch)
  scratch.git('config', 'alias.force', 'commit --no-verify --allow-empty')
  expect(tryGit(scratch, ['force', '-m', 'alias']).code).toBe(0)
  const message = 'see there\n\nThis reverts commit 0123456789.'
  expect(tryGit(scratch, ['commit', '--allow-empty', '--no-verify', '-m', message]).code).toBe(0)
})

test.each([
  ['commit', ['commit']],
  ['commit -a', ['commit', '-a']],
  ['commit --amend', ['commit', '--amend']],
  ['commit of paths', ['commit', 'mine.txt']],
  ['commit -m with a word like an option', ['commit', '-e', '-m', '--no-verify']],
  ['commit -am with one', ['commit', '-e', '-am', '--no-verify']],
])('what is undone while the editor of git %s is open refuses it; its message is kept', (_, args) => {
  const scratch = gateScratch()
  scratch.ckpt('hooks', 'install')
  scratch.turn('work', () => scratch.write({ 'a.txt': 'agent\n' }))
  stage(scratch)
  const before = head(scratch)
  const undo = `"${process.execPath}" "${PROGRAM}" undo --quiet`
  const editor = (first: string) => ({ vars: { GIT_EDITOR: `sh -c '${first}; echo "my words" >"$1"' ed` } })
  const refused = tryGit(scratch, args, editor(undo))
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('a revert boundary is pending') })
  expect([head(scratch), scratch.read('a.txt')]).toEqual([before, 'one\n'])
  const file = /The message that was written is in (\/.*)/.exec(refused.stderr)![1]!
  expect(fs.readFileSync(file, 'utf8')).toMatch(/^my words\n/)
  scratch.ckpt('accept')
  // Whoever wants none of the hooks, or lets this one through, is not held up.
  for (const [more, vars] of [
    [['--no-verify'], {}],
    [[], { CKPT_ALLOW_PENDING: '1' }],
  ] as const) {
    scratch.turn('more', () => scratch.write({ 'a.txt': 'more\n', 'mine.txt': `${head(scratch)}\n` }))
    scratch.git('add', 'mine.txt')
    const { vars: edited } = editor(undo)
    expect(tryGit(scratch, [...args, ...more], { vars: { ...edited, ...vars } }).code).toBe(0)
    scratch.ckpt('accept')
  }
})

test('where only steps of a turn are undone, the refusal does not say that the turn is', () => {
  const scratch = new Scratch().init()
  scratch.ckpt('hooks', 'install')
  scratch.ckpt('mark', 'prompt', '--session', 's')
  for (const name of ['b.txt', 'c.txt']) {
    scratch.write({ [name]: 'b\n' })
    scratch.ckpt('mark', 'step', '--session', 's')
  }
  scratch.ckpt('mark', 'stop', '--session', 's')
  scratch.turn('next', () => scratch.write({ 'd.txt': 'd\n' }))
  scratch.ckpt('undo', '--to', '1.2')
  const refusal = () => tryGit(scratch, ['commit', '-qm', 'x', '--allow-empty']).stderr
  expect(refusal()).toContain('session s: undone from a step of turn 1 on; hidden turns: 2\n')
  scratch.ckpt('redo')
  scratch.ckpt('redo')
  scratch.ckpt('undo', '--to', '2')
  expect(refusal()).toContain('session s: undone from turn 2 on; hidden turns: 2\n')
})
