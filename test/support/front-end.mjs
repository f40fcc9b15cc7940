// A front end with nothing but the rewind menu: Escape twice opens it. Run on a terminal with the directory of a worktree.
import { fileURLToPath } from 'node:url'

const { onDoubleEscape, openWorktree, rewindMenu } = await import(
  fileURLToPath(new URL('../../dist/index.js', import.meta.url))
)
const [directory, session] = process.argv.slice(2)
const worktree = await openWorktree(directory)
process.stdin.setRawMode(true)
process.stdin.resume()
const stop = onDoubleEscape(process.stdin, 300, async () => {
  stop()
  const outcome = await rewindMenu(worktree, { session, log: (error) => console.log(`logged: ${error.code}`) })
  console.log(`outcome: ${outcome.kind}`)
  process.exit(0)
})
console.log('ready')
