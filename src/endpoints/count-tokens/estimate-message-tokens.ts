import { Buffer } from 'node:buffer'
import type { MessagesRequest } from '../messages/messages-request.ts'
import { estimateTokens } from '../token-estimate.ts'

/** What a picture or file given as bytes counts for; how many tokens it takes differs from vendor to vendor. */
export const ESTIMATED_TOKENS_PER_FILE = 1600

/**
 * An upper estimate of a request's tokens, for vendors that do not count: the text of its system prompt, messages and tools by
 * the gateway's usual rule, and a fixed number for each picture or file. At least 1.
 */
export function estimateMessageTokens({ system, messages, tools }: MessagesRequest): number {
  let files = 0
  const text = JSON.stringify({ system, messages, tools }, (name, value: unknown) => {
    if (name === 'cache_control') return undefined
    if (name !== 'source' || !isBase64Source(value)) return value
    files += 1
    return undefined
  })
  return estimateTokens(Buffer.byteLength(text)) + files * ESTIMATED_TOKENS_PER_FILE
}

function isBase64Source(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'base64'
}
