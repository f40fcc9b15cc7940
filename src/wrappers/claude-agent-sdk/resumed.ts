/** A query on a session that is over, made for one question: no prompt is sent, and the model is not asked. */
import { CkptError } from '../../core/errors.ts'
import { printable } from '../../core/paths.ts'
import type { AgentQuery, AgentSdk, KnownOptions } from './sdk.ts'

/** @throws CkptError NOT_FOUND when there is no query to ask */
export async function resumed<T>(
  sdk: AgentSdk,
  options: KnownOptions & { resume: string },
  ask: (query: AgentQuery) => Promise<T>,
): Promise<T> {
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  // An open stream that says nothing: an empty text would be a prompt.
  const nothing = {
    [Symbol.asyncIterator]: () => ({ next: () => ended.then(() => ({ done: true as const, value: undefined })) }),
  }
  const query = sdk.query({ prompt: nothing, options }) as unknown as AgentQuery
  const draining = drain(query)
  try {
    const over = draining.then(
      () => Promise.reject(new Error('it ended')),
      (error) => Promise.reject(error),
    )
    over.catch(() => undefined)
    return await Promise.race([ask(query), over])
  } catch (cause) {
    if (cause instanceof CkptError) throw cause
    throw new CkptError(
      'NOT_FOUND',
      `There is no query of session ${printable(options.resume)}, and it could not be resumed: ${printable(String((cause as Error).message ?? cause))}. Nothing was changed.`,
      { hints: ['ckpt list --sessions'], cause },
    )
  } finally {
    end()
    query.close?.()
    await draining.catch(() => undefined)
  }
}

async function drain(query: AgentQuery): Promise<void> {
  for await (const _ of query) {
    // Nothing that it says is asked for.
  }
}
