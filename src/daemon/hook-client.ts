/**
 * `ckpt hook` at the worktree's hook door (`hook-door.ts`): what `bin/ckpt-hook` does, for those who start Node. Files and
 * fifos only, since Node's sockets take longer to load than the daemon to answer.
 */
import { constants } from 'node:fs'
import { type Env, errno } from '../env.ts'
import { removeIfThere } from '../git/whole-file.ts'
import { handedBytes } from '../ops/hook/handed.ts'
import { readInput } from '../ops/hook/input.ts'
import { makeFifos } from '../ops/worktree/fifos.ts'
import { quickPlaces } from '../ops/worktree/quick-place.ts'
import type { Routed } from './client.ts'
import {
  type Answering,
  answerFifo,
  doorFifo,
  freeFifo,
  hooksDirectory,
  isAnswering,
  payloadFile,
  readyFile,
  whoAnswers,
} from './hook-place.ts'

interface Door {
  directory: string
  daemon: Answering
}

/** Whose hook it is; what is said in words instead of on standard input. */
interface Words {
  agent: string
  event: string | undefined
  payload?: Buffer
}

/** One fifo for the answer, and the file that was handed over with it. */
interface Given {
  id: string
  answer: string
  file: string
}

/** Seconds without a sign of life after which the daemon is taken to hang, and seconds in all; `bin/ckpt-hook` waits as long. */
const SILENT = 2
const PATIENCE = 18

export async function throughDoor(env: Env, argv: readonly string[]): Promise<Routed> {
  const words = plainWords(env, argv)
  const door = words && findDoor(env)
  if (!door) return { run: argv }
  const begun = env.monotonic() // an agent that is slow to send its payload has used up time of its own
  const payload = words.payload ?? (await readInput(env))
  const project = env.vars.CLAUDE_PROJECT_DIR
  const given = await handOver(env, door, handedBytes({ ...words, cwd: env.cwd, project }, payload))
  const answer = given && (await ask(env, { door, given, words }))
  if (answer !== null) return said(answer)
  if (given) {
    for (const fifo of [given.answer, answerFifo(door.directory, given.id)]) removeIfThere(env, fifo)
    if (!env.files.existsSync(given.file)) return said('') // it was carried out, and only the answer is lost
  }
  const waited = ['--waited', String(Math.round(env.monotonic() - begun))]
  // The id goes along: a marker that the daemon recorded after all is the same one.
  const handed = given ? ['--handed', given.file] : []
  return { run: ['hook', '--no-daemon', ...waited, ...handed, ...argv.slice(1)], ...(given ? {} : { input: payload }) }
}

const said = (words: string): Routed => ({ answer: { code: 0, stdout: words && `${words}\n`, stderr: '' } })

/** Null: the work is for the program, which has the words for what is odd. */
function plainWords({ vars, cwd }: Env, argv: readonly string[]): Words | null {
  const [agent, event, ...more] = argv.slice(1).filter((word) => word !== '--shell')
  const { CKPT_DISABLED, CLAUDE_PROJECT_DIR = '' } = vars
  if (CKPT_DISABLED === '1' || `${cwd}${CLAUDE_PROJECT_DIR}`.includes('\n')) return null
  if (agent === undefined || !/^\w[\w.-]{0,199}$/.test(agent) || more.length > 0 || event?.startsWith('-')) return null
  if (agent.endsWith('-notify')) return { agent, event: undefined, payload: Buffer.from(event ?? '') }
  return event === undefined || /^[\w.-]{0,200}$/.test(event) ? { agent, event } : null
}

/** The door of the worktree that we are in, or of the project that the agent names. */
function findDoor(env: Env): Door | null {
  for (const at of [env.cwd, env.vars.CLAUDE_PROJECT_DIR]) {
    if (!at?.startsWith('/')) continue
    for (const { worktreeDir } of quickPlaces(env, at)) {
      const directory = hooksDirectory(worktreeDir)
      const daemon = whoAnswers(env, directory)
      if (daemon) return { directory, daemon }
    }
  }
  return null
}

/** The daemon has fifos ready: who makes the file for the payload that goes with one has it. Null: it cannot be handed over. */
async function handOver(env: Env, { directory }: Door, bytes: Buffer): Promise<Given | null> {
  const { files } = env
  try {
    for (const id of files.readdirSync(`${directory}/free`)) {
      const given = { id, answer: freeFifo(directory, id), file: payloadFile(directory, id) }
      if (!make(env, given.file, bytes)) continue
      if (files.existsSync(given.answer)) return given
      files.unlinkSync(given.file) // it was somebody's, who is through
    }
    return await handOverApart(env, directory, bytes)
  } catch {
    return null // no room, or the place is gone: the program finds out, and says so
  }
}

/** With a fifo of its own. */
async function handOverApart(env: Env, directory: string, bytes: Buffer): Promise<Given | null> {
  const id = env.random(16)
  const given = { id, answer: answerFifo(directory, id), file: payloadFile(directory, id) }
  let isGiven = false
  try {
    isGiven = (await makeFifos(env, [given.answer])) && make(env, given.file, bytes)
    return isGiven ? given : null
  } finally {
    if (!isGiven) removeIfThere(env, given.answer)
  }
}

/** False: a file of that name is there, and somebody else's. */
function make(env: Env, file: string, bytes: Buffer): boolean {
  try {
    env.files.writeFileSync(file, bytes, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (errno(error) === 'EEXIST') return false
    removeIfThere(env, file) // half of it
    throw error
  }
}

/** What the agent is to see on standard output. Null: there is no answer. */
async function ask(
  env: Env,
  { door, given, words }: { door: Door; given: Given; words: Words },
): Promise<string | null> {
  const { files } = env
  const opened: number[] = []
  const open = (path: string, flags: number) => {
    const fd = files.openSync(path, flags | constants.O_NOFOLLOW)
    opened.push(fd)
    if (!files.fstatSync(fd).isFIFO()) throw new Error(`${path} is no fifo`)
    return fd
  }
  let clock: NodeJS.Timeout | undefined
  try {
    // Opened for writing too, a fifo has no end while we wait, and the clock can say that a second went by.
    const answer = open(given.answer, constants.O_RDWR)
    const entrance = open(doorFifo(door.directory), constants.O_WRONLY | constants.O_NONBLOCK)
    files.writeSync(entrance, `${given.id} ${words.agent} ${words.event ?? ''}\n`)
    clock = setInterval(() => files.writeSync(answer, 'second\n'), 1000)
    // Node does not end while something waits for a fifo.
    env.onCrash(() => opened.length > 0 && files.writeSync(answer, 'no\n'))
    return await hear(env, door, answer)
  } catch {
    return null // the daemon has just gone
  } finally {
    clearInterval(clock)
    for (const fd of opened.splice(0)) files.closeSync(fd)
  }
}

async function hear(env: Env, door: Door, fd: number): Promise<string | null> {
  const buffer = Buffer.alloc(4096)
  let [rest, silent, waited] = ['', 0, 0]
  for (;;) {
    rest += buffer.toString('latin1', 0, await env.read(fd, buffer))
    const lines = rest.split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      if (line.startsWith('done')) return Buffer.from(line.slice('done '.length), 'latin1').toString('utf8')
      if (line === 'working') silent = 0
      else if (line === 'second') {
        silent++
        waited++
        if (!isAnswering(env, door.daemon)) return null
        if (silent >= SILENT) {
          removeIfThere(env, readyFile(door.directory)) // who comes next need not find out; it opens again when it lives
          return null
        }
        if (waited >= PATIENCE) return null
      } else return null
    }
  }
}
