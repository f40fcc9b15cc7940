// A long session: listing it costs what is shown, not what there is.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { SessionId, TurnNumber } from '../src/core/ids.ts'
import { realEnv } from '../src/env.ts'
import { sessionRef, writeCheckpoint } from '../src/git/history.ts'
import { addPrompt, keepObjects } from '../src/git/side-refs.ts'
import { snapshotNow } from '../src/ops/snapshot-now.ts'
import { closeContext, openContext } from '../src/ops/worktree/context.ts'

const program = path.resolve(import.meta.dirname, '../bin/ckpt.js')
const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!

/** A repository whose session `long` has so many checkpoints: two a turn, or one turn that runs, of as many steps. */
async function layOutSession(root: string, checkpoints: number, { oneTurn = false } = {}): Promise<void> {
  mkdirSync(root, { recursive: true })
  execFileSync('git', ['init', '-q'], { cwd: root })
  writeFileSync(path.join(root, 'a.txt'), '0\n')
  const env = { ...realEnv(), cwd: root }
  const context = await openContext(env, root, { create: true })
  const { store } = context
  const { checkpoint } = await snapshotNow(context, undefined, env.monotonic())
  const session = 'long' as SessionId
  let parent = checkpoint!.id
  let notes: Awaited<ReturnType<typeof addPrompt>> | null = null
  for (let i = 0; i < checkpoints; i++) {
    const turn = (oneTurn ? 1 : Math.floor(i / 2) + 1) as TurnNumber
    const blob = store.objects.write('blob', Buffer.from(`${Math.ceil(i / 2)}\n`))
    const tree = await store.trees.edit(checkpoint!.tree, new Map([['a.txt', { mode: '100644', oid: blob }]]))
    const time = new Date(Date.UTC(2026, 0, 1) + i * 1000).toISOString()
    const meta = {
      ...(oneTurn && i > 0 ? step(i) : turnMarker(i)),
      session,
      turn,
      seq: i + 2,
      beside: checkpoint!.beside,
      time,
    }
    const next = writeCheckpoint(store, { tree, parents: i === 0 ? [] : [parent] }, meta)
    if (meta.kind === 'before' && checkpoints - i < 100) {
      notes = await addPrompt(store, notes?.to ?? null, { before: next.id, text: `Turn ${turn} of many`, seconds: 0 })
    }
    parent = next.id
  }
  const keep = await keepObjects(store, null, [])
  const edits = [...(keep ? [keep] : []), ...(notes ? [{ ...notes, from: null }] : [])]
  await store.moveRefs([...edits, { ref: sessionRef(store, session, 'live'), from: null, to: parent }])
  closeContext(context)
}

const turnMarker = (i: number) =>
  i % 2 === 0 ? { kind: 'before' as const } : { kind: 'after' as const, status: 'completed' as const }

const step = (i: number) => ({
  kind: 'step' as const,
  step: Math.ceil(i / 2),
  callId: `call-${Math.ceil(i / 2)}`,
  tool: 'Bash',
  ...(i % 2 ? { start: true } : {}),
})

export async function benchHistory(rounds: number): Promise<void> {
  const base = mkdtempSync(path.join(tmpdir(), 'ckpt-bench-history-'))
  try {
    const [short, long] = [path.join(base, 'short'), path.join(base, 'long')]
    await layOutSession(short, 10)
    await layOutSession(long, 10_000)
    const steps = path.join(base, 'steps')
    await layOutSession(steps, 2_001, { oneTurn: true })
    const time = (command: string, args: string[], cwd: string) => {
      const start = performance.now()
      execFileSync(command, args, { cwd, stdio: 'pipe' })
      return performance.now() - start
    }
    const rows = { short: [] as number[], long: [] as number[], node: [] as number[], mark: [] as number[] }
    for (let i = 0; i < rounds; i++) {
      rows.node.push(time(process.execPath, ['-e', '0'], base))
      rows.short.push(time(process.execPath, [program, 'list', '-n', '20'], short))
      rows.long.push(time(process.execPath, [program, 'list', '-n', '20'], long))
    }
    const [a, b, node] = [median(rows.long), median(rows.short), median(rows.node)]
    console.log(
      `list -n 20 with 10,000 checkpoints: ${a.toFixed(0)} ms against ${b.toFixed(0)} ms with 10, ratio ${(a / b).toFixed(2)} (at most 1.5)`,
    )
    const [many, few, inTurn] = [
      markerCost(long, rounds),
      markerCost(short, rounds),
      markerCost(steps, rounds, { oneTurn: true }),
    ]
    console.log(
      `With the daemon, a marker with 10,000 checkpoints: ${many.toFixed(1)} ms against ${few.toFixed(1)} ms with 10, ratio ${(many / few).toFixed(2)} (at most 1.3)`,
    )
    console.log(
      `With the daemon, a marker in a turn of 1,000 steps: ${inTurn.toFixed(1)} ms against ${few.toFixed(1)} ms, ratio ${(inTurn / few).toFixed(2)} (at most 2)`,
    )
    console.log(
      `list -n 20 with 10 checkpoints: ${b.toFixed(0)} ms against a node start of ${node.toFixed(0)} ms, ratio ${(b / node).toFixed(2)} (at most 2.6)`,
    )
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}

/** A daemon that has seen so long a session knows its checkpoints, and runs compiled code. */
const WARM = 30

/** Milliseconds of a marker through the daemon. */
function markerCost(root: string, rounds: number, { oneTurn = false } = {}): number {
  const ckpt = (...args: string[]) =>
    JSON.parse(execFileSync(process.execPath, [program, ...args, '--json'], { cwd: root, encoding: 'utf8' })) as {
      ms: number
    }
  ckpt('daemon', 'start')
  if (!oneTurn) ckpt('mark', 'prompt', '--session', 'long')
  const marks = (count: number) =>
    Array.from({ length: count }, () => ckpt('mark', 'step', '--start', '--session', 'long').ms)
  marks(WARM)
  const costs = marks(rounds)
  ckpt('daemon', 'stop')
  return median(costs)
}

if (process.argv[1] === import.meta.filename) await benchHistory(Number(process.env.CKPT_BENCH_ROUNDS ?? 9))
