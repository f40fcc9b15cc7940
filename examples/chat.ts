// A front end for any agent: what is typed is a prompt, or one of the commands below, as far as the session can do them.
// Run it with the directory of a worktree, and `shell` (no agent at all), `claude` or `opencode`.
import { createInterface } from 'node:readline'
import { CkptError, openWorktree } from 'ckpt'
import { agents } from './agents.ts'

const [directory = '.', name = 'shell'] = process.argv.slice(2)
const agent = await agents[name as keyof typeof agents](directory)
const worktree = await openWorktree(directory, { backends: agent.backends })
const say = console.log

async function command(line: string): Promise<void> {
  const session = agent.session()
  const { capabilities } = await worktree.sessions.capabilities(session)
  const [word, argument] = line.slice(1).split(' ')
  if (word === 'undo' && argument === 'list') {
    const { turns } = await worktree.turns({ session, hidden: true })
    for (const turn of turns) say(`${turn.n}  ${turn.prompt}${turn.hidden ? '  (undone)' : ''}`)
    if (turns.length === 0) say('nothing to undo')
  } else if (word === 'undo' && capabilities.supportsUndo) {
    const change = await worktree.sessions.undo({ session, ...(argument === undefined ? {} : { to: argument }) })
    say(`undone: turn ${change.turns.join(', ')}; ${change.files.length} files`)
    if (change.restoredPrompt) say(`to edit and send again: ${change.restoredPrompt.split('\n')[0]}`)
  } else if (word === 'redo' && capabilities.supportsRedo) {
    const change = await worktree.sessions.redo({ session })
    say(`back again: turn ${change.turns.join(', ')}; ${change.files.length} files`)
  } else if (word === 'diff' && capabilities.supportsDiff) {
    const { turns } = await worktree.turns({ session, limit: 1 })
    const { files } = await worktree.snapshots.diff(String(turns[0]?.n ?? 1), undefined, { session })
    for (const file of files) say(`${file.status} ${file.path} +${file.insertions} -${file.deletions}`)
  } else {
    const known = ['/undo', '/undo list', '/undo N', '/redo', '/diff'].filter((one) => {
      if (one === '/redo') return capabilities.supportsRedo
      return one === '/diff' ? capabilities.supportsDiff : capabilities.supportsUndo
    })
    say(`${line}: this session cannot do that. It knows ${known.join(', ')}`)
  }
}

const lines = createInterface({ input: process.stdin, terminal: false })
for await (const line of lines) {
  say(`> ${line}`)
  try {
    if (line === '/quit') break
    if (line.startsWith('/')) await command(line)
    else if (line.trim() !== '') say(await agent.send(line))
  } catch (error) {
    if (!(error instanceof CkptError)) throw error
    say(`${error.code}: ${error.message}`)
  }
}
lines.close()
await agent.close()
