import { describe, expect, it } from 'vitest'
import { ERROR_TABLE, type ErrorCode, GatewayError } from '../../src/core/errors.ts'
import { openaiErrors } from '../../src/endpoints/error-dialect.ts'
import { anthropicErrors } from '../../src/endpoints/messages/messages-errors.ts'
import { respondError } from '../../src/pipeline/respond.ts'

function headersOf(code: ErrorCode, dialect = openaiErrors): Record<string, string> {
  let sent: readonly string[] = []
  const sink = {
    closed: false,
    head: (_status: number, headers: readonly string[]) => {
      sent = headers
    },
    write: () => true,
    end: () => undefined,
    destroy: () => undefined,
    onDrain: () => undefined,
    onClose: () => undefined,
  }
  respondError(sink, new GatewayError(code), { dialect, requestId: 'req_1' })
  return Object.fromEntries(sent.flatMap((name, index) => (index % 2 === 0 ? [[name, sent[index + 1]!]] : [])))
}

describe('respondError', () => {
  it.each(Object.keys(ERROR_TABLE) as ErrorCode[])(
    'stops clients from repeating %s if a repeat cannot help',
    (code) => {
      const expected = ERROR_TABLE[code].retryable ? undefined : 'false'

      expect(headersOf(code)['x-should-retry']).toBe(expected)
      expect(headersOf(code, anthropicErrors)['x-should-retry']).toBe(expected)
    },
  )

  it('stops a coding client that has a wrong key', () => {
    expect(headersOf('invalid_api_key', anthropicErrors)['x-should-retry']).toBe('false')
  })
})
