// A long session's store after `ckpt prune`, against what `git gc` makes of the same trees.
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { SessionId } from '../src/core/ids.ts'
import { realEnv } from '../src/env.ts'
import { readChain, readWorktreeRefs } from '../src/git/history.ts'
import { mark } from '../src/ops/mark.ts'
import { closeContext, openContext } from '../src/ops/worktree/context.ts'

const program = path.resolve(import.meta.dirname, '../bin/ckpt.js')

const FILES = 300
const CHANGED = 10

/** Numbers that are the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const nameOf = (n: number) => `src/part-${n % 20}/file-${n}.ts`

/** Lines that look like source: words that come again, and numbers that do not. */
function lineOf(next: (below: number) => number): string {
  const words = ['const', 'value', 'return', 'files', 'await', 'context', 'of', 'for', 'store', 'turn', 'path', 'if']
  const some = Array.from({ length: 3 + next(7) }, () => words[next(words.length)])
  return `  ${some.join(' ')} = ${next(1_000_000)}`
}

/** Bytes of all files below, as their contents count. */
function bytesOf(directory: string): number {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => lstatSync(path.join(directory, name)))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0)
}

/** A session of so many turns; each changes a line or two of ten files. */
async function work(root: string, turns: number): Promise<void> {
  const next = numbers(7)
  const files = Array.from({ length: FILES }, () => Array.from({ length: 20 + next(180) }, () => lineOf(next)))
  const write = (n: number) => writeFileSync(path.join(root, nameOf(n)), `${files[n]!.join('\n')}\n`)
  for (let part = 0; part < 20; part++) mkdirSync(path.join(root, `src/part-${part}`), { recursive: true })
  for (let n = 0; n < FILES; n++) write(n)
  const env = { ...realEnv(), cwd: root }
  const session = 'long' as SessionId
  const tell = async (marker: Parameters<typeof mark>[1]) => {
    const context = await openContext(env, root, { create: true })
    await mark(context, marker, env.monotonic()).finally(() => closeContext(context))
  }
  for (let turn = 1; turn <= turns; turn++) {
    await tell({ event: 'prompt', session, text: `Prompt ${turn}: ${lineOf(next)}`, agent: 'bench', kind: 'prompt' })
    for (let i = 0; i < CHANGED; i++) {
      const n = next(FILES)
      const lines = files[n]!
      lines.splice(next(lines.length), next(2), lineOf(next))
      write(n)
    }
    await tell({ event: 'stop', session, status: 'completed' })
  }
}

/** The trees of the session's checkpoints as plain commits in a repository of their own, after `git gc`. */
async function sameTrees(root: string, gitDir: string): Promise<number> {
  const context = await openContext({ ...realEnv(), cwd: root }, root, { reading: true })
  const live = (await readWorktreeRefs(context.store)).sessions.get('long' as SessionId)!.live!
  const trees = (await readChain(context.store, live.id)).map(({ tree }) => tree)
  const { gitDir: store } = context.store
  closeContext(context)
  const git = (args: string[], input?: string) =>
    execFileSync('git', ['-C', gitDir, ...args], { encoding: 'utf8', maxBuffer: 1 << 28, ...(input ? { input } : {}) })
  execFileSync('git', ['init', '-q', '--bare', gitDir])
  writeFileSync(path.join(gitDir, 'objects/info/alternates'), `${store}/objects\n`)
  const stream = trees.map(
    (tree, i) =>
      `commit refs/heads/main\ncommitter bench <bench@example.com> ${1_700_000_000 + i} +0000\ndata 6\ncommit\nM 040000 ${tree} \n`,
  )
  git(['fast-import', '--quiet'], stream.join('\n'))
  git(['repack', '-a', '-d', '-q'])
  rmSync(path.join(gitDir, 'objects/info/alternates'))
  git(['gc', '-q', '--prune=now'])
  return bytesOf(path.join(gitDir, 'objects'))
}

const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(2)} MiB`

export async function benchStore(turns = 1000): Promise<void> {
  const base = mkdtempSync(path.join(tmpdir(), 'ckpt-bench-store-'))
  try {
    const root = path.join(base, 'work')
    mkdirSync(root)
    execFileSync('git', ['init', '-q'], { cwd: root })
    await work(root, turns)
    const store = path.join(root, '.git/ckpt')
    const loose = bytesOf(store)
    const start = performance.now()
    execFileSync(process.execPath, [program, 'prune', '--json'], { cwd: root })
    const seconds = ((performance.now() - start) / 1000).toFixed(0)
    const ours = bytesOf(store)
    const theirs = await sameTrees(root, path.join(base, 'same.git'))
    console.log(
      `Store of ${turns} turns with ${CHANGED} changed files each, after a prune (${seconds} s; ${megabytes(loose)} before): ${megabytes(ours)} against ${megabytes(theirs)} that git gc makes of the same trees, ratio ${(ours / theirs).toFixed(2)} (at most 1.3)`,
    )
    if (process.env.CKPT_BENCH_KEEP) console.log(base)
  } finally {
    if (!process.env.CKPT_BENCH_KEEP) rmSync(base, { recursive: true, force: true })
  }
}
