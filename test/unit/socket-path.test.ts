// Where a daemon listens, where the directories that come first are somebody else's.
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { socketPath } from '../../src/daemon/socket-path.ts'
import { envOf } from '../support/in-process.ts'
import { Scratch } from '../support/scratch.ts'

function placed(scratch: Scratch, vars: Record<string, string> = {}) {
  const env = envOf(scratch)
  const temporary = `${scratch.base}/tmp`
  const theirs = new Set(['/tmp', temporary].map((one) => `${one}/ckpt-${env.uid}`))
  const isTheirs = (at: fs.PathLike) => theirs.has(String(at))
  const files = {
    ...env.files,
    mkdirSync: (at: fs.PathLike, options: object) => (isTheirs(at) ? undefined : fs.mkdirSync(at, options)),
    lstatSync: (at: fs.PathLike) =>
      isTheirs(at) ? { isDirectory: () => true, uid: env.uid + 1, mode: 0o40700 } : fs.lstatSync(at),
  } as unknown as typeof env.files
  const given = { ...env, files, vars: { ...env.vars, ...vars } }
  return { temporary, path: socketPath(given, scratch.base, { temporary, root: scratch.root }) }
}

test('a temporary directory of ours that is another user’s leaves the one for our state', async () => {
  const scratch = new Scratch()
  const { path } = placed(scratch, { CKPT_STATE_DIR: `${scratch.base}/s` })
  expect(await path).toMatch(new RegExp(`^${scratch.base}/s/run/[0-9a-f-]+\\.sock$`))
  expect(fs.statSync(`${scratch.base}/s/run`).mode & 0o777).toBe(0o700)
})

test('where there is none, each is named with what is wrong with it, and what helps', async () => {
  const scratch = new Scratch()
  const long = `${scratch.base}/${'long'.repeat(20)}`
  const open = `${scratch.base}/open`
  fs.mkdirSync(`${open}/ckpt`, { recursive: true, mode: 0o755 })
  const { temporary, path } = placed(scratch, { CKPT_STATE_DIR: long, XDG_RUNTIME_DIR: open })
  const { uid } = envOf(scratch)
  await expect(path).rejects.toMatchObject({
    code: 'INTERNAL',
    message:
      `The daemon has no directory to listen in: ${open}/ckpt can be entered by others, ${temporary}/ckpt-${uid} is another user's, ` +
      `/tmp/ckpt-${uid} is another user's, ${long}/run is too long a path for a socket. It was not started.`,
    hints: [expect.stringContaining('XDG_RUNTIME_DIR=DIRECTORY ckpt daemon start')],
  })
})

test('one that is to be had is taken, whatever comes behind it', async () => {
  const scratch = new Scratch()
  const env = envOf(scratch)
  const statSync = (at: fs.PathLike, options?: object) => {
    if (String(at).startsWith('/nobody')) throw Object.assign(new Error('EACCES'), { code: 'EACCES' })
    return fs.statSync(at, options)
  }
  const files = { ...env.files, statSync } as unknown as typeof env.files
  const temporary = `${scratch.base}/tmp`
  const vars = { ...env.vars, CKPT_STATE_DIR: '/nobody/state' }
  const path = await socketPath({ ...env, files, vars }, scratch.base, { temporary, root: scratch.root })
  expect(path.startsWith(`${temporary}/ckpt-${env.uid}/`)).toBe(true)
})
