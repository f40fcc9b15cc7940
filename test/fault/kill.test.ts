/**
 * Promise 8: SIGKILL at any call of a command, of ckpt alone or of its children too. The next command finishes or rolls
 * back; the worktree is in one of the two states, whole; both stay reachable.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { type FaultMode, faultLoop, MODES, Place } from '../support/fault.ts'
import { Scratch } from '../support/scratch.ts'

const S = ['--session', 's']

type Manifest = Record<string, string>

/** A worktree with one turn behind it that did all there is to do to a tree. */
async function oneTurn(): Promise<{ scratch: Scratch; start: Place; before: Manifest; after: Manifest }> {
  const scratch = new Scratch()
  scratch.init({
    'edit.txt': 'one\n',
    'gone.txt': 'gone\n',
    'mode.sh': '#!/bin/sh\n',
    swap: 'a file\n',
    'tree/in/a': 'A\n',
    'tree/in/b': 'B\n',
    'kept/c': 'C\n',
  })
  fs.mkdirSync(scratch.at('empty'))
  fs.symlinkSync('edit.txt', scratch.at('link'))
  const start = new Place(scratch, scratch.root)
  const before = start.manifest
  await start.ckpt('mark', 'prompt', ...S, '--text', 'do it all')
  scratch.write({ 'edit.txt': 'two\n', 'new/deep/file': Buffer.from([0, 255, 1]), 'kept/d': '' })
  scratch.remove('gone.txt', 'tree', 'swap', 'empty', 'link')
  fs.chmodSync(scratch.at('mode.sh'), 0o755)
  scratch.write({ 'swap/inside': 'a directory\n', tree: 'a file now\n' })
  fs.symlinkSync('kept', scratch.at('link'))
  fs.mkdirSync(scratch.at('fresh'), { mode: 0o700 })
  await start.ckpt('mark', 'stop', ...S)
  return { scratch, start, before, after: start.manifest }
}

/** What a killed git leaves for ever, and git names: removed as it says. */
function removeLocks(root: string): void {
  const own = execFileSync('find', ['.git', '-name', '*.lock', '-not', '-path', '.git/ckpt/*'], { cwd: root })
  for (const lock of own.toString().split('\n').filter(Boolean)) fs.unlinkSync(`${root}/${lock}`)
}

/** What must hold after any kill, once any command that can write has run. */
async function sound(place: Place): Promise<void> {
  await place.ckpt('status')
  await place.ckpt('list', '--hidden')
  const { code, document } = await place.try('verify')
  expect([code, document.problems]).toEqual([0, []])
  if (!fs.existsSync(`${place.root}/.git/ckpt/store.git`)) return
  expect(fs.existsSync(`${place.root}/.git/ckpt/worktrees/@main/journal.json`)).toBe(false)
  execFileSync('git', ['fsck', '--strict', '--no-dangling'], {
    cwd: `${place.root}/.git/ckpt/store.git`,
    stdio: 'pipe',
  })
}

function tell(command: string, mode: FaultMode, calls: number): void {
  if (process.env.CKPT_FAULT_STRIDE) process.stderr.write(`${command} (${mode}): ${calls} calls\n`)
}

