// The process of another user that runs the program as often as it is told to, and ends with who tells it.
import { run } from './inside.mjs'

process.on('message', async (given) => {
  const answer = await run(given).then(
    (ran) => ({ ran }),
    (error) => ({ error: String(error?.stack ?? error) }),
  )
  process.send(answer)
})
