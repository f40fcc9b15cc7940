/** Long output on a terminal goes through `$CKPT_PAGER`, or `less`; never through git's pager. */
import type { Env } from '../env.ts'

/** False when the text fits, or no pager could be started: the caller prints it. */
export async function showPaged(env: Env, text: string): Promise<boolean> {
  const rows = env.stdout.rows ?? 0
  if (!env.stdout.isTTY || rows === 0 || text.split('\n').length < rows) return false
  const pager = env.vars.CKPT_PAGER ?? 'less'
  if (pager === '' || pager === 'cat') return false
  // Ctrl-C is for the pager, which holds the terminal: neither we nor its shell leave it there alone.
  const deaf = (['SIGINT', 'SIGQUIT'] as const).map((signal) => env.onSignal(signal, () => undefined))
  return new Promise<boolean>((resolve) => {
    const child = env.spawn('sh', ['-c', `trap : INT QUIT\n${pager}`], {
      stdio: ['pipe', 'inherit', 'inherit'],
      env: { ...env.vars, LESS: env.vars.LESS ?? 'FRX' },
    })
    child.stdin?.on('error', () => undefined) // left before the end
    child.on('error', () => resolve(false))
    // 126 and 127: the shell found no such program.
    child.on('close', (code) => resolve(code !== 126 && code !== 127))
    child.stdin?.end(`${text}\n`)
  }).finally(() => {
    for (const hear of deaf) hear()
  })
}
