/** The default backend: ckpt's own checkpoints. Each operation is loaded when it runs. */
import { withCapabilities } from '../core/capabilities.ts'
import type { Backend } from './backend.ts'

const CAN = withCapabilities([
  'supportsUndo',
  'supportsRedo',
  'supportsStepUndo',
  'supportsSelectiveUndo',
  'supportsDiff',
  'supportsFork',
  'supportsReconnect',
  'supportsCommands',
])

export const ckptBackend: Backend = {
  name: 'ckpt',
  capabilities: () => CAN,
  undo: async (...given) => (await import('../ops/change/undo.ts')).undo(...given),
  redo: async (...given) => (await import('../ops/change/redo.ts')).redo(...given),
  accept: async (...given) => (await import('../ops/change/accept.ts')).accept(...given),
}
