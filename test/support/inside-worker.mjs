// Runs the program in this thread of the test's own process or, where it is to be another user, in one process of that one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { runAsWorker } from 'synckit'
import { run } from './inside.mjs'

let theirs

/** `command` starts inside-process.mjs as that user: without what a thread here is started with, which that one may not read. */
function processOf([file, ...args]) {
  const { NODE_OPTIONS: _, ...env } = process.env
  const started = spawn(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env })
  started.unref()
  started.channel.unref()
  return started
}

runAsWorker(async ({ command, ...given }) => {
  if (!command) return run(given)
  if (theirs?.connected !== true) theirs = processOf(command)
  const ended = new AbortController()
  const end = () => ended.abort()
  theirs.once('exit', end)
  theirs.send(given)
  const [{ ran, error }] = await once(theirs, 'message', { signal: ended.signal })
  theirs.off('exit', end)
  if (error) throw new Error(error)
  return ran
})
