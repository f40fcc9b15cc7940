import type { Env } from '../../env.ts'

/** mkfifo(1), which Node has no call for. False: there is none, or no room. */
export function makeFifos(env: Env, paths: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = env.spawn('mkfifo', ['-m', '600', ...paths], { stdio: 'ignore' })
    child.on('error', () => resolve(false))
    child.on('close', (code) => resolve(code === 0))
  })
}
