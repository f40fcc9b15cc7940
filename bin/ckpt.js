#!/usr/bin/env node
// The compiled program lives in dist/; this file only starts it and hands over the exit code. CommonJS starts faster.
const { main, realEnv } = require('../dist/cli/main.cjs')

// Whatever goes wrong in us, an agent's hook does not fail.
if (process.argv[2] === 'hook')
  process.on('uncaughtException', () => {
    process.exit(0)
  })

main(process.argv.slice(2), realEnv()).then((code) => {
  process.exitCode = code
})
