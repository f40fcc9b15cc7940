// What a session can do is said by its backend; a second one, which cannot redo, shows that nobody asks for names.
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { Backends, undoNeeds } from '../../src/backends/backends.ts'
import { commands } from '../../src/cli/commands.ts'
import type { SessionId } from '../../src/core/ids.ts'
import { setSessionBackend } from '../../src/ops/session-backends.ts'
import { closeContext, openContext } from '../../src/ops/worktree/context.ts'
import { envOf, runHere } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'
import { toyBackend } from '../support/toy-backend.ts'

const backends = new Backends([toyBackend])

async function toySession(): Promise<Scratch> {
  const scratch = new Scratch().init({ 'a.txt': 'one\n', 'b.txt': 'b\n' })
  scratch.turn('first', () => scratch.write({ 'a.txt': 'two\n' }), 'own')
  scratch.turn('second', () => scratch.write({ 'a.txt': 'three\n' }), 'toy-1')
  const context = await openContext(envOf(scratch), scratch.root, { create: true })
  await setSessionBackend(context, 'toy-1' as SessionId, 'toy')
  closeContext(context)
  return scratch
}

const json = async (scratch: Scratch, ...argv: string[]) => {
  const { code, stdout } = await runHere(scratch, [...argv.slice(0, 1), '--json', ...argv.slice(1)], backends)
  return { code, document: JSON.parse(stdout) }
}

test('each session says what it can do; an unknown session or backend has what the default can', async () => {
  const scratch = await toySession()
  const toy = await json(scratch, 'capabilities', '--session', 'toy-1')
  expect(toy.document).toMatchObject({ session: 'toy-1', backend: 'toy' })
  expect(toy.document.capabilities).toMatchObject({ supportsUndo: true, supportsRedo: false, supportsDiff: false })
  expect((await json(scratch, 'capabilities')).document).toMatchObject({ session: 'toy-1', backend: 'toy' })
  expect((await json(scratch, 'capabilities', '--session', 'own')).document.backend).toBe('ckpt')
  expect((await json(scratch, 'capabilities', '--session', 'nobody')).document).toMatchObject({
    session: 'nobody',
    backend: 'ckpt',
    capabilities: { supportsRedo: true },
  })
  // The built program does not know the toy.
  expect(scratch.ckpt('capabilities')).toMatchObject({ session: 'toy-1', backend: 'ckpt' })
})

test('what the session cannot do is exit 6 and changes nothing; what it can goes through its backend', async () => {
  const scratch = await toySession()
  const before = scratch.manifest()
  for (const argv of [
    ['redo'],
    ['redo', '--session', 'toy-1', '--all'],
    ['undo', '--step'],
    ['undo', '--to', '2.1'],
    ['undo', '--only', '1'],
    ['undo', '--', 'a.txt'],
    ['diff'],
    ['switch', '1'],
  ]) {
    const { code, document } = await json(scratch, ...argv)
    expect([argv, code, document.error?.code]).toEqual([argv, 6, 'UNSUPPORTED'])
    expect(document.error.message).toMatch(/Nothing was changed\.$/)
  }
  expect(scratch.manifest()).toEqual(before)
  expect((await json(scratch, 'undo')).code).toBe(0)
  expect(scratch.read('a.txt')).toBe('two\n')
  expect((await json(scratch, 'redo')).code).toBe(6)
  expect((await json(scratch, 'accept')).document).toMatchObject({ session: 'toy-1', abandoned: [1] })
  expect((await json(scratch, 'undo', '--session', 'own')).code).toBe(0)
  expect((await json(scratch, 'redo', '--session', 'own')).code).toBe(0)
})

test('a token of a plan asks again what the session can do', async () => {
  const scratch = await toySession()
  const token = scratch.ckpt('undo', '--only', '1', '--dry-run').token as string
  expect((await json(scratch, 'apply', token)).code).toBe(6)
})

