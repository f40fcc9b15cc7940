// What the daemon costs: to start, while nothing happens, and a marker as trees grow, with the floor beside it.
import { execFileSync, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { deflateSync } from 'node:zlib'

const program = path.resolve(import.meta.dirname, '../bin/ckpt.js')
const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!

export interface DaemonBench {
  base: string
  /** The large tree, and ten files in it. */
  root: string
  files: string[]
  vars: NodeJS.ProcessEnv
  rounds: number
}

export async function benchDaemon({ base, root, files, vars, rounds }: DaemonBench): Promise<void> {
  const small = layOutSmall(path.join(base, 'small'))
  const few = await markers({ root: small.root, files: small.files, vars, rounds })
  const many = await markers({ root, files, vars, rounds })
  for (const [what, a, b] of [
    ['nothing changed', many.quiet, few.quiet],
    ['10 files changed', many.busy, few.busy],
  ] as const)
    console.log(
      `With the daemon, ${what}: ${a.toFixed(1)} ms against ${b.toFixed(1)} ms in a tree of 1,000 files, ratio ${(a / b).toFixed(2)} (at most 2)`,
    )
  console.log(
    `With one who asked for events and does not read them: ${few.beside.toFixed(1)} ms against ${few.quiet.toFixed(1)} ms, ratio ${(few.beside / few.quiet).toFixed(2)} (at most 2)`,
  )
  console.log(
    `The floor of those 10 files (reading, hashing, deflating and writing their bytes): ${floor({ base, root }, files, rounds).toFixed(1)} ms`,
  )
  console.log(
    `The daemon of the large tree: ${(many.rss / 1e6).toFixed(0)} MB in all, ${many.idle} ms of CPU in 10 idle seconds`,
  )
  const cost = (how: string) => {
    const runs = Array.from({ length: Math.min(3, rounds) }, () => watching(how, root))
    return { ms: median(runs.map(({ ms }) => ms)), bytes: median(runs.map(({ bytes }) => bytes)) }
  }
  const [ours, bare] = [cost('ours'), cost('bare')]
  console.log(
    `Watching, to stand: ${ours.ms.toFixed(0)} ms against ${bare.ms.toFixed(0)} ms of bare chokidar, ratio ${(ours.ms / bare.ms).toFixed(2)} (at most 1.25); ` +
      `memory ${(ours.bytes / 1e6).toFixed(0)} MB against ${(bare.bytes / 1e6).toFixed(0)} MB, ratio ${(ours.bytes / bare.bytes).toFixed(2)} (at most 1.25)`,
  )
}

/** 1,000 files in 100 directories. */
function layOutSmall(root: string): { root: string; files: string[] } {
  for (let i = 0; i < 1000; i++) {
    const directory = path.join(root, `d${i % 10}`, `e${i % 100}`)
    mkdirSync(directory, { recursive: true })
    writeFileSync(path.join(directory, `f${i}.txt`), randomBytes(8000).toString('hex'))
  }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, stdio: 'pipe' })
  git('init', '-q')
  git('add', '-A')
  git('-c', 'user.name=Bench', '-c', 'user.email=bench@example.com', 'commit', '-q', '-m', 'tree')
  return { root, files: Array.from({ length: 10 }, (_, i) => `d${i}/e${i * 11}/f${i * 11}.txt`) }
}

/** Markers through the daemon, in milliseconds, and what the daemon takes meanwhile. */
async function markers({ root, files, vars, rounds }: Omit<DaemonBench, 'base'>) {
  const ckpt = (...args: string[]): { ms: number; pid: number } =>
    JSON.parse(execFileSync(process.execPath, [program, ...args, '--json'], { cwd: root, env: vars, encoding: 'utf8' }))
  const { pid } = ckpt('daemon', 'start')
  const mark = (...args: string[]) => ckpt('mark', ...args, '--session', 'growth').ms
  const [quiet, busy]: [number[], number[]] = [[], []]
  mark('prompt')
  for (let round = 0; round < rounds; round++) {
    for (const file of files) appendFileSync(path.join(root, file), `// ${Math.random()}\n`)
    busy.push(mark('stop'))
    mark('prompt')
    quiet.push(mark('step', '--start'))
  }
  await new Promise((resolve) => setTimeout(resolve, 5000)) // the sweep and the flush after it
  const before = ticks(pid)
  await new Promise((resolve) => setTimeout(resolve, 10_000))
  const idle = (ticks(pid) - before) * 10
  const beside = await besideStopped({ root, vars }, () => mark('step', '--start'), rounds)
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  ckpt('daemon', 'stop')
  return { quiet: median(quiet), busy: median(busy), beside, idle, rss }
}

/** A marker, while one who asked for the events is stopped and reads none of them. */
async function besideStopped(
  { root, vars }: Pick<DaemonBench, 'root' | 'vars'>,
  mark: () => number,
  rounds: number,
): Promise<number> {
  const subscriber = path.resolve(import.meta.dirname, '../test/support/subscriber.mjs')
  const stopped = spawn(process.execPath, [subscriber, root], { env: vars, stdio: ['ignore', 'pipe', 'inherit'] })
  await once(stopped.stdout, 'data')
  stopped.kill('SIGSTOP')
  const taken = Array.from({ length: rounds }, mark)
  stopped.kill('SIGKILL')
  return median(taken)
}

/** CPU of a process, in hundredths of a second (proc(5), utime and stime). */
function ticks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return Number(fields[11]) + Number(fields[12])
}

/** Reading, hashing, deflating and writing some files, and nothing else. */
function floor({ base, root }: { base: string; root: string }, files: string[], rounds: number): number {
  const into = path.join(base, 'floor')
  mkdirSync(into)
  const runs: number[] = []
  for (let round = 0; round < rounds; round++) {
    const start = performance.now()
    for (const file of files) {
      const bytes = readFileSync(path.join(root, file))
      const oid = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
      writeFileSync(path.join(into, 'new'), deflateSync(bytes, { level: 1 }))
      renameSync(path.join(into, 'new'), path.join(into, `${oid}-${round}`))
    }
    runs.push(performance.now() - start)
  }
  rmSync(into, { recursive: true })
  return median(runs)
}

function watching(how: string, root: string): { ms: number; bytes: number } {
  const script = path.join(import.meta.dirname, 'watching.ts')
  const out = execFileSync(process.execPath, ['--expose-gc', '--import', 'tsx', script, how, root], {
    cwd: path.dirname(import.meta.dirname),
    encoding: 'utf8',
  })
  return JSON.parse(out) as { ms: number; bytes: number }
}
