// A turn of an agent, taken back and brought back. Run it with the directory of a worktree.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CkptError, openWorktree } from 'ckpt'

const worktree = await openWorktree(process.argv[2] ?? '.', { session: 'chat-1' })
await worktree.mark({ event: 'prompt', session: 'chat-1', text: 'Write hello.txt', messageId: 'm1' })
writeFileSync(join(worktree.root, 'hello.txt'), 'hello\n')
await worktree.mark({ event: 'stop', session: 'chat-1' })

const { capabilities } = await worktree.sessions.capabilities()
if (capabilities.supportsUndo) {
  const undone = await worktree.sessions.revert('m1')
  console.log('undone:', undone.files.map(({ path, action }) => `${action} ${path}`).join(', '))
}
const info = await worktree.sessions.getSessionInfo()
console.log('put back into the input field:', info.restoredPrompt)

if (capabilities.supportsRedo) await worktree.sessions.unrevert({ signal: AbortSignal.timeout(30_000) })
try {
  await worktree.sessions.redo()
} catch (error) {
  if (!(error instanceof CkptError)) throw error
  console.log('refused:', error.code)
}
