// Hearing of what happens in a worktree. Run it with the directory of one.
import { connectDaemon, type EventMessage } from 'ckpt'

const client = await connectDaemon(process.argv[2] ?? '.', { start: true, session: 'chat-2' })
let tell: (message: EventMessage) => void
const heard = new Promise<EventMessage>((resolve) => {
  tell = resolve
})
// What happens before this has come back may be missed.
await client.subscribe((message) => {
  const { event } = message
  if (event.type === 'turn.added') console.log('a turn begins:', event.turn.prompt)
  if (event.type === 'session.updated' && event.info.state === 'idle') tell(message)
})
await client.mark({ event: 'prompt', session: 'chat-2', text: 'Tell everybody' })
await client.mark({ event: 'stop', session: 'chat-2' })
const { epoch, seq } = await heard
client.close()

// Another connection goes on where that one was.
const again = await connectDaemon(process.argv[2] ?? '.')
const { resumed } = await again.subscribe(() => undefined, { after: { epoch, seq } })
console.log('nothing was missed:', resumed)
again.close()