describe.each(MODES)('killed %s', (mode) => {
  /** Undo and redo in each of the four ways, the others in one of them, in turn; all in all where a stride is given (`npm run test:fault`). */
  const isTurnOf = (n: number) => process.env.CKPT_FAULT_STRIDE !== undefined || MODES[n % MODES.length] === mode

  test('promise 8: undo', async () => {
    const { scratch, start, before, after } = await oneTurn()
    const check = async (place: Place) => {
      await sound(place)
      const { boundary } = await place.ckpt('status')
      expect(place.manifest).toEqual(boundary ? before : after)
      if (!boundary) await place.ckpt('undo')
      expect(place.manifest).toEqual(before)
      await place.ckpt('redo')
      expect(place.manifest).toEqual(after)
      await place.ckpt('undo')
      expect(place.manifest).toEqual(before)
    }
    tell('undo', mode, await faultLoop({ scratch, start, mode, check, argv: ['undo'] }))
  })

  test('promise 8: redo', async () => {
    const { scratch, start, before, after } = await oneTurn()
    await start.ckpt('undo')
    const check = async (place: Place) => {
      await sound(place)
      const { boundary } = await place.ckpt('status')
      expect(place.manifest).toEqual(boundary ? before : after)
      if (boundary) await place.ckpt('redo')
      expect(place.manifest).toEqual(after)
      await place.ckpt('undo')
      expect(place.manifest).toEqual(before)
    }
    tell('redo', mode, await faultLoop({ scratch, start, mode, check, argv: ['redo'] }))
  })

  test.runIf(isTurnOf(0))(
    "promise 8: undo --force, where directories and files have taken each other's place",
    async () => {
      const { scratch, start, before } = await oneTurn()
      await start.ckpt('mark', 'prompt', ...S)
      scratch.remove('kept')
      await start.ckpt('mark', 'stop', ...S)
      scratch.write({ 'gone.txt/mine/deep': 'mine\n', 'gone.txt/mine.txt': 'mine\n', kept: 'mine\n', tree: 'mine\n' })
      fs.mkdirSync(scratch.at('gone.txt/empty'), { mode: 0o700 })
      fs.chmodSync(scratch.at('gone.txt/mine'), 0o711)
      const mine = start.manifest
      const argv = ['undo', '--turns', '2', '--force']
      const check = async (place: Place) => {
        await sound(place)
        const { boundary } = await place.ckpt('status')
        expect(place.manifest).toEqual(boundary ? before : mine)
        if (!boundary) await place.ckpt(...argv)
        expect(place.manifest).toEqual(before)
        await place.ckpt('redo', '--all')
        expect(place.manifest).toEqual(mine)
        const { safety } = await place.ckpt(...argv)
        await place.ckpt('restore', safety, '--exact')
        expect(place.manifest).toEqual(mine)
      }
      tell('undo --force', mode, await faultLoop({ scratch, start, mode, check, argv }))
    },
  )

  test.runIf(isTurnOf(1))('promise 8: a prompt', async () => {
    const { scratch, start } = await oneTurn()
    scratch.write({ 'outside.txt': 'between the turns\n' })
    const here = start.manifest
    const argv = ['mark', 'prompt', ...S, '--text', 'second', '--marker', 'm1']
    const check = async (place: Place) => {
      await sound(place)
      expect(place.manifest).toEqual(here)
      // There whole or not at all; a retry is never a second turn.
      expect((await place.ckpt('list')).turns.length).toBeLessThanOrEqual(2)
      await place.ckpt(...argv)
      const { turns } = await place.ckpt('list')
      const shape = turns.map((turn: { n: number; prompt: string }) => `${turn.n} ${turn.prompt}`)
      expect(shape).toEqual(['2 second', '1 do it all'])
      fs.writeFileSync(`${place.root}/edit.txt`, 'three\n')
      await place.ckpt('mark', 'stop', ...S)
      await place.ckpt('undo')
      expect(place.manifest).toEqual(here)
    }
    tell('mark prompt', mode, await faultLoop({ scratch, start, mode, check, argv }))
  })

  test.runIf(isTurnOf(2))('promise 8: a stop', async () => {
    const { scratch, start, before, after } = await oneTurn()
    await start.ckpt('mark', 'prompt', ...S)
    scratch.write({ 'edit.txt': 'three\n' })
    const here = start.manifest
    const check = async (place: Place) => {
      await sound(place)
      expect(place.manifest).toEqual(here)
      const [turn] = (await place.ckpt('list')).turns
      expect(['running', 'completed']).toContain(turn.status)
      if (turn.status === 'running') await place.ckpt('mark', 'stop', ...S)
      await place.ckpt('undo')
      expect(place.manifest).toEqual(after)
      await place.ckpt('undo')
      expect(place.manifest).toEqual(before)
      await place.ckpt('redo', '--all')
      expect(place.manifest).toEqual(here)
    }
    tell('mark stop', mode, await faultLoop({ scratch, start, mode, check, argv: ['mark', 'stop', ...S] }))
  })

  test.runIf(isTurnOf(3))('promise 8: a prompt after an undo, which abandons', async () => {
    const { scratch, start, before, after } = await oneTurn()
    await start.ckpt('undo')
    const argv = ['mark', 'prompt', ...S, '--text', 'second']
    const check = async (place: Place) => {
      await sound(place)
      expect(place.manifest).toEqual(before)
      const { boundary } = await place.ckpt('status')
      const { turns } = await place.ckpt('list', '--hidden', '--abandoned')
      const shape = turns.map((turn: { n: number; hidden: boolean; abandoned: boolean }) =>
        turn.hidden ? `${turn.n} hidden` : turn.abandoned ? `${turn.n} abandoned` : `${turn.n}`,
      )
      expect(shape).toEqual(boundary ? ['1 hidden'] : ['2', '1 abandoned'])
      if (boundary) {
        await place.ckpt('redo')
        expect(place.manifest).toEqual(after)
        return
      }
      fs.writeFileSync(`${place.root}/edit.txt`, 'three\n')
      await place.ckpt('mark', 'stop', ...S)
      await place.ckpt('undo')
      expect(place.manifest).toEqual(before)
    }
    tell('mark prompt after undo', mode, await faultLoop({ scratch, start, mode, check, argv }))
  })

  test.runIf(isTurnOf(4))('promise 8: a commit', async () => {
    const scratch = new Scratch().init({
      'edit.txt': 'one\n',
      'gone.txt': 'gone\n',
      swap: 'a file\n',
      'tree/in/a': 'A\n',
    })
    scratch.git('config', 'user.name', 'somebody')
    scratch.git('config', 'user.email', 'somebody@example.com')
    scratch.turn('all that git can hold', () => {
      scratch.remove('gone.txt', 'swap', 'tree')
      scratch.write({ 'edit.txt': 'two\n', 'swap/inside': 'a directory\n', tree: 'a file now\n', 'new/deep': 'new\n' })
    })
    scratch.write({ 'staged.txt': 'mine\n' })
    scratch.git('add', 'staged.txt')
    const start = new Place(scratch, scratch.root)
    const here = start.manifest
    const argv = ['commit', '-m', 'the turn']
    const check = async (place: Place) => {
      const git = (...args: string[]) => execFileSync('git', args, { cwd: place.root, env: scratch.vars }).toString()
      if (mode === 'group' || mode === 'amid') removeLocks(place.root)
      // A git that lives on may make the commit a moment later.
      await vi.waitFor(
        async () => {
          await sound(place)
          expect(git('diff', '--cached', '--name-only')).toBe('staged.txt\n')
          await place.ckpt(...argv)
          expect(git('status', '--porcelain')).toBe('A  staged.txt\n')
        },
        { timeout: 20_000, interval: 100 },
      )
      expect(git('log', '--format=%s')).toBe('the turn\nfirst\n')
      expect(place.manifest).toEqual(here)
      const own = `${place.root}/.git/ckpt/worktrees/@main`
      expect(fs.readdirSync(`${own}/tmp`)).toEqual([])
      expect(fs.existsSync(`${own}/commit.json`)).toBe(false)
    }
    tell('commit', mode, await faultLoop({ scratch, start, mode, check, argv, stride: 43 }))
  })

  test.runIf(isTurnOf(5))('promise 8: a snapshot, and the very first one', async () => {
    const { scratch, start } = await oneTurn()
    scratch.write({ 'outside.txt': 'by hand\n' })
    const here = start.manifest
    const check = async (place: Place) => {
      await sound(place)
      expect(place.manifest).toEqual(here)
      const { checkpoint } = await place.ckpt('snapshot')
      fs.writeFileSync(`${place.root}/outside.txt`, 'changed\n')
      await place.ckpt('restore', checkpoint.id, '--force')
      expect(place.manifest).toEqual(here)
    }
    const loop = { scratch, start, mode, check, argv: ['snapshot', '-m', 'by hand'] }
    tell('snapshot', mode, await faultLoop(loop))
    fs.rmSync(scratch.at('.git/ckpt'), { recursive: true })
    scratch.git('repack', '-adq') // packs are linked
    tell('first snapshot', mode, await faultLoop(loop))
  })
})
