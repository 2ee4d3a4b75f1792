const MARK = 'sandbox-thought:'

// Google's documentation names both for histories that come from elsewhere.
const PLACEHOLDERS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']

/** A signature for a part. Like a real one it is opaque, and must come back with its part. */
export function thoughtSignature(id: string): string {
  return Buffer.from(`${MARK}${id}`).toString('base64')
}

/** Was it made here, or is it one of the documented placeholders? */
export function isThoughtSignature(value: unknown): boolean {
  if (typeof value !== 'string') return false
  return PLACEHOLDERS.includes(value) || Buffer.from(value, 'base64').toString('utf8').startsWith(MARK)
}
