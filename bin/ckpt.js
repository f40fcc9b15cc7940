#!/usr/bin/env node
// The compiled program lives in dist/; this file only starts it and hands over the exit code. CommonJS starts faster.
const { main, realEnv } = require('../dist/cli/main.cjs')

main(process.argv.slice(2), realEnv()).then((code) => {
  process.exitCode = code
})
