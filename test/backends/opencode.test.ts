// The real OpenCode server from npm, with a model on loopback: its revert and unrevert, through ckpt's interface.
import { describe, expect, test } from 'vitest'
import { CkptError } from '../../src/core/errors.ts'
import type { CkptEvent } from '../../src/daemon/protocol.ts'
import { openWorktree } from '../../src/library/worktree.ts'
import { openCode } from '../../src/wrappers/opencode/opencode.ts'
import { isThere } from '../support/clients.ts'
import { type OpenCodeStage, openCodeStage, opencodeProgram } from '../support/opencode-server.ts'
import { prompt } from '../support/told-model.ts'

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error) => (error instanceof CkptError ? error.code : `not a CkptError: ${error}`),
  )

const first = prompt('first', { read: 'a.txt' }, { write: 'a.txt', content: 'two\n' }, { bash: 'echo s > shell.txt' })
const second = prompt('second', { write: 'new.txt', content: 'n\n' }, { edit: 'a.txt', old: 'two', new: 'three' })
const third = prompt('third', { write: 'third.txt', content: '3\n' })

async function opened({ scratch, opencode }: OpenCodeStage, session: string) {
  return openWorktree(scratch.root, { vars: scratch.vars, backends: [opencode.backend], session })
}

describe.skipIf(!isThere('OpenCode', opencodeProgram))(
  'the server from npm (skipped where it is not)',
  { timeout: 300_000 },
  () => {
    test('undo, undo, redo, redo all; the boundary is the same on both sides', async () => {
      const stage = await openCodeStage()
      const { scratch, get } = stage
      const session = await stage.session()
      const { sessions, snapshots } = await opened(stage, session)
      expect(await codeOf(sessions.undo())).toBe('NOTHING_TO_UNDO')
      expect(await codeOf(sessions.redo())).toBe('NOTHING_TO_REDO')
      await stage.say(session, first)
      await stage.say(session, second)
      const done = scratch.manifest()
      const messages = (await get(`/session/${session}/message`)).filter((one: any) => one.info.role === 'user')
      const [one, two] = messages.map((message: any) => message.info.id)
      const same = async () => {
        const { revert } = await get(`/session/${session}`)
        const info = await sessions.getSessionInfo()
        expect([info.revertMessageID, info.revertPartID]).toEqual([revert?.messageID ?? null, revert?.partID ?? null])
        expect(info.revertDiff).toBe(revert?.diff ?? '')
        return info
      }
      expect(await same()).toMatchObject({ revertMessageID: null, hiddenTurns: [], restoredPrompt: null, turns: 2 })

      const undone = await sessions.undo()
      expect(undone).toMatchObject({ turns: [2], messageId: two, restoredPrompt: second })
      expect(undone.files.map(({ path, action }) => `${action} ${path}`)).toEqual(['write a.txt', 'delete new.txt'])
      expect([scratch.read('a.txt'), scratch.exists('new.txt')]).toEqual(['two\n', false])
      expect(await same()).toMatchObject({ revertMessageID: two, turns: 1, restoredPrompt: second })
      await sessions.undo()
      expect([scratch.read('a.txt'), scratch.exists('shell.txt')]).toEqual(['one\n', false])
      expect(await same()).toMatchObject({ revertMessageID: one, turns: 0 })
      expect((await same()).hiddenTurns.map((turn) => turn.n)).toEqual([1, 2])
      expect(await codeOf(sessions.undo())).toBe('NOTHING_TO_UNDO')

      expect(await sessions.redo()).toMatchObject({ turns: [1] })
      expect([scratch.read('a.txt'), scratch.exists('new.txt')]).toEqual(['two\n', false])
      expect(await same()).toMatchObject({ revertMessageID: two })
      await sessions.undo()
      expect(await sessions.unrevert()).toMatchObject({ turns: [1, 2], boundary: null })
      expect(scratch.manifest()).toEqual(done)
      expect(await same()).toMatchObject({ revertMessageID: null, revertDiff: '' })
      expect(await codeOf(sessions.redo())).toBe('NOTHING_TO_REDO')
      // Undone work is what ckpt saved first, too.
      expect(undone.safety).toMatch(/^[0-9a-f]{40}$/)
      await snapshots.restore(undone.safety!, { force: true, exact: true })
      expect(scratch.manifest()).toEqual(done)
    })

    test('what its own client reverts is seen, told as ours, and gone on from', async () => {
      const stage = await openCodeStage()
      const { scratch, post, get, opencode } = stage
      const session = await stage.session()
      const worktree = await opened(stage, session)
      const { sessions } = worktree
      await stage.say(session, first)
      await stage.say(session, second)
      const { turns } = await worktree.turns()
      const told: CkptEvent[] = []
      const follower = await opencode.subscribe({ listener: (event) => told.push(event), sessions: [session] })
      const heard = async (type: CkptEvent['type'], count = 1) => {
        while (told.filter((event) => event.type === type).length < count)
          await new Promise((resolve) => setTimeout(resolve, 20))
        return told.splice(0).filter((event) => !/^session\./.test(event.type))
      }
      const [two, one] = turns.map(({ messageId }) => messageId!)
      await post(`/session/${session}/revert`, { messageID: two })
      const boundary = { session, turn: 2, step: null, messageId: two, hiddenTurns: [2], baseline: null }
      expect(await heard('boundary.changed')).toEqual([
        { type: 'turn.removed', session, turn: 2, id: two, why: 'undone' },
        { type: 'boundary.changed', session, boundary },
      ])
      expect(await sessions.getSessionInfo()).toMatchObject({ revertMessageID: two, boundary, restoredPrompt: second })
      expect((await worktree.turns({ hidden: true })).turns.map(({ n, hidden }) => [n, hidden])).toEqual([
        [2, true],
        [1, false],
      ])
      expect(await sessions.undo()).toMatchObject({ turns: [1], messageId: one })
      await heard('boundary.changed')
      await post(`/session/${session}/unrevert`)
      expect((await heard('boundary.changed')).map((event) => event.type)).toEqual([
        'turn.added',
        'turn.added',
        'boundary.changed',
      ])
      expect(await codeOf(sessions.redo())).toBe('NOTHING_TO_REDO')
      // Undone here, seen there; the next prompt leaves it behind.
      await sessions.revert(two!)
      expect((await get(`/session/${session}`)).revert.messageID).toBe(two)
      await heard('boundary.changed')
      await stage.say(session, third)
      const events = await heard('turn.added')
      expect(events).toContainEqual({ type: 'turn.removed', session, turn: 2, id: two, why: 'left' })
      expect(events).toContainEqual(
        expect.objectContaining({ type: 'turn.added', turn: expect.objectContaining({ n: 2 }) }),
      )
      follower.close()
      expect((await worktree.turns()).turns.map(({ n, prompt: words }) => [n, words.split(' ')[0]])).toEqual([
        [2, 'third'],
        [1, 'first'],
      ])
      expect([scratch.exists('new.txt'), scratch.exists('third.txt')]).toEqual([false, true])
    })

    test('a part of a turn: the boundary names message and part on both sides', async () => {
      const stage = await openCodeStage()
      const { scratch, get } = stage
      const session = await stage.session()
      const worktree = await opened(stage, session)
      const { sessions } = worktree
      await stage.say(session, first)
      const edit = { edit: 'a.txt', old: 'two', new: 'three' }
      await stage.say(session, prompt('second', { write: 'new.txt', content: 'n\n' }, { say: 'And then:', and: edit }))
      const [two, one] = (await worktree.turns()).turns
      expect(two!.steps.map(({ n, tool }) => [n, tool])).toEqual([
        ['2.1', 'write'],
        ['2.2', 'edit'],
      ])
      const part = two!.steps[1]!
      expect(await sessions.undo({ step: true })).toMatchObject({
        turns: [2],
        boundary: { step: '2.2', hiddenTurns: [] },
        files: [{ path: 'a.txt', action: 'write' }],
      })
      expect([scratch.read('a.txt'), scratch.exists('new.txt')]).toEqual(['two\n', true])
      const { revert } = await get(`/session/${session}`)
      expect(revert).toMatchObject({ messageID: part.messageId, partID: part.id })
      expect(await sessions.getSessionInfo()).toMatchObject({
        revertMessageID: part.messageId,
        revertPartID: part.id,
        turns: 2,
      })
      expect((await worktree.turns()).turns[0]!.steps.map(({ hidden }) => hidden)).toEqual([false, true])
      expect(await sessions.redo()).toMatchObject({ turns: [2], boundary: null })
      expect(scratch.read('a.txt')).toBe('three\n')
      await sessions.revert(two!.messageId!, part.id)
      expect(scratch.read('a.txt')).toBe('two\n')
      expect(await codeOf(sessions.revert(two!.messageId!, part.id))).toBe('NOTHING_TO_UNDO')
      await sessions.undo({ to: '2' })
      expect([scratch.read('a.txt'), scratch.exists('new.txt')]).toEqual(['two\n', false])
      // The server would take the whole turn for a part that its message begins with.
      expect(one!.steps.length).toBe(3)
      expect(await codeOf(sessions.undo({ step: true }))).toBe('UNSUPPORTED')
      expect(await codeOf(sessions.undo({ only: '1' }))).toBe('UNSUPPORTED')
      expect(await codeOf(sessions.undo({ to: '7' }))).toBe('NOT_FOUND')
      expect(scratch.read('a.txt')).toBe('two\n')
    })

    test('a busy session is aborted first', async () => {
      const stage = await openCodeStage()
      const { scratch, get } = stage
      const session = await stage.session()
      const { sessions } = await opened(stage, session)
      await stage.say(session, first)
      const ended = stage.say(session, prompt('slow', { write: 'slow.txt', content: 's\n' }, { bash: 'sleep 60' }))
      while (!scratch.exists('slow.txt') || !/"running"/.test(JSON.stringify(await get(`/session/${session}/message`))))
        await new Promise((resolve) => setTimeout(resolve, 50))
      expect(await sessions.getSessionInfo()).toMatchObject({ state: 'running', turns: 2 })
      expect(await sessions.undo()).toMatchObject({ turns: [2] })
      expect([scratch.exists('slow.txt'), scratch.read('a.txt')]).toEqual([false, 'two\n'])
      expect(await sessions.getSessionInfo()).toMatchObject({ state: 'idle', turns: 1 })
      await ended
    })

    test('what it cannot do is said: files that were deleted, another server, an unknown session; a diff of a turn', async () => {
      const stage = await openCodeStage()
      const { scratch } = stage
      const session = await stage.session()
      const { sessions, snapshots } = await opened(stage, session)
      await stage.say(session, prompt('deletes', { bash: 'rm b.txt' }, { write: 'c.txt', content: 'c\n' }))
      expect((await snapshots.diff()).files.map(({ status, path }) => `${status} ${path}`).sort()).toEqual([
        'added c.txt',
        'deleted b.txt',
      ])
      expect((await snapshots.diff('1')).patch).toContain('+c')
      await sessions.undo()
      expect(scratch.read('b.txt')).toBe('b\n')
      const back = await sessions.unrevert()
      expect(back.files).toContainEqual({ path: 'b.txt', action: 'skip', reason: 'OpenCode left it' })
      expect(back.warnings).toContainEqual('OpenCode did not delete again: b.txt.')
      expect(scratch.exists('b.txt')).toBe(true)
      await stage.opencode.attach('ses_unknown')
      expect(await codeOf(sessions.undo({ session: 'ses_unknown' }))).toBe('NOT_FOUND')
      const nobody = openCode({ url: 'http://127.0.0.1:9', directory: scratch.root, vars: scratch.vars })
      const lost = await openWorktree(scratch.root, { vars: scratch.vars, backends: [nobody.backend], session })
      await expect(lost.sessions.undo()).rejects.toThrow('does not answer')
      // Without its backend the session has what the default one can: nothing is known of it there.
      const bare = await openWorktree(scratch.root, { vars: scratch.vars, session })
      expect(await bare.sessions.capabilities()).toMatchObject({
        backend: 'ckpt',
        capabilities: { supportsFork: true },
      })
      expect(await codeOf(bare.sessions.undo())).toBe('NOT_FOUND')
    })

    test('files without text: empty ones, binary ones', async () => {
      const stage = await openCodeStage()
      const { scratch } = stage
      scratch.write({ 'old.bin': '\0old', 'gone.bin': '\0gone' })
      const session = await stage.session()
      const { sessions, snapshots } = await opened(stage, session)
      const made = 'touch new.empty; printf "\\0n" > new.bin; printf "\\0x" > old.bin; rm gone.bin'
      await stage.say(session, prompt('binary', { bash: made }, { write: 'c.txt', content: 'c\n' }))
      expect((await snapshots.diff()).files.map(({ status, path, binary }) => [status, path, binary]).sort()).toEqual([
        ['added', 'c.txt', false],
        ['added', 'new.bin', true],
        ['added', 'new.empty', false],
        ['deleted', 'gone.bin', true],
        ['modified', 'old.bin', true],
      ])
      const told = (files: readonly { path: string; action: string }[]) =>
        files.map((one) => `${one.action} ${one.path}`)
      expect(told((await sessions.undo()).files)).toEqual([
        'delete c.txt',
        'write gone.bin',
        'delete new.bin',
        'delete new.empty',
        'write old.bin',
      ])
      expect([scratch.read('old.bin'), scratch.exists('new.empty')]).toEqual(['\0old', false])
      const back = await sessions.redo()
      expect(told(back.files)).toEqual([
        'write c.txt',
        'skip gone.bin',
        'write new.bin',
        'write new.empty',
        'write old.bin',
      ])
      expect(back.warnings).toContainEqual('OpenCode did not delete again: gone.bin.')
    })
  },
)
