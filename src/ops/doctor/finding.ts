/** What doctor says of one thing. */
export interface Finding {
  name: string
  ok: boolean
  detail: string
  /** The command that mends it. */
  mend?: string
  fixed?: boolean
  /** Worth knowing, but no damage. */
  advice?: boolean
}

export const FIX = 'ckpt doctor --fix'
