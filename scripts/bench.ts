// What a checkpoint costs, as ratios against the plain git method in the same run: medians of interleaved rounds.
import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { benchDaemon } from './bench-daemon.ts'
import { gateCost } from './bench-gate.ts'
import { benchHistory } from './bench-history.ts'
import { benchHooks } from './bench-hooks.ts'
import { benchStore } from './bench-store.ts'
import { benchUndo } from './bench-undo.ts'
import { layOut } from './large-tree.ts'

const ROUNDS = Number(process.env.CKPT_BENCH_ROUNDS ?? 9)
const program = path.resolve(import.meta.dirname, '../bin/ckpt.js')
const base = mkdtempSync(path.join(tmpdir(), 'ckpt-bench-'))
const root = path.join(base, 'tree')
const plain = path.join(base, 'plain')
const vars: NodeJS.ProcessEnv = {
  ...process.env,
  HOME: base,
  GIT_CONFIG_GLOBAL: '/dev/null',
  XDG_CONFIG_HOME: path.join(base, 'config'),
}

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
const show = (ms: number) => (ms < 10 ? ms.toFixed(1) : ms.toFixed(0))
function timed(command: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): number {
  const start = performance.now()
  const done = spawnSync(command, args, { cwd: root, env: vars, maxBuffer: 1 << 30, ...options })
  if (done.status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${done.stderr.toString()}${done.stdout.toString().slice(0, 300)}`)
  return performance.now() - start
}
interface Timed {
  wall: number
  ms: number
  syncMs: number
}
function ckpt(...args: string[]): Timed {
  const start = performance.now()
  const out = execFileSync(process.execPath, [program, ...args, '--json'], {
    cwd: root,
    env: vars,
    encoding: 'utf8',
    maxBuffer: 1 << 30,
  })
  const { ms, syncMs = 0 } = JSON.parse(out) as { ms: number; syncMs?: number }
  return { wall: performance.now() - start, ms, syncMs }
}
function report(what: string, { ours, theirs }: { ours: number; theirs: number }, bar: string): void {
  console.log(`${what}: ${show(ours)} ms against ${show(theirs)} ms, ratio ${(ours / theirs).toFixed(2)} (${bar})`)
}
function touch(files: string[], directory: string): void {
  for (const file of files) appendFileSync(path.join(directory, file), `// ${Math.random()}\n`)
}

try {
  mkdirSync(path.join(base, 'config', 'ckpt'), { recursive: true })
  // Hashing everything is measured too: no limit may cut it short.
  writeFileSync(
    path.join(base, 'config', 'ckpt', '.checkpointrc.json'),
    '{"snapshot":{"maxBytes":"8GiB","deadline":"20m"},"watch":{"start":"never"}}',
  )
  mkdirSync(root)
  rmSync(root, { recursive: true })
  const { name, files } = layOut(root)
  execFileSync('cp', ['-a', '--reflink=auto', root, plain])
  console.log(
    `Tree: ${name}, ${
      execFileSync('git', ['ls-files'], { cwd: root, maxBuffer: 1 << 30 })
        .toString()
        .split('\n').length - 1
    } files; ${ROUNDS} rounds, medians`,
  )
  execFileSync('git', ['update-index', '-q', '--refresh'], { cwd: root, env: vars })

  // The plain method, in a second copy of the tree: a private index, warm.
  const privateIndex = { ...vars, GIT_INDEX_FILE: path.join(plain, '.git', 'private-index') }
  execFileSync('cp', [path.join(plain, '.git', 'index'), privateIndex.GIT_INDEX_FILE])
  const scan = () =>
    timed('git', ['add', '--all'], { cwd: plain, env: privateIndex }) +
    timed('git', ['write-tree'], { cwd: plain, env: privateIndex })
  scan()
  /** git adding everything to an index and an object directory that are empty. */
  const gitHashesAll = (objects: string) => {
    mkdirSync(objects)
    const empty = { ...vars, GIT_INDEX_FILE: path.join(objects, 'index'), GIT_OBJECT_DIRECTORY: objects }
    const ms =
      timed('git', ['add', '--all'], { cwd: plain, env: empty }) +
      timed('git', ['write-tree'], { cwd: plain, env: empty })
    rmSync(objects, { recursive: true })
    return ms
  }

  const first = { seeded: [] as number[], unseeded: [] as number[], plain: [] as number[] }
  const index = path.join(root, '.git', 'index')
  const anew = () => rmSync(path.join(root, '.git', 'ckpt'), { recursive: true, force: true })
  for (let round = 0; round < Math.min(ROUNDS, 3); round++) {
    first.seeded.push(ckpt('snapshot').ms)
    anew()
    renameSync(index, `${index}.away`)
    first.unseeded.push(ckpt('snapshot').ms)
    renameSync(`${index}.away`, index)
    anew()
    first.plain.push(gitHashesAll(path.join(base, 'hashed')))
  }
  const [seeded, unseeded, hashed] = [median(first.seeded), median(first.unseeded), median(first.plain)]
  console.log(
    `First snapshot of a clean checkout: seeded ${show(seeded)} ms, git hashing everything ${show(hashed)} ms, ${(hashed / seeded).toFixed(1)}x faster (at least 8x); ckpt without the user's index ${show(unseeded)} ms, ${(unseeded / seeded).toFixed(1)}x`,
  )

  ckpt('mark', 'prompt', '--session', 'bench')
  ckpt('mark', 'stop', '--session', 'bench')
  const rows = {
    quiet: [] as Timed[],
    busy: [] as Timed[],
    undo: [] as Timed[],
    redo: [] as Timed[],
    node: [] as number[],
    scan: [] as number[],
    scanBusy: [] as number[],
    checkout: [] as number[],
  }
  const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], { cwd: plain }).toString().trim()
  for (let round = 0; round < ROUNDS; round++) {
    rows.node.push(timed(process.execPath, ['-e', '0']))
    rows.quiet.push(ckpt('mark', 'prompt', '--session', 'bench'))
    rows.scan.push(scan())
    touch(files, root)
    touch(files, plain)
    rows.busy.push(ckpt('mark', 'stop', '--session', 'bench'))
    rows.scanBusy.push(scan())
    rows.undo.push(ckpt('undo', '--session', 'bench'))
    rows.checkout.push(timed('git', ['checkout', '-q', tree, '--', ...files], { cwd: plain, env: privateIndex }))
    rows.redo.push(ckpt('redo', '--session', 'bench'))
    touch(files, plain)
    scan()
  }
  const node = median(rows.node)
  const wall = (list: Timed[]) => median(list.map((one) => one.wall)) - node
  const ms = (list: Timed[]) => median(list.map((one) => one.ms - one.syncMs))
  report(
    'Marker, nothing changed (whole command less a node start)',
    { ours: wall(rows.quiet), theirs: median(rows.scan) },
    'at most 1.8',
  )
  report(
    'Marker, 10 files changed (whole command less a node start)',
    { ours: wall(rows.busy), theirs: median(rows.scanBusy) },
    'at most 1.8',
  )
  const undoPlain = median(rows.checkout) + median(rows.scan)
  report('Undo of a 10-file turn (ms, syncing apart)', { ours: ms(rows.undo), theirs: undoPlain }, 'at most 1.5')
  report(
    'Undo of a 10-file turn (whole command less a node start)',
    { ours: wall(rows.undo) - median(rows.undo.map((one) => one.syncMs)), theirs: undoPlain },
    'for comparison',
  )
  report('Redo of a 10-file turn (ms, syncing apart)', { ours: ms(rows.redo), theirs: undoPlain }, 'for comparison')
  console.log(
    `Syncing in an undo: ${show(median(rows.undo.map((one) => one.syncMs)))} ms; a node start: ${show(node)} ms`,
  )

  // The same with the daemon: what changed, not what is there.
  execFileSync(process.execPath, [program, 'daemon', 'start'], { cwd: root, env: vars })
  const fast = {
    quiet: [] as Timed[],
    busy: [] as Timed[],
    undo: [] as Timed[],
    first: [] as Timed[],
    scan: [] as number[],
    checkout: [] as number[],
    status: [] as number[],
  }
  ckpt('mark', 'prompt', '--session', 'bench')
  for (let round = 0; round < ROUNDS; round++) {
    touch(files, root)
    touch(files, plain)
    fast.busy.push(ckpt('mark', 'stop', '--session', 'bench'))
    fast.scan.push(scan())
    fast.undo.push(ckpt('undo', '--session', 'bench'))
    fast.checkout.push(timed('git', ['checkout', '-q', tree, '--', ...files], { cwd: plain, env: privateIndex }))
    ckpt('redo', '--session', 'bench')
    ckpt('mark', 'prompt', '--session', 'bench')
    fast.quiet.push(ckpt('mark', 'step', '--session', 'bench', '--start'))
    fast.first.push(ckpt('mark', 'prompt', '--session', `bench ${round}`))
    fast.status.push(timed('git', ['status', '--porcelain']))
  }
  execFileSync(process.execPath, [program, 'daemon', 'stop'], { cwd: root, env: vars })
  const times = (ours: number, theirs: number) => `${(theirs / ours).toFixed(1)}x better`
  const plainScan = median(fast.scan)
  console.log(
    `With the daemon: marker with 10 files ${show(ms(fast.busy))} ms, ${times(ms(fast.busy), plainScan)} than ${show(plainScan)} ms (at least 25x); nothing changed ${show(ms(fast.quiet))} ms, ${times(ms(fast.quiet), plainScan)} (at least 40x)`,
  )
  const whole = (list: Timed[]) => (median(list.map((one) => one.wall)) / node).toFixed(2)
  console.log(
    `With the daemon: the whole command, of a node start: nothing changed ${whole(fast.quiet)} (at most 1.6), 10 files ${whole(fast.busy)} (at most 1.9)`,
  )
  report(
    'With the daemon: undo of a 10-file turn (ms, syncing apart)',
    { ours: ms(fast.undo), theirs: median(fast.checkout) },
    'at most 1.5',
  )
  report(
    "With the daemon: a session's first prompt, which says whether anything is uncommitted (10 files are)",
    { ours: ms(fast.first), theirs: median(fast.status) },
    'at most 1',
  )
  await benchDaemon({ base, root, files, vars, rounds: ROUNDS })
  const { gated, bare } = gateCost(base, program, vars)
  report('git commit with the gate, nothing pending', { ours: gated, theirs: bare }, 'at most 1.2')
  report(
    'Undo and redo of a turn of 1,000 files, against writing and syncing them one after the other',
    benchUndo(base, program, vars),
    'for comparison',
  )
  await benchHistory(ROUNDS)
  await benchStore()
  await benchHooks(ROUNDS)
} finally {
  rmSync(base, { recursive: true, force: true })
}
