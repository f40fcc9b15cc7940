/** The message of a commit: given, from the user's own command, or from the turns' prompts. */
import { messageFromPrompts, type PromptedTurn } from '../../core/commit-message.ts'
import type { SessionId } from '../../core/ids.ts'
import type { Context } from '../worktree/context.ts'

/** Milliseconds: a model may be asked for it. */
const PATIENCE = 60_000
const LONGEST = 2 ** 16

export interface MessageInput {
  session: SessionId
  turns: readonly PromptedTurn[]
  /** What is about to be committed, as git shows it. */
  patch: () => Promise<Buffer>
}

/**
 * The user's `commit.messageCommand` gets the prompts' message, an empty line and the patch on standard input, and
 * `CKPT_SESSION` in its environment; what it prints is the message. When it fails, is silent, or takes longer than a
 * minute, the prompts' message is taken, with a warning.
 */
export async function commitMessage(context: Context, input: MessageInput): Promise<string> {
  const { config, warnings } = context
  const own = messageFromPrompts(input.turns)
  const command = config.commit.messageCommand
  if (command === null) return own
  const said = await ask(context, command, {
    ...input,
    given: Buffer.concat([Buffer.from(`${own}\n`), await input.patch()]),
  })
  if (said.message !== null) return said.message
  warnings.push(`commit.messageCommand ${said.why}: the message is made from the prompts.`)
  return own
}

type Said = { message: string } | { message: null; why: string }

function ask(
  { env, worktree }: Context,
  command: string,
  { session, given }: { session: SessionId; given: Buffer },
): Promise<Said> {
  return new Promise((resolve) => {
    const child = env.spawn('sh', ['-c', command], {
      cwd: worktree.root,
      env: { ...env.vars, CKPT_SESSION: session } as NodeJS.ProcessEnv,
      stdio: ['pipe', 'pipe', 2],
    })
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      for (const pipe of [child.stdin, child.stdout]) pipe?.destroy() // what it started may hold them, and so us
      done({ message: null, why: 'took longer than a minute' })
    }, PATIENCE)
    const done = (said: Said) => {
      clearTimeout(timer)
      resolve(said)
    }
    const out: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => out.push(chunk))
    child.stdin?.on('error', () => undefined) // it need not read all
    child.stdin?.end(given)
    child.on('error', (error) => done({ message: null, why: `could not be started (${error.message})` }))
    child.on('close', (code) => {
      const message = Buffer.concat(out).toString('utf8').replaceAll('\0', '').trim()
      if (code !== 0) done({ message: null, why: `failed (exit ${code ?? 'by a signal'})` })
      else if (message === '') done({ message: null, why: 'printed nothing' })
      else done({ message: `${message.slice(0, LONGEST)}\n` })
    })
  })
}
