/** Turns and checkpoints that went by themselves, for the store was over its limit of bytes (`store.maxBytes`): what status says. */
import { type Env, errno } from '../../env.ts'
import { readIfThere, writeFileWhole } from '../../git/whole-file.ts'

/** Milliseconds for which it is told that the oldest went. */
const TOLD = 7 * 86_400_000

interface Went {
  /** Milliseconds since 1970, UTC: of the first of them, and of the last. */
  since: number
  time: number
  turns: number
  byHand: number
}

const wentFile = (gitDir: string) => `${gitDir}/../went`

/** What went for the limit of bytes, and nobody asked for it, is told for some days. */
export function noteWent(env: Env, gitDir: string, { turns, byHand }: Pick<Went, 'turns' | 'byHand'>): void {
  if (turns + byHand === 0) return
  const time = env.now()
  const last = readWent(env, gitDir)
  const went = {
    since: last?.since ?? time,
    time,
    turns: (last?.turns ?? 0) + turns,
    byHand: (last?.byHand ?? 0) + byHand,
  }
  try {
    writeFileWhole(env, wentFile(gitDir), { content: JSON.stringify(went satisfies Went) })
  } catch (error) {
    if (errno(error) === undefined) throw error // no room for it: what follows makes some
  }
}

/** Null: nothing went lately, or what was noted is damaged. */
export function readWent(env: Env, gitDir: string): Went | null {
  try {
    const went: Went | null = JSON.parse(readIfThere(env, wentFile(gitDir))?.toString('utf8') ?? 'null')
    return went && [went.since, went.turns, went.byHand].every(Number.isSafeInteger) && env.now() - went.time < TOLD
      ? went
      : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

const numbered = (count: number, word: string) => (count === 0 ? [] : [`${count} ${word}${count === 1 ? '' : 's'}`])

/** "3 turns", "1 turn and 2 checkpoints by hand". */
export const countedWords = ({ turns, byHand }: { turns: number; byHand: number }): string =>
  [...numbered(turns, 'turn'), ...numbered(byHand, 'checkpoint').map((n) => `${n} by hand`)].join(' and ')
