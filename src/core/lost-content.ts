/** The refusal of whatever needs a content that the store has lost. */
import { CkptError } from './errors.ts'
import { shortList } from './paths.ts'

export const lostContent = (paths: readonly string[]): CkptError =>
  new CkptError('DAMAGED', `The store has lost the content of ${shortList(paths)}. Nothing was changed.`, {
    paths,
    hints: ['ckpt doctor   (what else is lost, and what can be done)'],
  })
