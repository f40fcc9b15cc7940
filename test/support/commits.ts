/** What tests of `ckpt commit` share. */
import type { Json, Scratch } from './scratch.ts'

/** Who commits. */
export const me = {
  GIT_AUTHOR_NAME: 'A U Thor',
  GIT_AUTHOR_EMAIL: 'author@example.com',
  GIT_COMMITTER_NAME: 'C O Mitter',
  GIT_COMMITTER_EMAIL: 'committer@example.com',
}

export function commit(
  scratch: Scratch,
  args: string[] = [],
  vars: Record<string, string> = {},
): { code: number; json: Json; stderr: string } {
  const { code, stdout, stderr } = scratch.run(['commit', ...args, '--json'], { vars: { ...me, ...vars } })
  return { code, json: JSON.parse(stdout), stderr }
}
/** Twenty lines, some of them changed. */
export const lines = (...changed: [number, string][]) =>
  Array.from({ length: 20 }, (_, i) => `${changed.find(([at]) => at === i + 1)?.[1] ?? `line ${i + 1}`}\n`).join('')
