import { describe, expect, test } from 'vitest'
import { ERROR_TABLE, type ErrorCode, GatewayError } from '../../src/core/errors.ts'

const CODES = Object.keys(ERROR_TABLE) as ErrorCode[]

describe.each(CODES)('the error %s', (code) => {
  test('has a lower-case code, an HTTP error status, and one sentence or more as its message', () => {
    const { status, message, type } = ERROR_TABLE[code]

    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(600)
    expect(message).toMatch(/^[A-Z].*\.$/)
    expect(type).toMatch(/^[a-z_]+$/)
  })

  test('is called a server error from status 500, and nothing else is', () => {
    const { status, type } = ERROR_TABLE[code]

    expect(type === 'server_error').toBe(status >= 500)
  })

  test('becomes an error that carries what the table says', () => {
    const error = new GatewayError(code)

    expect(error).toMatchObject({ code, publicCode: code, ...ERROR_TABLE[code] })
    expect(error.param).toBeUndefined()
    expect(error.retryAfterSeconds).toBeUndefined()
  })
})

test('each retryable fault of the gateway or a vendor has words by which coding clients retry', () => {
  const faults = Object.values(ERROR_TABLE).filter(({ status, retryable }) => status >= 500 && retryable)
  const words = /overloaded|service unavailable|server error|internal error|timed out/i

  expect(faults.length).toBeGreaterThan(5)
  expect(faults.map(({ message }) => message).filter((message) => !words.test(message))).toEqual([])
})

test('a caller error cannot be cured by repeating it', () => {
  const retryable = CODES.filter((code) => ERROR_TABLE[code].status < 500 && ERROR_TABLE[code].retryable)

  expect(retryable).toEqual(['idempotency_in_flight', 'task_not_finished', 'rate_limited'])
})

describe('recognising errors', () => {
  test('holds for a copy of the class from another bundle', () => {
    const foreign = Object.assign(new Error('from the other copy'), { [Symbol.for('signalbox.GatewayError')]: true })

    expect(GatewayError.isInstance(foreign)).toBe(true)
    expect(GatewayError.from(foreign)).toBe(foreign)
  })

  test.each([new Error('plain'), 'text', undefined, null, { code: 'rate_limited' }])(
    'anything else (%s) becomes an internal error with it as the cause, which callers never see',
    (value) => {
      const error = GatewayError.from(value)

      expect(GatewayError.isInstance(value)).toBe(false)
      expect(error.code).toBe('internal_error')
      expect(error.message).toBe(ERROR_TABLE.internal_error.message)
      expect(error.cause).toBe(value)
    },
  )
})
