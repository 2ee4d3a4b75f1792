import type { GatewayError } from '../../src/core/errors.ts'
import { type ErrorDialect, openaiErrors } from '../../src/endpoints/error-dialect.ts'
import { anyImageErrors, multimodalErrors } from '../../src/endpoints/images/image-operation.ts'
import { anthropicErrors } from '../../src/endpoints/messages/messages-errors.ts'

const DIALECTS = {
  openai: openaiErrors,
  multimodal: multimodalErrors,
  either: anyImageErrors,
  anthropic: anthropicErrors,
} satisfies Record<string, ErrorDialect>

export type DialectName = keyof typeof DIALECTS

/** The text of an error as callers of a dialect read it. */
export function errorBody(error: GatewayError, dialect: DialectName, requestId: string): string {
  return DIALECTS[dialect].body(error, requestId)
}

/** Anthropic's error object; as in a stream without a request id. */
export function anthropicError(error: GatewayError, requestId?: string): Record<string, unknown> {
  if (requestId !== undefined) return JSON.parse(anthropicErrors.body(error, requestId)) as Record<string, unknown>
  const [, data] = /^data: (.*)$/m.exec(anthropicErrors.streamEvent(error)) ?? []
  return JSON.parse(data ?? '') as Record<string, unknown>
}
