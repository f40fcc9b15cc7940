/** Processes as proc(5) shows them, and who this one is, so exactly that another can tell whether it still is. */
import { type Env, errno } from '../../env.ts'

/** A process of one running system, whose number is used again after it. */
export interface Identity {
  pid: number
  /** Start of the process in clock ticks since boot (proc(5)). */
  started: string
  boot: string
  /** The pid namespace: process ids lie across containers. */
  namespace: string
  machine: string
}

export function readText(env: Env, path: string): string {
  try {
    return env.files.readFileSync(path, 'utf8').trim()
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ESRCH' || code === 'ENOTDIR') return ''
    throw error
  }
}

interface Stat {
  /** Of its program, cut at 15 bytes. */
  name: string
  /** A letter. */
  state: string
  started: string
  /** Process ids. */
  parent: number
  group: number
}

/** From /proc/PID/stat, whose second field may hold spaces and brackets. */
export function processStat(env: Env, pid: number): Stat | null {
  const text = readText(env, `/proc/${pid}/stat`)
  if (text === '') return null
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return {
    name: text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')),
    state: fields[0] ?? '',
    started: fields[19] ?? '',
    parent: Number(fields[1]),
    group: Number(fields[2]),
  }
}

export type Process = Stat & { pid: number }

/** None where the system does not say. */
export function allProcesses(env: Env): Process[] {
  try {
    return env.files.readdirSync('/proc').flatMap((name) => {
      const stat = /^\d+$/.test(name) ? processStat(env, Number(name)) : null
      return stat ? [{ pid: Number(name), ...stat }] : []
    })
  } catch (error) {
    if (errno(error) === undefined) throw error
    return []
  }
}

/** What a process has at work below it in its own process group, which is what a terminal reaches; none where the system does not say. */
export function groupBelow(env: Env, pid: number): number[] {
  const group = processStat(env, pid)?.group
  if (group === undefined) return []
  const stats = allProcesses(env)
  const found = [pid]
  for (const above of found)
    found.push(...stats.flatMap((one) => (one.parent === above && one.group === group ? [one.pid] : [])))
  return found.slice(1)
}

function namespaceOf(env: Env): string {
  try {
    return env.files.readlinkSync('/proc/self/ns/pid')
  } catch (error) {
    if (errno(error) === 'ENOENT') return ''
    throw error
  }
}

/** Nothing of it changes while a process lives: one that takes the lock again and again reads it once. */
const identities = new WeakMap<Env['files'], Identity>()

export function ownIdentity(env: Env): Identity {
  const known = identities.get(env.files)
  if (known?.pid === env.pid) return known
  const identity = readIdentity(env)
  identities.set(env.files, identity)
  return identity
}

function readIdentity(env: Env): Identity {
  return {
    pid: env.pid,
    started: processStat(env, env.pid)?.started ?? '',
    boot: readText(env, '/proc/sys/kernel/random/boot_id'),
    namespace: namespaceOf(env),
    machine: `${env.hostname} ${readText(env, '/etc/machine-id')}`,
  }
}

/** Whether a process of this machine is there and at work: a zombie answers signals, and its number may be another's by now. */
export function isRunning(env: Env, pid: number, started: string): boolean {
  const stat = processStat(env, pid)
  if (stat) return stat.started === started && stat.state !== 'Z' && stat.state !== 'X'
  if (readText(env, '/proc/sys/kernel/random/boot_id') !== '') return false
  try {
    env.kill(pid, 0)
    return true
  } catch (error) {
    return errno(error) === 'EPERM'
  }
}

/** When a process started, in clock ticks since boot (proc(5)); empty where the system does not say. */
export function startOf(env: Env, pid: number): string {
  return processStat(env, pid)?.started ?? ''
}

/** Whether a time (milliseconds since 1970, UTC) was before this system started: whatever was at work then has ended. */
export const isFromBefore = ({ now, uptime }: Env, time: number): boolean => time <= now() - uptime() * 1000
