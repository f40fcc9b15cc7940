/** A second backend: it undoes with the default one's means, and has no redo, no steps and no selection. */
import type { Backend } from '../../src/backends/backend.ts'
import { ckptBackend } from '../../src/backends/ckpt.ts'
import { withCapabilities } from '../../src/core/capabilities.ts'

export const toyBackend: Backend = {
  name: 'toy',
  capabilities: () => withCapabilities(['supportsUndo', 'supportsReconnect']),
  undo: (...given) => ckptBackend.undo!(...given),
  accept: (...given) => ckptBackend.accept!(...given),
}
