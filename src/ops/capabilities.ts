/** What a session's backend can do. The default backend is ckpt itself. */
export interface Capabilities {
  session: string | null
  backend: 'ckpt'
  capabilities: Record<string, boolean>
}

export function capabilitiesOf(session: string | null): Capabilities {
  return {
    session,
    backend: 'ckpt',
    capabilities: {
      supportsUndo: true,
      supportsRedo: true,
      supportsStepUndo: true,
      supportsSelectiveUndo: true,
      supportsDiff: true,
      supportsFork: true,
      supportsReconnect: true,
      supportsCommands: true,
      supportsPermissionRequests: false,
      supportsQuestionPrompts: false,
      supportsModelSelection: false,
      supportsPartialStreaming: false,
    },
  }
}
