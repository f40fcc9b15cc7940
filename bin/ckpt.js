#!/usr/bin/env node
// The compiled program lives in dist/; this file only starts it and hands over the exit code.
import { main, realEnv } from '../dist/cli/main.js'

const env = realEnv()
process.exitCode = await main(process.argv.slice(2), env)
