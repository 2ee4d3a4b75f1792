import type { CallToolResult } from '@modelcontextprotocol/server'
import type { GatewayError } from '../core/errors.ts'

/**
 * An error of the gateway as the result of a tool, so that the model reads it and can do better. It holds what the HTTP API
 * would say and nothing that differs between two equal calls.
 */
export function toolError(error: GatewayError): CallToolResult {
  const { message, publicCode: code, param, status, retryAfterSeconds } = error
  const shown = {
    code,
    message,
    status,
    ...(param === undefined ? {} : { param }),
    ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
  }
  return { isError: true, content: [{ type: 'text', text: JSON.stringify({ error: shown }) }] }
}