test('wrong usage and a bad place win over what the session cannot do', async () => {
  const scratch = await toySession()
  expect((await json(scratch, 'redo', '--all', '--turns', '2')).code).toBe(2)
  expect((await json(scratch, 'redo', '--cwd', '/')).code).toBe(9)
})

test('help and completion show only what the session can do', async () => {
  const scratch = await toySession()
  const help = async (...argv: string[]) => (await runHere(scratch, argv, backends)).stdout
  const own = await help('--help', '--session', 'own')
  const toy = await help('--help')
  for (const name of ['redo', 'diff', 'switch']) {
    expect(own).toMatch(new RegExp(`^  ckpt ${name}\\b`, 'm'))
    expect(toy).not.toMatch(new RegExp(`^  ckpt ${name}\\b`, 'm'))
  }
  expect(toy).toMatch(/^ {2}ckpt undo\b/m)
  expect(await help('undo', '--help')).not.toMatch(/--step|--only/)
  expect(await help('undo', '--help', '--session', 'own')).toMatch(/--step/)
  expect(await help('redo', '--help')).toMatch(/cannot do this/)
  const words = async (...line: string[]) => (await help('completion', '--words', '--', ...line)).split('\n')
  const names = (rows: string[]) => rows.map((row) => row.split('\t')[0])
  expect(names(await words('re'))).toEqual(expect.arrayContaining(['restore']))
  expect(names(await words('re'))).not.toContain('redo')
  expect(names(await words('undo', '--s'))).toEqual(['--session', '--skip-conflicts', ''])
  expect(names(await words('undo', '--session', 'own', '--s'))).toContain('--step')
})

test('what help hides is what the gate refuses', async () => {
  const scratch = await toySession()
  const nothing = new Backends([{ ...toyBackend, capabilities: () => ({}) as never }])
  for (const { usage, needs } of commands) {
    if (!needs) continue
    const argv = [usage.split(' ')[0]!, ...(usage.includes('<') ? ['1'] : [])]
    const { code } = await runHere(scratch, argv, nothing)
    expect([argv, code]).toEqual([argv, 6])
  }
  expect(undoNeeds({ to: '3.2', paths: [], only: '1' })).toEqual([
    'supportsUndo',
    'supportsStepUndo',
    'supportsSelectiveUndo',
  ])
})

/** What hands a backend out. */
const ENTRIES = ['claude-agent-sdk.ts', 'opencode.ts']

test('no code outside a backend asks which one it is', () => {
  const source = path.resolve(import.meta.dirname, '../../src')
  const asking: string[] = []
  for (const name of fs.readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    // The dispatcher finds a backend by the name in a session's record; it compares no name either.
    if (!name.endsWith('.ts')) continue
    const text = fs.readFileSync(path.join(source, name), 'utf8')
    const asks =
      /(?:backend|Backend)(?:\.name|Name)?\s*[!=]==?|[!=]==?\s*\w*[bB]ackend\b|instanceof \w*Backend\b|switch \(\w*[bB]ackend(?:\.name)?\)|case '(?:ckpt|claude-agent-sdk)'/
    const found = asks.exec(text)
    if (found) asking.push(`${name}: ${found[0]}`)
    if (/^wrappers\/\w/.test(name)) {
      // A backend may rest on the default one, and knows no other.
      const own = name.split('/')[1]!
      const other = /from '\.\.\/(claude-agent-sdk|opencode)\/[^']+'/.exec(text)
      if (other && other[1] !== own) asking.push(`${name}: ${other[0]}`)
      continue
    }
    const knows =
      /from '[^']*(?:backends\/(?!backends\.ts|backend\.ts)[\w-]+\.ts|wrappers\/(?:claude-agent-sdk|opencode)\/[^']+)'/.exec(
        text,
      )
    if (knows && !ENTRIES.includes(name)) asking.push(`${name}: ${knows[0]}`)
  }
  expect(asking).toEqual([])
  expect(ENTRIES.every((name) => fs.existsSync(path.join(source, name)))).toBe(true)
})
