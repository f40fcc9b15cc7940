import type { AgentMessage } from './sdk.ts'

/**
 * What the agent does that no prompt waits for: agents that it let go on in the background, and what it does each time that
 * one of its tasks there has ended, which has a result of its own. A command in the background, a server say, is no work of
 * its: that may go on for ever.
 */
export class Unprompted {
  /** Agents in the background, by the names of their tasks. */
  tasks: readonly string[] = []
  #round: 'none' | 'due' | 'open' = 'none'

  get running(): boolean {
    return this.tasks.length > 0 || this.#round !== 'none'
  }

  /** A task has ended: what is done then is about to begin, or never will. */
  get onlyWaiting(): boolean {
    return this.tasks.length === 0 && this.#round === 'due'
  }

  /** `prompted`: a prompt is being worked on, or is about to be, and what is said is about that. */
  hear({ type, subtype, status, parent_tool_use_id: within, tasks = [] }: AgentMessage, prompted: boolean): void {
    if (subtype === 'background_tasks_changed')
      this.tasks = tasks.filter(({ task_type: what }) => /agent|workflow/.test(what ?? '')).map((one) => one.task_id)
    if (type === 'result') this.#round = 'none'
    if (prompted) return
    // Of one that was stopped from outside the agent is told later, with the next prompt.
    if (subtype === 'task_notification' && status !== 'stopped' && this.#round === 'none') this.#round = 'due'
    if (subtype === 'init' || (type === 'assistant' && !within)) this.#round = 'open'
  }

  /** Nothing will come of it. */
  giveUp(): void {
    if (this.#round === 'due') this.#round = 'none'
  }

  /** The query is over. */
  clear(): void {
    this.tasks = []
    this.#round = 'none'
  }
}
