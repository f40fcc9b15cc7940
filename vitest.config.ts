import path from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { vfork } from './test/support/vfork.ts'

/** Larger files first, as Vitest does; what waits most of its time sooner, so that no worker waits when the others are through. */
class Longest extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const waits = ({ moduleId }: TestSpecification) => /\/test\/(daemon|agents|fault)\//.test(moduleId)
    const ranked = (await super.sort(files)).map((file, rank) => ({ file, rank: waits(file) ? rank / 2 : rank }))
    return ranked.toSorted((a, b) => a.rank - b.rank).map(({ file }) => file)
  }
}

// For the processes that run test files alone: none of what they start inherits it.
process.env.LD_PRELOAD ??= vfork(path.join(import.meta.dirname, 'node_modules/.cache/ckpt-test')) ?? ''

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } }, // what is waited for comes in its own time on a busy machine
    sequence: { sequencer: Longest },
    pool: 'forks',
    // Where a start of git copies what its parent holds, that is little, and a process for each file; else the program is
    // loaded, and compiled, once for each worker.
    ...(process.env.LD_PRELOAD
      ? { isolate: false }
      : { execArgv: ['--max-semi-space-size=2', '--max-old-space-size=512'] }),
    maxWorkers: 3, // on two cores too: a part of each test is waiting
    globalSetup: ['test/support/reachable.ts'],
    setupFiles: ['test/support/seed.ts'],
    env: {
      TZ: 'UTC',
      LC_ALL: 'C',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      // Nothing here speaks TLS, and Node is started some thousand times: reading certificates may double what that costs.
      NODE_EXTRA_CA_CERTS: '',
    },
  },
})
