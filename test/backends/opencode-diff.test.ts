// A server that says what OpenCode 1.18.33 said: it works a turn's diff out anew after each of the model's steps, a while later;
// and of what is asked of one that is busy, or that has files without text.
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openWorktree } from '../../src/library/worktree.ts'
import { openCode } from '../../src/wrappers/opencode/opencode.ts'
import { Scratch } from '../support/scratch.ts'

async function serve(answers: Record<string, () => unknown>): Promise<string> {
  const server = http.createServer(({ url = '' }, response) => {
    const { pathname } = new URL(url, 'http://localhost')
    response.end(JSON.stringify(answers[pathname]?.() ?? null))
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test("a turn's diff is waited for until it is whole, and not for a file that came and went", async () => {
  const scratch = new Scratch().init()
  const step = (name: string) => [
    { id: `t-${name}`, type: 'tool' },
    { type: 'patch', files: [scratch.at(name)] },
  ]
  const answer = (completed: number) => ({
    info: { id: 'm2', role: 'assistant', time: { created: 1, completed } },
    parts: [...step('b.txt'), ...step('c.txt')],
  })
  const diffs = ['b.txt', 'c.txt'].map((file) => ({ file, patch: '', additions: 1, deletions: 0, status: 'added' }))
  let [asked, completed] = [0, () => Date.now()] // just now, however long the test takes
  let diff = () => diffs.slice(0, asked)
  const url = await serve({
    '/session/s': () => ({ id: 's' }),
    '/session/status': () => ({}),
    '/session/s/message': () => [
      { info: { id: 'm1', role: 'user', time: { created: 1 } }, parts: [] },
      answer(completed()),
    ],
    '/session/s/diff': () => {
      asked++
      return diff()
    },
  })
  const opencode = openCode({ url, directory: scratch.root, vars: scratch.vars })
  await opencode.attach('s')
  const backends = [opencode.backend]
  const { snapshots } = await openWorktree(scratch.root, { vars: scratch.vars, backends, session: 's' })
  expect((await snapshots.diff()).files.map(({ path }) => path)).toEqual(['b.txt', 'c.txt'])
  expect(asked).toBe(2)
  asked = 0
  completed = () => Date.now() - 60_000
  diff = () => diffs.slice(0, 1)
  expect((await snapshots.diff()).files.map(({ path }) => path)).toEqual(['b.txt'])
  expect(asked).toBe(1)
})

/** One session, attached, that is what these say. */
async function attached(answers: Record<string, () => unknown>) {
  const scratch = new Scratch().init()
  const url = await serve({ '/session/s': () => ({ id: 's' }), '/session/status': () => ({}), ...answers })
  const opencode = openCode({ url, directory: scratch.root, vars: scratch.vars })
  await opencode.attach('s')
  const backends = [opencode.backend]
  return { scratch, worktree: await openWorktree(scratch.root, { vars: scratch.vars, backends, session: 's' }) }
}

const asked = (id: string) => ({ info: { id, role: 'user', time: { created: 1 } }, parts: [] })

test('what is refused does not abort the turn that is at work', async () => {
  const [tool, text] = [
    { id: 't', type: 'tool' },
    { id: 'w', type: 'text', text: 'And then:' },
  ]
  const answered = (id: string, ...parts: object[]) => ({
    info: { id, role: 'assistant', time: { created: 2 } },
    parts,
  })
  let aborted = 0
  const { worktree } = await attached({
    '/session/status': () => (aborted > 0 ? {} : { s: { type: 'busy' } }),
    '/session/s/abort': () => ++aborted,
    '/session/s/message': () => [asked('m1'), answered('m2', text, tool), answered('m3', { ...tool, id: 'u' })],
  })
  const { sessions } = worktree
  const refused = async (work: Promise<unknown>, code: string) => {
    await expect(work).rejects.toMatchObject({ code, message: expect.stringMatching(/Nothing was changed\.$/) })
    expect(aborted).toBe(0)
  }
  await refused(sessions.undo({ to: '7' }), 'NOT_FOUND')
  await refused(sessions.undo({ step: true }), 'UNSUPPORTED')
  await refused(sessions.redo(), 'NOTHING_TO_REDO')
})

test('what only checkpoints can tell is refused in words for a session without them; it is listed', async () => {
  const diffs = [{ file: 'b.txt', patch: '', additions: 0, deletions: 0, status: 'added' }]
  const { worktree } = await attached({
    '/session/s/message': () => [asked('m1'), asked('m2')],
    '/session/s/diff': () => diffs,
  })
  const { sessions, snapshots } = worktree
  expect(await sessions.list()).toMatchObject([{ id: 's', agent: 'opencode', turns: 2, state: 'idle' }])
  expect((await snapshots.diff('2')).files).toMatchObject([{ path: 'b.txt', binary: true }])
  const refused = { code: 'UNSUPPORTED', message: expect.stringMatching(/no checkpoints.*Nothing was changed\.$/) }
  await expect(snapshots.diffFull('2')).rejects.toMatchObject(refused)
  await expect(snapshots.diffFull()).rejects.toMatchObject(refused)
  await expect(worktree.show('2')).rejects.toMatchObject(refused)
  await expect(worktree.show('m1')).rejects.toMatchObject(refused)
  // A checkpoint is ckpt's own.
  const { checkpoint } = await snapshots.track()
  expect((await worktree.show(checkpoint!.id)).checkpoint).toMatchObject({ id: checkpoint!.id })
  expect((await snapshots.diffFull(checkpoint!.id, 'worktree')).files).toEqual([])
})
