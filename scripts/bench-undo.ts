// Undo of a turn of many files, against writing them anew and syncing them, one after the other.
import { execFileSync } from 'node:child_process'
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const FILES = 1000

export interface ManyFiles {
  /** Milliseconds, medians of the rounds. */
  ours: number
  theirs: number
}

const names = Array.from({ length: FILES }, (_, n) => `part-${n % 20}/file-${n}.txt`)
const content = (n: number, salt: string): string => `${salt} ${n}\n`.repeat(100)
const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!

/** What keeps a file whole through a power cut: its bytes are on disk before it gets its name. */
function writeSynced(root: string, salt: string): number {
  const start = performance.now()
  for (const [n, name] of names.entries()) {
    const fd = openSync(path.join(root, 'new'), 'wx')
    writeFileSync(fd, content(n, salt))
    fsyncSync(fd)
    closeSync(fd)
    renameSync(path.join(root, 'new'), path.join(root, name))
  }
  return performance.now() - start
}

export function benchUndo(base: string, program: string, vars: NodeJS.ProcessEnv): ManyFiles {
  const [root, plain] = ['many', 'many-plain'].map((name) => path.join(base, name)) as [string, string]
  const ckpt = (...args: string[]): number => {
    const out = execFileSync(process.execPath, [program, ...args, '--json'], { cwd: root, env: vars, encoding: 'utf8' })
    return (JSON.parse(out) as { ms: number }).ms
  }
  for (const directory of [root, plain])
    for (let part = 0; part < 20; part++) mkdirSync(path.join(directory, `part-${part}`), { recursive: true })
  const write = (salt: string) => {
    for (const [n, name] of names.entries()) writeFileSync(path.join(root, name), content(n, salt))
  }
  execFileSync('git', ['init', '-q'], { cwd: root, env: vars })
  write('one')
  ckpt('mark', 'prompt', '--session', 'many')
  write('two')
  ckpt('mark', 'stop', '--session', 'many')
  ckpt('undo', '--session', 'many') // which syncs what was recorded, too
  const times = { ours: [] as number[], theirs: [] as number[] }
  for (let round = 0; round < 3; round++) {
    for (const command of ['redo', 'undo']) {
      times.ours.push(ckpt(command, '--session', 'many'))
      times.theirs.push(writeSynced(plain, command))
    }
  }
  return { ours: median(times.ours), theirs: median(times.theirs) }
}
