const MARK = 'sandbox-thinking:'

/** A signature for thinking. Like a real one it is opaque, and must come back with its block. */
export function thinkingSignature(id: string): string {
  return Buffer.from(`${MARK}${id}`).toString('base64')
}

/** Was it made here? */
export function isSandboxSignature(value: unknown): boolean {
  return typeof value === 'string' && Buffer.from(value, 'base64').toString('utf8').startsWith(MARK)
}
