// A subscriber in a process of its own, that can be stopped: one line for each event.
import { connectDaemon } from '../../dist/index.js'

const client = await connectDaemon(process.argv[2])
const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`)
client.onClose(() => process.exit(0))
await client.subscribe(tell, { onGap: (at) => tell({ gap: at }) })
tell({ ready: true })
