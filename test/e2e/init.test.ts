// One command for a new repository: the store, the git hooks, the agents.
import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { Scratch } from '../support/scratch.ts'

test('init with hooks and agents does all of it, and again is nothing', () => {
  const scratch = new Scratch().init()
  const line = ['init', '--hooks', '--agent', 'claude', '--agent', 'codex']
  const made = scratch.ckpt(...line)
  expect(made).toMatchObject({ created: true, store: { path: scratch.at('.git/ckpt') } })
  expect(made.hooks.map((hook: { installed: boolean }) => hook.installed)).not.toContain(false)
  expect(made.agents).toMatchObject([
    { name: 'claude', changed: true },
    { name: 'codex', changed: true },
  ])
  for (const name of ['.claude/settings.json', '.codex/hooks.json'])
    expect(fs.existsSync(path.join(scratch.home, name))).toBe(true)
  expect(scratch.ckpt(...line)).toMatchObject({ created: false, agents: [{ changed: false }, { changed: false }] })
})

test('init with an agent that nobody knows makes nothing', () => {
  const scratch = new Scratch().init()
  const { code, document } = scratch.tryCkpt('init', '--agent', 'claude', '--agent', 'nobody')
  expect({ code, error: document.error.code }).toEqual({ code: 2, error: 'USAGE' })
  expect(scratch.exists('.git/ckpt')).toBe(false)
  expect(fs.readdirSync(scratch.home)).toEqual([])
})

test('init --hooks in a plain directory makes nothing', () => {
  const scratch = new Scratch()
  const { code, document } = scratch.tryCkpt('init', '--hooks')
  expect({ code, error: document.error.code }).toEqual({ code: 9, error: 'BAD_ROOT' })
  expect(fs.readdirSync(scratch.home)).toEqual([])
})
