import { describe, expect, test } from 'vitest'
import { terminalLogger } from '../../src/cli/terminal.ts'

function collector(options: { format: 'json' | 'text'; hasColours?: boolean }) {
  const lines: string[] = []
  const write = (line: string): void => void lines.push(line)
  return { logger: terminalLogger({ hasColours: false, ...options, write }), lines }
}

describe('json', () => {
  test('is one object a line, whose level and message no field replaces', () => {
    const { logger, lines } = collector({ format: 'json' })

    logger.error('it failed', { message: 'of a field', level: 'silly', error: new Error('why'), amount: 5n })

    expect(lines).toHaveLength(1)
    expect(lines[0]?.endsWith('}\n')).toBe(true)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'error',
      message: 'it failed',
      error: { error: 'why', stack: expect.any(String) },
      amount: '5',
    })
  })
})

describe('text', () => {
  test('is time, level, message and fields; absent fields are left out', () => {
    const { logger, lines } = collector({ format: 'text' })

    logger.warn('a vendor call failed', { vendor: 'one', status: 503, vendorMessage: 'try later', model: undefined })

    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} WARN {2}a vendor call failed vendor=one status=503 vendorMessage="try later"\n$/,
    )
  })

  test('cannot end the line or colour the terminal if it comes from outside', () => {
    const { logger, lines } = collector({ format: 'text' })

    logger.warn('a vendor call failed', { vendorMessage: 'one\nERROR two \u001b[31mred\u009b31m\u2028' })

    expect(lines[0]?.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028]/u)
  })

  test('has colours only when they are asked for', () => {
    const coloured = collector({ format: 'text', hasColours: true })
    coloured.logger.error('it failed')
    const plain = collector({ format: 'text' })
    plain.logger.error('it failed')

    expect(coloured.lines[0]).toContain('\u001b[31m')
    expect(plain.lines[0]).not.toContain('\u001b')
  })
})
