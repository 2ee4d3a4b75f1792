import Fastify, { type FastifyBaseLogger } from 'fastify'
import { describe, expect, test } from 'vitest'
import { fromPino, fromWinston, type Logger, usableLogger } from '../../src/core/logger.ts'

/** A real pino logger, as a Fastify host has one, and the lines that it wrote. */
function pino(): { readonly logger: FastifyBaseLogger; lines(): unknown[] } {
  const written: string[] = []
  const app = Fastify({ logger: { level: 'debug', stream: { write: (line: string) => void written.push(line) } } })
  return { logger: app.log, lines: () => written.map((line) => JSON.parse(line) as unknown) }
}

const fault = Object.assign(new Error('no way to the store'), { code: 'ECONNREFUSED' })

describe('a pino logger', () => {
  const given: readonly (readonly [how: string, make: (logger: FastifyBaseLogger) => Logger])[] = [
    ['given as it is', usableLogger],
    ['through fromPino', fromPino],
  ]
  test.each(given)('keeps text, level and fields when it is %s', (_how, make) => {
    const { logger, lines } = pino()

    const used = make(logger)
    used.warn('a vendor call failed', { vendor: 'one', status: 503 })
    used.error('a request failed', { requestId: 'req_1', error: fault })
    used.info('without fields')
    used.debug('at the lowest level', { count: 1 })

    expect(lines()).toMatchObject([
      { level: 40, msg: 'a vendor call failed', vendor: 'one', status: 503 },
      { level: 50, msg: 'a request failed', requestId: 'req_1', err: { message: fault.message, code: fault.code } },
      { level: 30, msg: 'without fields' },
      { level: 20, msg: 'at the lowest level', count: 1 },
    ])
  })

  test('keeps the bindings of a parent as well', () => {
    const { logger, lines } = pino()
    usableLogger(logger.child({ part: 'ai' })).warn('a circuit opened', { vendor: 'one' })

    expect(lines()).toMatchObject([{ part: 'ai', msg: 'a circuit opened', vendor: 'one' }])
  })
})

describe('a logger that takes the text first', () => {
  test('gets text and fields without additions, and throws into no caller', () => {
    const lines: unknown[][] = []
    const log = (...line: unknown[]): void => {
      lines.push(line)
      if (line[0] === 'throws') throw fault
    }
    const logger = usableLogger({ debug: log, info: log, warn: log, error: log })
    logger.info('plain')
    logger.error('throws', { count: 1 })

    expect(lines).toEqual([['plain'], ['throws', { count: 1 }]])
  })

  test('keeps errors through fromWinston, which JSON would write as {}', () => {
    const lines: unknown[] = []
    const log = (message: string, fields: object): unknown =>
      lines.push(JSON.parse(JSON.stringify({ message, ...fields })))

    const logger = fromWinston({ debug: log, info: log, warn: log, error: log })
    logger.error('a request failed', { requestId: 'req_1', error: fault })
    logger.info('without fields')

    expect(lines).toEqual([
      {
        message: 'a request failed',
        requestId: 'req_1',
        error: { name: 'Error', message: fault.message, stack: fault.stack, code: 'ECONNREFUSED' },
      },
      { message: 'without fields' },
    ])
  })
})

test('without a logger nothing is written', () => {
  expect(() => usableLogger(undefined).error('nobody reads this', { error: fault })).not.toThrow()
})
