/** The message of a commit: given, from the user's own command, or from the turns' prompts. */
import { onAbort, refuseCancelled } from '../../core/cancel.ts'
import { messageFromPrompts, type PromptedTurn } from '../../core/commit-message.ts'
import type { SessionId } from '../../core/ids.ts'
import { killIfThere } from '../../env.ts'
import type { Context } from '../worktree/context.ts'

/** Milliseconds: a model may be asked for it. */
const PATIENCE = 60_000
/** Bytes. */
const LONGEST = 2 ** 16

export interface MessageInput {
  session: SessionId
  turns: readonly PromptedTurn[]
  /** What is about to be committed, as git shows it. */
  patch: () => Promise<Buffer>
}

/**
 * The user's `commit.messageCommand` gets the prompts' message, an empty line and the patch on standard input, and
 * `CKPT_SESSION` in its environment; what it prints is the message. When it fails, is silent, prints more than 64 KiB, or
 * takes longer than a minute, the prompts' message is taken, with a warning.
 * @throws CkptError CANCELLED where `env.signal` came first
 */
export async function commitMessage(context: Context, input: MessageInput): Promise<string> {
  const { config, warnings } = context
  const own = messageFromPrompts(input.turns)
  const command = config.commit.messageCommand
  if (command === null) return own
  const given = Buffer.concat([Buffer.from(`${own}\n`), await input.patch()])
  refuseCancelled(context.env.signal)
  const said = await ask(context, command, { ...input, given })
  refuseCancelled(context.env.signal)
  if (said.message !== null) return said.message
  warnings.push(`commit.messageCommand ${said.why}: the message is made from the prompts.`)
  return own
}

type Said = { message: string } | { message: null; why: string }

/** Milliseconds for what it printed to arrive once it has ended: what it left at work may hold the pipe. */
const GRACE = 500

/**
 * In a process group of its own, so that all it started can be ended; where somebody is there it keeps the terminal, which
 * sends Ctrl-C to all of it.
 */
function ask(
  { env, worktree }: Context,
  command: string,
  { session, given }: { session: SessionId; given: Buffer },
): Promise<Said> {
  return new Promise((resolve) => {
    const detached = env.stderr.isTTY !== true
    const child = env.spawn('sh', ['-c', command], {
      cwd: worktree.root,
      env: { ...env.vars, CKPT_SESSION: session } as NodeJS.ProcessEnv,
      stdio: ['pipe', 'pipe', 2],
      detached,
    })
    const out: Buffer[] = []
    let length = 0
    let grace: NodeJS.Timeout | undefined
    const timer = setTimeout(() => end({ message: null, why: 'took longer than a minute' }), PATIENCE)
    const done = (said: Said) => {
      clearTimeout(timer)
      clearTimeout(grace)
      unheed()
      for (const pipe of [child.stdin, child.stdout]) pipe?.destroy() // what it started may hold them, and so us
      resolve(said)
    }
    const end = (said: Said) => {
      if (child.pid !== undefined) killIfThere(env, detached ? -child.pid : child.pid, 'SIGKILL')
      done(said)
    }
    const unheed = onAbort(env.signal, () => end({ message: null, why: 'was cancelled' }))
    child.stdout?.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > LONGEST) end({ message: null, why: 'printed more than 64 KiB' })
      else out.push(chunk)
    })
    child.stdin?.on('error', () => undefined) // it need not read all
    child.stdin?.end(given)
    const finish = (code: number | null) => {
      const message = Buffer.concat(out).toString('utf8').replaceAll('\0', '').trim()
      if (code !== 0) done({ message: null, why: `failed (exit ${code ?? 'by a signal'})` })
      else if (message === '') done({ message: null, why: 'printed nothing' })
      else done({ message: `${message}\n` })
    }
    child.on('error', (error) => done({ message: null, why: `could not be started (${error.message})` }))
    child.on('exit', (code) => {
      grace = setTimeout(() => finish(code), GRACE)
    })
    child.on('close', finish)
  })
}
