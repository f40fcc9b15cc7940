/** A short run of the property tests looks for regressions, and is the same each time; a long one searches. */
import fc from 'fast-check'

const { CKPT_PROPERTY_RUNS, CKPT_PROPERTY_SEED } = process.env
if (CKPT_PROPERTY_SEED || !CKPT_PROPERTY_RUNS) fc.configureGlobal({ seed: Number(CKPT_PROPERTY_SEED ?? 20261121) })

/** Of each property. Examples count among them (fast-check's `numRuns`): there is always one that is none. */
export const RUNS = Number(CKPT_PROPERTY_RUNS ?? 3)

export const runsWith = <T>(examples: T[]) => ({ numRuns: Math.max(RUNS, examples.length + 1), examples })
