/** What goes over the daemon's socket: JSON-RPC 2.0 in vscode-jsonrpc's framing. */
import { NotificationType, RequestType } from 'vscode-jsonrpc/node'

export interface Hello {
  token: string
  version: string
}

export interface Welcome {
  version: string
  pid: number
  root: string
}

/** A command line, to be run where it was typed. */
export interface CliCall {
  token: string
  argv: string[]
  cwd: string
  vars: Record<string, string>
  terminal: boolean
  columns: number
}

export interface CliAnswer {
  code: number
  stdout: string
  stderr: string
}

export interface DaemonState {
  pid: number
  root: string
  version: string
  since: string
  watching: boolean
  watched: number
  why: string | null
  misses: number
  calls: number
}

export const helloRequest = new RequestType<Hello, Welcome, void>('hello')
export const cliRequest = new RequestType<CliCall, CliAnswer, void>('cli')
export const stateRequest = new RequestType<{ token: string }, DaemonState, void>('state')
export const stopRequest = new RequestType<{ token: string }, null, void>('stop')
export const changed = new NotificationType<{ path: string }>('changed')
