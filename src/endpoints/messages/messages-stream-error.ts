import type { GatewayError } from '../../core/errors.ts'
import { sseEvent } from '../../wire/sse.ts'
import { anthropicError } from '../error-body.ts'

/** Writes the error event of a Messages stream (Anthropic, "Streaming messages", error events). Nothing follows it. */
export function messagesStreamError(error: GatewayError): string {
  return sseEvent('error', JSON.stringify(anthropicError(error)))
}
