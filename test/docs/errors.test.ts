import { expect, test } from 'vitest'
import { ERROR_TABLE, type ErrorCode, GatewayError } from '../../src/core/errors.ts'
import { openaiError } from '../../src/endpoints/error-dialect.ts'
import { anthropicError, type DialectName, errorBody } from '../support/error-body.ts'
import { codeBlocks, firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/errors.md')
const REQUEST_ID = 'req_3f1c0a9be27d4c58a6410f7d25e8b9c3'

test('the page shows the table of the code', () => {
  const [, ...rows] = firstTable(section(page, 'Table'))

  expect(rows).toEqual(
    Object.entries(ERROR_TABLE).map(([code, { status, type, retryable, message }]) => [
      code,
      String(status),
      type,
      retryable ? 'yes' : 'no',
      message,
    ]),
  )
})

test.each<[heading: string, code: ErrorCode, dialect: DialectName]>([
  ['OpenAI style', 'model_not_found', 'openai'],
  ['Too little money', 'insufficient_balance', 'openai'],
  ['Limits', 'rate_limited', 'openai'],
  ['Upstream style', 'endpoint_model_mismatch', 'multimodal'],
])('the example of %s is what the gateway writes', (heading, code, dialect) => {
  const [block] = codeBlocks({ path: page.path, text: section(page, heading) })
  const param = code.includes('model') ? 'model' : undefined

  expect(JSON.parse(block?.code ?? '')).toEqual(
    JSON.parse(errorBody(new GatewayError(code, { param }), dialect, REQUEST_ID)),
  )
})

test('the example of the Anthropic envelope is what the gateway writes', () => {
  const [block] = codeBlocks({ path: page.path, text: section(page, 'Anthropic style') })

  expect(JSON.parse(block?.code ?? '')).toEqual(anthropicError(new GatewayError('rate_limited'), REQUEST_ID))
})

test('the example of a failed stream ends with the error and no [DONE]', () => {
  const [block] = codeBlocks({ path: page.path, text: section(page, 'Inside a stream') })
  const events = (block?.code ?? '').trim().split('\n\n')

  expect(events.at(-1)).toBe(`data: ${JSON.stringify(openaiError(new GatewayError('upstream_unavailable')))}`)
  expect(block?.code).not.toContain('[DONE]')
})
