#!/usr/bin/env node
// The compiled program lives in dist/; this file only starts it and hands over the exit code. CommonJS starts faster.
const { hookFailed, main, realEnv } = require('../dist/cli/main.cjs')

// What we write we have to read again, and so do the git processes that we start.
const givenUmask = process.umask()
process.umask(givenUmask & ~0o700)

// Whatever goes wrong in us, an agent's hook does not fail.
if (process.argv[2] === 'hook') {
  const leave = () => process.exit(0)
  process.on('uncaughtException', (error) => hookFailed(realEnv(), error).then(leave, leave))
}

main(process.argv.slice(2), realEnv(givenUmask)).then((code) => {
  process.exitCode = code
})
