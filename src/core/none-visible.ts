/** What is said where a session has no turn that an undo, or a look at what it did, could begin with. Pure. */
import { sessionOption } from './hint-words.ts'
import { printable } from './paths.ts'
import { hiddenTurns, type Timeline } from './timeline.ts'

/** Of a session without a turn to undo: why, and what else there is to do. */
export function noneVisible(
  session: string,
  { hidden, abandoned = 0 }: { hidden: number; abandoned?: number },
): [why: string, hints: string[]] {
  const [name, same] = [printable(session), sessionOption(session)]
  if (hidden > 0) return [`All turns of session ${name} are undone.`, [`ckpt redo ${same}`]]
  if (abandoned > 0)
    return [
      `All turns of session ${name} are abandoned.`,
      [`ckpt list --abandoned ${same}   (ckpt switch TURN ${same} goes back to one)`],
    ]
  return [`Session ${name} has no visible turn.`, []]
}

export const noneVisibleIn = (timeline: Timeline) =>
  noneVisible(timeline.session, { hidden: hiddenTurns(timeline).length, abandoned: timeline.branches })
