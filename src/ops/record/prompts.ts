/** Prompts as far as they can be read and kept: what is damaged of them is done without, which is said, and holds up nothing. */
import { isDamage } from '../../core/errors.ts'
import type { WorktreeRefs } from '../../git/history.ts'
import type { RefEdit } from '../../git/refs.ts'
import { addPrompt } from '../../git/side-refs.ts'
import type { Context } from '../worktree/context.ts'

const LOST = 'Prompts of this worktree are damaged, and left out: ckpt doctor --fix'
const NOT_KEPT = 'Prompts of this worktree are damaged, and this one was not kept: ckpt doctor --fix'

/** For {@link promptReader}: says once that prompts are lost. */
export function tellingLost({ warnings }: Pick<Context, 'warnings'>): () => void {
  return () => {
    if (!warnings.includes(LOST)) warnings.push(LOST)
  }
}

/** The edit that attaches a prompt, or that text which stands for one; none where it has to be left out, which is said. */
export async function promptEdits(
  { store, warnings }: Pick<Context, 'store' | 'warnings'>,
  { notes }: Pick<WorktreeRefs, 'notes'>,
  prompt: Parameters<typeof addPrompt>[2],
): Promise<RefEdit[]> {
  try {
    return [await addPrompt(store, notes, prompt)]
  } catch (error) {
    if (!isDamage(error)) throw error
    // Not begun anew: doctor could not tell then that there were others.
    warnings.push(NOT_KEPT)
    return []
  }
}
